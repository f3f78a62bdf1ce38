"""Folding lines into the tables of an index, a batch of ids at a time. ADR 0006."""

from __future__ import annotations

from zlib import crc32

from queenbee.core.fold import Table, explicit_rev
from queenbee.core.ids import KEY_LENGTH
from queenbee.core.kinds import kind_of
from queenbee.core.timestamps import instant_ms
from queenbee.store.index.tables import birth, checked, sum_of
from queenbee.store.ledger.codec import (
    decode,
    decode_records,
    is_migration,
    pack,
    without_collection,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.fold import Fields, Stated
    from queenbee.store.index.tables import Tables

_BATCH = 500
"""Ids in one query: old builds of SQLite allow 999 parameters."""


class Taken:
    """The result of taking some lines."""

    __slots__ = ("fresh", "positional", "unusable")

    def __init__(self, fresh: list[bytes], unusable: int, *, positional: bool) -> None:
        self.fresh = fresh
        """Those that the index did not have."""
        self.unusable = unusable
        """How many hold no record."""
        self.positional = positional
        """Whether any fresh line belongs to a record in which the order of lines counts."""


class Taker:
    """Folds lines into the tables, a batch of ids at a time."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._db = tables.db
        self._kind = tables.kind
        self._columns = tables.columns
        self.positional = bool(tables.meta("positional"))
        """Whether any line so far had no `rev`: then the order of lines counts."""
        self._seq = tables.last_change()
        self._in_effect = int(tables.meta("in effect") or 0)
        [[greatest]] = tables.ask("SELECT max(id) FROM records")
        self._greatest = str(greatest or "")
        """No id in the index sorts after this one: new ids of ours do, and need no looking up."""
        # What `value_of` makes of a field, without a call for each.
        self._otherwise = [(name, "active" if name == "status" else None) for name in self._columns]
        marks = ", ".join("?" * (9 + len(self._columns)))
        self._insert = f"INSERT INTO records VALUES ({marks})"  # noqa: S608

    def take(self, lines: list[bytes], *, once: bool) -> Taken:
        """Folds lines into the records; with `once`, one that is there does not count again."""
        size_bytes = sum(map(len, lines))
        with without_collection(size_bytes):
            return self._take(lines, size_bytes, once=once)

    def _take(self, lines: list[bytes], size_bytes: int, *, once: bool) -> Taken:
        others: list[Stated] = []
        records = list(decode_records(lines, size_bytes, others))
        query = "INSERT OR IGNORE INTO migrations (raw) VALUES (?)"
        fresh = [raw for raw, _ in others if self._db.execute(query, (raw,)).rowcount]
        greatest = self._greatest
        table = self._known(
            {each for _, fields in records if (each := str(fields["id"])) <= greatest}
        )
        known = {each: len(entry.arrived) for each, entry in table.entries.items()}
        table.add_all(records, once=once)
        self.positional = self.positional or table.positional
        fresh += self._store(table, known)
        positional = self.positional and any(
            explicit_rev(line.fields) is None
            for identifier, entry in table.entries.items()
            if len(entry.arrived) > known.get(identifier, 0)
            for line in entry.lines
        )
        unusable = len(lines) - len(records) - len(others)
        return Taken(fresh, unusable, positional=positional)

    def forget(self, lines: Iterable[bytes]) -> None:
        """Removes usable lines. Only valid if the order of lines does not count."""
        gone: dict[str, set[bytes]] = {}
        for raw in lines:
            fields = decode(raw)
            if is_migration(fields):
                self._db.execute("DELETE FROM migrations WHERE raw = ?", (raw,))
            else:
                gone.setdefault(str(fields["id"]), set()).add(raw)
        table = Table(kind_of(self._kind).aliases)
        for identifier, entry in self._known(gone).entries.items():
            self._db.execute("DELETE FROM lines WHERE id = ?", (identifier,))
            self._db.execute("DELETE FROM marks WHERE id = ?", (identifier,))
            for raw in entry.arrived:
                if raw not in gone[identifier]:
                    table.add(raw, decode(raw))
            if identifier not in table:
                self._remove(identifier)
        self._store(table, dict.fromkeys(gone, 0))

    def finish(self) -> None:
        """Saves what is known about all lines together."""
        if self.positional:
            self._tables.put_meta("positional", 1)
        self._tables.put_meta("in effect", self._in_effect)

    def _known(self, ids: Collection[str]) -> Table:
        """Returns a table with the lines that the index has for these ids."""
        table = Table(kind_of(self._kind).aliases)
        for some in _batches(sorted(ids)):
            marks = ", ".join("?" * len(some))
            many = []
            query = f"SELECT id, count, body, sum FROM records WHERE id IN ({marks})"  # noqa: S608
            for identifier, count, body, checksum in self._db.execute(query, some):
                if count == 1:
                    table.add(checked(body, checksum), decode(body))
                else:
                    many.append(identifier)
            for identifier in many:
                for raw in self._tables.raws(identifier):
                    table.add(raw, decode(raw))
        return table

    def _store(self, table: Table, known: Mapping[str, int]) -> list[bytes]:
        """Writes the records that have more lines than the number `known`, which has those that are
        in the index already; returns the new lines.
        """
        rows, lines, fresh = list[tuple[object, ...]](), list[tuple[object, ...]](), list[bytes]()
        for identifier, arrived, fields in table.folded():
            before = known.get(identifier, 0)
            if len(arrived) > before:
                fresh += arrived[before:]
                rows.append(self._row(identifier, arrived, fields))
                self._greatest = max(self._greatest, identifier)
                if len(arrived) > 1:
                    lines += ((identifier, n, raw, crc32(raw)) for n, raw in enumerate(arrived))
                self._store_marks(identifier, fields)
        # A record that changes gets a new number, which is the key of its row.
        changed = [str(row[1]) for row in rows if row[1] in known]
        self._count(changed, -1)
        self._db.executemany("DELETE FROM records WHERE id = ?", ((each,) for each in changed))
        self._db.executemany(self._insert, rows)
        self._db.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?, ?)", lines)
        self._count([str(row[1]) for row in rows], 1)
        return fresh

    def _count(self, ids: Sequence[str], sign: int) -> None:
        """Adds those of these records that are active grants to the sum of what is in effect."""
        if not (column := kind_of(self._kind).holds):
            return
        for some in _batches(ids):
            query = (
                f"SELECT id, \"{column}\" FROM records WHERE status = 'active' "  # noqa: S608
                f"AND id IN ({', '.join('?' * len(some))})"
            )
            self._in_effect += sign * sum_of(self._db.execute(query, some))

    def _row(self, identifier: str, arrived: Sequence[bytes], fields: Fields) -> tuple[object, ...]:
        self._seq += 1
        value = fields.get
        body = arrived[0] if len(arrived) == 1 else pack(fields)
        return (
            self._seq,
            identifier,
            len(arrived),
            instant_ms(value("created_at")) or 0,
            value("read") is True,
            value("deleted") is True,
            identifier[: -KEY_LENGTH - 1 : -1],  # `end_key`, without a call for each.
            body,
            crc32(body),
            *[
                text if isinstance(text := value(name), str) else otherwise
                for name, otherwise in self._otherwise
            ],
        )

    def _store_marks(self, identifier: str, fields: Fields) -> None:
        if marks := kind_of(self._kind).marks(fields):
            self._db.execute("DELETE FROM marks WHERE id = ?", (identifier,))
            pairs = [(identifier, name) for name in marks]
            self._db.executemany("INSERT INTO marks VALUES (?, ?)", pairs)

    def _remove(self, identifier: str) -> None:
        """Removes a record."""
        self._seq += 1
        self._count([identifier], -1)
        self._db.execute("DELETE FROM records WHERE id = ?", (identifier,))
        self._db.execute("DELETE FROM marks WHERE id = ?", (identifier,))
        # Followers read everything again: no row shows the removal.
        self._tables.put_meta("removed_at", self._seq)
        self._tables.put_meta("born", birth())


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[begin : begin + _BATCH] for begin in range(0, len(ids), _BATCH))
