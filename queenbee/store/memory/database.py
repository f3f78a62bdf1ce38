"""The SQLite file that is a clone's memory: opened, laid out, changed whole, and mended.

`docs/format.md`, "Memory"; ADR 0042.
"""

from __future__ import annotations

import os
import time
import weakref
import zlib
from _thread import RLock

from queenbee._light import suppress
from queenbee.core.kinds import KINDS, kind_of
from queenbee.errors import StoreError
from queenbee.store import safe_open
from queenbee.store.files import size_of, stamp_of
from queenbee.store.memory import sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Progress = Callable[[int, int], None]
    """Called with how much is done, and of how much. The last call of a build says that all is
    done, even if it failed."""

LINES_VERSION = 1
"""Of the tables that cannot be made anew. A newer one is refused."""
FOLD_VERSION = 1
"""Of the tables that follow from the lines: made anew in another version's file."""

_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Of the database, and of the files that SQLite keeps next to it."""
_WAIT_S = 30.0
"""How long one waits while another takes in lines: it would only read the same ones."""
_LOG_BYTES = 512 * 1024
"""The first process after all others have ended reads the whole log: 1 ms for this much."""

_LINES = """
CREATE TABLE lines (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL,
    raw BLOB NOT NULL, sum INTEGER NOT NULL, loose INTEGER NOT NULL, archived INTEGER NOT NULL);
CREATE INDEX lines_of ON lines (kind, id);
CREATE INDEX loose_lines ON lines (kind, loose) WHERE loose != 0;
CREATE TABLE ledgers (number INTEGER, path TEXT, kind TEXT, inode INTEGER, offset INTEGER,
    sum TEXT, changed_ns INTEGER, is_whole INTEGER, recorded_to INTEGER, unusable INTEGER,
    archive TEXT, settled_bytes INTEGER, PRIMARY KEY (path, kind)) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
"""`loose` is the number of the ledger that alone has a line, 0 for a line that is recorded."""
_BATCH = 500
"""Values in one query: old builds of SQLite allow 999 parameters."""
_SPARSE = frozenset({"issue_id", "thread_id", "released_at"})
"""Columns that most records leave empty: an index has the others only."""
_MARKS = "CREATE TABLE marks (kind TEXT, id TEXT, name TEXT, PRIMARY KEY (kind, id, name)) "
_MARKS += "WITHOUT ROWID"

_opened: weakref.WeakSet[Database] = weakref.WeakSet()


def _close_before_fork() -> None:
    # SQLite's locks do not survive a fork: what is open is closed before, and opened again when it
    # is asked. A thread in a transaction is waited for.
    for each in list(_opened):
        each.mutex.acquire()
        with suppress(sqlite.ProgrammingError):  # Somebody closed it.
            if not each.is_in_transaction:
                each.close()


def _go_on_after_fork() -> None:
    for each in list(_opened):
        each.mutex.release()


def _begin_anew_in_child() -> None:
    for each in list(_opened):
        each.mutex = RLock()
        each.was_forked()


os.register_at_fork(
    before=_close_before_fork,
    after_in_parent=_go_on_after_fork,
    after_in_child=_begin_anew_in_child,
)


