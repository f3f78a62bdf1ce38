"""The lines of a hive's database on this machine: one SQLite file, disposable at any time.

Any process may discard it or fill it with other lines. So a reader names the end that its database
has, by digest, and gets nothing unless the copy has that end. ADR 0030.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.errors import Busy, Unwritable
from queenbee.store import safe_open
from queenbee.store.engines.postgres.ddl import chained

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.store.engines.postgres.connection import Row

_FILES = ("", "-wal", "-shm", "-journal")
_TABLES = """
CREATE TABLE IF NOT EXISTS lines (
    kind TEXT, size INTEGER, sequence INTEGER, digest BLOB, line BLOB, PRIMARY KEY (kind, size)
) WITHOUT ROWID
"""
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


@dataclass(frozen=True, slots=True)
class End:
    """Where the lines of a kind end: the last number, its digest, and the bytes up to there."""

    sequence: int = 0
    digest: bytes = b""
    size: int = 0

    def after(self, row: Row) -> End:
        """Returns the end once a row has followed."""
        return End(row.sequence, row.digest, self.size + len(row.line) + 1)


class Copy:
    """The lines of all kinds. Safe for threads. Raises `Busy` and `Unwritable`."""

    def __init__(self, folder: str, timeout_s: float) -> None:
        self.path = os.path.join(folder, "lines.sqlite3")
        self._timeout_s = timeout_s
        self._mutex = threading.RLock()
        self._opened: sqlite3.Connection | None = None

    def end(self, kind: str) -> End:
        """Returns where the lines of a kind end."""
        with self._open() as db:
            return _end(db, kind)

    def take(self, kind: str, rows: Sequence[Row], after: End) -> bool:
        """Appends rows whose digests were compared, and which follow `after`, unless another
        process has done that.

        Returns False if they do not follow what is there now: then they are to be asked for again.
        """
        ends = [after]
        for row in rows:
            ends.append(ends[-1].after(row))
        with self._open() as db, _transaction(db):
            last = _end(db, kind)
            there = min(last.sequence, ends[-1].sequence) - after.sequence
            if there < 0 or not _has(db, kind, ends[there]):
                return False
            db.executemany(
                "INSERT INTO lines VALUES (?, ?, ?, ?, ?)",
                [
                    (kind, end.size, row.sequence, row.digest, row.line)
                    for row, end in zip(rows[there:], ends[there + 1 :], strict=True)
                ],
            )
        return True

    def read(
        self, kind: str, since: tuple[int, int], end: End, limit: int | None = None
    ) -> tuple[list[bytes], End, bool] | None:
        """Returns the lines from an offset up to `end`, or to about `limit` bytes; where they end;
        and whether they are all lines, since those before the offset are others by now. `since` is
        the offset with the `sum_of` the digest there. Returns None if the copy has another end.
        """
        offset, digest_sum = since
        with self._open() as db, _transaction(db, "BEGIN"):
            if not _has(db, kind, end):
                return None
            known = _digest_at(db, kind, offset)
            restarted = known is None or offset > end.size or sum_of(known) != digest_sum
            begin = 0 if restarted else offset
            at, lines = End(size=begin, digest=b"" if restarted else known or b""), list[bytes]()
            rows = db.execute(
                "SELECT line, sequence, digest, size FROM lines "
                "WHERE kind = ? AND size > ? AND size <= ? ORDER BY size",
                (kind, begin, end.size),
            )
            for line, *of in rows:
                lines.append(line)
                at = End(*of)
                if limit is not None and at.size - begin >= limit:
                    break
        return lines, at, restarted

    def after(self, kind: str, line: bytes) -> list[bytes]:
        """Returns the lines of a kind that came after this one; none if it is not there."""
        with self._open() as db:
            found = db.execute(
                "SELECT size FROM lines WHERE kind = ? AND line = ? ORDER BY size DESC LIMIT 1",
                (kind, line),
            ).fetchone()
            later = "SELECT line FROM lines WHERE kind = ? AND size > ? ORDER BY size"
            return [each for (each,) in db.execute(later, (kind, *found))] if found else []

    def discard(self, kind: str) -> None:
        """Forgets the lines of a kind: the database has others."""
        with self._open() as db:
            db.execute("DELETE FROM lines WHERE kind = ?", (kind,))

    def is_whole(self, kind: str) -> bool:
        """Returns whether each line matches its digest."""
        last, number = b"", 0
        with self._open() as db:
            query = "SELECT sequence, digest, line FROM lines WHERE kind = ? ORDER BY size"
            for sequence, digest, line in db.execute(query, (kind,)):
                last, number = chained(last, line), number + 1
                if (sequence, digest) != (number, last):
                    return False
        return True

    def close(self) -> None:
        """Closes the file; the next question opens it again."""
        with self._mutex:
            opened, self._opened = self._opened, None
            if opened is not None:
                opened.close()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._mutex:
            try:
                if self._opened is None:
                    self._opened = self._connected_anew()
                yield self._opened
            except sqlite3.DatabaseError as error:
                self.close()
                if error.sqlite_errorname in _DAMAGED:
                    self._remove()
                raise _refusal(error, self.path) from error

    def _connected_anew(self) -> sqlite3.Connection:
        """Opens the file, or another one if it is damaged."""
        try:
            return self._connected()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorname not in _DAMAGED:
                raise
        self._remove()
        return self._connected()

    def _connected(self) -> sqlite3.Connection:
        safe_open.make_folder(os.path.dirname(self.path))
        # SQLite opens the files by their paths.
        for suffix in _FILES:
            safe_open.refuse_links(self.path + suffix)
        if not os.path.lexists(self.path):
            # SQLite gives the files beside it the same permissions, and other users may need them.
            os.close(safe_open.open_file(self.path, os.O_RDWR | os.O_CREAT))
        db = sqlite3.connect(
            self.path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
        )
        # A power cut may lose the last lines, which are fetched again: no need to wait for a disk.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(_TABLES)
        return db

    def _remove(self) -> None:
        for suffix in _FILES:
            if safe_open.is_there(self.path + suffix):
                safe_open.unlink(self.path + suffix)


def sum_of(digest: bytes) -> int:
    """Returns the part of a digest that a reader's mark keeps."""
    return int.from_bytes(digest[:8], "big")


@contextmanager
def _transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    db.execute(begin)
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _end(db: sqlite3.Connection, kind: str) -> End:
    query = "SELECT sequence, digest, size FROM lines WHERE kind = ? ORDER BY size DESC LIMIT 1"
    found = db.execute(query, (kind,)).fetchone()
    return End(*found) if found else End()


def _digest_at(db: sqlite3.Connection, kind: str, size: int) -> bytes | None:
    """Returns the digest of the lines up to an offset; None if no line ends there."""
    if not size:
        return b""
    query = "SELECT digest FROM lines WHERE kind = ? AND size = ?"
    found = db.execute(query, (kind, size)).fetchone()
    return found[0] if found else None


def _has(db: sqlite3.Connection, kind: str, end: End) -> bool:
    return _digest_at(db, kind, end.size) == end.digest


def _refusal(error: sqlite3.DatabaseError, path: str) -> Busy | Unwritable:
    if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", *_DAMAGED)):
        return Busy(f"{path} is in use or damaged ({error})", hint="try again", path=path)
    return Unwritable(f"{path} cannot be written: {error}", path=path)
