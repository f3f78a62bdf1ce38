"""Brings the lines of the tracker's file into its index: what was appended, or, if the file was
rewritten, the lines that differ.

The tracker rewrites its file at each change, mostly with one row changed: then every line is
compared by its digest, and only what differs is parsed.
"""

from __future__ import annotations

import json
import os
import stat
import time

from queenbee.core.beads import changed_ms, read_rows
from queenbee.store import safe_open
from queenbee.store.ledger.codec import Unusable, decode_exactly, decoder, lost_precision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from hashlib import blake2b
    from typing import Self

    from queenbee.core.beads import Issue
    from queenbee.core.fold import Fields
    from queenbee.store.index.tracker import TrackerTables

_YOUNG_NS = 20_000_000
"""A file that changed less long ago may change again with the same time: kernels note it in steps
of up to 10 ms."""
_COARSE_NS = 2_000_000_000
"""The same, for file systems that only note whole seconds."""
_SECOND_NS = 1_000_000_000
_PIECE_BYTES = 1024 * 1024
_MOST = 2**53
"""Greater numbers are not told apart in the tables."""

_IDS_OF = "SELECT id FROM lines WHERE key IN ({})"
_REPEATED = "SELECT id FROM lines WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"


class Unfit(Exception):
    """The file cannot be answered for by an index: a line is damaged, or a number too large."""


class Stale(Exception):
    """The file changes while it is read."""


class Misled(Exception):
    """A row is not where the index says, in the very file that the index says it knows."""


class Source:
    """The tracker's file, held open: what replaces it meanwhile has no effect on what is read.

    Raises `OSError` and `Unreadable`.
    """

    def __init__(self, path: str) -> None:
        self._fd = safe_open.open_file(path, os.O_RDONLY)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(f"{path} is not a regular file")
        self.stamp = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        self.size_bytes = status.st_size
        # Any program may set the time of the last change, but not that of the inode.
        changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
        since_ns = time.time_ns() - changed_ns
        coarse = status.st_mtime_ns % _SECOND_NS == 0
        self.young = since_ns < (_COARSE_NS if coarse else _YOUNG_NS)
        """Whether it may change again without another stamp."""
        self.wait_s = max(0, _YOUNG_NS - since_ns) / 1e9 if since_ns >= 0 and not coarse else 0
        """How long it is worth waiting until it is no longer young: else every process compares
        all of it again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def read(self, at: int, size: int) -> bytes:
        """Returns some of its bytes; fewer at its end."""
        parts = []
        while size > 0 and (data := os.pread(self._fd, size, at)):
            parts.append(data)
            at += len(data)
            size -= len(data)
        return b"".join(parts)

    def whole(self) -> bytes:
        """Returns all of its bytes."""
        return self.read(0, self.size_bytes)

    def sum_of(self, end: int) -> blake2b:
        """Returns the digest of its bytes up to an offset, to which more can be added."""
        total = _digest()
        for at in range(0, end, _PIECE_BYTES):
            total.update(self.read(at, min(_PIECE_BYTES, end - at)))
        return total

    def row(self, at: int, size: int, identifier: str) -> Fields:
        """Returns the row of an issue. Raises `Misled` if it is not there."""
        data = self.read(at, size)
        try:
            fields = decoder(size)(data)
        except Unusable as error:
            raise Misled(identifier) from error
        if fields.get("id") != identifier:
            raise Misled(identifier)
        return fields

    def exact_row(self, at: int, size: int, identifier: str) -> Fields:
        """Returns the row for writing back: long integers keep every digit. Raises `Misled`."""
        row = self.row(at, size, identifier)
        return decode_exactly(self.read(at, size)) if lost_precision(row) else row

    def close(self) -> None:
        """Closes the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Line:
    """A line of the file that is new, or changed."""

    __slots__ = ("at", "changed_ms", "digest", "fields", "id", "size")

    def __init__(self, at: int, raw: bytes, fields: Fields | None) -> None:
        self.at = at
        self.size = len(raw)
        self.digest = digest_of(raw)
        self.fields = fields
        identifier = fields.get("id") if fields is not None else None
        self.id = identifier if isinstance(identifier, str) and identifier else None
        """The id of the issue in it, if any."""
        self.changed_ms = changed_ms(fields) if fields is not None and self.id else 0

    def values(self) -> tuple[object, ...]:
        """Returns its row in the table of lines, without the key."""
        return self.at, self.size, self.digest, self.id, self.changed_ms


