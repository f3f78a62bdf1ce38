"""The folded state of one ledger, kept fresh while others write.

This scans and folds in memory. It is the seam behind which an index can answer instead: what
services ask for is `get`, `where`, `everything` and `history`.
"""

from __future__ import annotations

import threading

from queenbee.core.fold import Table
from queenbee.store.codec import Unusable, decode_exactly, decoder, is_migration, lost_precision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.core.fold import Fields
    from queenbee.store.ledger import Ledger, Position

ALIASES = {"agent": "droid", "previous_agent": "previous_droid"}
"""Names that an existing Go tool writes for ours."""


class State:
    """What one ledger says, by id. Safe for threads; never writes."""

    def __init__(self, kind: str, ledger: Ledger) -> None:
        self.kind = kind
        self.ledger = ledger
        self.changed: list[str] = []
        """The ids in the order in which they changed, for followers that keep their own place."""
        self.generation = 0
        """Counts the times that everything was read anew; a follower's place is then void."""
        self.unusable = 0
        self.migrations: list[Fields] = []
        self._aliases = ALIASES if kind in ("assignments", "reservations") else {}
        self._mutex = threading.RLock()
        self._table = Table(self._aliases)
        self._columns: dict[str, _Column] = {}
        self._position: Position | None = None
        self._stamp: tuple[object, ...] | None = None

    def refresh(self) -> None:
        """Takes in what was appended since the last call. Raises `Unreadable`."""
        with self._mutex:
            stamp = self.ledger.stamp()
            if stamp == self._stamp:
                return
            batch = self.ledger.read(self._position)
            if batch.restarted:
                self._begin_anew()
                self.generation += 1
                self.changed = []
            decode = decoder(batch.size_bytes)
            first = batch.restarted or self._position is None
            self._take(batch.tracked, decode, once=False)
            self._take(batch.journal_only, decode, once=not first)
            self._position = batch.position
            # The stamp from before the read: what was appended during it is read next time.
            self._stamp = stamp

    def get(self, identifier: str) -> Fields | None:
        """Returns the folded fields of a record, or None."""
        return self._table.get(identifier)

    def everything(self) -> list[Fields]:
        """Returns the folded fields of all records, deleted ones included."""
        with self._mutex:
            return list(self._table)

    def where(self, column: str, value: object) -> list[Fields]:
        """Returns the records whose field `column` equals `value`, in no particular order."""
        with self._mutex:
            index = self._columns.get(column)
            if index is None:
                index = self._columns[column] = _Column(column)
            index.follow(self.changed, self._table)
            found = [self._table.get(each) for each in index.ids.get(value, ())]
            return [fields for fields in found if fields is not None]

    def history(self, identifier: str) -> list[Fields]:
        """Returns every line of a record in the order of the fold, each with its revision."""
        with self._mutex:
            entry = self._table.entries.get(identifier)
            return [{**line.fields, "rev": line.rev} for line in entry.lines] if entry else []

    def exact(self, identifier: str) -> Fields | None:
        """Returns a record's folded fields fit for writing back: long integers kept exactly."""
        with self._mutex:
            entry = self._table.entries.get(identifier)
            if entry is None or not lost_precision(entry.fields):
                return entry.fields if entry else None
            again = Table(self._aliases)
            for line in entry.lines:
                again.add(line.raw, decode_exactly(line.raw))
            return again.get(identifier)

    def _take(self, lines: Sequence[bytes], decode: Decoder, *, once: bool) -> None:
        for raw in lines:
            try:
                fields = decode(raw)
            except Unusable:
                self.unusable += 1
                continue
            if is_migration(fields):
                self.migrations.append(fields)
            else:
                self.changed.append(self._table.add(raw, fields, once=once))

    def _begin_anew(self) -> None:
        self._table = Table(self._aliases)
        self._columns = {}
        self._position = None
        self.unusable = 0
        self.migrations = []


if TYPE_CHECKING:
    from collections.abc import Callable

    Decoder = Callable[[bytes], Fields]


class _Column:
    """The ids by the value of one field, brought up to date from the log of changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids: dict[object, dict[str, None]] = {}
        self._values: dict[str, object] = {}
        self._seen = 0

    def follow(self, changed: Sequence[str], table: Table) -> None:
        fresh: Iterable[str] = changed[self._seen :] if self._seen else table.entries
        for identifier in fresh:
            fields = table.get(identifier) or {}
            value = fields.get(self.name)
            if isinstance(value, dict | list):
                value = None
            old = self._values.get(identifier, self)
            if old is not self:
                self.ids[old].pop(identifier, None)
            self._values[identifier] = value
            self.ids.setdefault(value, {})[identifier] = None
        self._seen = len(changed)
