"""Rows of the tracker's file, replaced in place: one row for each id.

The tracker does not know the hive's lock: if another program has written the file meanwhile, the
edits are made again on that version. `docs/format.md`, section "Issues"; ADR 0043.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from queenbee.core.beads import supersedes
from queenbee.errors import Busy
from queenbee.store.codec import Unusable, decoder, encode
from queenbee.store.files import Original
from queenbee.store.issues_file import exactly
from queenbee.store.whole_files import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from queenbee.core.fold import Fields
    from queenbee.core.row_edits import Edit

_ATTEMPTS = 20
_UNFINISHED_FOR_S = 60.0
_ESCAPES = (b"\\u", b"\\/")
"""An id may be written with these, and is then not found as it is."""
_FEW = 16
"""For so many ids, looking for them in a line takes less time than decoding it."""


def replace_rows(
    path: str,
    edits: Callable[[], Sequence[Edit]],
    turn: Callable[[], AbstractContextManager[bool]],
) -> bool:
    """Makes the edits, all of them or none, on disk when it returns; returns whether that changed
    anything. `turn` has the hive's lock while the new file gets its name, and says whether the
    edits still hold: if not, they are asked for again.

    Raises `Unwritable`, `Unreadable`, and `Busy` if others do not stop changing rows.
    """
    folder, name = os.path.split(path)
    sweep(folder, f".{name}.", older_than_s=_UNFINISHED_FOR_S)  # Of writers that were killed.
    for _ in range(_ATTEMPTS):
        wanted, original = edits(), Original(path)
        try:
            data = edited(original.data, wanted)
            if data == original.data:
                return False
            if original.replace_if_current(data, turn):
                return True
        finally:
            original.close()
    raise Busy(
        f"other programs change the rows of {path} again and again",
        hint="try again; nothing was written",
        path=path,
    )


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Returns the content of the file with the edits.

    If it has several rows of an id, the one that counts is replaced, and the others go. A row that
    is not there is added at the end.
    """
    lines = data.split(b"\n")
    found = _found(lines, len(data), {edit.issue_id for edit in edits})
    added: dict[str, Fields] = {}
    gone = set[int]()
    for edit in edits:
        known = found.get(edit.issue_id)
        if known is None:
            row = added.get(edit.issue_id)
            added[edit.issue_id] = dict(edit.row) if row is None else edit.made_on(row)
            continue
        place, row, others = known
        gone.update(others)
        changed = edit.made_on(row)
        if changed != row:
            ending = b"\r" if lines[place].endswith(b"\r") else b""
            lines[place] = encode(changed) + ending
            found[edit.issue_id] = place, changed, others
    kept = [line for number, line in enumerate(lines) if number not in gone]
    if added:
        # A torn last line keeps its bytes and gets its newline.
        end = [b""] if not kept[-1] else [kept[-1], b""]
        kept[-1:] = [*end[:-1], *map(encode, added.values()), b""]
    return b"\n".join(kept)


def _found(
    lines: Sequence[bytes], size_bytes: int, ids: Collection[str]
) -> dict[str, tuple[int, Fields, list[int]]]:
    """Returns the row that counts of each id that is there: the number of its line, its fields, and
    the numbers of the other lines with that id.
    """
    quoted = [json.dumps(each, ensure_ascii=False).encode(errors="replace") for each in ids]
    decode = decoder(size_bytes)
    found: dict[str, tuple[int, Fields, list[int]]] = {}
    for number, raw in enumerate(lines):
        if len(quoted) <= _FEW and not any(each in raw for each in (*quoted, *_ESCAPES)):
            continue
        try:
            row = exactly(raw.removesuffix(b"\r"), decode)
        except Unusable:
            continue
        identifier = row.get("id")
        if not isinstance(identifier, str) or identifier not in ids:
            continue
        if identifier not in found:
            found[identifier] = number, row, []
        else:
            place, known, others = found[identifier]
            is_newer = supersedes(row, known)
            found[identifier] = (
                (number, row, [*others, place]) if is_newer else (place, known, [*others, number])
            )
    return found
