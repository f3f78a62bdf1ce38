"""`queen issue`: the tracker's issues, written."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import QueenGroup, command, group, tell, tell_origin
from queenbee.cli.commands.issues import show_list
from queenbee.cli.commands.plan import Imported, show_import
from queenbee.cli.options import body_or_stdin, bytes_of_stdin, dry_run, force, id_prefix, priority
from queenbee.cli.rendering import entry, print_json
from queenbee.cli.terminal import say
from queenbee.core.beads import Issue
from queenbee.core.text import printable, suggested
from queenbee.errors import InvalidInput
from queenbee.store.git_files.named_files import read_named

if TYPE_CHECKING:
    from typing import Any

    from queenbee.git.hosts.issue_exchange import Pushed
    from queenbee.library.hive import Hive


def _show_new(value: dict[str, str]) -> None:
    say(printable(value["issue_id"]))


def _show_changed(issues: list[Issue]) -> None:
    for each in issues:
        status = "deleted" if each.status == "tombstone" else each.status
        entry(f"{printable(each.id)} is {printable(status)}: ", printable(each.title))


def _show_needs(issues: list[Issue]) -> None:
    for each in issues:
        kinds = {
            kind: [one for one, its in each.dependencies if its == kind]
            for _, kind in each.dependencies
        }
        for kind, targets in kinds.items():
            verb = "waits for" if kind == "blocks" else f"depends ({kind}) on"
            entry(f"{printable(each.id)} {printable(verb)} ", printable(", ".join(targets)))
        if not kinds:
            say(f"{printable(each.id)} waits for no issue")


_force = force("anyway", "Also if a droid works on it")


@command(
    show=_show_new, example="queen issue new 'Add a search field' --priority 1 --depends-on qb-40"
)
@click.argument("title")
@click.option("-d", "--description", default="", help="What is to be done; - reads standard input")
@click.option("--acceptance", help="How one sees that it is done")
@click.option("-t", "--type", "issue_type", default="task", show_default=True, help="task, bug, …")
@click.option(
    "-p",
    "--priority",
    type=priority,
    metavar="N",
    default=2,
    show_default=True,
    help="0 (most urgent) to 4",
)
@click.option("--estimate", type=int, metavar="MINUTES", help="How long it takes")
@click.option("--depends-on", multiple=True, metavar="ISSUE", help="It waits for this one")
@click.option("--parent", metavar="ISSUE", help="It is part of this one")
@click.option("-l", "--label", "labels", multiple=True, help="A label")
@click.option("--id", "issue_id", metavar="ID", help="Its id; default: a new one")
@id_prefix
def new(hive: Hive, title: str, description: str, **fields: Any) -> dict[str, str]:
    """Add an issue to the tracker, and print its id"""
    return {"issue_id": hive.issues.new(title, body_or_stdin(description), **fields)}


@command(show=_show_changed, example="queen issue edit qb-42 --priority 0 --title 'Search'")
@click.argument("issue_id", metavar="ISSUE")
@click.option("--title", help="A new title")
@click.option("--description", help="A new description; - reads standard input")
@click.option("--acceptance", help="How one sees that it is done")
@click.option("--type", "issue_type", help="task, bug, feature, …")
@click.option("-p", "--priority", type=priority, metavar="N", help="0 (most urgent) to 4")
@click.option("--estimate", type=int, metavar="MINUTES", help="How long")
@click.option("--status", help="open, in_progress, in_review, blocked or deferred")
@click.option("--assignee", help="Whom the tracker gives it to")
@click.option("--defer", "defer_until", metavar="TIME", help="Not before, as 2026-01-31T09:00:00Z")
@click.option("--label", "add_labels", multiple=True, help="A label to add")
@click.option("--remove-label", "remove_labels", multiple=True, help="A label to take away")
def edit(hive: Hive, issue_id: str, description: str | None, **fields: Any) -> list[Issue]:
    """Change an issue of the tracker"""
    text = body_or_stdin(description) if description is not None else None
    return [hive.issues.edit(_known(hive, issue_id)[0], description=text, **fields)]


def _known(hive: Hive, *issue_ids: str) -> list[str]:
    return [hive.issue_id(each, recorded=True) for each in issue_ids]


@command(show=_show_changed, example="queen issue close qb-42 --reason 'not needed'")
@click.argument("issue_ids", nargs=-1, required=True, metavar="ISSUE...")
@click.option("--reason", help="Why")
@_force
def close(hive: Hive, issue_ids: tuple[str, ...], reason: str | None, anyway: bool) -> list[Issue]:
    """Close issues that nobody works on

    If you work on it, queen complete closes it.
    """
    return hive.issues.close(*_known(hive, *issue_ids), reason=reason, anyway=anyway)


@command(show=_show_changed, example="queen issue delete qb-42 --reason 'entered twice'")
@click.argument("issue_ids", nargs=-1, required=True, metavar="ISSUE...")
@click.option("--reason", help="Why")
@_force
def delete(hive: Hive, issue_ids: tuple[str, ...], reason: str | None, anyway: bool) -> list[Issue]:
    """Delete issues

    The row stays as a tombstone, so that other clones delete it too: queen issues --deleted. To
    have it again: queen issue reopen.
    """
    return hive.issues.delete(*_known(hive, *issue_ids), reason=reason, anyway=anyway)


@command(show=_show_changed, example="queen issue reopen qb-42")
@click.argument("issue_ids", nargs=-1, required=True, metavar="ISSUE...")
def reopen(hive: Hive, issue_ids: tuple[str, ...]) -> list[Issue]:
    """Open issues again that are closed, completed or deleted"""
    return hive.issues.reopen(*_known(hive, *issue_ids))


@command(
    show=_show_needs, example="queen issue dep qb-42 qb-40\nqueen issue dep qb-42 qb-40 --remove"
)
@click.argument("issue_id", metavar="ISSUE")
@click.argument("on", nargs=-1, required=True, metavar="BLOCKER...")
@click.option("--type", "kind", default="blocks", show_default=True, help="The kind of dependency")
@click.option("--remove", is_flag=True, help="It no longer depends on them")
def dep(hive: Hive, issue_id: str, on: tuple[str, ...], kind: str, remove: bool) -> list[Issue]:
    """Make an issue wait for others"""
    if issue_id in ("add", "remove") and on[1:] and hive.issues.get_or_none(issue_id) is None:
        meant = suggested("queen issue dep", *on, remove=issue_id == "remove")
        raise InvalidInput(f"there is no issue {issue_id!r}: only the issues are named", hint=meant)
    return [hive.issues.depend(*_known(hive, issue_id, *on), kind=kind, remove=remove)]


@command(
    show=show_import,
    example="gh issue list --state all --limit 5000 --json number,title,body,state,stateReason,"
    "labels,assignees,url,createdAt,updatedAt,closedAt | queen issue import -\n"
    "queen issue import linear.csv --dry-run\n"
    "queen issue import work.csv --map 'Task=title' --map 'Ticket=key' --map 'Ready for dev=open'\n"
    "queen issue import .taskmaster",
)
@click.argument("file", metavar="FILE|FOLDER|-")
@click.option("--from", "source", metavar="NAME", help="Where it is from; default: by its shape")
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="NAME=FIELD",
    help="What a column or a state is",
)
@click.option("--complete", is_flag=True, help="The list is all: close what is not in it any more")
@click.option("--assign", is_flag=True, help="Give open issues to their assignees that are droids")
@id_prefix
@dry_run
def import_(hive: Hive, file: str, prefix: str | None, dry_run: bool, **how: Any) -> Imported:
    """Import issues from another tracker or a list

    Knows the lists of GitHub, GitLab, Gitea, Linear, Jira, Trello, Asana, Task Master, Backlog.md,
    spec-kit, Kiro, todo.txt, Markdown, Beads and queen issue list; anything else is JSON or CSV
    with a title, and a number, key or url. The first line says what it was taken for, and the
    warnings what was not understood.

    Importing a list again changes what changed there, closes what was closed there, and never opens
    what is closed here.
    """
    from queenbee.documents.issue_lists.reading import MOST_BYTES  # noqa: PLC0415 - start-up

    data: bytes | str = file
    if file == "-":
        data = bytes_of_stdin()
    elif not os.path.isdir(file):
        data = read_named(file, max_bytes=MOST_BYTES)
    name = os.path.relpath(os.path.realpath(file), hive.layout.tree) if file != "-" else "-"
    name = os.path.basename(file) if name.startswith(os.pardir) else name
    found = hive.issues.import_(data, name=name, prefix=prefix, dry_run=dry_run, **how)
    return Imported(found, dry_run=dry_run, source="" if file == "-" else file)


_host = click.option(
    "--from",
    "source",
    type=click.Choice(["github", "gitlab", "gitea"]),
    help="What the host is; default: by the remote's address",
)


@command(show=show_import, example="queen issue pull\nqueen issue pull --complete --dry-run")
@_host
@click.option("--complete", is_flag=True, help="Ask for all, and close what is gone there")
@id_prefix
@dry_run
def pull(hive: Hive, dry_run: bool, **how: Any) -> Imported:
    """Import the issues of the code host

    Asks GitHub, GitLab or Gitea by your own gh, glab or tea: all issues the first time, then those
    that changed. The host is the one that your remote is on. What comes is imported as by queen
    issue import; if the host cannot be heard to the end, nothing is.
    """
    return Imported(hive.issues.pull(dry_run=dry_run, **how), dry_run=dry_run)


def _show_pushed(done: Pushed) -> None:
    would = "would be closed" if done.dry_run else "closed"
    for each in done.closed:
        say(f"{printable(each)} {would}")
    for each in done.waits:
        say(f"{printable(each)} waits: its commit is not at the remote yet")
    counts = f"{len(done.closed)} {would}, {len(done.before)} closed before"
    say(f"{printable(done.repository)}: {counts}")


@command(show=_show_pushed, example="queen issue push --dry-run")
@_host
@dry_run
def push(hive: Hive, dry_run: bool, **how: Any) -> Pushed:
    """Close at the code host what was completed here

    Comments on each issue with the commit that completed it, and closes it, if queen issue pull or
    import brought it from there and it is open there. An issue waits until its commit is at the
    remote. Does nothing until: queen config set host.issues both
    """
    return hive.issues.push(dry_run=dry_run, **how)


class Exported:
    """Issues in a format for other programs."""

    def __init__(self, issues: list[Issue], form: str) -> None:
        self.issues = issues
        self.form = form

    def to_dict(self) -> list[dict[str, object]]:
        """Returns the rows, each with the effective priority."""
        return [each.to_dict() for each in self.issues]


def _show_exported(found: Exported) -> None:
    if found.form == "json":
        print_json(found)
    elif found.form == "csv":
        from queenbee.documents.issue_lists import issue_table  # noqa: PLC0415 - start-up

        rows = found.to_dict()
        shown = partial(printable, keep_newlines=True) if sys.stdout.isatty() else str
        # Color: else click would cut out of the texts what looks like it.
        click.echo(issue_table.as_csv(rows, shown), nl=False, color=True)
        lacks = issue_table.left_out(rows).most_common()
        if lacks:
            names = ", ".join(f"{printable(name)} ({count})" for name, count in lacks)
            tell(f"a table has no {names}: --format json has everything")
    else:
        show_list(found.issues)


@command(show=_show_exported, example="queen issue list --format csv")
@click.option("--status", help="Only those with this status, as the tracker has it")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="For people, spreadsheets or programs",
)
@click.option("--match", metavar="TEXT", help="Only those that have all of these words")
def list_(hive: Hive, status: str | None, form: str, match: str | None) -> Exported:
    """List the tracker's issues, those that are done included"""
    tell_origin(hive)
    return Exported(hive.issues.find(status=status, text=match), form)


