"""An index over one large ledger: SQLite, in the untracked state, disposable at any time.

One row holds the folded record of one id and the columns that services query. The next reader
brings it up to date from where the last one stopped. If it cannot be used, the ledger is folded in
memory. `docs/format.md`, "Index"; ADR 0006 and 0011.
"""

from __future__ import annotations

from queenbee._light import suppress
from queenbee.core.fold import Table
from queenbee.core.ids import KEY_LENGTH, end_key, shortest_end, spellings
from queenbee.core.kinds import kind_of
from queenbee.store.index import sqlite
from queenbee.store.index.intake import CaughtUp, Intake
from queenbee.store.index.tables import Tables, is_damage, text_of
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.codec import decode, decode_exactly
from queenbee.store.state import FLAGS, MANY, Folded, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Concatenate, ParamSpec, TypeVar

    from queenbee.core.fold import Fields
    from queenbee.store.ledger.ledger import Ledger, Receipt
    from queenbee.store.records import Cursor, Progress

    Asked = ParamSpec("Asked")
    Answer = TypeVar("Answer")

_LAST = "\U0010ffff"
"""Sorts after whatever may follow in an id."""
_FOLDED_PER_INTAKE_BYTES = 48 * 1024
"""How much of a ledger is folded in the time that one intake takes: 0.8 ms."""
_MOST_FOLDED_BYTES = 4 * 1024 * 1024
"""The largest ledger that moves to memory, in 70 ms."""
_SOME = 500
"""Records between two reports of progress: about 10 ms."""


