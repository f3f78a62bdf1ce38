"""A connection to the database, and what is asked through it: each question is one round trip."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.errors import Unreachable
from queenbee.store.engines.postgres import faults
from queenbee.store.engines.postgres.ddl import VERSION, channel, is_kind, lock_key
from queenbee.store.engines.postgres.libpq import Link, PgError, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queenbee.store.engines.postgres import libpq

_FALSE = b"\0"
AT_ONCE = 5_000
"""How many lines of one kind one question fetches at most: about 2 MiB."""
_IDLE_S = 10
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


@dataclass(frozen=True, slots=True)
class Row:
    """A line as the database has it."""

    kind: str
    sequence: int
    line: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question brings: the database's clock, the state of the hive, and new lines."""

    now_ms: int
    in_use: bool | None
    """Whether writes go here; a hive may have moved elsewhere. None: it was never here."""
    carried: int
    """How often lines were carried over from files."""
    rows: dict[str, list[Row]]
    """By kind, for each that was asked for."""

    def refuse_if_elsewhere(self, hive: str) -> None:
        """Raises `StoreError` if the hive is not in use here."""
        if self.in_use is None:
            raise faults.absent(hive)
        if not self.in_use:
            raise faults.carried_back(hive)


class Connection:
    """One session of one hive. Not safe for threads; the engine sees to that."""

    def __init__(
        self,
        conninfo: str,
        hive: str,
        *,
        name: str,
        patience_s: float,
        durable: bool,
        idle_s: int = _IDLE_S,
    ) -> None:
        self.hive = hive
        self._durability = "synced" if durable else "buffered"
        self._idle = f"{idle_s}s"
        self.link = Link(conninfo, _parameters(name, patience_s))

    def ask(self, known: Mapping[str, int]) -> Answer:
        """Returns what came after these sequence numbers, and the last line before it with no
        text, so that its digest can be compared.

        Raises `StoreError` if the hive is not in use here: what is here may be old.
        """
        answer = _answer(known, self.link.run(*self._questions(known)))
        answer.refuse_if_elsewhere(self.hive)
        return answer

    def begin(self, known: Mapping[str, int], lock_timeout_s: float) -> Answer:
        """Begins a turn: nobody else writes to the hive until `commit` or `roll_back`.

        Raises `StoreError` if the hive is not in use here.
        """
        answer = self._begin(known, lock_timeout_s)
        answer.refuse_if_elsewhere(self.hive)
        return answer

    def wait_for_turn(self, lock_timeout_s: float) -> None:
        """Begins a turn without a question, also in a hive that is not in use here."""
        self.link.run(*self._beginning(lock_timeout_s))

    def _begin(self, known: Mapping[str, int], lock_timeout_s: float) -> Answer:
        # Each statement must see what was committed before it began, not before the lock.
        beginning = self._beginning(lock_timeout_s)
        results = self.link.run(*beginning, *self._questions(known))
        return _answer(known, results[len(beginning) :])

    def _beginning(self, lock_timeout_s: float) -> tuple[Statement, Statement]:
        timeout_ms = max(1, round(lock_timeout_s * 1000))
        limits = (timeout_ms, self._idle, self._durability, lock_key(self.hive))
        return _BEGIN, Statement(_LOCK, limits)

    def commit(self, rows: Sequence[Row], turn: bytes) -> None:
        """Records the rows and ends the turn; those who listen are told.

        Whether they are recorded cannot be told from an error: ask `is_recorded`.
        """
        # After the commit: announcements hold a lock of the whole server, which would let only one
        # hive of all commit at a time. If this one is lost, those who wait ask twice a second.
        tell = Statement(_NOTIFY, (channel(self.hive),))
        self.link.run(self._insertion(rows, turn), _COMMIT, tell)

    def insert(self, rows: Sequence[Row], turn: bytes) -> None:
        """Adds rows in the turn that has begun, which goes on."""
        self.link.run(self._insertion(rows, turn))

    def _insertion(self, rows: Sequence[Row], turn: bytes) -> Statement:
        columns = (
            [row.kind for row in rows],
            [row.sequence for row in rows],
            [row.line for row in rows],
            [row.digest for row in rows],
        )
        return Statement(_INSERT, (self.hive, turn, *columns))

    def roll_back(self) -> None:
        """Ends the turn without recording anything."""
        self.link.run(Statement("ROLLBACK"))

    def is_recorded(self, row: Row, turn: bytes, lock_timeout_s: float) -> bool:
        """Returns whether a turn is recorded that began with this row.

        It waits until the server has ended that turn, one way or the other. A standby is not asked:
        the turn may be on its way to it.
        """
        self._begin({}, lock_timeout_s)
        try:
            values = (self.hive, row.kind, row.sequence, row.digest, turn)
            found = self.table(_RECORDED, *values)
        finally:
            with suppress(PgError):
                self.roll_back()
        return bool(found)

    def kinds(self) -> list[str]:
        """Returns the kinds of record that have lines."""
        return [kind for (kind,) in self.table(_KINDS, self.hive) if is_kind(kind)]

    def lines(self, kind: str) -> Iterator[Row]:
        """Yields the lines of a kind, oldest first, in as many questions as that takes."""
        after, more = 0, True
        while more:
            statement = Statement(_LINES, (self.hive, kind, after, AT_ONCE))
            rows = _rows(kind, self.link.run(statement)[0])
            yield from rows[1:] if after else rows
            more = len(rows) == AT_ONCE
            after = rows[-1].sequence if rows else after

    def table(self, query: str, *values: libpq.Value) -> list[list[str]]:
        """Returns the rows of a query whose columns are all text."""
        (rows,) = self.link.run(Statement(query, values))
        return [[(value or b"").decode() for value in row] for row in rows]

    def listen(self) -> None:
        """Asks to be told of writes to the hive."""
        self.link.run(Statement(f"LISTEN {channel(self.hive)}"))

    def was_told(self, timeout_s: float) -> bool:
        """Returns whether a write was announced, or is within this time."""
        return self.link.was_told(timeout_s)

    def close(self) -> None:
        """Closes the connection; a forked child leaves that to its parent."""
        self.link.close()

    def _questions(self, known: Mapping[str, int]) -> list[Statement]:
        lines = [
            Statement(_LINES, (self.hive, kind, sequence, AT_ONCE))
            for kind, sequence in known.items()
        ]
        return [Statement(_HIVE, (self.hive,)), *lines]


def _parameters(name: str, patience_s: float) -> dict[str, str | int]:
    # A server that vanished without a word would stop a command for minutes.
    return {
        "connect_timeout": max(2, round(patience_s)),  # libpq takes less for 2.
        "application_name": f"queen {name}"[:63],
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": max(1000, round(patience_s * 1000)),
    }


def _answer(known: Mapping[str, int], results: Sequence[list[libpq.Row]]) -> Answer:
    ((now_ms, standby, version, in_use, carried),) = results[0]
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
    rows = {kind: _rows(kind, each) for kind, each in zip(known, results[1:], strict=True)}
    is_in_use = None if in_use is None else in_use != _FALSE
    return Answer(_number(now_ms), is_in_use, _number(carried), rows)


def _rows(kind: str, found: Sequence[libpq.Row]) -> list[Row]:
    return [
        Row(kind, _number(sequence), line or b"", digest or b"") for sequence, line, digest in found
    ]


def _number(value: bytes | None) -> int:
    """Returns a number from the server's binary form; 0 for none."""
    return int.from_bytes(value or b"", "big", signed=True)
