"""The engine over PostgreSQL: a turn is a transaction, and this clone's memory answers the rest.

ADR 0030.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg

from queenbee.errors import QueenError, Unreachable
from queenbee.store.engines.postgres import faults, health
from queenbee.store.engines.postgres.connection import Connection, End
from queenbee.store.engines.postgres.postgres_memory import PostgresMemory
from queenbee.store.engines.postgres.postgres_write import PostgresWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeVar

    from queenbee.store.engines.engine import Write
    from queenbee.store.engines.fault import Fault
    from queenbee.store.engines.postgres.connection import Answer
    from queenbee.store.layout import Layout

    Found = TypeVar("Found")

_LOOK_S = 0.025
"""Between two looks at local files while waiting. The database announces its writes."""
_ASK_S = 0.5
"""How long to rely on announcements: a connection that was lost brings none."""


class PostgresEngine:
    """Implements `store.engines.engine.Engine`. It connects when it is first asked."""

    name = "postgres"
    shared = True
    ledgers = None

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.hive = layout.settings.engine_hive
        self.patience_s = 10.0
        self.connection: Connection | None = None
        self._listening: Connection | None = None
        self._told = 0
        self._clock: tuple[int, int] | None = None
        self.memory = PostgresMemory(layout, self._ask)

    # What is known.

    def stamp(self, kind: str) -> object:
        self.memory.refresh(kind)
        return self.memory.ends.get(kind, End())

    def kinds(self) -> list[str]:
        return self.asked(lambda connection: connection.kinds())

    def has_lines(self, kind: str) -> bool:
        return self.memory.known(kind)[kind] != End()

    def lacking(self, kind: str) -> list[bytes]:
        """Returns nothing: what is in the database is not kept in tracked files."""
        return []

    @contextmanager
    def reading(self) -> Iterator[None]:
        thread = self.memory.thread
        if thread.read is not None:
            yield
            return
        thread.read = set()
        try:
            yield
        finally:
            thread.read = None

    def writing(self, holder: str) -> Write:
        return PostgresWrite(self, holder)

    def now_ms(self) -> int:
        if self._clock is None:
            try:
                self._ask({})
            except QueenError:
                return time.time_ns() // 1_000_000  # To show an age; a turn asks again.
        assert self._clock is not None
        then_ms, at_ns = self._clock
        return then_ms + (time.monotonic_ns() - at_ns) // 1_000_000

    def present_ms(self, now_ms: int) -> int:
        return now_ms

    def faults(self) -> list[Fault]:
        return list(health.found(self.layout.settings.database, self.asked))

    # The connection.

    def asked(self, ask: Callable[[Connection], Found]) -> Found:
        """Returns what a question brings. A connection that was lost since the last one is opened
        again, once; not within a turn, which is lost with it.
        """
        with self.memory.mutex:
            in_turn = self.memory.turn is not None
            while True:
                reused = self.connection is not None
                if self.connection is None:
                    self.connection = self.open_connection()
                try:
                    return ask(self.connection)
                except psycopg.Error as error:
                    if in_turn:
                        raise faults.refused_write(error) from error
                    lost = faults.is_lost(error)
                    if lost:
                        self.drop()
                    if not (lost and reused):
                        raise faults.refusal(error) from error

    def _ask(self, known: Mapping[str, int]) -> Answer:
        return self.clocked(self.asked(lambda connection: connection.ask(known)))

    def clocked(self, answer: Answer) -> Answer:
        """Sets the clock by an answer, and returns that."""
        self._clock = (answer.now_ms, time.monotonic_ns())
        return answer

    def open_connection(self, name: str = "") -> Connection:
        """Connects. Raises `Unreachable` and `StoreError`."""
        settings = self.layout.settings
        if not settings.database:
            raise faults.no_address("the hive is in PostgreSQL, and nothing says where that is")
        try:
            return Connection(
                settings.database,
                self.hive,
                name=name,
                patience_s=self.patience_s,
                durable=settings.durability == "synced",
            )
        except psycopg.Error as error:
            raise faults.refusal(error) from error

    def drop(self) -> None:
        """Closes the connection that reads and turns use."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        with self.memory.mutex:
            self.drop()
            self._listen_no_more()
            self.memory.close()

    # Waiting.

    def wait(self, stamp: Callable[[], object], before: object, deadline_s: float) -> bool:
        """As `Engine.wait`. A database that cannot be reached counts as one without a change."""
        thread = self.memory.thread
        asked_s, told = float("-inf"), -1
        try:
            with self.reading():
                while True:
                    now_s = time.monotonic()
                    thread.asks = self._told != told or now_s - asked_s >= _ASK_S
                    if thread.asks:
                        asked_s, told = now_s, self._told
                        self.memory.read_anew()
                    with suppress(Unreachable):
                        if stamp() != before:
                            return True
                    left_s = deadline_s - time.monotonic()
                    if left_s <= 0:
                        return False
                    self._listen(min(left_s, _LOOK_S))
        finally:
            thread.asks = True
            self.memory.read_anew()

    def _listen(self, timeout_s: float) -> None:
        """Waits for an announcement, for so long at most."""
        try:
            if self._listening is None:
                self._listening = self.open_connection("waiting")
                self._listening.listen()
                self._told += 1  # Something may have been written before we listened.
            elif self._listening.was_told(timeout_s):
                self._told += 1
        except (QueenError, psycopg.Error):
            self._listen_no_more()
            time.sleep(timeout_s)

    def _listen_no_more(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.close()
