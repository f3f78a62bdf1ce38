"""Gives the tracker's file the rows that count, for other programs: one row for each issue.

In between, the file stays as git has it, so that `git pull` finds nothing in its way.
`docs/format.md`, section "Issues"; ADR 0043.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from queenbee.core.kinds import ISSUES
from queenbee.core.row_edits import Edit
from queenbee.store.codec import fits
from queenbee.store.tracker.issues_write import replace_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from queenbee.services.open_store import Store


def export_issues(store: Store, *, again: Collection[str] = ()) -> int:
    """Writes the rows that the file lacks or has otherwise, and returns how many; on disk when it
    returns. Of those named in `again`, the file keeps one row each. Does nothing where another
    program owns the tracker. Raises `Busy`, `Unwritable`.
    """
    tracker = store.tracker()
    if tracker.is_owned() or not (again or tracker.has_unfiled or tracker.theirs()):
        return 0
    # What others changed goes to the ledger first, and what git took from that is back in it: from
    # now on, the file has nothing that the ledger lacks.
    with store.transaction() as tx:
        tx.touch(ISSUES)
        tx.keep_issues("changed")
    export = _Export(store, again)
    replace_rows(tracker.path, export.edits, export.turn)
    return export.count


class _Export:
    """The rows of one export. The file is made without the turn at writing, which others need."""

    count = 0

    def __init__(self, store: Store, again: Collection[str]) -> None:
        self._store = store
        self._again = again

    def edits(self) -> list[Edit]:
        """Returns the changes of the file, as of now."""
        tracker = self._store.tracker()
        self._version = tracker.version
        # What others made too large for a line is shown, and stays in the file as it is.
        edits = [Edit(row, filed) for row, filed in tracker.unfiled() if fits(row)]
        changes = [each for each in edits if each.changes]
        self.count = len(changes)
        rows = tracker.rows(self._again, exact=True).values()
        found = [*changes, *(Edit(row, row) for row in rows)]
        self._ids = {each.issue_id for each in found}
        return found

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Has the turn; yields whether these rows still count. An older one in the file would be
        read as a change that somebody made there.
        """
        with self._store.transaction():
            tracker, (memory, number) = self._store.tracker(), self._version or ("", 0)
            is_same = (tracker.version or ("",))[0] == memory
            changed = tracker.changed_since(number) if is_same else None
            yield changed is not None and self._ids.isdisjoint(changed)
