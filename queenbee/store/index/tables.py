"""The tables of an index: one SQLite database for one kind, and how lines are folded into it.

Disposable like the whole index: `docs/format.md`, "Index"; ADR 0006.
"""

from __future__ import annotations

import os
import zlib
from _thread import RLock

from queenbee._light import suppress
from queenbee.core import plain_json
from queenbee.core.fold import Table
from queenbee.core.kinds import kind_of
from queenbee.store import safe_open
from queenbee.store.files import Mark, size_of, stamp_of
from queenbee.store.index import sqlite
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.codec import unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.core.fold import Fields

VERSION = 16
"""Of the tables below; an index of another version is rebuilt."""

_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Of the database, and of the files that SQLite keeps next to it."""
LOG_BYTES = 512 * 1024
"""The first process after all others have ended reads the whole log: 1 ms for this much, 5 ms for
an index of 1,000 leases. A change adds 40 to 70 KB.
"""
_OPEN_S = 2.0
_WAIT_S = 30.0
"""How long a reader waits while another brings the index up to date: it would only read the same
lines. Opening never takes that long.
"""


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


class Unfit(Exception):
    """No index follows this ledger: it is folded in memory until a write ends its last line."""


class Tables:
    """An open index. Raises `sqlite3.Error` or `OSError` if it cannot be used."""

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.path = path
        self.columns = kind_of(kind).columns
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

    def fields(self, count: object, body: object, checksum: object) -> Fields:
        """Returns the fields of a record, from its row. Raises `DatabaseError`."""
        raw = checked(body, checksum)
        fields = unpack(raw)
        if count == 1:  # The line itself, as the ledger has it.
            table = Table(kind_of(self.kind).aliases)
            return table.get(table.add(raw, fields)) or {}
        return fields

    def raws(self, identifier: str) -> list[bytes]:
        """Returns the lines of a record in the order they were read."""
        rows = self.ask("SELECT raw, sum FROM lines WHERE id = ? ORDER BY at", identifier)
        if not rows:
            rows = self.ask("SELECT body, sum FROM records WHERE id = ?", identifier)
        return [checked(raw, checksum) for raw, checksum in rows]

    # A changed bit may hide a grant from every question. So what is in effect has a sum of its own,
    # which each change of a record keeps.

    def in_effect(self) -> dict[str, str]:
        """Returns what active grants hold, by their ids; nothing for other kinds. Raises
        `DatabaseError` if these are not the ones that were written.
        """
        column = kind_of(self.kind).holds
        if not column:
            return {}
        # In one query, so that no other process writes in between.
        rows = self.ask(
            f'SELECT id, "{column}", value FROM meta LEFT JOIN records '  # noqa: S608
            "ON status = 'active' WHERE key = 'in effect'"
        )
        found = {str(each): str(held) for each, held, _ in rows if each is not None}
        if rows and rows[0][2] != sum_of(found.items()):
            raise sqlite.DatabaseError("the index has other grants than were written to it")
        return found

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
            "ESCAPE '~' ORDER BY sql NOT LIKE 'CREATE VIRTUAL%'"  # Those of older versions.
        )
        for (name,) in rows:
            self.db.execute(f'DROP TABLE IF EXISTS "{name}"')
        _create(self.db, self.kind)

    def sort(self) -> None:
        """Creates the SQL indexes, once the records of a new index are in it: sorting all of them
        takes a fifth of the time of keeping them sorted from the first on.
        """
        for number, columns in enumerate((("end_key",), *kind_of(self.kind).indexes)):
            names = ", ".join(f'"{column}"' for column in columns)
            self.db.execute(f"CREATE INDEX IF NOT EXISTS by_{number} ON records ({names})")

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
            version = _version(db)
            # A power cut may lose the last lines of the index, but must not corrupt it: NORMAL in
            # WAL mode gives that without waiting for the disk.
            db.execute("PRAGMA synchronous = NORMAL")
            if version != VERSION:
                db.execute("PRAGMA journal_mode = WAL")
                self.db = db
                with self.transaction():
                    if _version(db) != VERSION:
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


def checked(raw: object, checksum: object) -> bytes:
    """Returns bytes from the index. Raises `DatabaseError` if others were written."""
    if not isinstance(raw, bytes) or zlib.crc32(raw) != checksum:
        raise sqlite.DatabaseError("the index has other bytes than were written to it")
    return raw


def sum_of(grants: Iterable[tuple[object, ...]]) -> int:
    """Returns a number that follows from the ids of some grants, and what each holds."""
    return sum(zlib.crc32(f"{each}\n{held}".encode(errors="replace")) for each, held in grants)


def is_damage(error: Exception) -> bool:
    """Returns whether an error comes from the content, not from a lock, disk or permissions."""
    if isinstance(error, sqlite.OperationalError):
        # Our statements are right, so the tables are wrong.
        return getattr(error, "sqlite_errorcode", None) == sqlite.SQLITE_ERROR
    return not isinstance(error, sqlite.ProgrammingError)  # It was closed.


def _version(db: sqlite.Connection) -> object:
    return db.execute("PRAGMA user_version").fetchone()[0]


def _create(db: sqlite.Connection, kind: str) -> None:
    named = "".join(f', "{column}" TEXT' for column in kind_of(kind).columns)
    db.execute(
        "CREATE TABLE records (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, "
        "count INTEGER NOT NULL, created_ms INTEGER NOT NULL, read INTEGER NOT NULL, "
        f"deleted INTEGER NOT NULL, end_key TEXT NOT NULL, body BLOB NOT NULL, "
        f"sum INTEGER NOT NULL{named})"
    )
    db.execute(
        "CREATE TABLE lines (id TEXT, at INTEGER, raw BLOB, sum INTEGER, PRIMARY KEY (id, at))"
    )
    db.execute("CREATE TABLE marks (id TEXT, name TEXT, PRIMARY KEY (id, name)) WITHOUT ROWID")
    db.execute("CREATE TABLE loose (raw BLOB PRIMARY KEY)")
    db.execute("CREATE TABLE migrations (at INTEGER PRIMARY KEY, raw BLOB UNIQUE)")
    db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
    db.execute("INSERT INTO meta VALUES ('born', ?)", (birth(),))
    db.execute(f"PRAGMA user_version = {VERSION}")


def birth() -> int:
    """Returns a random number: followers that know another one read everything again."""
    return int.from_bytes(os.urandom(6), "big")


def remove(path: str) -> None:
    """Deletes an index with the files that SQLite keeps next to it."""
    for suffix in _SUFFIXES:
        with suppress(FileNotFoundError):
            safe_open.unlink(path + suffix)
