"""Lines taken into the memory, and the record that the lines of each id fold to."""

from __future__ import annotations

from zlib import crc32

from queenbee.core.fold import Table
from queenbee.core.ids import KEY_LENGTH, end_key
from queenbee.core.kinds import KINDS, kind_of
from queenbee.core.timestamps import instant_ms
from queenbee.store.codec import (
    decode,
    decode_records,
    named,
    pack,
    without_collection,
)
from queenbee.store.memory.database import (
    batches,
    birth,
    checked,
    insert,
    sum_of,
    sum_of_line,
    whole_number,
)
from queenbee.store.memory.record_lines import OF_NO_RECORD, heads_of, lines_of
from queenbee.store.memory.sqlite import DatabaseError
from queenbee.store.memory.tables import index_records, make_records, table_of, unindex_records

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.fold import Fields, Stated
    from queenbee.store.memory.database import Database

    Added = list[tuple[str, bytes]]
    """New lines, each with the id of its record; `""` for a migration."""
    Last = dict[str, tuple[int, bytes]]
    """The line of each record that arrived last, with its `seq`."""


_SOME_LINES = 8_000


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
        noted = "SELECT value FROM meta WHERE key = ?"
        query = (
            f"SELECT (SELECT max(change) FROM {self._table}), (SELECT max(seq) FROM lines), "  # noqa: S608
            f"({noted}), ({noted}), ({noted}), ({noted})"
        )
        keys = (f"change {kind}", f"in effect {kind}", f"born {kind}", "seq")
        [[last, line, change, in_effect, born, had]] = database.ask(query, *keys)
        self._change = max(whole_number(change or 0), whole_number(last or 0))
        self._in_effect = whole_number(in_effect or 0)
        self._noted = dict(zip(keys, (change, in_effect, born, had), strict=True))
        self.last_line: int = max(whole_number(had or 0), whole_number(line or 0))
        """The greatest number that a line has or had."""
        self._greatest: str | None = "" if last is None else None
        """No id is after this one, if it is known: of a kind that was empty."""
        self._is_unindexed = False
        # What `value_of` makes of a field, without a call for each.
        columns = self._kind.columns
        self._otherwise = [(name, "active" if name == "status" else None) for name in columns]

    def take(
        self, lines: Sequence[bytes], *, loose: int = 0, archived: bool = False, once: bool = True
    ) -> tuple[int, int]:
        """Takes in lines in order of arrival; returns how many were new, and how many hold no
        record.

        With `once`, a line that is there does not count again; otherwise one without `rev` does.
        """
        size_bytes = sum(map(len, lines))
        new, unusable = 0, len(lines)
        with without_collection(size_bytes):
            # So many that what they need stays near the processor.
            for begin in range(0, len(lines), _SOME_LINES):
                others: list[Stated] = []
                some = lines[begin : begin + _SOME_LINES]
                records = list(decode_records(some, size_bytes, others))
                table, heads, added = self._folded(records, once=once)
                added += [("", raw) for raw in dict(others) if self._is_new_migration(raw)]
                self._insert_lines(added, table, heads, loose=loose, archived=archived)
                new += len(added)
                unusable -= len(records) + len(others)
        return new, unusable

    def forget(self, numbers: Sequence[int]) -> None:
        """Removes lines by their `seq`, as if they had never arrived."""
        ids = self._ids_of(numbers)
        self._note("seq", self.last_line)
        self._db.executemany("DELETE FROM lines WHERE seq = ?", ((each,) for each in numbers))
        self.fold_anew(ids)

    def number_anew(self, numbers: Sequence[int]) -> None:
        """Has lines arrive once more, after all others, in the order of these numbers."""
        rows = [*enumerate(numbers, self.last_line + 1)]
        self.last_line += len(rows)
        ids = self._ids_of(numbers)
        query = "UPDATE lines SET seq = ?, first = coalesce(first, seq) WHERE seq = ?"
        self._db.executemany(query, rows)
        self.fold_anew(ids)

    def _ids_of(self, numbers: Sequence[int]) -> set[str]:
        """Returns the ids of the records that some lines belong to, by their numbers."""
        ids = set[str]()
        for marks, some in batches(numbers):
            query = f"SELECT raw, sum FROM lines WHERE seq IN ({marks})"  # noqa: S608
            raws = [checked(self.kind, *row) for row in self._db.execute(query, some)]
            ids.update(identifier for raw in raws if (identifier := named(raw)))
        return ids

    def forget_all(self) -> None:
        """Removes every line of the kind, as if none had ever arrived."""
        self._note("seq", self.last_line)
        for table in ("lines", "marks"):
            self._db.execute(f"DELETE FROM {table} WHERE kind = ?", (self.kind,))  # noqa: S608
        self._db.execute(f"DELETE FROM {self._table}")  # noqa: S608
        self._in_effect, self._greatest = 0, ""
        self._bear_anew()

    def fold_anew(self, ids: Collection[str]) -> None:
        """Folds records again from the lines that are there."""
        heads = heads_of(self._database, self.kind, ids)
        table, now, last = self._read(heads.values())
        for identifier, old in heads.items():
            if identifier not in table:
                self._remove(identifier)
            elif now[identifier] != old:
                query = "UPDATE lines SET first = nullif(?, seq) WHERE first = ? AND kind = ?"
                self._db.execute(query, (now[identifier], old, self.kind))
        self._store(now, table, heads, last)

    def fold_all(self) -> Iterator[int]:
        """Folds every record of a kind whose table is empty; yields how many of them, piecemeal."""
        self.expect_many()
        query = (
            "SELECT seq FROM lines WHERE kind = ? AND first IS NULL AND seq > ? "
            "ORDER BY seq LIMIT 10000"
        )
        ask, after = self._database.ask, 0
        while heads := [whole_number(each) for (each,) in ask(query, self.kind, after)]:
            table, now, last = self._read(heads)
            self._store(now, table, {}, last)
            after = heads[-1]
            yield len(heads)

    def expect_many(self) -> None:
        """Puts off what can be done for all records at once; `finish` does it."""
        if self._greatest == "" and not self._is_unindexed:
            unindex_records(self._db, self.kind)
            self._is_unindexed = True

    def finish(self) -> None:
        """Saves what is known about all records together."""
        if self._is_unindexed:
            index_records(self._db, self.kind)
            self._is_unindexed = False
        if not self._noted[f"born {self.kind}"]:
            self._bear_anew()
        self._note(f"change {self.kind}", self._change)
        self._note(f"in effect {self.kind}", self._in_effect)

    def _bear_anew(self) -> None:
        """Has followers read everything again."""
        self._note(f"born {self.kind}", birth())

    def _note(self, key: str, number: int) -> None:
        if self._noted[key] != number:
            self._database.put_meta(key, number)
            self._noted[key] = number

    def _folded(
        self, records: Sequence[Stated], *, once: bool
    ) -> tuple[Table, dict[str, int], Added]:
        """Returns the records that these lines belong to, the heads of those that were there, and
        those lines that are new.
        """
        greatest, keys = self._greatest, {str(each["id"]) for _, each in records}
        asked = {key for key in keys if greatest is None or key <= greatest}
        heads = heads_of(self._database, self.kind, asked)
        table, *_ = self._read(heads.values())
        return table, heads, table.add_all(records, once=once)

    def _insert_lines(
        self, added: Added, table: Table, before: dict[str, int], *, loose: int, archived: bool
    ) -> None:
        """Adds lines, and writes the records that have them."""
        if not added:
            return
        first = self.last_line + 1
        self.last_line = whole_number(self.last_line + len(added))
        kind, heads, rows = self.kind, dict[str, int](), []
        last: Last = {}
        begun, is_archived = sum_of_line(kind, b""), int(archived)
        for seq, (identifier, raw) in enumerate(added, first):
            head = heads.get(identifier)
            if head is None:
                head = before.get(identifier, seq) if identifier else OF_NO_RECORD
                heads[identifier] = head
            last[identifier] = seq, raw
            named_head = None if head == seq else head
            rows.append((seq, kind, named_head, raw, crc32(raw, begun), loose, is_archived))
        insert(self._db, "lines", rows)
        heads.pop("", None)
        self._store(heads, table, before, last)

    def _is_new_migration(self, raw: bytes) -> bool:
        query = "SELECT 1 FROM lines WHERE first = 0 AND kind = ? AND raw = ?"
        return not self._db.execute(query, (self.kind, raw)).fetchone()

    def known(self, ids: Collection[str]) -> Table:
        """Returns a table with the lines that are known of these ids."""
        return self._read(heads_of(self._database, self.kind, ids).values())[0]

    def _read(self, heads: Iterable[int]) -> tuple[Table, dict[str, int], Last]:
        """Returns a table with the lines of records, and the first and the last line of each."""
        table, firsts, ids = Table(self._kind.aliases), dict[str, int](), dict[int, str]()
        last: Last = {}
        for head, seq, raw, checksum, _ in lines_of(self._database, self.kind, heads):
            line = checked(self.kind, raw, checksum)
            identifier = table.add(line, decode(line))
            if ids.setdefault(head, identifier) != identifier:
                raise DatabaseError("the memory has a line in another record")
            firsts.setdefault(identifier, whole_number(seq))
            last[identifier] = seq, line
        return table, firsts, last

    def _store(
        self, changed: Mapping[str, int], table: Table, before: Collection[str], last: Last
    ) -> None:
        """Writes the records of these ids, each with its head; some of them were there before. One
        whose last line says all of it is that line.
        """
        if not changed:
            return
        old = [each for each in changed if each in before]
        self._count(old, -1)
        self._delete(old)
        rows, marks_of = [], self._kind.marks
        for identifier, seq in changed.items():
            told, raw = last[identifier]
            fields, is_line = table.told(identifier, raw)
            rows.append(self._row(identifier, seq, told, fields, is_line=is_line))
            if marks := marks_of(fields):
                self._store_marks(identifier, marks)
        insert(self._db, self._table, rows)
        if self._greatest is not None:
            self._greatest = max(self._greatest, *changed)
        self._count(changed, 1)

    def _delete(self, ids: Iterable[str]) -> None:
        query = f"DELETE FROM {self._table} WHERE end_key = ? AND id = ?"  # noqa: S608
        self._db.executemany(query, ((end_key(each), each) for each in ids))

    def _row(
        self, identifier: str, seq: int, told: int, fields: Fields, *, is_line: bool
    ) -> tuple[object, ...]:
        self._change += 1
        value = fields.get
        body = None if is_line else pack(fields)
        return (
            self._change,
            identifier,
            told,
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
                f'SELECT id, "{self._kind.holds}" FROM {self._table} WHERE +status = '  # noqa: S608
                f"'active' AND end_key IN ({marks}) AND id IN ({marks})"
            )
            keys = [end_key(str(each)) for each in some]
            self._in_effect += sign * sum_of(self._db.execute(query, (*keys, *some)))

    def _store_marks(self, identifier: str, marks: Iterable[str]) -> None:
        where = "kind = ? AND id = ?"
        self._db.execute(f"DELETE FROM marks WHERE {where}", (self.kind, identifier))  # noqa: S608
        rows = [(self.kind, identifier, name) for name in marks]
        self._db.executemany("INSERT INTO marks VALUES (?, ?, ?)", rows)

    def _remove(self, identifier: str) -> None:
        """Removes a record."""
        self._change += 1
        self._count([identifier], -1)
        self._delete([identifier])
        self._db.execute("DELETE FROM marks WHERE kind = ? AND id = ?", (self.kind, identifier))
        self._bear_anew()  # No row shows the removal.
