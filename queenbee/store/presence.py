"""Which droids have acted on this machine, and since when: files in the untracked state.

A droid that only reads leaves no record; this is how others can know that it is here. Nothing
breaks without these files: a droid is then known by its records alone.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.names import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.layout import Layout


def note(layout: Layout, name: str, now_ms: int) -> None:
    """Remembers the first command of a droid; does nothing if the state cannot be written."""
    path = _path(layout, name)
    if os.path.exists(path):
        return
    with suppress(OSError):
        # Not the state directory itself: only a write makes that.
        with suppress(FileExistsError):
            os.mkdir(os.path.dirname(path))
        with open(path, "x", encoding="utf-8") as file:
            file.write(f"{now_ms}\n")


def since_ms(layout: Layout, name: str) -> int | None:
    """Returns when a droid first acted here, in ms since 1970, or None."""
    try:
        with open(_path(layout, name), encoding="utf-8") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return None


def is_here(layout: Layout, name: str) -> bool:
    """Returns whether a droid has acted here, or a worktree remembers its name."""
    return os.path.exists(_path(layout, name)) or name in _remembered(layout)


def names(layout: Layout) -> set[str]:
    """Returns the droids that have acted here, and the names that worktrees remember."""
    try:
        noted = os.listdir(os.path.dirname(_path(layout, "")))
    except OSError:
        noted = []
    return {name for name in noted if is_name(name)} | _remembered(layout)


def _remembered(layout: Layout) -> set[str]:
    paths = [layout.identity_path]
    if layout.common_dir is not None:
        paths.append(os.path.join(layout.common_dir, "queenbee-droid"))
        trees = os.path.join(layout.common_dir, "worktrees")
        with suppress(OSError):
            paths += [os.path.join(trees, each, "queenbee-droid") for each in os.listdir(trees)]
    found = set()
    for path in paths:
        with suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
            found.add(file.read(256).strip())
    return {name for name in found if is_name(name)}


def _path(layout: Layout, name: str) -> str:
    return os.path.join(layout.state_dir, "droids", name)
