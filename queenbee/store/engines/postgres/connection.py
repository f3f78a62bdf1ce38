"""A connection to the database, and what is asked through it: each question is one round trip."""

from __future__ import annotations

import logging
import select
from contextlib import suppress

import psycopg

from queenbee.errors import Unreachable
from queenbee.store.engines.postgres import faults
from queenbee.store.engines.postgres.schema import VERSION, channel, lock_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# It warns of connections that were lost, on standard error; whoever asked is told anyway.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

AT_ONCE = 5_000
"""How many lines of one kind one question fetches at most: about 2 MiB."""
_IDLE_S = 10
"""How long a turn may stay silent: its process does nothing in between but decide."""

_LIMITS = """
SELECT set_config('lock_timeout', %s, true),
    set_config('idle_in_transaction_session_timeout', %s, true),
    set_config('synchronous_commit', CASE WHEN NOT %s THEN 'off'
        WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
        ELSE current_setting('synchronous_commit') END, true)
"""
_HIVE = """
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_is_in_recovery(),
    (SELECT max(step) FROM queen_schema), in_use, carried
FROM (VALUES (1)) AS one LEFT JOIN queen_hives ON hive = %s
"""
_LINES = """
SELECT kinds.kind, found.sequence, found.line, found.digest
FROM unnest(%s::text[], %s::bigint[]) AS kinds (kind, known) CROSS JOIN LATERAL (
    SELECT sequence, CASE WHEN sequence = known THEN ''::bytea ELSE line END AS line, digest
    FROM queen_lines WHERE hive = %s AND queen_lines.kind = kinds.kind AND sequence >= known
    ORDER BY sequence LIMIT %s
) AS found
"""
_INSERT = """
INSERT INTO queen_lines (hive, kind, sequence, line, digest, turn)
SELECT %s, kind, sequence, line, digest, %s
FROM unnest(%s::text[], %s::bigint[], %s::bytea[], %s::bytea[])
    AS added (kind, sequence, line, digest)
"""
_KINDS = """
WITH RECURSIVE each (kind) AS (
    SELECT min(kind) FROM queen_lines WHERE hive = %(hive)s UNION ALL
    SELECT (SELECT min(kind) FROM queen_lines WHERE hive = %(hive)s AND kind > each.kind)
    FROM each WHERE kind IS NOT NULL
) SELECT kind FROM each WHERE kind IS NOT NULL
"""


class Row:
    """A line as the database has it."""

    __slots__ = ("digest", "kind", "line", "sequence")

    def __init__(self, kind: str, sequence: int, line: bytes, digest: bytes) -> None:
        self.kind = kind
        self.sequence = sequence
        self.line = line
        self.digest = digest


class Answer:
    """What one question brings: the database's clock, the state of the hive, and new lines."""

    __slots__ = ("carried", "in_use", "now_ms", "rows")

    def __init__(self, now_ms: int, *, in_use: bool, carried: int, rows: list[Row]) -> None:
        self.now_ms = now_ms
        self.in_use = in_use
        """Whether writes go here; a hive may have moved elsewhere."""
        self.carried = carried
        """How often lines were carried over from files."""
        self.rows = rows


