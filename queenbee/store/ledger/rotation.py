"""Rotation: closed records move from a ledger to new segments of its archive.

The new segments are on disk before the ledger gets shorter: after a crash, a line is at worst in
both. `docs/format.md`, section "Archive"; ADR 0009.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

from queenbee.core.fold import MAX_REV, explicit_rev
from queenbee.core.timestamps import instant_ms
from queenbee.errors import QueenError, Unwritable
from queenbee.store.files import Original, size_of, split_lines
from queenbee.store.ledger.archive import Archived, Segment, digest_of
from queenbee.store.ledger.codec import Unusable, decoder, is_migration, without_collection
from queenbee.store.ledger.journal import PIECE_BYTES, joined
from queenbee.store.whole_files import create_document, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from queenbee.core.fold import Fields
    from queenbee.store.ledger.ledger import Ledger

    IsClosed = Callable[[Fields], bool]
    Key = tuple[int, str, int]
    Progress = Callable[[int, int], None]

SEGMENT_BYTES = 16 * 1024 * 1024
"""No segment exceeds this by more than one line: git hosts refuse much larger files."""
_TOLD_EVERY = 10_000
"""Lines between two reports of progress: a bar for each would take longer than the lines."""


def _untold(_done: int, _total: int) -> None:
    """The progress of a rotation that nobody waits for."""


@dataclass(frozen=True)
class Rotation:
    """What one rotation did."""

    records: int = 0
    lines: int = 0
    left_bytes: int = 0
    """The size of the ledger afterwards."""
    segments: list[str] = field(default_factory=list)
    """The paths of the segments that were written."""


def is_due(ledger: Ledger, limit_bytes: int, *, most_bytes: int = sys.maxsize) -> bool:
    """Returns whether a ledger has reached its limit (but not `most_bytes`), and has grown enough
    since the last rotation to make another one worthwhile.
    """
    size = size_of(ledger.path)
    if not size or not limit_bytes <= size <= most_bytes:
        return False
    noted = ledger.archive.noted(kept=False)
    return noted is None or size >= noted.settled_bytes * 5 // 4


def rotate(ledger: Ledger, is_closed: IsClosed, progress: Progress = _untold) -> Rotation:
    """Moves the lines of all records that `is_closed` says are closed. Needs the hive's lock.

    `is_closed` gets the newest revision of each record. Records with a line without `rev` stay:
    another program wrote it and may look for it, and its place in the file matters. `progress` is
    told of the bytes that were read and written. Raises `Unwritable`; every line is then where it
    was, or in two places.
    """
    _heal(ledger)
    _sweep(ledger)
    base = ledger.base()
    original = Original(ledger.path)
    try:
        lines = _survey(ledger, base, original.data, is_closed, progress)
        left = lines.left(original.data)
        original.let_go()
        contents = _told(_segments_of(lines.fresh()), original.size_bytes, progress)
        segments = _write_segments(ledger, base, contents)
        if lines.movable:
            original.replace_by(left)
    except Unwritable:
        _put_off(ledger, base, original.size_bytes)
        raise
    finally:
        original.close()
        progress(1, 1)
    active = _Active(ledger, base)
    kept = [line for some in active for line in some if line not in lines.movable]
    back = [line for line in split_lines(base.back) if line not in lines.movable]
    settled = Archived(active.end, joined(kept), base.segments, len(left), back=joined(back))
    _note(ledger, settled, segments)
    records = {identifier for _, identifier, _ in lines.movable.values()}
    paths = list(map(ledger.archive.path, segments))
    return Rotation(len(records), len(lines.movable), len(left), paths)


def _heal(ledger: Ledger) -> None:
    """Brings ledger and journal up to date with each other, on disk when it returns."""
    receipt = ledger.append([])
    try:
        receipt.sync()
    finally:
        receipt.close()


def _sweep(ledger: Ledger) -> None:
    """Removes temporary files of a rotation that was killed: git would pick them up."""
    beads, name = os.path.split(ledger.path)
    segments = name.removesuffix("jsonl")
    for folder, begin in ((beads, f".{name}."), (ledger.archive.folder, f".{segments}")):
        sweep(folder, begin)


def _put_off(ledger: Ledger, base: Archived, size_bytes: int) -> None:
    """Notes that this size was tried: a read-only archive must not cost each write another try."""
    with suppress(QueenError):
        base.settled_bytes = size_bytes
        ledger.archive.note(base)


class _Active:
    """The journal's lines that the archive lacks, in pieces; all without a rotation."""

    def __init__(self, ledger: Ledger, base: Archived) -> None:
        self._ledger = ledger
        self._kept = base.kept
        self.end = base.mark
        """The position reached in the journal."""

    def __iter__(self) -> Iterator[list[bytes]]:
        yield split_lines(self._kept)
        while (chunk := self._ledger.journal.read(self.end, limit=PIECE_BYTES)).lines:
            self.end = chunk.end
            yield split_lines(chunk.lines)


