"""Changes of the tracker's rows, field by field: how they are made, kept, and laid over the file.

`docs/format.md`, section "Issues"; ADR 0043.
"""

from __future__ import annotations

from queenbee.core.beads import DONE, changed_ms
from queenbee.core.timestamps import format_ms, instant_ms

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.fold import Fields


STAMP = "updated_at"


class Edit:
    """What one write does to the row of one issue."""

    __slots__ = ("changes", "issue_id", "row")

    def __init__(self, row: Mapping[str, object], was: Mapping[str, object] | None = None) -> None:
        """Takes the whole row, and what it was before; None for a row that was not there."""
        self.issue_id: str = str(row["id"])
        self.row: Mapping[str, object] = row
        """The whole row, for a file that has none."""
        self.changes: Fields = difference(was or {}, row)

    def made_on(self, row: Fields) -> Fields:
        """Returns a version of the row with the changes."""
        return with_changes(row, self.changes)


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> Fields:
    """Returns the fields that differ, as they are after; None for one that is gone."""
    names = dict.fromkeys([*after, *before])
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def with_changes(row: Mapping[str, object], changes: Mapping[str, object]) -> Fields:
    """Returns the row with these fields; None removes one. The order of the others stays."""
    return {name: value for name, value in {**row, **changes}.items()
            if value is not None or name not in changes}  # fmt: skip


def later_than(row: Mapping[str, object], now_ms: int) -> str:
    """Returns a time after the row's own, and `now_ms` unless the clock went back."""
    before = [instant_ms(row.get(name)) for name in (STAMP, "created_at")]
    latest = max((stamp for stamp in before if stamp is not None), default=now_ms - 1)
    return format_ms(max(now_ms, latest + 1))


def tombstone(row: Mapping[str, object], now_ms: int, by: str, reason: str | None) -> Fields:
    """Returns the row of a deleted issue, which keeps what it had."""
    at = later_than(row, now_ms)
    gone: Fields = {"status": "tombstone", "original_type": row.get("issue_type") or "task"}
    gone |= {STAMP: at, "deleted_at": at, "deleted_by": by}
    return {**row, **gone, **({"delete_reason": reason} if reason else {})}


_CLOSED = frozenset({"closed_at", "close_reason", "closed_by_session"})
_DELETED = frozenset({"deleted_at", "deleted_by", "delete_reason", "original_type"})
OF_STATUS = _CLOSED | _DELETED
"""What a row has because of its status."""


def fitting_status(row: Mapping[str, object]) -> Fields:
    """Returns the row without what only a closed or deleted issue has, if it is neither: Beads
    refuses such a row. Two clones make one if one closes an issue, and the other sets its status.
    """
    status = row.get("status")
    unfit = frozenset() if status in DONE else _CLOSED
    unfit = unfit if status == "tombstone" else unfit | _DELETED
    if unfit.isdisjoint(row):
        return {**row}
    return {name: value for name, value in row.items() if name not in unfit}


# What the ledger holds of a row: a line for each change, with the fields that changed. So the
# changes of two clones merge field by field, as those of other records do.

_OURS = frozenset({"rev", "read", "deleted", "_migration"})
_RENAMED = "row:"
"""Before a field of a row that has a name which means something in a ledger."""


def as_line(issue_id: str, rev: int, changes: Mapping[str, object]) -> Fields:
    """Returns the line of a ledger for a change; a field that is gone is null."""
    return {"id": issue_id, **{_stored(name): changes[name] for name in changes}, "rev": rev}


def as_row(fields: Mapping[str, object]) -> Fields:
    """Returns the row that the fields of a folded record stand for."""
    row = {
        name if name[:1] != _RENAMED[0] else _told(name): value
        for name, value in fields.items()
        if value is not None and name not in _OURS
    }
    return fitting_status(row)


class Laid:
    """The row of an issue that counts, and what in it only another program's file says."""

    __slots__ = ("row", "theirs")

    def __init__(self, row: Fields, theirs: Fields) -> None:
        self.row: Fields = row
        self.theirs: Fields = theirs
        """The fields that another program changed since, which no line of the ledger has."""


def laid_over(
    row: Mapping[str, object],
    kept: Mapping[str, object],
    history: Sequence[Mapping[str, object]],
    base: Mapping[str, object] | None = None,
) -> Laid:
    """Returns the row of the tracker's file with the changes of the ledger laid over it.

    `history` are the lines of the record in order, and `kept` is the row that they stand for. A
    field has the file's value if another program set it after the last line that has the field.
    `base` is what the file had when it was last compared, as far as that is known: what is as it
    was then, nobody changed since. `docs/format.md`, section "Issues".
    """
    at_ms, lines_ms = changed_ms(row), [*map(changed_ms, history)]
    times = {name: ms for line, ms in zip(history, lines_ms, strict=True) for name in line}
    is_version = at_ms in lines_ms
    theirs: Fields = {}
    for name, value in difference(kept, row).items():
        stored = _stored(name)
        if name == STAMP or (stored in times and base is not None and base.get(name) == value):
            continue
        if is_version and _was_so(history, stored, value):
            continue  # Git, or another clone, left an earlier version.
        if times.get(stored, at_ms) <= at_ms:
            theirs[name] = value
    if theirs and at_ms > changed_ms(kept):
        theirs[STAMP] = row.get(STAMP)
    return Laid(fitting_status(with_changes(kept, theirs)), theirs)


def _was_so(history: Sequence[Mapping[str, object]], stored: str, value: object) -> bool:
    if value is None and stored not in history[0]:
        return True
    return any(line[stored] == value for line in history if stored in line)


def _stored(name: str) -> str:
    """Returns what a ledger calls a field of a row."""
    return _RENAMED + name if name in _OURS or name.startswith(_RENAMED) else name


def _told(stored: str) -> str:
    """Returns what a row calls a field of a ledger. No name but `id` stands for its id."""
    name = stored.removeprefix(_RENAMED)
    return name if name in _OURS or name.startswith(_RENAMED) else stored
