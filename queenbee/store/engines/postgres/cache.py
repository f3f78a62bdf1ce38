"""The lines of a database on this machine: one file for each kind, disposable at any time.

A file has one line for each sequence number, in order. A note beside it says how far it goes, or
went a while ago: what follows is read on from there. The files are journals
(`store.ledger.journal`), so that the fold and the index read them as they are. Appending needs the
cache's own lock on this machine. Files and lock stay open until `close`.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress

from queenbee.errors import Unreadable
from queenbee.store import safe_open
from queenbee.store.documents import take_name
from queenbee.store.engines.postgres.schema import chained
from queenbee.store.files import (
    START,
    Appender,
    Chunk,
    OpenFile,
    open_regular,
    read_open,
    stamp_of,
)
from queenbee.store.ledger.journal import PIECE_BYTES, Journal
from queenbee.store.lock import KernelLock
from queenbee.store.machine import boot_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.store.engines.postgres.connection import Row
    from queenbee.store.files import Mark, Stamp

_NOTE_EVERY_BYTES = 32 * 1024
"""How far the note may lag behind: reading on takes 0.2 ms for so much. Replacing a file takes a
disk as long as the write in the database."""


class Known:
    """How far a file goes: the last sequence number, its digest, and the size of the file."""

    __slots__ = ("boot", "digest", "sequence", "size")

    def __init__(
        self, sequence: int = 0, digest: bytes = b"", size: int = 0, boot: str | None = None
    ) -> None:
        self.sequence = sequence
        self.digest = digest
        self.size = size
        self.boot = boot_id() if boot is None else boot
        """Since which start of the machine the file is known to hold what was written to it."""


class Copy(Journal):
    """A cache's file, held open.

    An inode keeps its number while a file is held open, so a path that leads to this inode leads to
    the file that was opened without following a link (ADR 0015).
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._held: tuple[tuple[int, int], bool, OpenFile] | None = None
        """The device and the inode, whether it is open for writing, and the file."""

    def appender(self) -> Appender:
        """Returns the file to append to, which is made if it is missing. Needs the lock."""
        file = self._file(writing=True)
        assert file is not None
        return Appender(self.path, file, os.fstat(file.fd).st_size)

    def hold(self) -> None:
        """Keeps the file open, if it is there: no other file gets its inode then."""
        self._file()

    def close(self) -> None:
        """Lets go of the file."""
        self._held = None

    def _file(self, *, writing: bool = False) -> OpenFile | None:
        """Returns the file that the path leads to; None if there is none to read."""
        held = self._held
        if held is not None and _identity(self.path) == held[0] and held[1] >= writing:
            return held[2]
        self._held = None
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT if writing else os.O_RDONLY
        fd = open_regular(self.path, flags)
        if fd is None:
            return None
        status, file = os.fstat(fd), OpenFile(fd)
        self._held = (status.st_dev, status.st_ino), writing, file
        return file

    def _read_after(self, since: Mark, stop: int | None, limit: int | None) -> Chunk:
        file = self._file()
        if file is None:
            return Chunk(b"", b"", START, restarted=since.inode != 0)
        return read_open(file.fd, self.path, since, stop=stop, limit=limit)


