"""What services need to know about the documents of agents, without knowing their formats.

Beads, gates and their checks belong to the layers above, which override these methods. The answers
below are for a hive without documents. ADR 0008.
"""

from __future__ import annotations

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.core.beads import Issue
    from queenbee.services.diagnosis import Diagnosis
    from queenbee.store.trust import Proposal


class Documents:
    """The answers for a hive without documents."""

    def issues(self) -> Mapping[str, Issue]:
        """Returns the beads beside the tracker that count as issues, by id."""
        return {}

    def held_back(self, issues: Mapping[str, Issue]) -> Mapping[str, str]:
        """Returns the issues that nobody should start yet, each with the reason."""
        return {}

    def about(self, issue_id: str, issue: Issue | None) -> Mapping[str, object] | None:
        """Returns the checks, evidence and gates of an issue that is a bead, or None."""
        return None

    def unseen_commands(self) -> Sequence[Proposal]:
        """Returns the commands that nobody on this machine has seen, each once."""
        return ()

    def unseen_in(self, issue: Issue) -> Sequence[Proposal]:
        """Returns the commands of an issue's checks that nobody on this machine has seen."""
        return ()

    def examine(self) -> Iterable[Diagnosis]:
        """Returns what is wrong with the documents."""
        return ()

    def repair(self) -> None:
        """Completes interrupted writes, and does nothing else."""
