"""What `queen doctor` says of this clone's memory: whether it has what the ledgers have.

It reads everything, as no other command does: each line once, and some records at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from queenbee.core.fold import Table
from queenbee.core.ids import end_key
from queenbee.core.kinds import kind_of
from queenbee.core.text import shell_word
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.services.diagnosis import Diagnosis
from queenbee.store.codec import decode_records, named, pack, unpack
from queenbee.store.memory.database import checked, sum_of_line, whole_number
from queenbee.store.memory.record_lines import OF_NO_RECORD, lines_of
from queenbee.store.memory.recorded import value_of
from queenbee.store.memory.salvage import salvaged
from queenbee.store.memory.sqlite import DatabaseError
from queenbee.store.memory.tables import table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.core.fold import Fields, Stated
    from queenbee.services.hive import Services

_SOME = 2_000
"""Records that are compared at a time."""
_LARGE_BYTES = 2**20
"""Has lines decoded by what is quick with many."""
_OWN = (
    "change",
    "seq",
    "id",
    "told",
    "body",
    "body_sum",
    "created_ms",
    "read",
    "deleted",
    "end_key",
)


class Compared:
    """The records of a kind, compared some at a time with what their lines fold to."""

    def __init__(self, hive: Services, kind: str) -> None:
        self._kind = kind_of(kind)
        self._memory = hive.engine.memory
        self._otherwise = [(each, value_of({}, each)) for each in self._kind.columns]
        """The columns, each with the value that stands for another than a text."""
        self.known: set[int] = set[int]()
        """The hashes of the lines that records have: nothing else is unusable or missing."""
        self._ids = set[int]()
        self._wrong: list[str] = []

    def records(self) -> Iterator[Fields]:
        """Yields what the lines of each record fold to. Call it within `asked`. Raises
        `DatabaseError` for a line that is in another record.
        """
        database, after = self._memory.database, 0
        self.known.clear()
        self._ids.clear()
        self._wrong.clear()
        names = ", ".join(f'"{name}"' for name in (*_OWN, *self._kind.columns))
        query = f"SELECT {names} FROM {table_of(self._kind.name)} WHERE change > ? ORDER BY change"  # noqa: S608
        lines = 0
        while rows := database.ask(f"{query} LIMIT {_SOME}", after):
            after = whole_number(rows[-1][0])
            table, heads, said = self._folded([whole_number(row[1]) for row in rows])
            lines += len(said)
            for _, seq, identifier, *row in rows:
                truth = heads.get(seq, "")
                if truth not in table or truth != identifier:
                    self._wrong.append(str(identifier))
                    continue
                line = said.get(row[0])
                fields, is_told = table.told(truth, line[0] if line else b"")
                if not self._is_held(fields, line, row, is_told=is_told):
                    self._wrong.append(truth)
                yield fields
        [[all_lines]] = database.ask("SELECT count(*) FROM lines WHERE kind = ?", self._kind.name)
        if lines != all_lines:
            self._find_others()

    def _folded(
        self, heads: Sequence[int]
    ) -> tuple[Table, dict[object, str], dict[object, Stated]]:
        """Returns the records with these heads, the id of each, and their lines by number."""
        kind = self._kind.name
        rows = [*lines_of(self._memory.database, kind, heads)]
        begun = sum_of_line(kind, b"")
        lines = [
            raw
            if isinstance(raw, bytes) and crc32(raw, begun) == checksum
            else checked(kind, raw, checksum)
            for _, _, raw, checksum, _ in rows
        ]
        of = {raw: row[:2] for raw, row in zip(lines, rows, strict=True)}
        self.known.update(map(hash, lines))
        records = [*decode_records(lines, _LARGE_BYTES, [])]
        ids: dict[object, str] = {}
        said: dict[object, Stated] = {}
        first = ids.setdefault
        for line in records:
            head, seq = of[line[0]]
            said[seq] = line
            identifier: str = line[1]["id"]  # type: ignore[assignment]
            if first(head, identifier) != identifier:
                raise DatabaseError("the memory has a line in another record")
        before = len(self._ids)
        self._ids.update(map(hash, ids.values()))
        if len(self._ids) != before + len(ids):
            raise DatabaseError("the memory has a record twice")
        table = Table(self._kind.aliases)
        table.add_all(records)
        return table, ids, said

    def _is_held(
        self, fields: Fields, line: Stated | None, row: Sequence[object], *, is_told: bool
    ) -> bool:
        """Returns whether a row has these fields, or their line, and selects by them."""
        _, body, checksum, *columns = row
        value = fields.get
        expected = [
            instant_ms(value("created_at")) or 0,
            value("read") is True,
            value("deleted") is True,
            end_key(str(fields["id"])),
        ]
        expected += [
            text if isinstance(text := value(name), str) else otherwise
            for name, otherwise in self._otherwise
        ]
        if columns != expected:
            return False
        if body is None:
            if line is None or is_told:
                return is_told
            table = Table(self._kind.aliases)
            return fields == table.get(table.add(*line))
        held = checked(self._kind.name, body, checksum)
        return held == pack(fields) or unpack(held) == fields

    def _find_others(self) -> None:
        """Finds the lines that no record has."""
        query = "SELECT first, raw, sum FROM lines WHERE kind = ?"
        for first, raw, checksum in self._memory.database.db.execute(query, (self._kind.name,)):
            line = checked(self._kind.name, raw, checksum)
            if hash(line) in self.known:
                continue
            identifier = named(line)
            if hash(identifier) in self._ids or (first == OF_NO_RECORD) != (identifier == ""):
                raise DatabaseError("the memory has a line in another record")
            if identifier:
                self._wrong.append(identifier)

    def findings(self) -> Iterator[Diagnosis]:
        """Yields what is wrong with the memory, once all records were compared."""
        path, wrong = self._memory.database.path, sorted(set(self._wrong))
        if wrong:
            yield _differs(
                path, f"differs from its lines in {len(wrong)} records, first {wrong[0]}"
            )
        if count := self._memory.differing(self._kind.name, self.known):
            text = f"differs from the tracked files in {count} lines of {self._kind}"
            yield _differs(path, text)


def set_aside(hive: Services) -> Iterator[Diagnosis]:
    """Names the files that were set aside, and says what may be lost with them."""
    for path in hive.engine.memory.database.aside():
        moment = path.rpartition("-")[2]
        at = f" at {format_ms(int(moment))}" if moment.isdecimal() and len(moment) < 15 else ""
        text = f"a memory that was damaged or changed was set aside{at}"
        if salvaged(path).is_whole:
            text += "; all its lines are in the new one"
        else:
            text += (
                "; part of it cannot be read: a line that git had removed, and that only this "
                "file had, is lost"
            )
        hint = f"if you do not need it: rm {shell_word(path)}"
        yield Diagnosis("set_aside", path, text, hint=hint, severity="note")


def _differs(path: str, text: str) -> Diagnosis:
    return Diagnosis("index", path, f"the memory {text}", hint="queen hive index rebuild")
