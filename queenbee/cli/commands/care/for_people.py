"""`queen prompt`, `notify`: one line about you, and a call when something wants you."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Invocation, command
from queenbee.cli.rendering import paragraph
from queenbee.cli.terminal import aside, say
from queenbee.core.prompt_line import TARGETS, line_of
from queenbee.core.text import printable
from queenbee.errors import NoHive
from queenbee.hook.acting_names import known_name
from queenbee.library.hive import Hive
from queenbee.services.hive import Services
from queenbee.services.telling.glance import glance
from queenbee.store.layout import discover, working_directory

if TYPE_CHECKING:
    from queenbee.services.telling.people import Want


def _show(value: dict[str, object]) -> None:
    if value["line"]:
        say(str(value["line"]))


@command(
    show=_show, example="queen prompt --for bash\nqueen prompt --for tmux --ascii", opens_hive=False
)
@click.option(
    "--for",
    "target",
    type=click.Choice(list(TARGETS)),
    default="plain",
    show_default=True,
    help="What shows the line, and must find nothing in it to run",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII characters")
def prompt(call: Invocation, target: str, ascii_only: bool) -> dict[str, object]:
    """Print one line about you, for a shell prompt or a status line

    Your issue, how many messages you have not read, and how many wait for what you have. Without a
    name: how many are at work, the messages to human, and how many wait. Outside a hive it prints
    nothing.

    It reads no mail, and others do not take it for a sign of life.
    """
    folder, session_droid = _of_session(call.beads_dir) if target == "claude" else (None, None)
    droid = call.actor or session_droid
    try:
        hive = Services.open(folder, droid=droid, beads_dir=call.beads_dir)
    except NoHive:
        return {"line": ""}
    found = glance(hive)
    return {**asdict(found), "line": line_of(found, target=target, ascii_only=ascii_only)}


def _of_session(beads_dir: str | None) -> tuple[str | None, str | None]:
    """Returns the folder of the session that standard input describes, and its name."""
    if sys.stdin is None or sys.stdin.isatty():
        return None, None
    try:
        fields = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        return None, None
    session = fields.get("session_id") if isinstance(fields, dict) else None
    place = fields.get("cwd") if isinstance(fields, dict) else None
    folder = place if isinstance(place, str) and os.path.isdir(place) else working_directory()
    try:
        layout = discover(folder, os.environ, beads_dir=beads_dir)
    except NoHive:
        return folder, None
    return folder, known_name(layout, os.environ, session if isinstance(session, str) else "")


@command(
    show=lambda _: None,
    example="queen msg notify\nqueen msg notify --run 'ntfy publish my-topic'\n"
    "queen msg notify --once --json",
    opens_hive=False,
)
@click.option("--run", metavar="COMMAND", help="Run this for each thing, without a shell")
@click.option("--bell", is_flag=True, help="Ring the terminal's bell instead of the desktop's")
@click.option("--once", is_flag=True, help="Tell what is new, and end")
def notify(call: Invocation, run: str | None, bell: bool, once: bool) -> list[Want]:
    """Call a person when something wants them

    That is: a message to human (or to you), an agent that waits for an answer or for what you have,
    a gate that failed, a landing that is stuck, a droid with work that shows no sign of life.

    Each thing is told once on this machine, at most five in a minute. It watches until you stop it,
    and uses no processor meanwhile. It reads no mail.

    COMMAND gets QUEEN_EVENT (such as message), QUEEN_EVENT_TEXT, QUEEN_EVENT_DROID,
    QUEEN_EVENT_ABOUT and QUEEN_EVENT_HIVE in its environment, and the same as JSON on standard
    input.
    """
    from queenbee.checks.consent import Consent  # noqa: PLC0415 - start-up
    from queenbee.cli import calling  # noqa: PLC0415 - start-up
    from queenbee.documents.folders import gates_dir  # noqa: PLC0415 - start-up
    from queenbee.services.telling.announcing import Announcer  # noqa: PLC0415 - start-up
    from queenbee.store.trust import COMMAND, Proposal  # noqa: PLC0415 - start-up
    from queenbee.workflows.people import wants  # noqa: PLC0415 - start-up

    hive = Hive.open(droid=call.actor, beads_dir=call.beads_dir)
    title = os.path.basename(hive.layout.root)
    if run is not None:
        Consent.of(hive).require_typed(Proposal(COMMAND, run, origin="--run"))
        caller = calling.by_command(run, hive.layout.root)
    else:
        caller = (None if bell else calling.by_desktop(title)) or calling.by_bell

    def tell(want: Want) -> None:
        if not call.json:
            paragraph(f"{time.strftime('%H:%M')}  {printable(want.text)}")
        caller(want)

    announcer = Announcer(hive, partial(wants, hive), tell)
    if not once:
        aside("watching until Ctrl-C")
        announcer.run([gates_dir(hive.layout)])
    return announcer.look()
