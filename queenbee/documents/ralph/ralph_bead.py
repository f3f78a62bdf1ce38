"""A Ralph bead: one unit of work with its Definition of Done. Reads and validates documents.

The document stays a plain dict, so that unknown fields survive. `spec/2-ralph-bead.md`;
`docs/ralph-beads.md` says what is added to it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from queenbee.checks.check import (
    DEFAULT_TIMEOUT_S,
    MAX_CHECKS,
    Check,
    Command,
    Expectation,
)
from queenbee.checks.output import LONGEST_S
from queenbee.core.text import suggested
from queenbee.core.timestamps import instant_ms
from queenbee.documents.fields import environment_findings, id_problem, named_environment
from queenbee.documents.findings import Finding, errors_in, first_findings, in_short
from queenbee.documents.issue_rows import blocker
from queenbee.documents.schema import member_path, schema_findings
from queenbee.errors import InvalidInput

SCHEMA_PATH = os.path.join(os.path.dirname(__file__), "ralph-bead.schema.json")
"""The schema of the document, word for word; `queen bead schema ralph` prints it."""

DEFAULT_MAX_ITERATIONS = 10
DEFAULT_BACKOFF_S = 30
LONGEST_BACKOFF_S = 300

_DEPENDENCY_KEYS = ("dependencies", "depends_on")
_MET = ("completed", "closed")
"""The second is the status that Beads gives its own finished issues."""


@dataclass(frozen=True)
class Limits:
    """What ends the loop; None means no limit."""

    max_iterations: int
    time_budget_s: int | None
    deadline_ms: int | None
    backoff_s: int


@dataclass(frozen=True)
class Unmet:
    """One dependency that keeps a bead blocked."""

    bead_id: str
    reason: str


def ralph_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a bead, Draft 7."""
    with open(SCHEMA_PATH, encoding="utf-8") as file:
        schema: dict[str, Any] = json.load(file)
    return schema


_NO_MEANING = re.compile(
    r"lane|ralph_meta\.last_attempt|dod\.verifiers\[\d+\]\.(?:name|on_failure)"
)
"""What decides nothing here: `on_failure` stops, unless it is `continue`."""
SHELLS = ("sh", "bash", "zsh", "pwsh", "powershell")
"""The shells that a verifier may name; the document runs every command in `sh`."""


def validate_bead(document: object) -> list[Finding]:
    """Returns the errors and warnings about a bead, each with its path."""
    found = [_without_meaning(each) for each in schema_findings(document, ralph_schema())]
    if not isinstance(document, dict):
        return found
    bead_id = document.get("id")
    if isinstance(bead_id, str) and (problem := id_problem(bead_id)):
        found.append(Finding("id", f"cannot be the id of a bead: {problem}"))
    found += _dependency_findings(document)
    found += _gate_findings(document.get("phase_gate"))
    verifiers = _member(document, "dod").get("verifiers")
    if isinstance(verifiers, list):
        found += _verifier_findings(verifiers)
    if document.get("intent") == "":
        found.append(Finding("intent", "is empty: it does not say what to do", "warning"))
    return found + _limit_findings(document)


def _without_meaning(finding: Finding) -> Finding:
    """Returns a finding as a warning if it is about a value that decides nothing here."""
    if _NO_MEANING.fullmatch(finding.path):
        return replace(finding, severity="warning")
    return finding


def first_error(document: object) -> str | None:
    """Returns why a bead is not valid, by its first error, or None."""
    errors = errors_in(validate_bead(document))
    return f"it is not valid: {errors[0].path}: {errors[0].message}" if errors else None


def check_bead(document: object, source: str) -> None:
    """Raises `InvalidInput`, with all `findings`, for a bead with errors."""
    findings = validate_bead(document)
    errors = errors_in(findings)
    if errors:
        raise InvalidInput(
            f"{source} is not a valid bead: {in_short(errors)}",
            hint=suggested("queen bead validate", source.removeprefix("the row of ")),
            findings=findings,
        )


def checked_bead_id(bead_id: str) -> str:
    """Returns the id unchanged. Raises `InvalidInput` if it cannot be one."""
    problem = id_problem(bead_id)
    if problem:
        raise InvalidInput(f"{bead_id[:80]!r} is not a bead id: {problem}", bead_id=bead_id)
    return bead_id


def bead_status(document: Mapping[str, Any]) -> str:
    """Returns the status; a bead without one has not started."""
    status = document.get("status")
    return status if isinstance(status, str) else "pending"


def bead_checks(document: Mapping[str, Any], shell: str = SHELLS[0]) -> list[Check]:
    """Returns the checks of a valid bead's Definition of Done, in order; `shell` is for those that
    name none.
    """
    return [_check(verifier, shell) for verifier in _member(document, "dod").get("verifiers", [])]


def evidence_is_required(document: Mapping[str, Any]) -> bool:
    """Returns whether a valid bead can only be completed if its evidence is kept."""
    return bool(_member(document, "dod").get("evidence_required", False))


def bead_limits(document: Mapping[str, Any]) -> Limits:
    """Returns what ends the loop over a valid bead."""
    constraints, meta = _member(document, "constraints"), _member(document, "ralph_meta")
    budget = constraints.get("time_budget_minutes")
    backoff = int(meta.get("retry_backoff_seconds", DEFAULT_BACKOFF_S))
    return Limits(
        max_iterations=int(constraints.get("max_iterations", DEFAULT_MAX_ITERATIONS)),
        time_budget_s=None if budget is None else min(int(budget) * 60, LONGEST_S),
        deadline_ms=instant_ms(constraints.get("deadline")),
        backoff_s=max(0, min(backoff, LONGEST_BACKOFF_S)),
    )


