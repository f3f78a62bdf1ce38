"""Verifying, running and completing beads of a hive: where checks meet assignments.

No program runs under the hive's lock. Each step leaves a state from which the same command goes
on: the checks are recorded, then a Ralph bead is completed and moved, and last of all the
assignment ends, with its leases, its message and the tracker's row, all or nothing.
"""

from __future__ import annotations

import os

from queenbee.core.beads import DONE
from queenbee.core.timestamps import instant_ms
from queenbee.documents import folders as places
from queenbee.errors import InvalidInput, Taken
from queenbee.store.issues_file import read_rows_exactly
from queenbee.workflows.documents import may_be_bead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from queenbee.checks.engine import Check, Progress
    from queenbee.core.beads import Issue
    from queenbee.core.records import Assignment
    from queenbee.documents.ralph.run import RunOutcome
    from queenbee.documents.ralph.store import BeadFile
    from queenbee.documents.ralph.verify import Workplace
    from queenbee.services.transaction import Transaction
    from queenbee.workflows.hive import Hive

    Watcher = Callable[[Progress], None]

GOOD = ("passed", "not_verified")


class Completion:
    """What came of completing an issue: its assignment as it stands now, and its checks.

    `verification` is the record of the checks that ran, or None where the issue has none.
    """

    def __init__(
        self, assignment: Assignment, verification: Mapping[str, Any] | None = None
    ) -> None:
        self.assignment = assignment
        self.verification = verification

    @property
    def completed(self) -> bool:
        """Whether the issue is completed; else a check failed and nothing else changed."""
        return self.assignment.status == "completed"

    def to_dict(self) -> dict[str, object]:
        """Returns the assignment's fields, with the record of the checks where there are any."""
        more = {"verification": self.verification} if self.verification is not None else {}
        return {**self.assignment.to_dict(), **more}


def complete(
    hive: Hive,
    issue_id: str,
    *,
    env: Mapping[str, str],
    reason: str | None = None,
    unverified: bool = False,
    on_progress: Watcher | None = None,
) -> Completion:
    """Returns the completion of an issue that the actor may end; its checks run first.

    With `unverified` none runs, and the reason, which is needed then, is recorded as theirs.
    Raises `NotFound`, `NotYours`, `InvalidInput`, or `Conflict` for a Ralph bead that waits for
    something or lacks its evidence.
    """
    if unverified and not (reason and reason.strip()):
        raise InvalidInput(
            "completing without its checks needs a reason",
            hint=f"queen complete {issue_id} --no-verify --reason WHY",
        )
    assignment = hive.assignments.check_ending(issue_id)
    record = _verified(hive, assignment, env, reason if unverified else None, on_progress)
    if record is not None and record["verdict"] not in GOOD:
        return Completion(assignment, record)
    told = _told(record, reason)
    ended = hive.assignments.complete(issue_id, reason=told, also=_closing(hive, issue_id))
    return Completion(ended, record)


def verify(
    hive: Hive, name: str, *, env: Mapping[str, str], on_progress: Watcher | None = None
) -> Mapping[str, Any]:
    """Returns the record of one run of a bead's checks; nothing else about the bead changes.

    `name` is an id, or the path of a Ralph bead. Raises `NotFound`, or `InvalidInput` for an
    issue without checks.
    """
    bead = find_ralph_bead(hive, name)
    if bead is not None:
        from queenbee.documents.ralph.verify import verify_bead
        from queenbee.workflows.workplaces import workplace

        return verify_bead(bead, workplace(hive, env, on_progress=on_progress)).record
    return _judged(hive, _judgeable(hive, name))


def checks_of(hive: Hive, name: str) -> list[str]:
    """Returns a line for each check that `verify` would make. Raises as that does."""
    bead = find_ralph_bead(hive, name)
    if bead is not None:
        from queenbee.checks.engine import describe

        return describe(ralph_checks(bead))
    from queenbee.documents.sprints.verdict import describe_judges

    return describe_judges(_judgeable(hive, name).fields)


