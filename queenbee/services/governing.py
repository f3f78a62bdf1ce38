"""Nested hives: a file is governed by every hive above it within its repository.

Writes go to the nearest (`docs/format.md`, section "Places"), but a lease in any of them holds.
"""

from __future__ import annotations

import os

from queenbee.services.hive import Services
from queenbee.services.leases.reservations import PathStatus
from queenbee.store.layout import governing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def others_governing(
    hive: Services, paths: Iterable[str], env: Mapping[str, str]
) -> Iterator[tuple[Services, list[str]]]:
    """Yields the hives beside `hive` that govern some of these paths from the root, with those.

    None if the environment names the hive. Raises `Unreadable` for a hive that cannot be used.
    """
    if env.get("BEADS_DIR"):
        return
    tree, own = hive.layout.tree, hive.layout.beads_dir
    found: dict[str, tuple[Services, list[str]]] = {}
    known: dict[str, list[str]] = {}
    for path in paths:
        folder = os.path.dirname(os.path.join(tree, path))
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        if folder not in known:
            layouts = [each for each in governing(folder, env) if each.tree == tree]
            known[folder] = [each.beads_dir for each in layouts if each.beads_dir != own]
            for layout in layouts:
                if layout.beads_dir not in (own, *found):
                    other = Services(layout, actor=hive.actor_or_none, cwd=tree)
                    found[layout.beads_dir] = other, []
        for beads in known[folder]:
            found[beads][1].append(path)
    yield from found.values()


def check(hive: Services, paths: Sequence[str], env: Mapping[str, str]) -> list[PathStatus]:
    """Returns for each literal path whether it is free, the actor's, or held by another, in any of
    the hives that govern it.
    """
    statuses = hive.reservations.check(paths)
    by_path = {each.path: each for each in statuses}
    for other, governed in others_governing(hive, by_path, env):
        for found in other.reservations.check(governed):
            known = by_path[found.path]
            if found.status == known.status:
                known.leases += found.leases
            elif found.status == "held" or known.status == "free":
                known.status, known.leases = found.status, found.leases
    return statuses
