"""Beads' `issues.jsonl`, read as it is; `issues_write` replaces rows. If an earlier version or a
merge left several rows of an id, the newest one counts. `docs/format.md`, section "Issues".
"""

from __future__ import annotations

import json
import re

from queenbee.store.codec import (
    CONFLICT_MARKERS,
    Unusable,
    decode_exactly,
    decoder,
    is_usable,
    lost_precision,
)
from queenbee.store.files import START, read_after, split_lines

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.core.fold import Fields


_LONG = re.compile(rb"\d{19}")
"""Numbers that are shorter lose no digit."""
UNREADABLE = "unreadable"
"""The status of an issue whose row cannot be read: it is not ready, and not done."""


def unreadable_in(data: bytes) -> list[tuple[int, str | None, bool]]:
    """Returns the lines of the file that are neither a row nor known bookkeeping: the number of
    each, the id in what is left of it, or None, and whether git wrote it around a conflict.
    """
    return [
        (number, _id_in(line), line.startswith(CONFLICT_MARKERS)) for number, line in unusable(data)
    ]


def unusable(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that are neither a row nor known bookkeeping, each with its number."""
    decode = decoder(len(data))
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.removesuffix(b"\r")
        # Beads' memories and headers are rows with a `_type` or a `_schema`, and no id.
        is_known = b'"_type"' in line or b'"_schema"' in line
        if line and not line.isspace() and not is_known and not is_usable(line, decode):
            yield number, line


def unreadable_row(issue_id: str) -> Fields:
    """Returns a row for an issue whose own cannot be read; it is never written."""
    title = "(its row in the tracker's file cannot be read)"
    return {"id": issue_id, "title": title, "status": UNREADABLE, "priority": 4}


def _id_in(line: bytes) -> str | None:
    """Returns the id in what is left of a row, or None."""
    found = re.search(rb'"id"\s*:\s*("(?:[^"\\\x00-\x1f]|\\.){1,512}")', line)
    try:
        text = json.loads(found[1]) if found else None
        return text if isinstance(text, str) and text.encode() else None  # No half of a pair.
    except ValueError:
        return None


def read_rows_exactly(path: str) -> list[Fields]:
    """Returns the rows for writing back: long integers keep every digit."""
    chunk = read_after(path, START)
    rows: list[Fields] = []
    decode = decoder(len(chunk.lines))
    for line in split_lines(chunk.lines + chunk.rest):
        try:
            rows.append(exactly(line, decode))
        except Unusable:
            continue
    return rows


def exactly(line: bytes, decode: Callable[[bytes], Fields]) -> Fields:
    """Returns the row in a line for writing back. Raises `Unusable`."""
    row = decode(line)
    return decode_exactly(line) if _LONG.search(line) and lost_precision(row) else row
