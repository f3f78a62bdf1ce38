"""How an index catches up: with the journal, and with what only the tracked files have.

The journal is append-only, so a position says how much of it the index has read. Git may rewrite
the tracked file at any time. The index then compares it with the journal and keeps the lines that
the journal lacks as *loose* lines: when one disappears from the tracked file, the index drops it
from its record. If in doubt, the index is rebuilt. `docs/format.md`, "Index";
ADR 0011.
"""

from __future__ import annotations

from queenbee._light import nullcontext
from queenbee.core import plain_json
from queenbee.store.files import (
    START,
    TAIL_BYTES,
    Chunk,
    changed_in_place,
    read_after,
    size_of,
    split_lines,
)
from queenbee.store.index.segments import Doubt, Segments, archive_stamp
from queenbee.store.index.tables import LONG_WAL_BYTES, Taker
from queenbee.store.ledger.batch import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queenbee.store.index.tables import Tables
    from queenbee.store.ledger.archive import Archived
    from queenbee.store.ledger.ledger import Ledger
    from queenbee.store.records import Progress

_CHUNK_BYTES = 4 * 1024 * 1024
_STEP_BYTES = 256 * 1024
"""How much of two files is compared at once: 300 MiB take 0.20 s, and 0.38 s in steps of 4 MiB."""
_SOME_LINES = 10_000
_MANY_LOOSE = 10_000
"""Beyond this many, loose lines are not kept one by one: if the tracked file is rewritten before
the journal has them, the index is rebuilt."""
_TOO_MANY = b""
"""Represents them among the loose lines: no real line is empty."""


class CaughtUp:
    """The progress of an index."""

    __slots__ = ("agreed", "all_agreed", "unrecorded")

    def __init__(self, agreed: Position, *, all_agreed: bool, unrecorded: bool) -> None:
        self.agreed = agreed
        """Up to here ledger and journal hold the same lines."""
        self.all_agreed = all_agreed
        """Whether everything read so far is agreed. The next reader then moves both positions."""
        self.unrecorded = unrecorded
        """Whether the tracked files have lines that the journal lacks."""


class Intake:
    """Brings the tables of an index up to date with its ledger, in one transaction."""

    def __init__(self, tables: Tables, ledger: Ledger, progress: Progress | None) -> None:
        self._tables = tables
        self._ledger = ledger
        self._progress = progress

    def catch_up(self) -> CaughtUp:
        """Reads new lines. Raises `sqlite3.Error`."""
        tables = self._tables
        if self._is_behind():
            anew = tables.meta("at") is None and self._ledger.size_bytes() > LONG_WAL_BYTES
            if not anew:
                tables.keep_log()
            try:
                with tables.unlogged() if anew else nullcontext(), tables.transaction():
                    self._read_or_build()
            finally:
                self.report(1, 1)
        at, agreed = tables.position("at"), tables.position("agreed")
        unrecorded = "SELECT 1 FROM loose UNION ALL SELECT 1 FROM segments WHERE held = 0 LIMIT 1"
        return CaughtUp(
            agreed,
            all_agreed=_marks(at) == _marks(agreed),
            unrecorded=bool(tables.ask(unrecorded)),
        )

    def report(self, done: int, total: int) -> None:
        """Reports progress."""
        if self._progress is not None:
            self._progress(done, total)

    def _is_behind(self) -> bool:
        at = self._tables.position("at")
        tracked, journal = self._ledger.chunks(at, limit=_CHUNK_BYTES)
        return bool(
            tracked.restarted
            or journal.restarted
            or tracked.lines
            or tracked.rest
            or journal.lines
            # A last line without its newline may be gone, and leave nothing to read.
            or self._tables.blob("unended")
            or _purged(self._tables, self._ledger)
            or archive_stamp(self._ledger) != (self._tables.meta("archive") or "")
        )

    def _read_or_build(self) -> None:
        self.report(0, 1)
        try:
            _Pass(self._tables, self._ledger, self).run()
        except Doubt:
            self._tables.clear()
            _Pass(self._tables, self._ledger, self).run()


