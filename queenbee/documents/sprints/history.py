"""What happened to a sprint bead: attempts, judgements, the pull request, the end.

Pure: each function returns the bead as it is afterwards, unknown keys included, and leaves its
argument alone. After the document on sprint beads, "Agent Execution Tracking" and "Output
Tracking". A bead's state is what the rules here leave of it: no attempt past
`max_retry_attempts`, none after a judgement of `stop`, no judgement of an attempt that was never
made or by an agent the bead does not name.
"""

from __future__ import annotations

import re
from copy import deepcopy

from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.documents.findings import Finding
from queenbee.documents.sprints.rules import MERGE, WORK
from queenbee.errors import Conflict, InvalidInput, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    Row = dict[str, Any]

DEFAULT_ATTEMPTS = 3

_PULL = re.compile(
    r"https?://[^\s/]+/\S*?(?:/pull/|/pulls/|/merge_requests/)([0-9]{1,9})/?(?:[?#]\S*)?"
)
_URL = re.compile(r"https?://[^\s/]+\S*")


class InvalidRecord(InvalidInput):
    """A record of a bead's history that is not well formed; `findings` has all that is wrong."""

    code = "invalid_record"


class NoAttemptLeft(Conflict):
    """The bead has used up its attempts, or a judgement said to stop."""

    code = "no_attempt_left"


def record_dev_execution(bead: Row, execution: Mapping[str, Any], *, now_ms: int) -> Row:
    """Returns the bead with one more attempt of its dev agent.

    `attempt` may be left out: it is the next one. The same record again changes nothing. Raises
    `InvalidRecord`, or `NoAttemptLeft` past `max_retry_attempts` and after a `stop`.
    """
    history = _history(bead, "dev_agent_executions")
    record = {"attempt": _last_attempt(bead) + 1, **execution}
    _refuse(_model_findings("DevExecution", record), "execution")
    if _is_on_record(execution, history):
        return bead
    if record["attempt"] != _last_attempt(bead) + 1:
        raise InvalidRecord(
            f"attempt {record['attempt']} does not follow attempt {_last_attempt(bead)}",
            hint=f"leave attempt out, or say {_last_attempt(bead) + 1}",
            findings=[Finding("attempt", "must be the next one")],
        )
    _refuse_attempt(bead, record["attempt"])
    changed, metadata = _opened(bead, now_ms)
    metadata["dev_agent_executions"] = [*history, record]
    metadata["attempt_count"] = record["attempt"]
    # The document's example keeps the first session, which can be asked about the work.
    if not metadata.get("dev_agent_session_id"):
        metadata["dev_agent_session_id"] = record["session_id"]
    return changed


def record_qa_execution(bead: Row, execution: Mapping[str, Any], *, now_ms: int) -> Row:
    """Returns the bead with one more judgement by one of its QA agents.

    `attempt` may be left out: it is the last one. What the agent reported (status, message,
    details) must fit the agent's `output_schema`. The same record again changes nothing. Raises
    `InvalidRecord`, or `NotFound` for an agent or an attempt that the bead does not have.
    """
    history = _history(bead, "qa_agent_executions")
    record = {"attempt": _last_attempt(bead), **execution}
    _refuse(_model_findings("QAExecution", record), "execution")
    if _is_on_record(execution, history):
        return bead
    if record["attempt"] > _last_attempt(bead):
        raise NotFound(
            f"there is no attempt {record['attempt']} of {bead.get('id')} to judge",
            hint="record the dev agent's execution first",
        )
    agent = _qa_agent(bead, record["agent_path"])
    _refuse(check_report(report_of(record, agent), agent), "report")
    changed, metadata = _opened(bead, now_ms)
    metadata["qa_agent_executions"] = [*history, record]
    return changed


def record_scrum_result(bead: Row, result: Mapping[str, Any], *, now_ms: int) -> Row:
    """Returns the bead with the scrum master's final result, and the pull request it names.

    Raises `InvalidRecord` for a result that belongs to another bead, contradicts itself, or
    counts more attempts than `max_retry_attempts`.
    """
    record = dict(result)
    _refuse(_model_findings("ScrumResult", record), "result")
    _refuse(_scrum_rules(bead, record), "result")
    if _metadata(bead).get("scrum_result") == record:
        return bead
    changed, metadata = _opened(bead, now_ms)
    metadata["scrum_result"] = record
    metadata["attempt_count"] = record["attempt_count"]
    _set_pull_request(changed, record.get("pr_url"), record.get("pr_number"))
    return changed


