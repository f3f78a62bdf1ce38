"""The line of those who wait: one small file for each, locked by its process while it waits.

A file's name is a ULID, and the names give the order. An entry without a lock was left behind by a
process that died. `docs/format.md`, section "Places"; ADR 0020.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress

from queenbee.core.ids import RANDOM_BYTES, following, ulid, ulid_ms
from queenbee.errors import Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import is_unfinished, sweep, unfinished

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queenbee.core.fold import Fields

_NAME_CHARS = 26
_MOST_BYTES = 256 * 1024
"""A request has at most some thousand patterns of at most 1,024 characters."""
_UNFINISHED_FOR_S = 60.0
"""An entry gets its name within a millisecond: an older one belongs to a process that died."""


class Entry:
    """A place in the line, held until `leave`."""

    __slots__ = ("_fd", "_folder", "name")

    def __init__(self, folder: str, name: str, fd: int) -> None:
        self._folder = folder
        self._fd = fd
        self.name: str = name

    @property
    def is_lost(self) -> bool:
        """Whether somebody else gave this place up."""
        return self._fd < 0 or os.fstat(self._fd).st_nlink == 0

    def beat(self) -> None:
        """Shows that the process moves: the time of the entry is now. Never fails."""
        with suppress(OSError):
            os.utime(self._fd)

    def leave(self) -> None:
        """Gives the place up; harmless if that was done before."""
        lost = self.is_lost
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        # The name first: an entry without a lock looks like one whose process died.
        if not lost:
            remove(self._folder, self.name)
        os.close(fd)


def enter(
    folder: str, fields: Mapping[str, object], now_ms: int, *, is_next: bool = False
) -> Entry:
    """Takes the last place in the line, or the one behind the first. Raises `Unwritable`.

    Under the hive's lock, the order is that of the calls, whatever the clocks of the processes say.
    """
    data = json.dumps(fields, ensure_ascii=False).encode(errors="surrogatepass")
    nameless = unfinished(os.path.join(folder, "entry"))
    fd = -1
    try:
        safe_open.make_folder(folder)
        # 1. Locked and complete before it has its name: nobody may take it for one left behind.
        fd = safe_open.open_file(nameless, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        fcntl.flock(fd, fcntl.LOCK_EX)
        _write(fd, data)
        # 2. Behind everybody who has a name, also if the clock was set back.
        line = [each for each, _ in live(folder)]
        after_ms = max(now_ms, ulid_ms(line[-1]) + 1) if line else now_ms
        name = ulid(after_ms, os.urandom(RANDOM_BYTES))
        if is_next and line:
            # Each has a time of its own: right behind the first, and before whoever is second.
            name = following(line[0])
            while name in line:  # Others came back before.
                name = following(name)
        safe_open.replace(nameless, os.path.join(folder, name))
    except OSError as error:
        if fd >= 0:
            os.close(fd)
            with suppress(OSError):
                safe_open.unlink(nameless)
        raise Unwritable(
            f"{folder} cannot be written: {error.strerror}; nobody can wait", path=folder
        ) from error
    return Entry(folder, name, fd)


def names(folder: str) -> list[str]:
    """Returns the names in the line, first to last, whether their processes live or not."""
    return list(filter(is_name, safe_open.names_in(folder)))


def live(folder: str) -> Iterator[tuple[str, Fields]]:
    """Yields the entries whose process still waits, first to last, and removes the others."""
    found = safe_open.names_in(folder)
    if any(map(is_unfinished, found)):
        sweep(folder, older_than_s=_UNFINISHED_FOR_S)
    for name in filter(is_name, found):
        fields = _read(os.path.join(folder, name))
        if fields is not None:
            yield name, fields


def beaten_ns(folder: str, name: str) -> int:
    """Returns when the process of an entry last showed that it moves; 0 if it is gone."""
    try:
        return os.stat(os.path.join(folder, name), follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def remove(folder: str, name: str) -> None:
    """Gives up the place of a process that does not move; it finds that out by `is_lost`."""
    with suppress(OSError, Unreadable):
        safe_open.unlink(os.path.join(folder, name))


def is_live(folder: str, name: str) -> bool:
    """Returns whether the process of an entry still waits."""
    try:
        fd = safe_open.open_file(os.path.join(folder, name), os.O_RDONLY)
    except (OSError, Unreadable):
        return False
    try:
        return _is_locked(fd)
    finally:
        os.close(fd)


def _read(path: str) -> Fields | None:
    """Returns what an entry says, or None if it was left behind; it is then removed."""
    fd = -1
    try:
        fd = safe_open.open_file(path, os.O_RDONLY)
        if _is_locked(fd):
            fields = json.loads(os.read(fd, _MOST_BYTES))
            return fields if isinstance(fields, dict) else None
    except FileNotFoundError:
        return None
    except (OSError, Unreadable, ValueError, RecursionError):
        pass  # A link, or damaged: no process of ours holds it.
    finally:
        if fd >= 0:
            os.close(fd)
    with suppress(OSError, Unreadable):
        safe_open.unlink(path)
    return None


def _is_locked(fd: int) -> bool:
    try:
        # Shared: two that look at the same moment must not take each other for the waiter.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def is_name(name: str) -> bool:
    """Returns whether a file has a name of those in the line."""
    return len(name) == _NAME_CHARS and ulid_ms(name) >= 0
