"""The loop over a Ralph bead: the agent, then the checks, until they pass or a limit ends it.

The Definition of Done is the one at the start: an agent that rewrites it during the run does not
complete its bead. `docs/ralph-beads.md`, section "The loop".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from queenbee.checks.check import Check, Command
from queenbee.checks.consent import SeenCheck, typed
from queenbee.checks.output import LONGEST_S
from queenbee.checks.runner import CheckRun, CheckRunner
from queenbee.checks.verification import Subject, failures_text
from queenbee.core.timestamps import format_ms
from queenbee.documents.ralph.bead_files import BeadFile, BeadFolders
from queenbee.documents.ralph.ralph_bead import (
    backoff_s,
    bead_limits,
    bead_status,
    evidence_is_required,
)
from queenbee.documents.ralph.verify import (
    WaitsFor,
    attempts_of,
    checks_to_run,
    refuse_completed,
    seen_checks,
    unmet_of,
    update_meta,
)

Why = Literal[
    "verified",
    "max_iterations",
    "time_budget",
    "deadline",
    "dependencies",
    "evidence",
    "dod_changed",
]

AGENT = "agent command"
"""The name of the loop's own check, the first of an attempt: the agent command must succeed."""

FAILURES_MAX_BYTES = 32 * 1024
"""The limit of the environment variable (Linux allows 128 KiB); the file has more."""


@dataclass(frozen=True)
class RunOutcome:
    """How the loop ended: the bead afterwards, its status, and why."""

    bead: BeadFile
    status: Literal["completed", "failed", "blocked"]
    why: Why
    message: str
    attempts: int


