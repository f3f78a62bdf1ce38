"""The engine that needs nothing but files: ledgers that git carries, and the state beside them."""

from __future__ import annotations

import os
import time

from queenbee._light import nullcontext
from queenbee.store import files
from queenbee.store.engines.opening import open_records
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.machine import present_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.store.engines.engine import Write
    from queenbee.store.engines.fault import Fault
    from queenbee.store.layout import Layout
    from queenbee.store.questions import Progress, Records


_AT_HAND = nullcontext()


class FilesEngine:
    """Implements `store.engines.engine.Engine` with the files of this repository."""

    name = "files"
    archives = True
    shared = False
    moment = None
    """Git and other programs change files at any time."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.patience_s = 0.0

    def ledger(self, kind: str) -> Ledger:
        self._layout.refuse_if_elsewhere()
        return Ledger(self._layout.ledger_path(kind), self._layout.journal_path(kind))

    def records(self, kind: str, progress: Progress | None) -> Records:
        return open_records(kind, self.ledger(kind), self.index_path(kind), progress=progress)

    def kinds(self) -> list[str]:
        # Also those that only the journal has: git may have removed the ledger.
        layout = self._layout
        tracked = _between("queen_", layout.beads_dir)
        recorded = _between("", os.path.join(layout.state_dir, "journal"))
        return sorted(tracked | recorded)

    def index_path(self, kind: str) -> str:
        return self._layout.index_path(kind)

    def reading(self, *kinds: str) -> nullcontext[None]:
        return _AT_HAND

    def writing(self, holder: str) -> Write:
        from queenbee.store.engines.files_write import FilesWrite  # noqa: PLC0415 - start-up

        return FilesWrite(self._layout, holder)

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
        journals = os.path.join(at.state_dir, "journal")
        return present_ms((at.beads_dir, at.state_dir, journals, at.common_dir), now_ms)

    def faults(self) -> list[Fault]:
        """Returns nothing: the doctor reads the files themselves."""
        return []

    def repair(self) -> None:
        """Does nothing: there are no copies."""

    def close(self) -> None:
        """Does nothing: no file stays open."""


def _between(prefix: str, folder: str) -> set[str]:
    """Returns what the names of a folder's ledgers or journals have between prefix and ending."""
    try:
        names = os.listdir(folder)
    except OSError:
        return set()
    ending = ".jsonl"
    found = (name for name in names if name.startswith(prefix) and name.endswith(ending))
    return {name.removeprefix(prefix).removesuffix(ending) for name in found}
