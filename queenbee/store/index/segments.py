"""Which segments of the archive an index has read. `docs/format.md`, "Archive"; ADR 0011."""

from __future__ import annotations

from queenbee.store.files import split_lines
from queenbee.store.ledger.archive import Archived
from queenbee.store.ledger.ledger import usable_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.store.files import Mark, Stamp
    from queenbee.store.index.tables import Tables
    from queenbee.store.ledger.ledger import Ledger

_SOME_LINES = 10_000


class Doubt(Exception):
    """The index cannot be trusted and must be rebuilt."""


class Segment:
    """A segment as the index has it."""

    __slots__ = ("digest", "held", "name", "stamp", "taken")

    def __init__(self, name: str, stamp: str, digest: str, held: bool, taken: bool) -> None:
        self.name = name
        self.stamp = stamp
        self.digest = digest
        self.held = held
        """Whether the journal is known to have its lines."""
        self.taken = taken
        """Whether its lines were read from the segment itself."""


class Segments:
    """The segments in an index, compared with those in the archive."""

    def __init__(self, tables: Tables, ledger: Ledger, take: Callable[[list[bytes]], object]):
        self._tables = tables
        self._ledger = ledger
        self._take = take
        """Called with the lines that the index may lack, some at a time."""

    def follow(self, *, anew: bool) -> bool:
        """Reads the segments that are new; returns whether any came or went since.

        Raises `Doubt` if lines may be gone with a segment.
        """
        stamp = archive_stamp(self._ledger)  # First: later changes are read next time.
        noted = self._ledger.noted() or Archived()
        known = {segment.name: segment for segment in self.known()}
        now = {
            name: self._follow_one(name, each, known.get(name), noted, anew=anew)
            for name, each in self._ledger.archive.listing().items()
        }
        for name in known.keys() - now.keys():
            # Lines that only this segment had are gone with it, and must leave no trace.
            if not known[name].held and known[name].digest not in noted.digests:
                raise Doubt
        self._tables.db.execute("DELETE FROM segments")
        self._tables.db.executemany(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?)",
            ((each.name, each.stamp, each.digest, each.held, each.taken) for each in now.values()),
        )
        self._tables.put_meta("archive", stamp)
        digests = [{name: each.digest for name, each in some.items()} for some in (known, now)]
        return digests[0] != digests[1]

    def _follow_one(
        self, name: str, stamp: Stamp, before: Segment | None, noted: Archived, *, anew: bool
    ) -> Segment:
        data = None
        if before is not None and before.stamp == str(stamp):
            digest: str | None = before.digest
        else:
            digest = noted.digest_of(stamp)
        if digest is None:
            data, digest = self._ledger.archive.read(name)
        held = digest in noted.digests
        if before is not None and before.digest == digest:
            return Segment(name, str(stamp), digest, held or before.held, before.taken)
        if before is not None and not before.held:
            raise Doubt
        # Lines in the journal are read from there; but in a new index the archive comes first.
        if anew or not held:
            lines = split_lines(data or self._ledger.archive.read(name)[0])
            for begin in range(0, len(lines), _SOME_LINES):
                self._take(lines[begin : begin + _SOME_LINES])
        return Segment(name, str(stamp), digest, held, anew or not held)

    def known(self) -> list[Segment]:
        """Returns the segments in the index."""
        rows = self._tables.ask("SELECT name, stamp, digest, held, taken FROM segments")
        return [
            Segment(str(name), str(stamp), str(digest), held == 1, taken == 1)
            for name, stamp, digest, held, taken in rows
        ]

    def ahead_of(self, mark: Mark) -> Archived | None:
        """Returns the note if it saves reading the journal from a mark on: up to the note's mark,
        the journal has only lines of segments that were read, and lines in the note.
        """
        noted = self._ledger.noted()
        read = {segment.digest for segment in self.known() if segment.taken}
        if noted is None or noted.mark.offset <= mark.offset or not noted.digests <= read:
            return None
        return noted

    def note(self) -> Archived:
        """Returns the note of the archive if the index has all of its segments, else the empty
        note.
        """
        return usable_note(self._ledger.noted(), {segment.digest for segment in self.known()})


def archive_stamp(ledger: Ledger) -> str:
    """Returns a text that changes whenever the archive or its note does."""
    noted, listing = ledger.archive.note_stamp(), ledger.archive.listing()
    return f"{noted} {listing}" if listing else ""
