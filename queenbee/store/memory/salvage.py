"""The recorded lines of a memory that was set aside, as far as they can be read.

Nothing is expected of such a file: what is asked of it is the least that brings lines, and ends.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.store.memory import sqlite
from queenbee.store.memory.connecting import connected_to_read
from queenbee.store.memory.database import checked

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_S = 30.0
"""A million lines take five seconds. A damaged tree of pages can lead in circles."""
_LAST = 2**63 - 1
_COLUMNS = ("seq", "kind", "raw", "sum", "loose")


class Salvaged:
    """What can be read of a file."""

    def __init__(self) -> None:
        self.lines: dict[str, list[bytes]] = {}
        """The recorded lines by kind, in order of arrival."""
        self.is_whole = True
        """Whether nothing is missing."""


def salvaged(path: str) -> Salvaged:
    """Returns the recorded lines of a file that can be read. Never fails."""
    found = Salvaged()
    found.is_whole = False
    # Where its log cannot be kept, the file can only be read as one that stays as it is.
    for mode in ("mode=rw", "immutable=1"):
        with suppress(sqlite.Error):
            db = connected_to_read(path, mode)
            try:
                if _has_columns(db):
                    found.is_whole = True
                    _read(db, found)
                break
            finally:
                db.close()
    return found


def _read(db: sqlite.Connection, found: Salvaged) -> None:
    deadline_s = time.monotonic() + _MOST_S
    db.set_progress_handler(lambda: int(time.monotonic() > deadline_s), 100_000)
    after: int | None = 0
    while after is not None and time.monotonic() < deadline_s:
        after = _take(db, after, found)


def _take(db: sqlite.Connection, after: int, found: Salvaged) -> int | None:
    """Takes the lines after a number, up to the first one that cannot be read; returns the number
    after which reading goes on, or None at the end.
    """
    try:
        for seq, kind, raw, checksum, loose in _rows(db, after):
            if not isinstance(seq, int) or seq <= after:
                raise sqlite.DatabaseError("the numbers go in a circle")
            after = seq
            if loose == 0:
                try:
                    line = checked(named := _kind(kind), raw, checksum)
                except sqlite.DatabaseError:
                    found.is_whole = False
                else:
                    found.lines.setdefault(named, []).append(line)
    except sqlite.Error:
        found.is_whole = False
        return _beyond(db, after)
    return None


def _kind(value: object) -> str:
    """Returns a kind that can have a table. Raises `DatabaseError`."""
    kind = str(value)
    if not kind.isprintable() or kind != kind.lower():  # As tables, "A" and "a" are one.
        raise sqlite.DatabaseError("there is no such kind")
    return kind


def _beyond(db: sqlite.Connection, after: int) -> int | None:
    """Returns the number after which lines can be read again, or None: lines on a damaged page are
    passed in steps that double, then halve.
    """
    step = 1
    while not _is_readable(db, after + step):
        step *= 2
        if after + step > _LAST:
            return None
    bad, good = after + step // 2, after + step
    while good - bad > 1:
        middle = (bad + good) // 2
        if _is_readable(db, middle):
            good = middle
        else:
            bad = middle
    return good


def _is_readable(db: sqlite.Connection, after: int) -> bool:
    with suppress(sqlite.Error):
        next(_rows(db, after), None)
        return True
    return False


def _rows(db: sqlite.Connection, after: int) -> Iterator[tuple[object, ...]]:
    query = f"SELECT {', '.join(_COLUMNS)} FROM lines WHERE seq > ? ORDER BY seq"  # noqa: S608
    return iter(db.execute(query, (after,)))


def _has_columns(db: sqlite.Connection) -> bool:
    """Returns whether there is a table with the columns to read: no view, which may have no end,
    and nothing that is computed.
    """
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lines' AND rootpage > 0"
    if not db.execute(query).fetchone():
        return False
    rows = db.execute("PRAGMA table_xinfo(lines)").fetchall()
    return {str(row[1]) for row in rows if row[6] == 0}.issuperset(_COLUMNS)
