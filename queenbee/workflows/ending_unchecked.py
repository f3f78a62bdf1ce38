"""Who may end an issue without its checks: no agent that `queen start` looks after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.errors import NotYours, QueenError
from queenbee.store.droids import roster
from queenbee.store.droids.agent_callers import calling_agent

if TYPE_CHECKING:
    from queenbee.workflows.complete_hive import Hive


def refuse_agent(hive: Hive, issue_id: str, does: str = "completes") -> None:
    """Raises `NotYours` for an agent of a team."""
    agent = calling_agent(hive.layout)
    if agent is not None:
        agent.refuse_unknown(f"it does not end {issue_id} without its checks")
    if agent or roster.of_tree(hive.layout):
        raise NotYours(
            f"no agent that queen start looks after {does} {issue_id} without its checks",
            hint=f"make them pass, or give it back: {suggested('queen release', issue_id)}",
        )


def refuse_end(hive: Hive, issue_id: str) -> None:
    """Raises `NotYours` for an agent of a team, if an issue has checks."""
    if has_checks(hive, issue_id):
        refuse_agent(hive, issue_id, "ends")


def has_checks(hive: Hive, issue_id: str) -> bool:
    """Returns whether an issue has a Definition of Done, also one that cannot be read."""
    try:
        return hive.documents.find_bead(issue_id) is not None
    except QueenError:
        return True
