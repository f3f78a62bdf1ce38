"""One turn at writing to the database: one transaction under the hive's advisory lock.

If the connection is lost in the commit, the database is asked for the digest of the first line,
under the same lock, so that a commit still on its way has ended by then.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import psycopg

from queenbee.errors import Busy, OutcomeUnknown, QueenError
from queenbee.store import creating
from queenbee.store.engines.files_write import add_hint
from queenbee.store.engines.postgres import faults
from queenbee.store.engines.postgres.connection import Row
from queenbee.store.engines.postgres.ddl import chained
from queenbee.store.engines.postgres.postgres_memory import ISSUES, numbers
from queenbee.store.layout import note_engine, noted_hive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.engines.engine import Lines
    from queenbee.store.engines.postgres.connection import Answer, Rows
    from queenbee.store.engines.postgres.postgres_memory import Ends, PostgresMemory
    from queenbee.store.engines.postgres.session import Session
    from queenbee.store.layout import Layout

_RETRY_S = 0.2
_TURN_BYTES = 16
_LEAST_SEARCH_S = 15.0
"""How long to ask for the outcome of a write at least: a server restarts within seconds."""


class PostgresWrite:
    """Implements `store.engines.engine.Write`."""

    def __init__(
        self, layout: Layout, session: Session, memory: PostgresMemory, holder: str
    ) -> None:
        self._layout = layout
        self._session = session
        self._memory = memory
        self._holder = holder
        self._timeout_s = layout.settings.lock_timeout_s
        self._process = os.getpid()
        self._is_open = False
        self._births = set[tuple[object, ...]]()

    def begin(self) -> None:
        memory = self._memory
        try:
            self._prepare()
        except BaseException as error:
            add_hint(error, self._layout)
            raise
        with self._session.mutex:
            answer, known = self._begun()
            self._is_open = True
            try:
                self._session.turn = set(known)
                memory.take(self._session.clocked(answer), known)
                self._births = memory.births()
            except BaseException:
                self.end()
                raise

    def _prepare(self) -> None:
        """Makes the state's folders, and the note that the hive is in a database."""
        layout, hive = self._layout, self._session.hive
        layout.refuse_if_moved()
        if noted_hive(layout) != hive:
            creating.make_state_dir(layout)
            note_engine(layout, hive)

    def _begun(self) -> tuple[Answer, Ends]:
        """Begins the transaction; on a new connection if the old one was lost in the meantime."""
        session, memory = self._session, self._memory
        while True:
            reused = session.connection is not None
            try:
                known = memory.known()
                if not any(end.sequence for end in known.values()):
                    memory.refresh(ISSUES)  # What may take long keeps nobody waiting.
                    known = memory.known()
                if session.connection is None:
                    session.connection = session.opened(self._holder)
                return session.connection.begin(numbers(known), self._timeout_s), known
            except psycopg.Error as error:
                session.close()  # It may hold the lock, or wait for it.
                if not (faults.is_lost(error) and reused):
                    raise faults.refused_write(error) from error
            except QueenError as error:
                session.close()
                raise faults.refused_write(error) from error.__cause__
            except BaseException:
                session.close()
                raise

    def record(self, lines: Lines) -> None:
        if self._process != os.getpid():
            raise Busy(
                "this process was forked during a write, which is its parent's",
                hint="try again; nothing was written",
            )
        added = {kind: self._numbered(kind, each) for kind, each in lines.items() if each}
        try:
            if added and not self._births <= self._memory.births():
                raise faults.overtaken()  # What was read in this turn may be another database's.
            if added:
                self._commit(added)
        except OutcomeUnknown:
            raise
        except BaseException as error:
            add_hint(error, self._layout)
            raise

    def end(self) -> None:
        if self._process != os.getpid():
            return
        session = self._session
        with self._session.mutex:
            if self._is_open:
                self._is_open, session.turn = False, None
                try:
                    if session.connection is not None:
                        session.connection.roll_back()
                except psycopg.Error:
                    session.close()

    def settle(self) -> None:
        self._memory.database.shorten_log()

    def _numbered(self, kind: str, lines: Sequence[bytes]) -> list[Row]:
        """Returns the lines with the sequence numbers and digests that they get, after the line
        that they follow.
        """
        self._memory.refresh(kind)
        # As the database said it in this turn, whatever became of the memory since.
        rows = [Row(*self._memory.ends[kind], b"")]
        for line in lines:
            sequence, digest, _ = rows[-1]
            rows.append(Row(sequence + 1, chained(digest, line), line))
        return rows

    def _commit(self, added: Rows) -> None:
        session = self._session
        turn = os.urandom(_TURN_BYTES)
        with self._session.mutex:
            connection = session.connection
            assert connection is not None
            # Once the turn has ended, others write: readers ask again.
            self._is_open, session.turn = False, None
            try:
                connection.commit({kind: rows[1:] for kind, rows in added.items()}, turn)
            except psycopg.Error as error:
                session.close()
                if not self._was_recorded(added, turn, error):
                    raise faults.refused_write(error) from error
            except BaseException:
                session.close()
                raise
            try:
                self._memory.take_own(added)
            except QueenError:  # It is recorded: whoever asks takes it in.
                self._memory.read_anew()

    def _was_recorded(self, added: Rows, turn: bytes, error: psycopg.Error) -> bool:
        """Returns whether the server recorded a turn before the connection was lost.

        Raises `OutcomeUnknown` if it does not answer in time.
        """
        kind, rows = next(iter(added.items()))
        search_s = max(self._timeout_s, _LEAST_SEARCH_S)
        deadline_s = time.monotonic() + search_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            with (
                suppress(QueenError, psycopg.Error),
                closing(self._session.opened(self._holder)) as connection,
            ):
                return connection.is_recorded(kind, rows[1].end, turn, left_s)
            time.sleep(_RETRY_S)
        raise faults.unknown_outcome(faults.first_line(error), search_s) from error