@dataclass
class _Survey:
    movable: dict[bytes, Key]
    """The usable lines of the ledger that can move."""
    archived: set[bytes]
    """Lines in segments: a merge brought them back, or a rotation was interrupted."""

    def fresh(self) -> list[bytes]:
        """Returns the lines to write, oldest first."""
        # In an order that is the same in every clone: two clones that moved the same lines write
        # the same file, and git has little to merge.
        lines = sorted(line for line in self.movable if line not in self.archived)
        lines.sort(key=self.movable.__getitem__)
        return lines

    def left(self, data: bytes) -> bytes:
        """Returns what remains of the ledger, byte for byte."""
        if not self.movable:
            return data
        return b"".join(raw for raw in BytesIO(data) if _line_of(raw) not in self.movable)


def _line_of(raw: bytes) -> bytes:
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def _survey(
    ledger: Ledger, base: Archived, data: bytes, is_closed: IsClosed, progress: Progress
) -> _Survey:
    keys, closed = _judged(data, is_closed, progress)
    archived, unrecorded = _elsewhere(ledger, base, keys)
    for line in unrecorded:
        closed[keys[line][1]] = False
    staying = {line for line, (_, identifier, _) in keys.items() if not closed[identifier]}
    return _Survey({line: key for line, key in keys.items() if line not in staying}, archived)


def _judged(
    data: bytes, is_closed: IsClosed, progress: Progress
) -> tuple[dict[bytes, Key], dict[str, bool]]:
    """Returns the usable lines of a ledger, and for each id whether its record is closed."""
    decode = decoder(len(data))
    keys: dict[bytes, Key] = {}
    newest: dict[str, int] = {}
    closed: dict[str, bool] = {}
    content = BytesIO(data)
    with without_collection(len(data)):
        for number, line in enumerate(map(_line_of, content)):
            if number % _TOLD_EVERY == 0:
                progress(content.tell(), 2 * len(data))
            try:
                fields = decode(line)
            except Unusable:
                continue
            identifier, rev = str(fields.get("id", "")), explicit_rev(fields)
            if is_migration(fields) or rev is None:
                newest[identifier], closed[identifier] = MAX_REV + 1, False
                rev = 0
            elif rev > newest.get(identifier, 0):
                newest[identifier], closed[identifier] = rev, is_closed(fields)
            elif rev == newest[identifier]:
                closed[identifier] = closed[identifier] and is_closed(fields)
            keys[line] = instant_ms(fields.get("created_at")) or 0, identifier, rev
    return keys, closed


def _elsewhere(
    ledger: Ledger, base: Archived, lines: Iterable[bytes]
) -> tuple[set[bytes], set[bytes]]:
    """Returns the lines that the archive has, and the lines that are not recorded anywhere."""
    others = set(lines)
    for some in _Active(ledger, base):
        others.difference_update(some)
    archived = others.intersection(split_lines(base.back))
    others -= archived
    for name in base.segments:
        if not others:
            break
        found = others.intersection(split_lines(ledger.archive.read(name)[0]))
        archived |= found
        others -= found
    return archived, others


def _segments_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the content of each segment for these lines."""
    piece, size = list[bytes](), 0
    for line in lines:
        piece.append(line)
        size += len(line) + 1
        if size >= SEGMENT_BYTES:
            yield joined(piece)
            piece, size = [], 0
    if piece:
        yield joined(piece)


def _told(contents: Iterable[bytes], read_bytes: int, progress: Progress) -> Iterator[bytes]:
    """Yields the contents, and says after each how much was read and written."""
    done = read_bytes
    for data in contents:
        yield data
        done += len(data)
        progress(done, 2 * read_bytes + 1)


def _write_segments(ledger: Ledger, base: Archived, contents: Iterable[bytes]) -> dict[str, str]:
    """Writes new segments; returns their names and digests."""
    names: dict[str, str] = {}
    for data in contents:
        made = False
        while not made:  # A pull may bring a segment with this number.
            name = ledger.archive.next_name({**ledger.archive.listing(), **base.segments, **names})
            made = create_document(ledger.archive.path(name), data)
        names[name] = digest_of(data)
    return names


def _note(ledger: Ledger, archived: Archived, written: Mapping[str, str]) -> None:
    """Notes where the lines are now; not if git removed a segment, which the next write notices."""
    listing = ledger.archive.listing()
    unchanged = all(listing.get(name) == each.stamp for name, each in archived.segments.items())
    if unchanged and written.keys() <= listing.keys():
        archived.segments.update(
            (name, Segment(listing[name], digest)) for name, digest in written.items()
        )
        ledger.archive.note(archived)