def record_pull_request(bead: Row, url: str, *, number: int | None = None, now_ms: int) -> Row:
    """Returns the bead with its pull request in `pr_url`, `pr_number` and `external_ref`.

    The number is read from a GitHub or GitLab URL where none is given. Raises `InvalidInput`.
    """
    if _URL.fullmatch(url) is None:
        raise InvalidInput(f"{url!r} is not an http or https URL")
    if number is not None and number < 1:
        raise InvalidInput(f"{number} is no number of a pull request")
    changed, metadata = _opened(bead, now_ms)
    _set_pull_request(changed, url, number)
    return bead if metadata == _metadata(bead) else changed


def attempts_left(bead: Row) -> int:
    """Returns how many attempts the bead still has: 0 after a `stop`."""
    if _stopped(bead):
        return 0
    return max(0, _limit(bead) - _last_attempt(bead))


def next_step(bead: Row) -> Literal["develop", "judge", "finish", "give up"]:
    """Returns what the document's loop does next with a bead.

    `judge` while an agent has not judged the last attempt, `finish` when all let it pass,
    `develop` when there is an attempt to make, else `give up`.
    """
    last = _last_attempt(bead)
    executions = _history(bead, "dev_agent_executions")
    worked = bool(executions) and executions[-1].get("status") == "completed"
    verdicts = _verdicts(bead, last)
    agents = {str(agent.get("agent_path")) for agent in _qa_agents(bead)}
    if "stop" in verdicts.values():
        return "give up"
    if worked and set(verdicts.values()) <= {"pass"}:
        return "finish" if agents <= set(verdicts) else "judge"
    return "develop" if attempts_left(bead) else "give up"


def feedback(bead: Row) -> str | None:
    """Returns what the QA agents found in the last attempt, for the next one to mend."""
    last = _last_attempt(bead)
    messages = [
        f"{record.get('agent_path')}: {record.get('message')}"
        for record in _history(bead, "qa_agent_executions")
        if record.get("attempt") == last and record.get("status") != "pass"
    ]
    return "\n".join(messages) or None


def check_report(report: dict[str, Any], agent: Mapping[str, Any]) -> list[Finding]:
    """Returns everything in a QA agent's report that its `output_schema` does not allow."""
    from queenbee.documents.sprints.reports import report_findings

    schema = agent.get("output_schema")
    if not isinstance(schema, dict):
        return [Finding("output_schema", "the agent has none")]
    return report_findings(report, schema)