class Database:
    """One open memory. Safe for threads. Raises `sqlite3.Error` and `OSError`.

    Where the file cannot be written, a copy in this process stands for it (`is_durable` is false):
    what the ledgers have is read all the same.
    """

    def __init__(self, path: str, fold_anew: Callable[[Database], None]) -> None:
        self.path = path
        self.mutex = RLock()
        self.is_durable = True
        self.may_create = False
        """Whether the file is made if it is not there."""
        self._fold_anew = fold_anew
        """Fills the tables that follow from the lines, once they were made."""
        self._db: sqlite.Connection | None = None
        self._inode: tuple[int, ...] = ()
        self._copied: object = None
        self._lost: list[sqlite.Connection] = []
        _opened.add(self)

    # Opening.

    @property
    def db(self) -> sqlite.Connection:
        """The connection. Raises `StoreError` for a file of a newer version."""
        if self._db is None:
            self._db = self._connected()
        return self._db

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._db is not None and self._db.in_transaction

    def close(self) -> None:
        """Closes the file; the next question opens it again."""
        with self.mutex:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def stand_in(self) -> None:
        """Has a copy in this process stand for a file that turned out not to be writable."""
        with self.mutex:
            self.close()
            self.is_durable = False
            self._db = self._copy()

    def was_forked(self) -> None:
        """Forgets a connection that is the parent's, in a child that was forked amid a write."""
        if self._db is not None:
            self._lost.append(self._db)  # To close it would disturb the parent.
            self._db = None

    def is_behind(self) -> bool:
        """Returns whether the file was deleted or replaced since it was opened, or the copy is not
        of what the file has now.
        """
        if self._db is None:
            return False
        return (
            self._copied != self._stamp()
            if not self.is_durable
            else (stamp_of(self.path)[:1] != self._inode)
        )

    def _connected(self) -> sqlite.Connection:
        self.is_durable = self.may_create or size_of(self.path) > 0
        if self.is_durable:
            try:
                return self._on_disk()
            except (sqlite.OperationalError, OSError) as error:
                if is_busy(error):
                    raise
                self.is_durable = False
        return self._copy()

    def _on_disk(self) -> sqlite.Connection:
        if self._lost:
            raise sqlite.OperationalError("this process was forked during a write of its parent's")
        # SQLite opens the files by their paths: O_NOFOLLOW is its own, for all but the first.
        for suffix in _SUFFIXES:
            safe_open.refuse_irregular(self.path + suffix)
        if not os.path.lexists(self.path):
            # SQLite gives the files beside it the same permissions, and other users may need them.
            os.close(safe_open.open_file(self.path, os.O_RDWR | os.O_CREAT))
        db = _connect(self.path)
        try:
            # A commit is on disk once `sync` returns, not before: the lock is not held for a disk.
            db.execute("PRAGMA synchronous = NORMAL")
            if _version(db) == 0:
                _keep_log(db)
            self._lay_out(db)
            self._inode = stamp_of(self.path)[:1]
        except BaseException:
            db.close()
            raise
        return db

    def _copy(self) -> sqlite.Connection:
        """Returns a copy of the file in memory; an empty one where there is nothing to read."""
        copy = _connect(":memory:")
        self._copied = self._stamp()
        with suppress(sqlite.Error, OSError):
            safe_open.refuse_irregular(self.path)
            for mode in ("mode=ro", "immutable=1"):
                source = _connect(f"file:{_quoted(self.path)}?{mode}", uri=True)
                try:
                    source.backup(copy)
                    break
                except sqlite.OperationalError:
                    continue  # Without its log, the file can only be read as one that stays as is.
                finally:
                    source.close()
        self._lay_out(copy)
        return copy

    def _stamp(self) -> object:
        return [stamp_of(self.path + suffix) for suffix in ("", "-wal")]

    def _lay_out(self, db: sqlite.Connection) -> None:
        version = _version(db)
        if isinstance(version, int) and version > LINES_VERSION:
            raise StoreError(
                f"{self.path} was made by a newer version of QueenBee",
                hint="pip install --upgrade queenbee-hive",
                path=self.path,
            )
        if version == LINES_VERSION and _fold_version(db) == FOLD_VERSION:
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            if _version(db) == 0:
                for statement in _LINES.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO meta VALUES ('born', ?)", (birth(),))
                db.execute(f"PRAGMA user_version = {LINES_VERSION}")
            if _fold_version(db) != FOLD_VERSION:
                make_fold(db)
                self._db = db
                self._fold_anew(self)
            db.execute("COMMIT")
        except BaseException:
            self._db = None
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    # Asking and changing.

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Returns the rows that answer a query."""
        with self.mutex:
            return self.db.execute(query, values).fetchall()

    def meta(self, key: str) -> object:
        """Returns a stored note, or None."""
        rows = self.ask("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    def put_meta(self, key: str, value: object) -> None:
        """Stores a note."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def count(self, key: str, more: int = 1) -> int:
        """Adds to a stored number, and returns it."""
        number = self.number(key) + more
        self.put_meta(key, number)
        return number

    def number(self, key: str) -> int:
        """Returns a stored number, or 0."""
        value = self.meta(key)
        return value if isinstance(value, int) else 0

    def identity(self) -> str:
        """Returns what tells this file from any other, also from an older copy of it."""
        return f"{self.number('born')} {self._inode}"

    def version(self) -> object:
        """Returns a value that changes whenever another process commits."""
        return self.ask("PRAGMA data_version")[0][0]

    def turn(self) -> Turn:
        """Commits everything done inside, or nothing. Nobody else can write in the meantime."""
        return Turn(self)

    def size_bytes(self) -> int:
        """Returns the size of the file and its log."""
        return sum(size_of(self.path + suffix) for suffix in ("", "-wal"))

    def sync(self) -> None:
        """Returns when every commit so far is on disk. Raises `OSError`."""
        # Without its log, a file was written at each commit.
        with suppress(FileNotFoundError):
            fd = safe_open.open_file(self.path + "-wal", os.O_RDONLY)
            try:
                getattr(os, "fdatasync", os.fsync)(fd)
            finally:
                os.close(fd)

    def shorten_log(self) -> None:
        """Moves a long log into the file. Call it without the hive's lock: the disk is waited for.
        Others are not: the next change tries again.
        """
        with self.mutex:
            if self._db is None or not self.is_durable or size_of(self.path + "-wal") < _LOG_BYTES:
                return
            with suppress(sqlite.OperationalError):
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute(f"PRAGMA busy_timeout = {int(_WAIT_S * 1000)}")

    # Damage.

    def set_aside(self) -> str:
        """Gives a damaged file another name, beside it, and returns that. Another process may have
        done it: then the file that has the name now is sound.
        """
        with self.mutex:
            inode = self._inode
            self.close()
            aside = f"{self.path}.damaged-{time.time_ns() // 1_000_000}"
            if not inode or stamp_of(self.path)[:1] == inode:
                with suppress(FileNotFoundError):
                    os.rename(self.path, aside)
                for suffix in _SUFFIXES[1:]:
                    with suppress(FileNotFoundError):
                        os.rename(self.path + suffix, aside + suffix)
            return aside


