"""Options and arguments that several commands share, and how to read their values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import tell
from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput
from queenbee.git.remote.granting import Terms

if TYPE_CHECKING:
    from queenbee.workflows.hive import Hive


dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done without doing it")
agents_dir = click.option(
    "--agents-dir",
    metavar="DIR",
    help="Folder of agent definitions; default: this repository's .claude/agents/, if any",
)
id_prefix = click.option(
    "--prefix", metavar="bd", help="Prefix of new ids; default: the most common one here"
)


def seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Reads an option that takes a duration, such as `2h`. Raises `InvalidInput`."""
    return None if text is None else parse_duration_s(text)


def body_or_stdin(text: str) -> str:
    """Returns the text, or standard input if it is `-`. Raises `InvalidInput`."""
    if text != "-":
        return text
    if sys.stdin is None:
        raise InvalidInput("standard input is closed", hint="pass the text itself instead of -")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8: {error}") from error


def confirm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--confirm` and `--local-if-offline` to a command."""
    for option in (
        click.option(
            "--local-if-offline",
            is_flag=True,
            help="With --confirm: else grant it here, unconfirmed",
        ),
        click.option("--confirm", is_flag=True, help="Only if the git remote confirms it"),
    ):
        command = option(command)
    return command


def confirmation(hive: Hive, *, confirm: bool = False, local_if_offline: bool = False) -> Terms:
    """Returns how the grants of the running command are confirmed, if they are."""
    return Terms(hive, confirm=confirm, local_if_offline=local_if_offline, tell=tell)
