"""Whether a person sits at this terminal, and their answer to commands that came from elsewhere.

An agent that runs `queen` in a pseudo-terminal is no person: its client says so in the
environment. This prevents accidents; a program that wants to pass for a person can.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from queenbee.cli.terminal import aside
from queenbee.core.names import is_of_agent
from queenbee.core.text import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.trust import Proposal


def sits_here(*, is_json: bool) -> bool:
    """Returns whether a person runs this command, and can be asked."""
    streams = (sys.stdin, sys.stderr)
    is_terminal = all(each is not None and each.isatty() for each in streams)
    return is_terminal and not is_json and not is_of_agent(os.environ)


def lets_run(proposals: Sequence[Proposal]) -> bool:
    """Shows commands in full, and asks once whether they may run on this machine."""
    show_commands(proposals)
    return click.confirm("Let it run, now and later, until it changes?", err=True)


def show_commands(proposals: Sequence[Proposal]) -> None:
    """Shows commands on standard error, in full."""
    if proposals:
        aside("This repository would run here what nobody on this machine has seen:")
    for each in proposals:
        aside(f"  {each.kind} of {escaped(each.origin)}:")
        for line in each.text.split("\n"):
            aside(f"    {escaped(line)}")
        for said in each.more:
            aside(f"    ({escaped(said)})")