class Cache:
    """The lines of one kind."""

    def __init__(self, folder: str, kind: str, lock_timeout_s: float) -> None:
        self.path = os.path.join(folder, f"{kind}.jsonl")
        self._note_path = f"{self.path}.known"
        self._folder = folder
        self._lock_timeout_s = lock_timeout_s
        self.journal = Copy(self.path)
        self._lock: KernelLock | None = None
        self._seen: tuple[int, Known] | None = None
        """The inode, and how far the file went when this process last looked."""
        self._noted_bytes = 0
        """How much the note is known to cover, at least."""
        self._agreed: tuple[int, int] | None = None
        """The inode and the size of what the database agreed with last; None before."""

    def known(self) -> Known:
        """Returns how far the file goes; the start if that is in doubt.

        Needs no lock: what others append meanwhile are the lines of the next numbers. If the file
        has been replaced by another one, the digest is not the one that the database has.
        """
        stamp = stamp_of(self.path)
        at = self._last_seen(stamp) or self._noted(stamp)
        if at is None:
            return Known()
        if at.boot != boot_id():
            with self._locked():
                return self._settled()
        return self._remember(stamp, self._read_on(at, stamp))

    def agree(self, sequence: int) -> None:
        """Notes that the database has the lines up to this one, all that were just looked at."""
        seen = self._seen
        whole = seen is not None and seen[1].sequence >= sequence > 0
        self._agreed = (seen[0], seen[1].size) if seen is not None and whole else (0, 0)
        self.journal.hold()

    def is_agreed(self) -> bool:
        """Returns whether what would be read now is what the database agreed with, or more of it.

        Other processes may discard the file at any moment, and one that asks another database
        fills it with other lines. They never change what is in it, and as long as it is held open,
        no other file has its inode.
        """
        if self._agreed is None:
            return True
        inode, size = self._agreed
        stamp = stamp_of(self.path)
        return stamp[:1] == (inode,) and stamp[1] >= size if inode else not any(stamp[1:2])

    def take(self, rows: Sequence[Row], after: tuple[int, bytes]) -> bool:
        """Appends rows whose digests were compared, and which follow the line with this sequence
        number and digest, unless another process has done that.

        Returns False if they do not follow what is there now: then they are to be asked for again.
        """
        digests = dict((after, *((row.sequence, row.digest) for row in rows)))
        with self._locked():
            at = self._settled()
            # Another process may have exchanged the file since, one of another database even.
            if digests.get(at.sequence) != at.digest:
                return False
            fresh = [row for row in rows if row.sequence > at.sequence]
            if not fresh:
                return True
            lines = [row.line for row in fresh]
            file = self.journal.appender()
            try:
                self.journal.append(file, lines)
                if not boot_id():
                    file.sync()
            finally:
                file.close()
            if len(lines) > 1:
                self.journal.forget_intent()
            size = at.size + sum(map(len, lines)) + len(lines)
            last = fresh[-1]
            now = self._remember(stamp_of(self.path), Known(last.sequence, last.digest, size))
            if not at.sequence or self._lags(now):
                self._note(now)
            return True

    def is_whole(self) -> bool:
        """Reads the whole file; returns whether its lines are those whose digest is known."""
        at = self.known()
        return not at.sequence or self._holds(at)

    def discard(self) -> None:
        """Forgets all lines. A reader notices that the file is another one."""
        with self._locked():
            self._remove()

    def close(self) -> None:
        """Closes what is open; the next question opens it again."""
        self.journal.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()

    def _settled(self) -> Known:
        """Returns how far the file goes, after what an interrupted process left. Needs the lock."""
        if self.journal.is_announced():
            self.journal.finish_interrupted()
        stamp = stamp_of(self.path)
        at = self._last_seen(stamp) or self._noted(stamp)
        if at is not None and at.boot != boot_id():
            # After a restart of the machine, a file may not have what was written to it.
            at = Known(at.sequence, at.digest, at.size) if self._holds(at) else None
            if at is not None:
                self._note(at)
        if at is None:
            # Nobody can tell what is in it: begin anew.
            self._remove()
            return Known()
        at = self._read_on(at, stamp)
        if stamp and stamp[1] > at.size:
            file = self.journal.appender()
            try:
                file.cut(at.size)  # The beginning of a line, whose writer was killed.
            finally:
                file.close()
        return self._remember(stamp, at)

    def _remove(self) -> None:
        self._seen, self._noted_bytes = None, 0
        self.journal.close()
        for path in (self._note_path, f"{self.path}.intent", self.path):
            with suppress(FileNotFoundError):
                safe_open.unlink(path)

    def _remember(self, stamp: Stamp, at: Known) -> Known:
        self._seen = (stamp[0], at) if stamp else None
        return at

    def _last_seen(self, stamp: Stamp) -> Known | None:
        """Returns how far the file went when this process last looked, if it is the same file."""
        if self._seen is None:
            return None
        inode, at = self._seen
        return at if stamp[:1] == (inode,) and stamp[1] >= at.size else None

    def _read_on(self, at: Known, stamp: Stamp) -> Known:
        """Returns how far the file goes, which is at least as far as this."""
        if not stamp or stamp[1] <= at.size:
            return at
        sequence, digest, size = at.sequence, at.digest, at.size
        for line in self._lines(at.size):
            sequence, digest, size = sequence + 1, chained(digest, line), size + len(line) + 1
        return Known(sequence, digest, size)

    def _lags(self, now: Known) -> bool:
        """Returns whether the note should be written: it is far behind."""
        if now.size - self._noted_bytes >= _NOTE_EVERY_BYTES:
            noted = self._noted(stamp_of(self.path))  # Another process may have written it.
            self._noted_bytes = noted.size if noted is not None else 0
        return now.size - self._noted_bytes >= _NOTE_EVERY_BYTES

    def _lines(self, begin: int) -> Iterator[bytes]:
        """Yields the whole lines from an offset on."""
        rest = b""
        with os.fdopen(safe_open.open_file(self.path, os.O_RDONLY), "rb") as file:
            file.seek(begin)
            while data := file.read(PIECE_BYTES):
                whole, newline, rest = (rest + data).rpartition(b"\n")
                if newline:
                    yield from whole.split(b"\n")

    def _noted(self, stamp: Stamp) -> Known | None:
        """Returns the note, or None if it is not about this file."""
        if not stamp:
            return Known()
        inode, size = stamp[:1], stamp[1]
        try:
            note = json.loads(safe_open.read(self._note_path, 1024))
            digest = bytes.fromhex(note["digest"])
            known = Known(note["sequence"], digest, note["size"], note["boot"])
            return known if tuple(note["inode"]) == inode and known.size <= size else None
        except (OSError, Unreadable, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _holds(self, known: Known) -> bool:
        at = Known()
        for line in self._lines(0):
            if at.size >= known.size:
                break
            size = at.size + len(line) + 1
            at = Known(at.sequence + 1, chained(at.digest, line), size)
        return (at.sequence, at.digest, at.size) == (known.sequence, known.digest, known.size)

    def _note(self, known: Known) -> None:
        fields = {
            "sequence": known.sequence,
            "digest": known.digest.hex(),
            "size": known.size,
            "inode": stamp_of(self.path)[:1],
            "boot": boot_id(),
        }
        take_name(self._note_path, json.dumps(fields).encode(), durable=False)
        self._noted_bytes = known.size

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock, self._lock = self._lock, None
        lock = lock or KernelLock(
            os.path.join(self._folder, "lock"),
            holder="cache",
            timeout_s=self._lock_timeout_s,
            prepare=lambda: safe_open.make_folder(self._folder),
        )
        lock.__enter__()
        try:
            yield
        finally:
            lock.release()
            self._lock = lock


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return status.st_dev, status.st_ino
