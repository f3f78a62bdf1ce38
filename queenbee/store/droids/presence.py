"""Which droids act on this machine, since when, and when last: files in the untracked state.

Without them, a droid is known by its records alone.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from contextlib import suppress

from queenbee.core.names import is_name
from queenbee.errors import QueenError, Unreadable
from queenbee.store import safe_open

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.store.layout import Layout

_BEAT_S = 20.0


def note(layout: Layout, name: str | None, now_ms: int) -> None:
    """Notes that a droid is active on this machine: a file with the instant of its first command,
    whose own time is that of the last one.

    Never fails, and makes no state directory: where nothing may be written, nothing is noted.
    """
    if name is None or not is_name(name):
        return
    path = path_of(layout, name)
    try:
        safe_open.touch(path, now_ms)
    except FileNotFoundError:
        with suppress(OSError, Unreadable):
            with suppress(FileExistsError):
                safe_open.make_new_folder(layout.presence_dir)
            safe_open.write(path, f"{now_ms}\n".encode(), os.O_CREAT | os.O_EXCL)
            safe_open.touch(path, now_ms)
    except (OSError, Unreadable):
        return


class Beat:
    """Notes a droid's presence again and again until the block ends: a command that waits, or runs
    checks for minutes, is a sign of life. A process that is stopped gives none.
    """

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note
        self._running = allocate_lock()

    def __enter__(self) -> Beat:
        self._running.acquire()
        start_new_thread(self._beat, ())
        return self

    def __exit__(self, *error: object) -> None:
        self._running.release()

    def _beat(self) -> None:
        while not self._running.acquire(timeout=_BEAT_S):
            # Where it cannot be noted, the command itself says what is wrong.
            with suppress(QueenError, OSError):
                self._note()


def forget(layout: Layout, name: str) -> None:
    """Forgets a droid that will not act again, such as a subagent that is done. Never fails."""
    if is_name(name):
        with suppress(OSError, Unreadable):
            safe_open.unlink(path_of(layout, name))


def last_ms(layout: Layout, name: str) -> int | None:
    """Returns when a droid was last active here, in ms since 1970, or None."""
    if not is_name(name):
        return None
    try:
        status = os.stat(path_of(layout, name), follow_symlinks=False)
    except OSError:
        return None
    return status.st_mtime_ns // 1_000_000


def since_ms(layout: Layout, name: str) -> int | None:
    """Returns when a droid first acted here, in ms since 1970, or None."""
    try:
        return int(safe_open.read(path_of(layout, name), 32))
    except (OSError, Unreadable, ValueError):
        return None


def is_here(layout: Layout, name: str) -> bool:
    """Returns whether a droid has acted here, or a worktree remembers its name."""
    return os.path.exists(path_of(layout, name)) or name in _remembered(layout)


def names(layout: Layout) -> set[str]:
    """Returns the droids that have acted here, and the names that worktrees remember."""
    noted = safe_open.names_in(os.path.dirname(path_of(layout, "")))
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
        with suppress(OSError, Unreadable, UnicodeDecodeError):
            found.add(safe_open.read(path, 256).decode().strip())
    return {name for name in found if is_name(name)}


def path_of(layout: Layout, name: str) -> str:
    """Returns the file whose time says when a droid was last active."""
    return os.path.join(layout.presence_dir, name)