def digest_of(raw: bytes) -> bytes:
    """Returns what tells a line from any other."""
    return _digest(raw).digest()


def _digest(data: bytes = b"") -> blake2b:
    """Returns a digest that nobody can write another text for: who writes the tracker's file
    chooses every byte of it, and a checksum such as CRC-32 would be solved for some of them.
    """
    from hashlib import blake2b  # noqa: PLC0415 - start-up

    return blake2b(data, digest_size=16)


def is_current(notes: dict[str, object], source: Source, *, just_read: bool) -> bool:
    """Returns whether the index has read this very file: a file that was young then may have
    changed since, unless this process has just read it.
    """
    same = notes.get("stamp") == json.dumps(source.stamp)
    return same and (just_read or not notes.get("young"))


def read_all(tables: TrackerTables, source: Source) -> list[Line]:
    """Reads the whole file into empty tables, and returns its lines: the key of each is its number,
    from 1. Raises `Unfit`.
    """
    data = source.whole()
    lines = _parsed(data, 0)
    _insert(tables, lines)
    _note(tables, source, data, 0, _digest())
    return lines


def catch_up(tables: TrackerTables, source: Source, notes: dict[str, object]) -> set[str]:
    """Brings the table of lines up to date, and returns the ids whose lines changed. Raises
    `Unfit`, and `Stale` if the file changes meanwhile.
    """
    end = int(str(notes["end"]))
    inode, size_bytes, *_ = json.loads(str(notes["stamp"]))
    longer = inode == source.stamp[0] and source.size_bytes > size_bytes
    total = source.sum_of(end) if longer else _digest()
    # A longer file may have been written again: a tracker's rows change.
    if longer and total.hexdigest() == notes["sum"]:
        data = source.read(end, source.size_bytes - end)
        changed = _appended(tables, data, end)
        _note(tables, source, data, end, total)
    else:
        data = source.whole()
        changed = _rewritten(tables, data)
        _note(tables, source, data, 0, _digest())
    return changed


def winning_rows(
    tables: TrackerTables, source: Source, ids: set[str]
) -> dict[str, tuple[int, Fields]]:
    """Returns the row that counts of each of these issues with the key of its line, in the order
    in which the file first names them. Those that it no longer has are missing.
    """
    best: dict[str, tuple[object, ...]] = {}
    first: dict[str, int] = {}
    query = "SELECT id, changed_ms, at, size, key FROM lines WHERE id IN ({})"
    for identifier, changed, at, size, key in tables.related(query, ids):
        name = str(identifier)
        assert isinstance(at, int)
        first[name] = min(at, first.get(name, at))
        if name not in best or (changed, at) >= best[name][:2]:
            best[name] = (changed, at, size, key)
    found: dict[str, tuple[int, Fields]] = {}
    for name in sorted(first, key=first.__getitem__):
        _, at, size, key = best[name]
        assert isinstance(at, int)
        assert isinstance(size, int)
        assert isinstance(key, int)
        found[name] = key, source.row(at, size, name)
    return found


def issues_of(rows: Iterable[Fields]) -> dict[str, Issue]:
    """Returns the issues in rows, as `read_rows` does. Raises `Unfit`."""
    issues = read_rows(rows)
    if any(abs(issue.priority) > _MOST for issue in issues.values()):
        raise Unfit
    return issues


def _note(tables: TrackerTables, source: Source, data: bytes, begin: int, total: blake2b) -> None:
    """Stores up to where the file was read, of which `data` is the last part, and `total` the
    digest of what is before it.
    """
    if begin + len(data) != source.size_bytes:
        raise Stale
    whole = data.rfind(b"\n") + 1
    total.update(memoryview(data)[:whole])
    for key, value in (
        ("stamp", json.dumps(source.stamp)),
        ("young", int(source.young)),
        ("end", begin + whole),
        ("sum", total.hexdigest()),
    ):
        tables.put_meta(key, value)


