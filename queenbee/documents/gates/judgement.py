"""The judgement of a phase gate, from the latest results of its rules.

Pure functions over the document. `spec/4-phase-gate.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from queenbee.core.text import suggested
from queenbee.core.timestamps import instant_ms

Document = dict[str, Any]
"""A gate or a part of one, such as a rule or a result: `phase-gate.schema.json`."""
Status = Literal["pending", "in_progress", "passed", "failed"]


@dataclass(frozen=True)
class Verdict:
    """The verdict of the latest results, whatever `current_status` says."""

    status: Status
    blocking: tuple[str, ...] = ()
    """Why the gate has not passed, a sentence for each rule of error severity."""
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the next phase may begin."""
        return self.status == "passed"


def judge(document: Document) -> Verdict:
    """Returns the verdict: every rule of error severity must have passed when it last ran.

    A rule without a result, or with a skipped one, leaves it `in_progress`; a failed one makes it
    `failed`; warnings never block. A gate without rules, or without any result, has not passed.
    """
    latest = latest_results(document)
    blocking, warnings, failed = [], [], False
    for rule in rules_of(document):
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
    if not rules_of(document):
        blocking.append("it has no rules, so nothing was checked")
    elif not latest and not blocking:
        blocking.append("none of its rules has run")
    begun = latest or document["status"]["current_status"] != "pending"
    waiting: Status = "in_progress" if begun else "pending"
    status = "failed" if failed else waiting if blocking else "passed"
    return Verdict(status, tuple(blocking), tuple(warnings))


def latest_results(document: Document) -> dict[str, Document]:
    """Returns the latest result of each rule that has one in the current attempt.

    The latest is the one with the newest `validated_at`; among equals, the last in the list. A
    result that names no attempt belongs to the current one: another tool wrote it.
    """
    rule_ids = {rule["rule_id"] for rule in rules_of(document)}
    current = attempt_of(document)
    latest: dict[str, Document] = {}
    for result in results_of(document):
        rule_id = result["rule_id"]
        attempt = result.get("attempt")
        if isinstance(attempt, int) and attempt < current:
            # Half of a run after the last attempt: together with it, the rules could seem to have
            # passed although they never did so on one state of the files.
            continue
        if rule_id in rule_ids and (
            rule_id not in latest or made_ms(result) >= made_ms(latest[rule_id])
        ):
            latest[rule_id] = result
    return latest


def attempt_of(document: Mapping[str, Any]) -> int:
    """Returns the number of the current attempt, from 1."""
    return len(document["validation_execution"].get("previous_attempts", [])) + 1


def counters(document: Document) -> dict[str, int]:
    """Returns how many rules have passed and failed, by their latest results."""
    latest = [result["status"] for result in latest_results(document).values()]
    return {
        "passed_count": latest.count("passed"),
        "failed_count": latest.count("failed"),
        "total_count": len(rules_of(document)),
    }


def gate_options(workflow_id: str, phase_id: str) -> str:
    """Returns the options that name a gate in a suggested command."""
    return suggested("", workflow=workflow_id, phase=phase_id).strip()


def made_ms(result: Document) -> int:
    """Returns when a result was made, in ms since 1970."""
    return instant_ms(result["validated_at"]) or 0


def rules_of(document: Document) -> list[Document]:
    """Returns the rules of a gate."""
    rules: list[Document] = document["validation_config"]["rules"]
    return rules


def results_of(document: Document) -> list[Document]:
    """Returns the results of a gate, of every rule and attempt that is kept."""
    results: list[Document] = document["validation_execution"]["results"]
    return results
