"""The tables of an index: one SQLite database for one kind, and how lines are folded into it.

Disposable like the whole index: `docs/format.md`, "Index"; ADR 0006.
"""

from __future__ import annotations

import os
from _thread import RLock

from queenbee._light import nullcontext, suppress
from queenbee.core import plain_json
from queenbee.core.fold import Table, explicit_rev
from queenbee.core.ids import KEY_LENGTH
from queenbee.core.kinds import kind_of
from queenbee.core.timestamps import instant_ms
from queenbee.store import safe_open
from queenbee.store.files import Mark, size_of, stamp_of
from queenbee.store.index import sqlite
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.codec import (
    decode,
    decode_records,
    is_migration,
    pack,
    unpack,
    without_collection,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.fold import Fields, Stated

VERSION = 15
"""Of the tables below; an index of another version is rebuilt."""

_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Of the database, and of the files that SQLite keeps next to it."""
LONG_WAL_BYTES = 8 * 1024 * 1024
"""A new index of a longer ledger does not go through the log."""
LOG_BYTES = 512 * 1024
"""The first process after all others have ended reads the whole log: 1 ms for this much, 5 ms for
an index of 1,000 leases. A change adds 40 to 70 KB.
"""
_OPEN_S = 2.0
_WAIT_S = 30.0
"""How long a reader waits while another brings the index up to date: it would only read the same
lines. Opening never takes that long.
"""
_BATCH = 500
"""Ids in one query: old builds of SQLite allow 999 parameters."""


_open: list[str] = []
"""The databases that are open in this process."""
_inherited: frozenset[str] = frozenset()
"""Those that were open in its parent when it was forked."""


def _note_fork() -> None:
    global _inherited  # noqa: PLW0603 - SQLite's own state is one per process, too
    _inherited |= frozenset(_open)


# SQLite remembers for the whole process what it has locked. A child inherits that, also of what
# another thread of its parent had locked at that moment and the child cannot release: it would wait
# for itself. So it folds these ledgers in memory.
os.register_at_fork(after_in_child=_note_fork)


class Tables:
    """An open index. Raises `sqlite3.Error` or `OSError` if it cannot be used."""

    version = VERSION

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.path = path
        self.columns = kind_of(kind).columns
        self._late = frozenset({"id", *kind_of(kind).rarely})
        """The columns whose SQL indexes may be missing."""
        self._looked = dict[str, object]()
        """The version of the tables for which that was last looked at, by column."""
        self.mutex = RLock()
        self.db = self._open()

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Returns the rows that answer a query."""
        with self.mutex:
            return self.db.execute(query, values).fetchall()

    def meta(self, key: str) -> str | None:
        """Returns a stored note."""
        rows = self.ask("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def blob(self, key: str) -> bytes:
        """Returns the bytes stored under a key, or b""."""
        rows = self.ask("SELECT value FROM meta WHERE key = ?", key)
        value = rows[0][0] if rows else b""
        return value if isinstance(value, bytes) else b""

    def put_meta(self, key: str, value: object) -> None:
        """Stores a note, inside the open transaction if there is one."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def position(self, name: str) -> Position:
        """Returns a stored position, or the start."""
        kept = self.meta(name)
        if kept is None:
            return Position()
        tracked, journal, segments = plain_json.loads(kept)
        stamps = {name: tuple(stamp) for name, stamp in segments.items()}
        return Position(Mark(*tracked), Mark(*journal), stamps)

    def put_position(self, name: str, position: Position) -> None:
        """Stores a position."""
        marks = [[m.inode, m.offset, m.sum] for m in (position.tracked, position.journal)]
        self.put_meta(name, plain_json.dumps([*marks, position.segments]))

    def last_change(self) -> int:
        """Returns the number of the last change to a record."""
        [[last]] = self.ask("SELECT coalesce(max(seq), 0) FROM records")
        assert isinstance(last, int)
        return max(last, int(self.meta("removed_at") or 0))

    def fields(self, count: object, body: object) -> Fields:
        """Returns the fields of a record, from its row."""
        assert isinstance(body, bytes)
        fields = unpack(body)
        if count == 1:  # The line itself, as the ledger has it.
            table = Table(kind_of(self.kind).aliases)
            return table.get(table.add(body, fields)) or {}
        return fields

    def raws(self, identifier: str) -> list[bytes]:
        """Returns the lines of a record in the order they were read."""
        self.sort_by("id")
        rows = self.ask("SELECT raw FROM lines WHERE id = ? ORDER BY at", identifier)
        if not rows:
            rows = self.ask("SELECT body FROM records WHERE id = ?", identifier)
        return [raw for (raw,) in rows if isinstance(raw, bytes)]

    def transaction(self) -> _Transaction:
        """Commits everything done inside, or nothing. Nobody else can write in the meantime."""
        return _Transaction(self)

    def shorten_log(self) -> None:
        """Moves a long log into the file. Waits for nobody: the next change tries again."""
        if size_of(self.path + "-wal") > LOG_BYTES:
            self.db.execute("PRAGMA busy_timeout = 0")
            with suppress(sqlite.OperationalError):
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.db.execute(f"PRAGMA busy_timeout = {int(_WAIT_S * 1000)}")

    def clear(self) -> None:
        """Deletes all records, inside a transaction. Processes that wait for it find the tables
        filled again; if the file were deleted, each would build another.
        """
        rows = self.ask(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' "
            "ESCAPE '~' ORDER BY sql NOT LIKE 'CREATE VIRTUAL%'"
        )
        for (name,) in rows:
            self.db.execute(f'DROP TABLE IF EXISTS "{name}"')
        self.create(self.db)

    def create(self, db: sqlite.Connection) -> None:
        """Creates the tables, empty."""
        _create(db, self.kind)

    def unlogged(self) -> _Unlogged:
        """Writes what is done inside straight to the file, if no other process has it open: in the
        log, all of a new index would be written twice.

        Processes that come meanwhile wait until they can open the file. If this one is killed,
        SQLite takes back what it wrote.
        """
        return _Unlogged(self)

    def keep_log(self) -> None:
        """Has changes go to the log, where readers need not wait for them."""
        with suppress(sqlite.OperationalError):  # Another process reads: the next change tries.
            self.db.execute("PRAGMA journal_mode = WAL")

    def sort(self) -> None:
        """Creates the SQL indexes, once the records of a new index are in it: sorting all of them
        takes a fifth of the time of keeping them sorted from the first on.

        Those that not everybody needs are left to `sort_by`.
        """
        for column, statement in _sql_indexes(self.kind).values():
            if column not in self._late:
                self.db.execute(statement)

    def sort_by(self, *columns: str) -> None:
        """Creates the SQL indexes for a question by these columns, if they are not there.

        If that fails, as on a disk that is read-only, the answer only takes longer.
        """
        asked = self._late.intersection(columns)
        if not asked:
            return
        with self.mutex:
            version = self.ask("PRAGMA schema_version")
            if any(self._looked.get(column) != version for column in asked):
                self._sort_by(asked)
                version = self.ask("PRAGMA schema_version")
                self._looked.update(dict.fromkeys(asked, version))

    def _sort_by(self, columns: Collection[str]) -> None:
        there = {name for (name,) in self.ask("SELECT name FROM sqlite_master")}
        missing = [
            statement
            for name, (column, statement) in _sql_indexes(self.kind).items()
            if column in columns and name not in there
        ]
        try:
            if missing:
                with nullcontext() if self.db.in_transaction else self.transaction():
                    for each in missing:
                        self.db.execute(each)
        except sqlite.OperationalError as error:
            if is_damage(error):
                raise

    def is_gone(self) -> bool:
        """Returns whether the file was deleted or replaced since it was opened: what is open then
        stays as it was, with what a purge removed.
        """
        return stamp_of(self.path)[:1] != self._inode

    def reopen(self) -> None:
        """Opens the file that has the name now, or creates one."""
        self.close()
        self.db = self._open()

    def start_over(self) -> None:
        """Deletes a damaged file, and creates another."""
        self.close()
        remove(self.path)
        self.db = self._open()

    def _open(self) -> sqlite.Connection:
        safe_open.make_folder(os.path.dirname(self.path))
        try:
            return self._connect()
        except sqlite.DatabaseError as error:
            if not is_damage(error):
                raise
        remove(self.path)
        return self._connect()

    def _connect(self) -> sqlite.Connection:
        if self.path in _inherited:
            raise sqlite.OperationalError("SQLite cannot be used after a fork")
        # SQLite opens the files by their paths: O_NOFOLLOW is its own, for all but the first.
        for suffix in _SUFFIXES:
            safe_open.refuse_links(self.path + suffix)
        if not os.path.lexists(self.path):
            # SQLite gives the files beside it the same permissions, and other users may need them.
            os.close(safe_open.open_file(self.path, os.O_RDWR | os.O_CREAT))
        # Autocommit: transactions are begun explicitly.
        db = sqlite.connect(
            self.path, timeout=_OPEN_S, isolation_level=None, check_same_thread=False
        )
        try:
            version = _version_when_built(db, self.path)
            # A power cut may lose the last lines of the index, but must not corrupt it: NORMAL in
            # WAL mode gives that without waiting for the disk.
            db.execute("PRAGMA synchronous = NORMAL")
            if version != self.version:
                db.execute("PRAGMA journal_mode = WAL")
                self.db = db
                with self.transaction():
                    if _version(db) != self.version:
                        self.clear()
            self._inode = stamp_of(self.path)[:1]
            db.execute(f"PRAGMA busy_timeout = {int(_WAIT_S * 1000)}")
        except BaseException:
            db.close()
            raise
        _open.append(self.path)
        return db

    def close(self) -> None:
        """Closes the database."""
        self.db.close()
        with suppress(ValueError):
            _open.remove(self.path)


class _Transaction:
    """A block inside a transaction. A generator would need `contextlib`, which hooks do without."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __enter__(self) -> None:
        self._tables.db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *error: object) -> None:
        db = self._tables.db
        try:
            if kind is None:
                db.execute("COMMIT")
        finally:
            # An error in the block, or in the commit.
            if db.in_transaction:
                db.execute("ROLLBACK")
        if kind is None:
            self._tables.shorten_log()


class _Unlogged:
    """A block in which changes go straight to the file."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __enter__(self) -> None:
        with suppress(sqlite.OperationalError):
            self._tables.db.execute("PRAGMA journal_mode = DELETE")

    def __exit__(self, *error: object) -> None:
        self._tables.keep_log()


def is_damage(error: Exception) -> bool:
    """Returns whether an error comes from the content of the file, and not from another process,
    the disk, or permissions.
    """
    if isinstance(error, sqlite.OperationalError):
        # Our statements are right, so the tables are wrong; but this SQLite may lack FTS5.
        wrong = getattr(error, "sqlite_errorcode", None) == sqlite.SQLITE_ERROR
        return wrong and "no such module" not in str(error)
    return not isinstance(error, sqlite.ProgrammingError)  # It was closed.


def _version(db: sqlite.Connection) -> object:
    return db.execute("PRAGMA user_version").fetchone()[0]


def _version_when_built(db: sqlite.Connection, path: str) -> object:
    try:
        return _version(db)
    except sqlite.OperationalError:
        # A process that builds an index outside the log has this file while it does.
        if not os.path.lexists(path + "-journal"):
            raise
        db.execute(f"PRAGMA busy_timeout = {int(_WAIT_S * 1000)}")
        return _version(db)


def _create(db: sqlite.Connection, kind: str) -> None:
    named = "".join(f', "{column}" TEXT' for column in kind_of(kind).columns)
    db.execute(
        "CREATE TABLE records (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, "
        "count INTEGER NOT NULL, created_ms INTEGER NOT NULL, read INTEGER NOT NULL, "
        f"deleted INTEGER NOT NULL, end_key TEXT NOT NULL, body BLOB NOT NULL{named})"
    )
    db.execute("CREATE TABLE lines (id TEXT, at INTEGER, raw BLOB, PRIMARY KEY (id, at))")
    db.execute("CREATE TABLE marks (id TEXT, name TEXT, PRIMARY KEY (id, name)) WITHOUT ROWID")
    db.execute("CREATE TABLE loose (raw BLOB PRIMARY KEY)")
    db.execute(
        "CREATE TABLE segments (name TEXT PRIMARY KEY, stamp TEXT NOT NULL, "
        "digest TEXT NOT NULL, held INTEGER NOT NULL, taken INTEGER NOT NULL)"
    )
    db.execute("CREATE TABLE migrations (at INTEGER PRIMARY KEY, raw BLOB UNIQUE)")
    db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
    db.execute("INSERT INTO meta VALUES ('born', ?)", (_birth(),))
    db.execute(f"PRAGMA user_version = {VERSION}")


def _sql_indexes(kind: str) -> dict[str, tuple[str, str]]:
    """Returns the first column of each SQL index, and the statement that makes it, by its name."""
    found = {
        "by_id": ("id", "CREATE UNIQUE INDEX IF NOT EXISTS by_id ON records (id)"),
        "by_end": ("end_key", "CREATE INDEX IF NOT EXISTS by_end ON records (end_key)"),
    }
    for number, columns in enumerate(kind_of(kind).indexes):
        first, name = columns.split(",")[0].strip('"'), f"by_{number}"
        found[name] = first, f"CREATE INDEX IF NOT EXISTS {name} ON records ({columns})"
    return found


def _birth() -> int:
    """Returns a random number: followers that know another one read everything again."""
    return int.from_bytes(os.urandom(6), "big")


def remove(path: str) -> None:
    """Deletes an index with the files that SQLite keeps next to it."""
    for suffix in _SUFFIXES:
        with suppress(FileNotFoundError):
            safe_open.unlink(path + suffix)


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
        # Not `max(id)`: that reads all records if nobody has asked by their ids yet.
        self._greatest = tables.meta("greatest") or ""
        """No id in the index sorts after this one."""
        # What `value_of` and `text_of` make of a field, without a call for each.
        self._otherwise = [(name, "active" if name == "status" else None) for name in self._columns]
        marks = ", ".join("?" * (8 + len(self._columns)))
        self._insert = f"INSERT INTO records VALUES ({marks})"  # noqa: S608
        self._replace = f"INSERT OR REPLACE INTO records VALUES ({marks})"  # noqa: S608

    def take(self, lines: list[bytes], *, once: bool) -> Taken:
        """Folds lines into the records. With `once`, a line that is already there never counts
        again.
        """
        size_bytes = sum(map(len, lines))
        with without_collection(size_bytes):
            return self._take(lines, size_bytes, once=once)

    def _take(self, lines: list[bytes], size_bytes: int, *, once: bool) -> Taken:
        others: list[Stated] = []
        records = list(decode_records(lines, size_bytes, others))
        query = "INSERT OR IGNORE INTO migrations (raw) VALUES (?)"
        fresh = [raw for raw, _ in others if self._db.execute(query, (raw,)).rowcount]
        # New ids of ours sort after all others, so that nothing needs to be looked up for them.
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
        if self._greatest != self._tables.meta("greatest"):
            self._tables.put_meta("greatest", self._greatest)

    def _known(self, ids: Collection[str]) -> Table:
        """Returns a table with the lines that the index has for these ids."""
        table = Table(kind_of(self._kind).aliases)
        if ids:
            self._tables.sort_by("id")
        for some in _batches(sorted(ids)):
            marks = ", ".join("?" * len(some))
            many = []
            query = f"SELECT id, count, body FROM records WHERE id IN ({marks})"  # noqa: S608
            for identifier, count, body in self._db.execute(query, some):
                if count == 1:
                    table.add(body, decode(body))
                else:
                    many.append(identifier)
            for identifier in many:
                query = "SELECT raw FROM lines WHERE id = ? ORDER BY at"
                for (raw,) in self._db.execute(query, (identifier,)):
                    table.add(raw, decode(raw))
        return table

    def _store(self, table: Table, known: Mapping[str, int]) -> list[bytes]:
        """Writes the records that have more lines than the number `known`, which has those that are
        in the index already; returns the new lines.
        """
        rows, new_rows = list[tuple[object, ...]](), list[tuple[object, ...]]()
        lines, fresh = list[tuple[str, int, bytes]](), list[bytes]()
        marks_of = kind_of(self._kind).marks
        for identifier, arrived, fields in table.folded():
            count = len(arrived)
            if identifier not in known:
                fresh += arrived
                rows_of = new_rows
            elif count > known[identifier]:
                fresh += arrived[known[identifier] :]
                rows_of = rows
            else:
                continue
            self._seq += 1
            value = fields.get
            row = (
                self._seq,
                identifier,
                count,
                instant_ms(value("created_at")) or 0,
                value("read") is True,
                value("deleted") is True,
                identifier[: -KEY_LENGTH - 1 : -1],  # `end_key`, without a call for each.
                arrived[0] if count == 1 else pack(fields),
                *[
                    text if isinstance(text := value(name), str) else otherwise
                    for name, otherwise in self._otherwise
                ],
            )
            rows_of.append(row)
            if marks := marks_of(fields):
                self._db.execute("DELETE FROM marks WHERE id = ?", (identifier,))
                pairs = [(identifier, name) for name in marks]
                self._db.executemany("INSERT INTO marks VALUES (?, ?)", pairs)
            if count > 1:
                lines.extend((identifier, n, raw) for n, raw in enumerate(arrived))
            if identifier > self._greatest:
                self._greatest = identifier
        self._db.executemany(self._replace, rows)
        self._db.executemany(self._insert, new_rows)
        if lines:
            self._db.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?)", lines)
        return fresh

    def _remove(self, identifier: str) -> None:
        """Removes a record, and its words if they were gathered."""
        self._seq += 1
        self._db.execute("DELETE FROM records WHERE id = ?", (identifier,))
        self._db.execute("DELETE FROM marks WHERE id = ?", (identifier,))
        if self._tables.ask("SELECT 1 FROM sqlite_master WHERE name = 'texted'"):
            number = "SELECT number FROM texted WHERE id = ?"
            self._db.execute(f"DELETE FROM text WHERE rowid = ({number})", (identifier,))  # noqa: S608
            self._db.execute("DELETE FROM texted WHERE id = ?", (identifier,))
        # Followers read everything again: no row shows the removal.
        self._tables.put_meta("removed_at", self._seq)
        self._tables.put_meta("born", _birth())


def text_of(value: object) -> str | None:
    """Returns the value for a text column, or None."""
    return value if isinstance(value, str) else None


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[begin : begin + _BATCH] for begin in range(0, len(ids), _BATCH))
