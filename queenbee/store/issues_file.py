"""Beads' `issues.jsonl`: reads it as it is, and appends rows to it.

The file is the tracker's. QueenBee never rewrites a row: a change is a newer whole row,
since Beads and QueenBee both take the newest row of an id. It has no journal: the tracker keeps
its own copy. `docs/format.md`, section "Issues".
"""

from __future__ import annotations

from queenbee.errors import Busy
from queenbee.store.files import START, Appender, read_after, split_lines, stamp_of
from queenbee.store.ledger.codec import Unusable, decode_exactly, decoder, lost_precision
from queenbee.store.ledger.journal import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.fold import Fields


class Added:
    """Rows that are in the file, but may not be on disk yet. The caller must `close` it."""

    __slots__ = ("_file",)

    def __init__(self, file: Appender) -> None:
        self._file = file

    def sync(self) -> None:
        """Returns when the rows are on disk. Raises `DurabilityUnknown`."""
        self._file.sync()

    def take_back(self) -> None:
        """Undoes the append. Call it only under the lock that the append was made under."""
        self._file.roll_back()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read_rows(path: str) -> tuple[list[Fields], int]:
    """Returns the rows of the file, and the number of unusable lines; none for a missing file.

    Raises `Unreadable`.
    """
    chunk = read_after(path, START)
    rows: list[Fields] = []
    unusable = 0
    decode = decoder(len(chunk.lines))
    for line in split_lines(chunk.lines + chunk.rest):
        try:
            rows.append(decode(line))
        except Unusable:
            # Beads' memories are rows with a `_type` and no id.
            unusable += b'"_type"' not in line
    return rows, unusable


def read_rows_exactly(path: str) -> list[Fields]:
    """Returns the rows for writing back: long integers keep every digit."""
    chunk = read_after(path, START)
    rows: list[Fields] = []
    decode = decoder(len(chunk.lines))
    for line in split_lines(chunk.lines + chunk.rest):
        try:
            row = decode(line)
        except Unusable:
            continue
        rows.append(decode_exactly(line) if lost_precision(row) else row)
    return rows


def append_rows(path: str, lines: Sequence[bytes]) -> Added:
    """Adds the lines, given without their ends, in one write: all of them or none.

    A torn last line keeps its bytes and gets its newline. Needs the hive's lock, which the
    tracker does not know. Raises `Unwritable`, or `Busy` if the tracker replaced the file in
    between: the new one then has none of these lines.
    """
    file = Appender(path)
    added = Added(file)
    try:
        torn = b"" if file.ends_with_newline() else b"\n"
        file.append(torn + joined(lines))
        if stamp_of(path)[:1] != (file.end().inode,):
            raise Busy(
                f"{path} was replaced by another program during the write",
                hint="try again; nothing was written",
                path=path,
            )
    except BaseException:
        try:
            added.take_back()
        finally:
            added.close()
        raise
    return added