def _show_written(value: dict[str, object]) -> None:
    path, written = printable(str(value["path"])), value["written"]
    if value["owner"]:
        say(f"{value['owner']} writes {path} itself")
    else:
        say(f"{written} row{'' if written == 1 else 's'} written to {path}")


@command(show=_show_written, example="queen issue export")
def export(hive: Hive) -> dict[str, object]:
    """Write the issues to issues.jsonl, for Beads' other programs

    Landing does this, too. In between, the file stays as git has it, and changes of issues are in
    the ledger.
    """
    from queenbee.services.care.exporting import export_issues  # noqa: PLC0415 - start-up
    from queenbee.workflows.owning.owner import Owner  # noqa: PLC0415 - start-up

    owner = Owner.of(hive)
    written = export_issues(hive)
    path = os.path.relpath(hive.layout.issues_path, hive.layout.root)
    return {"path": path, "written": written, "owner": owner.name if owner else None}


issue: QueenGroup = group(
    "issue",
    [new, edit, close, reopen, delete, dep, import_, pull, push, export, list_],
    help="Write the tracker's issues, import and export them",
    example="queen issue new 'Add a search field' --depends-on qb-40\nqueen issue reopen qb-42",
    more="ready:issues assignments:assignments assign:assignments wait:work",
)
