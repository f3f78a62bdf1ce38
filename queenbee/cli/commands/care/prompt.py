"""`queen prompt`: one line for a shell prompt, a status line, tmux."""

from __future__ import annotations

import os

import click

from queenbee.cli.app import Invocation, command
from queenbee.cli.quick_prompt import Asked, look
from queenbee.cli.terminal import say
from queenbee.core.prompt_line import TARGETS


def _show(value: dict[str, object]) -> None:
    if value["line"]:
        say(str(value["line"]))


@command(
    "prompt",
    show=_show,
    example="queen prompt --for bash\nqueen prompt --for tmux --ascii",
    opens_hive=False,
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
    asked = Asked(target=target, ascii_only=ascii_only, droid=call.actor, beads_dir=call.beads_dir)
    glance = look(asked, os.environ)
    return {**(glance.to_dict() if glance is not None else {}), "line": asked.shown(glance)}
