"""What an agent has landed and given back since its run began, as the records say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.records import Message
from queenbee.core.timestamps import instant_ms
from queenbee.store.droids import roster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Assignment, AssignmentStatus
    from queenbee.workflows.complete_hive import Hive


def left_alone(hive: Hive) -> dict[str, str]:
    """Returns the issues that agents of a run gave back which landed others, each with who did
    last: as long as nobody has taken or changed one, or written about it.
    """
    noted = roster.given_back(hive.layout)
    found = {}
    for issue, by in hive.issues.given_back() if any(noted.values()) else ():
        since_ms = instant_ms(by.updated_at) or 0
        told = hive.state("messages").select({"issue_id": issue.id}, since_ms=since_ms + 1)
        is_new = (instant_ms(issue.updated_at) or 0) > since_ms
        is_new |= any(not Message(each).by_hive for each in told)
        if noted[issue.id] and not is_new:
            found[issue.id] = by.droid
    return found


class Tally:
    """The issues that an agent has ended, each of which is told once, in whatever order."""

    def __init__(self, hive: Hive, droid: str) -> None:
        self._hive, self._droid = hive, droid
        self._told = {each.id for each in (*self._ended("completed"), *self._ended("released"))}

    def landed(self) -> list[str]:
        """Returns the issues that it has completed since this was asked last."""
        return [each.issue_id for each in self._new("completed")]

    def given_back(self) -> list[Assignment]:
        """Returns what it has given back since this was asked last."""
        return self._new("released")

    def _new(self, status: AssignmentStatus) -> list[Assignment]:
        found = [each for each in self._ended(status) if each.id not in self._told]
        self._told.update(each.id for each in found)
        return found

    def _ended(self, status: AssignmentStatus) -> Sequence[Assignment]:
        return self._hive.assignments.find(droid=self._droid, status=status)