def report_of(execution: Mapping[str, Any], agent: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the report behind an execution, as the agent's `output_schema` describes it.

    An execution keeps in `details` whatever an agent reported beyond status and message; a
    schema names such members either in a `details` object or beside the two.
    """
    details = execution.get("details") or {}
    schema = agent.get("output_schema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    properties = properties if isinstance(properties, dict) else {}
    beside = {
        name: value
        for name, value in details.items()
        if "details" not in properties or name in properties
    }
    inside = {"details": details} if "details" in properties and "details" in execution else {}
    told = {name: execution[name] for name in ("status", "message") if name in execution}
    return {**beside, **inside, **told}


def _opened(bead: Row, now_ms: int) -> tuple[Row, dict[str, Any]]:
    """Returns a copy of the bead, later than it, and the copy's metadata."""
    changed = deepcopy(bead)
    before = instant_ms(bead.get("updated_at"))
    changed["updated_at"] = format_ms(now_ms if before is None else max(now_ms, before + 1))
    return changed, changed["metadata"]


def _set_pull_request(bead: Row, url: str | None, number: int | None) -> None:
    if url is None:
        return
    match = _PULL.fullmatch(url)
    if number is None and match is not None:
        number = int(match[1])
    bead["external_ref"] = url
    bead["metadata"] |= {"pr_url": url, "pr_number": number}


def _scrum_rules(bead: Row, record: dict[str, Any]) -> list[Finding]:
    found = []
    if record["bead_id"] != bead.get("id"):
        found.append(Finding("bead_id", f"is {record['bead_id']!r}, not {bead.get('id')!r}"))
    if record["attempt_count"] > _limit(bead):
        message = f"is past max_retry_attempts, {_limit(bead)}"
        found.append(Finding("attempt_count", message))
    if record["attempt_count"] < _last_attempt(bead):
        message = f"is less than the {_last_attempt(bead)} attempts on record"
        found.append(Finding("attempt_count", message))
    failed = [
        place
        for place, result in enumerate(record.get("qa_results") or ())
        if result["status"] != "pass"
    ]
    if record["success"]:
        message = "is not a pass, so the whole is no success"
        found += [Finding(f"qa_results[{place}].status", message) for place in failed]
        if record["fatal"]:
            found.append(Finding("fatal", "a success stops no loop"))
    return found


def _refuse_attempt(bead: Row, attempt: int) -> None:
    limit = _limit(bead)
    if _stopped(bead):
        raise NoAttemptLeft(
            f"a QA agent said to stop: {bead.get('id')} is not tried again",
            hint="a person has to look at it",
        )
    if attempt > limit:
        raise NoAttemptLeft(
            f"{bead.get('id')} has used its {limit} attempts",
            hint="record the scrum result, or raise max_retry_attempts",
            max_retry_attempts=limit,
        )


def _refuse(findings: list[Finding], what: str) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        first = errors[0]
        at = f"{first.path} " if first.path else ""
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise InvalidRecord(
            f"the {what} is not valid: {at}{first.message}{more}", findings=findings
        )


def _model_findings(name: str, record: object) -> list[Finding]:
    from queenbee.documents.sprints import bead as sprint

    return sprint.model_findings(getattr(sprint, name), record)


def _metadata(bead: Row) -> dict[str, Any]:
    metadata = bead.get("metadata")
    if bead.get("issue_type") not in (WORK, MERGE) or not isinstance(metadata, dict):
        raise InvalidInput(
            f"{bead.get('id')} is no sprint bead", hint="queen bead validate tells what it lacks"
        )
    return metadata


def _history(bead: Row, name: str) -> list[dict[str, Any]]:
    records = _metadata(bead).get(name)
    return (
        [record for record in records if isinstance(record, dict)]
        if isinstance(records, list)
        else []
    )


def _is_on_record(execution: Mapping[str, Any], history: list[dict[str, Any]]) -> bool:
    # One session does not work twice from the same instant to the same instant: what leaves its
    # attempt out and says no more than a record does is that record, told again.
    return any({**record, **execution} == record for record in history)


def _last_attempt(bead: Row) -> int:
    attempts = [record.get("attempt") for record in _history(bead, "dev_agent_executions")]
    return max((attempt for attempt in attempts if type(attempt) is int), default=0)


def _limit(bead: Row) -> int:
    limit = _metadata(bead).get("max_retry_attempts", DEFAULT_ATTEMPTS)
    return limit if type(limit) is int and limit >= 1 else DEFAULT_ATTEMPTS


def _stopped(bead: Row) -> bool:
    return any(record.get("status") == "stop" for record in _history(bead, "qa_agent_executions"))


def _verdicts(bead: Row, attempt: int) -> dict[str, str]:
    """Returns the last judgement of each agent on an attempt; a row may hold anything."""
    return {
        str(record.get("agent_path")): str(record.get("status"))
        for record in _history(bead, "qa_agent_executions")
        if record.get("attempt") == attempt
    }


def _qa_agents(bead: Row) -> list[dict[str, Any]]:
    agents = _metadata(bead).get("qa_agents")
    return (
        [agent for agent in agents if isinstance(agent, dict)] if isinstance(agents, list) else []
    )


def _qa_agent(bead: Row, path: str) -> dict[str, Any]:
    for agent in _qa_agents(bead):
        if agent.get("agent_path") == path:
            return agent
    names = ", ".join(str(agent.get("agent_path")) for agent in _qa_agents(bead))
    raise NotFound(f"{path!r} is no QA agent of {bead.get('id')}", hint=f"its agents are {names}")
