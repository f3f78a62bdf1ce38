"""What happened to a sprint bead: attempts, judgements, the pull request, the end.

Pure: each function returns the changed bead, unknown keys included. `docs/sprint-beads.md`; after
the document on sprint beads, "Agent Execution Tracking" and "Output Tracking".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

from queenbee._hashing import sha256
from queenbee.core.row_edits import later_than
from queenbee.core.timestamps import format_ms
from queenbee.documents.findings import Finding, errors_in, in_short
from queenbee.documents.issue_rows import Row
from queenbee.documents.sprints.reports import report_findings
from queenbee.documents.sprints.sprint_bead import MERGE, WORK, SprintBead, part_findings
from queenbee.errors import Conflict, InvalidInput, NotFound

_PULL = re.compile(
    r"https?://[^\s/]+/\S*?(?:/pull/|/pulls/|/merge_requests/)([0-9]{1,9})/?(?:[?#]\S*)?"
)
_URL = re.compile(r"https?://[^\s/]+\S*")
_STATUSES = {"pass": "passed", "fail": "failed", "stop": "failed"}


class InvalidRecord(InvalidInput):
    """A malformed record of a bead's history; `findings` lists every error."""

    code = "invalid_record"
    findings: Sequence[Finding] = ()


class NoAttemptLeft(Conflict):
    """The bead has used up its attempts, or a judgement said to stop."""

    code = "no_attempt_left"


def record_dev_execution(bead: Row, execution: Mapping[str, Any], *, now_ms: int) -> Row:
    """Returns the bead with one more attempt of its dev agent.

    If `attempt` is left out, it is the next one. The same record again changes nothing. Raises
    `InvalidRecord`, or `NoAttemptLeft` past `max_retry_attempts` and after a `stop`.
    """
    read = _sprint(bead)
    number = read.last_attempt + 1
    record = {"attempt": number, **execution}
    _refuse(part_findings("DevExecution", record), "execution")
    if _is_on_record(execution, read.dev_executions):
        return bead
    if record["attempt"] != number:
        raise InvalidRecord(
            f"attempt {record['attempt']} does not follow attempt {number - 1}",
            hint=f"leave attempt out, or say {number}",
            findings=[Finding("attempt", "must be the next one")],
        )
    _refuse_attempt(read, number)
    changed, metadata = _opened(bead, now_ms)
    metadata["dev_agent_executions"] = [*read.dev_executions, record]
    metadata["attempt_count"] = number
    _comment(changed, record, f"attempt {number}: {record['status']}")
    # As in the document's example, the first session is kept: it can be asked about the work.
    if not metadata.get("dev_agent_session_id"):
        metadata["dev_agent_session_id"] = record["session_id"]
    return changed


def record_qa_execution(bead: Row, execution: Mapping[str, Any], *, now_ms: int) -> Row:
    """Returns the bead with one more judgement by one of its QA agents.

    If `attempt` is left out, it is the last one. What the agent reported (status, message,
    details) must match the agent's `output_schema`. The same record again changes nothing. Raises
    `InvalidRecord`, or `NotFound` for an agent or an attempt that the bead does not have.
    """
    read = _sprint(bead)
    if read.last_attempt == 0 and "attempt" not in execution:
        raise NotFound(
            f"{bead.get('id')} has no attempt to judge yet",
            hint="record the dev agent's execution first",
        )
    record = {"attempt": read.last_attempt, **execution}
    _refuse(part_findings("QAExecution", record), "execution")
    if _is_on_record(execution, read.qa_executions):
        return bead
    if record["attempt"] > read.last_attempt:
        raise NotFound(
            f"there is no attempt {record['attempt']} of {bead.get('id')} to judge",
            hint="record the dev agent's execution first",
        )
    agent = _qa_agent(read, record["agent_path"])
    schema = agent.get("output_schema")
    if isinstance(schema, dict):
        faults = report_findings(_report_of(record, schema), schema)
    else:
        faults = [Finding("output_schema", "the agent has none")]
    _refuse(faults, "report")
    changed, metadata = _opened(bead, now_ms)
    metadata["qa_agent_executions"] = [*read.qa_executions, record]
    said = f"attempt {record['attempt']}: {record['status']}: {record['message']}"
    _comment(changed, record, said)
    return changed


