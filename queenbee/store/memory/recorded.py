"""The questions that services ask about one kind of record, answered by the memory.

One row holds the record that the lines of an id fold to, with the columns that are queried.
"""

from __future__ import annotations

from queenbee.core.fold import Table, explicit_rev
from queenbee.core.ids import KEY_LENGTH, end_key, shortest_end, spellings
from queenbee.core.kinds import kind_of
from queenbee.core.timestamps import format_ms
from queenbee.store.codec import decode, decode_exactly, decode_records, unpack
from queenbee.store.memory import sqlite
from queenbee.store.memory.database import batches, checked, sum_of, whole_number
from queenbee.store.memory.record_lines import heads_of, lines_of, numbers_of
from queenbee.store.memory.tables import table_of

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.fold import Fields, Key, Line, Stated
    from queenbee.store.memory.memory import Memory

    Cursor = tuple[int, int]
    """How many changes a follower has seen, and of which memory."""

MANY = 6
"""Ids that a part names before it is enough to say that it names too many."""
_PAGE = 10_000
"""Lines that one query brings."""
_FLAGS = frozenset({"read", "deleted"})
_LAST = "\U0010ffff"
"""Sorts after whatever may follow in an id."""


class Recorded:
    """The folded records of one kind, as of the last `refresh`. Safe for threads."""

    def __init__(self, kind: str, memory: Memory) -> None:
        self.kind = kind
        self._kind = kind_of(kind)
        self._memory = memory
        self._database = memory.database
        self._name = table_of(kind)
        self._table = f"{self._name} AS r LEFT JOIN lines AS l ON l.seq = r.told"
        self._row = "r.body IS NULL, coalesce(r.body, l.raw), coalesce(r.body_sum, l.sum)"
        self._checked_at: object = None
        self._in_effect: dict[str, object] = {}
        """What active grants hold, by their ids."""

    def refresh(self) -> None:
        """Reads what was appended since the last call. Raises `Unreadable`."""
        self._memory.refresh(self.kind)
        self._memory.asked(self._check_grants)

    @property
    def unusable(self) -> int:
        """The number of lines that hold no record."""
        return self._memory.unusable(self.kind)

    @property
    def migrations(self) -> list[Fields]:
        """The ledger's `_migration` lines."""
        query = "SELECT raw FROM lines WHERE first = 0 AND kind = ? ORDER BY seq"
        return [decode(raw) for (raw,) in self._ask(query, self.kind) if isinstance(raw, bytes)]

    @property
    def is_unrecorded(self) -> bool:
        """Whether the tracked files have lines that no write has recorded."""
        query = "SELECT 1 FROM lines WHERE kind = ? AND loose != 0 LIMIT 1"
        return bool(self._ask(query, self.kind))

    def foreign(self) -> str:
        """Returns a text that changes whenever lines arrive that this clone did not write, or ""
        if there are none. All processes that see the same lines get the same text.
        """
        arrivals = self._database.number(f"arrivals {self.kind}")
        query = "SELECT count(*), max(seq) FROM lines WHERE kind = ? AND loose != 0"
        [[count, last]] = self._ask(query, self.kind)
        return f"{arrivals} {count} {last}" if count else str(arrivals or "")

    def get(self, identifier: str) -> Fields | None:
        """Returns the folded fields of a record, or None."""
        query = f"SELECT {self._row} FROM {self._table} WHERE r.end_key = ? AND r.id = ?"  # noqa: S608
        asked = end_key(identifier), identifier
        found = self._fields(query, *asked, grants=lambda: {identifier} & {*self._in_effect})
        return found[0] if found else None

    def several(self, ids: Iterable[str]) -> Iterator[Fields]:
        """Yields the folded fields of those of some records that are there."""
        for marks, some in batches(sorted(ids)):
            where = f"r.end_key IN ({marks}) AND r.id IN ({marks})"
            query = f"SELECT {self._row} FROM {self._table} WHERE {where}"  # noqa: S608
            yield from self._fields(query, *(end_key(str(each)) for each in some), *some)

    def exact(self, identifier: str) -> Fields | None:
        """Returns the fields for writing back: long integers keep every digit."""
        table = Table(self._kind.aliases)
        for raw in self._raws(identifier):
            table.add(raw, decode_exactly(raw))
        return table.get(identifier)

    def before(self, identifier: str, rev: int) -> Fields | None:
        """Returns what the fields of a record were before a revision, for writing back, or None."""
        table = Table(self._kind.aliases)
        for raw in self._raws(identifier):
            fields = decode_exactly(raw)
            if (explicit_rev(fields) or 0) < rev:
                table.add(raw, fields)
        return table.get(identifier)

    def first_line(self, identifier: str) -> bytes | None:
        """Returns the line that created a record, as the ledger has it."""
        lines = self._lines(identifier)
        return lines[0].raw if lines else None

    def last_key(self, identifier: str) -> Key:
        """Returns what sorts the line of a record that counts last."""
        return self._lines(identifier)[-1].key

    def history(self, identifier: str) -> list[Fields]:
        """Returns every line of a record in the order of the fold, each with its `rev`."""
        return [{**line.fields, "rev": line.rev} for line in self._lines(identifier)]

    def lines_after(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Yields the recorded lines after a number, each with its own, in order of arrival."""
        where = "+kind = ? AND seq > ? AND loose = 0"
        query = f"SELECT seq, raw FROM lines WHERE {where} ORDER BY seq LIMIT {_PAGE}"  # noqa: S608
        while rows := self._ask(query, self.kind, number):
            for seq, raw in rows:
                number = whole_number(seq)
                if isinstance(raw, bytes):
                    yield number, raw

    def arrived_after(self, line: bytes) -> list[bytes]:
        """Returns the recorded lines that arrived after this one, in order; none if it never
        arrived.
        """
        found = self._numbers([line]).get(line)
        return [raw for _, raw in self.lines_after(max(found))] if found else []

    def lacking(self, lines: Sequence[bytes]) -> list[bytes]:
        """Returns those of some lines that are usable and never arrived, each once."""
        known = self._numbers(lines)
        return [line for line, numbers in known.items() if not numbers]

    def _numbers(self, lines: Sequence[bytes]) -> dict[bytes, list[int]]:
        """Returns the numbers under which those of some lines arrived that are usable."""
        others: list[Stated] = []
        stated = [*decode_records(lines, sum(map(len, lines)), others)]
        asked = [(str(fields["id"]), raw) for raw, fields in stated]
        asked += [("", raw) for raw, _ in others]
        found = self._memory.asked(lambda: numbers_of(self._database, self.kind, asked))
        return {raw: found.get(raw, []) for _, raw in asked}

    def named(self, part: str) -> list[str]:
        """Returns the ids, sorted and at most six, that end in a part; if there are none, those
        that begin with it, else those that contain it. Its case only counts if it must.
        """
        texts = [*spellings(part)]
        return next(filter(None, map(self._ending, texts)), None) or self._having(texts)

    def _ending(self, text: str) -> list[str]:
        key = end_key(text)
        where = "end_key >= ? AND end_key < ?"
        values: list[object] = [key, key + _LAST]
        if len(text) > KEY_LENGTH:
            where, values = f"{where} AND substr(id, ?) = ?", [*values, -len(text), text]
        return self._ids(where, *values)

    def _having(self, texts: Sequence[str]) -> list[str]:
        """Returns the ids that begin with the first of these texts, else with the next one; else
        those that contain it. All ids are looked through, once.
        """
        has = [f"instr(id, ?{number})" for number in range(1, len(texts) + 1)]
        ways = [*(f"{each} = 1" for each in has), *has]
        rank = " ".join(f"WHEN {way} THEN {number}" for number, way in enumerate(ways))
        rows = self._ask(
            f"SELECT CASE {rank} END AS way, id FROM {self._name} "  # noqa: S608
            f"WHERE {' OR '.join(has)} ORDER BY way, id LIMIT {MANY}",
            *texts,
        )
        return [str(identifier) for way, identifier in rows if way == rows[0][0]]

    def _ids(self, where: str, *values: object) -> list[str]:
        query = f"SELECT id FROM {self._name} WHERE {where} ORDER BY id LIMIT {MANY}"  # noqa: S608
        return [str(identifier) for (identifier,) in self._ask(query, *values)]

    def short_id(self, identifier: str) -> str:
        """Returns the shortest end of an id that no other id of this kind has."""
        key, keys = end_key(identifier), f"end_key) FROM {self._name} WHERE end_key"
        rows = self._ask(
            f"SELECT max({keys} < ? UNION ALL SELECT min({keys} > ? UNION ALL SELECT * FROM "  # noqa: S608
            f"(SELECT end_key FROM {self._name} WHERE end_key = ? LIMIT 1 OFFSET 1)",
            key,
            key,
            key,
        )
        return shortest_end(identifier, [str(other) for (other,) in rows if other is not None])

    def select(
        self,
        equals: Mapping[str, object],
        *,
        since_ms: int | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        differs: Mapping[str, object] | None = None,
        lacks: str | None = None,
    ) -> list[Fields]:
        """Returns the records that are not deleted and have these values, by age.

        A flag that is absent is false. `differs` are values that the records must not have, and
        `lacks` is a mark (see `Kind.marks`) that they must not have.
        """
        where, values = self._where({**equals, "deleted": False})
        if since_ms is not None:
            where += " AND created_ms >= ?"
            values.append(since_ms)
        for name, value in (differs or {}).items():
            assert name in self._kind.columns, name
            where += f' AND "{name}" IS NOT ?'
            values.append(value)
        if lacks is not None:
            where += (
                " AND NOT EXISTS (SELECT 1 FROM marks AS m "
                "WHERE m.kind = ? AND m.id = r.id AND m.name = ?)"
            )
            values += [self.kind, lacks]
        way = "DESC" if newest_first else "ASC"
        return self._fields(
            f"SELECT {self._row} FROM {self._table} WHERE {where} "  # noqa: S608 - names of our own
            f"ORDER BY created_ms {way}, r.id {way} LIMIT {-1 if limit is None else int(limit)}",
            *values,
            # Some of them may be left out on purpose, if more is asked than who holds a thing.
            grants=None if limit or since_ms or differs or lacks else lambda: self._granted(equals),
        )

    def dated_after(self, column: str, after_ms: int, equals: Mapping[str, object]) -> list[Fields]:
        """Returns the records that are not deleted, have these values, and may be dated more than
        a day after an instant, in a column or by their birth; by age.
        """
        where, values = self._where({**equals, "deleted": False})
        # By the day: a text may name the instant in any time zone.
        where += f' AND ("{column}" > ? OR created_ms > ?)'
        query = f"SELECT {self._row} FROM {self._table} WHERE {where} ORDER BY created_ms, r.id"  # noqa: S608
        return self._fields(query, *values, format_ms(after_ms)[:10], after_ms)

    def last(self, column: str, equals: Mapping[str, object], limit: int) -> list[Fields]:
        """Returns the records that are not deleted, have these values, and are the last by a
        column; the last one first.
        """
        where, values = self._where({**equals, "deleted": False})
        query = f'SELECT {self._row} FROM {self._table} WHERE {where} ORDER BY "{column}" DESC'  # noqa: S608
        return self._fields(f"{query}, r.id DESC LIMIT {int(limit)}", *values)

    def everything(self, since_ms: int | None = None) -> list[Fields]:
        """Returns all records, or those created since then, deleted ones included, in no particular
        order.
        """
        query = f"SELECT {self._row} FROM {self._table}"  # noqa: S608
        if since_ms is None:
            return self._fields(query)
        return self._fields(f"{query} WHERE created_ms >= ?", since_ms)

    def project(
        self,
        columns: Sequence[str],
        equals: Mapping[str, object],
    ) -> list[tuple[object, ...]]:
        """Returns some fields of the records with these values, in no particular order."""
        where, values = self._where(equals)
        if not {"id", *self._kind.columns}.issuperset(columns):
            query = f"SELECT {self._row} FROM {self._table} WHERE {where}"  # noqa: S608
            rows = self._fields(query, *values)
            return [tuple(value_of(fields, name) for name in columns) for fields in rows]
        names = ", ".join(f'"{column}"' for column in columns)
        return self._ask(f"SELECT {names} FROM {self._name} AS r WHERE {where}", *values)  # noqa: S608

    def count(self, equals: Mapping[str, object]) -> int:
        """Returns how many records have these values."""
        where, values = self._where(equals)
        rows = self._ask(f"SELECT count(*) FROM {self._name} AS r WHERE {where}", *values)  # noqa: S608
        return whole_number(rows[0][0])

    def distinct(self, column: str) -> set[object]:
        """Returns the values of a field."""
        assert column in self._kind.columns
        if all(index[0] != column for index in self._kind.indexes):
            rows = self._ask(f'SELECT DISTINCT "{column}" FROM {self._name}')  # noqa: S608
        else:
            # From one value to the next in the SQL index; DISTINCT would read all of it.
            least = f'(SELECT min("{column}") FROM {self._name}'  # noqa: S608
            rows = self._ask(
                f"WITH RECURSIVE each(value) AS (SELECT * FROM {least}) UNION ALL "  # noqa: S608
                f'SELECT {least} WHERE "{column}" > value) FROM each WHERE value IS NOT NULL) '
                "SELECT value FROM each WHERE value IS NOT NULL UNION "
                f'SELECT NULL WHERE EXISTS (SELECT 1 FROM {self._name} WHERE "{column}" IS NULL)'
            )
        return {value for (value,) in rows}

    def greatest(self, column: str) -> str:
        """Returns the greatest text in a field, or ""."""
        assert column in self._kind.columns
        query = f'SELECT max("{column}") FROM {self._name} WHERE "{column}" IS NOT NULL'  # noqa: S608
        return str(self._ask(query)[0][0] or "")

    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        """Returns the ids that changed since a cursor (None: read everything anew), and
        the next cursor.
        """
        born = self._database.number(f"born {self.kind}")
        last = self._database.number(f"change {self.kind}")
        if since is None or since[0] != born:
            return None, (born, last)
        query = f"SELECT id FROM {self._name} WHERE change > ?"  # noqa: S608
        return [str(each) for (each,) in self._ask(query, since[1])], (born, last)

    # A changed bit may hide a grant from a question. So a sum over all grants in effect is kept,
    # too, and what asks for one of them must find it.

    def _check_grants(self) -> None:
        """Raises `DatabaseError` if the memory finds other active grants than it has."""
        if not self._kind.holds:
            return
        now = [self._database.number(f"{each} {self.kind}") for each in ("born", "change")]
        if self._checked_at != now:
            # In one query, so that no other process writes in between.
            query = f'SELECT id, "{self._kind.holds}", value FROM meta LEFT JOIN {self._name} '  # noqa: S608
            query += "ON status = 'active' WHERE key = ?"
            rows = self._database.ask(query, f"in effect {self.kind}")
            found = {str(each): held for each, held, _ in rows if each is not None}
            if rows and rows[0][2] != sum_of(found.items()):
                raise sqlite.DatabaseError("the memory has other grants than were written to it")
            self._checked_at, self._in_effect = now, found

    def in_effect(self) -> Mapping[str, object]:
        """Returns what each active grant holds, by its id."""
        self._memory.asked(self._check_grants)
        return self._in_effect

    def _granted(self, equals: Mapping[str, object]) -> set[str]:
        """Returns the active grants that an answer must have: to the question who holds a thing."""
        held = equals.get(self._kind.holds)
        if held is None or len(equals) > 1:
            return set()
        return {each for each, what in self._in_effect.items() if what == held}

    def _fields(
        self, query: str, *values: object, grants: Callable[[], set[str]] | None = None
    ) -> list[Fields]:
        def found() -> list[Fields]:
            rows = self._database.ask(query, *values)
            fields = [self._folded(*row) for row in rows]
            if grants is not None and self._kind.holds:
                self._check_grants()
                self._refuse_without(grants(), fields)
            return fields

        return self._memory.asked(found)

    def _refuse_without(self, grants: set[str], found: Sequence[Fields]) -> None:
        missing = grants.difference(str(each["id"]) for each in found)
        query = f"SELECT 1 FROM {self._name} WHERE end_key = ? AND id = ? AND deleted = 1"  # noqa: S608
        if any(not self._database.ask(query, end_key(each), each) for each in missing):
            raise sqlite.DatabaseError("the memory does not find a grant that it has")

    def _folded(self, is_line: object, body: object, checksum: object) -> Fields:
        """Returns the fields of a record, from its row. Raises `DatabaseError`."""
        raw = checked(self.kind, body, checksum)
        fields = unpack(raw)
        if is_line:  # As the ledger has it.
            table = Table(self._kind.aliases)
            return table.get(table.add(raw, fields)) or {}
        return fields

    def _raws(self, identifier: str) -> list[bytes]:
        """Returns the lines of a record in order of arrival."""

        def found() -> list[bytes]:
            heads = heads_of(self._database, self.kind, [identifier]).values()
            rows = lines_of(self._database, self.kind, heads)
            return [checked(self.kind, raw, checksum) for _, _, raw, checksum, _ in rows]

        return self._memory.asked(found)

    def _lines(self, identifier: str) -> Sequence[Line]:
        table = Table(self._kind.aliases)
        for raw in self._raws(identifier):
            table.add(raw, decode(raw))
        entry = table.entry(identifier)
        return entry.lines if entry else ()

    def _ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return self._memory.asked(lambda: self._database.ask(query, *values))

    def _where(self, equals: Mapping[str, object]) -> tuple[str, list[object]]:
        terms, values = ["1"], list[object]()
        found_by = {index[0] for index in self._kind.indexes} & equals.keys()
        for name, value in equals.items():
            assert name in _FLAGS or name in self._kind.columns, name
            # Only `active` is rare, and SQLite does not know that: it would read all that ended.
            is_common = name == "status" and value != "active" and len(found_by) > 1
            terms.append(f'{"+" * is_common}r."{name}" = ?')
            values.append(int(bool(value)) if name in _FLAGS else value)
        return " AND ".join(terms), values


def value_of(fields: Fields, name: str) -> object:
    """Returns the value of a column: a `status` that is not text reads as `active`."""
    value = fields.get(name)
    return "active" if name == "status" and not isinstance(value, str) else value
