"""How findings about a document are shown, and the options that commands on documents share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from queenbee.cli.render import printable, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from queenbee.documents.findings import Finding


def show_findings(findings: Iterable[Finding], source: str) -> None:
    """Shows findings, one a line: how bad, where, what, and what to do."""
    for each in findings:
        place = f"{printable(source)}:{each.line}" if each.line else printable(source)
        path = f" {printable(each.path)}" if each.path else ""
        say(f"{each.severity:7} {place}:{path} {printable(each.message)}")
        if each.hint:
            say(f"        try: {printable(each.hint)}")


def verdict(valid: bool) -> str:
    """Returns the word for it."""
    return "valid" if valid else "not valid"


agents_dir = click.option(
    "--agents-dir",
    metavar="DIR",
    help="Where agents are; default: .claude/agents/ of this repository, if it has one",
)
dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing")


def prefix_option(function: Callable[..., object]) -> Callable[..., object]:
    """Adds the option for the prefix of new ids."""
    return click.option(
        "--prefix", metavar="bd", help="What new ids begin with; default: as most ids here do"
    )(function)
