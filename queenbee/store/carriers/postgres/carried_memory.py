"""The memory of a hive in a database: each question brings the lines after those that are here.

Beside the lines of a kind, the memory notes where they end, with the digest that covers all of
them. If the database has another one there, it is not the one that they came from, or was put back
to an older state: they are forgotten, and fetched anew. ADR 0030.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from queenbee.core.kinds import KINDS
from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.carriers.postgres.agreed import memory_path, refuse_unagreed
from queenbee.store.carriers.postgres.connection import AT_ONCE, End, followed
from queenbee.store.carriers.postgres.postgres_carrier import PostgresCarrier
from queenbee.store.creating import make_state_dir
from queenbee.store.files import split_lines
from queenbee.store.memory import sqlite
from queenbee.store.memory.folding import Folding
from queenbee.store.memory.memory import Memory, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.store.carriers.carrier import Lines
    from queenbee.store.carriers.postgres.connection import Answer, Ends, Row, Rows
    from queenbee.store.layout import Layout


ISSUES = "issues"


class _OfThread(threading.local):
    """What holds for one thread."""

    read: set[str] | None = None
    """Within a reading: the kinds that are up to date."""


class CarriedMemory(Memory):
    """What is known here of the lines in a database."""

    def __init__(self, layout: Layout, carrier: PostgresCarrier | None = None) -> None:
        super().__init__(memory_path(layout, layout.settings.engine_hive))
        self._layout = layout
        self.carrier: PostgresCarrier = carrier or PostgresCarrier(layout)
        self._thread = _OfThread()
        self._ends: dict[str, End] = {}
        """Where each kind ends, as the database said last."""

    def refresh(self, kind: str) -> None:
        """Takes in what the database has that is new, of every kind: one round trip, unless there
        is much. Raises `Unreachable` and `StoreError`.
        """
        with self.carrier.mutex:
            done = self._done()
            if done is not None and kind in done:
                return
            known = self._known(kind)
            self._take(self.carrier.after(known), known)
            if done is not None:
                done.update(known)
            if self.carrier.turn is None:
                self.asked(self.database.keep_log)
                self.database.shorten_log()

    def stamp(self, kind: str) -> object:
        self.refresh(kind)
        return self._ends.get(kind, End())

    def all_kinds(self) -> list[str]:
        return self.carrier.asked(lambda connection: connection.kinds())

    @contextmanager
    def reading(self) -> Iterator[None]:
        """As `Engine.reading`."""
        if self._thread.read is not None:
            yield
            return
        self._thread.read = set()
        try:
            yield
        finally:
            self._thread.read = None

    def read_anew(self) -> None:
        """Lets this thread ask again for what it has read in a reading."""
        if self._thread.read is not None:
            self._thread.read.clear()

    def rely_on_what_is_known(self) -> None:
        """Lets this thread ask for nothing in its reading, until it is to read anew."""
        if self._thread.read is not None:
            self._thread.read.update(self._known())

    def begin(self, holder: str) -> set[tuple[object, ...]]:
        """Begins a turn at writing, with all that the database has; returns the births then."""
        with self.carrier.mutex:
            known = self._known()
            if not any(end.sequence for end in known.values()):
                self.refresh(ISSUES)  # What may take long keeps nobody waiting.
                known = self._known()
            answer = self.carrier.begin(known, holder)
            try:
                self._take(answer, known)
                return self.births()
            except BaseException:
                self.carrier.end()
                raise

    def write(self, lines: Lines) -> None:
        """Records lines in the turn that has begun, and ends it. Their kinds are up to date."""
        added = {kind: each for kind, each in lines.items() if each}
        if not added:
            return
        with self.carrier.mutex:
            # As the database said it in this turn, whatever became of the memory since.
            rows = self.carrier.add(added, self._ends)
            try:
                self._take_own(rows)
            except QueenError:  # It is recorded: whoever asks takes it in.
                self.read_anew()

    def _take_own(self, rows: Rows) -> None:
        carried = self.asked(lambda: self.database.number("carried"))
        self.asked(lambda: self._take_in(rows, carried))

    def _done(self) -> set[str] | None:
        """Returns the kinds that are up to date; None if each question is to be asked."""
        turn = self.carrier.turn
        return turn if turn is not None else self._thread.read

    def _known(self, *more: str) -> dict[str, End]:
        """Returns where the kinds end that are known here, and these."""
        if self.database.is_behind():
            self.close()
        return {**dict.fromkeys([*KINDS, *more], End()), **self.asked(self._noted)}

    def _take(self, answer: Answer, known: Ends) -> None:
        """Takes in an answer to what is known."""
        if answer.carried != self.asked(lambda: self.database.meta("carried")) or any(
            [row.end for row in rows] != [known[kind]] for kind, rows in answer.rows.items()
        ):
            self.asked(lambda: self._take_in(answer.rows, answer.carried))
        else:
            self._ends.update(known)

    def note(self, name: str, value: object) -> None:
        refuse_unagreed(self._layout, self.carrier.hive)
        super().note(name, value)

    def unusable(self, kind: str) -> int:
        return self.asked(lambda: self.database.number(f"unusable {kind}"))

    def births(self) -> set[tuple[object, ...]]:
        """Returns what is no longer the same once lines were forgotten."""
        query = "SELECT key, value FROM meta WHERE key LIKE 'born %'"
        return {*self.asked(lambda: self.database.ask(query))}

    def _take_in(self, rows: Rows, carried: int) -> None:
        if not self.database.may_create and any(len(each) > 1 for each in rows.values()):
            self._make_room()
        # Another process may have been here meanwhile. From here on, none can.
        with self.database.turn():
            noted = self._noted()
            for kind, each in rows.items():
                self._ends[kind] = self._take_kind(kind, each, noted.get(kind, End()))
                # How often lines came from files: no others can collide with what is here.
                self.database.put_meta(f"arrivals {kind}", carried)
            self.database.put_meta("carried", carried)

    def _make_room(self) -> None:
        with suppress(QueenError, OSError):
            make_state_dir(self._layout)
            safe_open.make_folder(os.path.dirname(self.database.path))
            self.database.may_create = True
            if not self.database.is_durable:
                self.close()

    def _take_kind(self, kind: str, rows: Sequence[Row], end: End) -> End:
        """Takes in the rows of a kind that come after its end, and returns where it ends then."""
        folding = Folding(self.database, kind)
        at = end.sequence - rows[0].sequence if rows else -1
        if not 0 <= at < len(rows):
            rows, at = self._rows_after(kind, end), 0
        if not rows or rows[at].end != end:
            folding.forget_all()
            self.database.put_meta(f"unusable {kind}", 0)
            end, at = End(), 0
            rows = self._rows_after(kind, end)
        if len(rows) > AT_ONCE:
            folding.expect_many()
        while new := rows[at + 1 :]:
            end, at = followed(kind, new, end), 0
            lines = [line for row in new for line in split_lines(row.line)]
            _, unusable = folding.take(lines)
            self.database.count(f"unusable {kind}", unusable)
            rows = self._rows_after(kind, end) if len(rows) > AT_ONCE else ()
        self.database.put_meta(f"end {kind}", f"{end.sequence} {end.digest.hex()}")
        folding.finish()
        return end

    def _rows_after(self, kind: str, end: End) -> list[Row]:
        return self.carrier.after({kind: end}).rows[kind]

    def _noted(self) -> dict[str, End]:
        query = "SELECT substr(key, 5), value FROM meta WHERE key LIKE 'end %'"
        ends: dict[str, End] = {}
        for kind, text in self.database.ask(query):
            number, _, digest = str(text).partition(" ")
            ends[str(kind)] = End(int(number), bytes.fromhex(digest))
        return ends

    def _replace(self) -> None:
        """Lets another file take the place of a damaged one, and fetches every line again: whoever
        asks may be in a turn, in which nothing must be missing.
        """
        with self.carrier.mutex:
            self.database.set_aside()
            for done in (self.carrier.turn, self._thread.read):
                if done is not None:
                    done.clear()
            try:
                answer = self.carrier.after(dict.fromkeys({*KINDS, *self._ends}, End()))
                self._take_in(answer.rows, answer.carried)
                self._forget_older()
            except sqlite.Error as error:
                raise refusal(self.database.path, error) from error
