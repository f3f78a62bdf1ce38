"""Options and arguments that several commands share, and how their texts are read."""

from __future__ import annotations

import sys

import click

from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput

dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing")
agents_dir = click.option(
    "--agents-dir",
    metavar="DIR",
    help="Where agents are; default: .claude/agents/ of this repository, if it has one",
)
id_prefix = click.option(
    "--prefix", metavar="bd", help="What new ids begin with; default: as most ids here do"
)


def seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Reads an option that takes a duration, such as `2h`. Raises `InvalidInput`."""
    return None if text is None else parse_duration_s(text)


def body_or_stdin(text: str) -> str:
    """Returns the text, or standard input if it is `-`. Raises `InvalidInput`."""
    if text != "-":
        return text
    if sys.stdin is None:
        raise InvalidInput("standard input is closed", hint="give the text itself, not -")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8: {error}") from error
