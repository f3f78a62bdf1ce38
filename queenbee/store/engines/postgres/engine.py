"""The engine over PostgreSQL: a turn is a transaction, and reads go through a copy on this machine.

A copy that does not match the database, by digest, is fetched anew. ADR 0030.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from queenbee.errors import Busy, QueenError, Unreachable
from queenbee.store.engines.opening import open_records
from queenbee.store.engines.postgres import faults, health
from queenbee.store.engines.postgres.connection import AT_ONCE, Answer, Connection, Row
from queenbee.store.engines.postgres.copy import Copy, End, sum_of
from queenbee.store.engines.postgres.ddl import chained
from queenbee.store.engines.postgres.libpq import PgError
from queenbee.store.engines.postgres.postgres_write import PostgresWrite
from queenbee.store.files import START, Chunk, Mark
from queenbee.store.ledger.journal import Journal
from queenbee.store.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from queenbee.store.engines.engine import Write
    from queenbee.store.engines.fault import Fault
    from queenbee.store.files import Stamp
    from queenbee.store.layout import Layout
    from queenbee.store.ledger.batch import Position
    from queenbee.store.questions import Progress, Records

    Found = TypeVar("Found")

ISSUES = "issues"
"""Every answer brings what is new of these, so that readers of the tracker ask nothing more."""
_LOOK_S = 0.025
"""Between two looks at local files while waiting. The database announces its writes."""
_TRIES = 5
"""How often a copy is read that others discard meanwhile."""
_ASK_S = 0.5
"""How long to rely on announcements: a connection that was lost brings none."""


class _OfThread(threading.local):
    """What holds for one thread."""

    asks = True
    """False while it waits, and nothing was announced."""
    read: set[str] | None = None
    """Within `reading`: the kinds that were asked for."""
    expected: tuple[str, ...] = ()
    """Within `reading`: the kinds to ask for with the first one."""


class CopiedJournal(Journal):
    """The lines of one kind, in the copy on this machine: a mark is an offset with a digest."""

    def __init__(self, engine: PostgresEngine, kind: str, path: str) -> None:
        super().__init__(path)
        self._engine = engine
        self._kind = kind

    def read(self, since: Mark, *, limit: int | None = None) -> Chunk:
        return self._engine.read(self._kind, since, limit)

    def arrived_after(self, line: bytes) -> list[bytes]:
        return self._engine.copy.after(self._kind, line)


class CopiedLedger(Ledger):
    """One kind of record in the database, read through the copy on this machine."""

    def __init__(self, engine: PostgresEngine, kind: str) -> None:
        # Paths that nothing is ever written to: there is no tracked file, and one copy for all.
        super().__init__(
            os.path.join(engine.folder, "tracked", f"{kind}.jsonl"),
            os.path.join(engine.folder, f"{kind}.jsonl"),
        )
        self.journal = CopiedJournal(engine, kind, self.journal_path)
        self._engine = engine
        self._kind = kind

    def stamp(self) -> tuple[object, ...]:
        """Catches up with the database, and returns a value that changes with the lines."""
        self._engine.catch_up(self._kind)
        return (self._engine.end(self._kind),)

    def stamps(self) -> tuple[Stamp, Stamp]:
        end = self._engine.end(self._kind)
        return (), (1, end.size, sum_of(end.digest))

    def size_bytes(self) -> int:
        return self._engine.end(self._kind).size

    def chunks(self, since: Position, *, limit: int | None = None) -> tuple[Chunk, Chunk]:
        none = Chunk(b"", b"", START, restarted=False)
        return none, self.journal.read(since.journal, limit=limit)

    def missing(self) -> list[bytes]:
        """Returns nothing: what is in the database is not kept in tracked files."""
        return []

    def foreign(self, *, unrecorded: bool) -> str:
        """Returns how often lines were carried over from files: other grants never collide."""
        return str(self._engine.carried or "")


class PostgresEngine:
    """Implements `store.engines.engine.Engine`. It connects when it is first asked."""

    name = "postgres"
    archives = False
    shared = True

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.hive = layout.settings.engine_hive
        self.patience_s = 10.0
        self.folder = os.path.join(layout.state_dir, "postgres")
        self.carried = 0
        self.mutex = threading.RLock()
        self.connection: Connection | None = None
        self.fresh: set[str] | None = None
        """While a turn is open: the kinds that were read in it. Nobody else writes meanwhile."""
        self.noted: Stamp = ()
        """The stamp of the note that the hive is in a database, when it was last read."""
        self._listening: Connection | None = None
        self._told = 0
        self._thread = _OfThread()
        self._clock: tuple[int, int] | None = None
        self.copy = Copy(self.folder, layout.settings.lock_timeout_s)
        self._ends: dict[str, End] = {}
        """Where each kind ends, as the database said last."""
        self._ledgers: dict[str, CopiedLedger] = {}
        self.ledger(ISSUES)

    def ledger(self, kind: str) -> CopiedLedger:
        return self._ledgers.setdefault(kind, CopiedLedger(self, kind))

    @property
    def moment(self) -> object | None:
        return self.fresh

    def opened_kinds(self) -> list[str]:
        """Returns the kinds that were read so far: a turn brings them up to date at once."""
        return list(self._ledgers)

    def end(self, kind: str) -> End:
        """Returns where a kind ends, as the database said last; before, where the copy does."""
        return self._ends.get(kind) or self.copy.end(kind)

    def records(self, kind: str, progress: Progress | None) -> Records:
        ledger = self.ledger(kind)
        self.catch_up(kind)  # Its size decides whether it gets an index.
        return open_records(kind, ledger, self.index_path(kind), progress=progress)

    def kinds(self) -> list[str]:
        return self.asked(lambda connection: connection.kinds())

    def index_path(self, kind: str) -> str:
        return os.path.join(self.folder, f"{kind}.sqlite3")

    def writing(self, holder: str) -> Write:
        return PostgresWrite(self, holder)

    def now_ms(self) -> int:
        if self._clock is None:
            try:
                self.asked(lambda connection: self.take(connection.ask({})))
            except QueenError:
                return time.time_ns() // 1_000_000  # To show an age; a turn asks again.
        assert self._clock is not None
        then_ms, at_ns = self._clock
        return then_ms + (time.monotonic_ns() - at_ns) // 1_000_000

    def present_ms(self, now_ms: int) -> int:
        return now_ms

    def faults(self) -> list[Fault]:
        return list(health.found(self.layout.settings.database, self.asked, self.copy))

    def repair(self) -> None:
        for kind in self.kinds():
            if not self.copy.is_whole(kind):
                self.copy.discard(kind)

    def close(self) -> None:
        with self.mutex:
            self.drop()
            self.copy.close()
            listening, self._listening = self._listening, None
            if listening is not None:
                listening.close()

    # Reading.

    @contextmanager
    def reading(self, *kinds: str) -> Iterator[None]:
        thread = self._thread
        if thread.read is not None:
            yield
            return
        thread.read, thread.expected = set(), kinds
        try:
            yield
        finally:
            thread.read, thread.expected = None, ()

    def read_anew(self) -> None:
        """Lets this thread ask again for what it has read in `reading`."""
        if self._thread.read is not None:
            self._thread.read.clear()

    def catch_up(self, kind: str) -> None:
        """Brings the copy of a kind up to date: one round trip, unless there is much to read."""
        if not self._thread.asks:
            return
        with self.mutex:
            # Nobody else writes in a turn; a reading is of one moment.
            done = self._thread.read if self.fresh is None else self.fresh
            if done is not None and kind in done:
                return
            expected = self._thread.expected if self.fresh is None else ()
            opened = self._ledgers if expected else ()
            kinds = {kind, ISSUES, *expected, *opened}.difference(done or ())
            while self._ask_for(kinds):
                pass
            if done is not None:
                done.update(kinds)

    def _ask_for(self, kinds: set[str]) -> bool:
        """Asks for what came after the copy of these kinds; returns whether to ask again."""
        known = {kind: self.copy.end(kind) for kind in sorted(kinds)}
        after = {kind: end.sequence for kind, end in known.items()}
        return self.take(self.asked(lambda connection: connection.ask(after)), known)

    def read(self, kind: str, since: Mark, limit: int | None = None) -> Chunk:
        """Returns lines of the copy, as the database agreed with it last. Raises `Busy` if others
        exchange it again and again.
        """
        for _ in range(_TRIES):
            found = self.copy.read(kind, (since.offset, since.sum), self.end(kind), limit)
            if found is not None:
                lines, end, restarted = found
                mark = Mark(1, end.size, sum_of(end.digest)) if end.size else START
                return Chunk(b"".join([line + b"\n" for line in lines]), b"", mark, restarted)
            self._catch_up_again(kind)
        raise Busy(
            f"{self.copy.path} is changed by another process again and again",
            hint="do all processes use the same database? See: queen hive engine status",
            path=self.copy.path,
        )

    def _catch_up_again(self, kind: str) -> None:
        """Brings a copy up to date that was exchanged since. Raises `Busy` if somebody wrote to the
        database within a turn: what was decided in it no longer holds.
        """
        with self.mutex:
            in_turn = self.fresh is not None and kind in self.fresh
            before = self._ends.get(kind)
            for done in (self._thread.read, self.fresh):
                if done is not None:
                    done.discard(kind)
            self.catch_up(kind)
            if in_turn and self._ends.get(kind) != before:
                raise faults.overtaken()

    def end_in_turn(self, kind: str) -> End:
        """Returns where a kind ends in the open turn."""
        self.ledger(kind)
        self.catch_up(kind)
        return self._ends[kind]

    def take(self, answer: Answer, known: Mapping[str, End] | None = None) -> bool:
        """Writes an answer to the copy; returns whether to ask again, because it was not all or
        because the copy did not match the database and was discarded.
        """
        self._clock = (answer.now_ms, time.monotonic_ns())
        self.carried = answer.carried
        again = False
        for kind, after in (known or {}).items():
            rows = answer.rows[kind]
            again = again or len(rows) == AT_ONCE
            if after.sequence:
                # The first is the line that is known, without its text.
                known_end = after.sequence, after.digest
                if not rows or (rows[0].sequence, rows[0].digest) != known_end:
                    self.copy.discard(kind)
                    again = True
                    continue
                rows = rows[1:]
            self._ends[kind] = _followed(kind, rows, after)
            if rows and not self.copy.take(kind, rows, after):
                again = True
        return again

    def open_connection(self, name: str = "") -> Connection:
        """Connects. Raises `Unreachable` and `StoreError`."""
        conninfo = self.layout.settings.database
        if not conninfo:
            raise faults.no_address("the hive is in PostgreSQL, and nothing says where that is")
        try:
            return Connection(
                conninfo,
                self.hive,
                name=name,
                patience_s=self.patience_s,
                durable=self.layout.settings.durability == "synced",
            )
        except PgError as error:
            raise faults.refusal(error) from error

    def drop(self) -> None:
        """Closes the connection that reads and turns use."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def asked(self, ask: Callable[[Connection], Found]) -> Found:
        """Returns what a question brings. A connection that was lost since the last one is opened
        again, once; not within a turn, which is lost with it.
        """
        with self.mutex:
            for last in (False, True):
                reused = self.connection is not None
                if self.connection is None:
                    self.connection = self.open_connection()
                try:
                    return ask(self.connection)
                except PgError as error:
                    lost = faults.is_lost(error)
                    if lost and self.fresh is None:
                        self.drop()
                    if self.fresh is not None:
                        raise faults.refused_write(error) from error
                    if not lost or last or not reused:
                        raise faults.refusal(error) from error
        raise AssertionError

    # Waiting.

    def wait(
        self,
        stamp: Callable[[], object],
        before: object,
        deadline_s: float,
    ) -> bool:
        """As `Engine.wait`. A database that cannot be reached counts as one without a change."""
        asked_s, told = float("-inf"), -1
        try:
            while True:
                now_s = time.monotonic()
                asks = self._told != told or now_s - asked_s >= _ASK_S
                if asks:
                    asked_s, told = now_s, self._told
                self._thread.asks = asks
                if asks:
                    self.read_anew()
                with suppress(Unreachable):
                    if stamp() != before:
                        return True
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    return False
                self._listen(min(left_s, _LOOK_S))
        finally:
            self._thread.asks = True
            self.read_anew()

    def _listen(self, timeout_s: float) -> None:
        """Waits for an announcement, for so long at most."""
        connection = self._listening
        try:
            if connection is None:
                connection = self._listening = self.open_connection("waiting")
                connection.listen()
                self._told += 1  # Something may have been written before we listened.
                return
            if connection.was_told(timeout_s):
                self._told += 1
        except (QueenError, PgError, OSError, ValueError):
            self._listening = None
            if connection is not None:
                connection.close()
            time.sleep(min(timeout_s, _LOOK_S))


def _followed(kind: str, rows: Sequence[Row], after: End) -> End:
    """Returns where rows end that follow. Raises `StoreError` if one does not match its digest."""
    for row in rows:
        if (row.sequence, row.digest) != (after.sequence + 1, chained(after.digest, row.line)):
            raise faults.damaged(kind, row.sequence)
        after = after.after(row)
    return after
