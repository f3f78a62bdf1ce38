"""A phase gate: the rules of a phase, their results, and whether the next phase may begin.

Pure functions over the document, a plain dict in which unknown fields survive: each function
returns a new one. `spec/4-phase-gate.md`; `docs/gates.md` says what is added to it.
"""

from __future__ import annotations

import json
import os
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict

from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.documents.fields import id_problem
from queenbee.documents.findings import Finding
from queenbee.documents.gates.rule_fields import bad_patterns, rules_findings
from queenbee.documents.schema import schema_findings
from queenbee.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    Document = dict[str, Any]
    Status = Literal["pending", "in_progress", "passed", "failed"]

SCHEMA_VERSION = "1.0"
SCHEMA_PATH = os.path.join(os.path.dirname(__file__), "phase-gate.schema.json")

_NEW_GATE = "to judge it again, make a gate of another phase: queen gate new"

MAX_RESULTS_PER_RULE = 10
"""How many results of one rule are kept by default, as the document proposes."""

TRANSITIONS: dict[str, tuple[str, ...]] = {
    "pending": ("in_progress",),
    "in_progress": ("passed", "failed"),
    "passed": (),
    "failed": (),
}
"""There is no way back. After a failed attempt comes a new one, which starts at pending."""


class RuleResult(TypedDict):
    """What a gate keeps of one run of a rule."""

    result_id: str
    rule_id: str
    validated_at: str
    status: str
    message: str
    details: dict[str, Any]
    attempt: NotRequired[int]


class GateError(TypedDict):
    """What `status.errors` keeps of a failed result."""

    error_id: str
    timestamp: str
    message: str
    context: dict[str, Any]


class Counters(TypedDict):
    """How many rules of a gate have passed and failed, by their latest results."""

    passed_count: int
    failed_count: int
    total_count: int


class AttemptRecord(Counters):
    """One attempt at a gate, as its history keeps it."""

    attempt: int
    status: Status
    started_at: str | None
    completed_at: str | None
    errors: list[GateError]


@dataclass(frozen=True)
class Verdict:
    """What the latest result of every rule says, whatever `current_status` claims."""

    status: Status
    blocking: tuple[str, ...] = ()
    """Why the gate has not passed, a sentence for each rule of error severity."""
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the next phase may begin."""
        return self.status == "passed"


def gate_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a gate, Draft 7, after the document's tables."""
    with open(SCHEMA_PATH, encoding="utf-8") as file:
        schema: dict[str, Any] = json.load(file)
    return schema


def new_gate(
    *, workflow_id: str, phase_id: str, phase_name: str, now_ms: int, rules: Sequence[Document] = ()
) -> Document:
    """Returns a pending gate. Raises `InvalidInput` for an id or a rule that cannot be used."""
    for noun, text in (("workflow", workflow_id), ("phase", phase_id)):
        problem = id_problem(text)
        if problem:
            raise InvalidInput(f"{text[:80]!r} is not a {noun} id: {problem}")
    now = format_ms(now_ms)
    document: Document = {
        "schema_version": SCHEMA_VERSION,
        "metadata": {
            "phase_id": phase_id,
            "phase_name": phase_name,
            "workflow_id": workflow_id,
            "created_at": now,
            "started_at": None,
            "completed_at": None,
        },
        "validation_config": {"rules": []},
        "validation_execution": {"results": []},
        "status": {
            "current_status": "pending",
            "last_updated": now,
            "passed_count": 0,
            "failed_count": 0,
            "total_count": 0,
            "errors": [],
        },
    }
    for rule in rules:
        document = add_rule(document, rule)
    return document


def validate_gate(document: object) -> list[Finding]:
    """Returns everything that is wrong with a gate, or only odd, each with its path.

    For an unknown major version, that is the only finding; for a later minor version, an unknown
    value is odd, not wrong.
    """
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, str):
        problem = _version_problem(version)
        if problem:
            return [Finding("schema_version", problem)]
    later = isinstance(version, str) and version != SCHEMA_VERSION
    found = schema_findings(document, gate_schema(), enums="warning" if later else "error")
    if any(finding.severity == "error" for finding in found):
        # The rest relies on the shape.
        return found
    assert isinstance(document, dict)
    found += rules_findings(_rules(document), "validation_config.rules")
    return found + _identity_findings(document) + _status_findings(document)


def add_rule(document: Document, rule: Document) -> Document:
    """Returns the gate with one more rule, and its counters. Raises `InvalidInput`, `Conflict`.

    A gate that has passed takes no more: it could fail again.
    """
    gate = deepcopy(document)
    if _has_passed(gate):
        raise Conflict(f"{_name(gate)} has passed, and takes no more rules", hint=_NEW_GATE)
    gate["validation_config"]["rules"].append(deepcopy(rule))
    path = f"validation_config.rules[{len(_rules(gate)) - 1}]"
    errors = [finding for finding in validate_gate(gate) if finding.severity == "error"]
    findings = errors or bad_patterns(rule, path)
    if findings:
        first = f"{findings[0].path.removeprefix(path).lstrip('.')}: {findings[0].message}"
        raise InvalidInput(
            f"the rule cannot be used: {first.removeprefix(': ')}",
            hint="docs/gates.md lists what each type of rule takes",
            findings=findings,
        )
    return _recounted(gate)


