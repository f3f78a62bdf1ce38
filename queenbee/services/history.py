"""The life of one record: its lines in order, who wrote each, when, and what it changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.fold import newest_ms
from queenbee.core.kinds import kind_of
from queenbee.core.timestamps import format_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.core.fold import Fields


@dataclass(frozen=True, slots=True)
class Revision:
    """One line of a record."""

    fields: Fields
    changes: Fields
    """The fields that differ from the line before it."""
    at: str | None
    by: str | None
    """Who wrote it, or None if the record does not say."""

    @property
    def rev(self) -> int:
        """Its number among the lines of the record, from 1."""
        rev = self.fields.get("rev")
        return rev if isinstance(rev, int) else 1

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
    author = kind_of(kind).author
    found: list[Revision] = []
    state: Fields = {}
    for line in lines:
        changes = {
            name: value
            for name, value in line.items()
            if name != "rev" and state.get(name) != value
        }
        by = author(line, changes, first=not found)
        by = by if isinstance(by, str) else None
        found.append(Revision(line, changes, written_at(line, changes), by))
        state = {**state, **line}
    return found


def written_at(line: Fields, changes: Fields) -> str | None:
    """Returns when a line was written, as it says itself; None if it does not."""
    # The end of a lease does not say when a line was written.
    stamps = {name: value for name, value in changes.items() if name != "expires_at"}
    instant = newest_ms(stamps)
    if instant < 0:
        instant = newest_ms({name: v for name, v in line.items() if name != "expires_at"})
    return format_ms(instant) if instant >= 0 else None
