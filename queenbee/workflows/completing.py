"""Completes an issue of a hive: its checks first, and then its assignment. ADR 0008.

No program runs under the hive's lock. Each step leaves a state from which the same command
continues: the checks are recorded, then a Ralph bead is completed and moved, and last the
assignment ends, with its leases, its message and the tracker's row, all or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.beads import DONE
from queenbee.core.text import suggested
from queenbee.core.timestamps import instant_ms
from queenbee.documents.issue_rows import close_row, current_rows, metadata_of
from queenbee.documents.sprints.teams import is_sprint_bead
from queenbee.errors import InvalidInput
from queenbee.store.issues_file import read_rows_exactly
from queenbee.workflows.documents import may_be_bead
from queenbee.workflows.verifications import last_verification

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queenbee.checks.engine import Progress
    from queenbee.checks.verification import VerificationRecord
    from queenbee.core.records import Assignment
    from queenbee.documents.ralph.store import BeadFile
    from queenbee.services.transaction import Transaction
    from queenbee.workflows.hive import Hive

GOOD = ("passed", "not_verified")


@dataclass(frozen=True)
class Completion:
    """The result of completing an issue: its assignment as it is now, and its checks.

    `verification` is the record of the checks that ran, or None if the issue has none.
    """

    assignment: Assignment
    verification: VerificationRecord | None = None

    @property
    def completed(self) -> bool:
        """Whether the issue is completed; if not, a check failed and nothing else changed."""
        return self.assignment.status == "completed"

    def to_dict(self) -> dict[str, object]:
        """Returns the assignment's fields, with the record of the checks if there are any."""
        more = {"verification": self.verification} if self.verification is not None else {}
        return {**self.assignment.to_dict(), **more}


def complete(
    hive: Hive,
    issue_id: str,
    *,
    env: Mapping[str, str],
    reason: str | None = None,
    unverified: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Completion:
    """Runs the checks of an issue that the actor may complete, and completes it if they pass.

    With `unverified` no check runs, and the reason, which is then required, is recorded instead.
    Raises `NotFound`, `NotYours`, `InvalidInput`, or `Conflict` for a Ralph bead that waits for
    something or lacks its evidence.
    """
    if unverified and not (reason and reason.strip()):
        raise InvalidInput(
            "completing without checks needs a reason",
            hint=suggested("queen complete", issue_id, no_verify=True, reason="WHY"),
        )
    assignment = hive.assignments.check_ending(issue_id)
    record = _verified(hive, assignment, env, reason if unverified else None, on_progress)
    if record is not None and record["verdict"] not in GOOD:
        return Completion(assignment, record)
    ended = hive.assignments.complete(
        issue_id, reason=_reason(record, reason), also=closing(hive, issue_id)
    )
    return Completion(ended, record)


def closing(hive: Hive, issue_id: str) -> Callable[[Transaction], None] | None:
    """Returns a function that closes the tracker's row of an imported bead, or None for others.

    Only rows that were imported from plans and sessions are ours; the tracker closes the others.
    """
    issue = hive.issues.tracked().get(issue_id)
    if issue is None or not may_be_bead(issue):
        return None
    if not is_sprint_bead(issue.fields) and "session_task" not in metadata_of(issue.fields):
        return None

    def close(tx: Transaction) -> None:
        row = current_rows(read_rows_exactly(hive.layout.issues_path)).get(issue_id)
        if row is not None and row.get("status") not in DONE:
            tx.append_issue(close_row(row, tx.now_ms))

    return close


def _verified(
    hive: Hive,
    assignment: Assignment,
    env: Mapping[str, str],
    unverified_because: str | None,
    on_progress: Callable[[Progress], None] | None,
) -> VerificationRecord | None:
    """Returns the record of the checks of an issue, or None if it has none to run."""
    issue_id = assignment.issue_id
    issue = hive.issues.tracked().get(issue_id)
    is_plain = issue is None or not may_be_bead(issue)
    if is_plain and hive.documents.find_bead(issue_id) is None:
        return None
    from queenbee.workflows import running  # noqa: PLC0415 - start-up

    judged = issue is not None and running.has_judgements(issue)
    record = None
    if issue is not None and judged and unverified_because is None:
        record = running.judge_sprint(hive, issue)
        if record["verdict"] != "passed":
            return record
    bead = hive.documents.find_bead(issue_id)
    if bead is not None and not _was_completed(hive, bead, assignment):
        return running.complete_ralph(
            hive,
            bead,
            env=env,
            unverified_because=unverified_because,
            on_progress=on_progress,
        )
    if issue is not None and judged and unverified_because is not None:
        return running.judge_sprint(hive, issue, unverified_because=unverified_because)
    return record


def _was_completed(hive: Hive, bead: BeadFile, assignment: Assignment) -> bool:
    """Returns whether an earlier, interrupted completion has already completed the bead.

    The file alone does not prove it: anyone can edit it, even an agent in a hurry.
    """
    if bead.document.get("status") != "completed":
        return False
    record = last_verification(hive, bead.bead_id)
    return (
        record is not None
        and record.get("verdict") in GOOD
        and (instant_ms(record.get("finished_at")) or 0) >= assignment.created_ms
    )


def _reason(record: VerificationRecord | None, reason: str | None) -> str | None:
    """Returns why the assignment ended, also for the message to the droid that assigned it."""
    if record is None:
        return reason
    if record["verdict"] == "not_verified":
        return f"not verified: {reason}"
    passed = sum(1 for result in record["results"] if result["status"] == "passed")
    checks = "1 check passed" if passed == 1 else f"{passed} checks passed"
    return f"{reason} ({checks})" if reason else f"verified: {checks}"
