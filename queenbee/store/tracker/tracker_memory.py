"""The rows of the tracker as they count: those of its file, with the ledger's changes laid over.

They are parsed once and kept in the memory. While the file has the same stamp, none of it is read;
of a file that changed, only the lines that it did not have before are parsed. `docs/format.md`,
section "Issues"; ADR 0043.
"""

from __future__ import annotations

import json

from queenbee.core.beads import supersedes
from queenbee.core.fold import Table
from queenbee.core.kinds import ISSUES
from queenbee.core.row_edits import as_row, difference, laid_over
from queenbee.store.codec import (
    decode,
    decode_exactly,
    decode_records,
    loads_for,
    lost_precision,
    pack,
    without_collection,
)
from queenbee.store.files import START, read_after, settled_stamp, split_lines
from queenbee.store.issues_file import exactly, unreadable_in, unreadable_row
from queenbee.store.memory import sqlite
from queenbee.store.memory.database import batches, checked, sum_of_line, whole_number
from queenbee.store.memory.folding import Folding
from queenbee.store.memory.tables import table_of
from queenbee.store.tracker.issue_owner import owner_in

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from queenbee.core.fold import Entry, Fields, Stated
    from queenbee.store.memory.database import Database
    from queenbee.store.memory.memory import Memory

    Row = Mapping[str, object]
    Found = TypeVar("Found")

_KNOWN = "SELECT id, filed, base, torn FROM issue_rows"
_UNKNOWN = b""
"""As `base`: nobody knows what the file had before."""


class _Row:
    """One row of the table."""

    __slots__ = ("base", "filed", "is_torn")

    def __init__(self, filed: bytes | None, base: bytes | None, *, is_torn: bool) -> None:
        self.filed = filed
        """The line of the file, or None."""
        self.base = base
        """What the file had when nothing in it was news; None if that is what it has now."""
        self.is_torn = is_torn
        """Whether the file has only a line of it that cannot be read."""


