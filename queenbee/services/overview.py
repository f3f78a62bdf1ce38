"""Everything about one issue at once, for `queen show` and for agents' context."""

from __future__ import annotations

from queenbee.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.records import Assignment, Message, Reservation
    from queenbee.services.hive import Services


class Overview:
    """An issue with what the hive knows about it."""

    def __init__(
        self,
        issue_id: str,
        issue: Issue | None,
        blockers: list[str],
        assignments: list[Assignment],
        reservations: list[Reservation],
        messages: list[Message],
        bead: Mapping[str, object] | None = None,
    ) -> None:
        self.issue_id = issue_id
        self.issue = issue
        """None where the tracker does not have it, but records name it."""
        self.blockers = blockers
        self.assignments = assignments
        """Oldest first, ended ones included."""
        self.reservations = reservations
        """The live leases made for it."""
        self.messages = messages
        """Its thread, oldest first."""
        self.bead = bead
        """Its checks, evidence and gates, where it is a bead."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "issue_id": self.issue_id,
            "issue": self.issue.to_dict() if self.issue else None,
            "blocked_by": self.blockers,
            "assignments": [each.to_dict() for each in self.assignments],
            "reservations": [each.to_dict() for each in self.reservations],
            "messages": [each.to_dict() for each in self.messages],
            **({"bead": self.bead} if self.bead is not None else {}),
        }


def overview(hive: Services, issue_id: str) -> Overview:
    """Returns what is known about an issue. Raises `NotFound` where nothing is."""
    issue = hive.issues.get_or_none(issue_id)
    assignments = hive.assignments.find(issue_id=issue_id, status="all")
    reservations = [each for each in hive.reservations.find() if each.issue_id == issue_id]
    try:
        messages = hive.messages.thread(issue_id)
    except NotFound:
        messages = []
    if issue is None and not (assignments or reservations or messages):
        hive.issues.get(issue_id)
    blockers = hive.issues.blockers(issue) if issue is not None else []
    bead = hive.documents.about(issue_id, issue)
    return Overview(issue_id, issue, blockers, assignments, reservations, messages, bead)
