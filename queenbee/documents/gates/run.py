"""Runs all rules of a phase gate, and writes the results into it."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.checks.verification import Subject
from queenbee.documents.gates.gate import MAX_RESULTS_PER_RULE, begin_attempt, finish_attempt
from queenbee.documents.gates.judgement import Verdict, attempt_of, judge
from queenbee.documents.gates.rules import gate_error, gate_result, judged, rule_check
from queenbee.documents.gates.store import update_gate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from queenbee.checks.check import Check
    from queenbee.checks.runner import CheckRun, CheckRunner
    from queenbee.checks.verification import VerificationRecord
    from queenbee.documents.gates.judgement import Document, GateError, RuleResult
    from queenbee.documents.gates.store import Lock


@dataclass(frozen=True)
class GateRun:
    """One run of a gate's rules: the gate afterwards, and the verdict on it."""

    document: Mapping[str, Any]
    verdict: Verdict
    record: VerificationRecord


def gate_checks(document: Mapping[str, Any]) -> list[Check]:
    """Returns the checks that a run of a valid gate would make, to be described."""
    return [rule_check(rule) for rule in document["validation_config"]["rules"]]


def run_gate(
    folder: str,
    workflow_id: str,
    phase_id: str,
    runner: CheckRunner,
    *,
    lock: Lock = nullcontext,
    max_results_per_rule: int = MAX_RESULTS_PER_RULE,
) -> GateRun:
    """Returns the result of all rules of a gate; its file and the record say the same.

    A gate that failed starts a new attempt, and keeps the old one in its history. `lock` keeps
    other processes out while the gate's file is rewritten; no rule runs under it. Raises
    `NotFound`, `Unreadable`, `InvalidInput` for a gate without rules, `Conflict` for one that
    has passed or whose attempt another run has ended, and `ChecksInterrupted` on Ctrl-C,
    after the results so far are written.
    """

    def begin(gate: Document) -> Document:
        return begin_attempt(gate, runner.now_ms())

    def finish(gate: Document) -> Document:
        return finish_attempt(
            gate,
            *_results(begun, run, runner.now_ms()),
            attempt=attempt,
            now_ms=runner.now_ms(),
            max_results_per_rule=max_results_per_rule,
        )

    # 1. On disk the gate is in progress before the first rule runs.
    begun = update_gate(folder, workflow_id, phase_id, begin, lock=lock).document
    attempt = attempt_of(begun)
    subject = Subject("gate", f"{workflow_id}/{phase_id}", attempt)
    # 2. No lock is held while rules run: they may take minutes.
    with runner.run(subject, gate_checks(begun), judge=judged) as run:
        # 3. The results go into the gate as it is on disk by now.
        after = update_gate(folder, workflow_id, phase_id, finish, lock=lock).document
    return GateRun(after, judge(after), run.record)


def _results(
    gate: Document, run: CheckRun, now_ms: int
) -> tuple[list[RuleResult], list[GateError]]:
    """Returns what the gate keeps: a result for each rule, and an error for each failed one."""
    results, errors = [], []
    rules = gate["validation_config"]["rules"]
    for rule, found, kept in zip(rules, run.results, run.record["results"], strict=True):
        result = gate_result(
            rule, found, result_id=f"res_{_uuid()}", now_ms=now_ms, evidence=kept["evidence"]
        )
        results.append(result)
        if result["status"] == "failed":
            errors.append(gate_error(rule, result, error_id=f"err_{_uuid()}"))
    return results, errors


def _uuid() -> str:
    """Returns a random UUID with `_` between its groups, as the document writes them."""
    return str(uuid.uuid4()).replace("-", "_")
