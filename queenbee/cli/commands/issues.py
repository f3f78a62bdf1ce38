"""`queen issues`, `show`, `ready`: the tracker's issues with what the hive knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from queenbee.cli.app import command, first, is_mine, tell_origin
from queenbee.cli.rendering import Streamed, in_review, paragraph, show_lines, summary, table
from queenbee.cli.terminal import say
from queenbee.core.beads import Issue
from queenbee.core.text import printable, shortened, some, suggested
from queenbee.workflows.next_text import of_issue, of_reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.readiness import Standing
    from queenbee.library.hive import Hive
    from queenbee.services.work.overview import Overview


# What fits on one screen; --json and `queen msg thread ISSUE` show all of it.
_BODY_LINES = 4
_MESSAGES = 5
_SHOWN = 20


def show_list(issues: Sequence[Issue], *, empty: str = "No issues.") -> None:
    """Shows issues as a table."""
    rows = [
        [each.id, f"P{each.priority}", each.status, each.issue_type, shortened(each.title, 70)]
        for each in issues
    ]
    headings = ["ID", "", "STATUS", "TYPE", "TITLE"]
    table(headings, rows, empty=empty, text=["TITLE"], spare=["TYPE"])


class Listed:
    """The issues that were asked for, how many there are in each state, and for whom `queen next`
    holds some of them now.
    """

    def __init__(
        self, standings: Sequence[Standing], in_all: Mapping[str, int], held: Mapping[str, str]
    ) -> None:
        self.standings = standings
        self.counts = in_all
        self.held = held

    def to_dict(self) -> list[dict[str, object]]:
        """Returns the issues as plain values."""
        return [each.to_dict() for each in self.standings]


class Deleted:
    """The issues that were deleted."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = issues

    def to_dict(self) -> list[dict[str, object]]:
        """Returns the issues as plain values."""
        return [each.to_dict() for each in self.issues]

    def show(self) -> None:
        """Shows them as a table."""
        names = ("deleted_by", "deleted_at", "delete_reason")
        rows = [
            [each.id, *(str(each.get(name) or "") for name in names), shortened(each.title, 70)]
            for each in self.issues
        ]
        headings = ["ISSUE", "BY", "WHEN", "REASON", "TITLE"]
        table(headings, rows, empty="No deleted issues.", text=["TITLE", "REASON"])
        if rows:
            paragraph(f"to have one again: queen issue reopen {printable(rows[0][0])}")


def _show_issues(listed: Listed | Deleted) -> None:
    if isinstance(listed, Deleted):
        listed.show()
        return
    rows = [
        [
            each.issue.id,
            f"P{each.issue.priority}",
            "in review" if each.review is not None else each.state.replace("_", " "),
            _who(each, listed.held),
            shortened(each.issue.title, 70),
        ]
        for each in listed.standings
    ]
    if rows:
        mine = [is_mine(each.holder) for each in listed.standings]
        table(["ISSUE", "", "STATE", "WHO", "TITLE"], rows, empty="", text=["TITLE"], mine=mine)
    for because, held in _on_hold(listed.standings).items():
        paragraph(printable(f"on hold: {some(held, _SHOWN)}: {because}"))
    paragraph(summary(listed.counts) if listed.counts["total"] else "No issues.")


def _who(standing: Standing, held: Mapping[str, str]) -> str:
    """Returns who has an issue, for whom it is held, or what it waits for."""
    if standing.holder:
        return standing.holder
    if standing.waits_for:
        return f"for {', '.join(standing.waits_for)}"
    droid = held.get(standing.issue.id)
    return f"held for {droid}" if droid else ""


def _on_hold(standings: Sequence[Standing]) -> dict[str, list[str]]:
    """Returns the issues that are on hold for each reason."""
    found = dict[str, list[str]]()
    for each in standings:
        if each.state == "on_hold" and each.because:
            found.setdefault(each.because, []).append(each.issue.id)
    return found


@command(show=_show_issues, example="queen issues --all")
@click.option("--all", "everything", is_flag=True, help="Also those that are done, and bookkeeping")
@click.option("--status", help="Only issues with this status of the tracker")
@click.option("--deleted", is_flag=True, help="The deleted issues, the last one first")
def issues(hive: Hive, everything: bool, status: str | None, deleted: bool) -> Listed | Deleted:
    """List the open issues: who has them, or what they wait for"""
    tell_origin(hive)
    if deleted:
        return Deleted(hive.issues.deleted())
    from queenbee.store.droids import offers  # noqa: PLC0415 - start-up

    found = hive.issues.listed(status=status, everything=everything)
    return Listed(found, hive.issues.counts(), offers.held(hive.layout, hive.now_ms()))


