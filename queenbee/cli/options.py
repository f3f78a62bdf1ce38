"""Options and arguments that several commands share, and how to read their values."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click

from queenbee.core.timestamps import parse_duration_s, parse_since_ms
from queenbee.errors import InvalidInput

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


class Renamed(click.Option):
    """An option whose help shows its first name alone: the others are of earlier versions."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Returns the names and the sentence that the help shows."""
        every = self.opts
        self.opts: list[str] = every[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def force(before: str, sentence: str) -> Option:
    """Returns `--force`, which was `--before` until 0.2; its parameter has that name."""
    names = ("--force", f"--{before}", before.replace("-", "_"))
    return click.option(*names, cls=Renamed, is_flag=True, help=sentence)


def priority(text: str | int) -> int:
    """Reads a priority, also as lists show it: `P1`. Raises `InvalidInput`."""
    try:
        return int(str(text).upper().removeprefix("P"))
    except ValueError:
        raise InvalidInput(
            f"{text!r} is not a priority", hint="0 (most urgent) to 4, such as --priority 1"
        ) from None


def timeout_option(default: str) -> Option:
    """Returns `--wait` of a command that does nothing else: the parameter `timeout`, in seconds."""
    said = {"callback": seconds, "metavar": default, "default": default, "show_default": True}
    names = ("--wait", "--timeout", "timeout")
    return click.option(*names, cls=Renamed, help="How long to wait", **said)


dry_run: Option = click.option(
    "--dry-run", is_flag=True, help="Show what would be done without doing it"
)
agents_dir: Option = click.option(
    "--agents-dir",
    metavar="DIR",
    help="Folder of agent definitions; default: this repository's .claude/agents/, if any",
)


adopts: Option = click.option(
    "--adopt",
    multiple=True,
    metavar="BRANCH",
    help="Take over this branch, with all that is there",
)
id_prefix: Option = click.option(
    "--prefix", metavar="bd", help="Prefix of new ids; default: the most common one here"
)


def _instant(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_since_ms(text, time.time_ns() // 1_000_000)


def since_option(what: str) -> Option:
    """Returns the option `--since`, which shows only what is newer."""
    help_ = f"Only {what} since then"
    return click.option("--since", "since_ms", callback=_instant, metavar="20m|TIME", help=help_)


def seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Reads an option that takes a duration, such as `2h`. Raises `InvalidInput`."""
    return None if text is None else parse_duration_s(text)


def bytes_of_stdin() -> bytes:
    """Returns what is on standard input. Raises `InvalidInput`."""
    if sys.stdin is None:
        raise InvalidInput("standard input is closed", hint="pass the text itself instead of -")
    return sys.stdin.buffer.read()


def body_or_stdin(text: str) -> str:
    """Returns the text, or standard input if it is `-`. Raises `InvalidInput`."""
    if text != "-":
        return text
    try:
        return bytes_of_stdin().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8: {error}") from error