def backoff_s(limits: Limits, failed_attempts: int) -> int:
    """Returns the wait after so many failed attempts in a row: doubled each time, up to 300 s."""
    # After 9 doublings even one second exceeds the longest wait.
    doubled: int = limits.backoff_s << min(failed_attempts - 1, 9)
    return min(doubled, LONGEST_BACKOFF_S)


def bead_dependencies(document: Mapping[str, Any]) -> list[str]:
    """Returns the ids that a bead waits for, from `dependencies` and `depends_on`, each once.

    An entry is an id, or an object as Beads writes it, of which only the type `blocks` orders
    work.
    """
    ids: dict[str, None] = {}
    for key in _DEPENDENCY_KEYS:
        entries = document.get(key)
        if isinstance(entries, list):
            ids |= dict.fromkeys(filter(None, map(blocker, entries)))
    return list(ids)


def unmet_dependencies(
    document: Mapping[str, Any], lookup: Callable[[str], Mapping[str, Any] | None]
) -> list[Unmet]:
    """Returns what a bead still waits for; `lookup` finds the document of an id, or None."""
    unmet = []
    for bead_id in bead_dependencies(document):
        other = lookup(bead_id)
        if other is None:
            unmet.append(Unmet(bead_id, "does not exist"))
        elif bead_status(other) not in _MET:
            noun = "is a gate that has not passed: it is" if other.get("type") == "gate" else "is"
            unmet.append(Unmet(bead_id, f"{noun} {bead_status(other)}"))
    return unmet


def _check(verifier: Mapping[str, Any], shell: str) -> Check:
    expect, name = verifier.get("expect", {}), verifier.get("name")
    return Check(
        name=name if isinstance(name, str) and name else verifier["command"],
        what=Command(verifier["command"], verifier.get("shell", shell)),
        expect=Expectation(
            int(expect.get("exit_code", 0)),
            expect.get("stdout_contains"),
            expect.get("stderr_contains"),
        ),
        timeout_s=min(int(verifier.get("timeout_seconds", DEFAULT_TIMEOUT_S)), LONGEST_S),
        on_failure="continue" if verifier.get("on_failure") == "continue" else "stop",
        environment=named_environment(verifier.get("env")),
    )


def _dependency_findings(document: dict[str, Any]) -> list[Finding]:
    found = []
    for key in _DEPENDENCY_KEYS:
        entries = document.get(key)
        if isinstance(entries, list):
            found += first_findings(_entry_findings(entries, key), key)
        elif entries is not None:
            found.append(Finding(key, "must be a list of bead ids"))
    return found


def _entry_findings(entries: list[object], key: str) -> Iterator[Finding]:
    for number, entry in enumerate(entries):
        bead_id = _dependency_id(entry)
        problem = "it is not one" if bead_id is None else id_problem(bead_id)
        if problem:
            message = f"must be a bead id, or an object with depends_on_id: {problem}"
            yield Finding(f"{key}[{number}]", message)


def _gate_findings(value: object) -> list[Finding]:
    names = value if isinstance(value, list) else [] if value is None else [value]
    for name in names:
        workflow_id, _, phase_id = name.partition("/") if isinstance(name, str) else ("", "", "")
        if id_problem(workflow_id) or id_problem(phase_id):
            message = "must be a gate's workflow and phase, such as accounts/phase_1, or a list"
            return [Finding("phase_gate", message)]
    return []


def _dependency_id(entry: object) -> str | None:
    if isinstance(entry, dict):
        entry = entry.get("depends_on_id", entry.get("id"))
    return entry if isinstance(entry, str) else None


def _verifier_findings(verifiers: list[object]) -> list[Finding]:
    if not verifiers:
        message = "is empty: such a bead is valid, but cannot be verified or completed"
        return [Finding("dod.verifiers", message, "warning", hint="add one command that must pass")]
    if len(verifiers) > MAX_CHECKS:
        message = f"has {len(verifiers):,} verifiers; a bead can have at most {MAX_CHECKS}"
        return [Finding("dod.verifiers", message, hint="put several commands into one script")]
    found = []
    for number, verifier in enumerate(verifiers):
        if not isinstance(verifier, dict):
            continue
        path = f"dod.verifiers[{number}]"
        command = verifier.get("command")
        if isinstance(command, str) and "\0" in command:
            found.append(Finding(member_path(path, "command"), "must not contain a NUL"))
        if isinstance(command, str) and not command.strip():
            message = "is empty, so it always succeeds"
            found.append(Finding(member_path(path, "command"), message, "warning"))
        found += environment_findings(verifier.get("env"), member_path(path, "env"))
        shell = verifier.get("shell", SHELLS[0])
        if shell not in SHELLS:
            message = f"{str(shell)[:60]!r} is not a shell; the shells are {', '.join(SHELLS)}"
            found.append(Finding(member_path(path, "shell"), message))
    return found


def _limit_findings(document: dict[str, Any]) -> list[Finding]:
    found = []
    budget = _member(document, "constraints").get("time_budget_minutes")
    if isinstance(budget, (int, float)) and budget <= 0:
        message = "leaves no time for an attempt"
        found.append(Finding("constraints.time_budget_minutes", message, "warning"))
    backoff = _member(document, "ralph_meta").get("retry_backoff_seconds")
    if isinstance(backoff, (int, float)) and backoff < 0:
        path = "ralph_meta.retry_backoff_seconds"
        found.append(Finding(path, "is below 0 and is read as 0", "warning"))
    return found


def _member(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}
