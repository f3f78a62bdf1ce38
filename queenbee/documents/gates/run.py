"""Runs the rules of a phase gate, all of them, and writes what follows from them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from queenbee.checks.engine import Check, ChecksInterrupted, run_until, verdict
from queenbee.checks.processes import Interrupts
from queenbee.checks.verification import verification_record, write_evidence
from queenbee.documents.gates.gate import (
    MAX_RESULTS_PER_RULE,
    Verdict,
    attempt_of,
    begin_attempt,
    finish_attempt,
    judge,
)
from queenbee.documents.gates.rules import (
    gate_error,
    gate_result,
    judged,
    rule_check,
)
from queenbee.documents.gates.store import update_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from queenbee.checks.engine import CheckResult, Progress
    from queenbee.documents.gates.store import Lock


@dataclass(frozen=True)
class GatePlace:
    """Is where gates lie and run, and what the edge lends for it.

    `env` is the caller's whole environment, of which a rule gets the allow-list. `record` takes
    the record of each run. `lock` keeps other processes out while a gate file is rewritten; no
    rule runs under it. `random_bytes` makes the ids of results.
    """

    folder: str
    cwd: str
    env: Mapping[str, str]
    evidence_dir: str
    record: Callable[[dict[str, Any]], None]
    now_ms: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    lock: Lock = nullcontext
    on_progress: Callable[[Progress], None] | None = None
    max_results_per_rule: int = MAX_RESULTS_PER_RULE


@dataclass(frozen=True)
class GateRun:
    """Is one run of a gate's rules: the gate as it was left, and the verdict on it."""

    document: Mapping[str, Any]
    verdict: Verdict
    record: Mapping[str, Any]


def gate_checks(document: Mapping[str, Any]) -> list[Check]:
    """Returns the checks that a run of a valid gate would make, to be described."""
    return [rule_check(rule) for rule in document["validation_config"]["rules"]]


def run_gate(workflow_id: str, phase_id: str, place: GatePlace) -> GateRun:
    """Returns what came of all rules of a gate; its file and the record say the same.

    A gate that failed begins a new attempt, and keeps the old one in its history. Raises
    `NotFound`, `Unreadable`, `InvalidInput` for a gate without rules, `Conflict` for one that
    has passed or whose attempt another run ended meanwhile, and `KeyboardInterrupt` on Ctrl-C,
    when what had been found is written.
    """
    # 1. The gate is in progress on disk before the first rule runs.
    begun = update_gate(
        place.folder,
        workflow_id,
        phase_id,
        lambda gate: begin_attempt(gate, place.now_ms()),
        lock=place.lock,
    ).document
    with Interrupts() as interrupts:
        # 2. No lock is held while rules run: they may take minutes.
        ran = _run(begun, place, interrupts)
        place.record(ran.record)
        # 3. The results go into the gate as it is on disk by now.
        left = update_gate(
            place.folder,
            workflow_id,
            phase_id,
            lambda gate: finish_attempt(
                gate,
                ran.results,
                ran.errors,
                attempt=attempt_of(begun),
                now_ms=place.now_ms(),
                max_results_per_rule=place.max_results_per_rule,
            ),
            lock=place.lock,
        ).document
    if interrupts.count:
        raise ChecksInterrupted(ran.checked)
    return GateRun(left, judge(left), ran.record)


@dataclass(frozen=True)
class _Ran:
    results: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    record: dict[str, Any]
    checked: list[CheckResult]


def _run(gate: Mapping[str, Any], place: GatePlace, interrupts: Interrupts) -> _Ran:
    started_ms = place.now_ms()
    results = run_until(
        interrupts,
        gate_checks(gate),
        cwd=place.cwd,
        env=place.env,
        on_progress=place.on_progress,
    )
    checked = [judged(result) for result in results]
    metadata = gate["metadata"]
    workflow_id, phase_id = metadata["workflow_id"], metadata["phase_id"]
    evidence = write_evidence(place.evidence_dir, f"{workflow_id}-{phase_id}", started_ms, checked)
    record = verification_record(
        subject_kind="gate",
        subject_id=f"{workflow_id}/{phase_id}",
        attempt=attempt_of(gate),
        started_ms=started_ms,
        finished_ms=place.now_ms(),
        verdict=verdict(checked),
        results=checked,
        evidence=evidence,
    )
    return _Ran(*_kept(gate, checked, evidence, place), record, checked)


def _kept(
    gate: Mapping[str, Any],
    checked: Sequence[CheckResult],
    evidence: Sequence[str | None],
    place: GatePlace,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns what the gate keeps of a run: a result for each rule, an error for each failed."""
    now_ms = place.now_ms()
    results, errors = [], []
    rules = gate["validation_config"]["rules"]
    for rule, one, file in zip(rules, checked, evidence, strict=True):
        result_id = f"res_{_uuid(place)}"
        result = gate_result(rule, one, result_id=result_id, now_ms=now_ms, evidence=file)
        results.append(result)
        if result["status"] == "failed":
            errors.append(gate_error(rule, result, error_id=f"err_{_uuid(place)}"))
    return results, errors


def _uuid(place: GatePlace) -> str:
    """Returns a random UUID with `_` between its groups, as the document writes them."""
    digits = bytearray(place.random_bytes(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return "_".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
