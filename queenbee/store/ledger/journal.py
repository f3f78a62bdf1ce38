"""A journal: the untracked file that has every line, in order of arrival.

It is appended to under the hive's lock and never rewritten. `docs/format.md`, section "Journal";
ADR 0001.
"""

from __future__ import annotations

import os

from queenbee.errors import Unwritable
from queenbee.store import safe_open
from queenbee.store.files import (
    START,
    Appender,
    Chunk,
    Mark,
    read_after,
    read_at,
    size_of,
    split_lines,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PIECE_BYTES = 4 * 1024 * 1024
"""How many bytes of a long file are read at once."""


class Journal:
    """The journal of one kind. Reading needs no lock; everything else needs the hive's lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._intent_path = path + ".intent"
        self._gained_path = path + ".gained"

    def read(self, since: Mark, *, limit: int | None = None) -> Chunk:
        """Returns the complete writes after a mark."""
        stop = self._intended_from()
        chunk = self._read_after(since, stop, limit)
        if stop is None and (stop := self._intended_from()) is not None:
            # Announced while we read: we may have read half of it.
            chunk = self._read_after(since, stop, limit)
        return chunk

    def _read_after(self, since: Mark, stop: int | None, limit: int | None) -> Chunk:
        return read_after(self.path, since, stop=stop, limit=limit)

    def lacking(self, lines: Iterable[bytes], since: Mark = START) -> set[bytes]:
        """Returns those of the lines that it lacks after a mark; reads no more than necessary."""
        missing = set(lines)
        while missing:
            chunk = self.read(since, limit=PIECE_BYTES)
            if not chunk.lines:
                break
            missing.difference_update(split_lines(chunk.lines))
            since = chunk.end
        return missing

    def arrived_after(self, line: bytes) -> list[bytes]:
        """Returns the lines that arrived after this one, in order.

        The journal is read from its end, a piece at a time. Empty if the line is not in it.
        """
        needle = line + b"\n"
        begin = size_of(self.path)
        data = b""
        while begin > 0:
            step = min(PIECE_BYTES, begin)
            begin -= step
            data = read_at(self.path, begin, step) + data
            at = data.find(needle)
            if at > 0 and data[at - 1 : at] != b"\n":
                at = -1
            if at >= 0:
                return split_lines(data[at + len(needle) :])
        return []

    def arrivals(self) -> int:
        """Returns how often lines arrived that this machine did not append."""
        return size_of(self._gained_path)

    def count_arrival(self) -> None:
        """Remembers that lines arrived from elsewhere. Raises `Unwritable`."""
        try:
            safe_open.append(self._gained_path, b".")
        except OSError as error:
            raise unwritable(self._gained_path, error) from error

    # Several lines at once are announced before they are written, so that a process killed
    # in between leaves none of them: readers stop at the announced offset, and the next writer
    # removes the rest.

    def is_announced(self) -> bool:
        """Returns whether a write is announced: under the lock, one that was interrupted."""
        return safe_open.is_there(self._intent_path)

    def append(self, file: Appender, lines: Sequence[bytes]) -> None:
        """Appends lines that take effect together, when `forget_intent` is called."""
        data = joined(lines)
        if len(lines) > 1:
            _write_intent(self._intent_path, file.size, len(data))
        file.append(data)

    def finish_interrupted(self) -> None:
        """Removes the incomplete write of a writer that was killed."""
        begin = self._intended_from()
        if begin is not None and os.path.getsize(self.path) > begin:
            file = Appender(self.path)
            file.cut(begin)
            file.close()
        self.forget_intent()

    def forget_intent(self) -> None:
        """Marks the announced write as complete. Raises `Unwritable`."""
        try:
            safe_open.unlink(self._intent_path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise unwritable(self._intent_path, error) from error

    def _intended_from(self) -> int | None:
        """Returns the offset of an announced write that is not complete, or None."""
        if not self.is_announced():
            return None  # Nearly always, and told with one system call.
        try:
            begin, size = map(int, safe_open.read(self._intent_path, 64).split())
            journal_size = os.stat(self.path).st_size
        except (OSError, ValueError):
            return None
        return None if journal_size >= begin + size else begin


def joined(lines: Iterable[bytes]) -> bytes:
    """Returns the lines as the content of a file."""
    return b"".join([line + b"\n" for line in lines])


def unwritable(path: str, error: OSError) -> Unwritable:
    """Returns the error for an append to a file that cannot be written."""
    return Unwritable(
        f"{path} cannot be written: {error.strerror}; nothing was recorded", path=path
    )


def _write_intent(path: str, begin: int, size: int) -> None:
    try:
        safe_open.write(path, b"%d %d\n" % (begin, size))
    except OSError as error:
        raise unwritable(path, error) from error
