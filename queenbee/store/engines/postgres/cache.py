"""The lines of a database on this machine: one file for each kind, disposable at any time.

A file has one line for each sequence number, in order. A note beside it says how far it goes. The
files are journals (`store.ledger.journal`), so that the fold and the index read them as they are.
Appending needs the cache's own lock on this machine.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import cache

from queenbee.errors import Unreadable
from queenbee.store import safe_open
from queenbee.store.engines.postgres.schema import chained
from queenbee.store.files import Appender, stamp_of
from queenbee.store.ledger.journal import PIECE_BYTES, Journal
from queenbee.store.lock import KernelLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BOOT = "/proc/sys/kernel/random/boot_id"


class Known:
    """How far a file goes: the last sequence number, its digest, and the size of the file."""

    __slots__ = ("boot", "digest", "sequence", "size")

    def __init__(
        self, sequence: int = 0, digest: bytes = b"", size: int = 0, boot: str | None = None
    ) -> None:
        self.sequence = sequence
        self.digest = digest
        self.size = size
        self.boot = _boot() if boot is None else boot
        """Since which start of the machine the file is known to hold what was written to it."""


class Cache:
    """The lines of one kind."""

    def __init__(self, folder: str, kind: str, lock_timeout_s: float) -> None:
        self.path = os.path.join(folder, f"{kind}.jsonl")
        self._note_path = f"{self.path}.known"
        self._folder = folder
        self._lock_timeout_s = lock_timeout_s
        self._journal = Journal(self.path)

    def known(self) -> Known:
        """Returns how far the file goes; the start if that is in doubt."""
        noted = self._noted()
        if noted is None or noted.size > _size(self.path):
            return Known()
        if noted.boot == _boot():
            return noted
        with self._locked():
            return self._settled()

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
                if not _boot():
                    file.sync()
                size = file.end().offset
            finally:
                file.close()
            self._journal.forget_intent()
            digest = at.digest
            for line in fresh:
                digest = chained(digest, line)
            self._note(Known(at.sequence + len(fresh), digest, size))

    def discard(self) -> None:
        """Forgets all lines. A reader notices that the file is another one."""
        with self._locked():
            for path in (self._note_path, f"{self.path}.intent", self.path):
                with suppress(FileNotFoundError):
                    safe_open.unlink(path)

    def _settled(self) -> Known:
        """Returns how far the file goes, after what an interrupted process left. Needs the lock."""
        self._journal.finish_interrupted()
        at = self._noted()
        size = _size(self.path)
        if at is not None and at.boot != _boot():
            # After a restart of the machine, a file may not have what was written to it.
            at = Known(at.sequence, at.digest, at.size) if self._holds(at) else None
        if at is None or at.size > size:
            # Nobody can tell what is in it: begin anew.
            for path in (self._note_path, self.path):
                with suppress(FileNotFoundError):
                    safe_open.unlink(path)
            return Known()
        if at.size < size:
            at = self._read_on(at)
            self._note(at)
        return at

    def _read_on(self, at: Known) -> Known:
        """Returns how far the file goes, if its last lines were not noted."""
        sequence, digest, size = at.sequence, at.digest, at.size
        for line in self._lines(at.size):
            sequence, digest, size = sequence + 1, chained(digest, line), size + len(line) + 1
        file = Appender(self.path)
        try:
            file.cut(size)
        finally:
            file.close()
        return Known(sequence, digest, size)

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
        inode = stamp_of(self.path)[:1]
        try:
            note = json.loads(safe_open.read(self._note_path, 1024))
            digest = bytes.fromhex(note["digest"])
            known = Known(note["sequence"], digest, note["size"], note["boot"])
            return known if tuple(note["inode"]) == inode else None
        except (OSError, Unreadable, ValueError, KeyError, TypeError):
            return None if inode else Known()

    def _holds(self, known: Known) -> bool:
        if known.size > _size(self.path):
            return False
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
            "boot": _boot(),
        }
        unfinished = f"{self._note_path}.new"
        safe_open.write(unfinished, json.dumps(fields).encode())
        safe_open.replace(unfinished, self._note_path)

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


@cache
def _boot() -> str:
    """Returns what tells one start of this machine from the next; "" where nothing does."""
    try:
        return safe_open.read(_BOOT, 64).decode().strip()
    except (OSError, Unreadable, ValueError):
        return ""
