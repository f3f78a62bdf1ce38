"""Runs the checks of a bead or a gate, and keeps a record and the evidence of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from queenbee.checks.check import CheckResult, verdict
from queenbee.checks.consent import Consent, SeenCheck
from queenbee.checks.executing import Progress, run_checks
from queenbee.checks.processes import Interrupts
from queenbee.checks.verification import (
    EvidenceOfRun,
    Subject,
    VerificationRecord,
    missing_evidence,
    verification_record,
    write_failures,
)


class ChecksInterrupted(KeyboardInterrupt):
    """A Ctrl-C, SIGTERM or SIGHUP while checks ran; `results` has one for each check."""

    def __init__(self, results: Sequence[CheckResult]) -> None:
        super().__init__("interrupted while checks were running")
        self.results = results


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One run of a list of checks: its record as the ledger has it, and its results."""

    record: VerificationRecord
    results: Sequence[CheckResult]


@dataclass(frozen=True, slots=True)
class CheckRunner:
    """Runs lists of checks in the folder `cwd`, and keeps a record and the evidence of each run.

    `env` is the caller's whole environment; a check gets only the allow-list. `now_ms` is the
    clock. `record` adds the record of a run to the ledger, and returns it as the ledger has it.
    Only checks that `consent` has let pass are run.
    While checks run, `on_progress` gets their progress and `tell` gets lines for the user.
    """

    cwd: str
    env: Mapping[str, str]
    evidence_dir: str
    now_ms: Callable[[], int]
    record: Callable[[VerificationRecord], VerificationRecord]
    consent: Consent
    on_progress: Callable[[Progress], None] | None = None
    tell: Callable[[str], None] = lambda _: None

    @contextmanager
    def run(
        self,
        subject: Subject,
        checks: Sequence[SeenCheck],
        *,
        time_left: Callable[[], float] | None = None,
        judge: Callable[[CheckResult], CheckResult] = lambda result: result,
        on_result: Callable[[CheckResult, str | None], None] = lambda result, evidence: None,
    ) -> Iterator[CheckRun]:
        """Runs the checks, keeps their evidence and record, and then enters the block.

        `judge` may change each result. `on_result` gets it before the next check starts, with
        the path of its evidence, which is on disk by then. Requests to end wait until the block,
        which updates the subject's document, has finished: one that arrived since the checks
        started then raises `ChecksInterrupted`. Raises `Unwritable`, and what `record` raises.
        """
        # 1. No request to end interrupts before the end of the block: a closing terminal sends
        # two SIGHUPs, and the second would lose the record and the document's update.
        with Interrupts() as interrupts:
            started_ms = self.now_ms()
            evidence = EvidenceOfRun(self.evidence_dir, subject.subject_id, started_ms)
            results: list[CheckResult] = []

            def ended(found: CheckResult) -> None:
                result = judge(found)
                results.append(result)
                # 2. The evidence before anything that names it, and before the next check: a
                # killed run leaves what it did.
                on_result(result, evidence.add(result))

            run_checks(
                checks,
                cwd=self.cwd,
                env=self.env,
                interrupts=interrupts,
                on_progress=self.on_progress,
                on_result=ended,
                time_left=time_left,
            )
            record = verification_record(
                subject, (started_ms, self.now_ms()), verdict(results), results, evidence.paths
            )
            # 3. The record before the document, which may say that its checks have passed.
            yield CheckRun(self.record(record), results)
        if interrupts.count:
            raise ChecksInterrupted(results)

    def record_unverified(self, subject: Subject, reason: str) -> CheckRun:
        """Records why the subject counts as done without a check. Raises as `record` does."""
        now_ms = self.now_ms()
        record = verification_record(subject, (now_ms, now_ms), "not_verified")
        return CheckRun(self.record({**record, "reason": reason}), results=())

    def missing_evidence(self, run: CheckRun) -> list[str]:
        """Returns the names of the checks of a run whose evidence is missing or empty."""
        return missing_evidence(run.record["results"], self.evidence_dir)

    def write_failures(self, subject_id: str, failures: str) -> str:
        """Writes the file that tells the next attempt what failed, and returns its path."""
        return write_failures(self.evidence_dir, subject_id, failures)
