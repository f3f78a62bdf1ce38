"""What services ask of the place where a hive's lines are kept: read, write in turn, wait, now.

Nothing above `store` knows which engine it is. ADR 0030.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from queenbee.store.engines.fault import Fault
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.memory import Memory

Lines = Mapping[str, Sequence[bytes]]
"""The lines of a turn, by kind of record."""


class Write(Protocol):
    """One turn at writing: between `begin` and `end`, nobody else writes to the hive."""

    def begin(self) -> None:
        """Waits for the turn. Raises `Busy` and `Unwritable`; the turn has then not begun."""

    def record(self, lines: Lines) -> None:
        """Records lines: all or none, once."""

    def end(self) -> None:
        """Ends the turn: others may write. Call it exactly once after `begin`."""

    def settle(self) -> None:
        """Returns when what was recorded is on disk. Raises `DurabilityUnknown`."""


class Engine(Protocol):
    """Where the lines of one hive are kept. Safe for threads; not for use after a fork."""

    name: str
    """`files` or `postgres`, as the setting `engine.kind` has it."""

    shared: bool
    """Whether all machines write here. Then nobody else confirms grants, and lines that others
    wrote elsewhere do not join by themselves."""

    patience_s: float
    """How long another machine has to answer."""

    @property
    def memory(self) -> Memory:
        """Every line that is known here, and the record that each id folds to."""

    @property
    def ledgers(self) -> FilesMemory | None:
        """The memory, if its lines are those of ledgers: closed records can then move to an
        archive. None for lines that are kept elsewhere.
        """

    def stamp(self, kind: str) -> object:
        """Returns a value that changes whenever lines of a kind come or go; for cheap polling."""

    def kinds(self) -> list[str]:
        """Returns the kinds of record that have lines, apart from ours."""

    def has_lines(self, kind: str) -> bool:
        """Returns whether there are lines of a kind."""

    def lacking(self, kind: str) -> list[bytes]:
        """Returns the recorded lines that the tracked files lack."""

    def reading(self) -> AbstractContextManager[None]:
        """Returns a context in which an engine that is far away is asked once: this thread reads
        the hive as it was at the beginning, or later. After a turn or a wait of this thread, reads
        are newer than that.
        """

    def writing(self, holder: str) -> Write:
        """Returns a turn at writing, which has not begun."""

    def wait(
        self,
        stamp: Callable[[], object],
        before: object,
        deadline_s: float,
    ) -> bool:
        """Returns True once `stamp()` is not `before`; False at the deadline (monotonic)."""

    def now_ms(self) -> int:
        """Returns the present by the clock that leases are judged by, in ms since 1970."""

    def present_ms(self, now_ms: int) -> int:
        """Returns the present as far as it can be told, in case that clock is behind."""

    def faults(self) -> list[Fault]:
        """Returns what is wrong with the place where the lines are kept. Never raises for that."""

    def close(self) -> None:
        """Closes what is open; the next question opens it again."""
