"""Sprint beads by team: the document's loop runs one session for each team.

Pure. After the document on sprint beads, "Team Name Grouping": beads are grouped by `team_name`,
not by sprint or branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.sprints.bead_rules import MERGE, WORK
from queenbee.documents.sprints.numbers import SprintNumber, Track, is_sprint, parse_sprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_LAST = SprintNumber(Track((1 << 30, ""), ""), (0, ""), "")


def is_sprint_bead(row: Mapping[str, Any]) -> bool:
    """Returns whether an issue has the type of a sprint bead, or names a sprint."""
    return row.get("issue_type") in (WORK, MERGE) or "sprint" in metadata_of(row)


def team_of(row: Mapping[str, Any]) -> str:
    """Returns the bead's team; a bead that names none gets its own team."""
    metadata = metadata_of(row)
    team = metadata.get("team_name")
    if isinstance(team, str) and team.strip():
        return team
    return f"sprint-{metadata.get('sprint') or row.get('id')}"


def group_by_team(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Returns the beads of each team in the order of their sprints, the earliest team first."""
    teams: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=_order):
        teams.setdefault(team_of(row), []).append(row)
    return teams


def _order(row: Mapping[str, Any]) -> tuple[SprintNumber, str]:
    sprint = metadata_of(row).get("sprint")
    known = isinstance(sprint, str) and is_sprint(sprint)
    return (parse_sprint(str(sprint)) if known else _LAST, str(row.get("id")))
