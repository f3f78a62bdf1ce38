"""One turn at writing to files: take the lock, append, unlock, wait for the disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.errors import Unwritable
from queenbee.store import creating
from queenbee.store.lock import KernelLock

if TYPE_CHECKING:
    from queenbee.store.engines.engine import Lines
    from queenbee.store.layout import Layout
    from queenbee.store.memory.files_memory import FilesMemory


class FilesWrite:
    """Implements `store.engines.engine.Write` with the hive's lock on this machine."""

    def __init__(self, layout: Layout, memory: FilesMemory, holder: str) -> None:
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
        try:
            self._lock.__enter__()
            try:
                # It may have been carried to a database while we waited.
                self._layout.refuse_if_elsewhere()
            except BaseException:
                self._lock.__exit__(None, None, None)
                raise
        except BaseException as error:
            add_hint(error, self._layout)
            raise

    def record(self, lines: Lines) -> None:
        try:
            self._lock.confirm()
            if lines:
                self._memory.write(lines)
                self._has_lines = True
        except BaseException as error:
            add_hint(error, self._layout)
            raise

    def _make_folders(self) -> None:
        creating.make_beads_dir(self._layout)
        creating.make_state_dir(self._layout)

    def end(self) -> None:
        self._lock.__exit__(None, None, None)

    def settle(self) -> None:
        if self._layout.settings.durability == "synced" and self._has_lines:
            self._memory.sync()
        self._memory.database.shorten_log()


def add_hint(error: BaseException, layout: Layout) -> None:
    """Adds the hint that names the folder to grant; the store alone does not know it."""
    if isinstance(error, Unwritable) and error.hint is None:
        path = error.details.get("path")
        folder = os.path.dirname(path) if isinstance(path, str) else layout.beads_dir
        error.hint = creating.what_to_grant(layout, folder)
