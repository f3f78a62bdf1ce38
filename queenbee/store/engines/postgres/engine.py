"""The engine over PostgreSQL: a turn is a transaction, and reads go through this machine's cache.

What was recorded is known by digest: each line's digest covers all lines of its kind before it. A
cache that does not match the database is fetched anew, so that a server restored from a backup
does not leave two truths. ADR 0030.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib import import_module

from queenbee.errors import Busy, QueenError, Unreachable
from queenbee.store.engines.opening import open_records
from queenbee.store.engines.postgres import faults, health
from queenbee.store.engines.postgres.cache import Cache
from queenbee.store.engines.postgres.connection import AT_ONCE, Answer, Connection
from queenbee.store.engines.postgres.late import psycopg
from queenbee.store.engines.postgres.schema import chained
from queenbee.store.engines.postgres.turn import PostgresTurn
from queenbee.store.files import START, Chunk, stamp_of
from queenbee.store.ledger.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from queenbee.store.engines.engine import Turn
    from queenbee.store.engines.fault import Fault
    from queenbee.store.files import Stamp
    from queenbee.store.layout import Layout
    from queenbee.store.ledger.batch import Position
    from queenbee.store.records import Progress, Records

    Found = TypeVar("Found")

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


class CachedLedger(Ledger):
    """One kind of record in the database, read through the cache."""

    def __init__(self, engine: PostgresEngine, kind: str, cache: Cache, tracked_path: str) -> None:
        super().__init__(tracked_path, cache.path)
        self.journal = cache.journal
        self._engine = engine
        self._kind = kind
        self._stamped: tuple[set[str], tuple[object, ...]] | None = None
        """The turn that the last stamp was taken in, and the stamp."""

    def stamp(self) -> tuple[object, ...]:
        """Catches up with the database, and returns a value that changes with the lines.

        Within a turn they do not change: nobody else writes, and the turn's own come at its end.
        """
        turn, stamped = self._engine.fresh, self._stamped
        if turn is not None and stamped is not None and stamped[0] is turn and self._kind in turn:
            return stamped[1]
        self._engine.catch_up(self._kind)
        stamp = super().stamp()
        self._stamped = (turn, stamp) if turn is not None else None
        return stamp

    def stamps(self) -> tuple[Stamp, Stamp]:
        return (), self._engine.agreed(self._kind, lambda: stamp_of(self.journal_path))

    def chunks(self, since: Position, *, limit: int | None = None) -> tuple[Chunk, Chunk]:
        chunk = self._engine.agreed(
            self._kind, lambda: self.journal.read(since.journal, limit=limit)
        )
        return Chunk(b"", b"", START, restarted=False), chunk

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
        self._ends: dict[str, tuple[int, bytes]] = {}
        """The last sequence number of each kind that the database said, and its digest."""
        self._caches: dict[str, Cache] = {}
        self._ledgers: dict[str, CachedLedger] = {}
        self._records: dict[str, Records] = {}

    def ledger(self, kind: str) -> CachedLedger:
        ledger = self._ledgers.get(kind)
        if ledger is None:
            # A path that nothing is ever written to: there is no tracked file.
            tracked = os.path.join(self.folder, "tracked", f"{kind}.jsonl")
            ledger = CachedLedger(self, kind, self.cache(kind), tracked)
            self._ledgers[kind] = ledger
        return ledger

    @property
    def moment(self) -> object | None:
        return self.fresh

    def opened_kinds(self) -> list[str]:
        """Returns the kinds that were read so far: a turn brings them up to date at once."""
        return list(self._ledgers)

    def cache(self, kind: str) -> Cache:
        """Returns the cache of one kind."""
        if kind not in self._caches:
            timeout_s = self.layout.settings.lock_timeout_s
            self._caches[kind] = Cache(self.folder, kind, timeout_s)
        return self._caches[kind]

    def records(self, kind: str, progress: Progress | None) -> Records:
        ledger = self.ledger(kind)
        self.catch_up(kind)  # Its size decides whether it gets an index.
        found = open_records(kind, ledger, self.index_path(kind), progress=progress)
        self._records[kind] = found
        return found

    def kinds(self) -> list[str]:
        return self.asked(lambda connection: connection.kinds())

    def index_path(self, kind: str) -> str:
        return os.path.join(self.folder, f"{kind}.sqlite3")

    def turn(self, holder: str) -> Turn:
        return PostgresTurn(self, holder)

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
        return list(health.found(self))

    def repair(self) -> None:
        for kind in self.kinds():
            if not self.cache(kind).is_whole():
                self.cache(kind).discard()

    def close(self) -> None:
        with self.mutex:
            self.drop()
            self._records.clear()
            for cache in self._caches.values():
                cache.close()
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

    def lighten(self, kinds: Iterable[str]) -> None:
        """Lets states of these kinds move to memory, after a turn that wrote them."""
        for kind in kinds:
            state = self._records.get(kind)
            if state is not None:
                with suppress(QueenError, OSError):
                    state.lighten()

    def read_anew(self) -> None:
        """Lets this thread ask again for what it has read in `reading`."""
        if self._thread.read is not None:
            self._thread.read.clear()

    def catch_up(self, kind: str) -> None:
        """Brings the cache of a kind up to date: one round trip, unless there is much to read."""
        if not self._thread.asks:
            return
        with self.mutex:
            # Nobody else writes in a turn; a reading is of one moment.
            done = self._thread.read if self.fresh is None else self.fresh
            if done is not None and kind in done:
                return
            expected = self._thread.expected if self.fresh is None else ()
            opened = self._ledgers if expected else ()
            kinds = {kind, *expected, *opened}.difference(done or ())
            more = True
            while more:
                known = {each: self.cache(each).known() for each in sorted(kinds)}
                after = {each: at.sequence for each, at in known.items()}
                answer = self.asked(lambda connection: connection.ask(after))  # noqa: B023
                more = self.take(answer, {k: (at.sequence, at.digest) for k, at in known.items()})
                if more and self.fresh is None:
                    self._expect_much()
            if done is not None:
                done.update(kinds)

    def is_agreed(self, kind: str) -> bool:
        """Returns whether the cache is the one that the database agreed with when it was asked."""
        return not self._thread.asks or self.cache(kind).is_agreed()

    def agreed(self, kind: str, read: Callable[[], Found]) -> Found:
        """Returns what is read from a cache while it is what the database agreed with. Raises
        `Busy` if others discard it again and again.
        """
        for _ in range(_TRIES):
            found = read()
            if self.is_agreed(kind):
                return found
            self.catch_up_again(kind)
        path = self.cache(kind).path
        raise Busy(
            f"{path} is replaced by another process again and again",
            hint="do all processes use the same database? See: queen engine status",
            path=path,
        )

    def catch_up_again(self, kind: str) -> None:
        """Brings a cache up to date that was replaced since. Raises `Busy` if somebody wrote to the
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

    def end_in_turn(self, kind: str) -> tuple[int, bytes]:
        """Returns the last sequence number of a kind in the open turn, and its digest."""
        self.ledger(kind)
        self.catch_up(kind)
        return self._ends[kind]

    def _expect_much(self) -> None:
        """Goes on by psycopg, which reads many lines in a fifth of the time `libpq` takes."""
        if "psycopg" not in sys.modules:
            import_module("psycopg")
            self.drop()

    def take(self, answer: Answer, known: dict[str, tuple[int, bytes]] | None = None) -> bool:
        """Writes an answer to the caches; returns whether to ask again, because it was not all or
        because a cache did not match the database and was discarded.
        """
        self._clock = (answer.now_ms, time.monotonic_ns())
        self.carried = answer.carried
        again = False
        for kind, (sequence, digest) in (known or {}).items():
            rows = [row for row in answer.rows if row.kind == kind]
            if sequence and (not rows or rows[0].sequence != sequence or rows[0].digest != digest):
                self.cache(kind).discard()
                again = True
                continue
            fresh, after = rows[1:] if sequence else rows, (sequence, digest)
            for row in fresh:
                sequence, digest = sequence + 1, chained(digest, row.line)
                if (row.sequence, row.digest) != (sequence, digest):
                    raise faults.damaged(kind, row.sequence)
            if fresh and not self.cache(kind).take(fresh, after):
                again = True
            self.cache(kind).agree(sequence)
            self._ends[kind] = sequence, digest
            again = again or len(rows) >= AT_ONCE
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
        except psycopg.Error as error:
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
                except psycopg.Error as error:
                    lost = faults.is_lost(error, self.connection.db)
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
        except (QueenError, psycopg.Error, OSError, ValueError):
            self._listening = None
            if connection is not None:
                connection.close()
            time.sleep(min(timeout_s, _LOOK_S))
