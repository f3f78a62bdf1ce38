"""A ledger: the tracked file that git carries, and the journal that git cannot touch.

Every append goes to both. Git rewrites tracked files at any time (a `stash` is enough), so the
state is the union of the two: what the ledger lost is appended to it again at the next write,
what it gained (a pull, a foreign tool) enters the journal at the next write. A reader only
reads. `docs/format.md`, section "Journal"; ADR 0001.

This is the interface that other engines implement: `read(position)` and `append(lines)`.
"""

from __future__ import annotations

import os

from queenbee.errors import Unreadable, Unwritable
from queenbee.store.codec import Unusable, decoder
from queenbee.store.files import (
    START,
    Appender,
    Chunk,
    Mark,
    common_lines,
    read_after,
    read_at,
    split_lines,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_PIECE_BYTES = 4 * 1024 * 1024


class Position:
    """How far a reader has come, in the tracked file and in the journal."""

    __slots__ = ("journal", "tracked")

    def __init__(self, tracked: Mark = START, journal: Mark = START) -> None:
        self.tracked = tracked
        self.journal = journal

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and (self.tracked, self.journal) == (
            other.tracked,
            other.journal,
        )

    __hash__ = None  # type: ignore[assignment]


class Batch:
    """What was read: the tracked file's lines, then those that the journal alone has.

    `restarted` says that a file was rewritten since the position: the lines are then all there
    are, and the reader begins anew. `unended` says that no newline ends the last tracked line
    yet: what it says may change.
    """

    __slots__ = ("journal_only", "position", "restarted", "size_bytes", "tracked", "unended")

    def __init__(
        self,
        tracked: list[bytes],
        journal_only: list[bytes],
        position: Position,
        *,
        restarted: bool,
        size_bytes: int,
        unended: bool,
    ) -> None:
        self.tracked = tracked
        self.journal_only = journal_only
        self.position = position
        self.restarted = restarted
        self.size_bytes = size_bytes
        self.unended = unended


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
        self._intent_path = journal_path + ".intent"
        self._gained_path = journal_path + ".gained"
        self.unrecorded = False
        """Whether the tracked file was last seen to have lines that the journal lacks."""
        self.agreed = Position()
        """Up to here the two files were seen to hold the same lines."""

    def read(self, since: Position | None = None) -> Batch:
        """Returns the lines after a position, or all of them.

        Raises `Unreadable` where a file cannot be read safely.
        """
        since = since or Position()
        tracked, journal = self.chunks(since)
        restarted = tracked.restarted or journal.restarted
        if restarted:
            since = Position()
            tracked, journal = self.chunks(since)
        position = Position(tracked.end, journal.end)
        lines, extra = _apart(tracked.lines + tracked.rest, journal.lines)
        if restarted or since == Position():
            self.unrecorded = False
        if not set(lines.journal).issuperset(lines.tracked):
            self.unrecorded = True
        if since == self.agreed and lines.journal == lines.tracked and not tracked.rest:
            self.agreed = position
        return Batch(
            [*lines.common, *lines.tracked],
            extra,
            position,
            restarted=restarted,
            size_bytes=len(tracked.lines) + len(journal.lines),
            unended=bool(tracked.rest),
        )

    def append(self, lines: Sequence[bytes]) -> Receipt:
        """Writes the lines to journal and ledger, and heals both. Under the hive's lock only.

        All of the lines are recorded or none; the receipt waits for the disk, once the lock is
        released. Raises `Unwritable`.
        """
        begins = not os.path.lexists(self.journal_path)
        self._finish_interrupted()
        self._adopt()
        tracked, journal = self.chunks(self.agreed)
        if tracked.restarted or journal.restarted:
            self.agreed = Position()
            tracked, journal = self.chunks(self.agreed)
        gained, lost = _difference(tracked, journal)
        # 1. Both files are opened before either is written: a place that cannot be written
        #    refuses the write as a whole.
        book = Appender(self.journal_path)
        book.created = begins
        try:
            page = _open_page(self.path)
        except BaseException:
            book.close()
            raise
        receipt = Receipt(book, page)
        try:
            # 2. What came from elsewhere is counted before it is known: killed in between, it
            #    is judged once too often instead of never.
            if gained:
                self.count_foreign()
            # 3. The journal first: what it holds is recorded, whatever happens to the ledger.
            book.cut(journal.end.offset)
            self._append_to_journal(book, [*gained, *lines])
            # 4. The ledger. A torn last line keeps its bytes and gets its newline.
            torn = b"" if page.ends_with_newline() else b"\n"
            page.append(torn + _joined([*lost, *lines]))
            self.unrecorded = False
            # 5. Only now: an announcement taken back earlier would let half of the lines count.
            self._forget_intent()
            if page.size == tracked.end.offset and not tracked.rest:
                # Nobody wrote since we compared the two.
                self.agreed = Position(page.end(), book.end())
        except BaseException as error:
            _take_back(receipt)
            if isinstance(error, OSError):
                raise _unwritable(self.path, error) from error
            raise
        return receipt

    def size_bytes(self) -> int:
        """Returns the size of the larger of the two files."""
        paths = self.path, self.journal_path
        return max((os.path.getsize(path) for path in paths if os.path.exists(path)), default=0)

    def foreign(self) -> str:
        """Returns a text that changes whenever lines arrive that this machine did not append;
        "" where none ever did. Processes that see the same lines are told the same.
        """
        try:
            arrivals = os.stat(self._gained_path).st_size
        except OSError:
            arrivals = 0
        if self.unrecorded:
            return f"{arrivals} {_stamp(self.path)}"
        return str(arrivals) if arrivals else ""

    def count_foreign(self) -> None:
        """Remembers that lines arrived from elsewhere. Raises `Unwritable`."""
        try:
            with open(self._gained_path, "ab") as file:
                file.write(b".")
        except OSError as error:
            raise _unwritable(self._gained_path, error) from error

    def stamp(self) -> tuple[object, ...]:
        """Returns a value that changes whenever one of the files does; for cheap polling."""
        return _stamp(self.path), _stamp(self.journal_path)

    def chunks(self, since: Position, *, limit: int | None = None) -> tuple[Chunk, Chunk]:
        """Returns what both files hold after a position, as bytes: for engines with an index."""
        tracked = read_after(self.path, since.tracked, limit=limit)
        stop = self._intended_from()
        journal = read_after(self.journal_path, since.journal, stop=stop, limit=limit)
        if stop is None and (stop := self._intended_from()) is not None:
            # Announced while we read: half of it may be in what we have.
            journal = read_after(self.journal_path, since.journal, stop=stop, limit=limit)
        return tracked, journal

    def arrived_after(self, line: bytes) -> list[bytes]:
        """Returns the lines of the journal behind this one: what arrived after it, in order.

        The journal is read from its end, a piece at a time. Empty where the line is not there.
        """
        needle = line + b"\n"
        begin = os.path.getsize(self.journal_path) if os.path.exists(self.journal_path) else 0
        data = b""
        while begin > 0:
            step = min(_PIECE_BYTES, begin)
            begin -= step
            data = read_at(self.journal_path, begin, step) + data
            at = data.find(needle)
            if at > 0 and data[at - 1 : at] != b"\n":
                at = -1
            if at >= 0:
                return split_lines(data[at + len(needle) :])
        return []

    # Several lines at once are announced before they are written, so that a process killed
    # between the first and the last leaves none: readers stop where the announcement says, and
    # the next writer cuts the rest away.

    def _append_to_journal(self, book: Appender, lines: list[bytes]) -> None:
        data = _joined(lines)
        if len(lines) > 1:
            _write_intent(self._intent_path, book.size, len(data))
        book.append(data)

    def _adopt(self) -> None:
        """Copies a ledger that has no journal yet, as in a fresh clone, a piece at a time."""
        if os.path.exists(self.journal_path) and os.path.getsize(self.journal_path):
            return
        mark = START
        tracked = read_after(self.path, mark, limit=_PIECE_BYTES)
        if not tracked.lines:
            return
        self.count_foreign()
        book = Appender(self.journal_path)
        try:
            while tracked.lines:
                lines = split_lines(tracked.lines)
                usable = decoder(len(tracked.lines))
                book.append(_joined([line for line in lines if _is_usable(line, usable)]))
                mark = tracked.end
                tracked = read_after(self.path, mark, limit=_PIECE_BYTES)
            self.agreed = Position(mark, book.end())
        finally:
            book.close()

    def _intended_from(self) -> int | None:
        """Returns where an announced write began, while it is not complete."""
        try:
            with open(self._intent_path, "rb") as file:
                begin, size = (int(word) for word in file.read(64).split())
            journal_size = os.stat(self.journal_path).st_size
        except (OSError, ValueError):
            return None
        return None if journal_size >= begin + size else begin

    def _finish_interrupted(self) -> None:
        begin = self._intended_from()
        if begin is not None and os.path.getsize(self.journal_path) > begin:
            book = Appender(self.journal_path)
            book.cut(begin)
            book.close()
        self._forget_intent()

    def _forget_intent(self) -> None:
        try:
            os.unlink(self._intent_path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unwritable(self._intent_path, error) from error


class _Lines:
    """The lines of both files: those they begin with alike, and each one's after that."""

    __slots__ = ("common", "journal", "tracked")

    def __init__(self, common: list[bytes], tracked: list[bytes], journal: list[bytes]) -> None:
        self.common = common
        self.tracked = tracked
        self.journal = journal


def _apart(tracked: bytes, journal: bytes) -> tuple[_Lines, list[bytes]]:
    """Returns the lines of both, read once where the two begin alike, and the journal's own."""
    same = common_lines(tracked, journal)
    lines = _Lines(
        split_lines(tracked[:same]), split_lines(tracked[same:]), split_lines(journal[same:])
    )
    known = set(lines.tracked)
    return lines, [line for line in lines.journal if line not in known]


def _difference(tracked: Chunk, journal: Chunk) -> tuple[list[bytes], list[bytes]]:
    """Returns the usable lines that the journal lacks, and those that the ledger lost."""
    lines, lost = _apart(tracked.lines + tracked.rest, journal.lines)
    if not lines.tracked:
        return [], lost
    known = {*lines.common, *lines.journal}
    fresh = [line for line in dict.fromkeys(lines.tracked) if line not in known]
    usable = decoder(sum(map(len, fresh)))
    return [line for line in fresh if _is_usable(line, usable)], lost


def _is_usable(line: bytes, decode: Callable[[bytes], object]) -> bool:
    try:
        decode(line)
    except Unusable:
        return False
    return True


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


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


def _write_intent(path: str, begin: int, size: int) -> None:
    try:
        with open(path, "wb") as file:
            file.write(b"%d %d\n" % (begin, size))
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str, error: OSError) -> Unwritable:
    return Unwritable(
        f"{path} cannot be written: {error.strerror}; nothing was recorded", path=path
    )
