"""The archive: closed records move from a ledger to segments that are never written again.

A note beside the journal says which file a line is in now; it is a cache. `docs/format.md`,
"Archive"; ADR 0009.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import count

from queenbee.core import plain_json
from queenbee.errors import Unreadable
from queenbee.store import safe_open
from queenbee.store.files import START, Mark, checksum, read_after, stamp_of
from queenbee.store.whole_files import take_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.files import Stamp

FOLDER = "archive"
_MOST_NUMBER = 999_999_999
"""A segment with a larger number counts, but none follows it: its name may be as long as a name of
a file can be."""
_SETTLED_NS = 3_000_000_000
"""A folder that just changed may change again within the same tick of its clock. The slowest clock
(FAT) has steps of two seconds."""


def digest_of(data: bytes) -> str:
    """Returns a digest that identifies the content of a segment."""
    from hashlib import sha1  # noqa: PLC0415 - start-up

    return sha1(data, usedforsecurity=False).hexdigest()


class Segment:
    """One segment as it was last read: its stamp, and a digest of its content."""

    __slots__ = ("digest", "stamp")

    def __init__(self, stamp: Stamp, digest: str) -> None:
        self.stamp = stamp
        self.digest = digest


class Archived:
    """Where the lines of a journal are now: up to `mark`, each is in a segment or in `kept`."""

    __slots__ = ("back", "kept", "mark", "segments", "settled_bytes")

    def __init__(
        self,
        mark: Mark = START,
        kept: bytes = b"",
        segments: Mapping[str, Segment] | None = None,
        settled_bytes: int = 0,
        *,
        back: bytes = b"",
    ) -> None:
        self.mark = mark
        """In the journal."""
        self.kept = kept
        """Whole lines: those before the mark that are still in the ledger."""
        self.back = back
        """Whole lines of the segments that a merge brought back to the ledger."""
        self.segments = dict(segments or {})
        """All of these segments' lines are in the journal."""
        self.settled_bytes = settled_bytes
        """The size of the ledger after the last rotation."""

    @property
    def stamps(self) -> dict[str, Stamp]:
        """The segments as a listing has them."""
        return {name: segment.stamp for name, segment in self.segments.items()}

    @property
    def digests(self) -> set[str]:
        """The digests of the segments."""
        return {segment.digest for segment in self.segments.values()}

    def digest_of(self, stamp: Stamp) -> str | None:
        """Returns the digest of the segment with this stamp, or None."""
        return next((each.digest for each in self.segments.values() if each.stamp == stamp), None)


class Archive:
    """The segments of one kind, and the note of which of their lines the journal has."""

    def __init__(self, ledger_path: str, journal_path: str) -> None:
        self.folder = os.path.join(os.path.dirname(ledger_path), FOLDER)
        self._begin = os.path.basename(ledger_path).removesuffix(".jsonl") + "."
        self._note_path = journal_path + ".archived"
        self._listed: tuple[tuple[int, int], dict[str, Stamp]] | None = None

    def path(self, name: str) -> str:
        """Returns where a segment is."""
        return os.path.join(self.folder, name)

    def next_name(self, names: Mapping[str, object]) -> str:
        """Returns the name that follows these; a free one, if somebody used up the numbers."""
        taken = {number for each in names if 0 < (number := self._number(each)) <= _MOST_NUMBER}
        last = max(taken, default=0)
        number = last + 1 if last < _MOST_NUMBER else next(n for n in count(1) if n not in taken)
        return f"{self._begin}{number}.jsonl"

    def listing(self) -> dict[str, Stamp]:
        """Returns the stamps of the segments by name, oldest first.

        Raises `Unreadable`.
        """
        try:
            status = os.stat(self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unreadable(error) from error
        if not stat.S_ISDIR(status.st_mode):
            raise Unreadable(
                f"{self.folder} is not a directory",
                hint="move it away: the ledgers keep their segments there",
                path=self.folder,
            )
        folder = status.st_ino, status.st_mtime_ns
        if self._listed is not None and self._listed[0] == folder:
            return self._listed[1]
        listed = self._list()
        if time.time_ns() - status.st_mtime_ns > _SETTLED_NS:
            self._listed = folder, listed
        return listed

    def read(self, name: str) -> tuple[bytes, str]:
        """Returns a segment's bytes and their digest. Raises `Unreadable`."""
        chunk = read_after(self.path(name), START)
        data = chunk.lines + chunk.rest
        return data, digest_of(data)

    def note_stamp(self) -> object:
        """Returns a value that changes whenever another note is written."""
        return stamp_of(self._note_path)

    def noted(self, *, kept: bool) -> Archived | None:
        """Returns the note, or None if there is none or it cannot be used.

        Read it before the listing: segments are written before they are noted. Without `kept`,
        those lines are not read.
        """
        try:
            fd = safe_open.open_file(self._note_path, os.O_RDONLY)
            with os.fdopen(fd, "rb") as file:
                head = plain_json.loads(file.readline())
                lines = file.read() if kept else b""
            if kept and checksum(lines) != head["kept_sum"]:
                return None
            size = int(head["kept_bytes"])
            return Archived(
                Mark(*map(int, head["mark"])),
                lines[:size],
                {
                    str(name): Segment((int(inode), int(size), int(changed)), str(digest))
                    for name, (inode, size, changed, digest) in head["segments"].items()
                },
                int(head["settled_bytes"]),
                back=lines[size:],
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def note(self, archived: Archived) -> None:
        """Replaces the note. Needs the hive's lock. Raises `Unwritable`."""
        mark = archived.mark
        head = {
            "mark": [mark.inode, mark.offset, mark.sum],
            "kept_bytes": len(archived.kept),
            "kept_sum": checksum(archived.kept + archived.back),
            "segments": {
                name: [*segment.stamp, segment.digest]
                for name, segment in archived.segments.items()
            },
            "settled_bytes": archived.settled_bytes,
        }
        data = plain_json.dumps(head).encode() + b"\n" + archived.kept + archived.back
        # A note that a power cut damaged is detected and rebuilt.
        take_name(self._note_path, data, durable=False)

    def _list(self) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        try:
            names = [name for name in os.listdir(self.folder) if self._number(name)]
            # Two names may have one number, as 7 and 007: all clones read them in one order.
            for name in sorted(names, key=lambda each: (self._number(each), each)):
                if stamp := stamp_of(self.path(name)):  # Git may remove a file while we look.
                    found[name] = stamp
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unreadable(error) from error
        return found

    def _number(self, name: str) -> int:
        """Returns the number of a segment of this kind, or 0 for any other name."""
        digits = name.removeprefix(self._begin).removesuffix(".jsonl")
        ours = name == f"{self._begin}{digits}.jsonl"
        return int(digits) if ours and digits.isascii() and digits.isdecimal() else 0

    def _unreadable(self, error: OSError) -> Unreadable:
        return Unreadable(f"{self.folder} cannot be read: {error.strerror}", path=self.folder)
