"""`queen nudge`: asks a droid that has gone quiet whether it is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from queenbee.cli.app import command
from queenbee.cli.rendering import paragraph
from queenbee.core.text import printable

if TYPE_CHECKING:
    from queenbee.core.records import Message
    from queenbee.workflows.hive import Hive


def _show(asked: Message) -> None:
    paragraph(f"nudged {printable(asked.to)} ({printable(asked.id)})")
    paragraph(
        "Without a sign of life within a minute, you may take over: queen reserve PATTERN --force"
    )


@command("nudge", show=_show, example="queen nudge ui-engineer")
@click.argument("droid")
def nudge(hive: Hive, droid: str) -> Message:
    """Ask a quiet droid whether it is still there

    A droid is quiet if it has shown no sign of life for a while (quiet_after in queen.toml, 15
    minutes). If it does not answer within a minute, anybody may take over from it without another
    reason. Any command that it runs is an answer.
    """
    return hive.nudges.nudge(droid)
