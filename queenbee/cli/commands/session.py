"""`queen session`: validates a team's folder, shows its tasks and imports them as beads."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, Invocation, QueenGroup, command, group, tell
from queenbee.cli.commands.plan import Imported, show_import
from queenbee.cli.options import dry_run, id_prefix
from queenbee.cli.rendering import verdict
from queenbee.cli.terminal import say
from queenbee.core.text import printable, suggested
from queenbee.errors import InvalidInput, NoHive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queenbee.library.hive import Hive
    from queenbee.workflows.imports import SessionProgress


def _path(function: Callable[..., object]) -> Callable[..., object]:
    """Adds the two ways to name a session's folder, and gives the command what they name."""

    @wraps(function)
    def called(context: object, path: str | None, option: str | None, **more: object) -> object:
        if path is not None and option is not None:
            raise InvalidInput("give PATH or --session, not both")
        return function(context, option if path is None else path, **more)

    option = click.option("--session", "option", metavar="PATH", help="The same, as an option")
    return click.argument("path", required=False, metavar="[PATH]")(option(called))


def _named(path: str | None) -> str:
    if path is None:
        raise InvalidInput("no session was named", hint="give PATH, or --session=PATH")
    return path


def _show_validated(value: Mapping[str, Any]) -> None:
    for each in value["findings"]:
        line = f" (line {each.line})" if each.line else ""
        # The messages of errors name their file themselves.
        place = "" if each.severity == "error" else f"{printable(each.path)}: "
        say(f"{each.severity:7} {place}{printable(each.message)}{line}")
        if each.hint:
            say(f"        try: {printable(each.hint)}")
    say(f"{verdict(value['valid'])}: {printable(value['session'] or 'no session')}")


@command(
    show=_show_validated,
    example="queen session validate --session=.workflow/TC-auth-2026-02-27",
    opens_hive=False,
)
@_path
def validate(call: Invocation, path: str | None) -> Answer:
    """Check whether a session can start

    PATH is the session's folder. Exit 0 if it can, 1 with every error and its recovery step if not.
    """
    from queenbee.documents.sessions.session import validate_session  # noqa: PLC0415 - start-up

    found = validate_session(path)
    valid = not any(finding.severity == "error" for finding in found)
    return Answer({"session": path, "valid": valid, "findings": found}, yes=valid)


class Progress:
    """The state of each task of a session."""

    def __init__(self, found: SessionProgress) -> None:
        self.found = found

    def to_dict(self) -> dict[str, object]:
        """Returns the session and the state of each task."""
        session = self.found.session
        pipeline = session.pipeline
        return {
            "session_id": session.session_id,
            "task_description": session.task_description,
            "status": session.status,
            "team_name": session.team_name,
            "tasks": [
                {
                    "task": each.task.name,
                    "role": each.task.role,
                    "state": each.state,
                    "depends_on": list(each.task.depends_on),
                    "waits_for": list(each.waits_for),
                    "bead": self.found.beads.get(each.task.name),
                }
                for each in pipeline.tasks
            ],
            "counts": pipeline.counts,
            "completed_by_beads": sorted(self.found.completed_by_beads),
        }


def _show_status(progress: Progress) -> None:
    from queenbee.documents.sessions.task_graph import render_pipeline  # noqa: PLC0415 - start-up

    found = progress.found
    session = found.session
    say(f"{printable(session.session_id)}  {printable(session.task_description)}", bold=True)
    say(f"{printable(session.status)}, team {printable(session.team_name)}")
    click.echo(render_pipeline(session.pipeline, found.beads), nl=False)
    if found.completed_by_beads:
        say(
            f"{len(found.completed_by_beads)} completed only in the beads; "
            "team-session.json does not say so, and queen never changes it"
        )


def _warn(path: str) -> None:
    """Prints a notice if the session that is used is not valid."""
    from queenbee.documents.sessions.session import validate_session  # noqa: PLC0415 - start-up

    if any(finding.severity == "error" for finding in validate_session(path)):
        see = suggested("queen session validate", session=path)
        tell(f"the session is not valid: {see}")


@command(
    show=_show_status,
    example="queen session status --session=.workflow/TC-auth-2026-02-27",
    opens_hive=False,
)
@_path
def status(call: Invocation, path: str | None) -> Progress:
    """Show the state of each task

    PATH is the session's folder. Combines what the session says with the state of its beads, if it
    was imported.
    """
    from queenbee.documents.sessions.folder import read_session_folder  # noqa: PLC0415 - start-up
    from queenbee.documents.sessions.session import read_session  # noqa: PLC0415 - start-up
    from queenbee.workflows.imports import SessionProgress, with_progress  # noqa: PLC0415 - start-up

    folder = _named(path)
    read = read_session(read_session_folder(folder))
    _warn(folder)
    found = SessionProgress(read)
    with suppress(NoHive):
        found = with_progress(call.hive, read)
    return Progress(found)


@command(
    show=show_import,
    example="queen session import --session=.workflow/TC-auth-2026-02-27 --dry-run",
)
@_path
@id_prefix
@dry_run
def import_(hive: Hive, path: str | None, prefix: str | None, dry_run: bool) -> Imported:
    """Make a bead for each task, or update the beads

    PATH is the session's folder. Importing the same session again changes nothing.
    """
    from queenbee.workflows.imports import import_session_folder  # noqa: PLC0415 - start-up

    folder = _named(path)
    found = import_session_folder(hive, folder, prefix=prefix, dry_run=dry_run)
    _warn(folder)
    return Imported(found, dry_run=dry_run)


@command(
    show=lambda value: say(f"made {printable(value['session'])}"),
    example="queen session new 'Add authentication' --role researcher --role developer",
    opens_hive=False,
)
@click.argument("task")
@click.option("--role", "roles", multiple=True, metavar="NAME", help="A role; may be repeated")
@click.option("--team", metavar="NAME", help="The team's name; default: from the task")
@click.option("--dir", "folder", default=".", metavar="DIR", help="Where to make the folder")
def new(
    call: Invocation, task: str, roles: tuple[str, ...], team: str | None, folder: str
) -> dict[str, object]:
    """Make a valid session, with one task for each role"""
    from queenbee.documents.sessions.folder import write_session_folder  # noqa: PLC0415 - start-up
    from queenbee.documents.sessions.skeleton import ROLES, session_skeleton  # noqa: PLC0415 - start-up

    now_ms = time.time_ns() // 1_000_000
    made = session_skeleton(task, now_ms=now_ms, roles=roles or ROLES, team=team)
    path = os.path.join(folder, made.folder)
    write_session_folder(path, made.files)
    return {"session": path, "files": sorted(made.files)}


session: QueenGroup = group(
    "session",
    [validate, status, import_, new],
    help="Team sessions: validate, follow and import them as beads",
    example="queen session status --session=.workflow/TC-auth-2026-02-27",
)
