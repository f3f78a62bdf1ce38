"""The loop over a Ralph bead: the agent, the checks, and again until they pass or a limit ends it.

The Definition of Done is the one at the start: an agent that rewrites it while it works does
not complete its bead. `docs/ralph-beads.md`, section "The loop".
"""

from __future__ import annotations

from dataclasses import dataclass

from queenbee.checks.bounds import LONGEST_S
from queenbee.checks.engine import Check, Command
from queenbee.checks.verification import failures_text, missing_evidence, write_failures
from queenbee.core.timestamps import format_ms
from queenbee.documents.ralph.bead import (
    backoff_s,
    bead_limits,
    bead_status,
    evidence_is_required,
)
from queenbee.documents.ralph.verify import (
    attempts_of,
    checks_to_run,
    refuse_completed,
    run_pass,
    unmet_of,
    update_in_place,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from queenbee.documents.ralph.store import BeadFile
    from queenbee.documents.ralph.verify import Verification, Workplace

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
"""The name of the loop's own check, the first of an attempt: that the agent command succeeds."""

FAILURES_MAX_BYTES = 32 * 1024
"""Of the environment variable, where Linux takes 128 KiB; the file has more."""


@dataclass(frozen=True)
class RunOutcome:
    """Is how the loop ended: the bead as it was left, its status, and why."""

    bead: BeadFile
    status: Literal["completed", "failed", "blocked"]
    why: Why
    message: str
    attempts: int


def run_bead(bead: BeadFile, agent_command: str, place: Workplace) -> RunOutcome:
    """Returns how the loop over a bead ended; its file says the same.

    A bead that an interrupted run left `in_progress` goes on with the attempts and the time
    that it had left; any other begins anew. Raises `InvalidInput` for a bead that is not valid
    or has no verifier, `Conflict` for a completed one, and `KeyboardInterrupt` on Ctrl-C, when
    the attempt that it ended is recorded.
    """
    checks = checks_to_run(bead)
    refuse_completed(bead)
    unmet = unmet_of(bead, place)
    if unmet:
        message = "; ".join(f"{one.bead_id} {one.reason}" for one in unmet)
        blocked = update_in_place(bead, place, status="blocked")
        return RunOutcome(blocked, "blocked", "dependencies", message, attempts_of(bead))
    return _Loop(bead, checks, agent_command, place).run()


class _Loop:
    def __init__(
        self, bead: BeadFile, checks: list[Check], agent_command: str, place: Workplace
    ) -> None:
        self._bead = bead
        self._dod = bead.document["dod"]
        self._checks = checks
        self._agent_command = agent_command
        self._place = place
        self._limits = bead_limits(bead.document)
        goes_on = bead_status(bead.document) == "in_progress"
        self._attempts = attempts_of(bead) if goes_on else 0
        self._spent_before_s = _time_spent_s(bead) if goes_on else 0.0
        self._started_ms = place.now_ms()
        self._failures = _known_failures(bead)

    def run(self) -> RunOutcome:
        failed = 0
        while True:
            wait_s = backoff_s(self._limits, failed) if failed else 0
            spent = self._spent(wait_s)
            if spent is not None:
                return self._fail(*spent)
            if wait_s:
                self._place.tell(f"waiting {wait_s} s before attempt {self._attempts + 1}")
                self._place.sleep(wait_s)
            done = self._attempt()
            if done.verdict == "passed":
                return self._complete(done)
            failed += 1

    def _attempt(self) -> Verification:
        place = self._place
        self._attempts += 1
        place.tell(f"attempt {self._attempts} of {self._limits.max_iterations}")
        self._bead = update_in_place(
            self._bead,
            place,
            status="in_progress",
            attempt_count=self._attempts,
            last_attempt=format_ms(place.now_ms()),
            retry_backoff_seconds=self._limits.backoff_s,
            failure_reason=None,
        )
        done = run_pass(
            self._bead,
            [self._agent(), *self._checks],
            place,
            attempt=self._attempts,
            time_left=lambda: min(self._left_s().values(), default=LONGEST_S),
            meta=lambda: {"time_spent_seconds": round(self._spent_s(), 3)},
            verifiers_from=1,
        )
        self._bead = done.bead
        self._failures = failures_text(done.results)
        return done

    def _agent(self) -> Check:
        """Returns the agent command as a check: where it fails, the verifiers do not run."""
        file = write_failures(self._place.evidence_dir, self._bead.bead_id, self._failures)
        # A variable takes neither a NUL nor half of a surrogate pair.
        text = self._failures.replace("\0", "\ufffd").encode(errors="replace")
        told = {
            "QUEEN_BEAD": self._bead.bead_id,
            "QUEEN_BEAD_FILE": self._bead.path,
            "QUEEN_ATTEMPT": str(self._attempts),
            "QUEEN_MAX_ATTEMPTS": str(self._limits.max_iterations),
            "QUEEN_FAILURES": text[:FAILURES_MAX_BYTES].decode(errors="ignore"),
            "QUEEN_FAILURES_FILE": file,
        }
        # What ends it is what is left of the time, or Ctrl-C.
        return Check(
            AGENT,
            Command(self._agent_command),
            timeout_s=LONGEST_S,
            environment={**self._place.env, **told},
        )

    def _complete(self, done: Verification) -> RunOutcome:
        if done.bead.document.get("dod") != self._dod:
            return self._fail("dod_changed", "its Definition of Done was changed during the run")
        if evidence_is_required(done.bead.document):
            absent = missing_evidence(done.record, self._place.evidence_dir)
            if absent:
                return self._fail("evidence", f"no evidence is left of {', '.join(absent)}")
        bead = update_in_place(self._bead, self._place, status="completed")
        message = f"verified in attempt {self._attempts}"
        return RunOutcome(bead, "completed", "verified", message, self._attempts)

    def _fail(self, why: Why, message: str) -> RunOutcome:
        bead = update_in_place(self._bead, self._place, status="failed", failure_reason=message)
        return RunOutcome(bead, "failed", why, message, self._attempts)

    def _spent(self, wait_s: float) -> tuple[Why, str] | None:
        """Returns which limit leaves no room for an attempt after so long a wait, or None."""
        if self._attempts >= self._limits.max_iterations:
            return "max_iterations", f"not verified after {self._attempts} attempts"
        for why, left_s in self._left_s().items():
            if left_s <= wait_s:
                return why, self._out_of_time(why)
        return None

    def _out_of_time(self, why: Why) -> str:
        after = f"not verified after {self._attempts} attempts"
        if why == "deadline" and self._limits.deadline_ms is not None:
            return f"{after}: no time is left before {format_ms(self._limits.deadline_ms)}"
        return f"{after}: the time budget of {self._limits.time_budget_s or 0} s is used up"

    def _left_s(self) -> dict[Why, float]:
        left: dict[Why, float] = {}
        if self._limits.deadline_ms is not None:
            left["deadline"] = (self._limits.deadline_ms - self._place.now_ms()) / 1000
        if self._limits.time_budget_s is not None:
            left["time_budget"] = self._limits.time_budget_s - self._spent_s()
        return left

    def _spent_s(self) -> float:
        return self._spent_before_s + (self._place.now_ms() - self._started_ms) / 1000


def _time_spent_s(bead: BeadFile) -> float:
    spent = bead.document.get("ralph_meta", {}).get("time_spent_seconds", 0)
    # A document's integer may be larger than a float takes.
    return float(max(0, min(spent, LONGEST_S))) if isinstance(spent, (int, float)) else 0.0


def _known_failures(bead: BeadFile) -> str:
    """Returns what an earlier pass has found, for the first attempt."""
    results = bead.document.get("ralph_meta", {}).get("verifier_results", [])
    return "\n".join(
        f"## {result.get('name')}\n{result.get('reason')}\n"
        for result in results
        if isinstance(result, dict) and result.get("status") == "failed"
    )
