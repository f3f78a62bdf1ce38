"""A connection to the database, and what is asked through it: each question is one round trip."""

from __future__ import annotations

import logging
import select
import sys
from contextlib import suppress

from queenbee.errors import Unreachable
from queenbee.store.engines.postgres import faults, libpq
from queenbee.store.engines.postgres.late import psycopg
from queenbee.store.engines.postgres.schema import VERSION, channel, is_kind, lock_key
from queenbee.store.engines.postgres.statements import Statement, Statements, Value, Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.store.engines.postgres.statements import Db, Parameter, PGresult

# It warns of connections that were lost, on standard error; whoever asked is told anyway.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_FALSE = b"\0"
AT_ONCE = 5_000
"""How many lines of one kind one question fetches at most: about 2 MiB."""
_IDLE = Value("10s")
"""How long a turn may stay silent: its process does nothing in between but decide."""

_BEGIN = Statement("BEGIN ISOLATION LEVEL READ COMMITTED")
_COMMIT = Statement("COMMIT")
_LOCK = """
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', $1, true),
        set_config('idle_in_transaction_session_timeout', $2, true),
        set_config('synchronous_commit', CASE WHEN $3 = 'buffered' THEN 'off'
            WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
            ELSE current_setting('synchronous_commit') END, true)
) SELECT pg_advisory_xact_lock($4) FROM limits
"""
"""The limits hold before the lock is waited for: the table is made first."""
_HIVE = """
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_is_in_recovery(),
    (SELECT max(step) FROM queen_schema), in_use, carried
FROM (VALUES (1)) AS one LEFT JOIN queen_hives ON hive = $1
"""
_LINES = """
SELECT sequence, CASE WHEN sequence = $3 THEN ''::bytea ELSE line END, digest
FROM queen_lines WHERE hive = $1 AND kind = $2 AND sequence >= $3 ORDER BY sequence LIMIT $4
"""
_INSERT = """
INSERT INTO queen_lines (hive, kind, sequence, line, digest, turn)
SELECT $1, kind, sequence, line, digest, $2
FROM unnest($3::text[], $4::bigint[], $5::bytea[], $6::bytea[])
    AS added (kind, sequence, line, digest)
"""
_RECORDED = """
SELECT kind FROM queen_lines
WHERE hive = $1 AND kind = $2 AND sequence = $3 AND digest = $4 AND turn = $5
"""
_NOTIFY = "SELECT pg_notify($1, '')"
_KINDS = """
WITH RECURSIVE each (kind) AS (
    SELECT min(kind) FROM queen_lines WHERE hive = $1 UNION ALL
    SELECT (SELECT min(kind) FROM queen_lines WHERE hive = $1 AND kind > each.kind)
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

    def __init__(self, now_ms: int, *, in_use: bool | None, carried: int, rows: list[Row]) -> None:
        self.now_ms = now_ms
        self.in_use = in_use
        """Whether writes go here; a hive may have moved elsewhere. None: it was never here."""
        self.carried = carried
        """How often lines were carried over from files."""
        self.rows = rows

    def refuse_if_elsewhere(self, hive: str) -> None:
        """Raises `StoreError` if the hive is not in use here."""
        if self.in_use is None:
            raise faults.absent(hive)
        if not self.in_use:
            raise faults.carried_back(hive)


class Connection:
    """An open connection for one hive. Raises psycopg's errors. Not safe for threads."""

    def __init__(
        self, conninfo: str, hive: str, *, name: str, patience_s: float, durable: bool
    ) -> None:
        self.hive = hive
        self._hive = Value(hive)
        self._lock = Value(lock_key(hive))
        self._channel = Value(channel(hive))
        self._durability = Value("synced" if durable else "buffered")
        # Without a limit on silence, a cable that is pulled would stop a command for minutes.
        parameters: dict[str, str | int] = {
            "connect_timeout": max(2, round(patience_s)),  # libpq takes less for 2.
            "application_name": f"queen {name}"[:63],
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": max(1000, round(patience_s * 1000)),
        }
        self._db = _connected(conninfo, parameters)
        self._statements = Statements(self._db)

    @property
    def db(self) -> Db:
        """The connection itself."""
        return self._db

    def ask(self, known: Mapping[str, int]) -> Answer:
        """Returns what came after these sequence numbers, and the last line before it with no
        text, so that its digest can be compared.

        Raises `StoreError` if the hive is not in use here: what is here may be old.
        """
        answer = self._answer(known, self._statements.run(*self._questions(known)))
        answer.refuse_if_elsewhere(self.hive)
        return answer

    def begin(self, known: Mapping[str, int], lock_timeout_s: float) -> Answer:
        """Begins a turn: nobody else writes to the hive until `commit` or `roll_back`.

        Raises `StoreError` if the hive is not in use here.
        """
        answer = self._begin(known, lock_timeout_s)
        answer.refuse_if_elsewhere(self.hive)
        return answer

    def _begin(self, known: Mapping[str, int], lock_timeout_s: float) -> Answer:
        timeout_ms = max(1, round(lock_timeout_s * 1000))
        limits = (Value(timeout_ms), _IDLE, self._durability)
        results = self._statements.run(
            # Each statement must see what was committed before it began, not before the lock.
            _BEGIN,
            Statement(_LOCK, *limits, self._lock),
            *self._questions(known),
        )
        return self._answer(known, results[2:])

    def commit(self, rows: Sequence[Row], turn: bytes) -> None:
        """Records the rows and ends the turn; those who listen are told."""
        insert = Statement(
            _INSERT,
            self._hive,
            Value(turn),
            Values([row.kind for row in rows]),
            Values([row.sequence for row in rows]),
            Values([row.line for row in rows]),
            Values([row.digest for row in rows]),
        )
        # After the commit: announcements hold a lock of the whole server, which would let only one
        # hive of all commit at a time. If this one is lost, those who wait ask twice a second.
        tell = Statement(_NOTIFY, self._channel)
        self._statements.run(insert, _COMMIT, tell, needed=2)

    def roll_back(self) -> None:
        """Ends the turn without recording anything."""
        self._statements.run(Statement("ROLLBACK"))

    def is_recorded(self, row: Row, turn: bytes, lock_timeout_s: float) -> bool:
        """Returns whether a turn is recorded that began with this row.

        It waits until the server has ended that turn, one way or the other. A standby is not asked:
        the turn may be on its way to it.
        """
        self._begin({}, lock_timeout_s)
        try:
            line = (Value(row.kind), Value(row.sequence), Value(row.digest))
            found = self.table(_RECORDED, self._hive, *line, Value(turn))
        finally:
            with suppress(psycopg.Error):
                self.roll_back()
        return bool(found)

    def kinds(self) -> list[str]:
        """Returns the kinds of record that have lines."""
        found = self.table(_KINDS, self._hive)
        return [kind for (kind,) in found if is_kind(kind)]

    def table(self, query: str, *values: Parameter) -> list[list[str]]:
        """Returns the rows of a query whose columns are all text."""
        (result,) = self._statements.run(Statement(query, *values))
        columns = range(result.nfields)
        return [
            [(result.get_value(row, column) or b"").decode() for column in columns]
            for row in range(result.ntuples)
        ]

    def listen(self) -> None:
        """Asks to be told of writes to the hive."""
        self._statements.run(Statement(f"LISTEN {channel(self.hive)}"))

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

    def _questions(self, known: Mapping[str, int]) -> list[Statement]:
        lines = [
            Statement(_LINES, self._hive, Value(kind), Value(sequence), Value(AT_ONCE))
            for kind, sequence in known.items()
        ]
        return [Statement(_HIVE, self._hive), *lines]

    def _answer(self, known: Mapping[str, int], results: Sequence[PGresult]) -> Answer:
        now_ms, standby, version, in_use, carried = (
            results[0].get_value(0, column) for column in range(5)
        )
        if standby != _FALSE:
            raise Unreachable(
                "the database is a standby, which cannot be written",
                hint="try again, or name the primary in QUEEN_DATABASE_URL",
            )
        steps = _number(version)
        if steps < VERSION:
            raise faults.no_tables()
        if steps > VERSION:
            raise faults.too_new(steps)
        rows = [
            Row(kind, _number(result.get_value(row, 0)), *_texts(result, row))
            for kind, result in zip(known, results[1:], strict=True)
            for row in range(result.ntuples)
        ]
        is_in_use = None if in_use is None else in_use != _FALSE
        return Answer(_number(now_ms), in_use=is_in_use, carried=_number(carried), rows=rows)


def _connected(conninfo: str, parameters: Mapping[str, str | int]) -> Db:
    # Once psycopg is imported, it is the faster one.
    link = None if "psycopg" in sys.modules else libpq.connect(conninfo, parameters)
    if link is not None:
        return link
    return psycopg.connect(conninfo, autocommit=True, **parameters)  # type: ignore[arg-type,return-value]


def _number(value: bytes | None) -> int:
    """Returns a number from the server's binary form; 0 for none."""
    return int.from_bytes(value or b"", "big", signed=True)


def _texts(result: PGresult, row: int) -> tuple[bytes, bytes]:
    return result.get_value(row, 1) or b"", result.get_value(row, 2) or b""
