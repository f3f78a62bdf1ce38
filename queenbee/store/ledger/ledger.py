"""A ledger: the tracked file that git carries, and the journal that git cannot touch.

Every append goes to both. Git rewrites tracked files at any time (a `stash` is enough), so the
state is the union of the two: what the ledger lost is appended to it again at the next write,
what it gained (a pull, a foreign tool) enters the journal at the next write. Lines that have
left the ledger for the archive count as tracked. A reader only reads. `docs/format.md`, sections
"Journal" and "Archive"; ADR 0001.

This is the interface that other engines implement: `read(position)` and `append(lines)`.
"""

from __future__ import annotations

import os

from queenbee.errors import Unreadable, Unwritable
from queenbee.store.files import (
    START,
    Appender,
    Chunk,
    Mark,
    read_after,
    size_of,
    split_lines,
)
from queenbee.store.ledger.archive import Archive, Archived, Segment
from queenbee.store.ledger.batch import Batch, Lines, Position, batch_of
from queenbee.store.ledger.codec import Unusable, decoder
from queenbee.store.ledger.journal import PIECE_BYTES, Journal, joined, unwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from queenbee.store.ledger.archive import Stamp


class Receipt:
    """An append that is in place, but may not have reached the disk yet. Owed: one `close`."""

    __slots__ = ("_book", "_page")

    def __init__(self, book: Appender, page: Appender) -> None:
        self._book = book
        self._page = page

    def sync(self) -> None:
        """Returns when the append is on disk. Raises `DurabilityUnknown`.

        Only the journal is waited for: it brings back whatever the ledger loses.
        """
        self._book.sync()

    def take_back(self) -> None:
        """Undoes the append. Only under the lock that it was made under."""
        self._page.roll_back()
        self._book.roll_back()

    def close(self) -> None:
        """Lets go of the files."""
        self._book.close()
        self._page.close()


