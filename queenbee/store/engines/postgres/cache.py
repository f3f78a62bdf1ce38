"""The lines of a database on this machine: one file for each kind, disposable at any time.

A file has one line for each sequence number, in order. A note beside it says how far it goes, or
went a while ago: what follows is read on from there. The files are journals
(`store.ledger.journal`), so that the fold and the index read them as they are. Appending needs the
cache's own lock on this machine.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from queenbee.errors import Unreadable
from queenbee.store import safe_open
from queenbee.store.boot import boot_id
from queenbee.store.engines.postgres.schema import chained
from queenbee.store.files import Appender, stamp_of
from queenbee.store.ledger.journal import PIECE_BYTES, Journal
from queenbee.store.lock import KernelLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class Cache:
    """The lines of one kind."""

    def __init__(self, folder: str, kind: str, lock_timeout_s: float) -> None:
        self.path = os.path.join(folder, f"{kind}.jsonl")
        self._note_path = f"{self.path}.known"
        self._folder = folder
        self._lock_timeout_s = lock_timeout_s
        self._journal = Journal(self.path)
        self._seen: tuple[int, Known] | None = None
        """The inode, and how far the file went when this process last looked."""
        self._noted_bytes = 0
        """How much the note is known to cover, at least."""

    def known(self) -> Known:
        """Returns how far the file goes; the start if that is in doubt.

        Needs no lock: what others append meanwhile are the lines of the next numbers. If the file
        has been replaced by another one, the digest is not the one that the database has.
        """
        at = self._last_seen() or self._noted()
        if at is None:
            return Known()
        if at.boot != boot_id():
            with self._locked():
                return self._settled()
        return self._remember(self._read_on(at))

    def take(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Appends lines, each with its sequence number, unless another process has done that.

        Rows that do not follow what is there are left out: the next reader asks for them.
        """
        with self._locked():
            at = self._settled()
            fresh = [line for sequence, line in rows if sequence > at.sequence]
            begins = next((sequence for sequence, _ in rows if sequence > at.sequence), 0)
            if not fresh or begins != at.sequence + 1:
                return
            file = Appender(self.path)
            try:
                self._journal.append(file, fresh)
                if not boot_id():
                    file.sync()
            finally:
                file.close()
            self._journal.forget_intent()
            digest, size = at.digest, at.size
            for line in fresh:
                digest, size = chained(digest, line), size + len(line) + 1
            now = self._remember(Known(at.sequence + len(fresh), digest, size))
            if not at.sequence or self._lags(now):
                self._note(now)

    def is_whole(self) -> bool:
        """Reads the whole file; returns whether its lines are those whose digest is known."""
        at = self.known()
        return not at.sequence or self._holds(at)

    def discard(self) -> None:
        """Forgets all lines. A reader notices that the file is another one."""
        with self._locked():
            self._remove()

    def _settled(self) -> Known:
        """Returns how far the file goes, after what an interrupted process left. Needs the lock."""
        self._journal.finish_interrupted()
        at = self._last_seen() or self._noted()
        if at is not None and at.boot != boot_id():
            # After a restart of the machine, a file may not have what was written to it.
            at = Known(at.sequence, at.digest, at.size) if self._holds(at) else None
            if at is not None:
                self._note(at)
        if at is None:
            # Nobody can tell what is in it: begin anew.
            self._remove()
            return Known()
        at = self._read_on(at)
        if _size(self.path) > at.size:
            file = Appender(self.path)
            try:
                file.cut(at.size)  # The beginning of a line, whose writer was killed.
            finally:
                file.close()
        return self._remember(at)

    def _remove(self) -> None:
        self._seen, self._noted_bytes = None, 0
        for path in (self._note_path, f"{self.path}.intent", self.path):
            with suppress(FileNotFoundError):
                safe_open.unlink(path)

    def _remember(self, at: Known) -> Known:
        inode = stamp_of(self.path)[:1]
        self._seen = (inode[0], at) if inode else None
        return at

    def _last_seen(self) -> Known | None:
        """Returns how far the file went when this process last looked, if it is the same file."""
        if self._seen is None:
            return None
        inode, at = self._seen
        stamp = stamp_of(self.path)
        return at if stamp[:1] == (inode,) and stamp[1] >= at.size else None

    def _read_on(self, at: Known) -> Known:
        """Returns how far the file goes, which is at least as far as this."""
        if _size(self.path) <= at.size:
            return at
        sequence, digest, size = at.sequence, at.digest, at.size
        for line in self._lines(at.size):
            sequence, digest, size = sequence + 1, chained(digest, line), size + len(line) + 1
        return Known(sequence, digest, size)

    def _lags(self, now: Known) -> bool:
        """Returns whether the note should be written: it is far behind."""
        if now.size - self._noted_bytes >= _NOTE_EVERY_BYTES:
            noted = self._noted()  # Another process may have written it.
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

    def _noted(self) -> Known | None:
        """Returns the note, or None if it is not about this file."""
        inode, size = stamp_of(self.path)[:1], _size(self.path)
        try:
            note = json.loads(safe_open.read(self._note_path, 1024))
            digest = bytes.fromhex(note["digest"])
            known = Known(note["sequence"], digest, note["size"], note["boot"])
            return known if tuple(note["inode"]) == inode and known.size <= size else None
        except (OSError, Unreadable, ValueError, KeyError, TypeError):
            return None if inode else Known()

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
        unfinished = f"{self._note_path}.new"
        safe_open.write(unfinished, json.dumps(fields).encode())
        safe_open.replace(unfinished, self._note_path)
        self._noted_bytes = known.size

    def _locked(self) -> KernelLock:
        safe_open.make_folder(self._folder)
        return KernelLock(
            os.path.join(self._folder, "lock"), holder="cache", timeout_s=self._lock_timeout_s
        )


def _size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return 0
