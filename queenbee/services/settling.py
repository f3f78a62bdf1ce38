"""Keeps the tracker's rows that `queen` wrote: what git takes away is back at the next write.

What another program wrote to the file since it was last compared goes to the ledger; what git took
away, or another clone changed, goes to the file. A reader sees the result, and writes nothing but a
note of what it compared. `docs/format.md`, section "Issues"; ADR 0037.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.beads import changed_ms, newest
from queenbee.core.fold import following
from queenbee.core.row_edits import (
    STAMP,
    Compared,
    Edit,
    as_line,
    as_row,
    difference,
)
from queenbee.errors import InvalidInput
from queenbee.services.keeping import KIND
from queenbee.store.codec import encode, fits, lost_precision
from queenbee.store.issues_file import read_rows_exactly
from queenbee.store.issues_write import replace_rows, rows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from queenbee.services.keeping import Keeping, Moment, Row
    from queenbee.store.issues_write import Replaced


def mended(keeping: Keeping, rows: dict[str, Row], moment: Moment) -> dict[str, Row]:
    """Returns the rows of a file that is not in step, as they are to be."""
    found = _compared(keeping, rows, moment)
    if not (found.made_elsewhere or found.rows):
        keeping.note(moment, found.removed, found.since_ms, has_all=False)
    return {**rows, **found.rows}


def lacks_answer(keeping: Keeping) -> bool:
    """Returns whether git must say which rows commits removed, before anything is written: a file
    that is written without the others might be committed, and that would remove them.
    """
    _compared(keeping, newest(read_rows_exactly(keeping.path)), keeping.moment())
    return keeping.has_to_ask


def settled(keeping: Keeping, edits: Sequence[Edit], *, everything: bool) -> Settled:
    """Returns what a write does to the file and the ledger, with these edits. With `everything`,
    the rows of other programs go to the ledger, too. Needs the hive's lock.
    """
    moment = keeping.moment()
    done = Settled(keeping, moment)
    if keeping.is_owned():
        done.edits += edits
        return done
    noted = keeping.noted()
    if keeping.is_in_step(moment, noted) and not everything:
        rows = rows_of(keeping.path, {edit.issue_id for edit in edits})
        done.has_all = keeping.has_all(moment, noted)
        done.removed, done.since_ms = {*noted.get("removed", ())}, noted.get("since_ms", 0)
    else:
        rows = newest(read_rows_exactly(keeping.path))
        found = _compared(keeping, rows, moment)
        done.take(found, rows)
        rows = {**rows, **found.rows}
        done.has_all = everything or keeping.store.engine.shared
        if done.has_all:
            done.adopt(rows)
    for edit in edits:
        done.add(edit, rows)
    return done


def _compared(keeping: Keeping, rows: Mapping[str, Row], moment: Moment) -> Compared:
    if keeping.compared is not None and keeping.compared[0] == moment:
        return keeping.compared[1]  # A write looks at all rows before it and in it.
    state, found = keeping.store.state(KIND), Compared()
    missing: list[str] = []
    is_exact = True
    for fields in state.everything():
        issue_id, kept = str(fields["id"]), as_row(fields)
        row = rows.get(issue_id)
        if row is None:
            missing.append(issue_id)
        elif row != kept and difference(row, kept):
            if lost_precision(fields) or lost_precision(row):
                kept, is_exact = as_row(state.exact(issue_id) or fields), False
            found.merge(issue_id, kept, row, state.history(issue_id))
    if missing:
        _look_for(missing, found, keeping)
    elif is_exact:
        keeping.compared = moment, found
    return found


_CLOCKS_DIFFER_MS = 86_400_000
"""So much earlier than a row a commit may seem to be that removed it."""


def _look_for(missing: Sequence[str], found: Compared, keeping: Keeping) -> None:
    """Tells which of the rows that the file lacks somebody removed, and which are to be back."""
    state = keeping.store.state(KIND)
    histories = {each: state.history(each) for each in missing}
    begun_ms = min(changed_ms(history[0]) for history in histories.values())
    found.since_ms = max(0, begun_ms - _CLOCKS_DIFFER_MS)
    answer = keeping.answer(found.since_ms)
    for issue_id, history in histories.items():
        versions = answer.removed.get(issue_id) if answer is not None else None
        if versions is not None and _is_removed(history, versions):
            found.removed.append(issue_id)
            continue
        if answer is None or not answer.is_whole:
            found.unsure.append(issue_id)
        found.rows[issue_id] = as_row(state.exact(issue_id) or {"id": issue_id})


def _is_removed(history: Sequence[Row], versions: Collection[str]) -> bool:
    """Returns whether a row is one that commits removed in these versions: not if an issue with its
    id was made anew after them.
    """
    removed = True
    for number, line in enumerate(history):
        if line.get(STAMP) in versions:
            removed = True
        elif number and "created_at" in line:
            removed = False
    return removed


class Settled:
    """What one write does to the tracker's file and to the ledger."""

    def __init__(self, keeping: Keeping, moment: Moment) -> None:
        self._keeping = keeping
        self._moment = moment
        self._records = keeping.store.state(KIND)  # Asked once: nobody else writes.
        self._revs: dict[str, int] = {}
        self._in_step = not keeping.is_owned()
        """Whether file and ledger are in step once both are written."""
        self.is_overtaken = False
        """Whether another program wrote the file between the comparison and the edits."""
        self.has_all = False
        """Whether the ledger has all rows of the file then."""
        self.removed = set[str]()
        """The rows that stay away."""
        self.since_ms = 0
        self.edits: list[Edit] = []
        self.lines: list[bytes] = []

    def take(self, found: Compared, rows: Mapping[str, Row]) -> None:
        """Adds what file and ledger lack of each other."""
        for issue_id, changes in found.made_elsewhere.items():
            self._change(issue_id, changes)
        # What others made too large is shown, and no reason to refuse a write.
        absent = {*found.unsure, *(each for each, row in found.rows.items() if not fits(row))}
        self._in_step = not absent
        self.removed.update(found.removed)
        self.since_ms = found.since_ms
        self.edits += [
            Edit(row, rows.get(each)) for each, row in found.rows.items() if each not in absent
        ]

    def adopt(self, rows: Mapping[str, Row]) -> None:
        """Adds the rows that the ledger does not have, and can have."""
        for issue_id, row in rows.items():
            if self._rev(issue_id) == 0:
                self._change(issue_id, row)

    def add(self, edit: Edit, rows: dict[str, Row]) -> None:
        """Adds an edit of one of these rows, which are as the edits before left them."""
        self.removed.discard(edit.issue_id)
        before = rows.get(edit.issue_id)
        after = edit.made_on(dict(before)) if before is not None else dict(edit.row)
        if before is None or fits(after):
            self.edits.append(edit)
        else:  # Too large for the file: it stays in the ledger alone.
            self._in_step = False
        rows[edit.issue_id] = after
        changes = difference(before or {}, after)
        if changes:
            if before is not None:
                self.adopt({edit.issue_id: before})
                if self._rev(edit.issue_id) == 0:  # Too large: it stays in the file alone.
                    return
            self._change(edit.issue_id, changes)

    def replace(self) -> Replaced:
        """Makes the edits in the file."""
        done = replace_rows(self._keeping.path, self.edits)
        self.is_overtaken = done.made_on != self._moment[0]
        return done

    def note(self) -> None:
        """Notes that file and ledger are in step, once both are written, if they are."""
        if self._in_step and not self.is_overtaken:
            moment = self._keeping.moment()
            self._keeping.note(moment, self.removed, self.since_ms, has_all=self.has_all)

    def _rev(self, issue_id: str) -> int:
        if issue_id not in self._revs:
            fields = self._records.get(issue_id)
            rev = fields["rev"] if fields else 0
            assert isinstance(rev, int)
            self._revs[issue_id] = rev
        return self._revs[issue_id]

    def _change(self, issue_id: str, changes: Row) -> None:
        """Adds a line, unless it would be too large."""
        rev = following(self._rev(issue_id))
        try:
            self.lines.append(encode(as_line(issue_id, rev, changes)))
        except InvalidInput:
            return
        self._revs[issue_id] = rev
