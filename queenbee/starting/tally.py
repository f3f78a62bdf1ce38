"""What an agent has landed and given back since its run began, as the records say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Assignment, AssignmentStatus
    from queenbee.workflows.complete_hive import Hive


class Tally:
    """The issues that an agent has ended, each of which is counted once."""

    def __init__(self, hive: Hive, droid: str, landed: int) -> None:
        """Begins where `landed` issues of this run are counted already."""
        self._droid = droid
        self._before = len(self._ended(hive, "completed")) - landed
        self._released = {each.id for each in self._ended(hive, "released")}

    def landed(self, hive: Hive) -> list[str]:
        """Returns the issues that it has completed in this run, in their order."""
        return [each.issue_id for each in self._ended(hive, "completed")[self._before :]]

    def given_back(self, hive: Hive) -> list[Assignment]:
        """Returns what it has given back since this was asked last."""
        found = [each for each in self._ended(hive, "released") if each.id not in self._released]
        self._released.update(each.id for each in found)
        return found

    def _ended(self, hive: Hive, status: AssignmentStatus) -> Sequence[Assignment]:
        return hive.assignments.find(droid=self._droid, status=status)