def _else_scanned(
    question: Callable[Concatenate[Indexed, Asked], Answer],
) -> Callable[Concatenate[Indexed, Asked], Answer]:
    """Lets the ledger answer this and all later questions once the index cannot."""

    def answer(self: Indexed, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        with self._tables.mutex:
            if self._folded is None:
                try:
                    return self._certainly(lambda: question(self, *args, **kwargs))
                except (sqlite.Error, OSError):
                    self._folded = self._scan()
            asked = getattr(self._folded, question.__name__)
            found: Answer = asked(*args, **kwargs) if callable(asked) else asked
            return found

    answer.__doc__ = question.__doc__
    return answer


class Indexed:
    """The state of one ledger, from an index. Implements `store.records.Records`.

    Raises `sqlite3.Error` or `OSError` if it cannot be opened: `open_records` then folds in
    memory. If it fails later, it does so itself.
    """

    def __init__(
        self, kind: str, ledger: Ledger, path: str, *, progress: Progress | None = None
    ) -> None:
        self.kind = kind
        self.ledger = ledger
        self.path = path
        self._stamp: tuple[object, ...] | None = None
        self._tables = Tables(kind, path)
        self._intake = Intake(self._tables, ledger, progress)
        self._caught_up = CaughtUp(Position(), all_agreed=False, unrecorded=False)
        self._intakes = 0
        self._folded: Folded | None = None
        """Answers instead, once the index has failed, or is no longer worth its while."""

    @property
    @_else_scanned
    def unusable(self) -> int:
        return sum(int(self._tables.meta(key) or 0) for key in ("unusable", "torn"))

    @property
    @_else_scanned
    def migrations(self) -> list[Fields]:
        rows = self._ask("SELECT raw FROM migrations ORDER BY at")
        return [decode(raw) for (raw,) in rows if isinstance(raw, bytes)]

    @_else_scanned
    def refresh(self) -> None:
        if self._tables.is_gone():
            self._tables.reopen()
            self._stamp = None
        stamp = self.ledger.stamp()
        if stamp != self._stamp:
            self._caught_up = self._intake.catch_up()
            self._stamp = stamp
            self._intakes += 1

    def lighten(self) -> None:
        """Moves to memory if the index was brought up to date so often that folding the ledger
        would have taken no longer: whoever writes all the time needs no index.
        """
        with self._tables.mutex:
            worth_bytes = min(self._intakes * _FOLDED_PER_INTAKE_BYTES, _MOST_FOLDED_BYTES)
            if self._folded is None and self.ledger.size_bytes() <= worth_bytes:
                folded = Folded(self.kind, self.ledger)
                folded.refresh()
                self._tables.close()
                self._folded = folded

    @property
    def agreed(self) -> Position:
        return self._folded.agreed if self._folded else self._caught_up.agreed

    def append(self, lines: Sequence[bytes]) -> Receipt:
        with self._tables.mutex:
            if self._folded is not None:
                return self._folded.append(lines)
            receipt = self.ledger.append(lines, self.agreed)
            self.agree(receipt.agreed)
            return receipt

    def agree(self, agreed: Position) -> None:
        with self._tables.mutex:
            if self._folded is not None:
                self._folded.agree(agreed)
                return
            known = self._caught_up
            if not (known.all_agreed and known.agreed.segments == agreed.segments):
                with suppress(sqlite.Error):  # If it fails, the next process compares again.
                    self._tables.put_position("agreed", agreed)
            known.agreed = agreed
            known.unrecorded = False

    def foreign(self) -> str:
        with self._tables.mutex:
            if self._folded is not None:
                return self._folded.foreign()
            return self.ledger.foreign(unrecorded=self._caught_up.unrecorded)

    @_else_scanned
    def get(self, identifier: str) -> Fields | None:
        self._tables.sort_by("id")
        for count, body in self._ask("SELECT count, body FROM records WHERE id = ?", identifier):
            return self._tables.fields(count, body)
        return None

    @_else_scanned
    def exact(self, identifier: str) -> Fields | None:
        table = Table(kind_of(self.kind).aliases)
        for raw in self._tables.raws(identifier):
            table.add(raw, decode_exactly(raw))
        return table.get(identifier)

    @_else_scanned
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
        self._tables.sort_by("id")
        return self._ids("id >= ? AND id < ?", text, text + _LAST)

    def _containing(self, text: str) -> list[str]:
        return self._ids("instr(id, ?) > 0", text)

    def _ids(self, where: str, *values: object) -> list[str]:
        query = f"SELECT id FROM records WHERE {where} ORDER BY id LIMIT {MANY}"  # noqa: S608
        return [str(identifier) for (identifier,) in self._ask(query, *values)]

    @_else_scanned
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

    @_else_scanned
    def first_line(self, identifier: str) -> bytes | None:
        table = Table(kind_of(self.kind).aliases)
        for raw in self._tables.raws(identifier):
            table.add(raw, decode(raw))
        entry = table.entries.get(identifier)
        return entry.lines[0].raw if entry else None

    @_else_scanned
    def history(self, identifier: str) -> list[Fields]:
        table = Table(kind_of(self.kind).aliases)
        for raw in self._tables.raws(identifier):
            table.add(raw, decode(raw))
        entry = table.entries.get(identifier)
        return [{**line.fields, "rev": line.rev} for line in entry.lines] if entry else []

    @_else_scanned
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
            assert name in self._tables.columns, name
            where += f' AND "{name}" IS NOT ?'
            values.append(value)
        if lacks is not None:
            where += (
                " AND NOT EXISTS (SELECT 1 FROM marks WHERE marks.id = records.id AND name = ?)"
            )
            values.append(lacks)
        way = "DESC" if newest_first else "ASC"
        query = (
            f"SELECT count, body FROM records WHERE {where} "  # noqa: S608 - names of our own
            f"ORDER BY created_ms {way}, id {way} LIMIT {-1 if limit is None else int(limit)}"
        )
        return [self._tables.fields(*row) for row in self._ask(query, *values)]

    @_else_scanned
    def everything(self) -> list[Fields]:
        return [self._tables.fields(*row) for row in self._ask("SELECT count, body FROM records")]

    @_else_scanned
    def project(
        self,
        columns: Sequence[str],
        equals: Mapping[str, object],
    ) -> list[tuple[object, ...]]:
        known = {"id", *self._tables.columns}
        where, values = self._where(equals)
        if not known.issuperset(columns):
            query = f"SELECT count, body FROM records WHERE {where}"  # noqa: S608
            rows = (self._tables.fields(*row) for row in self._ask(query, *values))
            return [tuple(value_of(fields, name) for name in columns) for fields in rows]
        names = ", ".join(f'"{column}"' for column in columns)
        return self._ask(f"SELECT {names} FROM records WHERE {where}", *values)  # noqa: S608

    @_else_scanned
    def distinct(self, column: str) -> set[object]:
        assert column in self._tables.columns
        self._tables.sort_by(column)
        if all(index.split(",")[0].strip('"') != column for index in kind_of(self.kind).indexes):
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

    @_else_scanned
    def greatest(self, column: str) -> str:
        assert column in self._tables.columns
        rows = self._ask(f'SELECT max("{column}") FROM records')  # noqa: S608
        return str(rows[0][0] or "")

    @_else_scanned
    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        born = int(self._tables.meta("born") or 0)
        last = self._tables.last_change()
        if since is None or since[0] != born:
            return None, (born, last)
        rows = self._ask("SELECT id FROM records WHERE seq > ?", since[1])
        return [str(identifier) for (identifier,) in rows], (born, last)

    def ranked_text(self, match: str, words: int, marks: tuple[str, str]) -> list[tuple[str, str]]:
        """Returns (id, snippet) of the records that an FTS5 query matches: the best first, and
        the newest among equals. Raises `sqlite3.Error`, also if this SQLite has no FTS5.
        """
        with self._tables.mutex:
            if self._folded is not None:
                raise sqlite.OperationalError("the index is not in use")
            return self._certainly(lambda: self._search(match, words, marks))

    def _search(self, match: str, words: int, marks: tuple[str, str]) -> list[tuple[str, str]]:
        self._tables.sort_by("id")
        last = self._tables.last_change()
        if self._tables.meta("texted") != str(last):
            try:
                with self._tables.transaction():
                    self._gather_text()
                    self._tables.put_meta("texted", last)
            finally:
                self._intake.report(1, 1)
        rows = self._ask(
            "SELECT id, snippet(text, -1, ?, ?, '…', ?) FROM text "
            "JOIN texted ON texted.number = text.rowid JOIN records USING (id) "
            "WHERE text MATCH ? ORDER BY rank, created_ms DESC, id DESC",
            *marks,
            words,
            match,
        )
        return [(str(identifier), str(snippet)) for identifier, snippet in rows]

    def _gather_text(self) -> None:
        """Brings the words up to date with the records that are not deleted: ranks depend on how
        rare a word is among them.
        """
        db = self._tables.db
        db.execute("CREATE TABLE IF NOT EXISTS texted (number INTEGER PRIMARY KEY, id TEXT UNIQUE)")
        db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS text USING fts5 (subject, body)")
        since = (self._tables.meta("texted") or 0,)
        [[total]] = db.execute("SELECT count(*) FROM records WHERE seq > ?", since)
        query = "SELECT id, count, deleted, body FROM records WHERE seq > ?"
        for done, (identifier, count, deleted, body) in enumerate(db.execute(query, since)):
            if done % _SOME == 0:
                self._intake.report(done, total)
            added = db.execute("INSERT OR IGNORE INTO texted (id) VALUES (?)", (identifier,))
            [[number]] = self._ask("SELECT number FROM texted WHERE id = ?", identifier)
            if not added.rowcount:
                db.execute("DELETE FROM text WHERE rowid = ?", (number,))
            if not deleted:
                fields = self._tables.fields(count, body)
                texts = [text_of(fields.get(name)) or "" for name in ("subject", "body")]
                db.execute(
                    "INSERT INTO text (rowid, subject, body) VALUES (?, ?, ?)", (number, *texts)
                )

    def close(self) -> None:
        """Closes the database."""
        with self._tables.mutex:
            self._tables.close()

    def _certainly(self, ask: Callable[[], Answer]) -> Answer:
        """Returns an answer; rebuilds the index first if it turns out to be damaged."""
        try:
            return ask()
        except (sqlite.DatabaseError, ValueError, AssertionError) as error:
            if not is_damage(error):
                raise
        self._tables.start_over()
        self._caught_up = self._intake.catch_up()
        return ask()

    def _scan(self) -> Folded:
        self._tables.close()
        folded = Folded(self.kind, self.ledger)
        folded.refresh()
        return folded

    def _ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return self._tables.ask(query, *values)

    def _where(self, equals: Mapping[str, object]) -> tuple[str, list[object]]:
        self._tables.sort_by(*equals)
        terms, values = ["1"], list[object]()
        for name, value in equals.items():
            assert name in FLAGS or name in self._tables.columns, name
            terms.append(f'"{name}" = ?')
            values.append(int(bool(value)) if name in FLAGS else value)
        return " AND ".join(terms), values