def judge(document: Document) -> Verdict:
    """Returns the verdict: every rule of error severity must have passed when it last ran.

    A rule without a result, or with a skipped one, leaves it `in_progress`; a failed one makes it
    `failed`; warnings never block. A gate without rules, or without any result, has not passed.
    """
    latest = latest_results(document)
    blocking, warnings, failed = [], [], False
    for rule in _rules(document):
        result = latest.get(rule["rule_id"])
        status = result["status"] if result else "not run"
        if status == "passed":
            continue
        message = result.get("message") if result else None
        line = f"{rule.get('rule_name') or rule['rule_id']}: {status}"
        line = f"{line}: {message}" if message else line
        if rule.get("severity", "error") == "warning":
            warnings.append(line)
        else:
            blocking.append(line)
            failed = failed or status == "failed"
    if not _rules(document):
        blocking.append("it has no rules: nothing was checked")
    elif not latest and not blocking:
        blocking.append("none of its rules has run")
    begun = latest or document["status"]["current_status"] != "pending"
    waiting: Status = "in_progress" if begun else "pending"
    status = "failed" if failed else waiting if blocking else "passed"
    return Verdict(status, tuple(blocking), tuple(warnings))


def latest_results(document: Document) -> dict[str, RuleResult]:
    """Returns the latest result of each rule that has one.

    The latest is the one with the newest `validated_at`; among equals, the last in the list.
    """
    rule_ids = {rule["rule_id"] for rule in _rules(document)}
    latest: dict[str, RuleResult] = {}
    for result in _results(document):
        rule_id = result["rule_id"]
        if rule_id in rule_ids and (
            rule_id not in latest or _made_ms(result) >= _made_ms(latest[rule_id])
        ):
            latest[rule_id] = result
    return latest


def attempt_of(document: Mapping[str, Any]) -> int:
    """Returns the number of the current attempt, from 1."""
    return len(document["validation_execution"].get("previous_attempts", [])) + 1


def history(document: Document) -> list[AttemptRecord]:
    """Returns every attempt, oldest first: its number, status, times, counters and errors."""
    archived = document["validation_execution"].get("previous_attempts", [])
    return [*deepcopy(archived), _attempt_record(document)]


def begin_attempt(document: Document, now_ms: int) -> Document:
    """Returns the gate `in_progress`: its first attempt, one cut short, or a new one.

    A new attempt follows a failure, and a pass that the results contradict. Raises `Conflict` for
    a gate that has passed, and `InvalidInput` for one without rules.
    """
    gate = deepcopy(document)
    if not _rules(gate):
        raise InvalidInput(f"{_name(gate)} has no rules to run", hint="queen gate add-rule --help")
    if _has_passed(gate):
        raise Conflict(f"{_name(gate)} has passed, and is not run again", hint=_NEW_GATE)
    current = gate["status"]["current_status"]
    if current == "in_progress":
        # An attempt that another run started, or that was cut short, continues.
        return gate
    now = format_ms(now_ms)
    if current in ("failed", "passed"):
        attempts = gate["validation_execution"].setdefault("previous_attempts", [])
        attempts.append(_attempt_record(gate))
        gate["status"] |= {"current_status": "pending", "errors": []}
        gate["metadata"]["completed_at"] = None
    _move(gate, "in_progress", now)
    gate["metadata"]["started_at"] = now
    return _recounted(gate)


def finish_attempt(
    document: Document,
    results: Sequence[RuleResult],
    errors: Sequence[GateError],
    *,
    attempt: int,
    now_ms: int,
    max_results_per_rule: int = MAX_RESULTS_PER_RULE,
) -> Document:
    """Returns the gate with the results of a run of its rules, and its new status.

    0 for `max_results_per_rule` keeps all. Raises `Conflict` if another run has ended the attempt
    that the results belong to.
    """
    gate = deepcopy(document)
    status = gate["status"]
    if status["current_status"] != "in_progress" or attempt_of(gate) != attempt:
        raise Conflict(
            f"attempt {attempt} of {_name(gate)} was ended by another run, "
            f"and is {status['current_status']}: these results are not part of it",
            hint="queen gate status",
        )
    kept = _results(gate)
    kept += [{**_not_before(result, kept), "attempt": attempt} for result in results]
    ran = {result["rule_id"] for result in results}
    status["errors"] = [
        error for error in status.get("errors", []) if _rule_of(error) not in ran
    ] + deepcopy(list(errors))
    if max_results_per_rule:
        _trim(gate, max_results_per_rule)
    verdict = judge(gate)
    if verdict.status in ("passed", "failed"):
        _move(gate, verdict.status, format_ms(now_ms))
        gate["metadata"]["completed_at"] = format_ms(now_ms)
    return _recounted(gate)


