"""Edits of the tracker's rows: what changes in a row, field by field.

An edit is made on the version of the row that the file has when it is written, so that what another
program changed in the meantime stays. `docs/format.md`, section "Issues".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.fold import Fields


class Edit:
    """What one write does to the row of one issue."""

    __slots__ = ("changes", "issue_id", "row")

    def __init__(self, row: Mapping[str, object], was: Mapping[str, object] | None = None) -> None:
        """Takes the whole row, and what it was before; None for a row that was not there."""
        self.issue_id = str(row["id"])
        self.row = row
        """The whole row, for a file that has none."""
        self.changes = difference(was or {}, row)

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
