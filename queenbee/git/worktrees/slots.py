"""The number of a worktree that no other one has, and the variables that say where a program runs.

The number is in a file of the worktree's own git directory: it is free again when git has removed
the worktree. It is taken under the hive's lock. docs/worktrees.md, "A worktree that works".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.checks.setup_finding import CODEX, CONDUCTOR, CURSOR
from queenbee.errors import NotFound, QueenError
from queenbee.store import safe_open
from queenbee.store.creating import make_state_dir
from queenbee.store.git_trees import git_tree
from queenbee.store.lock import KernelLock
from queenbee.store.whole_files import write_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.store.git_trees import GitTree
    from queenbee.store.layout import Layout

_SLOT = "queenbee-slot"
_FIRST_PORT, _PORTS = 3_000, 20
_MOST = (65_536 - _FIRST_PORT) // _PORTS - 1


def variables(layout: Layout, tree: str) -> dict[str, str]:
    """Returns the variables that the set-up, the agent and the checks of a worktree get: each has
    ports and a number of its own. The main worktree has the number 0.

    Raises `NotFound` for a folder that is no worktree, and what a turn at writing raises.
    """
    here = _here(tree)
    return _named(layout, here, slot_of(layout, here))


def known_variables(layout: Layout, tree: str) -> dict[str, str]:
    """Returns the same as far as they are known: none for a worktree that has no number yet."""
    here = _here(tree)
    slot = _read(here.git_dir) if here.linked else 0
    return _named(layout, here, slot) if slot is not None else {}


def _here(tree: str) -> GitTree:
    here = git_tree(tree)
    if here is None:
        raise NotFound(f"{tree} is not in git", hint="queen worktree list")
    return here


def _named(layout: Layout, here: GitTree, slot: int) -> dict[str, str]:
    root, port = here.main_tree or layout.root, str(_FIRST_PORT + _PORTS * slot)
    own = {
        "QUEEN_WORKTREE": here.tree,
        "QUEEN_ROOT": root,
        "QUEEN_SLOT": str(slot),
        "QUEEN_PORT": port,
    }
    others = {
        CURSOR: {"ROOT_WORKTREE_PATH": root},
        CONDUCTOR: {
            "CONDUCTOR_ROOT_PATH": root,
            "CONDUCTOR_WORKSPACE_PATH": here.tree,
            "CONDUCTOR_PORT": port,
        },
        CODEX: {
            "CODEX_SOURCE_TREE_PATH": root,
            "CODEX_WORKTREE_PATH": here.tree,
        },
    }
    for path, names in others.items():
        if os.path.isfile(os.path.join(root, path)):
            own |= names
    return own


def slot_of(layout: Layout, here: GitTree) -> int:
    """Returns the number of a worktree, from 1; it gets the smallest that is free if it has none.

    Safe for processes. Raises `Busy`, `Unwritable`.
    """
    if not here.linked:
        return 0
    if (known := _read(here.git_dir)) is not None:
        return known
    with KernelLock(
        layout.lock_path,
        holder="queen worktree",
        timeout_s=layout.settings.lock_timeout_s,
        prepare=lambda: make_state_dir(layout),
    ):
        taken = {*_taken(here.common_dir)}
        slot = _read(here.git_dir) or next(each for each in range(1, _MOST) if each not in taken)
        write_document(os.path.join(here.git_dir, _SLOT), b"%d\n" % slot)
    return slot


def _taken(common_dir: str) -> Iterator[int]:
    """Yields the numbers of all worktrees, also of one on a disk that is not there now."""
    folder = os.path.join(common_dir, "worktrees")
    for name in safe_open.names_in(folder):
        if (slot := _read(os.path.join(folder, name))) is not None:
            yield slot


def _read(git_dir: str) -> int | None:
    try:
        said = safe_open.read(os.path.join(git_dir, _SLOT), 16).strip()
    except (OSError, QueenError):
        return None
    return int(said) if said.isdigit() and 0 < int(said) <= _MOST else None