def _appended(tables: TrackerTables, data: bytes, begin: int) -> set[str]:
    # A last line without its newline may have been read before.
    torn = tables.ask("SELECT id FROM lines WHERE at >= ?", begin)
    tables.db.execute("DELETE FROM lines WHERE at >= ?", (begin,))
    return {str(each) for (each,) in torn if each} | _insert(tables, _parsed(data, begin))


def _rewritten(tables: TrackerTables, data: bytes) -> set[str]:
    known = tables.db.execute("SELECT at, digest, key FROM lines ORDER BY at").fetchall()
    now = _cut(data, 0)
    digests = [digest_of(raw) for _, raw in now]
    shortest = min(len(known), len(now))
    same = _alike(lambda n: known[n][:2] == (now[n][0], digests[n]), shortest)
    moved = now[-1][0] - known[-1][0] if shortest else 0
    after = _alike(
        lambda n: known[-1 - n][:2] == (now[-1 - n][0] - moved, digests[-1 - n]), shortest - same
    )
    # Between the ends, a line is the one that it was, wherever it is now: a program that sorts its
    # rows, or changes two that are far apart, must not cost a new index.
    unmatched: dict[bytes, list[tuple[int, int]]] = {}
    for at, digest, key in reversed(known[same : len(known) - after]):
        unmatched.setdefault(digest, []).append((at, key))
    elsewhere, fresh = [], []
    for (at, raw), digest in zip(
        now[same : len(now) - after], digests[same : len(now) - after], strict=True
    ):
        there = unmatched.get(digest)
        if not there:
            fresh.append((at, raw))
            continue
        before, key = there.pop()
        if before != at:
            elsewhere.append((at, key))
    gone = [key for places in unmatched.values() for _, key in places]
    ids = {str(each) for (each,) in tables.related(_IDS_OF, gone) if each}
    tables.db.executemany("DELETE FROM lines WHERE key = ?", [(key,) for key in gone])
    # Offsets of before: those that are the same but for a shift, before those that are set anew.
    if after and moved:
        begin = known[len(known) - after][0]
        tables.db.execute("UPDATE lines SET at = at + ? WHERE at >= ?", (moved, begin))
    if elsewhere:
        tables.db.executemany("UPDATE lines SET at = ? WHERE key = ?", elsewhere)
        # Of two lines of one issue, the later may count.
        ids |= {str(each) for (each,) in tables.db.execute(_REPEATED)}
    decode = decoder(len(data))
    return ids | _insert(tables, [_line(at, raw, decode) for at, raw in fresh])


def _alike(same: Callable[[int], bool], most: int) -> int:
    count = 0
    while count < most and same(count):
        count += 1
    return count


def _insert(tables: TrackerTables, lines: Sequence[Line]) -> set[str]:
    tables.db.executemany(
        "INSERT INTO lines (at, size, digest, id, changed_ms) VALUES (?, ?, ?, ?, ?)",
        [line.values() for line in lines],
    )
    return {line.id for line in lines if line.id is not None}


def _parsed(data: bytes, begin: int) -> list[Line]:
    decode = decoder(len(data))
    return [_line(at, raw, decode) for at, raw in _cut(data, begin)]


def _cut(data: bytes, begin: int) -> list[tuple[int, bytes]]:
    """Returns the lines that are not blank, each with its offset, of a part of the file that begins
    there.
    """
    found = []
    for raw in data.split(b"\n"):
        line = raw.removesuffix(b"\r")
        if line and not line.isspace():
            found.append((begin, line))
        begin += len(raw) + 1
    return found


def _line(at: int, raw: bytes, decode: Callable[[bytes], Fields]) -> Line:
    try:
        return Line(at, raw, decode(raw))
    except Unusable as error:
        # Beads' memories are rows with a `_type` and no id.
        if b'"_type"' in raw:
            return Line(at, raw, None)
        raise Unfit from error
