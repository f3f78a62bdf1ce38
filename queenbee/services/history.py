"""The life of one record: its lines in order, who wrote each, when, and what it changed."""

from __future__ import annotations

from queenbee.core.fold import newest_ms
from queenbee.core.timestamps import format_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.core.fold import Fields


class Revision:
    """One line of a record."""

    def __init__(self, fields: Fields, changes: Fields, at: str | None, by: str | None) -> None:
        self.fields = fields
        self.changes = changes
        """The fields that differ from the line before it."""
        self.at = at
        self.by = by
        """Who wrote it, as far as the record says."""
        rev = fields.get("rev")
        self.rev = rev if isinstance(rev, int) else 1

    def to_dict(self) -> dict[str, object]:
        """Returns the line's fields with `at`, `by` and `changes`."""
        return {
            "rev": self.rev,
            "at": self.at,
            "by": self.by,
            "changes": self.changes,
            "line": self.fields,
        }


def revisions(kind: str, lines: Iterable[Fields]) -> list[Revision]:
    """Returns the lines of one record, in the order of the fold, as revisions."""
    found: list[Revision] = []
    state: Fields = {}
    for line in lines:
        changes = {
            name: value
            for name, value in line.items()
            if name != "rev" and state.get(name) != value
        }
        found.append(
            Revision(line, changes, _at(line, changes), _by(kind, line, changes, not found))
        )
        state = {**state, **line}
    return found


def _at(line: Fields, changes: Fields) -> str | None:
    # When a lease will end is no time at which anything was written.
    stamps = {name: value for name, value in changes.items() if name != "expires_at"}
    instant = newest_ms(stamps)
    if instant < 0:
        instant = newest_ms({name: v for name, v in line.items() if name != "expires_at"})
    return format_ms(instant) if instant >= 0 else None


def _by(kind: str, line: Fields, changes: Fields, first: bool) -> str | None:
    if kind == "messages":
        who = line.get("from") if first else line.get("to")
        if "deleted" in changes:
            who = line.get("deleted_by") or line.get("from")
    elif kind == "assignments":
        who = line.get("assigned_by") if first else line.get("updated_by") or line.get("droid")
    else:
        who = (not first and line.get("released_by")) or line.get("droid")
    return who if isinstance(who, str) else None
