"""Whether a person sits at this terminal, and their answer to commands that came from elsewhere.

An agent that runs `queen` in a pseudo-terminal is no person: its client says so in the environment,
or runs above. This prevents accidents; a program that wants to pass for a person can.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from queenbee.cli.terminal import aside
from queenbee.store.callers.agent_above import is_agent
from queenbee.store.layout import Layout
from queenbee.store.trust import Proposal


def sits_here(*, is_json: bool) -> bool:
    """Returns whether a person runs this command, and can be asked."""
    streams = (sys.stdin, sys.stderr)
    is_terminal = all(each is not None and each.isatty() for each in streams)
    return is_terminal and not is_json and not is_agent()


def lets_run(layout: Layout, proposals: Sequence[Proposal]) -> bool:
    """Shows commands in full, and asks once whether they may run on this machine."""
    show_commands(layout, proposals)
    return click.confirm("Let it run, now and later, until it changes?", err=True)


def show_commands(layout: Layout, proposals: Sequence[Proposal]) -> None:
    """Shows commands on standard error, in full, with where they are written, by whom, and what
    they stand for now.
    """
    from queenbee.git.contents.settings_origin import shown_commands  # noqa: PLC0415 - start-up

    if proposals:
        aside("This repository would run here what nobody on this machine has seen:")
    for line in shown_commands(layout, proposals):
        aside(f"  {line}")