def _show_ready(issues: Sequence[Issue]) -> None:
    show_list(issues, empty="No issues are ready.")


@command(show=_show_ready, example="queen issue ready\nqueen issue ready --limit 20")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many; by default, all")
def ready(hive: Hive, limit: int | None) -> list[Issue]:
    """List the issues that you could start now, most urgent first"""
    tell_origin(hive)
    actor = hive.actor_or_none
    # One more tells whether any is left out.
    found = hive.issues.ready(actor=actor, limit=limit and limit + 1)
    return first(found, limit or len(found), lambda: hive.issues.startable_count(actor))


def _show_each(found: Overview | Streamed) -> None:
    views = cast("Sequence[Overview]", found.values if isinstance(found, Streamed) else [found])
    for number, view in enumerate(views):
        if number:
            say("")
        _show_overview(view)


def _show_overview(view: Overview) -> None:
    from queenbee.cli.commands import assignments as assignment_views  # noqa: PLC0415 - start-up
    from queenbee.cli.commands import msg as message_views  # noqa: PLC0415 - start-up
    from queenbee.cli.commands import reservations as reservation_views  # noqa: PLC0415 - start-up

    issue = view.issue
    if view.deleted is not None:
        _show_deleted(view.deleted)
    elif issue is None:
        paragraph(f"{printable(view.issue_id)} is not in the tracker", bold=True)
    else:
        _show_issue(view, issue)
    if view.bead is not None:
        from queenbee.cli.commands.bead import show_view  # noqa: PLC0415 - start-up

        show_view(view.bead)
    say("")
    assignment_views.show_list(view.assignments, view.given_back)
    for each in view.assignments:
        if each.status == "active":
            show_lines(of_reason(each))
    say("")
    reservation_views.show_list(view.reservations)
    say("")
    earlier = len(view.messages) - _MESSAGES
    if earlier > 0:
        thread = suggested("queen msg thread", printable(view.issue_id))
        paragraph(f"… {earlier} earlier messages: {thread}")
    message_views.show_whole(view.messages[-_MESSAGES:], most=_BODY_LINES)
    if not view.messages:
        paragraph("No messages.")


def _show_issue(view: Overview, issue: Issue) -> None:
    paragraph(f"{printable(issue.id)}  {printable(issue.title)}", bold=True)
    blocked = f", waits for {printable(', '.join(view.blockers))}" if view.blockers else ""
    held = next((each for each in view.assignments if each.status == "active"), None)
    has = f", {held.droid} has it{in_review(held)}" if held is not None else ""
    status = f"{issue.status}{has}"
    paragraph(f"P{issue.priority} {printable(issue.issue_type)}, {printable(status)}{blocked}")
    url = held.review.url if held is not None and held.review is not None else ""
    for address in dict.fromkeys(filter(None, (issue.get("external_ref"), url))):
        paragraph(printable(str(address)))
    if isinstance(labels := issue.get("labels"), list) and labels:
        paragraph(printable(f"labels: {some([*map(str, labels)], _SHOWN)}"))
    show_lines(of_issue(issue.fields))


def _show_deleted(issue: Issue) -> None:
    paragraph(f"{printable(issue.id)}  {printable(issue.title)}", bold=True)
    texts = {name: issue.get(name) for name in ("deleted_by", "deleted_at", "delete_reason")}
    by = f" by {texts['deleted_by']}" if texts["deleted_by"] else ""
    at = f" at {texts['deleted_at']}" if texts["deleted_at"] else ""
    why = f": {texts['delete_reason']}" if texts["delete_reason"] else ""
    paragraph(printable(f"deleted from the tracker{by}{at}{why}"))


@command(show=_show_each, example="queen show qb-42\nqueen show qb-42 qb-43")
@click.argument("issue_ids", nargs=-1, metavar="[ISSUE]...")
def show(hive: Hive, issue_ids: tuple[str, ...]) -> Overview | Streamed:
    """Show issues with their holders, reserved files and threads

    ISSUE is the one that you have, if nothing else is said. With --json, each of several is a
    document on a line of its own.
    """
    if not issue_ids and hive.actor_or_none is None:
        raise click.UsageError("Missing argument 'ISSUE'.")
    tell_origin(hive)
    if len(issue_ids) > 1:
        return Streamed([hive.show(each) for each in issue_ids])
    return hive.show(issue_ids[0] if issue_ids else None)
