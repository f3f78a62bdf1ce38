"""`queen plan`: checks Markdown plans, shows them as graphs and imports them as beads."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, Invocation, QueenGroup, command, group, invocation
from queenbee.cli.exits import NO, exit_code
from queenbee.cli.options import agents_dir, dry_run, id_prefix
from queenbee.cli.rendering import show_findings, verdict
from queenbee.cli.terminal import say
from queenbee.core.text import printable, some, suggested
from queenbee.errors import QueenError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.documents.issue_rows import RowImport
    from queenbee.library.hive import Hive
    from queenbee.library.plans import Form, PlanGraph

_plan = click.argument("path", metavar="PLAN.md")

_MOST_LINES = 100
"""So many lines say what an import did; a dry run shows all."""

_source_branch = click.option(
    "--source-branch",
    metavar="BRANCH",
    help="Base branch of the sprints that do not name one; default: the repository's",
)
_branch_prefix = click.option(
    "--branch-prefix",
    metavar="NAME",
    help="What the branches of sprints that name none begin with; default: sprint",
)


_unit = click.option(
    "--unit",
    metavar="HEADING",
    help="Which headings are the sprints, such as '## Sprint', '##' or Task; default: found",
)


def _show_checked(value: Any) -> None:
    for each in value:
        _show_one(each.to_dict())


def _show_one(value: Mapping[str, Any]) -> None:
    show_findings(value["findings"], value["source"])
    counts = ", ".join(
        f"{len(value[noun])} {noun if len(value[noun]) != 1 else noun[:-1]}"
        for noun in ("phases", "sprints")
    )
    by = f" from {value['unit']}" if value["unit"] not in ("Sprint", "") else ""
    say(f"{verdict(value['valid'])}: {printable(value['source'])}, {counts}{by}")
    if by and value["other_units"]:
        others = (f"{form!r} ({count})" for form, count in value["other_units"].items())
        say(printable(f"other numbered headings, for --unit: {', '.join(others)}"))
    _show_states(value["states"])
    if value["parts"]:
        say(printable(f"in no sprint: {some([*map(_part, value['parts'])], 10)}"))
    if value["left_out"]:
        lines = some([str(line) for line in value["left_out"]], 10)
        say(f"left out: what looks like a sprint in line {lines}", bold=True)


def _part(value: Mapping[str, Any]) -> str:
    tasks = f", {value['open']} open tasks" if value["open"] else ""
    return f"{value['heading']} (line {value['line']}{tasks})"


def _show_states(states: Sequence[Mapping[str, str]]) -> None:
    """Shows whether each sprint is done, and by which line; one line for those without a why."""
    plain: dict[str, list[str]] = {}
    for each in states:
        if each["why"]:
            by = "" if each["state"] == "open" else "by "
            say(printable(f"{each['state']}: {each['sprint']}, {by}{each['why']}"))
        else:
            plain.setdefault(each["state"], []).append(each["sprint"])
    for state, numbers in plain.items():
        say(printable(f"{state}: {', '.join(numbers)}"))


@command(
    show=_show_checked,
    example="queen plan check plans/accounts.md\n"
    "queen plan check plans/*.md\n"
    "git show HEAD:plans/accounts.md | queen plan check -",
    opens_hive=False,
)
@click.argument("paths", nargs=-1, required=True, metavar="PLAN.md|-...")
@_unit
@_source_branch
@_branch_prefix
@agents_dir
@click.option("--strict", is_flag=True, help="Also refuse plans with a line that is not read")
def check(
    call: Invocation,
    paths: tuple[str, ...],
    agents_dir: str | None,
    **said: Any,
) -> Answer:
    """Check whether plans can become beads

    Exit 0 if they can, 1 with every error and its line if not. - is standard input. If one of
    several plans cannot be read, the others are still checked, and the exit status is the worst.

    For each sprint, the last lines say whether it is done or skipped, and by which line, and what
    is in no sprint. A plan with warnings is valid; with --strict, it is not if a line that has the
    form of a sprint or a field is not read.
    """
    from queenbee.documents.findings import Finding  # noqa: PLC0415 - start-up
    from queenbee.documents.plans.plan import Plan  # noqa: PLC0415 - start-up
    from queenbee.library.plans import CheckedPlan, Plans  # noqa: PLC0415 - start-up

    checked: list[CheckedPlan] = []
    worst = NO
    for path in paths:
        source = "standard input" if path == "-" else path
        try:
            checked.append(Plans.check(source, text=_text(path), agents_dir=agents_dir, **said))
        except QueenError as error:
            if len(paths) == 1:
                raise
            worst = max(worst, exit_code(error))
            checked.append(CheckedPlan(source, Plan((), ()), [Finding("", error.message)], False))
    yes = all(each.valid for each in checked)
    return Answer(checked, yes=yes, no=worst)


def _text(path: str) -> str | None:
    from queenbee.documents.plans.source_text import read_markdown_stream  # noqa: PLC0415 - start-up

    return read_markdown_stream(sys.stdin.buffer, "standard input") if path == "-" else None


class Imported:
    """What an import did, or would do."""

    def __init__(self, found: RowImport, *, dry_run: bool, source: str = "") -> None:
        self.found = found
        self.dry_run = dry_run
        self.source = source

    def to_dict(self) -> dict[str, object]:
        """Returns each change, and the beads whose sprint or task is gone."""
        changes = [
            {
                "action": change.kind,
                "key": change.key,
                "id": change.row["id"],
                "title": change.row["title"],
                "differences": [vars(difference) for difference in change.differences],
            }
            for change in self.found.changes
        ]
        return {
            "dry_run": self.dry_run,
            "changes": changes,
            "orphans": list(self.found.orphans),
            "findings": list(self.found.findings),
            **({"source": self.found.source} if self.found.source else {}),
        }


def show_import(done: Imported) -> None:
    """Shows what an import did, or would do."""
    from queenbee.documents.issue_rows import render_differences  # noqa: PLC0415 - start-up

    if done.found.source:
        say(printable(done.found.source))
    show_findings(done.found.findings, done.source)
    lines = render_differences(done.found).splitlines(keepends=True)
    most = len(lines) if done.dry_run else _MOST_LINES
    click.echo("".join(lines[:most]), nl=False)
    if len(lines) > most:
        say(f"… {len(lines) - most} more lines")
    kinds = [change.kind for change in done.found.changes]
    did = "would be added" if done.dry_run else "added"
    say(f"{kinds.count('add')} {did}, {kinds.count('update')} updated, {kinds.count('keep')} kept")


@command(
    show=show_import,
    example="queen plan import plans/accounts.md --dry-run\nqueen plan import plans/accounts.md",
)
@_plan
@_unit
@id_prefix
@_source_branch
@_branch_prefix
@click.option("--rig", metavar="NAME", help="The repository's name in the beads")
@agents_dir
@click.option(
    "--accept",
    is_flag=True,
    help="Let beads that were claimed, ran or are done change their sprint",
)
@dry_run
def import_(hive: Hive, path: str, dry_run: bool, **setting: Any) -> Imported:
    """Make a bead for each sprint, or update the beads

    Importing the same plan again changes nothing. Only rows of its beads change.
    """
    from queenbee.documents.plans.plan_import import InvalidPlan  # noqa: PLC0415 - start-up

    try:
        found = hive.plans.import_(path, dry_run=dry_run, **setting)
    except InvalidPlan as error:
        if not invocation().json:
            show_findings(error.details["findings"], path)  # type: ignore[arg-type]
        raise
    return Imported(found, dry_run=dry_run, source=path)


def _show_annotated(value: Mapping[str, Any]) -> None:
    for sprint, bead_id in value["beads"].items():
        say(f"{printable(sprint)}  {printable(bead_id)}")
    for sprint, bead_id in value["without_heading"].items():
        say(f"{printable(sprint)}  {printable(bead_id)}  has no heading in the plan")
    if not value["changed"]:
        say("The plan already has these ids.")
    elif value["dry_run"]:
        say("The plan would be changed.")


@command(show=_show_annotated, example="queen plan annotate plans/accounts.md")
@_plan
@dry_run
def annotate(hive: Hive, path: str, dry_run: bool) -> dict[str, object]:
    """Write the id of each sprint's bead under its heading"""
    return {
        "path": path,
        "dry_run": dry_run,
        **asdict(hive.plans.annotate(path, dry_run=dry_run)),
    }


