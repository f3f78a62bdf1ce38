"""The memory of a hive in a database: each question brings the lines after those that are here.

Beside the lines of a kind, the memory notes where they end, with the digest that covers all of
them. If the database has another one there, it is not the one that they came from, or was put back
to an older state: they are forgotten, and fetched anew. ADR 0030.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

from queenbee.core.kinds import KINDS
from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.creating import make_state_dir
from queenbee.store.engines.postgres.connection import AT_ONCE, Answer, End, Row, Rows, followed
from queenbee.store.engines.postgres.health import address
from queenbee.store.files import split_lines
from queenbee.store.memory import sqlite
from queenbee.store.memory.folding import Folding
from queenbee.store.memory.memory import Memory, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.store.engines.postgres.session import Session
    from queenbee.store.layout import Layout

    Ends = Mapping[str, End]


ISSUES = "issues"


class _OfThread(threading.local):
    """What holds for one thread."""

    asks = True
    """False while it waits, and nothing was announced."""
    read: set[str] | None = None
    """Within a reading: the kinds that are up to date."""


class PostgresMemory(Memory):
    """What is known here of the lines in a database."""

    def __init__(self, layout: Layout, session: Session) -> None:
        super().__init__(_path(layout))
        self._layout = layout
        self._session = session
        self.thread = _OfThread()
        self.ends: dict[str, End] = {}
        """Where each kind ends, as the database said last."""

    def refresh(self, kind: str) -> None:
        """Takes in what the database has that is new, of every kind: one round trip, unless there
        is much. Raises `Unreachable` and `StoreError`.
        """
        if not self.thread.asks:
            return
        with self._session.mutex:
            done = self._session.turn if self._session.turn is not None else self.thread.read
            if done is not None and kind in done:
                return
            known = self.known(kind)
            self.take(self._session.ask(numbers(known)), known)
            if done is not None:
                done.update(known)
            if self._session.turn is None:
                self.database.shorten_log()

    def read_anew(self) -> None:
        """Lets this thread ask again for what it has read in a reading."""
        if self.thread.read is not None:
            self.thread.read.clear()

    def known(self, *more: str) -> dict[str, End]:
        """Returns where the kinds end that are known here, and these."""
        if self.database.is_behind():
            self.close()
        return {**dict.fromkeys([*KINDS, *more], End()), **self.asked(self._noted)}

    def take(self, answer: Answer, known: Ends) -> None:
        """Takes in an answer to what is known."""
        if answer.carried != self.asked(lambda: self.database.meta("carried")) or any(
            [row.end for row in rows] != [known[kind]] for kind, rows in answer.rows.items()
        ):
            self.asked(lambda: self._take_in(answer.rows, answer.carried))
        else:
            self.ends.update(known)

    def take_own(self, rows: Rows) -> None:
        """Takes in what a turn has just recorded, each after the line that it followed."""
        carried = self.asked(lambda: self.database.number("carried"))
        self.asked(lambda: self._take_in(rows, carried))

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
                self.ends[kind] = self._take_kind(kind, each, noted.get(kind, End()))
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
        return self._session.ask({kind: end.sequence}).rows[kind]

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
        with self._session.mutex:
            self.database.set_aside()
            for done in (self._session.turn, self.thread.read):
                if done is not None:
                    done.clear()
            try:
                answer = self._session.ask(dict.fromkeys({*KINDS, *self.ends}, 0))
                self._take_in(answer.rows, answer.carried)
            except sqlite.Error as error:
                raise refusal(self.database.path, error) from error


def _path(layout: Layout) -> str:
    """Returns where the memory of this database's hive is: two databases never share one."""
    said = repr((address(layout.settings.database), layout.settings.engine_hive))
    name = blake2b(said.encode(), digest_size=8).hexdigest()
    return os.path.join(layout.state_dir, "postgres", f"{name}.sqlite3")


def numbers(ends: Ends) -> dict[str, int]:
    """Returns the numbers of the last lines."""
    return {kind: end.sequence for kind, end in ends.items()}
