"""How an index catches up: with the journal, and with what only the tracked files have.

Lines that the journal lacks are *loose*: when one disappears from the tracked file, which git may
rewrite, the index drops it from its record. If in doubt, the index is rebuilt. ADR 0011.
"""

from __future__ import annotations

from queenbee.core import plain_json
from queenbee.store.files import (
    TAIL_BYTES,
    Chunk,
    changed_in_place,
    read_after,
    size_of,
    split_lines,
)
from queenbee.store.index.folding import Taker
from queenbee.store.index.tables import Unfit
from queenbee.store.ledger.archive import Archived
from queenbee.store.ledger.batch import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queenbee.store.index.tables import Tables
    from queenbee.store.ledger.ledger import Ledger
    from queenbee.store.questions import Progress

_CHUNK_BYTES = 4 * 1024 * 1024
_SOME_LINES = 10_000


class Doubt(Exception):
    """The index cannot be trusted and must be rebuilt."""


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
        """Reads new lines. Raises `Unfit` and `sqlite3.Error`."""
        tables = self._tables
        if self._is_behind():
            try:
                with tables.transaction():
                    self._read_or_build()
            finally:
                self.report(1, 1)
        at, agreed = tables.position("at"), tables.position("agreed")
        loose = tables.ask("SELECT 1 FROM loose LIMIT 1")
        unrecorded = bool(loose) or tables.meta("unheld") == "1"
        return CaughtUp(agreed, all_agreed=_marks(at) == _marks(agreed), unrecorded=unrecorded)

    def report(self, done: int, total: int) -> None:
        """Reports progress."""
        if self._progress is not None:
            self._progress(done, total)

    def _is_behind(self) -> bool:
        at = self._tables.position("at")
        tracked, journal = self._ledger.chunks(at, limit=_CHUNK_BYTES)
        if tracked.rest:
            raise Unfit
        return bool(
            tracked.restarted
            or journal.restarted
            or tracked.lines
            or journal.lines
            or _purged(self._tables, self._ledger)
            or _archive_stamp(self._ledger) != self._tables.meta("archive")
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
        self._anew = tables.meta("at") is None
        self._at = tables.position("at")
        self._agreed = tables.position("agreed")
        self._unusable = int(tables.meta("unusable") or 0)
        self._any_loose = bool(tables.ask("SELECT 1 FROM loose LIMIT 1"))
        self._was_apart = bool(tables.meta("apart"))
        """Whether the journal had lines that the tracked file lacked."""
        self._apart = False
        self._moved = False
        """Whether the tracked file brought lines to records in which the order of lines counts."""
        self._archived_bytes = 0

    def run(self) -> None:
        """Reads new lines, and saves the position. Raises `Doubt` and `Unfit`."""
        if _purged(self._tables, self._ledger):
            raise Doubt
        stamps = self._ledger.stamps()  # First: later changes are noticed next time.
        tracked, journal = self._ledger.chunks(self._at, limit=TAIL_BYTES)
        if journal.restarted or (tracked.restarted and self._taker.positional):
            # If the order of lines counts, what was read from the old file is wrong.
            raise Doubt
        archive_changed = self._read_archive() and not self._anew
        if tracked.restarted:
            self._compare()
        else:
            self._read_on()
        reordered = tracked.restarted or archive_changed
        if self._taker.positional and (reordered or (self._was_apart and self._moved)):
            # New tracked lines come before those of the journal alone, archived ones before all.
            raise Doubt
        if self._anew:
            self._tables.sort()
        if self._apart or reordered:
            self._tables.put_meta("apart", 1)
        self._tables.put_meta("unusable", self._unusable)
        self._taker.finish()
        self._tables.put_position("at", self._at)
        self._tables.put_position("agreed", self._agreed)
        self._tables.put_meta("stamps", plain_json.dumps(stamps))

    # The archive.

    def _read_archive(self) -> bool:
        """Reads the segments that are new; returns whether any came or went since the last pass.

        Raises `Doubt` if lines may be gone with a segment.
        """
        stamp = _archive_stamp(self._ledger)  # First: later changes are read next time.
        if stamp == self._tables.meta("archive"):
            return False
        noted = self._ledger.noted() or Archived()
        held = noted.digests
        known = dict(plain_json.loads(self._tables.meta("segments") or "{}"))
        now = {
            name: noted.digest_of(stamp) or self._ledger.archive.read(name)[1]
            for name, stamp in self._ledger.archive.listing().items()
        }
        for name, digest in known.items():
            # Lines that only this segment had are gone with it, and must leave no trace.
            if now.get(name) != digest and digest not in held:
                raise Doubt
        for name, digest in now.items():
            # Lines in the journal are read from there; but in a new index the archive comes first.
            if digest not in known.values() and (self._anew or digest not in held):
                self._take_segment(name)
        self._tables.put_meta("segments", plain_json.dumps(now))
        self._tables.put_meta("unheld", int(not held.issuperset(now.values())))
        self._tables.put_meta("archive", stamp)
        return now != known

    def _take_segment(self, name: str) -> None:
        for lines in _pieces(split_lines(self._ledger.archive.read(name)[0])):
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
            self._take_tracked(split_lines(tracked.lines))
            self._at = Position(tracked.end, journal.end)
            if together:
                self._agreed = Position(tracked.end, journal.end, self._agreed.segments)
            self._report()
        # 2. Then the rest of the tracked file, then the lines that only the journal has.
        while tracked.lines:
            self._hold(self._take_tracked(split_lines(tracked.lines)))
            self._at = Position(tracked.end, self._at.journal)
            self._report()
            tracked, _ = self._chunks()
        if tracked.rest:
            raise Unfit
        self._read_journal()

    def _take_tracked(self, lines: list[bytes]) -> list[bytes]:
        """Takes lines of the tracked file; returns those that the index did not have."""
        taken = self._taker.take(lines, once=False)
        self._moved = self._moved or taken.positional
        self._unusable += taken.unusable
        return taken.fresh

    def _read_journal(self) -> None:
        while (journal := self._chunks()[1]).lines:
            lines = split_lines(journal.lines)
            self._apart = bool(self._taker.take(lines, once=True).fresh) or self._apart
            self._let_go(lines)
            self._at = Position(self._at.tracked, journal.end)
            self._report()

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

    # If git rewrote the tracked file.

    def _compare(self) -> None:
        """Brings the loose lines up to date with a rewritten tracked file."""
        # 1. Lines that the journal has are not loose.
        self._read_journal()
        tracked = read_after(self._ledger.path, Position().tracked)
        if tracked.rest:
            raise Unfit
        lines = split_lines(tracked.lines)
        lacking = self._ledger.journal.lacking(lines)
        # 2. Loose lines that are not among these are gone.
        rows = self._tables.ask("SELECT raw FROM loose")
        gone = {raw for (raw,) in rows if isinstance(raw, bytes)} - lacking
        self._taker.forget(gone)
        self._let_go(gone)
        # 3. The journal has no unusable line, so all of them are among those that it lacks.
        self._unusable = 0
        for some in _pieces([line for line in lines if line in lacking]):
            taken = self._taker.take(some, once=True)
            self._unusable += taken.unusable
            self._hold(taken.fresh)
            self._report()
        self._at, self._agreed = Position(tracked.end, self._at.journal), Position()
        # 4. Lines appended to the journal in the meantime are not loose either.
        self._read_journal()

    # A line that only the tracked file has may disappear, and then it must leave no trace. Such
    # lines are loose until the next write records them in the journal.

    def _hold(self, lines: list[bytes]) -> None:
        rows = ((raw,) for raw in lines)
        self._tables.db.executemany("INSERT OR IGNORE INTO loose VALUES (?)", rows)
        self._any_loose = self._any_loose or bool(lines)

    def _let_go(self, lines: Iterable[bytes]) -> None:
        """Removes lines from the loose ones: they are in the journal, in a segment, or gone."""
        if self._any_loose:
            rows = ((raw,) for raw in lines)
            self._tables.db.executemany("DELETE FROM loose WHERE raw = ?", rows)

    def _report(self) -> None:
        files = sum(map(size_of, (self._ledger.path, self._ledger.journal_path)))
        archived = sum(size for _, size, _ in self._ledger.archive.listing().values())
        done = self._archived_bytes + self._at.tracked.offset + self._at.journal.offset
        # Never 100 %: the commit is still to come.
        self._intake.report(min(done, archived + files), archived + files + 1)


def _archive_stamp(ledger: Ledger) -> str:
    """Returns a text that changes whenever the archive or its note does."""
    noted, listing = ledger.archive.note_stamp(), ledger.archive.listing()
    return f"{noted} {listing}" if listing else ""


def _purged(tables: Tables, ledger: Ledger) -> bool:
    """Returns whether one of the files has the size that it had, but not the content."""
    kept = tables.meta("stamps")
    if kept is None:
        return False
    return any(map(changed_in_place, map(tuple, plain_json.loads(kept)), ledger.stamps()))


def _marks(position: Position) -> Position:
    """Returns the position without its segments."""
    return Position(position.tracked, position.journal)


def _pieces(lines: list[bytes]) -> Iterator[list[bytes]]:
    return (lines[begin : begin + _SOME_LINES] for begin in range(0, len(lines), _SOME_LINES))