def ralph_checks(bead: BeadFile) -> list[Check]:
    """Returns the checks of a Ralph bead. Raises `InvalidInput` if it is not valid or has none."""
    from queenbee.documents.ralph.verify import checks_to_run

    return checks_to_run(bead)


def run(
    hive: Hive,
    name: str,
    agent_command: str,
    *,
    env: Mapping[str, str],
    on_progress: Watcher | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> RunOutcome:
    """Returns how the loop over a Ralph bead ended: the agent, its checks, and again.

    A bead of the hive is claimed for the actor first and its assignment completed at the end; a
    failed one stays theirs. A file from elsewhere is nobody's. Raises `NotFound`, `Taken`,
    `NoActor`, `Busy` while another loop runs over the bead, and what the loop raises.
    """
    from queenbee.workflows.workplaces import run_lock, workplace

    place = workplace(hive, env, on_progress=on_progress, tell=tell)
    with run_lock(hive, require_ralph_bead(hive, name).bead_id):
        # Only now is it the bead that no other loop has its hands on.
        return _run(hive, require_ralph_bead(hive, name), agent_command, place)


def _run(hive: Hive, bead: BeadFile, agent_command: str, place: Workplace) -> RunOutcome:
    from queenbee.documents.ralph.run import run_bead
    from queenbee.documents.ralph.verify import refuse_completed, unmet_of

    if os.path.dirname(bead.path) not in place.folders.all():
        return run_bead(bead, agent_command, place)
    refuse_completed(bead)
    ralph_checks(bead)
    _refuse_anothers(hive, bead.bead_id, hive.actor)
    if not unmet_of(bead, place):
        hive.assignments.claim(bead.bead_id)
    outcome = run_bead(bead, agent_command, place)
    # An agent that completes its bead itself has ended the assignment too.
    if outcome.status == "completed" and hive.assignments.active(bead.bead_id) is not None:
        also = _closing(hive, bead.bead_id)
        hive.assignments.complete(bead.bead_id, reason=outcome.message, also=also)
    return outcome


def find_ralph_bead(hive: Hive, name: str) -> BeadFile | None:
    """Returns the Ralph bead of an id, or in a file, or None where no bead has the id."""
    if os.sep in name or (name.endswith(".json") and os.path.exists(name)):
        from queenbee.documents.ralph.store import read_bead

        return read_bead(name)
    return hive.documents.find_bead(name)


def require_ralph_bead(hive: Hive, name: str) -> BeadFile:
    """Returns the same. Raises `NotFound`, or `InvalidInput` for an issue that is none."""
    bead = find_ralph_bead(hive, name)
    if bead is None:
        issue = hive.issues.get(name)
        raise InvalidInput(
            f"{issue.id} has no Ralph bead, and so no checks to run an agent against",
            hint=_where_to_write_one(hive, issue.id),
        )
    return bead


def _where_to_write_one(hive: Hive, issue_id: str) -> str:
    # The whole path: a linked worktree has a `.beads/` of its own, where nobody looks.
    path = os.path.join(places.bead_dirs(hive.layout)[1], f"{issue_id}.json")
    return f"write its Definition of Done to {path}; its form: queen bead schema ralph"


def _verified(
    hive: Hive,
    assignment: Assignment,
    env: Mapping[str, str],
    unverified_because: str | None,
    on_progress: Watcher | None,
) -> Mapping[str, Any] | None:
    """Returns the record of the checks of an issue, or None where it has none to run."""
    issue_id = assignment.issue_id
    issue = hive.issues.tracked().get(issue_id)
    if issue is not None and unverified_because is None and _has_judgements(issue):
        record = _judged(hive, issue)
        if record["verdict"] != "passed":
            return record
    bead = hive.documents.find_bead(issue_id)
    if bead is not None and not _was_completed(hive, bead, assignment):
        from queenbee.documents.ralph.verify import complete_bead
        from queenbee.workflows.workplaces import workplace

        place = workplace(hive, env, on_progress=on_progress)
        return complete_bead(bead, place, unverified_because=unverified_because).record
    if issue is not None and _has_judgements(issue):
        return record if unverified_because is None else _unjudged(hive, issue, unverified_because)
    return None


def _was_completed(hive: Hive, bead: BeadFile, assignment: Assignment) -> bool:
    """Returns whether a completion that was cut off has completed the bead already.

    What its file says is not enough: anybody can write that, an agent in a hurry too.
    """
    if bead.document.get("status") != "completed":
        return False
    from queenbee.workflows.views import last_verification

    record = last_verification(hive, bead.bead_id)
    return (
        record is not None
        and record.get("verdict") in GOOD
        and (instant_ms(record.get("finished_at")) or 0) >= assignment.created_ms
    )


def _judgeable(hive: Hive, issue_id: str) -> Issue:
    issue = hive.issues.get(issue_id)
    if not _has_judgements(issue):
        raise InvalidInput(
            f"{issue_id} has no checks: no Ralph bead has this id, and no attempt is on record",
            hint=_where_to_write_one(hive, issue_id),
            issue_id=issue_id,
        )
    return issue


def _has_judgements(issue: Issue) -> bool:
    if not may_be_bead(issue):
        return False
    from queenbee.documents.sprints.verdict import has_history

    return has_history(issue.fields)


def _judged(hive: Hive, issue: Issue) -> dict[str, Any]:
    from queenbee.documents.sprints.verdict import sprint_verdict
    from queenbee.workflows.workplaces import recorder

    record = sprint_verdict(dict(issue.fields), now_ms=hive.now_ms())
    recorder(hive)(record)
    return record


def _unjudged(hive: Hive, issue: Issue, reason: str) -> dict[str, Any]:
    from queenbee.documents.sprints.verdict import sprint_verdict
    from queenbee.workflows.workplaces import recorder

    record = sprint_verdict(dict(issue.fields), now_ms=hive.now_ms())
    record |= {"verdict": "not_verified", "results": [], "reason": reason}
    recorder(hive)(record)
    return record


def _told(record: Mapping[str, Any] | None, reason: str | None) -> str | None:
    """Returns what the assignment, and the message to whoever gave it, say of its end."""
    if record is None:
        return reason
    if record["verdict"] == "not_verified":
        return f"not verified: {reason}"
    passed = sum(1 for result in record["results"] if result["status"] == "passed")
    checks = "1 check passed" if passed == 1 else f"{passed} checks passed"
    return f"{reason} ({checks})" if reason else f"verified: {checks}"


def _closing(hive: Hive, issue_id: str) -> Callable[[Transaction], None] | None:
    """Returns what closes the tracker's row of a bead of our own, or None for other issues.

    What plans and sessions were imported into is ours; the rest is closed by the tracker.
    """
    issue = hive.issues.tracked().get(issue_id)
    if issue is None or not may_be_bead(issue) or not _is_own(issue):
        return None
    from queenbee.documents.issue_rows import close_row, current_rows

    def close(tx: Transaction) -> None:
        row = current_rows(read_rows_exactly(hive.layout.issues_path)).get(issue_id)
        if row is not None and row.get("status") not in DONE:
            tx.append_issue(close_row(row, tx.now_ms))

    return close


def _is_own(issue: Issue) -> bool:
    """Returns whether a row of the tracker was made by an import of ours."""
    from queenbee.documents.issue_rows import metadata_of
    from queenbee.documents.sprints.teams import is_sprint_bead

    return is_sprint_bead(issue.fields) or "session_task" in metadata_of(issue.fields)


def _refuse_anothers(hive: Hive, issue_id: str, actor: str) -> None:
    current = hive.assignments.active(issue_id)
    if current is not None and current.droid != actor:
        raise Taken(
            f"{issue_id} is assigned to {current.droid} since {current.created_at}",
            hint=f"queen msg send {current.droid} BODY --issue {issue_id}",
            holder=current.droid,
            assignment=current.to_dict(),
        )
