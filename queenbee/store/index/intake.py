"""How an index catches up with a ledger: what was appended, rewritten, pulled or archived since.

A file that git rewrote is read again from the first block that differs: the state is a function
of the set of lines, so lines that were seen stay seen. On any doubt the index is built anew.
`docs/format.md`, "Index"; ADR 0006.
"""

from __future__ import annotations

from queenbee.store.files import (
    TAIL_BYTES,
    Chunk,
    Mark,
    checksum,
    mark_at,
    read_after,
    read_at,
    size_of,
    split_lines,
)
from queenbee.store.index.tables import SegmentRow, Taker
from queenbee.store.ledger.archive import Archived
from queenbee.store.ledger.batch import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.index.tables import Tables
    from queenbee.store.ledger.archive import Stamp
    from queenbee.store.ledger.ledger import Ledger
    from queenbee.store.state import Progress

_CHUNK_BYTES = 4 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_MANY_LOOSE = 10_000
_SOME_LINES = 10_000
_UNCOUNTED = 2**62


class Doubt(Exception):
    """The index cannot be trusted and has to be built anew."""


class Intake:
    """Brings the tables of an index up to date with its ledger, in one transaction."""

    def __init__(self, tables: Tables, ledger: Ledger, progress: Progress | None) -> None:
        self._tables = tables
        self._ledger = ledger
        self._progress = progress
        self._archived_bytes = 0

    def catch_up(self) -> bool:
        """Takes in what is new, and tells the ledger how far its files agree. Returns whether
        the index has come exactly as far as that. Raises `sqlite3.Error`.
        """
        segments = self._ledger.archive.listing()
        position, agreed = self._tables.position("at"), self._tables.position("agreed")
        if self._is_behind(position):
            try:
                with self._tables.transaction():
                    position, agreed = self._take_all_or_anew()
            finally:
                self.report(1, 1)
        self._ledger.agreed = Position(agreed.tracked, agreed.journal, segments)
        self._ledger.unrecorded = self._any_loose()
        return position == agreed

    def report(self, done: int, total: int) -> None:
        """Says how far it has come."""
        if self._progress is not None:
            self._progress(done, total)

    def let_go_of_agreed(self) -> None:
        """The journal has by now what both files were seen to hold."""
        if self._tables.ask("SELECT 1 FROM loose LIMIT 1"):
            end = self._ledger.agreed.tracked.offset
            self._tables.db.execute(
                "DELETE FROM loose WHERE before <= ? OR before = ?", (end, _UNCOUNTED)
            )

    def _is_behind(self, position: Position) -> bool:
        tracked, journal = self._ledger.chunks(position, limit=_CHUNK_BYTES)
        news = tracked.restarted, journal.restarted, tracked.lines, tracked.rest, journal.lines
        # A last line without its end may be gone, and leave nothing to read.
        return any(news) or bool(self._unended()) or self._archive_stamp() != self._archive_seen()

    def _any_loose(self) -> bool:
        return bool(
            self._tables.ask("SELECT 1 FROM loose LIMIT 1")
            or self._tables.ask("SELECT 1 FROM segments WHERE held = 0 LIMIT 1")
        )

    def _take_all_or_anew(self) -> tuple[Position, Position]:
        self.report(0, 1)
        try:
            return self._take_all()
        except Doubt:
            self._tables.clear()
            self._archived_bytes = 0
            return self._take_all()

    def _take_all(self) -> tuple[Position, Position]:
        position, agreed = self._tables.position("at"), self._tables.position("agreed")
        position, agreed, again = self._after_rewriting(position, agreed)
        position = self._before_unusable(position)
        self._doubt_a_line_that_went_on(position)
        taker = Taker(self._tables)
        # 0. The archive stands before all else.
        base, come = self._take_segments(taker, position)
        if base.mark.offset:
            position = Position(position.tracked, base.mark)
        if come:
            agreed = Position()
        together = position == agreed
        was_apart, apart, moved = bool(self._tables.meta("apart")), False, False
        # 1. As long as both files go on alike, each line is read once.
        while True:
            tracked, journal = self._chunks(position)
            if not tracked.lines or tracked.lines != journal.lines:
                break
            self._take_tracked(taker, position, tracked.lines, again)
            position = Position(tracked.end, journal.end)
            if together:
                agreed = position
            self._report(position)
        # 2. Then what the tracked file has, in its order, then what the journal alone has.
        while tracked.lines:
            moved = self._take_tracked(taker, position, tracked.lines, again) or moved
            self._hold_loosely(split_lines(tracked.lines), tracked.end.offset)
            position = Position(tracked.end, position.journal)
            tracked, _ = self._chunks(position)
            self._report(position)
        # A line without its newline is read again with it, and counts once where it stays the same.
        moved = self._take_tracked(taker, position, tracked.rest, again) or moved
        if base.kept:
            kept = split_lines(base.kept)
            apart = taker.take(kept, once=True)
            self._let_go(kept)
        position = self._past_what_both_have(position)
        _, journal = self._chunks(position)
        while journal.lines:
            lines = split_lines(journal.lines)
            apart = taker.take(lines, once=True) or apart
            self._let_go(lines)
            position = Position(position.tracked, journal.end)
            _, journal = self._chunks(position)
            self._report(position)
        if position == agreed:
            self._tables.db.execute("DELETE FROM loose")
        self._tables.put_meta("unended", tracked.rest)
        positional = taker.positional or self._tables.meta("positional")
        if positional and (again or come or (was_apart and moved)):
            # Where a line stands is what it means. The tracked lines were given another order, or
            # new ones stand before those that the journal alone had, or behind the archive's.
            raise Doubt
        if apart or again or come:
            # The journal alone may have what was read elsewhere before.
            self._tables.put_meta("apart", 1)
        taker.finish()
        self._remember_blocks(position.tracked)
        self._tables.put_position("at", position)
        self._tables.put_position("agreed", agreed)
        return position, agreed

    def _chunks(self, position: Position) -> tuple[Chunk, Chunk]:
        """Returns what both files hold after a position that was reached in them. One that is
        rewritten meanwhile has come to its end: what it is now, the next refresh reads.
        """
        tracked, journal = self._ledger.chunks(position, limit=_CHUNK_BYTES)
        if tracked.restarted:
            tracked = Chunk(b"", b"", position.tracked, restarted=True)
        if journal.restarted:
            journal = Chunk(b"", b"", position.journal, restarted=True)
        return tracked, journal

    def _take_tracked(self, taker: Taker, position: Position, data: bytes, again: bool) -> bool:
        """Takes in what the tracked file has at a position; returns whether it changed a record."""
        seen, begin = taker.unusable, position.tracked.offset
        moved = taker.take(split_lines(data), once=again)
        if taker.unusable > seen:
            row = begin, begin + len(data), taker.unusable - seen
            self._tables.db.execute("INSERT INTO unusable VALUES (?, ?, ?)", row)
        return moved

    def _before_unusable(self, position: Position) -> Position:
        """Returns a position from which the unusable lines of whole pieces are counted again."""
        offset = position.tracked.offset
        (begin,) = self._tables.ask("SELECT min(begin) FROM unusable WHERE end > ?", offset)[0]
        self._tables.db.execute("DELETE FROM unusable WHERE end > ?", (offset,))
        if not isinstance(begin, int) or begin >= offset:
            return position
        return Position(mark_at(self._ledger.path, begin), position.journal)

    def _take_segments(self, taker: Taker, position: Position) -> tuple[Archived, bool]:
        """Takes in the segments whose lines the index may lack.

        Returns from where on the journal has more than they do, where that is behind the
        position (else the empty note), and whether segments came or went since it was begun.
        """
        anew = self._tables.meta("at") is None
        seen = self._archive_stamp()
        if not anew and seen == self._archive_seen():
            return Archived(), False
        noted = self._ledger.noted() or Archived()
        known = {row.name: row for row in self._segments()}
        now = [
            self._take_segment(taker, name, stamp, known.pop(name, None), noted, anew)
            for name, stamp in self._ledger.archive.listing().items()
        ]
        for gone in known.values():
            # What only a segment had may vanish with it, and then it never was.
            if not gone.held and gone.digest not in noted.digests:
                raise Doubt
        self._tables.db.execute("DELETE FROM segments")
        self._tables.db.executemany(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?)", (row.values() for row in now)
        )
        self._tables.put_meta("archive", seen)
        come = not anew and (bool(known) or any(row.is_new for row in now))
        read = {row.digest for row in now if row.taken}
        ahead = noted.mark.offset > position.journal.offset and noted.digests <= read
        return (noted if ahead else Archived()), come

    def _take_segment(
        self,
        taker: Taker,
        name: str,
        stamp: Stamp,
        before: SegmentRow | None,
        noted: Archived,
        anew: bool,
    ) -> SegmentRow:
        same = before is not None and before.stamp == str(stamp)
        digest = before.digest if before and same else noted.digest_of(stamp)
        data = None
        if digest is None:
            data, digest = self._ledger.archive.read(name)
        held = digest in noted.digests
        if before is not None and before.digest == digest:
            return SegmentRow(name, str(stamp), digest, held or before.held, before.taken)
        if before is not None and not before.held:
            raise Doubt
        # What the journal has is read there; but the archive stands before all else.
        if anew or not held:
            self._take_archived(taker, data or self._ledger.archive.read(name)[0])
        return SegmentRow(name, str(stamp), digest, held, anew or not held, is_new=True)

    def _segments(self) -> list[SegmentRow]:
        rows = self._tables.ask("SELECT name, stamp, digest, held, taken FROM segments")
        return [
            SegmentRow(str(name), str(stamp), str(digest), held == 1, taken == 1)
            for name, stamp, digest, held, taken in rows
        ]

    def _take_archived(self, taker: Taker, data: bytes) -> None:
        lines = split_lines(data)
        for begin in range(0, len(lines), _SOME_LINES):
            some = lines[begin : begin + _SOME_LINES]
            taker.take(some, once=True)
            self._archived_bytes += sum(map(len, some)) + len(some)
            self._report(Position())

    def _archive_stamp(self) -> str:
        noted, listing = self._ledger.archive.note_stamp(), self._ledger.archive.listing()
        return f"{noted} {listing}" if listing else ""

    def _archive_seen(self) -> str:
        return self._tables.meta("archive") or ""

    # What only the tracked file has may vanish from it unseen, and then it never was. Such lines
    # are held loosely, until the next write takes them into the journal.

    def _hold_loosely(self, lines: list[bytes], before: int) -> None:
        (count,) = self._tables.ask("SELECT count(*) FROM loose")[0]
        assert isinstance(count, int)
        if count + len(lines) <= _MANY_LOOSE:
            rows = ((raw, before) for raw in lines)
            self._tables.db.executemany("INSERT OR REPLACE INTO loose VALUES (?, ?)", rows)
        elif not count or self._tables.ask("SELECT max(before) FROM loose")[0][0] != _UNCOUNTED:
            self._tables.db.execute("INSERT OR REPLACE INTO loose VALUES (x'', ?)", (_UNCOUNTED,))

    def _let_go(self, lines: list[bytes]) -> None:
        """The journal has these lines."""
        self._tables.db.executemany("DELETE FROM loose WHERE raw = ?", ((raw,) for raw in lines))

    def _doubt_what_vanished(self, where: Mark) -> None:
        query = "SELECT raw FROM loose WHERE before > ?"
        missing = {bytes(raw) for (raw,) in self._tables.ask(query, where.offset)}  # type: ignore[call-overload]
        while missing:
            tracked = read_after(self._ledger.path, where, limit=_CHUNK_BYTES)
            missing.difference_update(split_lines(tracked.lines))
            if not tracked.lines:
                break
            where = tracked.end
        if self._ledger.journal.lacking(missing):
            raise Doubt

    def _doubt_a_line_that_went_on(self, position: Position) -> None:
        unended = self._unended()
        if not unended:
            return
        tracked, _ = self._ledger.chunks(position, limit=_CHUNK_BYTES)
        now = (tracked.lines or tracked.rest).split(b"\n")[0]
        if split_lines(now) != split_lines(unended):
            raise Doubt

    def _unended(self) -> bytes:
        """Returns the last tracked line as it was read, where no newline ended it yet."""
        rows = self._tables.ask("SELECT value FROM meta WHERE key = 'unended'")
        return bytes(rows[0][0]) if rows else b""  # type: ignore[call-overload]

    def _past_what_both_have(self, position: Position) -> Position:
        """Returns the position with the journal moved on as far as it repeats the tracked file,
        byte for byte, in a part that was read.
        """
        while position.journal.offset < position.tracked.offset:
            _, journal = self._chunks(position)
            begin, size = position.journal.offset, len(journal.lines)
            same = begin + size <= position.tracked.offset
            if not size or not same or read_at(self._ledger.path, begin, size) != journal.lines:
                break
            position = Position(position.tracked, journal.end)
        return position

    def _after_rewriting(
        self, position: Position, agreed: Position
    ) -> tuple[Position, Position, bool]:
        """Returns where to go on reading, and whether lines may come that were seen before."""
        tracked, journal = self._ledger.chunks(position, limit=TAIL_BYTES)
        if journal.restarted or (tracked.restarted and self._tables.meta("positional")):
            # A line without `rev` means something by its place: nothing read so far stands.
            raise Doubt
        if not tracked.restarted:
            return position, agreed, False
        same = self._blocks_alike(position.tracked)
        where = mark_at(self._ledger.path, same)
        self._doubt_what_vanished(where)
        if agreed.tracked.offset <= where.offset:
            there = Mark(where.inode, agreed.tracked.offset, agreed.tracked.sum)
            agreed = Position(there, agreed.journal)
        else:
            agreed = Position()
        return Position(where, position.journal), agreed, True

    def _blocks_alike(self, until: Mark) -> int:
        """Returns how many bytes of the tracked file are what they were, as far as blocks tell."""
        known = self._tables.ask("SELECT digest FROM blocks ORDER BY number")
        same = 0
        for (digest,) in known:
            if _digest(self._ledger.path, same) != digest:
                break
            same += _BLOCK_BYTES
        self._tables.db.execute("DELETE FROM blocks WHERE number >= ?", (same // _BLOCK_BYTES,))
        if same == len(known) * _BLOCK_BYTES and _ends_alike(self._ledger.path, until):
            return until.offset
        return same

    def _remember_blocks(self, mark: Mark) -> None:
        (count,) = self._tables.ask("SELECT count(*) FROM blocks")[0]
        assert isinstance(count, int)
        rows = [
            (number, _digest(self._ledger.path, number * _BLOCK_BYTES))
            for number in range(count, mark.offset // _BLOCK_BYTES)
        ]
        # Of another file than was read, they would say that it was read.
        if rows and not read_after(self._ledger.path, mark, limit=1).restarted:
            self._tables.db.executemany("INSERT INTO blocks VALUES (?, ?)", rows)

    def _report(self, position: Position) -> None:
        if self._progress is not None:
            files = sum(map(size_of, (self._ledger.path, self._ledger.journal_path)))
            archived = sum(size for _, size, _ in self._ledger.archive.listing().values())
            done = position.tracked.offset + position.journal.offset
            # Never all of it: the blocks and the commit are still to come.
            self.report(min(self._archived_bytes + done, archived + files), archived + files + 1)


def _digest(path: str, offset: int) -> bytes:
    from hashlib import sha1

    chunk = read_at(path, offset, _BLOCK_BYTES)
    return sha1(chunk, usedforsecurity=False).digest()


def _ends_alike(path: str, mark: Mark) -> bool:
    size = min(TAIL_BYTES, mark.offset)
    return checksum(read_at(path, mark.offset - size, size)) == mark.sum
