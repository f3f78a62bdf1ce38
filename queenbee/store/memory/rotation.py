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
from typing import TYPE_CHECKING

from queenbee.core.fold import explicit_rev
from queenbee.core.timestamps import instant_ms
from queenbee.errors import QueenError, Unwritable
from queenbee.store.codec import Unusable, decoder, is_migration, without_collection
from queenbee.store.files import Original, size_of
from queenbee.store.memory.intake import Intake, joined, recalled
from queenbee.store.memory.record_lines import numbers_of
from queenbee.store.memory.recorded import Recorded
from queenbee.store.whole_files import create_document, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from queenbee.core.fold import Fields
    from queenbee.store.memory.files_memory import FilesMemory
    from queenbee.store.memory.intake import Tracked

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
    original = Original(tracked.path)
    try:
        movable = _movable(memory, kind, original.data, is_closed, progress)
        left = _left(original.data, movable)
        original.let_go()
        fresh = _not_archived(memory, kind, movable)
        contents = _told(_segments_of(fresh), original.size_bytes, progress)
        segments = _write_segments(tracked, contents)
        if movable:
            original.replace_by(left)
    except Unwritable:
        # A read-only archive must not cost each write another try.
        with suppress(QueenError):
            _note(memory, kind, original.size_bytes)
        raise
    finally:
        original.close()
        progress(1, 1)
    _note(memory, kind, len(left))
    records = {identifier for _, identifier, _ in movable.values()}
    return Rotation(len(records), len(movable), len(left), [*map(tracked.archive.path, segments)])


def _sweep(tracked: Tracked) -> None:
    """Removes temporary files of a rotation that was killed: git would pick them up."""
    beads, name = os.path.split(tracked.path)
    segments = name.removesuffix("jsonl")
    for folder, begin in ((beads, f".{name}."), (tracked.archive.folder, f".{segments}")):
        sweep(folder, begin)


def _movable(
    memory: FilesMemory, kind: str, data: bytes, is_closed: IsClosed, progress: Progress
) -> dict[bytes, Key]:
    """Returns the lines of a ledger whose records are closed, each with what orders it."""
    decode, state = decoder(len(data)), Recorded(kind, memory)
    keys: dict[bytes, Key] = {}
    staying = set[str]()
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
                staying.add(identifier)
            keys[line] = instant_ms(fields.get("created_at")) or 0, identifier, rev or 0
        for identifier in {each for _, each, _ in keys.values()} - staying:
            record = state.get(identifier)
            if record is None or not is_closed(record):
                staying.add(identifier)
    return {line: key for line, key in keys.items() if key[1] not in staying}


def _left(data: bytes, movable: Mapping[bytes, Key]) -> bytes:
    """Returns what remains of a ledger, byte for byte."""
    if not movable:
        return data
    return b"".join(raw for raw in BytesIO(data) if _line_of(raw) not in movable)


def _line_of(raw: bytes) -> bytes:
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def _not_archived(memory: FilesMemory, kind: str, movable: Mapping[bytes, Key]) -> list[bytes]:
    """Returns the lines to write, oldest first, without those that a segment has: a merge brought
    them back, or a rotation was interrupted.
    """
    named = [(identifier, line) for line, (_, identifier, _) in movable.items()]
    there = numbers_of(memory.database, kind, named, archived=True)
    # In an order that is the same in every clone: two clones that moved the same lines write the
    # same file, and git has little to merge.
    lines = sorted(movable, key=lambda line: (movable[line], line))
    return [line for line in lines if line not in there]


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


def _write_segments(tracked: Tracked, contents: Iterable[bytes]) -> list[str]:
    """Writes new segments; returns their names."""
    names: dict[str, object] = {}
    for data in contents:
        made = False
        while not made:  # A pull may bring a segment with this number.
            name = tracked.archive.next_name({**tracked.archive.listing(), **names})
            made = create_document(tracked.archive.path(name), data)
        names[name] = None
    return [*names]


def _note(memory: FilesMemory, kind: str, settled_bytes: int) -> None:
    """Takes in what a rotation made of the files: the new segments, and the shorter ledger."""
    with memory.database.turn():
        intake = Intake(memory.database, kind, memory.tracked(kind))
        intake.take_in()
        intake.note_settled(settled_bytes)
