"""The archive: closed records move from a ledger to segments that are never written again.

`docs/format.md`, "Archive"; ADR 0009.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import count

from queenbee.errors import Unreadable
from queenbee.store.files import START, read_after, stamp_of

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
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


class Archive:
    """The segments of one kind."""

    def __init__(self, ledger_path: str) -> None:
        self.folder: str = os.path.join(os.path.dirname(ledger_path), FOLDER)
        self._begin = os.path.basename(ledger_path).removesuffix(".jsonl") + "."
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

    def read(self, name: str) -> bytes:
        """Returns a segment's bytes. Raises `Unreadable`."""
        chunk = read_after(self.path(name), START)
        return chunk.lines + chunk.rest

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
