"""Where a ledger and its journal end: both held open between the writes of an open hive.

To compare the two files, heal them and import what others added takes a hundred system calls. None
of that is needed if both are as the last append left them, or others have since appended the same
lines to both. In any other case, `Ends.append` writes nothing, and `Ledger.append` does the rest.

An inode keeps its number while a file is held open. So a path that leads to this inode leads to the
file that was opened without following a link (ADR 0015).
"""

from __future__ import annotations

import os

from queenbee.store import safe_open
from queenbee.store.files import TAIL_BYTES, Appender
from queenbee.store.ledger.archive import Archive
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.journal import PIECE_BYTES, Journal, joined, unwritable
from queenbee.store.ledger.ledger import Receipt, take_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.files import OpenFile


_NOWHERE = Position()


class _End:
    """The end of one file, and what the file was like when it was reached."""

    __slots__ = ("_known", "_tail", "file", "path", "size")

    def __init__(self, path: str, file: OpenFile, size: int) -> None:
        self.path = path
        self.file = file
        self.size = size
        begin = max(0, size - TAIL_BYTES)
        self._tail = os.pread(file.fd, size - begin, begin)
        self._known: tuple[int, ...] | None = None
        self._look()

    def added(self) -> bytes | None:
        """Returns what was appended since, or None if that cannot be told: another file has the
        path, the file is shorter, or was changed in place.
        """
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return None
        now = _stamp(status)
        if now == self._known:
            return b""
        if self._known is None or now[:3] != self._known[:3]:
            return None
        if not self.size < status.st_size <= self.size + PIECE_BYTES:
            return None
        size = status.st_size - self.size + len(self._tail)
        data = os.pread(self.file.fd, size, self.size - len(self._tail))
        if len(data) < size or not data.startswith(self._tail):
            return None
        return data[len(self._tail) :]

    def appender(self) -> Appender:
        """Returns the file, to be appended to. Until `wrote`, nothing is known about it."""
        self._known = None
        return Appender(self.path, self.file, self.size)

    def pass_by(self, data: bytes) -> None:
        """Moves past what is in the file."""
        self.size += len(data)
        self._tail = (self._tail + data)[-TAIL_BYTES:]

    def wrote(self, data: bytes) -> None:
        """Moves past what was appended here."""
        self.pass_by(data)
        self._look()

    def _look(self) -> None:
        status = os.fstat(self.file.fd)
        # Otherwise another program has written at the same moment.
        self._known = _stamp(status) if status.st_size == self.size else None


class Ends:
    """The ends of a ledger and its journal, up to which both hold the same lines."""

    __slots__ = ("_archive", "_journal", "_journal_file", "_segments", "_tracked")

    def __init__(self, receipt: Receipt) -> None:
        """Holds the files of an append open."""
        tracked, journal = receipt.files()
        self._tracked, self._journal = _end(tracked), _end(journal)
        self._journal_file = Journal(journal.path)
        self._archive = Archive(tracked.path, journal.path)
        self._segments = receipt.agreed.segments

    @classmethod
    def of(cls, receipt: Receipt) -> Ends | None:
        """Returns the ends that an append left, or None if the files may differ before them."""
        agreed = receipt.agreed
        sizes = tuple(file.end_offset for file in receipt.files())
        alike = sizes == (agreed.tracked.offset, agreed.journal.offset)
        return cls(receipt) if alike else None

    def append(self, lines: Sequence[bytes]) -> Receipt | None:
        """Writes the lines to both files: all or none. Needs the hive's lock.

        Returns None, with nothing written, if the files have to be compared first. Raises
        `Unwritable`.
        """
        if not self._follow():
            return None
        ledger, journal = self._tracked.appender(), self._journal.appender()
        receipt = Receipt(ledger, journal, _NOWHERE)
        data = joined(lines)
        try:
            # As in `Ledger.append`: the journal first, and its announcement ends last.
            if len(lines) > 1:
                self._journal_file.append(journal, lines)
            else:
                journal.append(data)
            ledger.append(data)
            if len(lines) > 1:
                self._journal_file.forget_intent()
            self._journal.wrote(data)
            self._tracked.wrote(data)
        except BaseException as error:
            take_back(receipt)
            if isinstance(error, OSError):
                raise unwritable(ledger.path, error) from error
            raise
        return receipt

    def _follow(self) -> bool:
        """Moves to the ends that the files have now; returns whether they still hold the same."""
        # A writer that was killed may have announced lines, and written none of them.
        if self._journal_file.is_announced() or not self._is_archive_the_same():
            return False
        journal = self._journal.added()
        if journal is None or self._tracked.added() != journal:
            return False
        if journal:
            if not journal.endswith(b"\n"):
                return False
            self._journal.pass_by(journal)
            self._tracked.pass_by(journal)
        return True

    def _is_archive_the_same(self) -> bool:
        if not self._segments and not safe_open.is_there(self._archive.folder):
            return True
        return self._archive.listing() == self._segments


def _end(file: Appender) -> _End:
    assert file.shared is not None
    return _End(file.path, file.shared, file.end_offset)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_ino,
        status.st_dev,
        status.st_mode,  # Whoever makes a file read-only means it.
        status.st_size,
        status.st_mtime_ns,
    )