def record_scrum_result(bead: Row, result: Mapping[str, Any], *, now_ms: int) -> Row:
    """Returns the bead with the scrum master's final result, and the pull request and the session
    that it names.

    Raises `InvalidRecord` for a result that belongs to another bead, contradicts itself, or
    counts more attempts than `max_retry_attempts`.
    """
    record = dict(result)
    _refuse(part_findings("ScrumResult", record), "result")
    read = _sprint(bead)
    _refuse(_scrum_rules(read, record), "result")
    if read.metadata.get("scrum_result") == record:
        return bead
    changed, metadata = _opened(bead, now_ms)
    metadata["scrum_result"] = record
    metadata["attempt_count"] = record["attempt_count"]
    if isinstance(session := record.get("session_id"), str):
        metadata["scrum_master_session_id"] = session
    _set_pull_request(changed, record.get("pr_url"), record.get("pr_number"))
    return changed


def record_pull_request(bead: Row, url: str, *, number: int | None = None, now_ms: int) -> Row:
    """Returns the bead with its pull request in `pr_url`, `pr_number` and `external_ref`.

    If no number is given, it is read from a GitHub or GitLab URL. Raises `InvalidInput`.
    """
    if _URL.fullmatch(url) is None:
        raise InvalidInput(f"{url!r} is not an http or https URL")
    if number is not None and number < 1:
        raise InvalidInput(f"{number} is not a pull request number")
    read = _sprint(bead)
    changed, metadata = _opened(bead, now_ms)
    _set_pull_request(changed, url, number)
    return bead if metadata == read.metadata else changed


def attempts_left(bead: Row) -> int:
    """Returns how many attempts the bead still has: 0 after a `stop`."""
    read = _sprint(bead)
    return 0 if read.stopped else max(0, read.max_attempts - read.last_attempt)


def next_step(bead: Row) -> Literal["develop", "judge", "finish", "give up"]:
    """Returns what the document's loop does next with a bead.

    `judge` while an agent has not judged the last attempt, `finish` when all let it pass,
    `develop` when there is an attempt to make, else `give up`.
    """
    read = _sprint(bead)
    worked = bool(read.dev_executions) and read.dev_executions[-1].get("status") == "completed"
    verdicts = {path: str(one.get("status")) for path, one in read.judgements().items()}
    agents = {str(agent.get("agent_path")) for agent in read.qa_agents}
    if read.fatal or "stop" in verdicts.values():
        return "give up"
    if worked and set(verdicts.values()) <= {"pass"}:
        return "finish" if agents <= set(verdicts) else "judge"
    return "develop" if attempts_left(bead) else "give up"


def feedback(bead: Row) -> str | None:
    """Returns what the QA agents found in the last attempt, for the next one to fix."""
    read = _sprint(bead)
    messages = [
        f"{record.get('agent_path')}: {record.get('message')}"
        for record in read.qa_executions
        if record.get("attempt") == read.last_attempt and record.get("status") != "pass"
    ]
    return "\n".join(messages) or None


def has_history(row: Mapping[str, Any]) -> bool:
    """Returns whether a sprint bead has a recorded attempt, judgement or fatal result."""
    read = SprintBead(row)
    return row.get("issue_type") in (WORK, MERGE) and bool(
        read.dev_executions or read.qa_executions or read.fatal
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
            _as_check(path, judged.get(path, {"message": f"has not judged attempt {attempt}"}))
            for path in (str(agent.get("agent_path")) for agent in read.qa_agents)
        ],
    }


def _as_check(path: str, judgement: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": path,
        "status": _STATUSES.get(str(judgement.get("status")), "skipped"),
        "severity": "error",
        "exit_code": None,
        "duration_s": 0.0,
        "reason": str(judgement.get("message")),
        "evidence": None,
    }


