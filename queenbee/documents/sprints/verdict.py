"""Whether the QA agents of a sprint bead let its last attempt pass, as a run of checks.

A sprint bead has no commands of its own: its checks are the judgements on record. They count from
the first attempt that is recorded; a bead that nobody records anything of has no checks.
"""

from __future__ import annotations

from queenbee.core.timestamps import format_ms
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.sprints.history import next_step
from queenbee.documents.sprints.rules import MERGE, WORK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_STATUSES = {"pass": "passed", "fail": "failed", "stop": "failed"}


def has_history(row: Mapping[str, Any]) -> bool:
    """Returns whether an attempt or a judgement of a sprint bead is on record."""
    metadata = metadata_of(row)
    return row.get("issue_type") in (WORK, MERGE) and bool(
        metadata.get("dev_agent_executions") or metadata.get("qa_agent_executions")
    )


def describe_judges(row: Mapping[str, Any]) -> list[str]:
    """Returns a line for each QA agent whose pass a sprint bead needs."""
    return [
        f"{place}. {agent.get('agent_path')} lets the last attempt pass"
        for place, agent in enumerate(_agents(row), 1)
    ]


def sprint_verdict(row: dict[str, Any], *, now_ms: int) -> dict[str, Any]:
    """Returns the judgements on the last attempt of a sprint bead, as the record of a run."""
    attempt = max((one["attempt"] for one in _executions(row, "dev_agent_executions")), default=0)
    judged = {
        str(one.get("agent_path")): one
        for one in _executions(row, "qa_agent_executions")
        if one["attempt"] == attempt
    }
    results = [_result(str(agent.get("agent_path")), judged, attempt) for agent in _agents(row)]
    now = format_ms(now_ms)
    return {
        "subject_kind": "bead",
        "subject_id": row["id"],
        "attempt": attempt,
        "started_at": now,
        "finished_at": now,
        "verdict": "passed" if next_step(row) == "finish" else "failed",
        "results": results,
    }


def _result(path: str, judged: Mapping[str, dict[str, Any]], attempt: int) -> dict[str, Any]:
    judgement = judged.get(path)
    said = judgement or {"message": f"has not judged attempt {attempt}"}
    return {
        "name": path,
        "status": _STATUSES.get(str(said.get("status")), "skipped"),
        "severity": "error",
        "exit_code": None,
        "duration_s": 0.0,
        "reason": str(said.get("message")),
        "evidence": None,
    }


def _agents(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _objects(metadata_of(row).get("qa_agents"))


def _executions(row: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    executions = _objects(metadata_of(row).get(name))
    return [one for one in executions if type(one.get("attempt")) is int]


def _objects(values: object) -> list[dict[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
