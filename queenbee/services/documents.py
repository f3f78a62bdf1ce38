"""What services ask of the documents that agents hand over, without knowing any of them.

Beads, gates and their checks belong to the layers above. The whole hive answers these questions;
the answers here are those of a hive without documents. ADR 0008.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from queenbee.core.beads import Issue
    from queenbee.services.diagnosis import Diagnosis


class Documents:
    """The documents of a hive that has none."""

    def issues(self) -> Mapping[str, Issue]:
        """Returns the beads beside the tracker that count as issues, by id."""
        return {}

    def held_back(self, issues: Mapping[str, Issue]) -> Mapping[str, str]:
        """Returns which of these issues nobody should take up yet, each with the reason."""
        return {}

    def about(self, issue_id: str, issue: Issue | None) -> Mapping[str, object] | None:
        """Returns what is known of an issue as a bead: its checks, evidence and gates, or None."""
        return None

    def examine(self) -> Iterable[Diagnosis]:
        """Returns what is wrong with the documents."""
        return ()

    def repair(self) -> None:
        """Finishes what an interrupted write left half done, and nothing else."""
