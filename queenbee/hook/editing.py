"""An edit: refused if another droid holds one of its files; otherwise its files are leased."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.errors import Held, NotFound, QueenError
from queenbee.hook import answers
from queenbee.hook.events import BEFORE_EDIT, may_be_a_name
from queenbee.store.git_files.worktrees import are_several, droid_of
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import hives_above

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.hook.permits import Sight
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.store.layout import Layout

    Governed = tuple[Layout, bool, list[str]]
    """A hive, whether it is the nearest one of these files, and the files."""

_OF_PARENT = "of parent"
"""The status of a path that a subagent's session has reserved by name."""


def answer(event: Event, env: Mapping[str, str], sight: Sight | None = None) -> Answer | None:
    """Returns the refusal of an edit, or None if it may proceed. With what was seen before this, it
    permits the next edit of the same files.

    A file or a hive that cannot be read does not keep the others from being checked: its error
    is raised only after all of them were.
    """
    errors: list[Exception] = []
    places = [
        place
        for governed in _by_hive(event, env, errors)
        if (place := _opened(governed, event, env, errors)) is not None
    ]
    # Decided before anything is written: a fault in writing must not let the edit pass.
    for place in places:
        if (refused := _refusal(place, event)) is not None:
            return refused
    if not errors:
        for count, place in enumerate(places):
            if not place.writes or place.hive.actor_or_none is None:
                continue
            try:
                _keep(place, event, env)
            except Held as refusal:
                _give_back(places[:count])
                held = _held(_look(place.hive, place.paths, event.session))
                return _refused(place, held, event, refusal)
            except Exception:
                _give_back(places[:count])
                raise
    if errors:
        raise errors[0]
    return _let_pass(places, event, env, sight)


def _let_pass(
    places: Sequence[_Governed], event: Event, env: Mapping[str, str], sight: Sight | None
) -> Answer | None:
    """Returns what to tell with an edit that may proceed, and permits the next one."""
    said = _warned(places, event)
    alone = len(places) == 1 and places[0].hive.actor_or_none is not None
    if sight is not None and said is None and alone:
        from queenbee.hook import permitting  # noqa: PLC0415 - start-up

        permitting.note(event, env, places[0].hive, places[0].statuses, sight)
    return said


def _warned(places: Sequence[_Governed], event: Event) -> Answer | None:
    """Returns what to tell of others' unmerged work in the files of an edit."""
    for place in places:
        if place.writes and are_several(place.hive.layout):
            from queenbee.hook import neighbours  # noqa: PLC0415 - start-up

            said = neighbours.answer(event, place.hive, place.statuses)
            if said is not None:
                return said
    return None


def _refusal(place: _Governed, event: Event) -> Answer | None:
    if held := _held(place.statuses):
        return _refused(place, held, event)
    text = _elsewhere(place, event) if place.writes else ""
    if not text:
        return None
    is_before = event.kind == BEFORE_EDIT
    return answers.denial(event, text) if is_before else answers.context(event, text)


def _elsewhere(place: _Governed, event: Event) -> str:
    """Returns why an edit is refused that is in another worktree than that of its droid: the main
    one, or that of another droid. Empty if it is not.
    """
    layout, here = place.hive.layout, git_tree(os.path.realpath(event.cwd))
    if here is None or not here.linked or here.tree == layout.tree:
        return ""
    there = git_tree(layout.tree)
    if there is None or there.common_dir != here.common_dir:
        return ""
    own, theirs = droid_of(here.git_dir), droid_of(there.git_dir)
    if own is None or (there.linked and theirs in (None, own)):
        return ""
    path = place.paths[0]
    whose = f"the worktree of {mentioned(str(theirs))}" if there.linked else "the main worktree"
    return (
        f"{mentioned(os.path.join(layout.tree, path))} is in {whose}. You are {mentioned(own)}, "
        f"and your worktree is {mentioned(here.tree)}: the file that you mean is "
        f"{mentioned(os.path.join(here.tree, path))}. What is there lands by queen land."
    )


class _Governed:
    """An open hive, the paths of an edit that it governs, and their leases."""

    __slots__ = ("granted", "hive", "paths", "statuses", "writes")

    def __init__(
        self, hive: Services, paths: Sequence[str], session: str | None, *, writes: bool
    ) -> None:
        self.hive = hive
        self.paths = paths
        self.writes = writes
        """Whether it is the files' nearest hive, which leases them."""
        self.statuses = _look(hive, paths, session)
        self.granted: list[str] = []
        """The ids of the leases that were granted for this edit."""


