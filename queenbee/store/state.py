"""The folded state of one ledger in memory, kept fresh while others write."""

from __future__ import annotations

from _thread import RLock
from bisect import bisect_left, bisect_right

from queenbee.core.fold import Table
from queenbee.core.ids import end_key, shortest_end, spellings
from queenbee.core.kinds import kind_of
from queenbee.core.timestamps import instant_ms
from queenbee.store.files import changed_in_place
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.codec import (
    decode_exactly,
    decode_records,
    lost_precision,
    without_collection,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.fold import Fields, Stated
    from queenbee.store.files import Stamp
    from queenbee.store.ledger.ledger import Ledger, Receipt
    from queenbee.store.questions import Cursor

MANY = 6
"""Ids that a part names before it is enough to say that it names too many."""
FLAGS = frozenset({"read", "deleted"})


def value_of(fields: Fields, name: str) -> object:
    """Returns the value of a column: a `status` that is not text reads as `active`."""
    value = fields.get(name)
    return "active" if name == "status" and not isinstance(value, str) else value


class Folded:
    """The state of a ledger, folded in memory. Implements `Records`."""

    def __init__(self, kind: str, ledger: Ledger) -> None:
        self.kind = kind
        self.ledger = ledger
        self.agreed = Position()
        self._generation = -1
        self._mutex = RLock()
        self._stamp: tuple[object, ...] | None = None
        self._stamps: tuple[Stamp, Stamp] = ((), ())
        self._start_over()

    def _start_over(self) -> None:
        self.unusable = 0
        self.migrations: list[Fields] = []
        self._table = Table(kind_of(self.kind).aliases)
        self._changed: list[str] = []
        self._end_keys: list[str] = []
        self._generation += 1
        self._position: Position | None = None
        self._unrecorded = False
        self._unended = False
        self._apart = False

    def refresh(self) -> None:
        with self._mutex:
            stamp = self.ledger.stamp()
            if stamp == self._stamp:
                return
            stamps = self.ledger.stamps()
            purged = any(map(changed_in_place, self._stamps, stamps))
            if self._unended or purged:
                # The last line had no newline, and may have changed since.
                self._start_over()
            if purged:
                self.agreed = Position()
            if not self._read_on():
                self._start_over()
                self._read_on()
            # The stamp from before the read: lines appended during it are read next time.
            self._stamp, self._stamps = stamp, stamps

    def _read_on(self) -> bool:
        """Reads new lines; returns whether the state equals that of a reader from the start.

        It does not if the order of lines counts: lines that only the journal has were folded after
        the tracked lines of their time, but newer tracked lines now come before them.
        """
        batch = self.ledger.read(self._position)
        if batch.restarted:
            self._start_over()
        first = self._position is None
        if batch.alike and (first or self._position == self.agreed):
            self.agreed = batch.position
        self._unrecorded = self._unrecorded or batch.unrecorded
        with without_collection(batch.size_bytes):
            self._take(batch.archived, batch.size_bytes, once=True)
            self._take(batch.tracked, batch.size_bytes, once=False)
            self._take(batch.journal_only, batch.size_bytes, once=True)
        self._position, self._unended = batch.position, batch.unended
        self._apart = self._apart or bool(batch.journal_only)
        return first or not (self._apart and self._table.positional)

    def close(self) -> None:
        """Does nothing: no file stays open between two reads."""

    def append(self, lines: Sequence[bytes]) -> Receipt:
        with self._mutex:
            receipt = self.ledger.append(lines, self.agreed)
            self.agreed = receipt.agreed
            self._unrecorded = False
            return receipt

    def agree(self, agreed: Position) -> None:
        self.agreed = agreed

    def foreign(self) -> str:
        return self.ledger.foreign(unrecorded=self._unrecorded)

    def get(self, identifier: str) -> Fields | None:
        with self._mutex:
            return self._table.get(identifier)

    def exact(self, identifier: str) -> Fields | None:
        with self._mutex:
            entry = self._table.entry(identifier)
            if entry is None or not lost_precision(entry.fields):
                return entry.fields if entry else None
            again = Table(kind_of(self.kind).aliases)
            for raw in entry.arrived:
                again.add(raw, decode_exactly(raw))
            return again.get(identifier)

    def named(self, part: str) -> list[str]:
        with self._mutex:
            for matches in (str.endswith, str.startswith, str.__contains__):
                for text in spellings(part):
                    if found := [each for each in self._table.ids() if matches(each, text)]:
                        return sorted(found)[:MANY]
        return []

    def short_id(self, identifier: str) -> str:
        with self._mutex:
            if len(self._end_keys) != len(self._table):
                self._end_keys = sorted(map(end_key, self._table.ids()))
            keys, key = self._end_keys, end_key(identifier)
            begin, end = bisect_left(keys, key), bisect_right(keys, key)
            same = keys[begin : max(begin, end - 1)]
            return shortest_end(identifier, [*keys[:begin][-1:], *same, *keys[end : end + 1]])

    def first_line(self, identifier: str) -> bytes | None:
        with self._mutex:
            entry = self._table.entry(identifier)
            return entry.lines[0].raw if entry else None

    def history(self, identifier: str) -> list[Fields]:
        with self._mutex:
            entry = self._table.entry(identifier)
            return [{**line.fields, "rev": line.rev} for line in entry.lines] if entry else []

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
        found = [
            (instant_ms(fields.get("created_at")) or 0, str(fields["id"]), fields)
            for fields in self._matching(equals)
            if fields.get("deleted") is not True
            and not any(value_of(fields, name) == value for name, value in (differs or {}).items())
            and (lacks is None or lacks not in fields)
        ]
        if since_ms is not None:
            found = [row for row in found if row[0] >= since_ms]
        found.sort(key=lambda row: row[:2], reverse=newest_first)
        return [fields for _, _, fields in found[:limit]]

    def everything(self) -> list[Fields]:
        with self._mutex:
            return list(self._table)

    def project(
        self,
        columns: Sequence[str],
        equals: Mapping[str, object],
    ) -> list[tuple[object, ...]]:
        return [
            tuple(value_of(fields, name) for name in columns) for fields in self._matching(equals)
        ]

    def distinct(self, column: str) -> set[object]:
        values = (value_of(fields, column) for fields in self.everything())
        return {None if isinstance(value, dict | list) else value for value in values}

    def greatest(self, column: str) -> str:
        return max((each for each in self.distinct(column) if isinstance(each, str)), default="")

    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        with self._mutex:
            cursor = (self._generation, len(self._changed))
            if since is None or since[0] != self._generation:
                return None, cursor
            return self._changed[since[1] :], cursor

    def _matching(self, equals: Mapping[str, object]) -> list[Fields]:
        return [
            fields
            for fields in self.everything()
            if all(_has(fields, name, value) for name, value in equals.items())
        ]

    def _take(self, lines: Sequence[bytes], size_bytes: int, *, once: bool) -> None:
        others: list[Stated] = []
        ids = self._table.add_all(decode_records(lines, size_bytes, others), once=once)
        if not once:
            self.unusable += len(lines) - len(ids) - len(others)
        for _, fields in others:
            if fields not in self.migrations:
                self.migrations.append(fields)
        self._changed += ids


def _has(fields: Fields, name: str, value: object) -> bool:
    actual = value_of(fields, name)
    return (actual is True) is value if name in FLAGS else actual == value
