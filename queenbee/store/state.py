"""The folded state of one ledger, kept fresh while others write.

`Records` is the seam: services ask these questions, and either the fold in memory (`Folded`,
here) or an index on disk (`store.index`) answers them, alike.
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import contextmanager

from queenbee.core.fold import Table
from queenbee.core.kinds import kind_of
from queenbee.core.timestamps import instant_ms
from queenbee.store.ledger.codec import (
    Unusable,
    decode_exactly,
    decoder,
    is_migration,
    lost_precision,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Protocol

    from queenbee.core.fold import Fields
    from queenbee.store.ledger.batch import Position
    from queenbee.store.ledger.ledger import Ledger

    Decoder = Callable[[bytes], Fields]
    Cursor = tuple[int, int]
    Progress = Callable[[int, int], None]
    """Is told how much of how much is done; of a build that ends, done or not: all."""

    class Records(Protocol):
        """What services may ask of one ledger. Never writes to it; safe for threads."""

        kind: str
        ledger: Ledger

        @property
        def unusable(self) -> int:
            """The lines that carry no record."""

        @property
        def migrations(self) -> list[Fields]:
            """The ledger's `_migration` lines."""

        def refresh(self) -> None:
            """Takes in what was appended since the last call. Raises `Unreadable`."""

        def close(self) -> None:
            """Lets go of what is open; the next question would open it again elsewhere."""

        def remember_agreement(self) -> None:
            """Keeps for later processes how far journal and ledger were seen to agree."""

        def get(self, identifier: str) -> Fields | None:
            """Returns the folded fields of a record, or None."""

        def exact(self, identifier: str) -> Fields | None:
            """Returns them fit for writing back: long integers kept digit by digit."""

        def first_line(self, identifier: str) -> bytes | None:
            """Returns the line that created a record, as it stands in the ledger."""

        def history(self, identifier: str) -> list[Fields]:
            """Returns every line of a record in the order of the fold, each with its `rev`."""

        def select(
            self,
            equals: Mapping[str, object],
            *,
            since_ms: int | None = None,
            newest_first: bool = False,
            limit: int | None = None,
        ) -> list[Fields]:
            """Returns the records that are not deleted and have these values, by age.

            A flag that is absent is false.
            """

        def everything(self) -> list[Fields]:
            """Returns all records, deleted ones included, in no particular order."""

        def project(
            self, columns: Sequence[str], equals: Mapping[str, object]
        ) -> list[tuple[object, ...]]:
            """Returns some fields of the records with these values, in no particular order."""

        def distinct(self, column: str) -> set[object]:
            """Returns the values that a field has."""

        def greatest(self, column: str) -> str:
            """Returns the greatest text that a field has, or ""."""

        def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
            """Returns the ids that changed since a cursor (None: read everything anew), and
            the next cursor.
            """


_LARGE_BYTES = 1024 * 1024

INDEX_FROM_BYTES = 64 * 1024
"""From this size of a ledger on, asking an index costs less than folding: see ADR 0006."""

FLAGS = frozenset({"read", "deleted"})


def aliases_of(kind: str) -> Mapping[str, str]:
    """Returns the foreign names that lines of this kind may have."""
    return kind_of(kind).aliases


def value_of(fields: Fields, name: str) -> object:
    """Returns what a record has in a column: a `status` that is no text reads as `active`."""
    value = fields.get(name)
    return "active" if name == "status" and not isinstance(value, str) else value