def run_bead(
    bead: BeadFile,
    agent_command: Callable[[], str],
    runner: CheckRunner,
    folders: BeadFolders,
    *,
    waits_for: WaitsFor | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> RunOutcome:
    """Returns how the loop over a bead ended; its file says the same.

    A bead that an interrupted run left `in_progress` continues with its remaining attempts and
    time; any other starts again. `waits_for` returns what a bead waits for; by default, its
    dependencies in `folders`. `agent_command` is called before each attempt, and may raise what
    keeps the agent from it: the bead stays `in_progress`. Raises `InvalidInput` for a bead that is
    not valid or has no verifier, `Conflict` for a completed one, `Untrusted`, and
    `ChecksInterrupted` on Ctrl-C, after the attempt is recorded.
    """
    checks_to_run(bead, runner.consent.shell)
    refuse_completed(bead)
    unmet = unmet_of(bead, folders, waits_for)
    if unmet:
        message = "; ".join(f"{one.bead_id} {one.reason}" for one in unmet)
        blocked = update_meta(bead, folders, status="blocked")
        return RunOutcome(blocked, "blocked", "dependencies", message, attempts_of(bead))
    return _Loop(bead, seen_checks(bead, runner.consent), agent_command, runner, folders).run(sleep)


class _Loop:
    def __init__(
        self,
        bead: BeadFile,
        checks: list[SeenCheck],
        agent_command: Callable[[], str],
        runner: CheckRunner,
        folders: BeadFolders,
    ) -> None:
        self._bead = bead
        self._dod = bead.document["dod"]
        self._checks = checks
        self._agent_command = agent_command
        self._runner = runner
        self._folders = folders
        self._limits = bead_limits(bead.document)
        continues = bead_status(bead.document) == "in_progress"
        self._attempts = attempts_of(bead) if continues else 0
        self._spent_before_s = _time_spent_s(bead) if continues else 0.0
        self._started_ms = runner.now_ms()
        self._failures = _known_failures(bead)

    def run(self, sleep: Callable[[float], None]) -> RunOutcome:
        failed = 0
        while True:
            wait_s = backoff_s(self._limits, failed) if failed else 0
            spent = self._spent(wait_s)
            if spent is not None:
                return self._fail(*spent)
            if wait_s:
                self._runner.tell(f"waiting {wait_s} s before attempt {self._attempts + 1}")
                sleep(wait_s)
            run = self._attempt(self._agent_command())
            if run.record["verdict"] == "passed":
                return self._complete(run)
            failed += 1

    def _attempt(self, agent_command: str) -> CheckRun:
        self._attempts += 1
        self._runner.tell(f"attempt {self._attempts} of {self._limits.max_iterations}")
        self._bead = update_meta(
            self._bead,
            self._folders,
            status="in_progress",
            attempt_count=self._attempts,
            last_attempt=format_ms(self._runner.now_ms()),
            retry_backoff_seconds=self._limits.backoff_s,
            failure_reason=None,
        )
        with self._runner.run(
            Subject("bead", self._bead.bead_id, self._attempts),
            [self._agent(agent_command), *self._checks],
            time_left=lambda: min(self._left_s().values(), default=LONGEST_S),
        ) as run:
            self._bead = update_meta(
                self._bead,
                self._folders,
                verifier_results=run.record["results"][1:],
                time_spent_seconds=round(self._spent_s(), 3),
            )
        self._failures = failures_text(run.results)
        return run

    def _agent(self, command: str) -> SeenCheck:
        """Returns the agent command as a check: if it fails, the verifiers do not run."""
        file = self._runner.write_failures(self._bead.bead_id, self._failures)
        # A variable cannot hold a NUL or half of a surrogate pair.
        text = self._failures.replace("\0", "\ufffd").encode(errors="replace")
        named = {
            "QUEEN_BEAD": self._bead.bead_id,
            "QUEEN_BEAD_FILE": self._bead.path,
            "QUEEN_ATTEMPT": str(self._attempts),
            "QUEEN_MAX_ATTEMPTS": str(self._limits.max_iterations),
            "QUEEN_FAILURES": text[:FAILURES_MAX_BYTES].decode(errors="ignore"),
            "QUEEN_FAILURES_FILE": file,
        }
        # Only the end of the remaining time, or Ctrl-C, ends it.
        agent = Check(
            AGENT,
            Command(command),
            timeout_s=LONGEST_S,
            environment={**self._runner.env, **named},
        )
        return typed(agent)

    def _complete(self, run: CheckRun) -> RunOutcome:
        if self._bead.document.get("dod") != self._dod:
            return self._fail("dod_changed", "its Definition of Done was changed during the run")
        if evidence_is_required(self._bead.document):
            missing = self._runner.missing_evidence(run)
            if missing:
                return self._fail("evidence", f"no evidence is left of {', '.join(missing)}")
        bead = update_meta(self._bead, self._folders, status="completed")
        message = f"verified in attempt {self._attempts}"
        return RunOutcome(bead, "completed", "verified", message, self._attempts)

    def _fail(self, why: Why, message: str) -> RunOutcome:
        bead = update_meta(self._bead, self._folders, status="failed", failure_reason=message)
        return RunOutcome(bead, "failed", why, message, self._attempts)

    def _spent(self, wait_s: float) -> tuple[Why, str] | None:
        """Returns which limit leaves no time for an attempt after the wait, or None."""
        limits, after = self._limits, f"not verified after {self._attempts} attempts"
        if self._attempts >= limits.max_iterations:
            return "max_iterations", after
        why = next((why for why, left_s in self._left_s().items() if left_s <= wait_s), None)
        if why == "deadline" and limits.deadline_ms is not None:
            return why, f"{after}: no time is left before {format_ms(limits.deadline_ms)}"
        if why is not None:
            return why, f"{after}: the time budget of {limits.time_budget_s or 0} s is used up"
        return None

    def _left_s(self) -> dict[Why, float]:
        left: dict[Why, float] = {}
        if self._limits.deadline_ms is not None:
            left["deadline"] = (self._limits.deadline_ms - self._runner.now_ms()) / 1000
        if self._limits.time_budget_s is not None:
            left["time_budget"] = self._limits.time_budget_s - self._spent_s()
        return left

    def _spent_s(self) -> float:
        return self._spent_before_s + (self._runner.now_ms() - self._started_ms) / 1000


def _time_spent_s(bead: BeadFile) -> float:
    spent = bead.document.get("ralph_meta", {}).get("time_spent_seconds", 0)
    # An integer in a document may be too large for a float.
    return float(max(0, min(spent, LONGEST_S))) if isinstance(spent, (int, float)) else 0.0


def _known_failures(bead: BeadFile) -> str:
    """Returns what an earlier run found, for the first attempt."""
    results = bead.document.get("ralph_meta", {}).get("verifier_results", [])
    return "\n".join(
        f"## {result.get('name')}\n{result.get('reason')}\n"
        for result in results
        if isinstance(result, dict) and result.get("status") == "failed"
    )
