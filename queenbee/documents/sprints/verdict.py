"""Whether a sprint bead's QA agents passed its last attempt, in the form of a run of checks.

A sprint bead has no commands of its own: its checks are the recorded judgements. They count from
the first recorded attempt; a bead without a recorded attempt has no checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.timestamps import format_ms
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.sprints.bead import SprintBead
from queenbee.documents.sprints.history import next_step
from queenbee.documents.sprints.rules import MERGE, WORK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_STATUSES = {"pass": "passed", "fail": "failed", "stop": "failed"}


def has_history(row: Mapping[str, Any]) -> bool:
    """Returns whether a sprint bead has a recorded attempt or judgement."""
    metadata = metadata_of(row)
    return row.get("issue_type") in (WORK, MERGE) and bool(
        metadata.get("dev_agent_executions") or metadata.get("qa_agent_executions")
    )


def describe_judges(row: Mapping[str, Any]) -> list[str]:
    """Returns a line for each QA agent whose pass a sprint bead needs."""
    return [
        f"{number}. {agent.get('agent_path')} passes the last attempt"
        for number, agent in enumerate(SprintBead(row).qa_agents, 1)
    ]


def sprint_verdict(row: dict[str, Any], *, now_ms: int) -> dict[str, Any]:
    """Returns the judgements on the last attempt of a sprint bead, as the record of a run."""
    read = SprintBead(row)
    attempt, judged = read.last_attempt, read.judgements()
    now = format_ms(now_ms)
    return {
        "subject_kind": "bead",
        "subject_id": row["id"],
        "attempt": attempt,
        "started_at": now,
        "finished_at": now,
        "verdict": "passed" if next_step(row) == "finish" else "failed",
        "results": [
            _result(path, judged.get(path, {"message": f"has not judged attempt {attempt}"}))
            for path in (str(agent.get("agent_path")) for agent in read.qa_agents)
        ],
    }


def _result(path: str, judgement: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": path,
        "status": _STATUSES.get(str(judgement.get("status")), "skipped"),
        "severity": "error",
        "exit_code": None,
        "duration_s": 0.0,
        "reason": str(judgement.get("message")),
        "evidence": None,
    }