def _report_of(execution: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the report behind an execution, as the agent's `output_schema` describes it.

    An execution keeps in `details` everything that an agent reported beyond status and message; a
    schema defines such members either in a `details` object or beside the two.
    """
    details = execution.get("details") or {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    beside = {
        name: value
        for name, value in details.items()
        if "details" not in properties or name in properties
    }
    inside = {"details": details} if "details" in properties and "details" in execution else {}
    both = {name: execution[name] for name in ("status", "message") if name in execution}
    return {**beside, **inside, **both}


def _opened(bead: Row, now_ms: int) -> tuple[Row, dict[str, Any]]:
    """Returns a copy of the bead, later than it, and the copy's metadata."""
    changed = deepcopy(bead) | {"updated_at": later_than(bead, now_ms)}
    return changed, changed["metadata"]


def _comment(bead: Row, record: Mapping[str, Any], text: str) -> None:
    """Adds what an agent did or said to the bead's comments, which trackers show."""
    had = bead.get("comments")
    kept = [each for each in had if isinstance(each, dict)] if isinstance(had, list) else []
    comment = {
        "issue_id": bead.get("id"),
        "author": os.path.basename(record["agent_path"]),
        "text": text,
        "created_at": record["completed_at"] or bead["updated_at"],
    }
    # Some trackers read numbers only, and one number must not be two comments of one tracker.
    digest = sha256(json.dumps([comment, record["session_id"]]).encode()).hexdigest()
    bead["comments"] = [*kept, {"id": int(digest[:13], 16), **comment}]


def _set_pull_request(bead: Row, url: str | None, number: int | None) -> None:
    if url is None:
        return
    match = _PULL.fullmatch(url)
    if number is None and match is not None:
        number = int(match[1])
    bead["external_ref"] = url
    bead["metadata"] |= {"pr_url": url, "pr_number": number}


def _scrum_rules(read: SprintBead, record: dict[str, Any]) -> list[Finding]:
    found = []
    bead_id, attempts = read.row.get("id"), record["attempt_count"]
    if record["bead_id"] != bead_id:
        found.append(Finding("bead_id", f"is {record['bead_id']!r}, not {bead_id!r}"))
    if attempts > read.max_attempts:
        message = f"exceeds max_retry_attempts, {read.max_attempts}"
        found.append(Finding("attempt_count", message))
    if attempts < read.last_attempt:
        message = f"is less than the {read.last_attempt} recorded attempts"
        found.append(Finding("attempt_count", message))
    if record["success"]:
        message = "is not a pass, so success must be false"
        found += [
            Finding(f"qa_results[{index}].status", message)
            for index, result in enumerate(record.get("qa_results") or ())
            if result["status"] != "pass"
        ]
        last = read.dev_executions[-1].get("status") if read.dev_executions else None
        judged = any(one.get("attempt") == read.last_attempt for one in read.qa_executions)
        if last not in (None, "completed") and not judged and not record.get("qa_results"):
            message = f"must be false: the last attempt ended as {last}, and nobody has judged it"
            found.append(Finding("success", message))
        if record["fatal"]:
            found.append(Finding("fatal", "must be false if success is true"))
    return found


def _refuse_attempt(read: SprintBead, attempt: int) -> None:
    bead_id, limit = read.row.get("id"), read.max_attempts
    if read.stopped:
        raise NoAttemptLeft(
            f"{'its result is fatal' if read.fatal else 'a QA agent said to stop'}: "
            f"{bead_id} is not retried",
            hint="ask a person to look at it",
        )
    if attempt > limit:
        raise NoAttemptLeft(
            f"{bead_id} has used all its {limit} attempts",
            hint="record the scrum result, or raise max_retry_attempts",
            max_retry_attempts=limit,
        )


def _refuse(findings: list[Finding], what: str) -> None:
    errors = errors_in(findings)
    if errors:
        raise InvalidRecord(f"the {what} is not valid: {in_short(errors)}", findings=findings)


def _sprint(bead: Row) -> SprintBead:
    if bead.get("issue_type") not in (WORK, MERGE) or not isinstance(bead.get("metadata"), dict):
        raise InvalidInput(
            f"{bead.get('id')} is not a sprint bead", hint="queen bead validate shows what it lacks"
        )
    return SprintBead(bead)


def _is_on_record(execution: Mapping[str, Any], history: list[dict[str, Any]]) -> bool:
    # One session does not work twice between the same two instants: an entry without an attempt
    # that adds nothing to a record is that record again.
    return any({**record, **execution} == record for record in history)


def _qa_agent(read: SprintBead, path: str) -> dict[str, Any]:
    for agent in read.qa_agents:
        if agent.get("agent_path") == path:
            return agent
    names = ", ".join(str(agent.get("agent_path")) for agent in read.qa_agents)
    raise NotFound(
        f"{path!r} is not a QA agent of {read.row.get('id')}", hint=f"its agents are {names}"
    )