class Turn:
    """A block inside a transaction. A generator would need `contextlib`, which hooks do without."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.mutex.acquire()
        try:
            self._database.db.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._database.mutex.release()
            raise

    def __exit__(self, kind: object, *error: object) -> None:
        database = self._database
        try:
            db = database.db
            try:
                if kind is None:
                    db.execute("COMMIT")
            finally:
                # An error in the block, or in the commit.
                if db.in_transaction:
                    db.execute("ROLLBACK")
        finally:
            database.mutex.release()


def table_of(kind: str) -> str:
    """Returns the name of the table of a kind's records, quoted for SQL."""
    name = f"records {kind}".replace('"', '""')
    return f'"{name}"'


def make_records(db: sqlite.Connection, kind: str) -> None:
    """Makes the table of a kind's records, if it is not there."""
    named = "".join(f', "{column}" TEXT' for column in kind_of(kind).columns)
    db.execute(
        f"CREATE TABLE IF NOT EXISTS {table_of(kind)} (change INTEGER PRIMARY KEY, "
        "id TEXT NOT NULL UNIQUE, count INTEGER NOT NULL, created_ms INTEGER NOT NULL, "
        "read INTEGER NOT NULL, deleted INTEGER NOT NULL, end_key TEXT NOT NULL, "
        f"seq INTEGER NOT NULL, body BLOB, body_sum INTEGER{named})"
    )
    index_records(db, kind)


def index_records(db: sqlite.Connection, kind: str) -> None:
    """Makes the SQL indexes of a kind's records, as far as they are not there."""
    for name, columns in _indexes(kind):
        names = ", ".join(f'"{column}"' for column in columns)
        where = f' WHERE "{columns[0]}" IS NOT NULL' if columns[0] in _SPARSE else ""
        db.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {table_of(kind)} ({names}){where}")


