"""Notes of what a landing is about to change, for whoever comes after one that was killed.

A note is a file that stays locked as long as the landing or a git that it started lives: git gets
the descriptor. So nobody has to guess from a process id whether a step is still under way.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import Unreadable
from queenbee.store import safe_open, waiting_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.core.fold import Fields

_END = ".note"
_MOST_BYTES = 64 * 1024
_PATIENCE_S = 5.0
_AGAIN_S = 0.02


class Note:
    """The note of one landing; locked until `close` or `remove`."""

    def __init__(self, path: str, fd: int, fields: Fields) -> None:
        self._path = path
        self.fd = fd
        self.fields = fields

    @classmethod
    def new(cls, folder: str, name: str) -> Note:
        """Makes the note of the landing with a place in the line."""
        path = os.path.join(folder, name + _END)
        fd = safe_open.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return cls(path, fd, {})

    def write(self, **fields: object) -> None:
        """Replaces what the note says, at once: a reader sees the old or the new."""
        self.fields = fields
        line = json.dumps(self.fields).encode(errors="surrogatepass") + b"\n"
        os.pwrite(self.fd, line, 0)
        os.ftruncate(self.fd, len(line))

    @property
    def written_ns(self) -> int:
        """When it was last written, by the clock of the file system, as for git's files."""
        return os.fstat(self.fd).st_mtime_ns

    def remove(self) -> None:
        """Ends the note: nothing is left to do."""
        with suppress(OSError, Unreadable):
            safe_open.unlink(self._path)
        self.close()

    def close(self) -> None:
        """Lets go of it, and leaves it to whoever comes next."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def left_behind(folder: str) -> Iterator[Note]:
    """Yields the notes of landings that were killed, locked by the caller, oldest first.

    Waits for a git that goes on without its landing, but not for ever: a landing that is stopped
    keeps its note.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_END))
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            fd = safe_open.open_file(path, os.O_RDWR)
        except (OSError, Unreadable):
            continue
        try:
            _lock(fd, 0.0 if waiting_line.is_live(folder, name.removesuffix(_END)) else _PATIENCE_S)
            first = os.pread(fd, _MOST_BYTES, 0).partition(b"\n")[0]
            fields = json.loads(first) if first else {}
        except BlockingIOError:
            os.close(fd)
            continue
        except ValueError:
            fields = {}
        note = Note(path, fd, fields if isinstance(fields, dict) else {})
        try:
            yield note
        finally:
            note.close()


def _lock(fd: int, wait_s: float) -> None:
    """Locks a file. Raises `BlockingIOError` if another process keeps it locked."""
    until_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                raise
            time.sleep(_AGAIN_S)
        else:
            return
