"""A session with the database, and what is asked through it: each question is one round trip."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from queenbee.errors import Unreachable
from queenbee.store.carriers.postgres import faults
from queenbee.store.carriers.postgres.ddl import VERSION, chained, channel, is_kind, lock_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, LiteralString

    Statement = tuple[LiteralString, Sequence[object]]

logging.getLogger("psycopg").addHandler(logging.NullHandler())
"""Otherwise its warnings about lost connections go to standard error, beside our own."""

AT_ONCE = 5_000
"""How many lines of one kind one question fetches: about 2 MiB."""
_IDLE_S = 10
"""How long a turn may stay silent: its process does nothing in between but decide."""

_LOCK = """
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', %s, true),
        set_config('idle_in_transaction_session_timeout', %s, true),
        set_config('synchronous_commit', CASE WHEN %s = 'buffered' THEN 'off'
            WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
            ELSE current_setting('synchronous_commit') END, true)
) SELECT pg_advisory_xact_lock(%s) FROM limits
"""
"""The limits hold before the lock is waited for: the table is made first."""
_HIVE = """
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_is_in_recovery(),
    (SELECT max(step) FROM queen_schema), in_use, carried
FROM (VALUES (1)) AS one LEFT JOIN queen_hives ON hive = %s
"""
_LINES = """
SELECT kind, sequence, digest, CASE WHEN sequence = known.last THEN ''::bytea ELSE line END
FROM unnest(%s::text[], %s::bigint[]) AS known (kind, last) CROSS JOIN LATERAL (
    SELECT sequence, digest, line FROM queen_lines
    WHERE hive = %s AND kind = known.kind AND sequence >= known.last
    ORDER BY sequence LIMIT %s
) AS found ORDER BY kind, sequence
"""
_INSERT = """
INSERT INTO queen_lines (hive, kind, sequence, line, digest, turn)
SELECT %s, kind, sequence, line, digest, %s
FROM unnest(%s::text[], %s::bigint[], %s::bytea[], %s::bytea[])
    AS added (kind, sequence, line, digest)
"""
_RECORDED = """
SELECT FROM queen_lines
WHERE hive = %s AND kind = %s AND sequence = %s AND digest = %s AND turn = %s
"""
_KINDS = """
WITH RECURSIVE each (kind) AS (
    SELECT min(kind) FROM queen_lines WHERE hive = %(hive)s UNION ALL
    SELECT (SELECT min(kind) FROM queen_lines WHERE hive = %(hive)s AND kind > each.kind)
    FROM each WHERE kind IS NOT NULL
) SELECT kind FROM each WHERE kind IS NOT NULL
"""


class End(NamedTuple):
    """Where the lines of a kind end: the number of the last one, and its digest."""

    sequence: int = 0
    digest: bytes = b""


class Row(NamedTuple):
    """A line as the database has it."""

    sequence: int
    digest: bytes
    line: bytes

    @property
    def end(self) -> End:
        """Where the lines end with this one."""
        return End(self.sequence, self.digest)


Ends = Mapping[str, End]
"""Where each kind ends."""
Rows = dict[str, list[Row]]
"""By kind: what came after a line that was known, and first that line itself, with no text."""


_BEFORE = Row(*End(), b"")
"""What comes before the first line."""


class Answer(NamedTuple):
    """What one question brings: the database's clock, and new lines."""

    now_ms: int
    carried: int
    """How often lines were carried over from files."""
    rows: Rows