class Ledger:
    """One kind of record on disk. Reading needs no lock; appending needs the hive's."""

    def __init__(self, path: str, journal_path: str) -> None:
        self.path = path
        self.journal_path = journal_path
        self.journal = Journal(journal_path)
        self.archive = Archive(path, journal_path)
        self.unrecorded = False
        """Whether the tracked files were last seen to have lines that the journal lacks."""
        self.agreed = Position()
        """Up to here the two files were seen to hold the same lines, as long as its segments are
        all there is of the archive."""

    def read(self, since: Position | None = None) -> Batch:
        """Returns the lines after a position, or all of them.

        Raises `Unreadable` where a file cannot be read safely.
        """
        if since is None:
            return self._read_all(restarted=False)
        tracked, journal = self.chunks(since)
        if tracked.restarted or journal.restarted or self.archive.listing() != since.segments:
            return self._read_all(restarted=True)
        position = Position(tracked.end, journal.end, since.segments)
        lines = Lines(tracked.lines + tracked.rest, journal.lines)
        if not set(lines.journal).issuperset(lines.tracked):
            self.unrecorded = True
        if since == self.agreed and lines.journal == lines.tracked and not tracked.rest:
            self.agreed = position
        return batch_of([], lines, tracked, position, restarted=False)

    def _read_all(self, *, restarted: bool) -> Batch:
        # Segments are written before they are noted, and noted before the journal goes on: what
        # is read first is then never newer than what is read behind it.
        noted = self.archive.noted(kept=True)
        listing = self.archive.listing()
        segments = [self.archive.read(name) for name in listing]
        base = usable_note(noted, {digest for _, digest in segments})
        tracked, journal = self.chunks(Position(START, base.mark))
        if journal.restarted:
            base = Archived()
            tracked, journal = self.chunks(Position())
        lines = Lines(tracked.lines + tracked.rest, base.kept + journal.lines)
        known = base.digests
        recorded = {*lines.journal, *split_lines(base.back)}
        self.unrecorded = not recorded.issuperset(lines.tracked) or any(
            digest not in known for _, digest in segments
        )
        position = Position(tracked.end, journal.end, listing)
        if self.agreed == Position() and lines.journal == lines.tracked and not tracked.rest:
            self.agreed = position
        archived = [line for data, _ in segments for line in split_lines(data)]
        return batch_of(archived, lines, tracked, position, restarted=restarted)

    def append(self, lines: Sequence[bytes]) -> Receipt:
        """Writes the lines to journal and ledger, and heals both. Under the hive's lock only.

        All of the lines are recorded or none; the receipt waits for the disk, once the lock is
        released. Raises `Unwritable`.
        """
        begins = not os.path.lexists(self.journal_path)
        self.journal.finish_interrupted()
        self._adopt()
        listing = self._settle_segments()
        tracked, journal, base = self._since_agreed(listing)
        gained, lost = self._difference(tracked, journal, base)
        # 1. Both files are opened before either is written: a place that cannot be written
        #    refuses the write as a whole.
        book, page = self._open_both(begins)
        receipt = Receipt(book, page)
        try:
            # 2. What came from elsewhere is counted before it is known: killed in between, it
            #    is judged once too often instead of never.
            if gained:
                self.journal.count_arrival()
            # 3. The journal first: what it holds is recorded, whatever happens to the ledger.
            book.cut(journal.end.offset)
            self.journal.append(book, [*gained, *lines])
            # 4. The ledger. A torn last line keeps its bytes and gets its newline.
            torn = b"" if page.ends_with_newline() else b"\n"
            page.append(torn + joined([*lost, *lines]))
            self.unrecorded = False
            # 5. Only now: an announcement taken back earlier would let half of the lines count.
            self.journal.forget_intent()
            if page.size == tracked.end.offset and not tracked.rest:
                # Nobody wrote since we compared the two.
                self.agreed = Position(page.end(), book.end(), listing)
        except BaseException as error:
            _take_back(receipt)
            if isinstance(error, OSError):
                raise unwritable(self.path, error) from error
            raise
        return receipt

    def _since_agreed(self, listing: Mapping[str, Stamp]) -> tuple[Chunk, Chunk, Archived]:
        """Returns what both files hold since they agreed, or since the archive, and then with
        what is kept before that.
        """
        agreed = self.agreed  # Read once: a thread that reads may move it on meanwhile.
        tracked, journal = self.chunks(agreed)
        known = agreed.segments == listing and agreed.journal != START
        if known and not (tracked.restarted or journal.restarted):
            return tracked, journal, Archived()
        self.agreed = Position()
        base = self.base()
        return *self.chunks(Position(START, base.mark)), base

    def _open_both(self, begins: bool) -> tuple[Appender, Appender]:
        book = Appender(self.journal_path)
        book.created = begins
        try:
            return book, _open_page(self.path)
        except BaseException:
            book.close()
            raise

    def size_bytes(self) -> int:
        """Returns the size of the larger of journal and ledger, its archive included."""
        tracked = sum(size for _, size, _ in self.archive.listing().values())
        return max(tracked + size_of(self.path), size_of(self.journal_path))

    def foreign(self) -> str:
        """Returns a text that changes whenever lines arrive that this machine did not append;
        "" where none ever did. Processes that see the same lines are told the same.
        """
        arrivals = self.journal.arrivals()
        if self.unrecorded:
            return f"{arrivals} {_stamp(self.path)} {self.archive.listing()}"
        return str(arrivals) if arrivals else ""

    def stamp(self) -> tuple[object, ...]:
        """Returns a value that changes whenever one of the files does; for cheap polling."""
        return _stamp(self.path), _stamp(self.journal_path), self.archive.listing()

    def chunks(self, since: Position, *, limit: int | None = None) -> tuple[Chunk, Chunk]:
        """Returns what both files hold after a position, as bytes: for engines with an index."""
        tracked = read_after(self.path, since.tracked, limit=limit)
        return tracked, self.journal.read(since.journal, limit=limit)

    def missing(self) -> list[bytes]:
        """Returns the recorded lines that neither the tracked file nor the archive has."""
        tracked, journal = self.chunks(Position())
        there = set(split_lines(tracked.lines + tracked.rest))
        for name in self.archive.listing():
            there.update(split_lines(self.archive.read(name)[0]))
        return [line for line in split_lines(journal.lines) if line not in there]

    def _difference(
        self, tracked: Chunk, journal: Chunk, base: Archived
    ) -> tuple[list[bytes], list[bytes]]:
        """Returns the usable lines that the journal lacks, and those that the ledger lost.

        Archived lines that a merge brought back are neither; they are noted as such.
        """
        lines = Lines(tracked.lines + tracked.rest, base.kept + journal.lines)
        if not lines.tracked:
            return [], lines.journal_only
        known = {*lines.common, *lines.journal, *split_lines(base.back)}
        fresh = _usable(dict.fromkeys(line for line in lines.tracked if line not in known))
        noted = self.archive.noted(kept=True) if fresh else None
        if noted is None or not noted.segments:
            return fresh, lines.journal_only
        gained = self.journal.lacking(fresh)
        back = [line for line in fresh if line not in gained]
        if back:
            noted.back += joined(back)
            self.archive.note(noted)
        return [line for line in fresh if line in gained], lines.journal_only

    def _adopt(self) -> None:
        """Copies what is tracked where there is no journal yet, as in a fresh clone, a piece at
        a time.
        """
        if not self.journal.is_empty():
            return
        mark = START
        tracked = read_after(self.path, mark, limit=PIECE_BYTES)
        listing = self.archive.listing()
        if not tracked.lines and not listing:
            return
        self.journal.count_arrival()
        book = Appender(self.journal_path)
        try:
            segments, seen = {}, set[bytes]()
            for name, stamp in listing.items():
                data, digest = self.archive.read(name)
                segments[name] = Segment(stamp, digest)
                # Two clones that rotated apart may have archived the same line twice.
                book.append(joined(_unseen(_usable(split_lines(data)), seen)))
            if segments:
                # The ledger is compared with what stands now, as at any other write.
                self.archive.note(Archived(book.end(), b"", segments))
                return
            while tracked.lines:
                book.append(joined(_usable(split_lines(tracked.lines))))
                mark = tracked.end
                tracked = read_after(self.path, mark, limit=PIECE_BYTES)
            self.agreed = Position(mark, book.end())
        finally:
            book.close()

    def base(self) -> Archived:
        """Returns where the journal's lines stand, noted anew where that is in doubt. Under the
        hive's lock only.
        """
        noted = self.noted()
        listing = self.archive.listing()
        if noted is None and listing:
            return self._settle_anew(Archived(), listing)
        return noted or Archived()

    def noted(self) -> Archived | None:
        """Returns what was noted, or None where nothing was, or of another journal than this."""
        noted = self.archive.noted(kept=True)
        if noted is None or self.journal.read(noted.mark, limit=1).restarted:
            return None
        return noted

    def _settle_segments(self) -> dict[str, Stamp]:
        """Takes the lines of segments that came from elsewhere into the journal; returns all that
        there are.

        Where a segment went away, the place of every line is looked for anew.
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
            lines = dict.fromkeys(_usable(line for data in read for line in split_lines(data)))
            journal = self.journal.read(base.mark)
            active = split_lines(base.kept + journal.lines)
            kept = joined(line for line in active if line not in lines)
            gained = self.journal.lacking(lines)
            end = self._gain([line for line in lines if line in gained], journal.end)
        settled = Archived(end, kept, segments, base.settled_bytes, back=base.back)
        self.archive.note(settled)
        return settled

    def _gain(self, lines: list[bytes], end: Mark) -> Mark:
        """Appends lines from elsewhere to the journal; returns where it then ends."""
        if not lines:
            return end
        self.journal.count_arrival()
        book = Appender(self.journal_path)
        try:
            book.cut(end.offset)
            book.append(joined(lines))
            return book.end()
        finally:
            book.close()


def usable_note(noted: Archived | None, digests: set[str]) -> Archived:
    """Returns what was noted if all segments that it names are there, else the empty note."""
    return noted if noted is not None and noted.digests <= digests else Archived()


def _usable(lines: Iterable[bytes]) -> list[bytes]:
    """Returns the lines that carry a record."""
    found = list(lines)
    decode = decoder(sum(map(len, found)))
    return [line for line in found if _is_usable(line, decode)]


def _unseen(lines: Iterable[bytes], seen: set[bytes]) -> Iterator[bytes]:
    """Yields the lines whose digests are not among those seen, and adds them."""
    from hashlib import blake2b

    for line in lines:
        digest = blake2b(line, digest_size=16).digest()
        if digest not in seen:
            seen.add(digest)
            yield line


def _is_usable(line: bytes, decode: Callable[[bytes], object]) -> bool:
    try:
        decode(line)
    except Unusable:
        return False
    return True


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}", path=path) from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def _open_page(path: str) -> Appender:
    """Opens the tracked file, in a folder that a checkout may take away at this very moment."""
    try:
        return Appender(path)
    except Unwritable as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError:
            raise error from error.__cause__
        return Appender(path)


def _take_back(receipt: Receipt) -> None:
    try:
        receipt.take_back()
    finally:
        receipt.close()
