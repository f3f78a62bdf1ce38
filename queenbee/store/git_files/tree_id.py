"""Which working tree this is: an id that no other one has, also in a clone on another machine.

A path would not do: two clones may have the same. `docs/format.md`, section "Places"; ADR 0023.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.ids import RANDOM_BYTES, ulid, ulid_ms
from queenbee.errors import Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import current_branch, worktrees
from queenbee.store.layout import tree_id_paths
from queenbee.store.whole_files import take_name

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.core.records import Assignment, Reservation
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

_MOST_BYTES = 64


def read_tree_id(layout: Layout, place: Worktree | None = None) -> str | None:
    """Returns the id of the working tree (or of another `place`), or None if it has none yet."""
    paths = layout.tree_id_paths
    if place is not None:
        paths = tree_id_paths(layout.state_dir, place.git_dir, place.linked)
    *own, last = paths
    found = _read(own[0]) if own else None
    return found or (None if _is_left(last, *own) else _read(last))


def is_of_tree(
    record: Assignment | Reservation,
    tree_id: str | None,
    *,
    droid: str | None = None,
    folder: str | None = None,
    layout: Layout | None = None,
) -> bool:
    """Returns whether a record is of a working tree: it has its id, or has none and is of its
    `droid`, if it names no other folder. A name says nothing: others have such folders, too.

    With a `layout`, also if it has the id of none that is there, and is of that droid and folder:
    the worktree was made anew.
    """
    if record.tree_id and record.tree_id == tree_id:
        return True
    if droid is None or record.droid != droid or record.worktree not in (None, folder):
        return False
    if not record.tree_id:
        return True
    if layout is None or record.worktree is None:
        return False
    return record.tree_id not in (read_tree_id(layout, x) for x in worktrees(layout))


def keep_tree_id(layout: Layout) -> str:
    """Returns the id of the working tree, after making one if it has none. Raises `Unwritable`.

    Call it under the lock of the hive: two processes would make two ids.
    """
    found = read_tree_id(layout)
    if found is not None:
        return found
    # In the letters of our other ids, but all of it is chance: two trees never draw the same.
    fresh = ulid(int.from_bytes(os.urandom(6), "big"), os.urandom(RANDOM_BYTES))
    *others, last = layout.tree_id_paths
    data = f"{fresh}\n".encode()
    for path in others:
        with suppress(Unreadable, Unwritable):
            take_name(path, data, durable=False)
            return fresh
    take_name(last, data, durable=False)
    return fresh


def branch_of(layout: Layout) -> str | None:
    """Returns the branch that is checked out here, or None if there is none that text can name."""
    branch = current_branch(layout.git_dir) if layout.git_dir is not None else None
    with suppress(UnicodeEncodeError):
        if branch is not None and branch.encode():
            return branch
    return None


def _is_left(path: str, *own: str) -> bool:
    """Returns whether an id was kept of an earlier worktree of that name: where git keeps this one
    was made later.
    """
    with suppress(OSError):  # A main worktree has no such file.
        made = (os.stat(os.path.join(os.path.dirname(each), "commondir")) for each in own)
        return any(os.stat(path).st_mtime_ns < each.st_mtime_ns for each in made)
    return False


def _read(path: str) -> str | None:
    try:
        text = safe_open.read(path, _MOST_BYTES).decode("ascii").strip()
    except (OSError, Unreadable, UnicodeDecodeError):
        return None
    return text if ulid_ms(text) >= 0 else None
