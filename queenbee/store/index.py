"""An index over one large ledger: SQLite, in the untracked state, disposable at any time.

One row holds the folded record of one id and the columns that services ask for. Whoever reads
next brings it up to date from the marks where it stopped. Where it cannot be used at all, the
ledger is scanned. `docs/format.md`, "Index"; ADR 0006.
"""

from __future__ import annotations

import sqlite3

from queenbee.core.fold import Table
from queenbee.store.codec import decode, decode_exactly
from queenbee.store.index_intake import Doubt, Intake
from queenbee.store.index_tables import Tables, text_of
from queenbee.store.state import FLAGS, aliases_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.store.ledger import Ledger
    from queenbee.store.state import Cursor, Progress


class Indexed:
    """The state of one ledger, from an index. Implements `store.state.Records`.

    Raises `sqlite3.Error` or `OSError` where the index cannot be used: `open_records` then scans.
    """

    def __init__(
        self, kind: str, ledger: Ledger, path: str, *, progress: Progress | None = None
    ) -> None:
        self.kind = kind
        self.ledger = ledger
        self.path = path
        self._stamp: tuple[object, ...] | None = None
        self._chained = False
        self._tables = Tables(kind, path)
        self._intake = Intake(self._tables, ledger, progress)

    @property
    def unusable(self) -> int:
        (count,) = self._ask("SELECT coalesce(sum(lines), 0) FROM unusable")[0]
        assert isinstance(count, int)
        return count

    @property
    def migrations(self) -> list[Fields]:
        rows = self._ask("SELECT raw FROM migrations ORDER BY at")
        return [decode(raw) for (raw,) in rows if isinstance(raw, bytes)]

    def refresh(self) -> None:
        with self._tables.mutex:
            stamp = self.ledger.stamp()
            if stamp == self._stamp:
                return
            try:
                self._chained = self._intake.catch_up()
            except (Doubt, sqlite3.DatabaseError):
                self._tables.build_anew()
                self._chained = self._intake.catch_up()
            self._stamp = stamp

    def remember_agreement(self) -> None:
        with self._tables.mutex:
            # Where reading and agreement had come equally far, catching up moves both on.
            if not self._chained:
                self._tables.put_position("agreed", self.ledger.agreed)
            self._intake.let_go_of_agreed()

    def get(self, identifier: str) -> Fields | None:
        for count, body in self._ask("SELECT count, body FROM records WHERE id = ?", identifier):
            return self._tables.fields(count, body)
        return None

    def exact(self, identifier: str) -> Fields | None:
        table = Table(aliases_of(self.kind))
        for raw in self._tables.raws(identifier):
            table.add(raw, decode_exactly(raw))
        return table.get(identifier)

    def first_line(self, identifier: str) -> bytes | None:
        table = Table(aliases_of(self.kind))
        for raw in self._tables.raws(identifier):
            table.add(raw, decode(raw))
        entry = table.entries.get(identifier)
        return entry.lines[0].raw if entry else None

    def history(self, identifier: str) -> list[Fields]:
        table = Table(aliases_of(self.kind))
        for raw in self._tables.raws(identifier):
            table.add(raw, decode(raw))
        entry = table.entries.get(identifier)
        return [{**line.fields, "rev": line.rev} for line in entry.lines] if entry else []

    def select(
        self,
        equals: Mapping[str, object],
        *,
        since_ms: int | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Fields]:
        where, values = self._where({**equals, "deleted": False})
        if since_ms is not None:
            where += " AND created_ms >= ?"
            values.append(since_ms)
        way = "DESC" if newest_first else "ASC"
        query = (
            f"SELECT count, body FROM records WHERE {where} "  # noqa: S608 - names of our own
            f"ORDER BY created_ms {way}, id {way} LIMIT {-1 if limit is None else int(limit)}"
        )
        return [self._tables.fields(*row) for row in self._ask(query, *values)]

    def everything(self) -> list[Fields]:
        return [self._tables.fields(*row) for row in self._ask("SELECT count, body FROM records")]

    def project(
        self, columns: Sequence[str], equals: Mapping[str, object]
    ) -> list[tuple[object, ...]]:
        known = {"id", *self._tables.columns}
        where, values = self._where(equals)
        if not known.issuperset(columns):
            query = f"SELECT count, body FROM records WHERE {where}"  # noqa: S608
            rows = (self._tables.fields(*row) for row in self._ask(query, *values))
            return [tuple(value_of(fields, name) for name in columns) for fields in rows]
        names = ", ".join(f'"{column}"' for column in columns)
        return self._ask(f"SELECT {names} FROM records WHERE {where}", *values)  # noqa: S608

    def distinct(self, column: str) -> set[object]:
        assert column in self._tables.columns
        rows = self._ask(f'SELECT DISTINCT "{column}" FROM records')  # noqa: S608
        return {value for (value,) in rows}

    def greatest(self, column: str) -> str:
        assert column in self._tables.columns
        rows = self._ask(f'SELECT max("{column}") FROM records')  # noqa: S608
        return str(rows[0][0] or "")

    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        born = int(self._tables.meta("born") or 0)
        (last,) = self._ask("SELECT coalesce(max(seq), 0) FROM records")[0]
        assert isinstance(last, int)
        if since is None or since[0] != born:
            return None, (born, last)
        rows = self._ask("SELECT id FROM records WHERE seq > ?", since[1])
        return [str(identifier) for (identifier,) in rows], (born, last)

    def ranked_text(self, match: str, words: int, marks: tuple[str, str]) -> list[tuple[str, str]]:
        """Returns (id, snippet) of the records that an FTS5 query matches: the best first, of
        alike ones the newest. Raises `sqlite3.Error`, also where this SQLite has no FTS5.
        """
        with self._tables.mutex:
            (last,) = self._ask("SELECT coalesce(max(seq), 0) FROM records")[0]
            if self._tables.meta("texted") != str(last):
                with self._tables.transaction():
                    self._gather_text()
                    self._tables.put_meta("texted", last)
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
        """Brings the words up to date with the records that are not deleted: how rare a word is
        among them decides on ranks.
        """
        db = self._tables.db
        db.execute("CREATE TABLE IF NOT EXISTS texted (number INTEGER PRIMARY KEY, id TEXT UNIQUE)")
        db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS text USING fts5 (subject, body)")
        query = "SELECT id, count, deleted, body FROM records WHERE seq > ?"
        changed = db.execute(query, (self._tables.meta("texted") or 0,))
        for identifier, count, deleted, body in changed:
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
            self._tables.db.close()

    def _ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return self._tables.ask(query, *values)

    def _where(self, equals: Mapping[str, object]) -> tuple[str, list[object]]:
        terms, values = ["1"], list[object]()
        for name, value in equals.items():
            assert name in FLAGS or name in self._tables.columns, name
            terms.append(f'"{name}" = ?')
            values.append(int(bool(value)) if name in FLAGS else value)
        return " AND ".join(terms), values
