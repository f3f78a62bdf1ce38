"""One turn at writing: wait for it, record lines, end it, wait for the disk."""

from __future__ import annotations

import os

from queenbee.errors import Unwritable
from queenbee.store import creating
from queenbee.store.lock import KernelLock

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.store.carriers.carrier import Lines
    from queenbee.store.layout import Layout
    from queenbee.store.memory.memory import Memory


class Write:
    """One turn, with the hive's lock on this machine: between `begin` and `end`, nobody else writes
    to the hive.
    """

    def __init__(self, layout: Layout, memory: Memory, holder: str) -> None:
        self._layout = layout
        self._memory = memory
        self._lock = KernelLock(
            layout.lock_path,
            holder=holder,
            timeout_s=layout.settings.lock_timeout_s,
            prepare=self._make_folders,
        )
        self._has_lines = False

    def begin(self) -> None:
        """Waits for the turn. Raises `Busy` and `Unwritable`; the turn has then not begun."""
        try:
            self._begin()
        except BaseException as error:
            add_hint(error, self._layout)
            raise

    def record(self, lines: Lines) -> None:
        """Records lines: all or none, once."""
        try:
            self._confirm(lines)
            if lines:
                self._memory.write(lines)
                self._has_lines = True
        except BaseException as error:
            add_hint(error, self._layout)
            raise

    def end(self) -> None:
        """Ends the turn: others may write. Call it exactly once after `begin`."""
        self._lock.__exit__(None, None, None)

    def settle(self) -> None:
        """Returns when what was recorded is on disk. Raises `DurabilityUnknown`."""
        if self._layout.settings.durability == "synced" and self._has_lines:
            self._memory.sync()
        self._memory.database.shorten_log()

    def _begin(self) -> None:
        self._lock.__enter__()
        try:
            # It may have been carried to a database while we waited.
            self._layout.refuse_if_elsewhere()
        except BaseException:
            self.end()
            raise

    def _confirm(self, lines: Lines) -> None:
        """Raises `Busy` if somebody else may have written since the turn began."""
        self._lock.confirm()

    def _make_folders(self) -> None:
        creating.make_beads_dir(self._layout)
        creating.make_state_dir(self._layout)


def add_hint(error: BaseException, layout: Layout) -> None:
    """Adds the hint that names the folder to grant; the store alone does not know it."""
    if isinstance(error, Unwritable) and error.hint is None:
        path = error.details.get("path")
        folder = os.path.dirname(path) if isinstance(path, str) else layout.beads_dir
        error.hint = creating.what_to_grant(layout, folder)
