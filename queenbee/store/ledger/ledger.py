"""A ledger: the tracked file that git carries, and the journal that git cannot touch.

The state is the union of the two. Each append also brings each what it lacks; a reader never
writes. Archived lines count as tracked. `docs/format.md`, "Journal" and "Archive"; ADR 0001.
"""

from __future__ import annotations

import os

from queenbee.errors import Unwritable
from queenbee.store import safe_open
from queenbee.store.files import (
    START,
    Appender,
    Chunk,
    Mark,
    read_after,
    size_of,
    split_lines,
    stamp_of,
)
from queenbee.store.ledger.archive import Archive, Archived, Segment
from queenbee.store.ledger.batch import Batch, Lines, Position
from queenbee.store.ledger.codec import decode_records, decoder, is_usable
from queenbee.store.ledger.journal import Journal, joined, unwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.core.fold import Stated
    from queenbee.store.files import Stamp


class Receipt:
    """An append that is in both files, but may not be on disk yet. The caller must `close` it."""

    __slots__ = ("_journal", "_ledger", "agreed")

    def __init__(self, ledger: Appender, journal: Appender, agreed: Position) -> None:
        self._ledger = ledger
        self._journal = journal
        self.agreed = agreed
        """Up to here both files hold the same lines. The next append compares only the rest."""

    def sync(self) -> None:
        """Returns when the append is on disk. Raises `DurabilityUnknown`.

        Only the journal is synced: it restores whatever the ledger loses.
        """
        self._journal.sync()

    def take_back(self) -> None:
        """Undoes the append. Call it only under the lock that the append was made under."""
        self._ledger.take_back()
        self._journal.take_back()

    def close(self) -> None:
        """Closes the files."""
        self._journal.close()
        self._ledger.close()


class _Compared:
    """The content of ledger and journal after a position that they agree on."""

    __slots__ = ("agreed", "base", "journal", "tracked")

    def __init__(
        self, agreed: Position, tracked: Chunk, journal: Chunk, base: Archived | None = None
    ) -> None:
        self.agreed = agreed
        self.tracked = tracked
        self.journal = journal
        self.base = base or Archived()
        """The note of the archive, if the two are compared from the beginning."""

    def lines(self) -> Lines:
        """Returns the lines to compare."""
        return Lines(self.tracked, self.base.kept + self.journal.lines)