class Connection:
    """An open connection for one hive. Raises psycopg's errors. Not safe for threads."""

    def __init__(
        self, conninfo: str, hive: str, *, name: str, patience_s: float, durable: bool
    ) -> None:
        self.hive = hive
        self._durable = durable
        # Without a limit on silence, a cable that is pulled would stop a command for minutes.
        self._db = psycopg.connect(
            conninfo,
            autocommit=True,
            connect_timeout=max(2, round(patience_s)),  # libpq takes less for 2.
            application_name=f"queen {name}"[:63],
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=max(1000, round(patience_s * 1000)),
        )

    @property
    def db(self) -> psycopg.Connection:
        """The connection itself."""
        return self._db

    def ask(self, known: Mapping[str, int]) -> Answer:
        """Returns what came after these sequence numbers, and the last line before it with no
        text, so that its digest can be compared.
        """
        with self._db.pipeline():
            hive = self._db.execute(_HIVE, (self.hive,), binary=True)
            lines = self._fetch(known)
        return self._answer(hive, lines)

    def begin(self, known: Mapping[str, int], lock_timeout_s: float) -> Answer:
        """Begins a turn: nobody else writes to the hive until `commit` or `roll_back`.

        Raises `StoreError` if the hive is not in use here.
        """
        answer = self._begin(known, lock_timeout_s)
        if not answer.in_use:
            raise faults.moved_away(self.hive)
        return answer

    def _begin(self, known: Mapping[str, int], lock_timeout_s: float) -> Answer:
        timeout_ms = max(1, round(lock_timeout_s * 1000))
        with self._db.pipeline():
            # Each statement must see what was committed before it began, not before the lock.
            self._db.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            self._db.execute(
                _LIMITS,
                (str(timeout_ms), f"{_IDLE_S}s", self._durable),
            )
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(self.hive),))
            hive = self._db.execute(_HIVE, (self.hive,), binary=True)
            lines = self._fetch(known)
        return self._answer(hive, lines)

    def commit(self, rows: Sequence[Row], turn: bytes) -> None:
        """Records the rows and ends the turn; those who listen are told."""
        with self._db.pipeline():
            self._db.execute(
                _INSERT,
                (
                    self.hive,
                    turn,
                    [row.kind for row in rows],
                    [row.sequence for row in rows],
                    [row.line for row in rows],
                    [row.digest for row in rows],
                ),
            )
            self._db.execute("SELECT pg_notify(%s, '')", (channel(self.hive),))
            self._db.execute("COMMIT")

    def roll_back(self) -> None:
        """Ends the turn without recording anything."""
        self._db.execute("ROLLBACK")

    def is_recorded(self, row: Row, turn: bytes, lock_timeout_s: float) -> bool:
        """Returns whether a turn is recorded that began with this row.

        It waits until the server has ended that turn, one way or the other. A standby is not asked:
        the turn may be on its way to it.
        """
        self._begin({}, lock_timeout_s)
        try:
            found = self._db.execute(
                "SELECT 1 FROM queen_lines WHERE hive = %s AND kind = %s AND sequence = %s "
                "AND digest = %s AND turn = %s",
                (self.hive, row.kind, row.sequence, row.digest, turn),
            ).fetchone()
        finally:
            with suppress(psycopg.Error):
                self.roll_back()
        return found is not None

    def kinds(self) -> list[str]:
        """Returns the kinds of record that have lines."""
        return [str(kind) for (kind,) in self._db.execute(_KINDS, {"hive": self.hive})]

    def listen(self) -> None:
        """Asks to be told of writes to the hive."""
        self._db.execute(f"LISTEN {channel(self.hive)}".encode())

    def was_told(self, timeout_s: float) -> bool:
        """Returns whether a write was announced, or is within this time."""
        pgconn = self._db.pgconn
        select.select([pgconn.socket], [], [], timeout_s)
        pgconn.consume_input()
        told = False
        while pgconn.notifies() is not None:
            told = True
        return told

    def close(self) -> None:
        """Closes the connection; a forked child leaves that to its parent."""
        with suppress(psycopg.Error, OSError):
            self._db.close()

    def _fetch(self, known: Mapping[str, int]) -> psycopg.Cursor:
        query = (list(known), list(known.values()), self.hive, AT_ONCE)
        return self._db.execute(_LINES, query, binary=True)

    def _answer(self, hive: psycopg.Cursor, lines: psycopg.Cursor) -> Answer:
        found = hive.fetchone()
        assert found is not None
        now_ms, standby, version, in_use, carried = found
        if standby:
            raise Unreachable(
                "the database is a standby, which cannot be written; nothing was written",
                hint="try again, or name the primary in QUEEN_DATABASE_URL",
            )
        if version is None or version < VERSION:
            raise faults.no_tables()
        if version > VERSION:
            raise faults.too_new(version)
        rows = [Row(*row) for row in lines.fetchall()]
        return Answer(now_ms, in_use=bool(in_use), carried=carried or 0, rows=rows)