class Connection:
    """One session of one hive. Not safe for threads; the engine sees to that.

    Raises `psycopg.Error`, and `StoreError` if the hive is not in use here: what is here may be
    old.
    """

    def __init__(
        self,
        conninfo: str,
        hive: str,
        *,
        name: str = "",
        patience_s: float = 10,
        durable: bool = True,
        idle_s: int = _IDLE_S,
    ) -> None:
        self.hive = hive
        self._durability = "synced" if durable else "buffered"
        self._idle = f"{idle_s}s"
        self._process = os.getpid()
        # A server that vanished without a word would stop a command for minutes.
        self.db: Any = psycopg.connect(
            conninfo,
            autocommit=True,
            client_encoding="utf8",
            application_name=f"queen {name}"[:63],
            connect_timeout=max(2, round(patience_s)),
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=max(1000, round(patience_s * 1000)),
        )

    # Reading.

    def ask(self, known: Ends) -> Answer:
        """Returns what came after these ends."""
        return _answer(self.hive, known, *self._run(*self._questions(known)))

    def kinds(self) -> list[str]:
        """Returns the kinds of record that have lines."""
        found = self.db.execute(_KINDS, {"hive": self.hive}).fetchall()
        return [kind for (kind,) in found if is_kind(kind)]

    def lines(self, kind: str) -> Iterator[Row]:
        """Yields the lines of a kind, oldest first; also of a hive that is not in use here."""
        end, more = End(), True
        while more:
            rows = _rows({kind: end}, self._run(self._questions({kind: end})[1])[0])[kind]
            yield from rows[1:]
            more, end = len(rows) > AT_ONCE, rows[-1].end if rows else End()

    # Writing.

    def begin(self, known: Ends, lock_timeout_s: float) -> Answer:
        """Begins a turn, and returns what came after these ends: nobody else writes to the hive
        until `commit` or `roll_back`.
        """
        # Each statement must see what was committed before it began, not before the lock.
        beginning = self._beginning(lock_timeout_s)
        _, _, *results = self._run(*beginning, *self._questions(known))
        return _answer(self.hive, known, *results)

    def wait_for_turn(self, lock_timeout_s: float) -> None:
        """Begins a turn without a question, also in a hive that is not in use here."""
        self._run(*self._beginning(lock_timeout_s))

    def insert(self, rows: Mapping[str, Sequence[Row]], turn: bytes) -> None:
        """Adds rows in the turn that has begun, which goes on."""
        self._run(self._insertion(rows, turn))

    def commit(self, rows: Mapping[str, Sequence[Row]], turn: bytes) -> None:
        """Records the rows and ends the turn; those who listen are told.

        Whether they are recorded cannot be told from an error: ask `is_recorded`.
        """
        # After the commit: announcements hold a lock of the whole server, which would let only one
        # hive of all commit at a time. If this one is lost, those who wait ask twice a second.
        tell: Statement = ("SELECT pg_notify(%s, '')", (channel(self.hive),))
        self._run(self._insertion(rows, turn), ("COMMIT", ()), tell)

    def roll_back(self) -> None:
        """Ends the turn without recording anything."""
        self._run(("ROLLBACK", ()))

    def is_recorded(self, kind: str, end: End, turn: bytes, lock_timeout_s: float) -> bool:
        """Returns whether a turn is recorded that wrote this line.

        It waits until the server has ended that turn, one way or the other. A standby is not asked:
        the turn may be on its way to it.
        """
        hive = self._questions({})[0]
        *_, [state], found = self._run(
            *self._beginning(lock_timeout_s), hive, (_RECORDED, (self.hive, kind, *end, turn))
        )
        _refuse_unknown(state)
        with suppress(psycopg.Error):
            self.roll_back()
        return bool(found)

    # Waiting.

    def listen(self) -> None:
        """Asks to be told of writes to the hive."""
        self.db.execute(f"LISTEN {channel(self.hive)}".encode())

    def was_told(self, timeout_s: float) -> bool:
        """Returns whether a write was announced, or is within this time."""
        return bool([*self.db.notifies(timeout=timeout_s, stop_after=1)])

    def close(self) -> None:
        """Closes the connection; a forked child leaves that to its parent."""
        if self._process == os.getpid():
            self.db.close()

    def _beginning(self, lock_timeout_s: float) -> list[Statement]:
        limits = (str(max(1, round(lock_timeout_s * 1000))), self._idle, self._durability)
        return [
            ("BEGIN ISOLATION LEVEL READ COMMITTED", ()),
            (_LOCK, (*limits, lock_key(self.hive))),
        ]

    def _questions(self, known: Ends) -> list[Statement]:
        numbers = [end.sequence for end in known.values()]
        lines = ([*known], numbers, self.hive, AT_ONCE + 1)
        return [(_HIVE, (self.hive,)), (_LINES, lines)]

    def _insertion(self, rows: Mapping[str, Sequence[Row]], turn: bytes) -> Statement:
        added = [(kind, row) for kind, each in rows.items() for row in each]
        columns = (
            [kind for kind, _ in added],
            [row.sequence for _, row in added],
            [row.line for _, row in added],
            [row.digest for _, row in added],
        )
        return _INSERT, (self.hive, turn, *columns)

    def _run(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        """Returns the rows of each statement, after one round trip. The first error ends it; no
        statement after it is run.
        """
        try:
            with self.db.pipeline():
                sent = [self.db.execute(*each, binary=True) for each in statements]
            return [each.fetchall() if each.description is not None else [] for each in sent]
        except psycopg.Error:
            raise
        except BaseException:
            self.close()  # Nobody could tell the next answer from this one.
            raise


def numbered(end: End, lines: Sequence[bytes]) -> list[Row]:
    """Returns lines with the numbers and digests that they get after this end, behind the row of
    the line there.
    """
    rows = [Row(*end, b"")]
    for line in lines:
        sequence, digest, _ = rows[-1]
        rows.append(Row(sequence + 1, chained(digest, line), line))
    return rows


def followed(kind: str, rows: Sequence[Row], after: End) -> End:
    """Returns where rows end that follow. Raises `StoreError` if one does not match its digest."""
    for row in rows:
        if row.end != (after.sequence + 1, chained(after.digest, row.line)):
            raise faults.damaged(kind, row.sequence)
        after = row.end
    return after


def _answer(
    hive: str,
    known: Ends,
    state: list[tuple[Any, ...]],
    lines: list[tuple[Any, ...]],
) -> Answer:
    now_ms, *_, in_use, carried = state[0]
    _refuse_unknown(state[0])
    if in_use is None:
        raise faults.absent(hive)
    if not in_use:
        raise faults.carried_back(hive)
    return Answer(now_ms, carried, _rows(known, lines))


def _refuse_unknown(state: tuple[Any, ...]) -> None:
    """Raises `QueenError` for a standby, and for tables of another version."""
    _, is_standby, version, *_ = state
    if is_standby:
        raise Unreachable(
            "the database is a standby, which cannot be written",
            hint="try again, or name the primary in QUEEN_DATABASE_URL",
        )
    if (version or 0) < VERSION:
        raise faults.no_tables()
    if version > VERSION:
        raise faults.too_new(version)


def _rows(known: Ends, lines: list[tuple[Any, ...]]) -> Rows:
    rows: Rows = {kind: [] if end.sequence else [_BEFORE] for kind, end in known.items()}
    for kind, *row in lines:
        rows[kind].append(Row(*row))
    return rows
