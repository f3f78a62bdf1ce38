"""Nested hives: a file is governed by every hive above it within its repository, and around it.

Writes go to the nearest (`docs/format.md`, section "Places"), but a lease in any of them holds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.errors import NoHive
from queenbee.services.hive import Services
from queenbee.store import safe_open
from queenbee.store.droids import session_names
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import BEADS, hives_above

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
    above = _Above(tree, env)
    known: dict[str, list[Layout]] = {}
    for path in paths:
        named = os.path.dirname(os.path.join(tree, path))
        if named not in known:
            known[named] = [
                each
                for each in above.hives(_folder(os.path.join(tree, path)))
                if each.beads_dir != besides and (each.common_dir or each.tree == tree)
            ]
        for layout in known[named]:
            there = os.path.relpath(os.path.join(tree, path), layout.tree)
            found.setdefault(layout.beads_dir, (layout, {}))[1][there] = path
    yield from found.values()


class _Above:
    """The hives above many folders of one tree: a folder that begins nothing has its parent's."""

    def __init__(self, tree: str, env: Mapping[str, str]) -> None:
        self._tree = tree
        self._env = env
        self._known: dict[str, list[Layout]] = {}
        here = git_tree(tree)
        # In a linked worktree, the main one's folder of the same name may have a hive.
        self._alone = here is not None and not here.linked and here.tree == tree

    def hives(self, folder: str) -> list[Layout]:
        """Returns the hives that govern files in a folder, the nearest first."""
        found = self._known.get(folder)
        if found is None:
            begins = not self._alone or folder == self._tree or _begins_something(folder)
            inside = folder.startswith(os.path.join(self._tree, ""))
            if begins or not inside:
                found = list(hives_above(folder, self._env))
            else:
                found = self.hives(os.path.dirname(folder))
            self._known[folder] = found
        return found


def _begins_something(folder: str) -> bool:
    """Returns whether a folder may have another hive or repository than the one that it is in."""
    inner = (os.path.join(folder, name) for name in (BEADS, ".git"))
    return os.path.islink(folder) or any(map(os.path.lexists, inner))


def _folder(file: str) -> str:
    """Returns the nearest folder above a file that exists."""
    folder = os.path.dirname(file)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def opened(layout: Layout, env: Mapping[str, str], droid: str | None, cwd: str) -> Services:
    """Returns the hive of a layout, with who acts as `droid` or the environment says."""
    actor = session_names.find_actor(layout, env, droid)
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
