"""A phase gate: the rules of a phase, their results, and whether the next phase may begin.

Pure functions over the document, a plain dict in which unknown fields survive: each function
returns a new one. `spec/4-phase-gate.md`; `docs/gates.md` says what is added to it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from queenbee.core.timestamps import format_ms
from queenbee.documents.fields import id_problem
from queenbee.documents.findings import Finding, errors_in, in_short
from queenbee.documents.gates.judgement import (
    Document,
    attempt_of,
    counters,
    gate_options,
    judge,
    latest_results,
    made_ms,
    results_of,
    rules_of,
)
from queenbee.documents.gates.rule_types import bad_patterns, gate_error, rules_findings
from queenbee.documents.schema import schema_findings
from queenbee.errors import Conflict, InvalidInput, NotFound

SCHEMA_VERSION = "1.0"
SCHEMA_PATH = os.path.join(os.path.dirname(__file__), "phase-gate.schema.json")

_NEW_GATE = "for other rules, make a gate for another phase: queen gate new"

MAX_RESULTS_PER_RULE = 10
"""How many results of one rule are kept by default, as the document suggests."""

TRANSITIONS: dict[str, tuple[str, ...]] = {
    "pending": ("in_progress",),
    "in_progress": ("passed", "failed"),
    "passed": (),
    "failed": (),
}
"""A status never goes back. After a failed attempt comes a new one, which starts at pending."""


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
    """Returns the errors and warnings about a gate, each with its path.

    For an unknown major version, that is the only finding; for a later minor version, an unknown
    value is a warning.
    """
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, str):
        problem = _version_problem(version)
        if problem:
            return [Finding("schema_version", problem)]
    later = isinstance(version, str) and version != SCHEMA_VERSION
    found = schema_findings(document, gate_schema(), enums="warning" if later else "error")
    if errors_in(found):
        # The rest relies on the shape.
        return found
    assert isinstance(document, dict)
    found += rules_findings(rules_of(document), "validation_config.rules")
    return found + _identity_findings(document) + _status_findings(document)


def add_rule(document: Document, rule: Document) -> Document:
    """Returns the gate with one more rule, and its counters. Raises `InvalidInput`, `Conflict`.

    A gate that has passed accepts no more rules: it could fail again.
    """
    gate = deepcopy(document)
    if _has_passed(gate):
        raise Conflict(f"{_name(gate)} has passed and accepts no more rules", hint=_NEW_GATE)
    gate["validation_config"]["rules"].append(deepcopy(rule))
    path = f"validation_config.rules[{len(rules_of(gate)) - 1}]"
    findings = errors_in(validate_gate(gate)) or bad_patterns(rule, path)
    if findings:
        raise InvalidInput(
            f"the rule cannot be used: {in_short(findings, path)}",
            hint="docs/gates.md lists the fields of each type of rule",
            findings=findings,
        )
    return _recounted(gate)


def remove_rule(document: Document, rule_id: str) -> Document:
    """Returns the gate without a rule and its results. Raises `NotFound`, `Conflict`.

    If rules have run in this attempt, the attempt is over and the next one is pending: a gate
    never passes because the rule that failed is gone.
    """
    gate = deepcopy(document)
    rule_ids = [rule["rule_id"] for rule in rules_of(gate)]
    if rule_id not in rule_ids:
        known = ", ".join(rule_ids) or "none"
        raise NotFound(
            f"{_name(gate)} has no rule {rule_id!r}; its rules are: {known}",
            hint=f"queen gate show {_options(gate)}",
        )
    if _has_passed(gate):
        raise Conflict(f"{_name(gate)} has passed and keeps its rules", hint=_NEW_GATE)
    if latest_results(gate) or gate["status"]["current_status"] in ("failed", "passed"):
        _archive(gate)
    execution = gate["validation_execution"]
    execution["results"] = [one for one in results_of(gate) if one["rule_id"] != rule_id]
    status = gate["status"]
    status["errors"] = [one for one in status.get("errors", []) if _rule_of(one) != rule_id]
    gate["validation_config"]["rules"] = [
        rule for rule in rules_of(gate) if rule["rule_id"] != rule_id
    ]
    return _recounted(gate)


def history(document: Document) -> list[Document]:
    """Returns every attempt, oldest first: its number, status, times, counters and errors."""
    archived = document["validation_execution"].get("previous_attempts", [])
    return [*deepcopy(archived), _attempt_record(document)]


def begin_attempt(document: Document, now_ms: int, *, again: bool = False) -> Document:
    """Returns the gate `in_progress`: its first attempt, one cut short, or a new one.

    A new attempt follows a failure, a pass that the results contradict, and, with `again`, any
    pass. Raises `Conflict` for a gate that has passed, and `InvalidInput` for one without rules.
    """
    gate = deepcopy(document)
    if not rules_of(gate):
        raise InvalidInput(f"{_name(gate)} has no rules to run", hint="queen gate add-rule --help")
    if _has_passed(gate) and not again:
        raise Conflict(
            f"{_name(gate)} has passed already",
            hint=f"to judge it again: queen gate run {_options(gate)} --force",
        )
    current = gate["status"]["current_status"]
    if current == "in_progress":
        # Continues an attempt that another run started, or that was interrupted.
        return gate
    now = format_ms(now_ms)
    if current in ("failed", "passed"):
        _archive(gate)
    _move(gate, "in_progress", now)
    gate["metadata"]["started_at"] = now
    return _recounted(gate)


def add_results(
    document: Document,
    results: Sequence[Document],
    *,
    attempt: int,
    now_ms: int,
    max_results_per_rule: int = MAX_RESULTS_PER_RULE,
) -> Document:
    """Returns the gate with results of a run and their errors; its status stays `in_progress`.

    0 for `max_results_per_rule` keeps all. Raises `Conflict` if another run has ended the attempt
    that the results belong to.
    """
    gate = deepcopy(document)
    status = gate["status"]
    if status["current_status"] != "in_progress" or attempt_of(gate) != attempt:
        raise Conflict(
            f"another run ended attempt {attempt} of {_name(gate)}, which is now "
            f"{status['current_status']}: these results are not part of it",
            hint="queen gate status",
        )
    kept = results_of(gate)
    for result in results:
        # The latest of its rule, even if the clock was set back.
        earlier = [made_ms(one) for one in kept if one["rule_id"] == result["rule_id"]]
        at = format_ms(max([made_ms(result), *earlier]))
        kept.append({**result, "validated_at": at, "attempt": attempt})
    ran = {result["rule_id"]: result for result in results}
    status["errors"] = [one for one in status.get("errors", []) if _rule_of(one) not in ran]
    status["errors"] += [
        gate_error(rule, ran[rule["rule_id"]])
        for rule in rules_of(gate)
        if ran.get(rule["rule_id"], {}).get("status") == "failed"
    ]
    if max_results_per_rule:
        _trim(gate, max_results_per_rule)
    status["last_updated"] = format_ms(now_ms)
    return _recounted(gate)


def end_attempt(document: Document, now_ms: int) -> Document:
    """Returns the gate with the status that the results of its whole run give it."""
    gate = deepcopy(document)
    verdict = judge(gate).status
    if verdict in ("passed", "failed"):
        _move(gate, verdict, format_ms(now_ms))
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


def _archive(gate: Document) -> None:
    """Moves the attempt to the history; the next one is pending, and has no results yet."""
    ended = _attempt_record(gate)
    for result in results_of(gate):
        result.setdefault("attempt", ended["attempt"])
    gate["validation_execution"].setdefault("previous_attempts", []).append(ended)
    gate["status"] |= {"current_status": "pending", "errors": []}
    gate["metadata"]["completed_at"] = None


def _recounted(gate: Document) -> Document:
    gate["status"] |= counters(gate)
    return gate


def _attempt_record(gate: Document) -> Document:
    status, metadata = gate["status"], gate["metadata"]
    return {
        "attempt": attempt_of(gate),
        "status": status["current_status"],
        "started_at": metadata.get("started_at"),
        "completed_at": metadata.get("completed_at"),
        **counters(gate),
        "errors": deepcopy(status.get("errors", [])),
    }


def _trim(gate: Document, most: int) -> None:
    by_rule: dict[str, list[int]] = {}
    results = results_of(gate)
    for number, result in enumerate(results):
        by_rule.setdefault(result["rule_id"], []).append(number)
    kept = {
        number
        for numbers in by_rule.values()
        for number in sorted(numbers, key=lambda one: (made_ms(results[one]), one))[-most:]
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
    for number, rule in enumerate(rules_of(document)):
        if rule["rule_id"] in seen:
            path = f"validation_config.rules[{number}].rule_id"
            found.append(Finding(path, f"is also an earlier rule's: {rule['rule_id'][:60]!r}"))
        seen.add(rule["rule_id"])
    result_ids = set()
    for number, result in enumerate(results_of(document)):
        path = f"validation_execution.results[{number}]"
        if result["rule_id"] not in seen:
            message = f"is not a rule of this gate: {result['rule_id'][:60]!r}"
            found.append(Finding(f"{path}.rule_id", message, "warning"))
        if result["result_id"] in result_ids:
            found.append(Finding(f"{path}.result_id", "is also an earlier result's", "warning"))
        result_ids.add(result["result_id"])
    return found


def _status_findings(document: Document) -> list[Finding]:
    status = document["status"]
    found = [
        Finding(f"status.{name}", f"is {status[name]}, but the results say {count}", "warning")
        for name, count in counters(document).items()
        if status[name] != count
    ]
    current, verdict = status["current_status"], judge(document).status
    # While an attempt runs, a rule may have failed already.
    if current not in (verdict, "in_progress"):
        message = f"is {current}, but the results say {verdict}"
        found.append(Finding("status.current_status", message, "warning"))
    return found


def _rule_of(error: Document) -> object:
    return error.get("context", {}).get("rule_id")


def _options(gate: Document) -> str:
    metadata = gate["metadata"]
    return gate_options(metadata["workflow_id"], metadata["phase_id"])


def _name(gate: Document) -> str:
    metadata = gate["metadata"]
    return f"the gate of {metadata['workflow_id']}, {metadata['phase_id']}"
