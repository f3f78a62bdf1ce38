"""An edit: refused if another droid holds one of its files; otherwise its files are leased."""

from __future__ import annotations

import os

from queenbee.errors import Held, NoHive
from queenbee.store.layout import discover, git_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.store.layout import Layout


def answer(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns the refusal of an edit, or None if it may proceed."""
    for layout, files in _by_hive(event, env):
        refused = _in_hive(layout, files, event, env)
        if refused is not None:
            return refused
    return None


def _in_hive(
    layout: Layout, files: Sequence[str], event: Event, env: Mapping[str, str]
) -> Answer | None:
    # An edit that concerns no hive loads none of these.
    from queenbee.hook.sessions import open_hive  # noqa: PLC0415 - start-up
    from queenbee.services.leases import edits  # noqa: PLC0415 - start-up

    paths = edits.changed_paths(layout, files)
    if not paths:
        return None
    hive = open_hive(layout, env, event)
    statuses = edits.look(hive.reservations, paths)
    # Decided before anything is written: a fault in writing must not let the edit pass.
    held, first_in_line = _held(statuses), None
    if not held and hive.actor_or_none is not None:
        try:
            edits.keep(hive.reservations, statuses, event.session)
        except Held as refusal:
            held = _held(edits.look(hive.reservations, paths))
            first_in_line = refusal
    if not held and first_in_line is None:
        return None
    from queenbee.hook import refusals  # noqa: PLC0415 - start-up

    if first_in_line is not None and not held:
        return refusals.behind_waiters(event, hive, paths[0], first_in_line)
    return refusals.answer(event, hive, held)


def _held(statuses: Sequence[PathStatus]) -> list[PathStatus]:
    return [each for each in statuses if each.status == "held"]


def _by_hive(event: Event, env: Mapping[str, str]) -> list[tuple[Layout, list[str]]]:
    """Returns the hives that an edit concerns, each with its files; nearly always one."""
    found: dict[tuple[str, str], tuple[Layout, list[str]]] = {}
    for file in filter(_is_file_name, event.files):
        layout = _hive_of(file, event, env)
        if layout is not None:
            found.setdefault((layout.beads_dir, layout.tree), (layout, []))[1].append(file)
    return list(found.values())


def _is_file_name(text: str) -> bool:
    """Returns whether a file can have this name.

    An impossible name must not keep the other files of the edit from being checked.
    """
    try:
        return b"\0" not in os.fsencode(text)
    except ValueError:
        return False


def _hive_of(file: str, event: Event, env: Mapping[str, str]) -> Layout | None:
    """Returns the hive of the tree that a file is in, wherever the session runs, or None."""
    folder = os.path.dirname(os.path.realpath(file))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if env.get("BEADS_DIR"):
        # It names the hive of the session's repository, relative to where the session runs.
        here, there = git_tree(os.path.realpath(event.cwd)), git_tree(folder)
        if (here and here.common_dir) != (there and there.common_dir):
            return None
        env = {**env, "BEADS_DIR": os.path.join(event.cwd, env["BEADS_DIR"])}
    try:
        return discover(folder, env)
    except NoHive:
        return None
