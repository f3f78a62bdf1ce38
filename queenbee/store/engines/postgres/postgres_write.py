"""One turn at writing to the database: one transaction under the hive's advisory lock.

If the connection is lost in the commit, the database is asked for the digest of the first line,
under the same lock, so that a commit still on its way has ended by then.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import Busy, OutcomeUnknown, QueenError
from queenbee.store import creating
from queenbee.store.engines.files_write import add_hint
from queenbee.store.engines.postgres import faults
from queenbee.store.engines.postgres.connection import Row
from queenbee.store.engines.postgres.ddl import chained
from queenbee.store.engines.postgres.libpq import PgError
from queenbee.store.files import stamp_of
from queenbee.store.layout import note_engine, noted_hive
from queenbee.store.lock import KernelLock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import RLock
    from typing import Protocol

    from queenbee.store.engines.engine import Lines, Rows
    from queenbee.store.engines.postgres.connection import Answer, Connection
    from queenbee.store.engines.postgres.copy import Copy, End
    from queenbee.store.files import Stamp
    from queenbee.store.issues_write import Replaced
    from queenbee.store.layout import Layout
    from queenbee.store.questions import Records

    class Opened(Protocol):
        """What a turn needs from the engine that it writes to."""

        layout: Layout
        hive: str
        mutex: RLock
        copy: Copy
        connection: Connection | None
        fresh: set[str] | None
        noted: Stamp

        def opened_kinds(self) -> list[str]: ...
        def end_in_turn(self, kind: str) -> End: ...
        def read_anew(self) -> None: ...
        def take(self, answer: Answer, known: Mapping[str, End]) -> bool: ...
        def open_connection(self, name: str = "") -> Connection: ...
        def drop(self) -> None: ...


_RETRY_S = 0.2
_TURN_BYTES = 16
_LEAST_SEARCH_S = 15.0
"""How long to ask for the outcome of a write at least: a server restarts within seconds."""


class PostgresWrite:
    """Implements `store.engines.engine.Write`."""

    def __init__(self, engine: Opened, holder: str) -> None:
        self._engine = engine
        self._holder = holder
        self._timeout_s = engine.layout.settings.lock_timeout_s
        self._process = os.getpid()
        self._is_open = False
        self._local: KernelLock | None = None
        self._receipts: list[Replaced] = []

    def begin(self) -> None:
        engine = self._engine
        try:
            self._prepare()
        except BaseException as error:
            add_hint(error, engine.layout)
            raise
        with engine.mutex:
            answer, known = self._begun()
            self._is_open = True
            engine.read_anew()  # What is read after the turn has what it wrote.
            try:
                engine.fresh = set()
                if not engine.take(answer, known):
                    engine.fresh = set(known)
            except BaseException:
                self.end()
                raise

    def _prepare(self) -> None:
        """Makes the state's folders, and the note that the hive is in a database."""
        engine = self._engine
        engine.layout.refuse_if_moved()
        stamp = stamp_of(engine.layout.engine_path)
        if stamp and stamp == engine.noted:
            return  # It was right when this process last read it, and so its folder is there.
        creating.make_state_dir(engine.layout)
        if noted_hive(engine.layout) != engine.hive:
            note_engine(engine.layout, engine.hive)
            stamp = stamp_of(engine.layout.engine_path)
        engine.noted = stamp

    def _begun(self) -> tuple[Answer, Mapping[str, End]]:
        """Begins the transaction; on a new connection if the old one was lost in the meantime."""
        engine = self._engine
        while True:
            reused = engine.connection is not None
            try:
                connection = engine.connection or engine.open_connection(self._holder)
            except QueenError as error:
                raise faults.refused_write(error) from error.__cause__
            engine.connection = connection
            known = {kind: engine.copy.end(kind) for kind in engine.opened_kinds()}
            asked = {kind: end.sequence for kind, end in known.items()}
            try:
                return connection.begin(asked, self._timeout_s), known
            except PgError as error:
                lost = faults.is_lost(error)
                engine.drop()  # It may hold the lock, or wait for it.
                if not lost or not reused:
                    raise faults.refused_write(error) from error
            except QueenError as error:
                engine.drop()
                raise faults.refused_write(error) from None
            except BaseException:
                engine.drop()
                raise

    def record(self, lines: Lines, rows: Rows, state: Callable[[str], Records]) -> None:
        if self._process != os.getpid():
            raise Busy(
                "this process was forked during a write, which is its parent's",
                hint="try again; nothing was written",
            )
        added = [row for kind, each in lines.items() for row in self._numbered(kind, each)]
        try:
            # The issues first: after a crash in between, an assignment is still active and can be
            # ended again. The other way round, an open issue would have no assignment.
            if rows:
                self._record_issues(rows)
            if added:
                self._commit(added)
        except OutcomeUnknown:
            raise  # The lines may be there: then the issues must be.
        except BaseException as error:
            for receipt in self._receipts:
                receipt.take_back()
                receipt.close()
            self._receipts.clear()
            add_hint(error, self._engine.layout)
            raise

    def end(self) -> None:
        if self._process != os.getpid():
            return
        engine = self._engine
        with engine.mutex:
            if self._is_open:
                self._is_open = False
                engine.fresh = None
                if engine.connection is not None:
                    try:
                        engine.connection.roll_back()
                    except PgError:
                        engine.drop()
        if self._local is not None:
            self._local.__exit__(None, None, None)
            self._local = None

    def settle(self) -> None:
        try:
            if self._engine.layout.settings.durability == "synced":
                for receipt in self._receipts:
                    receipt.sync()
        finally:
            for receipt in self._receipts:
                receipt.close()

    def _numbered(self, kind: str, lines: Sequence[bytes]) -> list[Row]:
        """Returns the lines with the sequence numbers and digests that they get."""
        # As the database said it: the copy may have been exchanged since.
        end = self._engine.end_in_turn(kind)
        sequence, digest, rows = end.sequence, end.digest, []
        for line in lines:
            sequence, digest = sequence + 1, chained(digest, line)
            rows.append(Row(kind, sequence, line, digest))
        return rows

    def _record_issues(self, rows: Callable[[], Replaced]) -> None:
        layout = self._engine.layout
        creating.make_beads_dir(layout)
        local = KernelLock(layout.lock_path, holder=self._holder, timeout_s=self._timeout_s)
        local.__enter__()
        self._local = local
        self._receipts.append(rows())

    def _commit(self, added: Sequence[Row]) -> None:
        engine = self._engine
        turn = os.urandom(_TURN_BYTES)
        with engine.mutex:
            connection = engine.connection
            assert connection is not None
            engine.fresh = None  # Once the turn has ended, others write: readers ask again.
            self._is_open = False
            try:
                connection.commit(added, turn)
            except PgError as error:
                engine.drop()
                if not self._was_recorded(added[0], turn, error):
                    raise faults.refused_write(error) from error
            except BaseException:
                engine.drop()
                raise

    def _was_recorded(self, first: Row, turn: bytes, error: PgError) -> bool:
        """Returns whether the server recorded a turn before the connection was lost.

        Raises `OutcomeUnknown` if it does not answer in time.
        """
        search_s = max(self._timeout_s, _LEAST_SEARCH_S)
        deadline_s = time.monotonic() + search_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            connection: Connection | None = None
            with suppress(QueenError, PgError):
                connection = self._engine.open_connection(self._holder)
                return connection.is_recorded(first, turn, left_s)
            if connection is not None:
                connection.close()
            time.sleep(_RETRY_S)
        raise faults.unknown_outcome(faults.first_line(error), search_s) from error