def _opened(
    governed: Governed, event: Event, env: Mapping[str, str], errors: list[Exception]
) -> _Governed | None:
    layout, writes, files = governed
    # An edit that concerns no hive loads none of these.
    from queenbee.hook.session_events import open_hive  # noqa: PLC0415 - start-up
    from queenbee.services.leases import edits  # noqa: PLC0415 - start-up

    paths: list[str] = []
    for file in files:
        try:
            paths += edits.changed_paths(layout, [file])
        except (QueenError, OSError, ValueError) as error:
            errors.append(error)
    if not paths:
        return None
    try:
        hive = open_hive(layout, env, event)
        place = _Governed(hive, list(dict.fromkeys(paths)), event.session, writes=writes)
        if event.subagent is not None and _held(place.statuses):
            _take_from_parent(place, event, env)
        return place
    except (QueenError, OSError, ValueError) as error:
        errors.append(error)
        return None


def _take_from_parent(place: _Governed, event: Event, env: Mapping[str, str]) -> None:
    """Lets a subagent edit what its session holds: the session gave it the work.

    Leases that the session's own edits took are handed over, so that the session does not edit the
    files before the subagent is done. What it reserved by name stays its own.
    """
    from queenbee.hook.acting_names import find_actor  # noqa: PLC0415 - start-up
    from queenbee.hook.session_events import open_as  # noqa: PLC0415 - start-up

    parent = find_actor(place.hive.layout, env, event).parent
    if parent is None:
        return
    held = [lease for status in _held(place.statuses) for lease in status.leases]
    ids = [each.id for each in held if each.droid == parent and each.session == event.session]
    if ids:
        with suppress(NotFound):  # It ended in the meantime.
            open_as(place.hive.layout, parent).reservations.release(ids=list(dict.fromkeys(ids)))
        place.statuses = _look(place.hive, place.paths, event.session)
    for status in _held(place.statuses):
        if all(lease.droid == parent for lease in status.leases):
            status.status = _OF_PARENT


def _look(hive: Services, paths: Sequence[str], session: str | None) -> list[PathStatus]:
    from queenbee.services.leases import edits  # noqa: PLC0415 - start-up

    return edits.look(hive.reservations, paths, session)


def _keep(place: _Governed, event: Event, env: Mapping[str, str]) -> None:
    from queenbee.services.leases import edits  # noqa: PLC0415 - start-up

    own = [each for each in place.statuses if each.status != _OF_PARENT]
    granted = edits.keep(place.hive.reservations, own, event.session, env)
    place.granted = [lease.id for lease in granted]


def _give_back(places: Sequence[_Governed]) -> None:
    """Ends what this edit was granted in other hives: it gets all of its files or none."""
    for place in places:
        if place.granted:
            with suppress(QueenError, OSError):
                place.hive.reservations.release(ids=place.granted)


def _refused(
    place: _Governed, held: Sequence[PathStatus], event: Event, first_in_line: Held | None = None
) -> Answer:
    from queenbee.hook import refusals  # noqa: PLC0415 - start-up

    if first_in_line is not None and not held:
        # Nobody holds it by now, but somebody waits for it.
        return refusals.behind_waiters(event, place.hive, place.paths[0], first_in_line)
    return refusals.answer(event, place.hive, held)


def _held(statuses: Sequence[PathStatus]) -> list[PathStatus]:
    return [each for each in statuses if each.status == "held"]


def _by_hive(event: Event, env: Mapping[str, str], errors: list[Exception]) -> list[Governed]:
    """Returns the hives that an edit concerns, each with its files; nearly always one."""
    found: dict[tuple[str, str, bool], Governed] = {}
    # An impossible name must not keep the other files of the edit from being checked.
    for file in filter(may_be_a_name, event.files):
        writes = True
        try:
            for layout in _hives_of(file, event, env):
                key = (layout.beads_dir, layout.tree, writes)
                found.setdefault(key, (layout, writes, []))[2].append(file)
                writes = False
        except (QueenError, OSError, ValueError) as error:
            errors.append(error)
    return list(found.values())


def _hives_of(file: str, event: Event, env: Mapping[str, str]) -> Iterator[Layout]:
    """Yields the hives that govern a file, wherever the session runs, the nearest first."""
    folder = os.path.dirname(os.path.realpath(file))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if env.get("BEADS_DIR"):
        # It names the hive of the session's repository, relative to where the session runs.
        here, there = git_tree(os.path.realpath(event.cwd)), git_tree(folder)
        if (here and here.common_dir) != (there and there.common_dir):
            return
        env = {**env, "BEADS_DIR": os.path.join(event.cwd, env["BEADS_DIR"])}
    yield from hives_above(folder, env)
