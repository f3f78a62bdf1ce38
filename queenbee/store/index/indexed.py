"""An index over one large ledger: SQLite, in the untracked state, disposable at any time.

One row holds the folded record of one id and the columns that services query. `docs/format.md`,
"Index"; ADR 0006 and 0011.
"""

from __future__ import annotations

from queenbee._light import suppress
from queenbee.core.fold import Table
from queenbee.core.ids import KEY_LENGTH, end_key, shortest_end, spellings
from queenbee.core.kinds import kind_of
from queenbee.store.index import sqlite
from queenbee.store.index.intake import CaughtUp, Intake
from queenbee.store.index.tables import Tables, Unfit, is_damage
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.codec import decode, decode_exactly
from queenbee.store.state import FLAGS, MANY, Folded, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from queenbee.core.fold import Fields, Line
    from queenbee.store.ledger.ledger import Ledger, Receipt
    from queenbee.store.questions import Cursor, Progress

_LAST = "\U0010ffff"
"""Sorts after whatever may follow in an id."""
_DAMAGE = (sqlite.DatabaseError, ValueError, AssertionError)
_FAILURES = (sqlite.Error, OSError, Unfit)


class Indexed:
    """The state of a large ledger: its index answers; once that cannot, the fold in memory does.

    Implements `store.questions.Records`: the questions are those of `Index` and of `Folded`. Raises
    `sqlite3.Error`, `OSError` or `Unfit` if the index cannot be opened.
    """

    def __init__(
        self, kind: str, ledger: Ledger, path: str, *, progress: Progress | None = None
    ) -> None:
        self.kind = kind
        self.ledger = ledger
        self.path = path
        self._index = Index(kind, ledger, Tables(kind, path), progress)
        self._mutex = self._index.tables.mutex
        self._folded: Folded | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in _QUESTIONS:
            raise AttributeError(name)
        if isinstance(getattr(Index, name), property):
            return self._ask(name)
        return lambda *args, **kwargs: self._ask(name, *args, **kwargs)

    def _ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Returns an answer. The only place that decides what happens if the index fails: if it is
        damaged, it is deleted and built once; if it still fails, the fold answers from now on.
        """
        with self._mutex:
            for is_again in (False, True):
                if self._folded is not None:
                    break
                try:
                    return _answer(self._index, name, *args, **kwargs)
                except (*_DAMAGE, *_FAILURES) as error:
                    self._recover(error, is_again=is_again)
            return _answer(self._folded, name, *args, **kwargs)

    def _recover(self, error: Exception, *, is_again: bool) -> None:
        damaged = isinstance(error, _DAMAGE) and is_damage(error)
        if damaged and not is_again:
            with suppress(*_FAILURES):
                self._index.start_over()
                return
        elif not isinstance(error, _FAILURES):
            raise error
        self.close()
        folded = Folded(self.kind, self.ledger)
        folded.refresh()
        self._folded = folded

    # What is never asked twice: it writes, or it cannot fail.

    @property
    def agreed(self) -> Position:
        return self._folded.agreed if self._folded else self._index.caught_up.agreed

    def append(self, lines: Sequence[bytes]) -> Receipt:
        with self._mutex:
            if self._folded is not None:
                return self._folded.append(lines)
            receipt = self.ledger.append(lines, self.agreed)
            self._index.agree(receipt.agreed)
            return receipt

    def agree(self, agreed: Position) -> None:
        with self._mutex:
            (self._folded or self._index).agree(agreed)

    def foreign(self) -> str:
        with self._mutex:
            if self._folded is not None:
                return self._folded.foreign()
            return self.ledger.foreign(unrecorded=self._index.caught_up.unrecorded)

    def close(self) -> None:
        """Closes the database."""
        with self._mutex:
            self._index.tables.close()


def _answer(state: Index | Folded | None, name: str, *args: Any, **kwargs: Any) -> Any:
    found = getattr(state, name)
    return found(*args, **kwargs) if callable(found) else found


class Index:
    """Answers the questions of `Records`. Raises `sqlite3.Error`, `OSError` or `Unfit`."""

    def __init__(
        self, kind: str, ledger: Ledger, tables: Tables, progress: Progress | None
    ) -> None:
        self.kind = kind
        self.ledger = ledger
        self.tables = tables
        self.caught_up = CaughtUp(Position(), all_agreed=False, unrecorded=False)
        self._stamp: tuple[object, ...] | None = None
        self._in_effect: dict[str, str] = {}
        self._intake = Intake(tables, ledger, progress)

    def start_over(self) -> None:
        """Deletes a damaged index, and builds another."""
        self.tables.start_over()
        self._stamp = None
        self.refresh()

    def agree(self, agreed: Position) -> None:
        """Remembers this position, also for later processes if they would not find it."""
        known = self.caught_up
        if not (known.all_agreed and known.agreed.segments == agreed.segments):
            with suppress(sqlite.Error):  # If it fails, the next process compares again.
                self.tables.put_position("agreed", agreed)
        known.agreed = agreed
        known.unrecorded = False

    @property
    def unusable(self) -> int:
        return int(self.tables.meta("unusable") or 0)

    @property
    def migrations(self) -> list[Fields]:
        rows = self._ask("SELECT raw FROM migrations ORDER BY at")
        return [decode(raw) for (raw,) in rows if isinstance(raw, bytes)]

    def refresh(self) -> None:
        if self.tables.is_gone():
            self.tables.reopen()
            self._stamp = None
        stamp = self.ledger.stamp()
        if stamp != self._stamp:
            self.caught_up = self._intake.catch_up()
            self._in_effect = self.tables.in_effect()
            self._stamp = stamp

    def get(self, identifier: str) -> Fields | None:
        for row in self._ask("SELECT count, body, sum FROM records WHERE id = ?", identifier):
            return self.tables.fields(*row)
        if identifier in self._in_effect:
            raise sqlite.DatabaseError("the index does not find a grant that it has")
        return None

    def exact(self, identifier: str) -> Fields | None:
        table = Table(kind_of(self.kind).aliases)
        for raw in self.tables.raws(identifier):
            table.add(raw, decode_exactly(raw))
        return table.get(identifier)

    def named(self, part: str) -> list[str]:
        for matching in (self._ending, self._beginning, self._containing):
            for text in spellings(part):
                if found := matching(text):
                    return found
        return []

    def _ending(self, text: str) -> list[str]:
        key = end_key(text)
        where = "end_key >= ? AND end_key < ?"
        values: list[object] = [key, key + _LAST]
        if len(text) > KEY_LENGTH:
            where, values = f"{where} AND substr(id, ?) = ?", [*values, -len(text), text]
        return self._ids(where, *values)

    def _beginning(self, text: str) -> list[str]:
        return self._ids("id >= ? AND id < ?", text, text + _LAST)

    def _containing(self, text: str) -> list[str]:
        return self._ids("instr(id, ?) > 0", text)

    def _ids(self, where: str, *values: object) -> list[str]:
        query = f"SELECT id FROM records WHERE {where} ORDER BY id LIMIT {MANY}"  # noqa: S608
        return [str(identifier) for (identifier,) in self._ask(query, *values)]

    def short_id(self, identifier: str) -> str:
        key = end_key(identifier)
        rows = self._ask(
            "SELECT max(end_key) FROM records WHERE end_key < ? "
            "UNION ALL SELECT min(end_key) FROM records WHERE end_key > ? "
            "UNION ALL SELECT * FROM "
            "(SELECT end_key FROM records WHERE end_key = ? LIMIT 1 OFFSET 1)",
            key,
            key,
            key,
        )
        return shortest_end(identifier, [str(other) for (other,) in rows if other is not None])

    def first_line(self, identifier: str) -> bytes | None:
        lines = self._lines(identifier)
        return lines[0].raw if lines else None

    def history(self, identifier: str) -> list[Fields]:
        return [{**line.fields, "rev": line.rev} for line in self._lines(identifier)]

    def _lines(self, identifier: str) -> Sequence[Line]:
        table = Table(kind_of(self.kind).aliases)
        for raw in self.tables.raws(identifier):
            table.add(raw, decode(raw))
        entry = table.entries.get(identifier)
        return entry.lines if entry else ()

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
        where, values = self._where({**equals, "deleted": False})
        if since_ms is not None:
            where += " AND created_ms >= ?"
            values.append(since_ms)
        for name, value in (differs or {}).items():
            assert name in self.tables.columns, name
            where += f' AND "{name}" IS NOT ?'
            values.append(value)
        if lacks is not None:
            where += (
                " AND NOT EXISTS (SELECT 1 FROM marks WHERE marks.id = records.id AND name = ?)"
            )
            values.append(lacks)
        way = "DESC" if newest_first else "ASC"
        query = (
            f"SELECT count, body, sum FROM records WHERE {where} "  # noqa: S608 - names of our own
            f"ORDER BY created_ms {way}, id {way} LIMIT {-1 if limit is None else int(limit)}"
        )
        found = [self.tables.fields(*row) for row in self._ask(query, *values)]
        self._check(equals, found)
        return found

    def _check(self, equals: Mapping[str, object], found: Sequence[Fields]) -> None:
        """Raises `DatabaseError` if an active grant is missing in an answer about what it holds."""
        held = equals.get(kind_of(self.kind).holds)
        if held is None or len(equals) > 1:
            return
        ids = {fields["id"] for fields in found}
        for identifier, what in self._in_effect.items():
            if what == held and identifier not in ids:
                fields = self.get(identifier) or {}
                if not fields.get("deleted"):
                    raise sqlite.DatabaseError("the index does not find a grant that it has")

    def everything(self) -> list[Fields]:
        return [
            self.tables.fields(*row) for row in self._ask("SELECT count, body, sum FROM records")
        ]

    def project(
        self,
        columns: Sequence[str],
        equals: Mapping[str, object],
    ) -> list[tuple[object, ...]]:
        known = {"id", *self.tables.columns}
        where, values = self._where(equals)
        if not known.issuperset(columns):
            query = f"SELECT count, body, sum FROM records WHERE {where}"  # noqa: S608
            rows = (self.tables.fields(*row) for row in self._ask(query, *values))
            return [tuple(value_of(fields, name) for name in columns) for fields in rows]
        names = ", ".join(f'"{column}"' for column in columns)
        return self._ask(f"SELECT {names} FROM records WHERE {where}", *values)  # noqa: S608

    def distinct(self, column: str) -> set[object]:
        assert column in self.tables.columns
        if all(index[0] != column for index in kind_of(self.kind).indexes):
            rows = self._ask(f'SELECT DISTINCT "{column}" FROM records')  # noqa: S608
        else:
            # From one value to the next in the SQL index; DISTINCT would read all of it.
            rows = self._ask(
                f'WITH RECURSIVE each(value) AS (SELECT min("{column}") FROM records UNION ALL '  # noqa: S608
                f'SELECT (SELECT min("{column}") FROM records WHERE "{column}" > value) FROM each '
                "WHERE value IS NOT NULL) SELECT value FROM each WHERE value IS NOT NULL UNION "
                f'SELECT NULL WHERE EXISTS (SELECT 1 FROM records WHERE "{column}" IS NULL)'
            )
        return {value for (value,) in rows}

    def greatest(self, column: str) -> str:
        assert column in self.tables.columns
        rows = self._ask(f'SELECT max("{column}") FROM records')  # noqa: S608
        return str(rows[0][0] or "")

    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        born = int(self.tables.meta("born") or 0)
        last = self.tables.last_change()
        if since is None or since[0] != born:
            return None, (born, last)
        rows = self._ask("SELECT id FROM records WHERE seq > ?", since[1])
        return [str(identifier) for (identifier,) in rows], (born, last)

    def _ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return self.tables.ask(query, *values)

    def _where(self, equals: Mapping[str, object]) -> tuple[str, list[object]]:
        terms, values = ["1"], list[object]()
        for name, value in equals.items():
            assert name in FLAGS or name in self.tables.columns, name
            terms.append(f'"{name}" = ?')
            values.append(int(bool(value)) if name in FLAGS else value)
        return " AND ".join(terms), values


_QUESTIONS = frozenset(name for name in vars(Index) if name[0] != "_") - {"agree", "start_over"}
