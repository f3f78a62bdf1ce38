"""Gives the tracker's file the rows that count, for other programs: one row for each issue.

In between, the file stays as git has it, so that `git pull` finds nothing in its way.
`docs/format.md`, section "Issues"; ADR 0043.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.kinds import ISSUES
from queenbee.core.row_edits import Edit
from queenbee.store.codec import fits
from queenbee.store.tracker.issues_write import replace_rows

if TYPE_CHECKING:
    from collections.abc import Collection

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
    with store.transaction():
        tracker = store.tracker()
        # What others made too large for a line is shown, and stays in the file as it is.
        edits = [Edit(row, filed) for row, filed in tracker.unfiled() if fits(row)]
        rows = tracker.rows(again, exact=True).values()
        changes = [each for each in edits if each.changes]
        replace_rows(tracker.path, [*changes, *(Edit(row, row) for row in rows)])
    return len(changes)