def unindex_records(db: sqlite.Connection, kind: str) -> None:
    """Removes the SQL indexes of a kind: to sort many records afterwards takes a fifth of the time
    of keeping them sorted from the first on.
    """
    for name, _ in _indexes(kind):
        db.execute(f"DROP INDEX IF EXISTS {name}")


def _indexes(kind: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields the SQL indexes of a kind: the name of each, quoted, and its columns."""
    for number, columns in enumerate((("end_key",), *kind_of(kind).indexes)):
        name = f"{kind} by {number}".replace('"', '""')
        yield f'"{name}"', columns


def batches(them: Sequence[object]) -> Iterator[tuple[str, Sequence[object]]]:
    """Yields some values at a time, after the question marks that stand for them in a query."""
    for begin in range(0, len(them), _BATCH):
        some = them[begin : begin + _BATCH]
        yield ", ".join("?" * len(some)), some


def checked(raw: object, checksum: object) -> bytes:
    """Returns stored bytes. Raises `DatabaseError` if others were written."""
    if not isinstance(raw, bytes) or zlib.crc32(raw) != checksum:
        raise sqlite.DatabaseError("the memory has other bytes than were written to it")
    return raw


def sum_of(grants: Iterable[tuple[object, ...]]) -> int:
    """Returns a number that follows from the ids of some grants, and what each holds."""
    return sum(zlib.crc32(f"{each}\n{held}".encode(errors="replace")) for each, held in grants)


def birth() -> int:
    """Returns a random number: followers that know another one read everything again."""
    return int.from_bytes(os.urandom(6), "big")


def is_damage(error: Exception) -> bool:
    """Returns whether an error comes from the content, not from a lock, disk or permissions."""
    others = sqlite.OperationalError | sqlite.ProgrammingError
    return isinstance(error, sqlite.DatabaseError) and not isinstance(error, others)


def is_unwritable(error: Exception) -> bool:
    """Returns whether the disk or its permissions take no change, as reading a file may need it."""
    codes = ("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")
    return str(getattr(error, "sqlite_errorname", "")).startswith(codes)


def is_busy(error: Exception) -> bool:
    """Returns whether another process has the file for too long."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def make_fold(db: sqlite.Connection) -> None:
    """Makes the tables that follow from the lines, empty: whoever asks first folds them."""
    names = "name LIKE 'records %' OR name = 'marks'"
    query = f"SELECT name FROM sqlite_master WHERE type = 'table' AND ({names})"  # noqa: S608
    for (name,) in db.execute(query).fetchall():
        db.execute('DROP TABLE "{}"'.format(name.replace('"', '""')))
    db.execute(_MARKS)
    db.execute("DELETE FROM meta WHERE key LIKE 'in effect %'")
    for kind in KINDS:
        make_records(db, kind)
    db.execute("INSERT OR REPLACE INTO meta VALUES ('fold', ?)", (FOLD_VERSION,))


def _keep_log(db: sqlite.Connection) -> None:
    """Has a new file keep a log, so that nobody who reads waits for who writes. Where it cannot, as
    on some shared folders, each commit waits for the disk.
    """
    deadline_s = time.monotonic() + _WAIT_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite.OperationalError as error:  # Another process makes the same file.
            if not is_busy(error) or time.monotonic() > deadline_s:
                raise
        time.sleep(0.005)


def _fold_version(db: sqlite.Connection) -> object:
    if not _version(db):
        return 0
    found = db.execute("SELECT value FROM meta WHERE key = 'fold'").fetchone()
    return found[0] if found else 0


def _version(db: sqlite.Connection) -> object:
    return db.execute("PRAGMA user_version").fetchone()[0]


def _connect(path: str, *, uri: bool = False) -> sqlite.Connection:
    # Autocommit: transactions are begun explicitly.
    return sqlite.connect(
        path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False, uri=uri
    )


def _quoted(path: str) -> str:
    return "".join(f"%{ord(each):02x}" if each in "%?#" else each for each in path)
