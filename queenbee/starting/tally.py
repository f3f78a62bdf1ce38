"""What an agent has landed and given back since its run began, as the records say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Assignment, AssignmentStatus
    from queenbee.workflows.complete_hive import Hive


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
