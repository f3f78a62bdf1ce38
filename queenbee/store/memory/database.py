"""The SQLite file that is a clone's memory: opened, laid out, changed whole, and mended.

`docs/format.md`, "Memory"; ADR 0042.
"""

from __future__ import annotations

import os
import time
import weakref
import zlib
from _thread import RLock
from contextlib import suppress
from itertools import chain

from queenbee.core.text import shell_word
from queenbee.errors import InvalidInput, StoreError
from queenbee.store import safe_open
from queenbee.store.files import size_of, stamp_of
from queenbee.store.memory import connecting, sqlite, tables
from queenbee.store.memory.connecting import (
    can_share_pages,
    close_as_it_is,
    connect,
    connected_to_read,
    pragma,
)

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Progress = Callable[[int, int], None]
    """Called with how much is done, and of how much. The last call of a build says that all is
    done, even if it failed."""

_SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Of the database, and of the files that SQLite keeps next to it."""
ASIDE = ".damaged-"
"""In the name of a file that was set aside, before when that was, in ms since 1970."""
_LOG_BYTES = 512 * 1024
"""The first process after all others have ended reads the whole log: 1 ms for this much."""
_MOST_LOG_BYTES = 4 * _LOG_BYTES
"""A larger file is not kept for the next lines."""
_LOOK_EVERY = 8
"""Of how many writes of a process one looks how long the log is: the first, too."""
_LOG_HEAD_BYTES, _PAGE_HEAD_BYTES = 32, 24
"""Of a log, and of each page in it: sqlite.org/walformat.html."""

_BATCH = 400
"""Values in one query, which may name each twice: old builds of SQLite allow 999 parameters."""
_SUMS: dict[str, int] = {}
"""The checksum of each kind, with which that of its lines begins."""
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
        self.mutex: RLock = RLock()
        self.is_durable: bool = True
        self.may_create = False
        """Whether the file is made if it is not there."""
        self._fold_anew = fold_anew
        """Fills the tables that follow from the lines, once they were made."""
        self._db: sqlite.Connection | None = None
        self._inode: tuple[int, ...] = ()
        self._versions: tuple[object, ...] = ()
        """Of the definitions that were compared, and of the data then."""
        self._copied: object = None
        self._keeps_log = self._is_stuck = False
        self._looks = 0
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
            # One that somebody has made since is not opened: to close it would take his locks.
            with suppress(FileExistsError):
                os.close(safe_open.open_file(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        db = connect(self.path)
        self._keeps_log = False
        self._inode = stamp_of(self.path)[:1]
        try:
            # A commit is on disk once `sync` returns, not before: the lock is not held for a disk.
            db.execute("PRAGMA synchronous = NORMAL")
            self._lay_out(db)
        except StoreError:
            close_as_it_is(db, self.path)
            raise
        except BaseException:
            db.close()
            raise
        return db

    def _copy(self) -> sqlite.Connection:
        """Returns a copy of the file in memory; an empty one where there is nothing to read."""
        copy = connect(":memory:")
        self._copied = self._stamp()
        with suppress(sqlite.Error, OSError):
            safe_open.refuse_irregular(self.path)
            # A journal undoes what was cut off: without it, the file is no state of anything.
            cut_off = size_of(f"{self.path}-journal") > 0
            for mode in ("mode=ro", "immutable=1")[: 2 - cut_off]:
                source = connected_to_read(self.path, mode)
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
        """Makes the tables that a file lacks, if it is new or of a version that folds otherwise.

        Raises `StoreError` for a file of a newer version or of another program, and
        `DatabaseError` for one that has other tables than it should.
        """
        schema = tables.schema_of(db)
        version = pragma(db, "user_version")
        self._refuse_others(schema, version, pragma(db, "application_id"))
        is_new = not schema and not version
        if not is_new and (version != tables.LINES_VERSION or not tables.are_lines_as_made(schema)):
            raise sqlite.DatabaseError("the memory has other tables than were made in it")
        if not is_new and _fold_version(db) == tables.FOLD_VERSION:
            self._compare(db, schema)
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            if not tables.schema_of(db):
                tables.make_lines(db)
                db.execute("INSERT INTO meta VALUES ('born', ?)", (birth(),))
            if _fold_version(db) != tables.FOLD_VERSION:
                tables.make_fold(db)
                self._db = db
                self._fold_anew(self)
            db.execute("COMMIT")
        except BaseException:
            self._db = None
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._compare(db, tables.schema_of(db))

    def _refuse_others(self, schema: tables.Schema, version: int, application_id: int) -> None:
        """Raises `StoreError` for a file of another program, or of a newer version."""
        if not tables.is_ours(schema, version, application_id):
            raise StoreError(
                f"{self.path} is the database of another program",
                hint=f"mv {shell_word(self.path)} {shell_word(self.path + '.other')}",
                path=self.path,
            )
        if version > tables.LINES_VERSION:
            raise StoreError(
                f"{self.path} was made by a newer version of QueenBee",
                hint="pip install --upgrade queenbee-hive",
                path=self.path,
            )

    def _compare(self, db: sqlite.Connection, schema: tables.Schema) -> None:
        if not tables.is_as_made(schema):
            raise sqlite.DatabaseError("the memory has other tables than were made in it")
        self._versions = pragma(db, "data_version"), pragma(db, "schema_version")

    # Asking and changing.

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Returns the rows that answer a query. Raises `InvalidInput` for what no file can hold."""
        with self.mutex:
            try:
                return self.db.execute(query, values).fetchall()
            except UnicodeEncodeError as error:  # Half of a pair of UTF-16, or bytes of no text.
                raise InvalidInput(f"{error.object!r} is not UTF-8 text") from error

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
        return 0 if value is None else whole_number(value)

    def identity(self) -> str:
        """Returns what tells this file from any other, also from an older copy of it."""
        return f"{self.number('born')} {self._inode}"

    def version(self) -> object:
        """Returns a value that changes whenever another process commits. Raises `DatabaseError` if
        one has changed the tables.
        """
        with self.mutex:
            db = self.db
            version = pragma(db, "data_version")
            if version != self._versions[0]:
                if pragma(db, "schema_version") != self._versions[1]:
                    self._compare(db, tables.schema_of(db))
                self._versions = version, self._versions[1]
            return version

    def turn(self) -> Turn:
        """Commits everything done inside, or nothing. Nobody else can write in the meantime."""
        return Turn(self)

    def size_bytes(self) -> int:
        """Returns the size of the file and its log."""
        return sum(size_of(self.path + suffix) for suffix in ("", "-wal"))

    def sync(self) -> None:
        """Returns when every commit so far is on disk. Raises `OSError`."""
        try:
            fd = safe_open.open_file(self.path + "-wal", os.O_RDONLY)
        except FileNotFoundError:
            # Without a log, SQLite waits for all of a commit but its last step: it removes the
            # journal, and one that is back after a power cut would undo the commit.
            safe_open.sync_folder(os.path.dirname(self.path))
            return
        try:
            getattr(os, "fdatasync", os.fsync)(fd)
        finally:
            os.close(fd)

    def keep_log(self) -> None:
        """Has the file keep a log, so that nobody who reads waits for who writes. Where it cannot,
        as on some shared folders, each commit waits for the disk.

        A new file begins without: what a clone takes in before would be written twice.
        """
        deadline_s = time.monotonic() + connecting.WAIT_S
        with self.mutex:
            db = self.db
            while not self._keeps_log and self.is_durable:
                try:
                    [mode] = db.execute("PRAGMA journal_mode").fetchone()
                    if mode != "wal" and can_share_pages(self.path):
                        db.execute("PRAGMA journal_mode = WAL")
                    self._keeps_log = True
                except sqlite.OperationalError as error:  # Another process has it, for a moment.
                    if not is_busy(error) or time.monotonic() > deadline_s:
                        raise
                    time.sleep(0.005)

    def shorten_log(self) -> None:
        """Moves a long log into the file. Call it without the hive's lock: the disk is waited for.
        Others are not: the next change tries again.
        """
        with self.mutex:
            if self._db is None or not self.is_durable:
                return
            size = size_of(self.path + "-wal")
            self._looks += 1
            if size >= _MOST_LOG_BYTES:
                with suppress(sqlite.OperationalError):
                    self._db.execute("PRAGMA busy_timeout = 0")
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._db.execute(f"PRAGMA busy_timeout = {int(connecting.WAIT_S * 1000)}")
            elif size >= _LOG_BYTES and self._looks % _LOOK_EVERY == 1 and self._is_log_long():
                # The file keeps its size: the disk has a write into it sooner than one after it.
                with suppress(sqlite.OperationalError):
                    self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _is_log_long(self) -> bool:
        """Returns whether the log has come to `_LOG_BYTES` since it was last begun anew. Its head
        and each of its pages have the two numbers (salts) that it then got.
        """
        with suppress(FileNotFoundError):
            fd = safe_open.open_file(self.path + "-wal", os.O_RDONLY)
            try:
                head = os.pread(fd, _LOG_HEAD_BYTES, 0)
                page_bytes = _PAGE_HEAD_BYTES + int.from_bytes(head[8:12], "big")
                begin = _LOG_HEAD_BYTES + _LOG_BYTES // page_bytes * page_bytes
                return os.pread(fd, 8, begin + 8) == head[16:24]
            finally:
                os.close(fd)
        return False

    # Damage.

    def set_aside(self) -> None:
        """Gives a damaged file another name, beside it; whoever opens the next one makes it anew.
        Another process may have done it: then the file that has the name now is sound. Where
        nothing can be renamed, a copy in this process stands for the file, which keeps its name.
        """
        with self.mutex:
            inode = self._inode
            self.close()
            aside = f"{self.path}{ASIDE}{time.time_ns() // 1_000_000}"
            if inode and stamp_of(self.path)[:1] != inode:
                return
            try:
                for suffix in _SUFFIXES:
                    with suppress(FileNotFoundError):
                        os.rename(self.path + suffix, aside + suffix)
                        # Also for who only reads: what only the old one has needs a new one.
                        self.may_create = True
            except OSError:
                self.is_durable, self._copied, self._is_stuck = False, self._stamp(), True
                copy = connect(":memory:")
                self._lay_out(copy)
                self._db = copy

    def damaged(self) -> list[str]:
        """Returns the paths of the files of which a new one is to have the lines."""
        return [*self.aside(), *([self.path] if self._is_stuck else [])]

    def forget(self, aside: str) -> None:
        """Removes a file that was set aside."""
        for suffix in _SUFFIXES:
            with suppress(FileNotFoundError):
                safe_open.unlink(aside + suffix)

    def aside(self) -> list[str]:
        """Returns the paths of the files that were set aside, oldest first."""
        folder, name = os.path.split(f"{self.path}{ASIDE}")
        names = [each for each in safe_open.names_in(folder) if each.startswith(name)]
        return [
            os.path.join(folder, each) for each in sorted(names) if not each.endswith(_SUFFIXES[1:])
        ]


