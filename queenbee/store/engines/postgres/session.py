"""The connection that reads and turns of one process share: opened when it is first asked."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import psycopg

from queenbee.store.engines.postgres import faults
from queenbee.store.engines.postgres.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from queenbee.store.engines.postgres.connection import Answer
    from queenbee.store.layout import Layout

    Found = TypeVar("Found")


class Session:
    """Safe for threads. Raises `Unreachable` and `StoreError`."""

    def __init__(self, layout: Layout) -> None:
        self.hive = layout.settings.engine_hive
        self.patience_s = 10.0
        self.mutex = threading.RLock()
        self.connection: Connection | None = None
        self.turn: set[str] | None = None
        """While a turn is open: the kinds that were read in it. Nobody else writes meanwhile."""
        self.clock: tuple[int, int] | None = None
        """The database's clock when it answered last, and ours of that moment, in ns."""
        self._settings = layout.settings

    def ask(self, known: Mapping[str, int]) -> Answer:
        """Returns what came after these lines, by their numbers."""
        return self.clocked(self.asked(lambda connection: connection.ask(known)))

    def clocked(self, answer: Answer) -> Answer:
        """Sets the clock by an answer, and returns that."""
        self.clock = (answer.now_ms, time.monotonic_ns())
        return answer

    def asked(self, ask: Callable[[Connection], Found]) -> Found:
        """Returns what a question brings. A connection that was lost since the last one is opened
        again, once; not within a turn, which is lost with it.
        """
        with self.mutex:
            while True:
                reused = self.connection is not None
                if self.connection is None:
                    self.connection = self.opened()
                try:
                    return ask(self.connection)
                except psycopg.Error as error:
                    if self.turn is not None:
                        raise faults.refused_write(error) from error
                    lost = faults.is_lost(error)
                    if lost:
                        self.close()
                    if not (lost and reused):
                        raise faults.refusal(error) from error

    def opened(self, name: str = "") -> Connection:
        """Returns another connection."""
        settings = self._settings
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

    def close(self) -> None:
        """Closes the connection; the next question opens another one."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()