class TrackerMemory:
    """The rows of one tracker's file, as of the last `refresh`. Safe for threads.

    `refresh` expects that of the ledger first.
    """

    def __init__(self, memory: Memory, path: str, beads_dir: str) -> None:
        self.path = path
        self._beads_dir = beads_dir
        self._memory = memory
        self._database = memory.database
        self.number: int = 0
        """Which of the trackers of the memory it is."""
        self.version: tuple[str, int] | None = None
        """Changes whenever a row does."""
        self.has_settled: bool = False
        """Whether the file would have another stamp if it were written now."""
        self.unusable_lines: list[int] = []
        """The numbers of the lines of the file that are neither an issue nor known bookkeeping."""
        self.is_anonymous: bool = False
        """Whether one of them may be the row of an issue, but does not show of which."""

    # Taking in.

    def refresh(self) -> None:
        """Takes in what is new in the file and the ledger. Raises `Unreadable`."""
        self._memory.make_room(self.path)
        self._memory.asked(lambda: _as_made(self._refreshed))

    def _refreshed(self) -> None:
        stamp, is_settled = settled_stamp(self.path)
        is_owned = self.is_owned()
        ledger = [self._database.number(f"{each} {ISSUES}") for each in ("born", "change")]
        expected = json.dumps([*stamp, is_owned, *ledger])
        noted = self._noted()
        if noted is None or noted[1] != expected:
            with self._database.turn():
                noted = self._noted()
                if noted is None or noted[1] != expected:
                    self._take_in(stamp, noted, expected, is_settled=is_settled, is_owned=is_owned)
                    noted = self._noted()
            self._database.shorten_log()
        assert noted is not None
        self.has_settled = is_settled
        number, _, version, lines, is_anonymous = noted
        self.number = whole_number(number)
        self.version = self._database.identity(), whole_number(version)
        self.unusable_lines = json.loads(str(lines))
        self.is_anonymous = bool(is_anonymous)

    def _asked(self, ask: Callable[[], Found]) -> Found:
        """Returns what a question about the rows brings. If another memory took the place of a
        damaged one, the rows are taken in there first.
        """
        found = self._memory.asked(lambda: _as_made(ask))
        if self.version is not None and self._database.identity() != self.version[0]:
            self.refresh()
            found = self._memory.asked(lambda: _as_made(ask))
        return found

    def is_owned(self) -> bool:
        """Returns whether another program writes the tracker: then the ledger says nothing."""
        return owner_in(self._beads_dir) is not None

    def _noted(self) -> tuple[object, ...] | None:
        query = "SELECT number, state, version, unusable, anonymous FROM trackers WHERE path = ?"
        rows = self._database.ask(query, self.path)
        return rows[0] if rows else None

    def _take_in(
        self,
        stamp: Sequence[int],
        noted: tuple[object, ...] | None,
        expected: str,
        *,
        is_settled: bool,
        is_owned: bool,
    ) -> None:
        db = self._database.db
        if noted is None:
            query = "INSERT INTO trackers VALUES (NULL, ?, '', 0, 0, '[]', 0)"
            self.number = db.execute(query, (self.path,)).lastrowid or 0
        else:
            self.number = whole_number(noted[0])
        before = json.loads(str(noted[1])) if noted is not None and noted[1] else []
        changed: dict[str, _Row] = {}
        rows: list[Stated] = []
        if before[:4] != [*stamp]:
            changed, rows = self._of_file()
        *_, was_owned, born, change = before or (None, None, None)
        ids = self._of_ledger(born, change, everything=was_owned is not is_owned)
        changed.update(self._known([each for each in ids if each not in changed]))
        laying = _Laying(self._database, self.number, is_owned=is_owned)
        version = whole_number(noted[2]) + 1 if noted is not None else 1
        laying.store(changed, rows, version)
        if not is_settled:
            expected = json.dumps(["", *json.loads(expected)[1:]])
        query = "UPDATE trackers SET state = ?, version = ? WHERE number = ?"
        db.execute(query, (expected, version, self.number))

    def _of_file(self) -> tuple[dict[str, _Row], list[Stated]]:
        """Returns the rows that differ from those of before, and the lines that were parsed."""
        chunk = read_after(self.path, START)
        data = chunk.lines + chunk.rest if chunk.rest else chunk.lines
        lines = split_lines(data)
        query = f"{_KNOWN} WHERE number = ?"
        known = {
            str(row[0]): _Row(row[1], row[2], is_torn=bool(row[3]))
            for row in self._database.db.execute(query, (self.number,))
        }
        names = {row.filed: key for key, row in known.items() if row.filed is not None}
        fresh = [line for line in lines if line not in names]
        with without_collection(len(data)):
            others: list[Stated] = []
            parsed = [*decode_records(fresh, len(data), others)]
        there = _newest(lines, names, dict([*parsed, *others]))
        torn = self._note_unusable(data, there, len(fresh) - len(parsed) - len(others))
        changed: dict[str, _Row] = {}
        for key, line in there.items():
            row = known.get(key)
            if row is None:
                changed[key] = _Row(line, _UNKNOWN, is_torn=False)
            elif row.filed != line or row.is_torn:
                changed[key] = _Row(line, _base(row), is_torn=False)
        for key, row in known.items():
            if key not in there and (row.filed is not None or row.is_torn != (key in torn)):
                base = row.filed if row.base is None else row.base
                changed[key] = _Row(None, base, is_torn=key in torn)
        changed.update({key: _Row(None, None, is_torn=True) for key in torn - known.keys()})
        return changed, parsed

    def _note_unusable(self, data: bytes, there: Collection[str], count: int) -> set[str]:
        """Notes the lines that cannot be read; returns the ids that only such lines have."""
        numbers, torn, is_anonymous = list[int](), set[str](), False
        if count:
            found = unreadable_in(data)
            numbers = [number for number, _, _ in found]
            torn = {key for _, key, _ in found if key is not None and key not in there}
            is_anonymous = any(key is None and not is_mark for _, key, is_mark in found)
        query = "UPDATE trackers SET unusable = ?, anonymous = ? WHERE number = ?"
        values = (json.dumps(numbers), is_anonymous, self.number)
        self._database.db.execute(query, values)
        return torn

    def _of_ledger(self, born: object, change: object, *, everything: bool) -> list[str]:
        """Returns the ids of the records that changed since, in that order."""
        ask, rows = self._database.ask, list[tuple[object, ...]]()
        if everything or born != self._database.number(f"born {ISSUES}"):
            where = "number = ?" if everything else "number = ? AND kept = 1"
            query = f"SELECT id FROM issue_rows WHERE {where} ORDER BY rowid"  # noqa: S608
            rows, change = ask(query, self.number), -1
        query = f"SELECT id FROM {table_of(ISSUES)} WHERE change > ? ORDER BY change"  # noqa: S608
        return [str(each) for (each,) in dict.fromkeys([*rows, *ask(query, change)])]

    def _known(self, ids: Collection[str]) -> dict[str, _Row]:
        found = {each: _Row(None, None, is_torn=False) for each in ids}
        for marks, some in batches([*ids]):
            query = f"{_KNOWN} WHERE number = ? AND id IN ({marks})"
            for key, filed, base, torn in self._database.db.execute(query, (self.number, *some)):
                found[key] = _Row(filed, base, is_torn=bool(torn))
        return found

    # Asking, once refreshed.

    def rows(self, ids: Collection[str], *, exact: bool = False) -> dict[str, Fields]:
        """Returns the rows of these issues that there are, by id; `exact` ones are for writing
        back: long integers keep every digit, and a row that cannot be read is none.
        """
        found: dict[str, Fields] = {}
        for marks, some in batches([*ids]):
            found.update(self._rows(f"AND id IN ({marks})", *some, exact=exact))
        return found

    def everything(self, *, exact: bool = False) -> dict[str, Fields]:
        """Returns all rows, by id, in the order in which they were first seen."""
        return self._rows("ORDER BY rowid", exact=exact)

    def _rows(self, where: str, *values: object, exact: bool) -> dict[str, Fields]:
        where = f"{'AND torn = 0 ' if exact else ''}{where}"
        query = f"SELECT id, coalesce(laid, filed), sum FROM issue_rows WHERE number = ? {where}"  # noqa: S608

        def found() -> dict[str, Fields]:
            rows = self._database.ask(query, self.number, *values)
            raws = {str(key): checked(_sums(str(key)), raw, total) for key, raw, total in rows}
            size_bytes = sum(map(len, raws.values()))
            with without_collection(size_bytes):
                read = _reader(size_bytes)
                if exact:
                    return {key: exactly(raw, read) for key, raw in raws.items()}
                return {key: read(raw) for key, raw in raws.items()}

        return self._asked(found)

    def ids(self) -> list[str]:
        """Returns the ids of all issues, tombstones included."""
        return self._ids("1")

    def has(self, issue_id: str) -> bool:
        """Returns whether there is a row of an issue, a tombstone included."""
        query = "SELECT 1 FROM issue_rows WHERE number = ? AND id = ?"
        return bool(self._asked(lambda: self._database.ask(query, self.number, issue_id)))

    @property
    def is_empty(self) -> bool:
        """Whether there is no row at all."""
        query = "SELECT 1 FROM issue_rows WHERE number = ? LIMIT 1"
        return not self._asked(lambda: self._database.ask(query, self.number))

    def changed_since(self, version: int) -> list[str] | None:
        """Returns the issues whose rows changed after a version; None if a row went."""
        query = "SELECT gone FROM trackers WHERE number = ?"
        [[gone]] = self._asked(lambda: self._database.ask(query, self.number))
        if whole_number(gone) > version:
            return None
        query = "SELECT id FROM issue_rows WHERE number = ? AND change > ?"
        rows = self._asked(lambda: self._database.ask(query, self.number, version))
        return [str(each) for (each,) in rows]

    # What the ledger and the file lack of each other.

    def unkept(self) -> list[str]:
        """Returns the issues that only the file has."""
        return self._ids("kept = 0 AND torn = 0")

    def theirs(self) -> list[str]:
        """Returns the issues of the ledger that another program has changed in the file since."""
        return self._ids("theirs = 1")

    def like(self, *patterns: str) -> list[str]:
        """Returns the issues whose row as a text is like one of these patterns of SQL's GLOB."""
        one = "cast(coalesce(laid, filed) AS TEXT) GLOB ?"
        return self._ids(f"({' OR '.join([one] * len(patterns))})", *patterns)

    def _ids(self, where: str, *values: object) -> list[str]:
        query = f"SELECT id FROM issue_rows WHERE number = ? AND {where} ORDER BY rowid"  # noqa: S608
        rows = self._asked(lambda: self._database.ask(query, self.number, *values))
        return [str(each) for (each,) in rows]

    @property
    def has_unfiled(self) -> bool:
        """Whether the file lacks something that counts."""
        return bool(self._ids("laid IS NOT NULL AND torn = 0"))

    def unfiled(self) -> list[tuple[Fields, Fields | None]]:
        """Returns the rows that the file has otherwise, or lacks, each with what it has."""
        where = "number = ? AND laid IS NOT NULL AND torn = 0"
        query = f"SELECT id, laid, sum, filed FROM issue_rows WHERE {where} ORDER BY rowid"  # noqa: S608
        read = _reader(0)

        def found() -> list[tuple[Fields, Fields | None]]:
            rows = self._database.ask(query, self.number)
            return [
                (
                    exactly(checked(_sums(str(key)), laid, total), read),
                    exactly(filed, read) if isinstance(filed, bytes) else None,
                )
                for key, laid, total, filed in rows
            ]

        return self._asked(found)


