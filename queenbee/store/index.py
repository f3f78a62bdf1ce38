"""An index over one large ledger: SQLite, in the untracked state, disposable at any time.

One row holds the folded record of one id and the columns that services ask for. Whoever reads
next brings it up to date from the marks where it stopped, in one transaction. A file that git
rewrote is read again from the first block that differs: the state is a function of the set of
lines, so lines that were seen stay seen. On any doubt the index is thrown away and built anew,
and where it cannot be used at all, the ledger is scanned. `docs/format.md`, "Index"; ADR 0006.
"""

from __future__ import annotations

import os
import sqlite3
import threading

from queenbee.core.fold import Table, explicit_rev
from queenbee.core.timestamps import instant_ms
from queenbee.store.archive import Archived
from queenbee.store.codec import (
    Unusable,
    decode,
    decode_exactly,
    decoder,
    is_migration,
    pack,
    unpack,
)
from queenbee.store.files import TAIL_BYTES, Mark, checksum, read_after, read_at, split_lines
from queenbee.store.ledger import Position, usable_note
from queenbee.store.state import FLAGS, aliases_of, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from queenbee.core.fold import Entry, Fields
    from queenbee.store.ledger import Ledger
    from queenbee.store.state import Cursor

    Progress = Callable[[int, int], None]

VERSION = 7
"""Of the tables below; an index of another version is built anew."""

COLUMNS = {
    "messages": ("to", "from", "issue_id", "thread_id"),
    "assignments": ("issue_id", "droid", "status"),
    "reservations": ("droid", "status", "issue_id", "pattern", "expires_at", "released_at"),
    "verifications": ("subject_kind", "subject_id"),
}
_INDEXES = {
    "messages": (
        '"to", created_ms, id',
        '"to", created_ms, id) WHERE (read = 0 AND deleted = 0',
        '"from", created_ms, id',
        "issue_id, created_ms",
        "thread_id, created_ms",
    ),
    "assignments": ("issue_id, created_ms", "droid, created_ms", "status, created_ms"),
    "reservations": ("droid, created_ms", "status, pattern, id", "released_at", "issue_id"),
    "verifications": ("subject_id, created_ms",),
}
_CHUNK_BYTES = 4 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_LONG_WAL_BYTES = 8 * 1024 * 1024
_MANY_LOOSE = 10_000
_SOME_LINES = 10_000
_UNCOUNTED = 2**62
_WAIT_S = 30.0
_BATCH = 500
"""Ids in one query: SQLite allows 999 parameters in the oldest builds still about."""


