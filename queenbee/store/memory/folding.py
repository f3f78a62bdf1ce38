"""Lines taken into the memory, and the record that the lines of each id fold to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.fold import Table
from queenbee.core.ids import KEY_LENGTH
from queenbee.core.kinds import KINDS, kind_of
from queenbee.core.timestamps import instant_ms
from queenbee.store.codec import (
    decode,
    decode_records,
    pack,
    without_collection,
)
from queenbee.store.memory.database import (
    batches,
    birth,
    checked,
    sum_of,
    sum_of_line,
    whole_number,
)
from queenbee.store.memory.tables import index_records, make_records, table_of, unindex_records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from queenbee.core.fold import Fields, Stated
    from queenbee.store.memory.database import Database

    Added = list[tuple[str, bytes]]
    """New lines, each with the id of its record; `""` for a migration."""


class Folding:
    """The lines and records of one kind, changed within one transaction of their memory."""

    def __init__(self, database: Database, kind: str) -> None:
        self._database = database
        self._db = database.db
        self.kind = kind
        self._kind = kind_of(kind)
        self._table = table_of(kind)
        if kind not in KINDS:  # The tables of the others are there.
            make_records(self._db, kind)
        [[last]] = database.ask(f"SELECT max(change) FROM {self._table}")  # noqa: S608
        self._change = max(database.number(f"change {kind}"), whole_number(last or 0))
        self._in_effect = database.number(f"in effect {kind}")
        [[greatest]] = database.ask(f"SELECT max(id) FROM {self._table}")  # noqa: S608
        self._greatest = str(greatest or "")
        """No id is after this one: new ids of ours are, and need no looking up."""
        self._is_unindexed = False
        # What `value_of` makes of a field, without a call for each.
        columns = self._kind.columns
        self._otherwise = [(name, "active" if name == "status" else None) for name in columns]
        marks = ", ".join("?" * (10 + len(columns)))
        self._insert = f"INSERT INTO {self._table} VALUES ({marks})"  # noqa: S608

    def take(
        self, lines: Sequence[bytes], *, loose: int = 0, archived: bool = False, once: bool = True
    ) -> tuple[int, int]:
        """Takes in lines in order of arrival; returns how many were new, and how many hold no
        record.

        With `once`, a line that is there does not count again; otherwise one without `rev` does.
        """
        size_bytes = sum(map(len, lines))
        with without_collection(size_bytes):
            others: list[Stated] = []
            records = list(decode_records(lines, size_bytes, others))
            table, added = self._folded(records, once=once)
            added += [("", raw) for raw, _ in others if self._is_new_migration(raw)]
            self._insert_lines(added, table, loose=loose, archived=archived)
        return len(added), len(lines) - len(records) - len(others)

    def forget(self, numbers: Sequence[int]) -> None:
        """Removes lines by their `seq`, as if they had never arrived."""
        ids = self._ids_of(numbers)
        self._db.executemany("DELETE FROM lines WHERE seq = ?", ((each,) for each in numbers))
        self.fold_anew(ids)

    def number_anew(self, numbers: Sequence[int]) -> None:
        """Has lines arrive once more, after all others, in the order of these numbers."""
        first = self._database.number_lines(len(numbers))
        rows = [*enumerate(numbers, first)]
        ids = self._ids_of(numbers)
        self._db.executemany("UPDATE lines SET seq = ? WHERE seq = ?", rows)
        self.fold_anew(ids)

    def _ids_of(self, numbers: Sequence[int]) -> set[str]:
        """Returns the ids of the records that some lines belong to, by their numbers."""
        ids = set[str]()
        for marks, some in batches(numbers):
            query = f"SELECT id FROM lines WHERE seq IN ({marks})"  # noqa: S608
            ids.update(str(identifier) for (identifier,) in self._db.execute(query, some))
        return ids - {""}

    def forget_all(self) -> None:
        """Removes every line of the kind, as if none had ever arrived."""
        for table in ("lines", "marks"):
            self._db.execute(f"DELETE FROM {table} WHERE kind = ?", (self.kind,))  # noqa: S608
        self._db.execute(f"DELETE FROM {self._table}")  # noqa: S608
        self._in_effect, self._greatest = 0, ""
        self._database.put_meta(f"born {self.kind}", birth())

    def fold_anew(self, ids: Collection[str]) -> None:
        """Folds records again from the lines that are there."""
        table = self.known(ids)
        for identifier in ids:
            if identifier not in table:
                self._remove(identifier)
        query = "SELECT min(seq) FROM lines WHERE kind = ? AND id = ?"
        self._store(
            {
                each: self._db.execute(query, (self.kind, each)).fetchone()[0]
                for each in ids
                if each in table
            },
            table,
        )

    def fold_all(self) -> Iterator[int]:
        """Folds every record of a kind whose table is empty; yields how many of them, piecemeal."""
        query = "SELECT id FROM lines WHERE kind = ? AND id > ? GROUP BY id ORDER BY id LIMIT 10000"
        last = ""
        while ids := [str(each) for (each,) in self._db.execute(query, (self.kind, last))]:
            self.fold_anew(ids)
            last = ids[-1]
            yield len(ids)

    def expect_many(self) -> None:
        """Puts off what can be done for all records at once; `finish` does it."""
        if not self._greatest:
            unindex_records(self._db, self.kind)
            self._is_unindexed = True

    def finish(self) -> None:
        """Saves what is known about all records together."""
        if self._is_unindexed:
            index_records(self._db, self.kind)
            self._is_unindexed = False
        self._database.put_meta(f"change {self.kind}", self._change)
        self._database.put_meta(f"in effect {self.kind}", self._in_effect)
        if not self._database.meta(f"born {self.kind}"):
            self._database.put_meta(f"born {self.kind}", birth())

    def _folded(self, records: Sequence[Stated], *, once: bool) -> tuple[Table, Added]:
        """Returns the records that these lines belong to, and those lines that are new."""
        greatest = self._greatest
        table = self.known({key for _, each in records if (key := str(each["id"])) <= greatest})
        known = {each: len(entry.arrived) for each, entry in table.entries.items()}
        ids = table.add_all(records, once=once)
        new = {
            identifier: arrived[before:]
            for identifier, arrived, _ in table.folded()
            if len(arrived) > (before := known.get(identifier, 0))
        }
        added = list[tuple[str, bytes]]()
        for identifier, (raw, _) in zip(ids, records, strict=True):
            expected = new.get(identifier)
            if expected and expected[0] == raw:
                new[identifier] = expected[1:]
                added.append((identifier, raw))
        return table, added

    def _insert_lines(self, added: Added, table: Table, *, loose: int, archived: bool) -> None:
        """Adds lines, and writes the records that have them."""
        if not added:
            return
        first = self._database.number_lines(len(added))
        kind = self.kind
        rows = [
            (seq, kind, identifier, raw, sum_of_line(kind, raw), loose, int(archived))
            for seq, (identifier, raw) in enumerate(added, first)
        ]
        self._db.executemany("INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        firsts: dict[str, int] = {}
        for seq, (identifier, _) in enumerate(added, first):
            if identifier:
                firsts.setdefault(identifier, seq)
        self._store(firsts, table)

    def _is_new_migration(self, raw: bytes) -> bool:
        query = "SELECT 1 FROM lines WHERE kind = ? AND id = '' AND raw = ?"
        return not self._db.execute(query, (self.kind, raw)).fetchone()

    def known(self, ids: Collection[str]) -> Table:
        """Returns a table with the lines that are known of these ids."""
        table = Table(self._kind.aliases)
        for marks, some in batches(sorted(ids)):
            query = (
                f"SELECT raw, sum FROM lines WHERE kind = ? AND id IN ({marks}) "  # noqa: S608
                "ORDER BY seq"
            )
            for row in self._db.execute(query, (self.kind, *some)):
                raw = checked(self.kind, *row)
                table.add(raw, decode(raw))
        return table

    def _store(self, changed: Mapping[str, int], table: Table) -> None:
        """Writes the records of these ids. One with a single line is that line: its `seq`."""
        if not changed:
            return
        self._count(changed, -1)
        delete = f"DELETE FROM {self._table} WHERE id = ?"  # noqa: S608
        self._db.executemany(delete, ((each,) for each in changed if each <= self._greatest))
        rows = []
        for identifier, seq in changed.items():
            entry = table.entry(identifier)
            assert entry is not None
            rows.append(self._row(identifier, seq, len(entry.arrived), entry.fields))
            self._store_marks(identifier, entry.fields)
        self._db.executemany(self._insert, rows)
        self._greatest = max(self._greatest, *changed)
        self._count(changed, 1)

    def _row(self, identifier: str, seq: int, count: int, fields: Fields) -> tuple[object, ...]:
        self._change += 1
        value = fields.get
        body = None if count == 1 else pack(fields)
        return (
            self._change,
            identifier,
            count,
            instant_ms(value("created_at")) or 0,
            value("read") is True,
            value("deleted") is True,
            identifier[: -KEY_LENGTH - 1 : -1],  # `end_key`, without a call for each.
            seq,
            body,
            None if body is None else sum_of_line(self.kind, body),
            *[
                text if isinstance(text := value(name), str) else otherwise
                for name, otherwise in self._otherwise
            ],
        )

    def _count(self, ids: Collection[str], sign: int) -> None:
        """Adds those of these records that are active grants to the sum of those in effect."""
        if not self._kind.holds:
            return
        for marks, some in batches([*ids]):
            query = (
                f'SELECT id, "{self._kind.holds}" FROM {self._table} '  # noqa: S608
                f"WHERE +status = 'active' AND id IN ({marks})"
            )
            self._in_effect += sign * sum_of(self._db.execute(query, some))

    def _store_marks(self, identifier: str, fields: Fields) -> None:
        if marks := self._kind.marks(fields):
            where = "kind = ? AND id = ?"
            self._db.execute(f"DELETE FROM marks WHERE {where}", (self.kind, identifier))  # noqa: S608
            rows = [(self.kind, identifier, name) for name in marks]
            self._db.executemany("INSERT INTO marks VALUES (?, ?, ?)", rows)

    def _remove(self, identifier: str) -> None:
        """Removes a record."""
        self._change += 1
        self._count([identifier], -1)
        self._db.execute(f"DELETE FROM {self._table} WHERE id = ?", (identifier,))  # noqa: S608
        self._db.execute("DELETE FROM marks WHERE kind = ? AND id = ?", (self.kind, identifier))
        # Followers read everything again: no row shows the removal.
        self._database.put_meta(f"born {self.kind}", birth())
