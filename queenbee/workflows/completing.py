"""Completes an issue of a hive: its checks first, and then its assignment. ADR 0008.

No program runs under the hive's lock. Each step leaves a state from which the same command
continues.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from queenbee.core.beads import DONE, is_sprint_bead, metadata_of
from queenbee.core.names import PERSON
from queenbee.core.text import suggested
from queenbee.core.timestamps import instant_ms
from queenbee.documents.issue_rows import close_row
from queenbee.errors import (
    Conflict,
    ExternalFailure,
    InvalidInput,
    NotYours,
    QueenError,
    Unreadable,
    Untrusted,
)
from queenbee.services.messages import BY_HIVE, stage
from queenbee.services.telling.open_ends import still_reserved
from queenbee.store.droids import roster
from queenbee.workflows.document_answers import may_be_bead
from queenbee.workflows.ending_unchecked import refuse_agent
from queenbee.workflows.owning.owner import Owner
from queenbee.workflows.verifications import last_verification

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.checks.executing import Progress
    from queenbee.checks.verification import VerificationRecord
    from queenbee.core.beads import Issue
    from queenbee.core.records import Assignment
    from queenbee.documents.ralph.bead_files import BeadFile
    from queenbee.services.writing.transaction import Transaction
    from queenbee.workflows.complete_hive import Hive

# Loaded before others have to wait for it in a turn at writing.
import queenbee.services.writing.issue_changes  # noqa: F401 # isort: skip

GOOD = ("passed", "not_verified")


@dataclass(frozen=True, slots=True)
class Completion:
    """The result of completing an issue: its assignment as it is now, and its checks.

    `verification` is the record of the checks that ran, or None if the issue has none. `unblocked`
    are the issues that waited for this one and are ready now. `still_reserved` are the patterns
    that the actor holds for no issue. `notes` say what else failed.
    """

    assignment: Assignment
    verification: VerificationRecord | None = None
    unblocked: Sequence[Issue] = ()
    notes: Sequence[str] = ()
    still_reserved: Sequence[str] = ()

    @property
    def completed(self) -> bool:
        """Whether the issue is completed; if not, a check failed and nothing else changed."""
        return self.assignment.status == "completed"

    def with_note(self, note: str) -> Completion:
        """Returns the same with one more note."""
        return replace(self, notes=[*self.notes, note])

    def to_dict(self) -> dict[str, object]:
        """Returns the assignment's fields, `unblocked`, and any notes and record of checks."""
        more: dict[str, object] = {"unblocked": [each.id for each in self.unblocked]}
        if self.still_reserved:
            more["still_reserved"] = list(self.still_reserved)
        if self.notes:
            more["notes"] = list(self.notes)
        if self.verification is not None:
            more["verification"] = self.verification
        return {**self.assignment.to_dict(), **more}


@dataclass(frozen=True, slots=True)
class Followed:
    """The result of completing an issue, and what was taken after it, if anything."""

    completion: Completion
    next: object

    def to_dict(self) -> dict[str, object]:
        """Returns the fields of the completion, and `next`."""
        return {**self.completion.to_dict(), "next": self.next}


def complete(  # noqa: PLR0913 - by name
    hive: Hive,
    issue_id: str,
    *,
    env: Mapping[str, str],
    reason: str | None = None,
    unverified: bool = False,
    checked: VerificationRecord | None = None,
    landed: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    bead: BeadFile | None = None,
) -> Completion:
    """Runs the checks of an issue that the actor may complete, and completes it if they pass; those
    of its Ralph bead as it is given, or else in its file.

    With `unverified` no check runs, and the reason, which is then required, is recorded instead.
    With `checked`, a record of `check` that passed, none runs either. `landed` is the commit
    that has the work on the main branch. If the actor has completed
    the issue already, nothing happens. Raises `NotFound`, `NotYours`, `InvalidInput`, or `Conflict`
    for a Ralph bead that waits for something or lacks its evidence.
    """
    hive.look({"issue_id": issue_id, "reason": reason})  # Before the checks, which take minutes.
    because = _reason_against_checks(issue_id, reason) if unverified else None
    if unverified:
        refuse_agent(hive, issue_id)
    done = hive.issues.completion(issue_id)
    if done is not None and done.droid == hive.actor and hive.assignments.active(issue_id) is None:
        return Completion(done)
    assignment = hive.assignments.check_ending(issue_id)
    _refuse_in_review(hive, assignment, landed)
    if checked is not None and checked["verdict"] in GOOD:
        _complete_bead(hive, assignment)
        record: VerificationRecord | None = checked
    else:
        found = _open_bead(hive, assignment, bead)
        record = _verified(
            hive,
            issue_id,
            found,
            env,
            on_progress=on_progress,
            completes=True,
            because=because,
        )
    if record is not None and record["verdict"] not in GOOD:
        return Completion(assignment, record)
    return end(hive, issue_id, _reason(record, reason), record, landed=landed)