class Folded:
    """The state of a ledger, folded in memory. Implements `Records`."""

    def __init__(self, kind: str, ledger: Ledger) -> None:
        self.kind = kind
        self.ledger = ledger
        self.unusable = 0
        self.migrations: list[Fields] = []
        self._changed: list[str] = []
        self._generation = 0
        self._mutex = threading.RLock()
        self._table = Table(aliases_of(kind))
        self._columns: dict[str, _Column] = {}
        self._position: Position | None = None
        self._stamp: tuple[object, ...] | None = None
        self._unended = False
        self._apart = False

    def refresh(self) -> None:
        with self._mutex:
            stamp = self.ledger.stamp()
            if stamp == self._stamp:
                return
            if self._unended:
                # The last line had no end, and may say something else by now.
                self._begin_anew()
            if not self._read_on():
                self._begin_anew()
                self._read_on()
            # The stamp from before the read: what was appended during it is read next time.
            self._stamp = stamp

    def _read_on(self) -> bool:
        """Takes in what is new; returns whether the state is that of a reader from the start.

        Where a line's place counts, it is not: lines of the journal alone were taken in behind
        the tracked ones of their time, and those that followed stand before them now.
        """
        batch = self.ledger.read(self._position)
        if batch.restarted:
            self._begin_anew()
        first = self._position is None
        decode = decoder(batch.size_bytes)
        with without_collection(batch.size_bytes):
            self._take(batch.archived, decode, once=True)
            self._take(batch.tracked, decode, once=False)
            self._take(batch.journal_only, decode, once=True)
        self._position, self._unended = batch.position, batch.unended
        self._apart = self._apart or bool(batch.journal_only)
        return first or not (self._apart and self._table.positional)

    def close(self) -> None:
        """Needs nothing: no file stays open between two reads."""

    def remember_agreement(self) -> None:
        """Needs nothing: a process that folds compares the files anyway."""

    def get(self, identifier: str) -> Fields | None:
        with self._mutex:
            return self._table.get(identifier)

    def exact(self, identifier: str) -> Fields | None:
        with self._mutex:
            entry = self._table.entries.get(identifier)
            if entry is None or not lost_precision(entry.fields):
                return entry.fields if entry else None
            again = Table(aliases_of(self.kind))
            for raw in entry.arrived:
                again.add(raw, decode_exactly(raw))
            return again.get(identifier)

    def first_line(self, identifier: str) -> bytes | None:
        with self._mutex:
            entry = self._table.entries.get(identifier)
            return entry.lines[0].raw if entry else None

    def history(self, identifier: str) -> list[Fields]:
        with self._mutex:
            entry = self._table.entries.get(identifier)
            return [{**line.fields, "rev": line.rev} for line in entry.lines] if entry else []

    def select(
        self,
        equals: Mapping[str, object],
        *,
        since_ms: int | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Fields]:
        found = [
            (instant_ms(fields.get("created_at")) or 0, str(fields["id"]), fields)
            for fields in self._matching(equals)
            if fields.get("deleted") is not True
        ]
        if since_ms is not None:
            found = [row for row in found if row[0] >= since_ms]
        found.sort(key=lambda row: row[:2], reverse=newest_first)
        return [fields for _, _, fields in found[:limit]]

    def everything(self) -> list[Fields]:
        with self._mutex:
            return list(self._table)

    def project(
        self, columns: Sequence[str], equals: Mapping[str, object]
    ) -> list[tuple[object, ...]]:
        return [
            tuple(value_of(fields, name) for name in columns) for fields in self._matching(equals)
        ]

    def distinct(self, column: str) -> set[object]:
        with self._mutex:
            return set(self._column(column).ids)

    def greatest(self, column: str) -> str:
        with self._mutex:
            return self._column(column).greatest

    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        with self._mutex:
            cursor = (self._generation, len(self._changed))
            if since is None or since[0] != self._generation:
                return None, cursor
            return self._changed[since[1] :], cursor

    def _matching(self, equals: Mapping[str, object]) -> Iterable[Fields]:
        indexed = next((name for name in equals if name not in FLAGS), None)
        with self._mutex:
            if indexed is None:
                rows: Iterable[Fields] = self.everything()
            else:
                ids = self._column(indexed).ids.get(equals[indexed], ())
                rows = [self._table.entries[each].fields for each in ids]
        others = [(name, value) for name, value in equals.items() if name != indexed]
        return [fields for fields in rows if all(_has(fields, *pair) for pair in others)]

    def _column(self, name: str) -> _Column:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = _Column(name)
        column.follow(self._changed, self._table)
        return column

    def _take(self, lines: Sequence[bytes], decode: Decoder, *, once: bool) -> None:
        for raw in lines:
            try:
                fields = decode(raw)
            except Unusable:
                self.unusable += not once
                continue
            if is_migration(fields):
                if fields not in self.migrations:
                    self.migrations.append(fields)
            else:
                self._changed.append(self._table.add(raw, fields, once=once))

    def _begin_anew(self) -> None:
        self._table = Table(aliases_of(self.kind))
        self._columns = {}
        self._position = None
        self._changed = []
        self._generation += 1
        self._unended = self._apart = False
        self.unusable = 0
        self.migrations = []


def open_records(
    kind: str, ledger: Ledger, index_path: str, *, progress: Progress | None = None
) -> Records:
    """Returns what answers for a ledger: an index where it is large, else the fold in memory."""
    if os.environ.get("QUEEN_INDEX") != "off" and ledger.size_bytes() >= INDEX_FROM_BYTES:
        import sqlite3

        from queenbee.store.index.records import Indexed

        try:
            indexed = Indexed(kind, ledger, index_path, progress=progress)
            try:
                indexed.refresh()
            except BaseException:
                indexed.close()
                raise
            return indexed
        except (sqlite3.Error, OSError):
            pass  # A state that cannot be written, a lost race: scanning is always right.
    return Folded(kind, ledger)


@contextmanager
def without_collection(size_bytes: int) -> Iterator[None]:
    """Keeps the collector of cycles away from a large input: records have none, and looking for
    them again and again takes as long as reading the records.
    """
    if size_bytes < _LARGE_BYTES or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Column:
    """The ids by the value of one field, brought up to date from the log of changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids: dict[object, dict[str, None]] = {}
        self.greatest = ""
        self._values: dict[str, object] = {}
        self._seen = 0

    def follow(self, changed: Sequence[str], table: Table) -> None:
        fresh: Iterable[str] = changed[self._seen :] if self._seen else table.entries
        for identifier in fresh:
            fields = table.get(identifier) or {}
            value = value_of(fields, self.name)
            if isinstance(value, dict | list):
                value = None
            if isinstance(value, str) and value > self.greatest:
                self.greatest = value
            old = self._values.get(identifier, self)
            if old is not self:
                self.ids[old].pop(identifier, None)
                if not self.ids[old]:
                    del self.ids[old]
            self._values[identifier] = value
            self.ids.setdefault(value, {})[identifier] = None
        self._seen = len(changed)


def _has(fields: Fields, name: str, value: object) -> bool:
    actual = value_of(fields, name)
    return (actual is True) is value if name in FLAGS else actual == value
