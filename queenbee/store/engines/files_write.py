"""One turn at writing to files: take the lock, append, unlock, wait for the disk."""

from __future__ import annotations

import os

from queenbee.errors import Unwritable
from queenbee.store import creating
from queenbee.store.lock import KernelLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.store.engines.engine import Lines, Rows
    from queenbee.store.issues_write import Replaced
    from queenbee.store.layout import Layout
    from queenbee.store.ledger.ledger import Receipt
    from queenbee.store.questions import Records


class FilesWrite:
    """Implements `store.engines.engine.Write` with the hive's lock on this machine."""

    def __init__(self, layout: Layout, holder: str) -> None:
        self._layout = layout
        self._lock = KernelLock(
            layout.lock_path,
            holder=holder,
            timeout_s=layout.settings.lock_timeout_s,
            prepare=self._make_folders,
        )
        self._receipts: list[Receipt | Replaced] = []

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

    def record(self, lines: Lines, rows: Rows, state: Callable[[str], Records]) -> None:
        try:
            self._lock.confirm()
            # The issues first: after a crash in between, an assignment is still active and can be
            # ended again. The other way round, an open issue would have no assignment.
            if rows:
                creating.make_beads_dir(self._layout)
                self._receipts.append(rows())
            for kind, each in lines.items():
                self._receipts.append(state(kind).append(each))
        except BaseException as error:
            # The lock is still ours: appends to the first ledgers can be undone.
            for receipt in self._receipts:
                receipt.take_back()
                receipt.close()
            self._receipts.clear()
            add_hint(error, self._layout)
            raise

    def _make_folders(self) -> None:
        creating.make_beads_dir(self._layout)
        creating.make_state_dir(self._layout)

    def end(self) -> None:
        self._lock.__exit__(None, None, None)

    def settle(self) -> None:
        try:
            if self._layout.settings.durability == "synced":
                for receipt in self._receipts:
                    receipt.sync()
        finally:
            for receipt in self._receipts:
                receipt.close()


def add_hint(error: BaseException, layout: Layout) -> None:
    """Adds the hint that names the folder to grant; the store alone does not know it."""
    if isinstance(error, Unwritable) and error.hint is None:
        path = error.details.get("path")
        folder = os.path.dirname(path) if isinstance(path, str) else layout.beads_dir
        error.hint = creating.what_to_grant(layout, folder)
