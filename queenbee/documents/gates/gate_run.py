"""Runs all rules of a phase gate, and writes each result into it when its rule has ended."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from queenbee.checks.check import Check, CheckResult, FileExists
from queenbee.checks.consent import GATE, SeenCheck
from queenbee.checks.runner import CheckRunner
from queenbee.checks.verification import Subject, VerificationRecord
from queenbee.documents.gates.gate import (
    MAX_RESULTS_PER_RULE,
    add_results,
    begin_attempt,
    end_attempt,
)
from queenbee.documents.gates.gate_files import GateFile, find_gate, update_gate
from queenbee.documents.gates.judgement import (
    Document,
    Verdict,
    attempt_of,
    judge,
    results_of,
    rules_of,
)
from queenbee.documents.gates.rule_types import gate_result, judged, rule_check
from queenbee.documents.json_documents import Lock
from queenbee.errors import Conflict, QueenError


@dataclass(frozen=True)
class GateRun:
    """One run of a gate's rules: the gate afterwards, and the verdict on it."""

    document: Mapping[str, Any]
    verdict: Verdict
    record: VerificationRecord


def gate_checks(document: Mapping[str, Any]) -> list[Check]:
    """Returns the checks that a run of a valid gate would make, to be described."""
    return [rule_check(rule) for rule in document["validation_config"]["rules"]]


def run_gate(  # noqa: PLR0913 - by name
    folder: str,
    workflow_id: str,
    phase_id: str,
    runner: CheckRunner,
    *,
    lock: Lock = nullcontext,
    again: bool = False,
    max_results_per_rule: int = MAX_RESULTS_PER_RULE,
    clean: Callable[[object], object] = lambda result: result,
) -> GateRun:
    """Returns the result of all rules of a gate; its file and the record say the same.

    A gate that failed starts a new attempt, and keeps the old one in its history; with `again`,
    so does one that has passed, and it has not passed until this run is over. `lock` keeps
    other processes out while the gate's file is rewritten; no rule runs under it. `clean` returns
    a result as it may be written. Raises
    `NotFound`, `Unreadable`, `InvalidInput` for a gate without rules, `Conflict` for one that
    has passed or whose attempt another run has ended, `Untrusted`, and `ChecksInterrupted` on
    Ctrl-C, after the results so far are written.
    """
    update = partial(update_gate, folder, workflow_id, phase_id, lock=lock)
    begin = partial(begin_attempt, now_ms=runner.now_ms(), again=again)
    # 1. A person is asked without the lock, and before the gate changes.
    found = find_gate(folder, workflow_id, phase_id)
    name = f"{workflow_id}/{phase_id}"
    runner.consent.checks(GATE, name, gate_checks(begin(found.document)), path=found.path)
    quiet = replace(runner.consent, ask=None)
    checks: list[SeenCheck] = []

    def began(gate: Document) -> Document:
        changed = begin(gate)
        checks[:] = quiet.checks(GATE, name, gate_checks(changed))
        return changed

    # 2. On disk the gate is in progress before the first rule runs.
    begun = update(began).document
    kept = _Results(begun, runner.now_ms, max_results_per_rule, clean, update)
    subject = Subject("gate", name, kept.attempt)
    # 3. No lock is held while rules run: they may take minutes. Each result goes into the gate
    # as it is on disk by then, before the next rule runs: a killed run leaves what it did.
    with runner.run(subject, checks, judge=judged, on_result=kept.keep) as run:
        # 4. The gate only passes after the record of the run is in the ledger.
        after = update(kept.finish).document
    return GateRun(after, judge(after), run.record)


class _Results:
    """The results of one run that are not in the gate's file yet."""

    def __init__(
        self,
        begun: Document,
        now_ms: Callable[[], int],
        max_results: int,
        clean: Callable[[object], object],
        update: Callable[[Callable[[Document], Document]], GateFile],
    ) -> None:
        self.attempt = attempt_of(begun)
        self._overtaken = False
        """Whether another run has ended the attempt."""
        self._rules = iter(rules_of(begun))
        self._following = iter([*gate_checks(begun)[1:], None])
        self._now_ms = now_ms
        self._max_results = max_results
        self._clean = clean
        self._update = update
        self._results: list[Document] = []

    def keep(self, result: CheckResult, evidence: str | None) -> None:
        """Takes the result of the next rule, which has just ended, and writes it to the gate."""
        result_id = f"res_{uuid.uuid4()}".replace("-", "_")  # As the document writes them.
        found = gate_result(
            next(self._rules), result, result_id=result_id, now_ms=self._now_ms(), evidence=evidence
        )
        self._results.append(cast("Document", self._clean(found)))
        following = next(self._following)
        looks = (result.check.what, following.what if following is not None else None)
        if all(isinstance(each, FileExists) for each in looks):
            # Looks at files that follow one another take no time. Writing 200 of them one by one
            # took 8 s; a run that is killed among them loses nothing that took longer.
            return
        if result.status == "skipped" or self._overtaken:
            return
        # A gate that is locked or cannot be written now must not end the run: `finish` has the
        # result too, and raises what is still wrong by then.
        with suppress(QueenError):
            written = {one["result_id"] for one in results_of(self._update(self._into).document)}
            self._results = [one for one in self._results if one["result_id"] not in written]

    def finish(self, gate: Document) -> Document:
        """Returns the gate at the end of the run. Raises `Conflict` if another run ended it."""
        return end_attempt(self._added(gate), self._now_ms())

    def _into(self, gate: Document) -> Document:
        """Returns the gate with the results, or as it is if they would make it pass."""
        try:
            changed = self._added(gate)
        except Conflict:
            # The rest still runs, for the record; `finish` then raises.
            self._overtaken = True
            return gate
        return gate if judge(changed).passed else changed

    def _added(self, gate: Document) -> Document:
        return add_results(
            gate,
            self._results,
            attempt=self.attempt,
            now_ms=self._now_ms(),
            max_results_per_rule=self._max_results,
        )
