"""What the tracked files have, taken into the memory; and what they lack, brought back to them.

A line that only a ledger has is *loose* until the next write records it: if git takes it away
before, it leaves no trace. `docs/format.md`, "Memory"; ADR 0042.
"""

from __future__ import annotations

import json

from queenbee.core.kinds import KINDS
from queenbee.store.codec import named
from queenbee.store.files import START, Mark, read_after, size_of, split_lines, stamp_of
from queenbee.store.memory import sqlite
from queenbee.store.memory.archive import Archive
from queenbee.store.memory.database import batches, checked, sum_of_line, whole_number
from queenbee.store.memory.folding import Folding
from queenbee.store.memory.old_journal import lines_of
from queenbee.store.memory.record_lines import heads_of, numbers_of

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.store.files import Appender, Stamp
    from queenbee.store.memory.database import Database, Progress

_CHUNK_BYTES = 4 * 1024 * 1024
_DIGITS = 20
"""Of the checksum of a tail, which has 64 bits."""
_NONE = "[]"
_UNKNOWN = -1
_CUT_OFF = -2
"""As `Noted.recorded_to`: a write that restores lines has begun, and has not said that it ended."""


class Tracked:
    """A ledger with its archive: the tracked files of one kind."""

    def __init__(self, path: str, old_journal: str) -> None:
        self.path = path
        self.archive: Archive = Archive(path)
        self.old_journal = old_journal
        """The file in which versions up to 0.2 recorded lines."""

    def stamp(self) -> tuple[object, ...]:
        """Returns a value that changes whenever one of the files does; for cheap polling."""
        return stamp_of(self.path), self.archive.listing()

    def size_bytes(self) -> int:
        """Returns how many bytes of lines there are to read."""
        return size_of(self.path) + sum(size for _, size, _ in self.archive.listing().values())


class Noted:
    """What is noted of one ledger: up to where it was read, and up to where it has all lines."""

    __slots__ = ("archive", "changed_ns", "due", "due_ns", "due_to", "is_whole", "mark", "number",
                 "recorded_to", "settled_bytes", "unusable")  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.mark: Mark = START
        self.changed_ns: int = 0
        self.is_whole: bool = True
        """Whether its last line ended: one that does not may still change."""
        self.recorded_to: int = _UNKNOWN
        """Every recorded line up to this `seq` is in the ledger or the archive, if not negative."""
        self.unusable: int = 0
        self.archive: str = _NONE
        """The listing of its archive, as JSON."""
        self.settled_bytes: int = 0
        """The size of the ledger after the last rotation."""
        self.due: Mark = START
        self.due_ns: int = 0
        self.due_to: int = 0
        """What `mark`, `changed_ns` and `recorded_to` become once the last write has appended its
        lines. That it has, the stamp of the ledger tells."""

    def is_done(self, stamp: Stamp) -> bool:
        """Returns whether a ledger with this stamp is as the last write has left it."""
        return bool(self.due_ns) and stamp == (self.due.inode, self.due.offset, self.due_ns)

    def settle(self, *, is_done: bool) -> None:
        """Lets what was due be what is noted, or forgets it."""
        if is_done:
            self.mark, self.changed_ns, self.recorded_to = self.due, self.due_ns, self.due_to
        self.due, self.due_ns, self.due_to = START, 0, 0


class Due:
    """What a ledger is to get from a write that the memory has."""

    __slots__ = ("data", "numbers", "stamp")

    def __init__(self, data: bytes, numbers: range, stamp: Stamp) -> None:
        self.data: bytes = data
        self.numbers: range = numbers
        """Of the new lines."""
        self.stamp: Stamp = stamp
        """That the ledger is noted to have then; empty if that is to be noted afterwards."""