def is_valid_transition(current: str, new: str) -> bool:
    """Returns whether one status may follow another within an attempt."""
    return new in TRANSITIONS.get(current, ())


def _has_passed(gate: Document) -> bool:
    return gate["status"]["current_status"] == "passed" and judge(gate).passed


def _move(gate: Document, new: str, now: str) -> None:
    current = gate["status"]["current_status"]
    if not is_valid_transition(current, new):
        raise Conflict(f"{_name(gate)} is {current}, and cannot become {new}", status=current)
    gate["status"] |= {"current_status": new, "last_updated": now}


def _recounted(gate: Document) -> Document:
    gate["status"] |= _counters(gate)
    return gate


def _counters(document: Document) -> Counters:
    latest = [result["status"] for result in latest_results(document).values()]
    return {
        "passed_count": latest.count("passed"),
        "failed_count": latest.count("failed"),
        "total_count": len(_rules(document)),
    }


def _attempt_record(gate: Document) -> AttemptRecord:
    status, metadata = gate["status"], gate["metadata"]
    return {
        "attempt": attempt_of(gate),
        "status": status["current_status"],
        "started_at": metadata.get("started_at"),
        "completed_at": metadata.get("completed_at"),
        **_counters(gate),
        "errors": deepcopy(status.get("errors", [])),
    }


def _not_before(result: RuleResult, kept: list[RuleResult]) -> RuleResult:
    """Returns the result, made the latest of its rule even if the clock was set back."""
    earlier = [_made_ms(one) for one in kept if one["rule_id"] == result["rule_id"]]
    made_ms = max([_made_ms(result), *earlier])
    return {**result, "validated_at": format_ms(made_ms)}


def _trim(gate: Document, most: int) -> None:
    by_rule: dict[str, list[int]] = {}
    results = _results(gate)
    for number, result in enumerate(results):
        by_rule.setdefault(result["rule_id"], []).append(number)
    kept = {
        number
        for numbers in by_rule.values()
        for number in sorted(numbers, key=lambda one: (_made_ms(results[one]), one))[-most:]
    }
    gate["validation_execution"]["results"] = [
        result for number, result in enumerate(results) if number in kept
    ]


def _version_problem(version: str) -> str | None:
    major, dot, minor = version[:20].partition(".")
    if not (dot and (major + minor).isascii() and major.isdigit() and minor.isdigit()):
        return f"{version[:20]!r} is not major.minor, as {SCHEMA_VERSION}"
    if int(major) != 1:
        return f"version {version[:20]} cannot be read here: only 1.x can"
    return None


def _identity_findings(document: Document) -> list[Finding]:
    found, seen = [], set()
    for number, rule in enumerate(_rules(document)):
        if rule["rule_id"] in seen:
            path = f"validation_config.rules[{number}].rule_id"
            found.append(Finding(path, f"is that of an earlier rule: {rule['rule_id'][:60]!r}"))
        seen.add(rule["rule_id"])
    result_ids = set()
    for number, result in enumerate(_results(document)):
        path = f"validation_execution.results[{number}]"
        if result["rule_id"] not in seen:
            message = f"names no rule of this gate: {result['rule_id'][:60]!r}"
            found.append(Finding(f"{path}.rule_id", message, "warning"))
        if result["result_id"] in result_ids:
            found.append(Finding(f"{path}.result_id", "is that of an earlier result", "warning"))
        result_ids.add(result["result_id"])
    return found


def _status_findings(document: Document) -> list[Finding]:
    status = document["status"]
    found = [
        Finding(f"status.{name}", f"is {status[name]}, but the results say {count}", "warning")
        for name, count in _counters(document).items()
        if status[name] != count
    ]
    current, verdict = status["current_status"], judge(document).status
    # While an attempt runs, the latest results may be those of the one before.
    if current not in (verdict, "in_progress"):
        message = f"is {current}, but the results say {verdict}"
        found.append(Finding("status.current_status", message, "warning"))
    return found


def _rule_of(error: GateError) -> object:
    return error.get("context", {}).get("rule_id")


def _made_ms(result: RuleResult) -> int:
    return instant_ms(result["validated_at"]) or 0


def _name(gate: Document) -> str:
    metadata = gate["metadata"]
    return f"the gate of {metadata['workflow_id']}, {metadata['phase_id']}"


def _rules(document: Document) -> list[Document]:
    rules: list[Document] = document["validation_config"]["rules"]
    return rules


def _results(document: Document) -> list[RuleResult]:
    results: list[RuleResult] = document["validation_execution"]["results"]
    return results
