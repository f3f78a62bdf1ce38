"""The engine over PostgreSQL: a turn is a transaction, and this clone's memory answers the rest.

ADR 0030.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg

from queenbee.errors import QueenError, Unreachable
from queenbee.store.engines.postgres import health
from queenbee.store.engines.postgres.connection import End
from queenbee.store.engines.postgres.postgres_memory import PostgresMemory
from queenbee.store.engines.postgres.postgres_write import PostgresWrite
from queenbee.store.engines.postgres.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.store.engines.engine import Write
    from queenbee.store.engines.fault import Fault
    from queenbee.store.engines.postgres.connection import Connection
    from queenbee.store.layout import Layout

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
        self._layout = layout
        self.session = Session(layout)
        self.memory = PostgresMemory(layout, self.session)
        self._listening: Connection | None = None
        self._told = 0

    # What is known.

    def stamp(self, kind: str) -> object:
        self.memory.refresh(kind)
        return self.memory.ends.get(kind, End())

    def kinds(self) -> list[str]:
        return self.session.asked(lambda connection: connection.kinds())

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
        return PostgresWrite(self._layout, self.session, self.memory, holder)

    def now_ms(self) -> int:
        if self.session.clock is None:
            try:
                self.session.ask({})
            except QueenError:
                return time.time_ns() // 1_000_000  # To show an age; a turn asks again.
        assert self.session.clock is not None
        then_ms, at_ns = self.session.clock
        return then_ms + (time.monotonic_ns() - at_ns) // 1_000_000

    def present_ms(self, now_ms: int) -> int:
        return now_ms

    def faults(self) -> list[Fault]:
        return list(health.found(self._layout.settings.database, self.session.asked))

    @property
    def patience_s(self) -> float:
        return self.session.patience_s

    @patience_s.setter
    def patience_s(self, seconds: float) -> None:
        self.session.patience_s = seconds

    def close(self) -> None:
        with self.session.mutex:
            self.session.close()
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
                self._listening = self.session.opened("waiting")
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