class _Pass:
    """One pass over the new lines, inside a transaction."""

    def __init__(self, tables: Tables, ledger: Ledger, intake: Intake) -> None:
        self._tables = tables
        self._ledger = ledger
        self._intake = intake
        self._taker = Taker(tables)
        self._segments = Segments(tables, ledger, self._take_archived)
        self._anew = tables.meta("at") is None
        self._at = tables.position("at")
        self._agreed = tables.position("agreed")
        self._kept: list[bytes] = []
        """Lines of the journal before the position that are still to be read."""
        self._unended = tables.blob("unended")
        """The last tracked line as it was read, where no newline ended it."""
        self._provisional = tables.meta("provisional") == "1"
        """Whether that line is the only source of its content."""
        self._torn = 0
        """How many lines without a newline are unusable: 0 or 1."""
        self._unusable = int(tables.meta("unusable") or 0)
        self._any_loose = bool(tables.ask("SELECT 1 FROM loose LIMIT 1"))
        self._was_apart = bool(tables.meta("apart"))
        """Whether the journal had lines that the tracked file lacked."""
        self._apart = False
        self._moved = False
        """Whether the tracked file brought lines to records in which the order of lines counts."""
        self._archived_bytes = 0

    def run(self) -> None:
        """Reads new lines, and saves the position. Raises `Doubt`."""
        if _purged(self._tables, self._ledger):
            raise Doubt
        stamps = self._ledger.stamps()  # First: later changes are noticed next time.
        tracked, journal = self._ledger.chunks(self._at, limit=TAIL_BYTES)
        if journal.restarted or (tracked.restarted and self._taker.positional):
            # If the order of lines counts, what was read from the old file is wrong.
            raise Doubt
        now = (tracked.lines or tracked.rest).split(b"\n")[0]
        if self._provisional and (tracked.restarted or not _same_lines(now, self._unended)):
            raise Doubt
        archive_changed = self._read_archive()
        if tracked.restarted:
            self._compare()
        else:
            self._skip_agreed()
            self._read_on()
        reordered = tracked.restarted or archive_changed
        if self._taker.positional and (reordered or (self._was_apart and self._moved)):
            # New tracked lines come before those of the journal alone, archived ones before all.
            raise Doubt
        self._apart = self._apart or reordered
        if self._anew:
            self._tables.sort()
        self._write_down()
        self._tables.put_meta("stamps", plain_json.dumps(stamps))

    def _write_down(self) -> None:
        tables = self._tables
        all_recorded = _marks(self._at) == _marks(self._agreed) and not self._unended
        if all_recorded and self._too_many_loose():
            tables.db.execute("DELETE FROM loose")
        if self._apart:
            tables.put_meta("apart", 1)
        tables.put_meta("unended", self._unended)
        tables.put_meta("provisional", int(self._provisional))
        tables.put_meta("unusable", self._unusable)
        tables.put_meta("torn", self._torn)
        self._taker.finish()
        tables.put_position("at", self._at)
        tables.put_position("agreed", self._agreed)

    def _read_archive(self) -> bool:
        """Reads the segments that are new; returns whether any came or went since the index was
        created.
        """
        if archive_stamp(self._ledger) == (self._tables.meta("archive") or ""):
            return False
        changed = self._segments.follow(anew=self._anew)
        noted = self._segments.ahead_of(self._at.journal)
        if noted is not None:
            self._kept = split_lines(noted.kept)
            self._at = Position(self._at.tracked, noted.mark)
        return changed and not self._anew

    def _take_archived(self, lines: list[bytes]) -> None:
        self._taker.take(lines, once=True)
        self._let_go(lines)
        self._archived_bytes += sum(map(len, lines)) + len(lines)
        self._report()

    # If neither file was rewritten: read what was appended.

    def _read_on(self) -> None:
        # 1. As long as both files have the same next lines, each line is read once.
        together = _marks(self._at) == _marks(self._agreed)
        while True:
            tracked, journal = self._chunks()
            if not tracked.lines or tracked.lines != journal.lines:
                break
            self._unusable += self._take_tracked(tracked.lines)
            self._at = Position(tracked.end, journal.end)
            if together:
                self._agreed = Position(tracked.end, journal.end, self._agreed.segments)
            self._report()
        # 2. Then the rest of the tracked file, then the lines that only the journal has.
        while tracked.lines:
            self._unusable += self._take_tracked(tracked.lines, loose=True)
            self._at = Position(tracked.end, self._at.journal)
            self._report()
            tracked, _ = self._chunks()
        self._take_unended(tracked.rest)
        self._read_journal()

    def _take_unended(self, rest: bytes) -> None:
        """Reads a last line without a newline. It is read again once it has one."""
        taken = self._taker.take(split_lines(rest), once=False)
        self._moved = self._moved or taken.positional
        self._hold(taken.fresh)
        self._torn = taken.unusable
        known = self._provisional and _same_lines(rest, self._unended)
        self._provisional = known or bool(taken.fresh)
        self._unended = rest

    def _take_tracked(self, data: bytes, *, loose: bool = False) -> int:
        """Returns how many of the lines are unusable."""
        lines = split_lines(data)
        taken = self._taker.take(lines, once=False)
        self._moved = self._moved or taken.positional
        if loose:
            self._hold(taken.fresh)
        else:
            self._let_go(lines)
        return taken.unusable

    def _read_journal(self) -> None:
        self._take_journal(self._kept)
        self._kept = []
        while (journal := self._chunks()[1]).lines:
            self._take_journal(split_lines(journal.lines))
            self._at = Position(self._at.tracked, journal.end)
            self._report()

    def _take_journal(self, lines: list[bytes]) -> None:
        self._apart = bool(self._taker.take(lines, once=True).fresh) or self._apart
        self._let_go(lines)

    def _chunks(self) -> tuple[Chunk, Chunk]:
        """Returns the content of both files after the position. A file that is rewritten in the
        meantime counts as having no more: the next refresh reads it.
        """
        tracked, journal = self._ledger.chunks(self._at, limit=_CHUNK_BYTES)
        if tracked.restarted:
            tracked = Chunk(b"", b"", self._at.tracked, restarted=True)
        if journal.restarted:
            journal = Chunk(b"", b"", self._at.journal, restarted=True)
        return tracked, journal

    def _skip_agreed(self) -> None:
        """Reads up to where a writer found that both files agree, from the tracked file only: the
        writer may just have copied a whole clone to the journal.
        """
        agreed, listing = self._agreed, self._ledger.archive.listing()
        ahead = agreed.journal.offset > self._at.journal.offset and agreed.segments == listing
        both = self._ledger.chunks(agreed, limit=TAIL_BYTES)
        if not ahead or any(chunk.restarted for chunk in both):
            return
        while (left := agreed.tracked.offset - self._at.tracked.offset) > 0:
            tracked = read_after(self._ledger.path, self._at.tracked, limit=min(left, _CHUNK_BYTES))
            if tracked.restarted or not tracked.lines:
                return
            self._unusable += self._take_tracked(tracked.lines, loose=True)
            self._at = Position(tracked.end, self._at.journal)
        if self._at.tracked == agreed.tracked:
            self._at = Position(agreed.tracked, agreed.journal)
            self._tables.db.execute("DELETE FROM loose")

    # If git rewrote the tracked file.

    def _compare(self) -> None:
        """Brings the loose lines up to date with a rewritten tracked file."""
        if self._too_many_loose():
            raise Doubt
        # 1. Lines that the journal has are not loose.
        self._read_journal()
        # 2. Find the lines that only the tracked file has: not the journal, and not the archive.
        both, base = self._past_what_is_alike()
        tracked = read_after(self._ledger.path, both.tracked)
        if tracked.restarted:  # Rewritten again, just now.
            both, self._agreed = Position(START, base.mark), Position()
        lines = split_lines(tracked.lines)
        lacking = {*lines, *split_lines(tracked.rest)}
        lacking.difference_update(split_lines(base.kept), split_lines(base.back))
        lacking = self._ledger.journal.lacking(lacking, both.journal)
        # 3. Loose lines that are not among these are gone; so is one that no newline ends any more:
        # it is read anew below, as one that may still change.
        rows = self._tables.ask("SELECT raw FROM loose")
        gone = {raw for (raw,) in rows if isinstance(raw, bytes)} - lacking.intersection(lines)
        self._taker.forget(gone)
        self._let_go(gone)
        self._unusable = 0
        for some in _pieces([line for line in lines if line in lacking]):
            taken = self._taker.take(some, once=True)
            self._unusable += taken.unusable
            self._hold(taken.fresh)
            self._report()
        self._take_unended(tracked.rest)
        self._at = Position(tracked.end, self._at.journal)
        # 4. Lines appended to the journal in the meantime are not loose either.
        self._read_journal()

    def _past_what_is_alike(self) -> tuple[Position, Archived]:
        """Returns the position up to which tracked file and journal have the same lines in the same
        order, and the note of the archive.
        """
        base = self._segments.note()
        both = Position(START, base.mark)
        self._agreed = Position()
        if base.kept:
            tracked = read_after(self._ledger.path, START, limit=len(base.kept))
            if tracked.lines != base.kept:
                return both, base
            both = Position(tracked.end, base.mark)
        while True:
            tracked, journal = self._ledger.chunks(both, limit=_STEP_BYTES)
            if not tracked.lines or tracked.lines != journal.lines:
                break
            both = Position(tracked.end, journal.end)
        listing = self._ledger.archive.listing()
        if base.stamps == listing:
            self._agreed = Position(both.tracked, both.journal, listing)
        return both, base

    # A line that only the tracked file has may disappear, and then it must leave no trace. Such
    # lines are loose until the next write records them in the journal.

    def _hold(self, lines: list[bytes]) -> None:
        if not lines:
            return
        [[count]] = self._tables.ask("SELECT count(*) FROM loose")
        assert isinstance(count, int)
        held = lines if count + len(lines) <= _MANY_LOOSE else [_TOO_MANY]
        rows = ((raw,) for raw in held)
        self._tables.db.executemany("INSERT OR IGNORE INTO loose VALUES (?)", rows)
        self._any_loose = True

    def _let_go(self, lines: Iterable[bytes]) -> None:
        """Removes lines from the loose ones: they are in the journal, in a segment, or gone."""
        if self._any_loose:
            rows = ((raw,) for raw in lines)
            self._tables.db.executemany("DELETE FROM loose WHERE raw = ?", rows)

    def _too_many_loose(self) -> bool:
        return bool(self._tables.ask("SELECT 1 FROM loose WHERE raw = ?", _TOO_MANY))

    def _report(self) -> None:
        files = sum(map(size_of, (self._ledger.path, self._ledger.journal_path)))
        archived = sum(size for _, size, _ in self._ledger.archive.listing().values())
        done = self._archived_bytes + self._at.tracked.offset + self._at.journal.offset
        # Never 100 %: the commit is still to come.
        self._intake.report(min(done, archived + files), archived + files + 1)


def _purged(tables: Tables, ledger: Ledger) -> bool:
    """Returns whether one of the files has the size that it had, but not the content."""
    kept = tables.meta("stamps")
    if kept is None:
        return False
    return any(map(changed_in_place, map(tuple, plain_json.loads(kept)), ledger.stamps()))


def _marks(position: Position) -> Position:
    """Returns the position without its segments."""
    return Position(position.tracked, position.journal)


def _same_lines(left: bytes, right: bytes) -> bool:
    return split_lines(left) == split_lines(right)


def _pieces(lines: list[bytes]) -> Iterator[list[bytes]]:
    return (lines[begin : begin + _SOME_LINES] for begin in range(0, len(lines), _SOME_LINES))
