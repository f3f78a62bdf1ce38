"""`queen issue assign`, `claim`, `release`, `assignments`: who works on which issue."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import command, invocation, is_mine, tell
from queenbee.cli.confirming import confirm_options, granted
from queenbee.cli.options import force, seconds
from queenbee.cli.rendering import ago, paragraph, show_lines, table
from queenbee.cli.terminal import say
from queenbee.core.leases import assignment_end_ms
from queenbee.core.records import ASSIGNMENT_STATUSES, Assignment
from queenbee.core.text import printable, shortened, suggested
from queenbee.errors import NotFound, QueenError
from queenbee.workflows.next_text import of_given_back, of_issue, when_done

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from queenbee.core.records import AssignmentStatus
    from queenbee.library.hive import Hive


def show_list(assignments: Sequence[Assignment], given_back: Assignment | None = None) -> None:
    """Shows assignments as a table, and the whole reason of one that was given back."""
    now_ms = time.time_ns() // 1_000_000
    ended = any(each.status != "active" for each in assignments)
    rows = [
        [
            each.issue_id,
            each.droid,
            # Superseded: it no longer counts, although its own line says active.
            _status(each),
            ago(each.created_ms, now_ms),
            *([_ended(each, now_ms)] if ended else []),
            # What counts of one that ended is who ended it.
            str(each.get("updated_by") or each.assigned_by),
            each.worktree or "",
            shortened(each.reason or ""),
        ]
        for each in assignments
    ]
    when = ["SINCE", "ENDED"] if ended else ["SINCE"]
    headings = ["ISSUE", "DROID", "STATUS", *when, "BY", "WORKTREE", "REASON"]
    table(
        headings,
        rows,
        empty="No assignments.",
        text=["WORKTREE", "REASON"],
        spare=["BY", "WORKTREE", "SINCE", "REASON"] if ended else ["BY", "WORKTREE", "REASON"],
        mine=[is_mine(each.droid) for each in assignments],
    )
    if given_back is not None:
        paragraph(of_given_back(given_back))


def _status(assignment: Assignment) -> str:
    if assignment.status != "active":
        return assignment.status
    if assignment.superseded_by:
        return "superseded"
    if assignment.review is not None:
        return "in review"
    return "unconfirmed" if assignment.unconfirmed else "active"


def _ended(assignment: Assignment, now_ms: int) -> str:
    """Returns how long ago an assignment was completed, released or reassigned."""
    return "" if assignment.status == "active" else ago(assignment_end_ms(assignment), now_ms)


def show_one(assignment: Assignment) -> None:
    verb = {
        "active": "is assigned to",
        "completed": "was completed by",
        "released": "was released by",
        "reassigned": "was taken from",
    }.get(assignment.status, assignment.status)
    sign = ", unconfirmed" if assignment.status == "active" and assignment.unconfirmed else ""
    by = assignment.get("updated_by") if assignment.status == "released" else None
    who = printable(str(by or assignment.droid))
    paragraph(f"{printable(assignment.issue_id)} {verb} {who}{sign}")


def _show_claimed(given: Sequence[Assignment]) -> None:
    hive = invocation().hive
    mine = [each.issue_id for each in hive.assignments.find(droid=hive.actor)]
    told: set[str] = set()
    for each in given:
        show_one(each)
        issue = hive.issues.get_or_none(each.issue_id) if mine[1:] else None
        if issue is not None:
            paragraph(printable(issue.title))
            show_lines(of_issue(issue.fields, told))
    if mine[1:] and hive.layout.worktree:
        paragraph(when_done(mine))


@command(show=_show_claimed, example="queen claim qb-42", at_once=True)
@click.argument("issue_ids", nargs=-1, required=True, metavar="ISSUE...")
@click.option("--worktree", help="Where you work; default: this linked worktree")
@click.option("--reason", help="Why")
@force("anyway", "Also if it waits for others or is set aside")
@click.option("--new", is_flag=True, help="Also if nobody has described it")
@click.option("--wait", callback=seconds, metavar="10m", help="Wait until it is your turn")
@confirm_options
def claim(  # noqa: PLR0913 - the options of a command
    hive: Hive,
    issue_ids: tuple[str, ...],
    worktree: str | None,
    reason: str | None,
    anyway: bool,
    new: bool,
    wait: int | None,
    confirm: bool,
    local_if_offline: bool,
) -> list[Assignment]:
    """Claim an issue that can be started and that nobody has

    queen next chooses one for you. Of several, it claims those that it can, and says why not the
    others.
    """
    issues = list(dict.fromkeys(hive.issue_id(each) for each in issue_ids))
    rest: dict[str, Any] = {"worktree": worktree, "reason": reason}
    rest |= {"anyway": anyway, "described": not new}
    terms = {"confirm": confirm, "local_if_offline": local_if_offline}

    def claimed(issue_id: str) -> Assignment:
        claim = partial(hive.assignments.claim, issue_id, **rest)

        def ask(wait_s: float, watcher: Any) -> list[Assignment]:
            return [claim(timeout_s=wait_s, on_progress=watcher)]

        return granted(hive, ask, wait_s=wait, **terms)[0]  # type: ignore[no-any-return]

    given, refused = [], []
    for each in issues:
        try:
            given.append(claimed(each))
        except QueenError as error:
            refused.append(error)
    if not given:
        raise refused[0]
    for why in refused:
        tell(f"not claimed: {why.message}")
    return given


@command(
    show=show_one,
    example="queen issue assign qb-42 ui-engineer\n"
    "queen issue assign qb-42 tester --force --reason 'needs a test first'",
)
@click.argument("issue_id", metavar="ISSUE")
@click.argument("droid")
@click.option("--worktree", help="Where the droid works")
@click.option("--reason", help="Why")
@force("reassign", "Also if a droid has it, or if it waits for others or is set aside")
@click.option("--anyway", is_flag=True, hidden=True, help="Before 0.2")
@click.option("--new", is_flag=True, help="Also to a droid that nobody here knows yet")
def assign(  # noqa: PLR0913 - the options of a command
    hive: Hive,
    issue_id: str,
    droid: str,
    worktree: str | None,
    reason: str | None,
    reassign: bool,
    anyway: bool,
    new: bool,
) -> Assignment:
    """Assign an issue to a droid and send it a message"""
    issue_id = hive.issue_id(issue_id)
    try:
        hive.issues.check_known(issue_id)
        if not new:
            hive.droids.check_addressee(droid)
        said = {"worktree": worktree, "reason": reason}
        anyway = anyway or reassign
        return hive.assignments.assign(issue_id, droid, **said, reassign=reassign, anyway=anyway)
    except NotFound as error:
        if hive.issues.get_or_none(droid) is not None:
            error.hint = (
                f"the issue comes first: {suggested('queen issue assign', droid, issue_id)}"
            )
        raise


@command(show=show_one, example="queen release qb-42 --reason 'blocked by qb-40'", at_once=True)
@click.argument("issue_id", required=False, metavar="[ISSUE]")
@click.option("--reason", help="Why")
def release(hive: Hive, issue_id: str | None, reason: str | None) -> Assignment:
    """Release an issue and the files reserved for it

    ISSUE is the one that you have, if nothing else is said.
    """
    issue_id = hive.issue_id(issue_id, recorded=True) if issue_id else hive.assignments.own()
    return hive.assignments.release(issue_id, reason=reason)


@command(
    show=lambda given: say("noted: others see it until you land, or for a day"),
    example="queen note 'I switch run_length_* to the helper'",
    at_once=True,
)
@click.argument("text")
def note(hive: Hive, text: str) -> Assignment:
    """Tell the others what you do beside your issue

    They see it in queen next and queen status, and in the hook, until your issue ends or a day has
    passed.
    """
    return hive.assignments.note(text)


@command(show=show_list, example="queen issue assignments --droid ui-engineer", at_once=True)
@click.option("--droid", help="Only this droid's assignments")
@click.option("--issue", "issue_id", metavar="ID", help="Only this issue's assignments")
@click.option(
    "--status",
    type=click.Choice([*ASSIGNMENT_STATUSES, "all"]),
    default="active",
    show_default=True,
    metavar="STATUS",
    help=f"{', '.join(ASSIGNMENT_STATUSES)}, or all",
)
def assignments(
    hive: Hive, droid: str | None, issue_id: str | None, status: AssignmentStatus | Literal["all"]
) -> list[Assignment]:
    """List who works on what"""
    if issue_id is not None:
        issue_id = hive.issue_id(issue_id, recorded=True)
    return hive.assignments.find(droid=droid, issue_id=issue_id, status=status)