class _Laying:
    """Lays the records of a ledger over rows, and writes what comes of it."""

    def __init__(self, database: Database, number: int, *, is_owned: bool) -> None:
        self._database = database
        self._number = number
        self._is_owned = is_owned

    def store(self, changed: Mapping[str, _Row], parsed: Iterable[Stated], version: int) -> None:
        """Writes these rows; `parsed` are lines that need not be parsed again."""
        fields = dict(parsed) if len(changed) > 1 else {}
        gone: list[tuple[int, str]] = []
        rows: list[tuple[object, ...]] = []
        for some in _some([*changed]):
            entries = {} if self._is_owned else self._entries(some)
            for key in some:
                row = self._laid(key, changed[key], entries.get(key), fields, version)
                if row is None:
                    gone.append((self._number, key))
                else:
                    rows.append(row)
        db = self._database.db
        if gone:
            query = "UPDATE trackers SET gone = ? WHERE number = ?"
            db.execute(query, (version, self._number))
        db.executemany("DELETE FROM issue_rows WHERE number = ? AND id = ?", gone)
        db.executemany(_UPSERT, rows)

    def _entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        table = Folding(self._database, ISSUES).known(ids)
        return {each: entry for each in ids if (entry := table.entry(each)) is not None}

    def _laid(
        self,
        key: str,
        row: _Row,
        entry: Entry | None,
        parsed: Mapping[bytes, Fields],
        version: int,
    ) -> tuple[object, ...] | None:
        """Returns the values of a row of the table; None if there is none any more."""
        if entry is None:
            if row.filed is None and not row.is_torn:
                return None
            laid = None if row.filed is not None else pack(unreadable_row(key))
            raw = laid if row.filed is None else row.filed
            total = sum_of_line(_sums(key), raw or b"")
            return (self._number, key, row.filed, None, laid, total, False, False, row.is_torn,
                    version)  # fmt: skip
        counts, news = _counting(row, entry, parsed)
        base = row.base if news or row.filed is None else None
        raw = row.filed if counts is None else counts
        assert raw is not None
        total = sum_of_line(_sums(key), raw)
        return (self._number, key, row.filed, base, counts, total, True, news, False, version)