class Moved:
    """What a rotation did: which lines went to segments, and how it left the files."""

    def __init__(self) -> None:
        self.ids: Collection[str] = ()
        """Of the records whose lines were moved."""
        self.left = b""
        """The ledger."""
        self.archive: Mapping[str, Stamp] = {}
        self.lines: int = 0
        self.sum: int = 0
        """How many lines the new segments have, and the sum of their checksums."""

    def counted(self, kind: str, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the lines of new segments, and counts them."""
        for raw in lines:
            self.lines += 1
            self.sum += sum_of_line(kind, raw)
            yield raw


class Intake:
    """Brings the memory and the tracked files of one kind in step, within a transaction."""

    def __init__(
        self, database: Database, kind: str, tracked: Tracked, progress: Progress | None = None
    ) -> None:
        self._database = database
        self._progress = progress
        self.kind = kind
        self.tracked = tracked
        self.folding: Folding = Folding(database, kind)
        self.noted: Noted = recalled(database, kind, tracked.path)
        self._is_first = False
        """Whether many lines are the first ones of this kind, and were recorded at once."""

    # From the files.

    def take_in(self, *, for_good: bool = False) -> None:
        """Takes in what the files have that is new, and forgets the loose lines that are gone.

        With `for_good`, a `record` follows: then a long history that is the first one of this kind
        is recorded at once, which saves to write each line again.
        """
        stamp = stamp_of(self.tracked.path)
        self.noted.settle(is_done=self._is_done(stamp))
        if self.tracked.size_bytes() > _CHUNK_BYTES:
            self.folding.expect_many()
            self._is_first = for_good and not self._has_lines()
        self._take_old_journal()
        self._take_archive()
        noted = self.noted
        in_place = stamp[:2] == (noted.mark.inode, noted.mark.offset) and bool(
            noted.changed_ns and stamp[2] != noted.changed_ns
        )
        chunk = read_after(self.tracked.path, noted.mark, limit=_CHUNK_BYTES)
        came_back = not noted.mark.inode and self._has_lines()
        if in_place or chunk.restarted or came_back or not noted.is_whole:
            self._compare()
        else:
            while chunk.lines or chunk.rest:
                self._grow(split_lines(chunk.lines + chunk.rest))
                noted.mark, noted.is_whole = chunk.end, not chunk.rest
                self._report()
                if chunk.rest:
                    break
                chunk = read_after(self.tracked.path, noted.mark, limit=_CHUNK_BYTES)
        # The stamp from before the read: what is written during it is read next time.
        noted.changed_ns = stamp[2] if stamp else 0
        self._save()

    def _is_done(self, stamp: Stamp) -> bool:
        """Returns whether the ledger has what was due, whatever others have appended since."""
        noted = self.noted
        if not noted.due_ns or noted.is_done(stamp):
            return bool(noted.due_ns)
        due = read_after(self.tracked.path, noted.due, stop=noted.due.offset)
        return due.end.offset == noted.due.offset and not due.restarted

    def is_in_step(self, file: Appender) -> bool:
        """Returns whether all files are as they were taken in, and this one is the ledger."""
        noted = self.noted
        if noted.is_done(file.stamp()):
            noted.settle(is_done=True)
        return (
            noted.is_whole
            and file.is_at(noted.mark, noted.changed_ns)
            and not stamp_of(self.tracked.old_journal)
            and noted.archive == json.dumps([*self.tracked.archive.listing().items()])
        )

    def record(self, lines: Sequence[bytes], file: Appender, now_ns: int) -> Due:
        """Records the loose lines of this ledger for good, and new ones; returns what the ledger
        then is to get.
        """
        self.noted.settle(is_done=False)
        lacking = self.lacking()
        self._record_loose()
        # After a crash before the ledger has them, it gets the new lines by the next write.
        before, noted = self.folding.last_line, self.noted
        noted.recorded_to = _CUT_OFF if lacking else before
        self.folding.take(lines)
        last = self.folding.last_line
        # A torn last line keeps its bytes and gets its newline.
        torn = b"" if file.ends_with_newline() else b"\n"
        data = torn + joined([*lacking, *lines])
        stamp: Stamp = ()
        if not data:
            noted.recorded_to, stamp = last, file.stamp()
        elif noted.is_whole and file.is_at(noted.mark, noted.changed_ns):
            noted.due, noted.due_ns, noted.due_to = file.mark_after(data), now_ns, last
            stamp = noted.due.inode, noted.due.offset, now_ns
        self._save()
        return Due(data, range(before + 1, last + 1), stamp)

    def _record_loose(self) -> None:
        query = "SELECT seq FROM lines WHERE kind = ? AND loose = ? AND loose != 0 ORDER BY seq"
        rows = self._database.ask(query, self.kind, self.noted.number)
        loose = [whole_number(seq) for (seq,) in rows]
        if not loose and not self._is_first:
            return
        # Whoever has read the recorded lines up to a number reads only those after it.
        query = "SELECT 1 FROM lines WHERE +kind = ? AND seq > ? AND loose = 0 LIMIT 1"
        if loose and self._database.ask(query, self.kind, loose[0]):
            self.folding.number_anew(loose)
        query = "UPDATE lines SET loose = 0 WHERE kind = ? AND loose = ? AND loose != 0"
        self._database.db.execute(query, (self.kind, self.noted.number))
        self._database.count(f"arrivals {self.kind}")
        self._look_again_elsewhere("recorded_to")

    def _has_lines(self) -> bool:
        query = "SELECT 1 FROM lines WHERE kind = ? LIMIT 1"
        return bool(self._database.ask(query, self.kind))

    def _grow(self, lines: Sequence[bytes]) -> None:
        """Takes in lines that were appended to the ledger."""
        lacking, noted = self._recorded_since(), self.noted
        # A write that was killed appended some of what it lacked: that does not arrive again.
        once = noted.recorded_to == _CUT_OFF or (noted.recorded_to >= 0 and bool(lacking))
        left = set(lacking).difference(lines)
        if lacking and not left:
            noted.recorded_to = self.folding.last_line
        elif len(left) < len(lacking):
            noted.recorded_to = _CUT_OFF
        self._take(lines, once=once)

    def _take(self, lines: Sequence[bytes], *, once: bool, archived: bool = False) -> bool:
        """Takes in lines of the files; returns whether all that are usable were new."""
        loose = 0 if self._is_first else self.noted.number
        count, unusable = self.folding.take(lines, loose=loose, once=once, archived=archived)
        if not archived:
            self.noted.unusable += unusable
        return count + unusable == len(lines)

    def _compare(self) -> None:
        """Takes in a ledger that was rewritten: what is in it, and what no longer is."""
        chunk = read_after(self.tracked.path, START)
        lines = split_lines(chunk.lines + chunk.rest)
        self._forget_loose_but(set(lines))
        self.noted.unusable = 0
        self._take(lines, once=True)
        self.noted.mark, self.noted.is_whole = chunk.end, not chunk.rest
        self.noted.recorded_to = _UNKNOWN
        self._report()

    def _forget_loose_but(self, there: set[bytes]) -> None:
        where = "kind = ? AND loose = ? AND loose != 0 AND archived = 0"
        query = f"SELECT seq, raw FROM lines WHERE {where}"  # noqa: S608
        rows = self._database.ask(query, self.kind, self.noted.number)
        gone = [whole_number(seq) for seq, raw in rows if raw not in there]
        if gone:
            self.folding.forget(gone)
            self._look_again_elsewhere("inode")

    def _look_again_elsewhere(self, column: str) -> None:
        """Has the ledgers of other worktrees compared anew: all that they have (`inode`), or all
        that they lack (`recorded_to`).
        """
        query = f"UPDATE ledgers SET {column} = -1, due_to = -1 WHERE kind = ? AND number != ?"  # noqa: S608
        self._database.db.execute(query, (self.kind, self.noted.number))

    def note_settled(self, size_bytes: int) -> None:
        """Notes the size that a rotation left."""
        self.noted.settled_bytes = size_bytes
        self._save()

    def note_moved(self, moved: Moved) -> bool:
        """Notes that lines are now in segments; returns whether that is all that happened to the
        files. Otherwise nothing is noted: they are to be taken in.
        """
        stamp, listing = stamp_of(self.tracked.path), self.tracked.archive.listing()
        chunk = read_after(self.tracked.path, START)
        if listing != moved.archive or chunk.lines + chunk.rest != moved.left:
            return False
        where = "kind = ? AND loose = 0 AND archived = 0"
        ways: list[tuple[str, tuple[object, ...]]] = [(where, (self.kind,))]
        # Where most lines were moved, one look at all of them takes the place of thousands.
        if moved.left or 2 * moved.lines < self.folding.last_line:
            heads = [*heads_of(self._database, self.kind, moved.ids).values()]
            ways = [
                (f"{where} AND {column} IN ({marks})", (self.kind, *some))
                for marks, some in batches(heads)
                for column in ("seq", "first")
            ]
        count = total = 0
        for way, values in ways:
            query = f"SELECT count(*), coalesce(sum(sum), 0) FROM lines WHERE {way}"  # noqa: S608
            [[lines, sums]] = self._database.ask(query, *values)
            count, total = count + whole_number(lines), total + whole_number(sums)
        if (count, total) != (moved.lines, moved.sum):  # The memory has others of these records.
            return False
        for way, values in ways:
            self._database.db.execute(f"UPDATE lines SET archived = 1 WHERE {way}", values)  # noqa: S608
        self.noted.mark, self.noted.is_whole = chunk.end, not chunk.rest
        self.noted.changed_ns = stamp[2] if stamp else 0
        self.noted.archive = json.dumps([*listing.items()])
        return True

    # Journals of older versions.

    def _take_old_journal(self) -> None:
        stamp = stamp_of(self.tracked.old_journal)
        key = f"journal {self.kind}"
        if not stamp or self._database.meta(key) == repr(stamp):
            return
        lines = lines_of(self.tracked.old_journal)
        self.folding.take(lines)
        self._mark(lines, "loose = 0")
        self._database.put_meta(key, repr(stamp))
        self.noted.recorded_to = _UNKNOWN

    # The archive.

    def _take_archive(self) -> None:
        """Takes in new segments. If one is gone, all that are left are read again."""
        listing = self.tracked.archive.listing()
        now = json.dumps(list(listing.items()))
        if now == self.noted.archive:
            return
        before = self._archive_before()
        names = [name for name, stamp in listing.items() if before.get(name) != stamp]
        if any(listing.get(name) != stamp for name, stamp in before.items()):
            names = [*listing]
            where = "kind = ? AND archived = 1"
            query = f"UPDATE lines SET archived = 0 WHERE {where}"  # noqa: S608
            self._database.db.execute(query, (self.kind,))
            self.noted.mark = Mark(-1, 0, 0)  # What was loose in it is gone, or in the ledger.
        for name in names:
            lines = split_lines(self.tracked.archive.read(name))
            if not self._take(lines, once=True, archived=True):
                self._mark(lines, "archived = 1")
            self._report()
        self.noted.archive = now

    def _archive_before(self) -> dict[str, Stamp]:
        try:
            listed = json.loads(self.noted.archive)
            return {str(name): tuple(stamp) for name, stamp in listed}
        except (ValueError, TypeError, AttributeError) as error:
            raise sqlite.DatabaseError("the memory has another note of the archive") from error

    def _mark(self, lines: Iterable[bytes], how: str) -> None:
        numbers = numbers_of(self._database, self.kind, _named(lines)).values()
        query = f"UPDATE lines SET {how} WHERE seq = ?"  # noqa: S608
        self._database.db.executemany(query, ((each,) for some in numbers for each in some))

    # To the files.

    def lacking(self) -> list[bytes]:
        """Returns the recorded lines that the ledger lacks, and that no segment has."""
        lines = self._recorded_since()
        if self.noted.recorded_to >= 0 and lines:
            # What is noted only saves time: nothing is appended that is there.
            lines = self._not_there(lines)
        return lines

    def lacking_at_all(self) -> list[bytes]:
        """Returns the same, whatever is noted."""
        self.noted.recorded_to = _UNKNOWN
        return self.lacking()

    def _recorded_since(self) -> list[bytes]:
        """Returns the recorded lines that came after what the ledger is noted to have; all that it
        lacks, if that is not known.
        """
        if self._is_first:
            return []
        if self.noted.recorded_to > self.folding.last_line:
            self.noted.recorded_to = _UNKNOWN
        query = (
            "SELECT raw, sum FROM lines WHERE +kind = ? AND seq > ? AND loose = 0 "
            "AND archived = 0 ORDER BY seq"
        )
        rows = self._database.ask(query, self.kind, self.noted.recorded_to)
        lines = [checked(self.kind, *row) for row in rows]
        return self._not_there(lines) if self.noted.recorded_to < 0 else lines

    def _not_there(self, lines: list[bytes]) -> list[bytes]:
        """Returns those of some lines that the ledger does not have."""
        if not lines:
            return lines
        chunk = read_after(self.tracked.path, START)
        there = set(split_lines(chunk.lines + chunk.rest))
        return [line for line in lines if line not in there]

    def differing(self, known: Collection[int]) -> int:
        """Returns the number of lines of the tracked files that are not here, and of loose lines
        that are in none; given the hashes of the lines of all records.
        """
        query = (
            "SELECT count(*) FROM lines WHERE kind = ? AND loose != 0 "
            "AND loose NOT IN (SELECT number FROM ledgers)"
        )
        [[lost]] = self._database.ask(query, self.kind)
        query = "SELECT raw FROM lines WHERE kind = ? AND loose = ? AND loose != 0"
        rows = self._database.db.execute(query, (self.kind, self.noted.number))
        loose, missing = {hash(raw) for (raw,) in rows}, set[bytes]()
        for lines in map(split_lines, self._pieces()):
            loose.difference_update(map(hash, lines))
            missing.update([raw for raw in lines if hash(raw) not in known])
        migrations = "SELECT raw FROM lines WHERE first = 0 AND kind = ?"
        missing.difference_update(raw for (raw,) in self._database.ask(migrations, self.kind))
        return whole_number(lost) + len(loose) + sum(named(raw) is not None for raw in missing)

    def _pieces(self) -> Iterator[bytes]:
        chunk = read_after(self.tracked.path, START)
        yield chunk.lines + chunk.rest
        yield from map(self.tracked.archive.read, self.tracked.archive.listing())

    # The note.

    def _save(self) -> None:
        note(self._database, self.kind, self.tracked.path, self.noted)
        self.folding.finish()

    def _report(self) -> None:
        if self._progress is not None:
            total = self.tracked.size_bytes()
            # Never 100 %: the commit is still to come.
            self._progress(min(self.noted.mark.offset, total), total + 1)


def recalled(database: Database, kind: str, path: str) -> Noted:
    """Returns what is noted of a ledger."""
    query = (
        "SELECT number, inode, offset, sum, changed_ns, is_whole, recorded_to, unusable, "
        "archive, settled_bytes, due_offset, due_sum, due_ns, due_to "
        "FROM ledgers WHERE path = ? AND kind = ?"
    )
    for row in database.ask(query, path, kind):
        number, inode, offset, checksum, changed, whole, to, unusable, archive, settled = row[:10]
        due_offset, due_sum, due_ns, due_to = row[10:]
        noted = Noted(_number_of(number))
        noted.mark = Mark(_int(inode), abs(whole_number(offset)), _decimal(checksum))
        noted.changed_ns, noted.is_whole = _int(changed), bool(whole)
        noted.recorded_to, noted.unusable = whole_number(to), whole_number(unusable)
        noted.archive, noted.settled_bytes = str(archive), whole_number(settled)
        noted.due = Mark(noted.mark.inode, whole_number(due_offset), _decimal(due_sum))
        noted.due_ns, noted.due_to = _int(due_ns), whole_number(due_to)
        return noted
    query = (
        "SELECT number FROM ledgers WHERE path = ? "
        "UNION ALL SELECT 1 + coalesce(max(number), 0) FROM ledgers"
    )
    return Noted(_number_of(database.ask(query, path)[0][0]))


def _number_of(value: object) -> int:
    """Returns the number of a ledger. 0 would stand for lines that are recorded."""
    if whole_number(value) == 0:
        raise sqlite.DatabaseError("the memory has a ledger without a number")
    return whole_number(value)


def _decimal(value: object) -> int:
    text = str(value)
    if not text.isdecimal() or len(text) > _DIGITS:
        raise sqlite.DatabaseError("the memory has other numbers than were written to it")
    return int(text)


def note(database: Database, kind: str, path: str, noted: Noted) -> None:
    """Notes how far a ledger is known."""
    mark = noted.mark
    database.db.execute(
        "INSERT OR REPLACE INTO ledgers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (noted.number, path, kind, mark.inode, mark.offset, str(mark.sum), noted.changed_ns,
         noted.is_whole, noted.recorded_to, noted.unusable, noted.archive, noted.settled_bytes,
         noted.due.offset, str(noted.due.sum), noted.due_ns, noted.due_to),
    )  # fmt: skip


def note_recorded(database: Database, kind: str, file: Appender, recorded_to: int) -> None:
    """Notes that a ledger, as it was just written, has every line up to this number. It is read
    again if others wrote to it since it was read.
    """
    noted = recalled(database, kind, file.path)
    noted.settle(is_done=False)
    noted.recorded_to = recorded_to
    if noted.is_whole and file.follows(noted.mark):
        noted.mark = file.end()
        noted.changed_ns = file.stamp()[2]
    note(database, kind, file.path, noted)


def look_at_everything_again(database: Database) -> None:
    """Has all tracked files compared anew: nothing is held of them that was noted."""
    db = database.db
    query = "UPDATE ledgers SET inode = -1, recorded_to = -1, due_ns = 0, archive = ?"
    db.execute(query, (_NONE,))
    db.execute("UPDATE lines SET archived = 0 WHERE archived != 0")
    query = (
        "SELECT kind, seq FROM lines WHERE loose != 0 AND loose NOT IN (SELECT number FROM ledgers)"
    )
    lost: dict[str, list[int]] = {}
    for kind, seq in database.ask(query):
        lost.setdefault(str(kind), []).append(whole_number(seq))
    for kind, numbers in lost.items():
        folding = Folding(database, kind)
        folding.forget(numbers)
        folding.finish()


def is_behind(database: Database, kind: str, tracked: Tracked) -> bool:
    """Returns whether the files are other than when they were taken in."""
    query = (
        "SELECT inode, offset, changed_ns, is_whole, archive, due_offset, due_ns FROM ledgers "
        "WHERE path = ? AND kind = ?"
    )
    old: Stamp = stamp_of(tracked.old_journal)
    if old and database.meta(f"journal {kind}") != repr(old):
        return True
    stamp = stamp_of(tracked.path)
    listing = tracked.archive.listing()
    for row in database.ask(query, tracked.path, kind):
        inode, offset, changed, is_whole, archive, due_offset, due_ns = row
        expected = (inode, offset, changed) if inode else ()
        if due_ns and stamp == (inode, due_offset, due_ns):
            expected = stamp
        elif stamp and not is_whole:
            expected = (inode, stamp[1], changed)
        return stamp != expected or archive != json.dumps(list(listing.items()))
    return bool(stamp or listing) or kind not in KINDS


def joined(lines: Iterable[bytes]) -> bytes:
    """Returns the lines as the content of a file."""
    return b"".join([line + b"\n" for line in lines])


def _named(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    for raw in lines:
        if (identifier := named(raw)) is not None:
            yield identifier, raw


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise sqlite.DatabaseError("the memory has other numbers than were written to it")
    return value
