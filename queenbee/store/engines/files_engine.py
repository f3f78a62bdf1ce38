"""The engine that needs nothing but files: ledgers that git carries, and this clone's memory."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from queenbee.store import files
from queenbee.store.machine import present_ms
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.safe_open import names_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.store.engines.engine import Write
    from queenbee.store.engines.fault import Fault
    from queenbee.store.layout import Layout


_AT_HAND = nullcontext()


class FilesEngine:
    """Implements `store.engines.engine.Engine` with the files of this repository."""

    name = "files"
    shared = False

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.patience_s = 0.0
        self.memory = self.ledgers = FilesMemory(layout)

    def stamp(self, kind: str) -> object:
        return self.memory.tracked(kind).stamp()

    def kinds(self) -> list[str]:
        # Also those that only the memory has: git may have removed the ledger.
        begin, end = "queen_", ".jsonl"
        names = names_in(self._layout.beads_dir)
        found = {each for each in names if each.startswith(begin) and each.endswith(end)}
        tracked = {each.removeprefix(begin).removesuffix(end) for each in found}
        return sorted(tracked.union(self.memory.kinds()))

    def has_lines(self, kind: str) -> bool:
        return bool(self.memory.tracked(kind).size_bytes()) or kind in self.memory.kinds()

    def lacking(self, kind: str) -> list[bytes]:
        return self.memory.lacking(kind)

    def reading(self) -> nullcontext[None]:
        return _AT_HAND

    def writing(self, holder: str) -> Write:
        from queenbee.store.engines.files_write import FilesWrite  # noqa: PLC0415 - start-up

        return FilesWrite(self._layout, self.memory, holder)

    def wait(
        self,
        stamp: Callable[[], object],
        before: object,
        deadline_s: float,
    ) -> bool:
        return files.wait_for_change(stamp, before, deadline_s)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def present_ms(self, now_ms: int) -> int:
        at = self._layout
        return present_ms((at.beads_dir, at.state_dir, at.common_dir), now_ms)

    def faults(self) -> list[Fault]:
        """Returns nothing: the doctor reads the files themselves."""
        return []

    def close(self) -> None:
        self.memory.close()
