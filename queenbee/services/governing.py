"""Nested hives: a file is governed by every hive above it within its repository, and around it.

Writes go to the nearest (`docs/format.md`, section "Places"), but a lease in any of them holds.
"""

from __future__ import annotations

import os

from queenbee.errors import NoHive
from queenbee.services.hive import Services
from queenbee.store import safe_open
from queenbee.store.droids import identity
from queenbee.store.layout import hives_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from queenbee.services.leases.reservations import PathStatus
    from queenbee.store.layout import Layout


def governed(
    tree: str, paths: Iterable[str], env: Mapping[str, str], *, besides: str | None
) -> Iterator[tuple[Layout, dict[str, str]]]:
    """Yields the hives, except the one at `besides`, that govern some of these paths from the top
    of `tree`; each with those paths, by their names from the top of its own tree.

    None if the environment names the hive. Raises `Unreadable` for a hive that cannot be used.
    """
    if env.get("BEADS_DIR"):
        return
    found: dict[str, tuple[Layout, dict[str, str]]] = {}
    known: dict[str, list[Layout]] = {}
    for path in paths:
        folder = _folder(os.path.join(tree, path))
        if folder not in known:
            known[folder] = [
                each
                for each in hives_above(folder, env)
                if each.beads_dir != besides and (each.common_dir or each.tree == tree)
            ]
        for layout in known[folder]:
            there = os.path.relpath(os.path.join(tree, path), layout.tree)
            found.setdefault(layout.beads_dir, (layout, {}))[1][there] = path
    yield from found.values()


def _folder(file: str) -> str:
    """Returns the nearest folder above a file that exists."""
    folder = os.path.dirname(file)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def opened(layout: Layout, env: Mapping[str, str], droid: str | None, cwd: str) -> Services:
    """Returns the hive of a layout, with who acts as `droid` or the environment says."""
    actor = identity.find_actor(layout, env, droid)
    return Services(layout, actor=actor[0] if actor else None, cwd=cwd)


def check(
    open_hive: Callable[[], Services],
    paths: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str,
    droid: str | None = None,
) -> list[PathStatus]:
    """Returns for each literal path whether it is free, the actor's, or held by another, in any of
    the hives that govern it. Raises `NoHive` if there is none.

    Without a hive here, they are those below, and those of the repository around a submodule.
    """
    try:
        hive = open_hive()
    except NoHive:
        folders = (_folder(safe_open.real_path(os.path.join(cwd, each))) for each in paths)
        above = next((layout for each in folders for layout in hives_above(each, env)), None)
        if above is None:
            raise
        hive = opened(above, env, droid, cwd)
    statuses = hive.reservations.check(paths)
    by_path = {each.path: each for each in statuses}
    layout = hive.layout
    for other, names in governed(layout.tree, by_path, env, besides=layout.beads_dir):
        there = opened(other, env, hive.actor_or_none or droid, other.tree)
        for found in there.reservations.check(list(names)):
            known = by_path[names[found.path]]
            if found.status == known.status:
                known.leases += found.leases
            elif found.status == "held":
                known.status, known.leases = found.status, found.leases
            elif known.status != "held":  # It is the actor's in one of them.
                known.status, known.leases = "mine", known.leases + found.leases
    return statuses