def _counting(row: _Row, entry: Entry, parsed: Mapping[bytes, Fields]) -> tuple[bytes | None, bool]:
    """Returns the row that counts, None if it is the file's, and whether the file has news."""
    fields, history = entry.fields, [{**each.fields, "rev": each.rev} for each in entry.lines]
    if lost_precision(fields):
        table = Table()
        for each in entry.arrived:
            table.add(each, decode_exactly(each))
        fields = table.get(str(fields["id"])) or fields
    kept = as_row(fields)
    if row.filed is None:
        return pack(kept), False
    filed = parsed.get(row.filed) or decode(row.filed)
    if lost_precision(filed):
        filed = decode_exactly(row.filed)
    if filed == kept:
        return None, False
    base = decode(row.base) if row.base else filed if row.base is None else None
    laid = laid_over(filed, kept, history, base)
    same = not difference(filed, laid.row)
    return None if same else pack(laid.row), bool(laid.theirs)


_UPSERT = (
    "INSERT INTO issue_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number, id) DO "
    "UPDATE SET filed = excluded.filed, base = excluded.base, laid = excluded.laid, "
    "sum = excluded.sum, kept = excluded.kept, theirs = excluded.theirs, torn = excluded.torn, "
    "change = CASE WHEN coalesce(excluded.laid, excluded.filed) IS "
    "coalesce(issue_rows.laid, issue_rows.filed) THEN issue_rows.change ELSE excluded.change END"
)
_AT_ONCE = 500


def _as_made(ask: Callable[[], Found]) -> Found:
    """Returns what a question brings. What nobody here wrote is damage: `DatabaseError`."""
    try:
        return ask()
    except (ValueError, TypeError, KeyError) as error:
        raise sqlite.DatabaseError("the memory has other rows than were made") from error


def _sums(issue_id: str) -> str:
    """Returns what the checksum of an issue's row is made with, besides the row."""
    return f"row of {issue_id}"


def _reader(size_bytes: int) -> Callable[[bytes], Fields]:
    """Returns what reads rows of the table, which are known to be rows; they may be too large for
    a line.
    """
    return loads_for(size_bytes)  # type: ignore[return-value]


def _some(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(ids), _AT_ONCE):
        yield ids[begin : begin + _AT_ONCE]


def _base(row: _Row) -> bytes:
    """Returns what the file had when nothing in it was news, now that it has another row."""
    if row.base is not None:
        return row.base
    return _UNKNOWN if row.filed is None else row.filed


def _newest(
    lines: Iterable[bytes], known: Mapping[bytes, str], parsed: Mapping[bytes, Fields]
) -> dict[str, bytes]:
    """Returns the line of each issue that counts, by id."""
    found: dict[str, bytes] = {}
    for line in lines:
        key = known.get(line)
        if key is None:
            fields = parsed.get(line)
            identifier = fields.get("id") if fields is not None else None
            if not isinstance(identifier, str) or not identifier:
                continue
            key = identifier
        other = found.get(key)
        if other is None or other == line or supersedes(decode(line), decode(other)):
            found[key] = line
    return found
