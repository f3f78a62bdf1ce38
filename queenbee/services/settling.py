"""Keeps the tracker's rows that `queen` wrote: what git takes away is back at the next write.

What another program wrote to the file since it was last compared goes to the ledger; what git took
away, or another clone changed, goes to the file. A reader sees the result, and writes nothing but a
note of what it compared. `docs/format.md`, section "Issues"; ADR 0037.
"""

from __future__ import annotations

from queenbee.core.beads import newest
from queenbee.core.fold import MAX_REV
from queenbee.core.row_edits import (
    Edit,
    as_line,
    as_row,
    difference,
    fitting_status,
    made_elsewhere,
    with_changes,
)
from queenbee.errors import InvalidInput
from queenbee.services.keeping import KIND
from queenbee.store.issues_file import read_rows_exactly
from queenbee.store.issues_write import replace_rows, rows_of
from queenbee.store.ledger.codec import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.services.keeping import Keeping, Moment, Row
    from queenbee.store.issues_write import Replaced


class Compared:
    """What the file and the ledger have of each other."""

    def __init__(self) -> None:
        self.made_elsewhere: dict[str, Fields] = {}
        """What the ledger lacks: the fields that another program changed, by issue."""
        self.rows: dict[str, Fields] = {}
        """The rows that the file should have in place of its own."""
        self.missing: list[str] = []
        """Those of them that it does not have."""
        self.removed: list[str] = []
        """The issues that somebody removed from the file on purpose, by a commit."""


def mended(keeping: Keeping, rows: dict[str, Row], moment: Moment) -> dict[str, Row]:
    """Returns the rows of a file that is not in step, as they are to be."""
    found = _compared(keeping, rows, moment)
    if not (found.made_elsewhere or found.rows):
        keeping.note(moment, found.removed, has_all=False)
    return {**rows, **found.rows}


def settled(keeping: Keeping, edits: Sequence[Edit], *, everything: bool) -> Settled:
    """Returns what a write does to the file and the ledger, with these edits. With `everything`,
    the rows of other programs go to the ledger, too. Needs the hive's lock.
    """
    moment = keeping.moment()
    done = Settled(keeping, moment)
    if keeping.is_owned():
        done.edits += edits
        return done
    if keeping.is_in_step(moment) and not everything:
        rows = rows_of(keeping.path, {edit.issue_id for edit in edits})
        done.has_all, done.removed = keeping.has_all(), keeping.removed()
    else:
        rows = newest(read_rows_exactly(keeping.path))
        found = _compared(keeping, rows, moment, again=True)
        done.take(found, rows, can_restore=keeping.store.asks_git is not None)
        rows = {**rows, **found.rows}
        done.has_all = everything or keeping.store.engine.shared
        if done.has_all:
            done.adopt(rows)
    for edit in edits:
        done.add(edit, rows)
    return done


def _compared(
    keeping: Keeping, rows: Mapping[str, Row], moment: Moment, *, again: bool = False
) -> Compared:
    state, found = keeping.store.state(KIND), Compared()
    for fields in state.everything():
        issue_id, row, kept = str(fields["id"]), rows.get(str(fields["id"])), as_row(fields)
        if row is None:
            found.missing.append(issue_id)
            continue
        if row == kept or not difference(row, kept):
            continue
        kept = as_row(state.exact(issue_id) or fields)  # With every digit.
        changes = made_elsewhere(state.history(issue_id), kept, row)
        if changes:
            found.made_elsewhere[issue_id] = changes
        if difference(row, merged := fitting_status(with_changes(kept, changes))):
            found.rows[issue_id] = merged
    found.removed = _removed(keeping, found.missing, moment, again=again)
    found.missing = [each for each in found.missing if each not in found.removed]
    for issue_id in found.missing:
        found.rows[issue_id] = as_row(state.exact(issue_id) or {"id": issue_id})
    return found


def _removed(keeping: Keeping, missing: Sequence[str], moment: Moment, *, again: bool) -> list[str]:
    """Returns those of the missing rows that a commit removed. Readers ask git once for each
    version of the file. Without git, such a row is shown, and left out of the file.
    """
    known, ask = keeping.removed(), keeping.store.asks_git
    unknown = [each for each in missing if each not in known]
    is_asked = not again and keeping.noted().get("asked") == repr(moment[0])
    if unknown and ask is not None and not is_asked:
        known.update(ask(keeping.store.layout, unknown))
        keeping.note_asked(moment, known)
    return [each for each in missing if each in known]


def _rev(keeping: Keeping, issue_id: str) -> int:
    """Returns the revision of a row in the ledger; 0 if it is not there."""
    fields = keeping.store.state(KIND).get(issue_id)
    rev = fields["rev"] if fields else 0
    assert isinstance(rev, int)
    return rev


def _fits(issue_id: str, row: Row) -> bool:
    """Returns whether a row, or a change of it, fits into a line of the file and of the ledger."""
    try:
        encode(as_line(issue_id, MAX_REV, row))
    except InvalidInput:
        return False
    return True


class Settled:
    """What one write does to the tracker's file and to the ledger."""

    def __init__(self, keeping: Keeping, moment: Moment) -> None:
        self._keeping = keeping
        self._moment = moment
        self._revs: dict[str, int] = {}
        self._in_step = not keeping.is_owned()
        """Whether file and ledger are in step once both are written."""
        self.is_overtaken = False
        """Whether another program wrote the file between the comparison and the edits."""
        self.has_all = False
        """Whether the ledger has all rows of the file then."""
        self.removed = set[str]()
        """The rows that stay away."""
        self.edits: list[Edit] = []
        self.lines: list[Fields] = []

    def take(self, found: Compared, rows: Mapping[str, Row], *, can_restore: bool) -> None:
        """Adds what file and ledger lack of each other."""
        for issue_id, changes in found.made_elsewhere.items():
            if _fits(issue_id, changes):
                self._change(issue_id, changes)
        absent = set() if can_restore else {*found.missing}
        # What others made too large is shown, and no reason to refuse a write.
        absent.update(each for each, row in found.rows.items() if not _fits(each, row))
        self._in_step = not absent
        self.removed.update(found.removed)
        self.edits += [
            Edit(row, rows.get(each)) for each, row in found.rows.items() if each not in absent
        ]

    def adopt(self, rows: Mapping[str, Row]) -> None:
        """Adds the rows that the ledger does not have, and can have."""
        for issue_id, row in rows.items():
            if self._rev(issue_id) == 0 and _fits(issue_id, row):
                self._change(issue_id, row)

    def add(self, edit: Edit, rows: dict[str, Row]) -> None:
        """Adds an edit of one of these rows, which are as the edits before left them."""
        self.edits.append(edit)
        self.removed.discard(edit.issue_id)
        before = rows.get(edit.issue_id)
        after = edit.made_on(dict(before)) if before is not None else dict(edit.row)
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
            self._keeping.note(moment, self.removed, has_all=self.has_all)

    def _rev(self, issue_id: str) -> int:
        if issue_id not in self._revs:
            self._revs[issue_id] = _rev(self._keeping, issue_id)
        return self._revs[issue_id]

    def _change(self, issue_id: str, changes: Row) -> None:
        self._revs[issue_id] = self._rev(issue_id) + 1
        self.lines.append(as_line(issue_id, self._revs[issue_id], changes))
