"""Where the lines of a hive are: this clone's memory, and the carrier that decides, if any.

Without a carrier, ledgers have the lines, and each clone decides by itself. Git replaces the
settings, so an old branch may name another place than the one in use: a note in this machine's
state says which one that is, and nothing is read or written in the other. ADR 0030.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext

from queenbee.errors import StoreError, Unreachable
from queenbee.store import files, giving_up
from queenbee.store.machine import present_ms
from queenbee.store.memory.files_memory import FilesMemory

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from queenbee.store.carriers.carrier import Fault
    from queenbee.store.carriers.postgres.carried_memory import CarriedMemory
    from queenbee.store.carriers.postgres.postgres_carrier import PostgresCarrier
    from queenbee.store.carriers.write import Write
    from queenbee.store.layout import Layout

_LOOK_S = 0.025
"""Between two looks at local files while waiting. A carrier announces its writes."""
_ASK_S = 0.5
"""How long to rely on announcements: a connection that was lost brings none."""


class Engine:
    """Reads, writes in turn, and waits, wherever the lines are. Safe for threads; not for use after
    a fork. It connects when it is first asked. Raises `StoreError` if psycopg is missing.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.carrier: PostgresCarrier | None = None
        """Where every line is, and who may write is decided, for all machines."""
        self.ledgers: FilesMemory | None = None
        """The memory, if its lines are those of ledgers: closed records can then move to an
        archive."""
        self._carried: CarriedMemory | None = None
        self._told, self._asked_s = -1, float("-inf")
        if layout.settings.engine_kind == "files":
            self.memory: FilesMemory | CarriedMemory = FilesMemory(layout)
            self.ledgers = self.memory
            return
        try:
            from queenbee.store.carriers.postgres.carried_memory import (  # noqa: PLC0415 - start-up
                CarriedMemory,
            )
        except ImportError as error:
            raise without_psycopg(error) from error
        self.memory = self._carried = CarriedMemory(layout)
        self.carrier = self._carried.carrier

    def ends(self, kinds: Iterable[str]) -> dict[str, str]:
        """Returns where kinds end in the carrier; nothing without one."""
        if self._carried is None:
            return {}
        with self._carried.reading():
            return {kind: repr(self._carried.stamp(kind)) for kind in kinds}

    def reading(self) -> AbstractContextManager[None]:
        """Returns a context in which a carrier is asked once: this thread reads the hive as it was
        at the beginning, or later. After a turn or a wait of it, reads are newer than that.
        """
        return self._carried.reading() if self._carried is not None else nullcontext()

    def writing(self, holder: str) -> Write:
        """Returns a turn at writing, which has not begun."""
        if self._carried is None:
            from queenbee.store.carriers.write import Write  # noqa: PLC0415 - start-up

            return Write(self._layout, self.memory, holder)
        from queenbee.store.carriers.postgres.carried_write import (  # noqa: PLC0415 - start-up
            CarriedWrite,
        )

        return CarriedWrite(self._layout, self._carried, holder)

    def wait(self, stamp: Callable[[], object], before: object, deadline_s: float) -> bool:
        """Returns True once `stamp()` is not `before`; False at the deadline (monotonic). A carrier
        that cannot be reached counts as one without a change. Raises `Cancelled`.
        """
        if self._carried is None:
            return files.wait_for_change(stamp, before, deadline_s)
        memory, carrier = self._carried, self._carried.carrier
        try:
            with memory.reading():
                asked_s, told, news = float("-inf"), -1, -1
                while True:
                    giving_up.refuse()
                    now_s = time.monotonic()
                    if news != told or now_s - asked_s >= _ASK_S:
                        asked_s, told = now_s, news
                        memory.read_anew()
                    try:
                        if stamp() != before:
                            return True
                    except Unreachable:
                        memory.rely_on_what_is_known()
                    left_s = deadline_s - time.monotonic()
                    if left_s <= 0:
                        return False
                    news = carrier.news(min(left_s, _LOOK_S))
        finally:
            memory.read_anew()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Returns a context in which one thread looks after many waits, now and then: a carrier is
        asked if it has announced a write, or after a while.
        """
        if self._carried is None:
            yield
            return
        with self._carried.reading():
            news, now_s = self._carried.carrier.news(0), time.monotonic()
            if news == self._told and now_s - self._asked_s < _ASK_S:
                self._carried.rely_on_what_is_known()
            else:
                self._told, self._asked_s = news, now_s
            yield

    def asks(self, true: Callable[[], bool]) -> bool:
        """Returns whether something is true by now; False if a carrier cannot be reached."""
        try:
            return true()
        except Unreachable:
            if self._carried is not None:
                self._carried.rely_on_what_is_known()
            return False

    def now_ms(self) -> int:
        """Returns the present by the clock that leases are judged by, in ms since 1970."""
        return time.time_ns() // 1_000_000 if self.carrier is None else self.carrier.now_ms()

    def present_ms(self, now_ms: int) -> int:
        """Returns the present as far as it can be told, in case that clock is behind."""
        if self.carrier is not None:
            return now_ms
        at = self._layout
        return present_ms((at.beads_dir, at.state_dir, at.common_dir), now_ms)

    def faults(self) -> list[Fault]:
        """Returns what is wrong with the carrier. Never raises for that. The doctor reads the files
        of a hive without one.
        """
        return [] if self.carrier is None else self.carrier.faults()

    def close(self) -> None:
        """Closes what is open; the next question opens it again."""
        if self.carrier is not None:
            self.carrier.close()
        self.memory.close()


def without_psycopg(error: ImportError) -> StoreError:
    """Returns the refusal of a hive in PostgreSQL on a machine that cannot ask it."""
    return StoreError(
        f"PostgreSQL cannot be reached without psycopg: {error}",
        hint="pip install 'queenbee-hive[postgres]'",
    )
