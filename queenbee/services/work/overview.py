"""Everything about one issue at once, for `queen show` and for agents' context."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.records import Assignment, Message, Reservation
    from queenbee.services.hive import Services


_LATELY = 200
"""So many of the newest messages are looked through for the name of the issue."""


class Overview:
    """An issue with what the hive knows about it."""

    def __init__(self, hive: Services, issue_id: str) -> None:
        self.issue_id: str = hive.issue_id(issue_id, recorded=True)
        issue_id = self.issue_id
        self.deleted: Issue | None = hive.issues.tombstone(issue_id)
        """Its last row, if the tracker has deleted it."""
        self.issue: Issue | None = hive.issues.get_or_none(issue_id)
        """None if the tracker does not have it, but records mention it."""
        self.blockers: list[str] = (
            hive.issues.blockers(self.issue) if self.issue is not None else []
        )
        self.assignments: list[Assignment] = hive.assignments.find(issue_id=issue_id, status="all")
        """Oldest first, ended ones included."""
        ended = (one for one in reversed(self.assignments) if one.status == "released")
        self.given_back: Assignment | None = next((one for one in ended if one.reason), None)
        """The last one that ended without it being done, if somebody said why."""
        self.reservations: list[Reservation] = [
            lease for lease in hive.reservations.find() if lease.issue_id == issue_id
        ]
        """The live leases made for it."""
        self.messages: list[Message] = _thread(hive, issue_id)
        """Its thread, oldest first."""
        known = self.issue or self.deleted
        if known is None and not (self.assignments or self.reservations or self.messages):
            hive.issues.get(issue_id)
        self.bead: Mapping[str, object] | None = hive.documents.about(issue_id, self.issue)
        """Its checks, evidence and gates, if it is a bead."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        metadata = self.issue.get("metadata") if self.issue else None
        return {
            "issue_id": self.issue_id,
            "issue": self.issue.to_dict() if self.issue else None,
            # Where `bd show --json` has it.
            **({"metadata": metadata} if metadata is not None else {}),
            **({"deleted": self.deleted.to_dict()} if self.deleted else {}),
            "blocked_by": self.blockers,
            "assignments": [each.to_dict() for each in self.assignments],
            "reservations": [each.to_dict() for each in self.reservations],
            "messages": [each.to_dict() for each in self.messages],
            **({"bead": self.bead} if self.bead is not None else {}),
        }


def _thread(hive: Services, issue_id: str) -> list[Message]:
    """Returns the messages about an issue, and those that only name it."""
    found = []
    with suppress(NotFound):
        found = hive.messages.thread(issue_id)
    known = {each.id for each in found}
    names = re.compile(rf"(?<![\w.-]){re.escape(issue_id)}(?![\w-]|\.\w)")
    for each in hive.messages.recent(limit=_LATELY):
        if each.id not in known and names.search(f"{each.subject}\n{each.body}"):
            found.append(each)
    return sorted(found, key=lambda each: each.age)


def overview(hive: Services, issue_id: str) -> Overview:
    """Returns what is known about an issue. Raises `NotFound` if nothing is."""
    return hive.looked_for(lambda: Overview(hive, issue_id))