class Ledger:
    """One kind of record on disk. Reading needs no lock; appending needs the hive's lock.

    It keeps no state between calls. Callers keep what `read` and `append` return: the position
    reached, and `agreed`, up to which both files held the same lines. It is valid as long as its
    segments are the whole archive.
    """

    def __init__(self, path: str, journal_path: str) -> None:
        self.path = path
        self.journal_path = journal_path
        self.journal = Journal(journal_path)
        self.archive = Archive(path, journal_path)

    def read(self, since: Position | None = None) -> Batch:
        """Returns the lines after a position, or all of them.

        Raises `Unreadable` if a file cannot be read safely.
        """
        if since is None:
            return self._read_all(restarted=False)
        tracked, journal = self.chunks(since)
        if tracked.restarted or journal.restarted or self.archive.listing() != since.segments:
            return self._read_all(restarted=True)
        lines = Lines(tracked, journal.lines)
        unrecorded = not set(lines.journal).issuperset(lines.tracked)
        position = Position(tracked.end, journal.end, since.segments)
        return Batch([], lines, position, restarted=False, unrecorded=unrecorded)

    def _read_all(self, *, restarted: bool) -> Batch:
        # Segments are written before they are noted, and noted before the journal grows: what is
        # read first is never newer than what is read next.
        noted = self.archive.noted(kept=True)
        listing = self.archive.listing()
        segments = [self.archive.read(name) for name in listing]
        base = usable_note(noted, {digest for _, digest in segments})
        tracked, journal = self.chunks(Position(START, base.mark))
        if journal.restarted:
            base = Archived()
            tracked, journal = self.chunks(Position())
        lines = Lines(tracked, base.kept + journal.lines)
        recorded = {*lines.journal, *split_lines(base.back)}
        unrecorded = not recorded.issuperset(lines.tracked) or any(
            digest not in base.digests for _, digest in segments
        )
        archived = [line for data, _ in segments for line in split_lines(data)]
        position = Position(tracked.end, journal.end, listing)
        return Batch(archived, lines, position, restarted=restarted, unrecorded=unrecorded)

    def append(self, lines: Sequence[bytes], agreed: Position | None = None) -> Receipt:
        """Writes the lines to journal and ledger, and heals both. Needs the hive's lock.

        Records all of the lines or none. The files are compared from `agreed` on. `Receipt.sync`
        waits for the disk after the lock is released. Raises `Unwritable`.
        """
        begins = not os.path.lexists(self.journal_path)
        self.journal.finish_interrupted()
        listing = self._settle_segments()
        found = self._compare(agreed or Position(), listing)
        gained, lost = self._difference(found)
        # 1. Both files are opened before either is written: a file that cannot be written
        #    refuses the write as a whole.
        ledger, journal = self._open_both(begins)
        receipt = Receipt(ledger, journal, found.agreed)
        try:
            # 2. Lines from elsewhere are counted before they are recorded: after a crash in
            #    between, others judge them once too often instead of never.
            if gained:
                self.journal.count_arrival()
            # 3. The journal first: its lines are recorded even if the ledger loses them.
            journal.cut(found.journal.end.offset)
            self.journal.append(journal, [*gained, *lines])
            # 4. The ledger. A torn last line keeps its bytes and gets its newline.
            torn = b"" if ledger.ends_with_newline() else b"\n"
            ledger.append(torn + joined([*lost, *lines]))
            # 5. Only now: if the announcement went earlier, half of the lines could take effect.
            self.journal.forget_intent()
            if ledger.size == found.tracked.end.offset and not found.tracked.rest:
                # Nobody has written since we compared the two.
                receipt.agreed = Position(ledger.end(), journal.end(), listing)
        except BaseException as error:
            take_back(receipt)
            if isinstance(error, OSError):
                raise unwritable(self.path, error) from error
            raise
        return receipt

    def _compare(self, agreed: Position, listing: Mapping[str, Stamp]) -> _Compared:
        """Returns the content of both files after `agreed`; all if that is no longer valid."""
        if agreed.segments == listing and agreed.journal != START:
            tracked, journal = self.chunks(agreed)
            if not (tracked.restarted or journal.restarted):
                return _Compared(agreed, tracked, journal)
        base = self.base()
        return _Compared(Position(), *self.chunks(Position(START, base.mark)), base)

    def _open_both(self, begins: bool) -> tuple[Appender, Appender]:
        journal = Appender(self.journal_path)
        journal.created = begins
        try:
            return _open_tracked(self.path), journal
        except BaseException:
            journal.close()
            raise

    def size_bytes(self) -> int:
        """Returns the size of the larger of journal and ledger, its archive included."""
        tracked = sum(size for _, size, _ in self.archive.listing().values())
        return max(tracked + size_of(self.path), size_of(self.journal_path))

    def foreign(self, *, unrecorded: bool) -> str:
        """Returns a text that changes whenever lines arrive that this machine did not append, or
        "" if there are none. All processes that see the same lines get the same text.

        `unrecorded` says whether the tracked files have lines that the journal lacks.
        """
        arrivals = self.journal.arrivals()
        if unrecorded:
            return f"{arrivals} {stamp_of(self.path)} {self.archive.listing()}"
        return str(arrivals) if arrivals else ""

    def stamps(self) -> tuple[Stamp, Stamp]:
        """Returns the stamps of the tracked file and the journal."""
        return stamp_of(self.path), stamp_of(self.journal_path)

    def stamp(self) -> tuple[object, ...]:
        """Returns a value that changes whenever one of the files does; for cheap polling."""
        return *self.stamps(), self.archive.listing()

    def chunks(self, since: Position, *, limit: int | None = None) -> tuple[Chunk, Chunk]:
        """Returns the bytes of both files after a position: for engines with an index."""
        tracked = read_after(self.path, since.tracked, limit=limit)
        return tracked, self.journal.read(since.journal, limit=limit)

    def missing(self) -> list[bytes]:
        """Returns the recorded lines that neither the tracked file nor the archive has."""
        tracked, journal = self.chunks(Position())
        there = set(split_lines(tracked.lines + tracked.rest))
        for name in self.archive.listing():
            there.update(split_lines(self.archive.read(name)[0]))
        return [line for line in split_lines(journal.lines) if line not in there]

    def _difference(self, found: _Compared) -> tuple[list[bytes], list[bytes]]:
        """Returns the usable lines that the journal lacks, and those that the ledger lost.

        Archived lines that a merge brought back are in neither list; the archive notes them.
        """
        lines = found.lines()
        if not lines.tracked:
            return [], lines.journal_only
        known = {*lines.common, *lines.journal, *split_lines(found.base.back)}
        fresh = usable_lines(dict.fromkeys(line for line in lines.tracked if line not in known))
        noted = self.archive.noted(kept=True) if fresh else None
        if noted is None or not noted.segments:
            return fresh, lines.journal_only
        gained = self.journal.lacking(fresh)
        back = [line for line in fresh if line not in gained]
        if back:
            noted.back += joined(back)
            self.archive.note(noted)
        return [line for line in fresh if line in gained], lines.journal_only

    def base(self) -> Archived:
        """Returns the note of the archive, rebuilt if it is in doubt. Needs the hive's lock."""
        noted = self.noted()
        listing = self.archive.listing()
        if noted is None and listing:
            return self._settle_anew(Archived(), listing)
        return noted or Archived()

    def noted(self) -> Archived | None:
        """Returns the note if it is about this journal, else None."""
        noted = self.archive.noted(kept=True)
        if noted is None or self.journal.read(noted.mark, limit=1).restarted:
            return None
        return noted

    def _settle_segments(self) -> dict[str, Stamp]:
        """Copies the lines of segments from elsewhere to the journal; returns the listing.

        If a segment is gone, the note is rebuilt.
        """
        listing = self.archive.listing()
        noted = self.archive.noted(kept=False)
        if noted is None and not listing:
            return listing
        if noted is None or listing != noted.stamps:
            self._settle_anew(self.base(), listing)
        return listing

    def _settle_anew(self, noted: Archived, listing: Mapping[str, Stamp]) -> Archived:
        segments, contents = {}, dict[str, bytes]()
        for name, stamp in listing.items():
            digest = noted.digest_of(stamp)
            if digest is None:
                contents[name], digest = self.archive.read(name)
            segments[name] = Segment(stamp, digest)
        base = usable_note(noted, {segment.digest for segment in segments.values()})
        come = [name for name in segments if segments[name].digest not in base.digests]
        kept, end = base.kept, base.mark
        if come:
            read = (contents.get(name) or self.archive.read(name)[0] for name in come)
            lines = dict.fromkeys(usable_lines(line for data in read for line in split_lines(data)))
            journal = self.journal.read(base.mark)
            active = split_lines(base.kept + journal.lines)
            kept = joined(line for line in active if line not in lines)
            gained = self.journal.lacking(lines)
            end = self._gain([line for line in lines if line in gained], journal.end)
        settled = Archived(end, kept, segments, base.settled_bytes, back=base.back)
        self.archive.note(settled)
        return settled

    def _gain(self, lines: list[bytes], end: Mark) -> Mark:
        """Appends lines from elsewhere to the journal; returns its new end."""
        if not lines:
            return end
        self.journal.count_arrival()
        journal = Appender(self.journal_path)
        try:
            journal.cut(end.offset)
            journal.append(joined(lines))
            return journal.end()
        finally:
            journal.close()


def usable_note(noted: Archived | None, digests: set[str]) -> Archived:
    """Returns the note if all segments that it names are there, else the empty note."""
    return noted if noted is not None and noted.digests <= digests else Archived()


def usable_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Returns the lines that hold a record."""
    found = list(lines)
    others: list[Stated] = []
    size_bytes = sum(map(len, found))
    count = sum(1 for _ in decode_records(found, size_bytes, others))
    if count + len(others) == len(found):
        return found
    decode = decoder(size_bytes)
    return [line for line in found if is_usable(line, decode)]


def _open_tracked(path: str) -> Appender:
    """Opens the tracked file, in a folder that a checkout may remove at this very moment."""
    try:
        return Appender(path)
    except Unwritable as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        try:
            safe_open.make_folder(os.path.dirname(path))
        except OSError:
            raise error from error.__cause__
        return Appender(path)


def take_back(receipt: Receipt) -> None:
    """Undoes an append that failed, and closes its files."""
    try:
        receipt.take_back()
    finally:
        receipt.close()
