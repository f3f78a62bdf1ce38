"""The lines that a write adds to the ledger of issues: its own changes, and others' in the file.

The first line of an issue has the whole row, and each further line the fields that changed.
`docs/format.md`, section "Issues"; ADR 0043.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.fold import following
from queenbee.core.row_edits import as_line, as_row, difference
from queenbee.errors import InvalidInput
from queenbee.store.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.row_edits import Edit
    from queenbee.services.writing.transaction import Keeps
    from queenbee.store.memory.recorded import Recorded
    from queenbee.store.tracker.tracker_memory import TrackerMemory


def lines_of(
    tracker: TrackerMemory,
    records: Recorded,
    edits: Sequence[Edit],
    keeps: Keeps,
    look: Callable[[Mapping[str, object]], None],
) -> list[bytes]:
    """Returns the lines for these edits, and for what `keeps` says. Needs the hive's lock. `look`
    raises `InvalidInput` for what others wrote that must stay in the file.
    """
    lines = _Lines(records, look)
    owned = tracker.is_owned()
    ids = [] if keeps == "edits" or owned else tracker.theirs()
    ids += tracker.unkept() if keeps == "all" and not owned else []
    rows = tracker.rows([*ids, *(each.issue_id for each in edits)], exact=True)
    for issue_id in ids:
        lines.keep(issue_id, rows[issue_id])
    for edit in edits:
        before = rows.get(edit.issue_id)
        if before is not None:
            lines.keep_first(edit.issue_id, before)
        after = edit.made_on(before) if before is not None else dict(edit.row)
        lines.keep(edit.issue_id, after, edit.changes if after != before else {})
        rows[edit.issue_id] = after
    return lines.lines


class _Lines:
    """Lines for the ledger, with what its records are after them."""

    def __init__(self, records: Recorded, look: Callable[[Mapping[str, object]], None]) -> None:
        self._records = records
        self._look = look
        self._kept: dict[str, tuple[int, Mapping[str, object]]] = {}
        self.lines: list[bytes] = []

    def keep_first(self, issue_id: str, row: Mapping[str, object]) -> None:
        """Adds a row that the ledger does not have yet: two clones add the same line."""
        if self._known(issue_id)[0] == 0:
            self.keep(issue_id, row)

    def keep(
        self, issue_id: str, row: Mapping[str, object], asked: Mapping[str, object] | None = None
    ) -> None:
        """Adds what the ledger lacks of a row, and what was asked for: also a value that the ledger
        had before another program changed the file. Raises `InvalidInput` for a change that is too
        large for a line, or must stay, if it was asked for; what others made so stays in the file.
        """
        rev, known = self._known(issue_id)
        changes = {**difference(known, row), **(asked or {})}
        if not changes:
            return
        try:
            self._look(changes)
            self.lines.append(encode(as_line(issue_id, following(rev), changes)))
            rev = following(rev)
        except InvalidInput:
            if asked is not None:
                raise
        self._kept[issue_id] = rev, row

    def _known(self, issue_id: str) -> tuple[int, Mapping[str, object]]:
        if issue_id not in self._kept:
            fields = self._records.exact(issue_id)
            rev = fields["rev"] if fields else 0
            assert isinstance(rev, int)
            self._kept[issue_id] = rev, as_row(fields) if fields else {}
        return self._kept[issue_id]