class Turn:
    """A block inside a transaction. A generator would need `contextlib`, which hooks do without."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.mutex.acquire()
        try:
            self._database.db.execute("BEGIN IMMEDIATE")
            try:
                self._database.version()
            except BaseException:
                self._database.db.execute("ROLLBACK")
                raise
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


def batches(them: Sequence[object]) -> Iterator[tuple[str, Sequence[object]]]:
    """Yields some values at a time, after the question marks that stand for them in a query."""
    for begin in range(0, len(them), _BATCH):
        some = them[begin : begin + _BATCH]
        yield ", ".join("?" * len(some)), some


def insert(db: sqlite.Connection, table: str, rows: Sequence[Sequence[object]]) -> None:
    """Adds rows to a table, many with one statement: each alone would take a third longer."""
    width = len(rows[0])
    most = 2 * _BATCH // width
    row = f"({', '.join('?' * width)})"
    for begin in range(0, len(rows), most):
        some = rows[begin : begin + most]
        query = f"INSERT INTO {table} VALUES {', '.join([row] * len(some))}"  # noqa: S608
        db.execute(query, [*chain.from_iterable(some)])


def sum_of_line(kind: str, raw: bytes) -> int:
    """Returns the checksum of a line, or of what lines fold to, as one of its kind."""
    if (begun := _SUMS.get(kind)) is None:
        begun = _SUMS[kind] = zlib.crc32(kind.encode())
    return zlib.crc32(raw, begun)


def checked(kind: str, raw: object, checksum: object) -> bytes:
    """Returns stored bytes. Raises `DatabaseError` if others were written, or of another kind."""
    if not isinstance(raw, bytes) or sum_of_line(kind, raw) != checksum:
        raise sqlite.DatabaseError("the memory has other bytes than were written to it")
    return raw


def whole_number(value: object) -> int:
    """Returns a stored number. Raises `DatabaseError` for what nobody can have counted."""
    if not isinstance(value, int) or abs(value) > tables.MOST:
        raise sqlite.DatabaseError("the memory has other numbers than were written to it")
    return value


def sum_of(grants: Iterable[tuple[object, ...]]) -> int:
    """Returns a number that follows from the ids of some grants, and what each holds."""
    return sum(zlib.crc32(f"{each}\n{held}".encode(errors="replace")) for each, held in grants)


def birth() -> int:
    """Returns a random number: followers that know another one read everything again."""
    return int.from_bytes(os.urandom(6), "big")


def is_damage(error: Exception) -> bool:
    """Returns whether an error comes from the content, not from a lock, disk or permissions."""
    if isinstance(error, sqlite.OperationalError):
        # A table or column that is not there, or text that is none: it has no code.
        return getattr(error, "sqlite_errorcode", sqlite.SQLITE_ERROR) == sqlite.SQLITE_ERROR
    return isinstance(error, sqlite.DatabaseError) and not isinstance(
        error, sqlite.ProgrammingError
    )


def is_unwritable(error: Exception) -> bool:
    """Returns whether the disk or its permissions take no change, as reading a file may need it."""
    codes = ("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")
    return str(getattr(error, "sqlite_errorname", "")).startswith(codes)


def is_busy(error: Exception) -> bool:
    """Returns whether another process has the file for too long."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _fold_version(db: sqlite.Connection) -> object:
    found = db.execute("SELECT value FROM meta WHERE key = 'fold'").fetchone()
    return found[0] if found else 0