def _refuse_in_review(hive: Hive, assignment: Assignment, landed: str | None) -> None:
    """Raises `Conflict` for work that is proposed and not merged: nobody but a person says that it
    is done before the host does.
    """
    review = assignment.review
    if review is not None and landed is None and hive.actor != PERSON:
        raise Conflict(
            f"{assignment.issue_id} is proposed by {review}, which is not merged: it is complete "
            "once the host says that",
            hint="queen status --sync; meanwhile: queen next",
            review=review.to_dict(),
        )


def _reason_against_checks(issue_id: str, reason: str | None) -> str:
    """Returns why no check is to run. Raises `InvalidInput` without a reason."""
    if reason and reason.strip():
        return reason
    raise InvalidInput(
        "completing without checks needs a reason",
        hint=suggested("queen complete", issue_id, force=True, reason="WHY"),
    )


def check(  # noqa: PLR0913 - by name
    hive: Hive,
    issue_id: str,
    *,
    env: Mapping[str, str],
    on_progress: Callable[[Progress], None] | None = None,
    of: str | None = None,
    bead: BeadFile | None,
    tree: str | None = None,
) -> VerificationRecord | None:
    """Returns the record of the checks of an issue that is to be completed, and of its Ralph bead
    as it is given; None if it has none.

    They run in a `tree`, by default the actor's. Completes nothing: `complete` does, with this
    record. The issue is one that the actor may end, or that the droid `of` has. Raises as
    `complete` does.
    """
    held = hive.assignments.active(issue_id) if of else hive.assignments.check_ending(issue_id)
    if held is None or of not in (None, held.droid):
        raise NotYours(f"{issue_id} is not assigned to {of}", hint="queen issue assignments")
    return _verified(hive, issue_id, bead, env, on_progress=on_progress, tree=tree)


def end(
    hive: Hive,
    issue_id: str,
    reason: str | None,
    record: VerificationRecord | None = None,
    *,
    landed: str | None = None,
) -> Completion:
    """Ends the work on an issue as completed: its assignment and leases, and the tracker's row.

    The droids who work on an issue that waited for it get a message.
    """
    behind = hive.issues.behind(issue_id)
    actor = hive.author

    def also(tx: Transaction) -> None:
        _close_row(hive, tx, issue_id, reason)
        for each in behind:
            if each.holder not in (None, actor) and hive.assignments.active(each.issue.id):
                subject = f"[{each.issue.id}] {issue_id}, which it waits for, is completed"
                fields = {"subject": subject, "body": f"{subject}.", "issue_id": each.issue.id}
                stage(
                    tx, actor, [str(each.holder)], {**fields, "importance": "normal", BY_HIVE: True}
                )

    ended = hive.assignments.complete(issue_id, reason=reason, landed=landed, also=also)
    notes = _closed_by_owner(hive, issue_id, reason)
    now = hive.issues.standings_of(each.issue.id for each in behind)
    unblocked = [each.issue for each in now.values() if each.state == "ready"]
    held = [each.pattern for each in still_reserved(hive)]
    return Completion(ended, record, unblocked, notes, held)


def end_merged(hive: Hive, issue_id: str, reason: str, landed: str) -> list[str]:
    """Ends the work on an issue that its host has merged as a commit, and says so in the file of
    its Ralph bead, whose checks passed before it was proposed; returns what went wrong.
    """
    notes = []
    held = hive.assignments.active(issue_id)
    try:
        if held is not None:
            _complete_bead(hive, held)
    except QueenError as error:
        notes.append(f"the bead of {issue_id} does not say that it is completed: {error.message}")
    return [*notes, *end(hive, issue_id, reason, landed=landed).notes]


