"""Rotation: closed records move from a ledger to new segments of its archive.

The new segments are on disk before the ledger gets shorter: after a crash, a line is at worst in
both. `docs/format.md`, "Archive"; ADR 0009.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from queenbee.core.fold import explicit_rev
from queenbee.core.timestamps import instant_ms
from queenbee.errors import QueenError, Unwritable
from queenbee.store.codec import Unusable, decoder, is_migration, without_collection
from queenbee.store.files import Original, size_of, stamp_of
from queenbee.store.memory.intake import Intake, Moved, joined, recalled
from queenbee.store.memory.record_lines import numbers_of
from queenbee.store.memory.recorded import Recorded
from queenbee.store.whole_files import create_document, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from queenbee.core.fold import Fields
    from queenbee.store.files import Stamp
    from queenbee.store.memory.files_memory import FilesMemory
    from queenbee.store.memory.intake import Tracked

    IsClosed = Callable[[Fields], bool]
    Keyed = tuple[int, str, int, int, int]
    """When a line's record was made, in ms since 1970, its id, and the revision; then where the
    line begins and ends. One without a revision or a record has 0, or "", too."""
    Progress = Callable[[int, int], None]

SEGMENT_BYTES = 16 * 1024 * 1024
"""No segment exceeds this by more than one line: git hosts refuse much larger files."""
_SOME = 2_000
"""Lines that are looked for in the archive together."""
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


def is_due(
    memory: FilesMemory, kind: str, limit_bytes: int, *, most_bytes: int = sys.maxsize
) -> bool:
    """Returns whether a ledger has reached its limit (but not `most_bytes`), and has grown enough
    since the last rotation to make another one worthwhile.
    """
    path = memory.tracked(kind).path
    size = size_of(path)
    if not size or not limit_bytes <= size <= most_bytes:
        return False
    settled = memory.asked(lambda: recalled(memory.database, kind, path).settled_bytes)
    return size >= settled * 5 // 4


def rotate(
    memory: FilesMemory, kind: str, is_closed: IsClosed, progress: Progress = _untold
) -> Rotation:
    """Moves the lines of all records that `is_closed` says are closed. Needs the hive's lock.

    `is_closed` gets the fields of each record. Records with a line without `rev` stay: another
    program wrote it and may look for it, and its place in the file matters. `progress` is told of
    the bytes that were read and written. Raises `Unwritable`; every line is then where it was, or
    in two places.
    """
    memory.write({kind: []})
    memory.sync()
    tracked = memory.tracked(kind)
    _sweep(tracked)
    before = tracked.archive.listing()
    moved = Moved()
    original = Original(tracked.path)
    try:
        data = original.data
        moved.ids, moving, moved.left = _movable(memory, kind, data, is_closed, progress)
        fresh = _not_archived(memory, kind, _in_order(data, moving), are_any=bool(before))
        contents = _told(_segments_of(moved.counted(kind, fresh)), len(data), progress)
        segments = _write_segments(tracked, contents)
        if moving:
            original.replace_by(moved.left)
    except Unwritable:
        # A read-only archive must not cost each write another try.
        with suppress(QueenError):
            _note(memory, kind, original.size_bytes)
        raise
    finally:
        original.close()
        progress(1, 1)
    moved.archive = {**before, **segments}
    left_bytes = len(moved.left)
    _note(memory, kind, left_bytes, moved)
    paths = [*map(tracked.archive.path, segments)]
    return Rotation(len(moved.ids), len(moving), left_bytes, paths)


def _sweep(tracked: Tracked) -> None:
    """Removes temporary files of a rotation that was killed: git would pick them up."""
    beads, name = os.path.split(tracked.path)
    segments = name.removesuffix("jsonl")
    for folder, begin in ((beads, f".{name}."), (tracked.archive.folder, f".{segments}")):
        sweep(folder, begin)


def _movable(
    memory: FilesMemory, kind: str, data: bytes, is_closed: IsClosed, progress: Progress
) -> tuple[set[str], list[Keyed], bytes]:
    """Returns the ids of the records whose lines move, these lines, and what remains of a ledger,
    byte for byte.
    """
    lines = [*_keyed(data, progress)]
    closed = _closed(memory, kind, lines, is_closed)
    if not closed:
        return closed, [], data
    left = b"".join([data[begin:end] for _, each, _, begin, end in lines if each not in closed])
    return closed, [line for line in lines if line[1] in closed], left


def _keyed(data: bytes, progress: Progress) -> Iterator[Keyed]:
    """Yields where each line of a ledger begins and ends, and what orders it."""
    decode, content, end = decoder(len(data)), BytesIO(data), 0
    ids: dict[str, str] = {}
    """So that the lines of a record share its id."""
    with without_collection(len(data)):
        for number, raw in enumerate(content):
            if number % _TOLD_EVERY == 0:
                progress(end, 2 * len(data))
            begin, end = end, end + len(raw)
            try:
                fields = decode(_line_of(raw))
            except Unusable:
                yield 0, "", 0, begin, end
                continue
            identifier = "" if is_migration(fields) else str(fields["id"])
            identifier = ids.setdefault(identifier, identifier)
            born_ms = instant_ms(fields.get("created_at")) or 0
            yield born_ms, identifier, explicit_rev(fields) or 0, begin, end


def _closed(
    memory: FilesMemory, kind: str, lines: Iterable[Keyed], is_closed: IsClosed
) -> set[str]:
    """Returns the ids of the records whose lines can move."""
    staying, ids = {""}, set[str]()
    for _, identifier, rev, *_ in lines:
        # A line without a revision was written by another program, or has no record.
        (ids if rev else staying).add(identifier)
    records = Recorded(kind, memory).several(ids - staying)
    return {str(each["id"]) for each in records if is_closed(each)}


def _in_order(data: bytes, moving: Iterable[Keyed]) -> Iterator[tuple[str, bytes]]:
    """Yields lines with the ids of their records, oldest first, each once. The order is the same in
    every clone: two that moved the same lines write the same file, and git has little to merge.
    """
    for (_, identifier, _), same in groupby(sorted(moving), itemgetter(0, 1, 2)):
        for raw in sorted({_line_of(data[begin:end]) for *_, begin, end in same}):
            yield identifier, raw


def _line_of(raw: bytes) -> bytes:
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def _not_archived(
    memory: FilesMemory, kind: str, lines: Iterator[tuple[str, bytes]], *, are_any: bool
) -> Iterator[bytes]:
    """Yields the lines to write, without those that a segment has, if there are any: a merge
    brought them back, or a rotation was interrupted.
    """
    while some := [*islice(lines, _SOME)]:
        there = numbers_of(memory.database, kind, some, archived=True) if are_any else {}
        yield from (line for _, line in some if line not in there)


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


def _write_segments(tracked: Tracked, contents: Iterable[bytes]) -> dict[str, Stamp]:
    """Writes new segments; returns their stamps by name, () for one that others changed since."""
    segments: dict[str, Stamp] = {}
    for data in contents:
        made = False
        while not made:  # A pull may bring a segment with this number.
            name = tracked.archive.next_name({**tracked.archive.listing(), **segments})
            made = create_document(tracked.archive.path(name), data)
        stamp = stamp_of(tracked.archive.path(name))
        segments[name] = stamp if stamp[1:2] == (len(data),) else ()
    return segments


def _note(memory: FilesMemory, kind: str, settled_bytes: int, moved: Moved | None = None) -> None:
    """Takes in what a rotation made of the files: the new segments, and the shorter ledger."""
    with memory.database.turn():
        intake = Intake(memory.database, kind, memory.tracked(kind))
        if moved is None or not intake.note_moved(moved):
            intake.take_in()
        intake.note_settled(settled_bytes)