@command(
    show=lambda value: click.echo(value.text, nl=False),
    example="queen plan graph plans/accounts.md --format mermaid",
    opens_hive=False,
)
@_plan
@_unit
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="The output format",
)
def graph(call: Invocation, path: str, unit: str | None, form: Form) -> PlanGraph:
    """Show what waits for what"""
    from queenbee.library.plans import Plans  # noqa: PLC0415 - start-up

    found = Plans.graph(path, unit=unit, form=form)
    if found.has_errors:
        see = suggested("queen plan check", path)
        call.tell(f"the plan has errors, so sprints may be missing: {see}")
    return found


@command(
    show=lambda value: click.echo(value["diff"] or "The plan already has this form.\n", nl=False),
    example="queen plan convert PLAN.md\nqueen plan convert TODO.md --unit list --write",
    opens_hive=False,
)
@_plan
@_unit
@click.option("--write", is_flag=True, help="Also change the file")
def convert(call: Invocation, path: str, unit: str | None, write: bool) -> dict[str, object]:
    """Show a plan in the form ## Phase 1, ### Sprint 1.1, as a diff

    Only headings change. With --unit list, the items of lists become the sprints.
    """
    from queenbee.library.plans import Plans  # noqa: PLC0415 - start-up

    return {"path": path, "written": write, "diff": Plans.convert(path, unit=unit, write=write)}


plan: QueenGroup = group(
    "plan",
    [check, import_, annotate, graph, convert],
    help="Markdown plans: check, import and convert them",
    example="queen plan check PLAN.md\nqueen plan import PLAN.md",
)