def _close_row(hive: Hive, tx: Transaction, issue_id: str, reason: str | None) -> None:
    """Closes the tracker's row, where no program owns the file."""
    if _is_to_close(hive, issue_id) and Owner.of(hive) is None:
        row = hive.issues.exact_row(issue_id)
        if row is not None and row.get("status") not in DONE:
            hive.issues.put(tx, close_row(row, tx.now_ms, reason))


def _is_to_close(hive: Hive, issue_id: str) -> bool:
    """Returns whether completing closes the row: it is open, and the settings say so, or a plan or
    session made it, which counts on that.
    """
    issue = hive.issues.row(issue_id)
    if issue is None or issue.done:
        return False
    return hive.layout.settings.close_on_complete or (
        may_be_bead(issue)
        and (is_sprint_bead(issue.fields) or "session_task" in metadata_of(issue.fields))
    )


def _closed_by_owner(hive: Hive, issue_id: str, reason: str | None) -> list[str]:
    """Has the program that owns the tracker close an issue; returns what went wrong.

    The completion counts all the same.
    """
    owner = Owner.of(hive) if _is_to_close(hive, issue_id) else None
    if owner is None:
        return []
    try:
        owner.close(issue_id, reason, actor=hive.author)
    except (ExternalFailure, Untrusted, Unreadable) as error:
        way = f"; {error.hint}" if error.hint else ""
        return [f"{issue_id} is completed, but still open in the tracker: {error.message}{way}"]
    return []


def _verified(  # noqa: PLR0913 - by name
    hive: Hive,
    issue_id: str,
    bead: BeadFile | None,
    env: Mapping[str, str],
    *,
    on_progress: Callable[[Progress], None] | None,
    tree: str | None = None,
    completes: bool = False,
    because: str | None = None,
) -> VerificationRecord | None:
    """Returns the record of the checks of an issue, or None if it has none to run: what agents said
    of a sprint bead, then what its Ralph bead's say, which it `completes` if they pass. With
    `because`, none run.
    """
    if any(each.is_judged for each in roster.of_issue(hive.layout, issue_id)):
        raise judged_first(issue_id)
    issue, record = hive.issues.row(issue_id), None
    if bead is None and (issue is None or not may_be_bead(issue)):
        return None
    from queenbee.documents.ralph.verify import (  # noqa: PLC0415 - start-up
        complete_bead,
        verify_to_complete,
    )
    from queenbee.workflows import running  # noqa: PLC0415 - start-up

    judged = issue is not None and running.has_judgements(issue)
    if issue is not None and judged and (bead is None or because is None):
        record = running.judge_sprint(hive, issue, unverified_because=because)
        if record["verdict"] != "passed":
            return record
    if bead is None:
        return record
    runner = running.check_runner(hive, env, on_progress=on_progress, tree=tree)
    where, waits = (bead, runner, running.bead_folders(hive)), running.waits_for(hive)
    if completes:
        return complete_bead(*where, waits_for=waits, unverified_because=because).record
    return verify_to_complete(*where, waits_for=waits).record


def judged_first(issue_id: str) -> Conflict:
    """Returns why a bead whose step has not ended is neither completed nor landed."""
    return Conflict(
        f"{issue_id} is judged by others first", hint="end: queen start has it judged, and lands it"
    )


def _complete_bead(hive: Hive, assignment: Assignment) -> None:
    """Has the Ralph bead of an issue, if it has one, say that it is completed."""
    bead = _open_bead(hive, assignment)
    if bead is not None:
        from queenbee.documents.ralph.verify import update_meta  # noqa: PLC0415 - start-up
        from queenbee.workflows.running import bead_folders  # noqa: PLC0415 - start-up

        update_meta(bead, bead_folders(hive), status="completed")


def _open_bead(
    hive: Hive, assignment: Assignment, given: BeadFile | None = None
) -> BeadFile | None:
    """Returns the Ralph bead of an issue, if it has one that is not completed yet."""
    bead = given or hive.documents.find_bead(assignment.issue_id)
    return None if bead is None or _was_completed(hive, bead, assignment) else bead


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
