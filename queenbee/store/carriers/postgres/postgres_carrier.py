"""PostgreSQL as the carrier of a hive: one connection that reads and turns of a process share.

If the connection is lost in a commit, the database is asked for the digest of the first line, under
the same lock, so that a commit still on its way has ended by then. ADR 0030.
"""

from __future__ import annotations

import os
import time
from _thread import RLock
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

import psycopg

from queenbee.errors import QueenError
from queenbee.store.carriers.postgres import faults, health
from queenbee.store.carriers.postgres.agreed import refuse_unagreed
from queenbee.store.carriers.postgres.connection import Answer, Connection, numbered
from queenbee.store.carriers.postgres.left_in_files import left, refuse_left_in_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from queenbee.store.carriers.carrier import Carrier, Fault, Lines
    from queenbee.store.carriers.postgres.connection import Ends, Rows
    from queenbee.store.layout import Layout

    Found = TypeVar("Found")

_RETRY_S = 0.2
_TURN_BYTES = 16
_LEAST_SEARCH_S = 15.0
"""How long to ask for the outcome of a write at least: a server restarts within seconds."""


class PostgresCarrier:
    """Connects when it is first asked. Safe for threads. Raises `Unreachable` and `StoreError`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._settings = layout.settings
        self.hive: str = layout.settings.engine_hive
        self.patience_s: float = 10.0
        """How long another machine has to answer."""
        self.mutex: RLock = RLock()
        self.connection: Connection | None = None
        self.turn: set[str] | None = None
        """While a turn is open: the kinds that were read in it. Nobody else writes meanwhile."""
        self._holder = ""
        self._clock: tuple[int, int] | None = None
        """The database's clock when it answered last, and ours of that moment, in ns."""
        self._listening: Connection | None = None
        self._told = 0

    # Lines after those that are known.

    def after(self, position: Ends) -> Answer:
        """Returns what came after these ends, of each kind: one round trip."""
        return self._clocked(self.asked(lambda connection: connection.ask(position)))

    def asked(self, ask: Callable[[Connection], Found]) -> Found:
        """Returns what a question brings. A connection that was lost since the last one is opened
        again, once; not within a turn, which is lost with it.
        """
        with self.mutex:
            while True:
                reused = self.connection is not None
                if self.connection is None:
                    self.connection = self._opened()
                try:
                    return ask(self.connection)
                except psycopg.Error as error:
                    if self.turn is not None:
                        raise faults.nothing_written(faults.refusal(error)) from error
                    if faults.is_lost(error):
                        self._hang_up()
                        if reused:
                            continue
                    raise faults.refusal(error) from error

    # One turn: what came, and lines after that.

    def begin(self, position: Ends, holder: str) -> Answer:
        """Begins a turn, and returns what came after these ends: nobody else writes to the hive
        until `add` or `end`. On a new connection, if the old one was lost in the meantime.
        """
        while True:
            reused = self.connection is not None
            try:
                if self.connection is None:
                    self.connection = self._opened(holder)
                answer = self.connection.begin(position, self._settings.lock_timeout_s)
                self.turn, self._holder = set(position), holder
                return self._clocked(answer)
            except psycopg.Error as error:
                self._hang_up()  # It may hold the lock, or wait for it.
                if not (faults.is_lost(error) and reused):
                    raise faults.refusal(error) from error
            except BaseException:
                self._hang_up()
                raise

    def add(self, lines: Lines, position: Ends) -> Rows:
        """Records lines in the turn that has begun, after these ends, and ends it; returns them as
        the database has them. Raises `OutcomeUnknown` if it does not say in time whether it did.
        """
        rows = {kind: numbered(position[kind], each) for kind, each in lines.items() if each}
        turn = os.urandom(_TURN_BYTES)
        with self.mutex:
            connection = self.connection
            assert connection is not None
            # Once the turn has ended, others write: readers ask again.
            self.turn = None
            try:
                connection.commit({kind: each[1:] for kind, each in rows.items()}, turn)
            except psycopg.Error as error:
                self._hang_up()
                if not self._was_recorded(rows, turn, error):
                    raise faults.nothing_written(faults.refusal(error)) from error
            except BaseException:
                self._hang_up()
                raise
        return rows

    def end(self) -> None:
        """Ends the turn, if `add` has not."""
        with self.mutex:
            if self.turn is not None and self.connection is not None:
                try:
                    self.connection.roll_back()
                except psycopg.Error:
                    self._hang_up()
            self.turn = None

    def _was_recorded(self, rows: Rows, turn: bytes, error: psycopg.Error) -> bool:
        """Returns whether the server recorded a turn before the connection was lost."""
        kind, [_, first, *_] = next(iter(rows.items()))
        search_s = max(self._settings.lock_timeout_s, _LEAST_SEARCH_S)
        deadline_s = time.monotonic() + search_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            with (
                suppress(QueenError, psycopg.Error),
                closing(self._opened(self._holder)) as connection,
            ):
                return connection.is_recorded(kind, first.end, turn, left_s)
            time.sleep(_RETRY_S)
        raise faults.unknown_outcome(faults.first_line(error), search_s) from error

    # News.

    def news(self, timeout_s: float) -> int:
        """Returns how many writes were announced so far, after it waited so long at most for one.
        Never fails: without a connection, it waits.
        """
        try:
            if self._listening is None:
                self._listening = self._opened("waiting")
                self._listening.listen()
                self._told += 1  # Something may have been written before we listened.
            elif self._listening.was_told(timeout_s):
                self._told += 1
        except (QueenError, psycopg.Error):
            self._listen_no_more()
            time.sleep(timeout_s)
        return self._told

    def _listen_no_more(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.close()

    # The rest.

    def now_ms(self) -> int:
        """Returns the present by the database's clock, in ms since 1970."""
        if self._clock is None:
            try:
                self.after({})
            except QueenError:
                return time.time_ns() // 1_000_000  # To show an age; a turn asks again.
        assert self._clock is not None
        then_ms, at_ns = self._clock
        return then_ms + (time.monotonic_ns() - at_ns) // 1_000_000

    def _clocked(self, answer: Answer) -> Answer:
        self._clock = (answer.now_ms, time.monotonic_ns())
        return answer

    def faults(self) -> list[Fault]:
        """Returns what is wrong with the server, and what only the files here have. Never raises
        for that.
        """
        found = [*health.found(self._settings.database, self.asked)]
        if not any(each.severity == "error" for each in found):
            with suppress(QueenError):
                found += self.asked(lambda connection: left(self._layout, connection))
        return found

    def _opened(self, name: str = "") -> Connection:
        settings = self._settings
        if not settings.database:
            raise faults.no_address("the hive is in PostgreSQL, and nothing says where that is")
        refuse_unagreed(self._layout, self.hive)
        with ExitStack() as undo:
            try:
                opened = Connection(
                    settings.database,
                    self.hive,
                    name=name,
                    patience_s=self.patience_s,
                    durable=settings.durability == "synced",
                )
                undo.callback(opened.close)
                refuse_left_in_files(self._layout, opened)
            except psycopg.Error as error:
                raise faults.refusal(error) from error
            undo.pop_all()
        return opened

    def _hang_up(self) -> None:
        """Closes the connection; the next question opens another one."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Closes what is open; the next question opens it again."""
        with self.mutex:
            self._hang_up()
            self._listen_no_more()


if TYPE_CHECKING:
    _: type[Carrier[Ends, Answer, Rows]] = PostgresCarrier
