"""`queen bead`: Ralph beads and sprint beads, units of work with a definition of done."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, Invocation, QueenGroup, command, group, is_mine
from queenbee.cli.commands.verify import evidence_path
from queenbee.cli.exits import NO, exit_code
from queenbee.cli.options import agents_dir, body_or_stdin
from queenbee.cli.rendering import (
    entry,
    paragraph,
    show_findings,
    show_json,
    show_lines,
    table,
    verdict,
)
from queenbee.cli.terminal import say
from queenbee.core.text import printable, shortened
from queenbee.errors import QueenError
from queenbee.store import layout
from queenbee.workflows.next_text import of_issue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.library.hive import Hive
    from queenbee.workflows.bead_view import BeadView
    from queenbee.workflows.beads import What
    from queenbee.workflows.validation import Kind, Validated

KINDS = ("ralph", "sprint")


def _show_validated(found: Sequence[Validated]) -> None:
    for each in found:
        name = each.source
        if each.bead_id not in (None, name):
            name += f" ({each.bead_id})"
        word = verdict(each.valid)
        paragraph(f"{word}: {printable(name)}", bold=not each.valid, state=word)
        show_findings(each.findings, each.source)
    if not found:
        paragraph("No beads.")


@command(
    show=_show_validated,
    example="queen bead validate .beads/active/gt-1.json\n"
    "queen bead validate bd-a1b2c3 --strict\n"
    "bd show bd-a1b2c3 --json | queen bead validate -",
    opens_hive=False,
)
@click.argument("targets", nargs=-1, required=True, metavar="FILE|ID|-...")
@click.option("--kind", type=click.Choice(KINDS), help="The kind of bead; default: detected")
@click.option("--strict", is_flag=True, help="Require team_name and agent_type")
@agents_dir
def validate(
    call: Invocation,
    targets: tuple[str, ...],
    kind: Kind | None,
    strict: bool,
    agents_dir: str | None,
) -> Answer:
    """Check whether beads are valid

    Exit 0 if all are valid, 1 with every error if not; if a target cannot be read, the others are
    still judged, and the exit status is the worst. A target is a JSON file, a .jsonl file of
    the tracker, an id, or - for standard input.
    """
    from queenbee.workflows.validation import (  # noqa: PLC0415 - start-up
        Rules,
        agents_for,
        unreadable,
        validate_target,
    )

    agents = agents_for(os.getcwd(), agents_dir)
    rules = Rules(kind, strict, agents, partial(_branch_conflict, call))
    found: list[Validated] = []
    worst = NO
    for target in targets:
        try:
            found += validate_target(target, rules, stdin=sys.stdin.buffer, hive=lambda: call.hive)
        except QueenError as error:
            if len(targets) == 1:
                raise
            worst = max(worst, exit_code(error))
            found.append(unreadable(target, error))
    return Answer(found, yes=all(each.valid for each in found), no=worst)


def _branch_conflict(call: Invocation, branch: str) -> str | None:
    """Returns why this repository cannot have the branch of a bead; None if that cannot be told."""
    from queenbee.git.worktrees.bead_place import branch_conflict  # noqa: PLC0415 - start-up

    with suppress(QueenError):
        cwd = layout.working_directory()
        here = layout.discover(cwd, os.environ, beads_dir=call.beads_dir, must_exist=False)
        return branch_conflict(here, branch)
    return None


@command(show=show_json, example="queen bead schema ralph", opens_hive=False)
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.option("--strict", is_flag=True, help="Require team_name and agent_type")
def schema(call: Invocation, kind: Kind, strict: bool) -> dict[str, Any]:
    """Print the JSON Schema of a kind of bead: ralph or sprint"""
    if kind == "ralph":
        from queenbee.documents.ralph.ralph_bead import ralph_schema  # noqa: PLC0415 - start-up

        return ralph_schema()
    from queenbee.documents.sprints.sprint_bead import sprint_schema  # noqa: PLC0415 - start-up

    return sprint_schema(strict=strict)


def show_view(view: Mapping[str, Any]) -> None:
    """Shows a bead: its team, gates, checks and last verification."""
    holder = f", with {printable(view['holder'])}" if view["holder"] else ""
    paragraph(
        f"{view['kind']} bead{holder}" + (f", {printable(view['file'])}" if view["file"] else "")
    )
    if view["team"]:
        paragraph(f"team {printable(str(view['team']))}")
    if view["waits"]:
        paragraph(f"not ready: {printable(view['waits'])}")
    for name, value in (view.get("sprint") or view.get("session") or {}).items():
        if value not in (None, ""):
            paragraph(f"  {name}: {printable(str(value))}")
    for gate in view["gates"]:
        paragraph(
            f"gate {printable(gate['workflow_id'])}/{printable(gate['phase_id'])}: {gate['status']}"
        )
    for line in view["checks"]:
        paragraph(f"check {printable(line)}")
    _show_verification(view["verification"], view["missing_evidence"])


def _show_verification(record: Mapping[str, Any] | None, missing: Sequence[str]) -> None:
    if record is None:
        return
    reason = f", {printable(str(record['reason']))}" if record.get("reason") else ""
    ended = printable(f"{record.get('finished_at')}: {record.get('verdict')}")
    paragraph(f"last verification {ended}{reason}")
    for result in record.get("results") or ():
        evidence = result.get("evidence")
        where = evidence_path(str(evidence)) if evidence else ""
        gone = " (not on this machine)" if where and result.get("name") in missing else ""
        paragraph(
            f"  {result.get('status')}: {printable(str(result.get('name')))}: "
            f"{printable(str(result.get('reason')))} {printable(where)}{gone}".rstrip()
        )


def _show_whole(bead: Mapping[str, Any]) -> None:
    paragraph(f"{printable(bead['id'])}  {printable(bead['title'])}", bold=True)
    paragraph(f"P{bead['priority']} {printable(bead['status'])}")
    document = bead["document"]
    intent = document.get("intent") or document.get("description")
    show_lines(of_issue({**document, "description": intent}))
    show_view(bead)


@command(show=_show_whole, example="queen bead show bd-a1b2c3")
@click.argument("bead_id", metavar="BEAD")
def show(hive: Hive, bead_id: str) -> dict[str, object]:
    """Show a bead with its checks, evidence, gates and attempts"""
    from queenbee.workflows.beads import require_view  # noqa: PLC0415 - start-up

    view = require_view(hive, hive.issue_id(bead_id, recorded=True))
    return {**view.to_dict(), "document": view.document}


def _show_briefs(views: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        [
            view["id"],
            f"P{view['priority']}",
            view["status"],
            view["kind"],
            view["team"] or "",
            view["holder"] or "",
            shortened(view["title"], 50),
            shortened(view["waits"] or "", 50),
        ]
        for view in views
    ]
    headings = ["ID", "", "STATUS", "KIND", "TEAM", "DROID", "TITLE", "NOT READY"]
    table(
        headings,
        rows,
        empty="No beads.",
        text=["TITLE", "NOT READY"],
        spare=["KIND", "TEAM", "NOT READY"],
        mine=[is_mine(view["holder"]) for view in views],
    )


@command(show=_show_briefs, example="queen bead list --status open")
@click.option("--status", help="Only beads with this status")
@click.option("--kind", type=click.Choice([*KINDS, "session"]), help="Only beads of this kind")
@click.option("--team", metavar="NAME", help="Only beads of this team")
def list_(
    hive: Hive, status: str | None, kind: str | None, team: str | None
) -> list[dict[str, object]]:
    """List the beads, most urgent first

    Shows what keeps each one from being ready.
    """
    from queenbee.workflows.beads import brief_views  # noqa: PLC0415 - start-up

    return [
        view.brief()
        for view in brief_views(hive)
        if status in (None, view.issue.status)
        and kind in (None, view.kind)
        and team in (None, view.team)
    ]


def _show_teams(teams: Sequence[Mapping[str, Any]]) -> None:
    for number, each in enumerate(teams):
        if number:
            say("")
        paragraph(printable(str(each["team"])) if each["team"] else "no team", bold=True)
        for bead in each["beads"]:
            before = f"  {printable(bead['id'])}  P{bead['priority']}  "
            entry(before, printable(bead["title"]))
    if not teams:
        paragraph("No beads are ready.")


@command(show=_show_teams, example="queen bead ready --team auth-api")
@click.option("--team", metavar="NAME", help="Only this team's")
def ready(hive: Hive, team: str | None) -> list[dict[str, object]]:
    """List the ready beads by team

    The loop takes them in this way: one session works on all beads of a team.
    """
    from queenbee.workflows.beads import ready_teams  # noqa: PLC0415 - start-up

    def briefs(views: Sequence[BeadView]) -> list[dict[str, object]]:
        return [view.brief() for view in views]

    return [{"team": name, "beads": briefs(views)} for name, views in ready_teams(hive, team=team)]


def _show_recorded(bead: Mapping[str, Any]) -> None:
    sprint = bead["sprint"]
    left = sprint["attempts_left"]
    say(
        f"recorded; {printable(bead['id'])}: next step: {sprint['next_step']}, "
        f"{left} {'attempt' if left == 1 else 'attempts'} left"
    )


@command(
    show=_show_recorded,
    example="cat execution.json | queen bead record dev bd-a1b2c3 -\n"
    "queen bead record pr bd-a1b2c3 https://github.com/org/repo/pull/42",
)
@click.argument("what", type=click.Choice(["dev", "qa", "result", "pr"]), metavar="WHAT")
@click.argument("bead_id", metavar="BEAD")
@click.argument("entry", metavar="JSON|URL|-")
def record(hive: Hive, what: What, bead_id: str, entry: str) -> dict[str, object]:
    """Add to the history of a sprint bead

    WHAT is dev (an attempt), qa (a judgement), result, or pr (the pull request). An attempt beyond
    max_retry_attempts is refused, and a QA agent's report must match its output_schema. Recording
    the same entry again changes nothing.
    """
    from queenbee.workflows.beads import record_history, require_view  # noqa: PLC0415 - start-up

    bead_id = hive.issue_id(bead_id, recorded=True)
    record_history(hive, what, bead_id, body_or_stdin(entry))
    view = require_view(hive, bead_id)
    return {**view.to_dict(), "document": view.document}


@command(
    show=lambda bead: say(f"changed {printable(bead['id'])}"),
    example="queen bead edit bd-a1b2c3 --set metadata.max_retry_attempts=5",
)
@click.argument("bead_id", metavar="BEAD")
@click.option(
    "--set", "settings", multiple=True, required=True, metavar="metadata.NAME=VALUE",
    help="The new value: JSON, or a text; repeat it for more",
)  # fmt: skip
def edit(hive: Hive, bead_id: str, settings: tuple[str, ...]) -> dict[str, object]:
    """Set fields of a sprint bead's metadata

    A value that the schema refuses is refused, and so is what queen bead record writes.
    """
    from queenbee.workflows.beads import require_view, set_metadata  # noqa: PLC0415 - start-up

    bead_id = hive.issue_id(bead_id, recorded=True)
    set_metadata(hive, bead_id, settings)
    view = require_view(hive, bead_id)
    return {**view.to_dict(), "document": view.document}


bead: QueenGroup = group(
    "bead",
    [validate, schema, show, list_, ready, record, edit],
    help="Units of work with a definition of done",
    more="verify:verify run:verify",
    example="queen bead list\nqueen bead validate .ralph/beads/gt-1.json",
)