class Doubt(Exception):
    """The index cannot be trusted and has to be built anew."""


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
        self._progress = progress
        self._columns = COLUMNS.get(kind, ())
        self._mutex = threading.RLock()
        self._stamp: tuple[object, ...] | None = None
        self._chained = False
        self._archived_bytes = 0
        self._db = self._open()

    @property
    def unusable(self) -> int:
        return int(self._meta("unusable") or 0)

    @property
    def migrations(self) -> list[Fields]:
        rows = self._ask("SELECT raw FROM migrations ORDER BY at")
        return [decode(raw) for (raw,) in rows if isinstance(raw, bytes)]

    def refresh(self) -> None:
        with self._mutex:
            stamp = self.ledger.stamp()
            if stamp == self._stamp:
                return
            try:
                self._catch_up()
            except (Doubt, sqlite3.DatabaseError):
                self._build_anew()
                self._catch_up()
            self._stamp = stamp

    def remember_agreement(self) -> None:
        with self._mutex:
            # Where reading and agreement had come equally far, catching up moves both on.
            if not self._chained:
                self._save("agreed", self.ledger.agreed)
            if self._loose():
                # The journal has by now what both files were seen to hold.
                end = self.ledger.agreed.tracked.offset
                self._db.execute("DELETE FROM loose WHERE before <= ? OR raw = x''", (end,))

    def get(self, identifier: str) -> Fields | None:
        for count, body in self._ask("SELECT count, body FROM records WHERE id = ?", identifier):
            return self._fields(count, body)
        return None

    def exact(self, identifier: str) -> Fields | None:
        table = Table(aliases_of(self.kind))
        for raw in self._raws(identifier):
            table.add(raw, decode_exactly(raw))
        return table.get(identifier)

    def first_line(self, identifier: str) -> bytes | None:
        table = Table(aliases_of(self.kind))
        for raw in self._raws(identifier):
            table.add(raw, decode(raw))
        entry = table.entries.get(identifier)
        return entry.lines[0].raw if entry else None

    def history(self, identifier: str) -> list[Fields]:
        table = Table(aliases_of(self.kind))
        for raw in self._raws(identifier):
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
        return [self._fields(*row) for row in self._ask(query, *values)]

    def everything(self) -> list[Fields]:
        return [self._fields(*row) for row in self._ask("SELECT count, body FROM records")]

    def project(
        self, columns: Sequence[str], equals: Mapping[str, object]
    ) -> list[tuple[object, ...]]:
        known = {"id", *self._columns}
        where, values = self._where(equals)
        if not known.issuperset(columns):
            query = f"SELECT count, body FROM records WHERE {where}"  # noqa: S608
            rows = (self._fields(*row) for row in self._ask(query, *values))
            return [tuple(value_of(fields, name) for name in columns) for fields in rows]
        names = ", ".join(f'"{column}"' for column in columns)
        return self._ask(f"SELECT {names} FROM records WHERE {where}", *values)  # noqa: S608

    def distinct(self, column: str) -> set[object]:
        assert column in self._columns
        rows = self._ask(f'SELECT DISTINCT "{column}" FROM records')  # noqa: S608
        return {value for (value,) in rows}

    def greatest(self, column: str) -> str:
        assert column in self._columns
        rows = self._ask(f'SELECT max("{column}") FROM records')  # noqa: S608
        return str(rows[0][0] or "")

    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        born = int(self._meta("born") or 0)
        (last,) = self._ask("SELECT coalesce(max(seq), 0) FROM records")[0]
        assert isinstance(last, int)
        if since is None or since[0] != born:
            return None, (born, last)
        rows = self._ask("SELECT id FROM records WHERE seq > ?", since[1])
        return [str(identifier) for (identifier,) in rows], (born, last)

    def ranked_text(
        self, match: str, words: int, marks: tuple[str, str]
    ) -> Iterator[tuple[str, str]]:
        """Yields (id, snippet) of the records that an FTS5 query matches, best first."""
        with self._mutex:
            self._db.execute("BEGIN IMMEDIATE")
            self._gather_text()
            self._db.execute("COMMIT")
            rows = self._ask(
                "SELECT texted.id, snippet(text, -1, ?, ?, '…', ?) FROM text "
                "JOIN texted ON texted.number = text.rowid JOIN records USING (id) "
                "WHERE text MATCH ? AND records.deleted = 0 ORDER BY rank",
                *marks,
                words,
                match,
            )
        return ((str(identifier), str(snippet)) for identifier, snippet in rows)

    def _gather_text(self) -> None:
        """Adds the words of what is new. What a message says never changes."""
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS texted (number INTEGER PRIMARY KEY, id TEXT UNIQUE)"
        )
        self._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS text USING fts5 (subject, body)")
        (last,) = self._ask("SELECT coalesce(max(seq), 0) FROM records")[0]
        query = "SELECT id, count, body FROM records WHERE seq > ?"
        for identifier, count, body in self._db.execute(query, (self._meta("texted") or 0,)):
            fields = self._fields(count, body)
            added = self._db.execute("INSERT OR IGNORE INTO texted (id) VALUES (?)", (identifier,))
            if added.rowcount:
                texts = [_text(fields.get(name)) or "" for name in ("subject", "body")]
                self._db.execute(
                    "INSERT INTO text (rowid, subject, body) VALUES (?, ?, ?)",
                    (added.lastrowid, *texts),
                )
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('texted', ?)", (last,))

    def close(self) -> None:
        """Closes the database."""
        with self._mutex:
            self._db.close()

    # Reading from the tables.

    def _ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with self._mutex:
            return self._db.execute(query, values).fetchall()

    def _meta(self, key: str) -> str | None:
        rows = self._ask("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def _fields(self, count: object, body: object) -> Fields:
        assert isinstance(body, bytes)
        fields = unpack(body)
        if count == 1:  # The line itself, as it stands in the ledger.
            table = Table(aliases_of(self.kind))
            return table.get(table.add(body, fields)) or {}
        return fields

    def _raws(self, identifier: str) -> list[bytes]:
        rows = self._ask("SELECT raw FROM lines WHERE id = ? ORDER BY at", identifier)
        if not rows:
            rows = self._ask("SELECT body FROM records WHERE id = ?", identifier)
        return [raw for (raw,) in rows if isinstance(raw, bytes)]

    def _where(self, equals: Mapping[str, object]) -> tuple[str, list[object]]:
        terms, values = ["1"], list[object]()
        for name, value in equals.items():
            assert name in FLAGS or name in self._columns, name
            terms.append(f'"{name}" = ?')
            values.append(int(bool(value)) if name in FLAGS else value)
        return " AND ".join(terms), values

    # Bringing the tables up to date.

    def _open(self) -> sqlite3.Connection:
        try:
            db = self._connect()
            if db.execute("PRAGMA user_version").fetchone()[0] == VERSION:
                return db
            db.close()
        except sqlite3.DatabaseError:
            pass
        return self._fresh()

    def _connect(self) -> sqlite3.Connection:
        # Autocommit: transactions are begun by hand, where one is needed.
        db = sqlite3.connect(
            self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )
        # The index may lose its last lines with the power, but must not lie after it: that is
        # what NORMAL in WAL mode gives, without waiting for the disk.
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    def _fresh(self) -> sqlite3.Connection:
        remove(self.path)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        db = self._connect()
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            named = "".join(f', "{column}" TEXT' for column in self._columns)
            db.execute(
                "CREATE TABLE records (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, "
                "count INTEGER NOT NULL, created_ms INTEGER NOT NULL, read INTEGER NOT NULL, "
                f"deleted INTEGER NOT NULL, body BLOB NOT NULL{named})"
            )
            db.execute("CREATE TABLE lines (id TEXT, at INTEGER, raw BLOB, PRIMARY KEY (id, at))")
            db.execute("CREATE TABLE blocks (number INTEGER PRIMARY KEY, digest BLOB)")
            db.execute("CREATE TABLE loose (raw BLOB PRIMARY KEY, before INTEGER NOT NULL)")
            db.execute(
                "CREATE TABLE segments (name TEXT PRIMARY KEY, stamp TEXT NOT NULL, "
                "digest TEXT NOT NULL, held INTEGER NOT NULL)"
            )
            db.execute("CREATE TABLE migrations (at INTEGER PRIMARY KEY, raw BLOB UNIQUE)")
            db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
            born = int.from_bytes(os.urandom(6), "big")
            db.execute("INSERT INTO meta VALUES ('born', ?)", (born,))
            db.execute("CREATE INDEX by_seq ON records (seq)")
            for number, columns in enumerate(_INDEXES.get(self.kind, ())):
                db.execute(f"CREATE INDEX by_{number} ON records ({columns})")
            db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
        return db

    def _build_anew(self) -> None:
        self._db.close()
        self._db = self._fresh()

    def _catch_up(self) -> None:
        position, agreed = self._position("at"), self._position("agreed")
        tracked, journal = self.ledger.chunks(position, limit=_CHUNK_BYTES)
        news = tracked.restarted, journal.restarted, tracked.lines, tracked.rest, journal.lines
        # A last line without its end may be gone, and leave nothing to read.
        more = self._unended(), self._archive_stamp() != (self._meta("archive") or "")
        if any(news) or any(more):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                position, agreed = self._take_all()
                self._db.execute("COMMIT")
                if _size(self.path + "-wal") > _LONG_WAL_BYTES:
                    # Left alone, every process that opens the index would read it through.
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        self.ledger.agreed = agreed
        self._chained = position == agreed
        self.ledger.unrecorded = self._loose() or bool(
            self._ask("SELECT 1 FROM segments WHERE held = 0 LIMIT 1")
        )

    def _loose(self) -> bool:
        return bool(self._ask("SELECT 1 FROM loose LIMIT 1"))

    def _take_all(self) -> tuple[Position, Position]:
        position, agreed = self._position("at"), self._position("agreed")
        position, agreed, again = self._after_rewriting(position, agreed)
        self._doubt_a_line_that_went_on(position)
        taker = _Taker(self._db, self.kind, self._columns)
        # 0. The archive stands before all else.
        anew = self._meta("at") is None
        base, come = self._take_segments(taker, anew=anew)
        if anew:
            position = Position(position.tracked, base.mark)
        together = position == agreed
        was_apart, apart, moved = bool(self._meta("apart")), False, False
        # 1. As long as both files go on alike, each line is read once.
        while True:
            tracked, journal = self.ledger.chunks(position, limit=_CHUNK_BYTES)
            if not tracked.lines or tracked.lines != journal.lines:
                break
            taker.take(split_lines(tracked.lines), once=again)
            position = Position(tracked.end, journal.end)
            if together:
                agreed = position
            self._report(position)
        # 2. Then what the tracked file has, in its order, then what the journal alone has.
        while tracked.lines:
            lines = split_lines(tracked.lines)
            moved = taker.take(lines, once=again) or moved
            self._hold_loosely(lines, tracked.end.offset)
            position = Position(tracked.end, position.journal)
            tracked, _ = self.ledger.chunks(position, limit=_CHUNK_BYTES)
            self._report(position)
        # A line without its newline is read again with it, and counts once where it stays the same.
        moved = taker.take(split_lines(tracked.rest), once=again, whole=False) or moved
        if base.kept:
            kept = split_lines(base.kept)
            apart = taker.take(kept, once=True)
            self._let_go(kept)
        position = self._past_what_both_have(position)
        _, journal = self.ledger.chunks(position, limit=_CHUNK_BYTES)
        while journal.lines:
            lines = split_lines(journal.lines)
            apart = taker.take(lines, once=True) or apart
            self._let_go(lines)
            position = Position(position.tracked, journal.end)
            _, journal = self.ledger.chunks(position, limit=_CHUNK_BYTES)
            self._report(position)
        if position == agreed:
            self._db.execute("DELETE FROM loose")
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('unended', ?)", (tracked.rest,))
        positional = taker.positional or self._meta("positional")
        if positional and (again or come or (was_apart and moved)):
            # Where a line stands is what it means. The tracked lines were given another order, or
            # new ones stand before those that the journal alone had, or behind the archive's.
            raise Doubt
        if apart:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('apart', 1)")
        taker.finish()
        self._remember_blocks(position.tracked)
        self._save("at", position)
        self._save("agreed", agreed)
        return position, agreed

    def _take_segments(self, taker: _Taker, *, anew: bool) -> tuple[Archived, bool]:
        """Takes in the segments that are new and whose lines the journal may lack.

        Returns what was noted of the journal, for a start at the beginning, and whether any
        came after the start.
        """
        stamp = self._archive_stamp()
        noted = self.ledger.archive.noted(kept=anew) or Archived()
        rows = self._ask("SELECT name, stamp, digest, held FROM segments")
        before = {str(name): (stamp, str(digest), held == 1) for name, stamp, digest, held in rows}
        listing = self.ledger.archive.listing()
        digests, come = set[str](), False
        for name, changed in listing.items():
            old_stamp, old_digest, old_held = before.pop(name, ("", "", True))
            digest = old_digest if old_stamp == str(changed) else noted.digest_of(changed)
            data = None
            if digest is None or anew:
                data, digest = self.ledger.archive.read(name)
            held = digest in noted.digests
            if digest != old_digest:
                if not old_held:
                    raise Doubt
                come = True
                if anew or not held:
                    self._take_archived(taker, data or self.ledger.archive.read(name)[0])
            held = held or (digest == old_digest and old_held)
            row = name, str(changed), digest, int(held)
            self._db.execute("INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?)", row)
            digests.add(str(digest))
        for name, (_, digest, held) in before.items():
            # What only a segment had may vanish with it, and then it never was.
            if not held and digest not in noted.digests:
                raise Doubt
            self._db.execute("DELETE FROM segments WHERE name = ?", (name,))
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('archive', ?)", (stamp,))
        base = usable_note(noted, digests) if anew else Archived()
        if self.ledger.journal.read(base.mark, limit=TAIL_BYTES).restarted:
            base = Archived()
        return base, come and not anew

    def _take_archived(self, taker: _Taker, data: bytes) -> None:
        lines = split_lines(data)
        for begin in range(0, len(lines), _SOME_LINES):
            some = lines[begin : begin + _SOME_LINES]
            taker.take(some, once=True)
            self._archived_bytes += sum(map(len, some)) + len(some)
            self._report(Position())

    def _archive_stamp(self) -> str:
        noted, listing = self.ledger.archive.note_stamp(), self.ledger.archive.listing()
        return f"{noted} {listing}" if listing else ""

    # What only the tracked file has may vanish from it unseen, and then it never was. Such lines
    # are held loosely, until the next write takes them into the journal.

    def _hold_loosely(self, lines: list[bytes], before: int) -> None:
        (count,) = self._ask("SELECT count(*) FROM loose")[0]
        assert isinstance(count, int)
        if count + len(lines) <= _MANY_LOOSE:
            rows = ((raw, before) for raw in lines)
            self._db.executemany("INSERT OR REPLACE INTO loose VALUES (?, ?)", rows)
        elif not count or self._ask("SELECT max(before) FROM loose")[0][0] != _UNCOUNTED:
            self._db.execute("INSERT OR REPLACE INTO loose VALUES (x'', ?)", (_UNCOUNTED,))

    def _let_go(self, lines: list[bytes]) -> None:
        """The journal has these lines."""
        self._db.executemany("DELETE FROM loose WHERE raw = ?", ((raw,) for raw in lines))

    def _doubt_what_vanished(self, where: Mark) -> None:
        query = "SELECT raw FROM loose WHERE before > ?"
        missing = {bytes(raw) for (raw,) in self._ask(query, where.offset)}  # type: ignore[call-overload]
        while missing:
            tracked = read_after(self.ledger.path, where, limit=_CHUNK_BYTES)
            missing.difference_update(split_lines(tracked.lines))
            if not tracked.lines:
                break
            where = tracked.end
        if self.ledger.journal.lacking(missing):
            raise Doubt

    def _doubt_a_line_that_went_on(self, position: Position) -> None:
        unended = self._unended()
        if not unended:
            return
        tracked, _ = self.ledger.chunks(position, limit=_CHUNK_BYTES)
        now = (tracked.lines or tracked.rest).split(b"\n")[0]
        if split_lines(now) != split_lines(unended):
            raise Doubt

    def _unended(self) -> bytes:
        """Returns the last tracked line as it was read, where no newline ended it yet."""
        rows = self._ask("SELECT value FROM meta WHERE key = 'unended'")
        return bytes(rows[0][0]) if rows else b""  # type: ignore[call-overload]

    def _past_what_both_have(self, position: Position) -> Position:
        """Returns the position with the journal moved on as far as it repeats the tracked file,
        byte for byte, in a part that was read.
        """
        while position.journal.offset < position.tracked.offset:
            _, journal = self.ledger.chunks(position, limit=_CHUNK_BYTES)
            begin, size = position.journal.offset, len(journal.lines)
            same = begin + size <= position.tracked.offset
            if not size or not same or read_at(self.ledger.path, begin, size) != journal.lines:
                break
            position = Position(position.tracked, journal.end)
        return position

    def _after_rewriting(
        self, position: Position, agreed: Position
    ) -> tuple[Position, Position, bool]:
        """Returns where to go on reading, and whether lines may come that were seen before."""
        tracked, journal = self.ledger.chunks(position, limit=TAIL_BYTES)
        if journal.restarted or (tracked.restarted and self._meta("positional")):
            # A line without `rev` means something by its place: nothing read so far stands.
            raise Doubt
        if not tracked.restarted:
            return position, agreed, False
        same = self._blocks_alike(position.tracked)
        where = _mark_at(self.ledger.path, same)
        self._doubt_what_vanished(where)
        if agreed.tracked.offset <= where.offset:
            there = Mark(where.inode, agreed.tracked.offset, agreed.tracked.sum)
            agreed = Position(there, agreed.journal)
        else:
            agreed = Position()
        return Position(where, position.journal), agreed, True

    def _blocks_alike(self, until: Mark) -> int:
        """Returns how many bytes of the tracked file are what they were, as far as blocks tell."""
        known = self._ask("SELECT digest FROM blocks ORDER BY number")
        same = 0
        for (digest,) in known:
            if _digest(self.ledger.path, same) != digest:
                break
            same += _BLOCK_BYTES
        self._db.execute("DELETE FROM blocks WHERE number >= ?", (same // _BLOCK_BYTES,))
        if same == len(known) * _BLOCK_BYTES and _ends_alike(self.ledger.path, until):
            return until.offset
        return same

    def _remember_blocks(self, mark: Mark) -> None:
        (count,) = self._ask("SELECT count(*) FROM blocks")[0]
        assert isinstance(count, int)
        for number in range(count, mark.offset // _BLOCK_BYTES):
            digest = _digest(self.ledger.path, number * _BLOCK_BYTES)
            self._db.execute("INSERT INTO blocks VALUES (?, ?)", (number, digest))

    def _position(self, name: str) -> Position:
        saved = self._meta(name)
        if saved is None:
            return Position()
        words = saved.split(" ")
        tracked, journal = (
            Mark(int(words[n]), int(words[n + 1]), int(words[n + 2])) for n in (0, 3)
        )
        return Position(tracked, journal)

    def _save(self, name: str, position: Position) -> None:
        words = " ".join(
            f"{mark.inode} {mark.offset} {mark.sum}"
            for mark in (position.tracked, position.journal)
        )
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, words))

    def _report(self, position: Position) -> None:
        if self._progress is not None:
            files = sum(map(_size, (self.ledger.path, self.ledger.journal_path)))
            archived = sum(size for _, size, _ in self.ledger.archive.listing().values())
            done = position.tracked.offset + position.journal.offset
            self._progress(self._archived_bytes + done, archived + files)


def remove(path: str) -> None:
    """Deletes an index with all that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        if os.path.lexists(path + suffix):
            os.unlink(path + suffix)


class _Taker:
    """Folds lines into the tables, a batch of ids at a time."""

    def __init__(self, db: sqlite3.Connection, kind: str, columns: Sequence[str]) -> None:
        self._db = db
        self._kind = kind
        self._columns = columns
        self._unusable = 0
        self.positional = False
        (last,) = db.execute("SELECT max(seq) FROM records").fetchone()
        self._seq = last or 0
        marks = ", ".join("?" * (7 + len(columns)))
        self._replace = f"INSERT OR REPLACE INTO records VALUES ({marks})"  # noqa: S608

    def take(self, lines: list[bytes], *, once: bool, whole: bool = True) -> bool:
        """Takes lines in; returns whether any of them changed a record.

        Unusable ones count where they are `whole` and new.
        """
        decode_one = decoder(sum(map(len, lines)))
        usable: list[tuple[bytes, Fields]] = []
        for raw in lines:
            try:
                fields = decode_one(raw)
            except Unusable:
                self._unusable += whole and not once
                continue
            if is_migration(fields):
                self._db.execute("INSERT OR IGNORE INTO migrations (raw) VALUES (?)", (raw,))
            else:
                usable.append((raw, fields))
                self.positional = self.positional or explicit_rev(fields) is None
        table = self._known({str(fields["id"]) for _, fields in usable})
        before = {key: len(entry.lines) for key, entry in table.entries.items()}
        for raw, fields in usable:
            table.add(raw, fields, once=once)
        changed = [
            (key, entry)
            for key, entry in table.entries.items()
            if len(entry.lines) != before.get(key)
        ]
        self._store(changed, before)
        return bool(changed)

    def finish(self) -> None:
        """Writes down what was learnt about the lines as a whole."""
        self._db.execute(
            "INSERT INTO meta VALUES ('unusable', ?1) "
            "ON CONFLICT (key) DO UPDATE SET value = value + ?1",
            (self._unusable,),
        )
        if self.positional:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('positional', 1)")

    def _known(self, ids: set[str]) -> Table:
        """Returns a table that holds what the index has of these ids."""
        table = Table(aliases_of(self._kind))
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

    def _store(self, changed: list[tuple[str, Entry]], before: Mapping[str, int]) -> None:
        rows, lines = [], list[tuple[str, int, bytes]]()
        for identifier, entry in changed:
            self._seq += 1
            fields, count = entry.fields, len(entry.lines)
            body = entry.lines[0].raw if count == 1 else pack(fields)
            rows.append(
                (
                    identifier,
                    self._seq,
                    count,
                    instant_ms(fields.get("created_at")) or 0,
                    int(fields.get("read") is True),
                    int(fields.get("deleted") is True),
                    body,
                    *(_text(value_of(fields, column)) for column in self._columns),
                )
            )
            if count > 1:
                lines.extend((identifier, n, raw) for n, raw in enumerate(entry.arrived))
        self._db.executemany(self._replace, rows)
        if lines:
            self._db.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?)", lines)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[begin : begin + _BATCH] for begin in range(0, len(ids), _BATCH))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _digest(path: str, offset: int) -> bytes:
    from hashlib import sha1

    chunk = read_at(path, offset, _BLOCK_BYTES)
    return sha1(chunk, usedforsecurity=False).digest()


def _ends_alike(path: str, mark: Mark) -> bool:
    size = min(TAIL_BYTES, mark.offset)
    return checksum(read_at(path, mark.offset - size, size)) == mark.sum


def _mark_at(path: str, offset: int) -> Mark:
    """Returns the mark behind the last whole line before `offset`."""
    begin = max(0, offset - 2 * _BLOCK_BYTES)
    data = read_at(path, begin, offset - begin)
    end = data.rfind(b"\n") + 1
    inode = os.stat(path).st_ino if os.path.exists(path) else 0
    return Mark(inode, begin + end if end else 0, checksum(data[max(0, end - TAIL_BYTES) : end]))
