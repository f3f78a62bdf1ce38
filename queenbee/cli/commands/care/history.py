"""`queen history`: every line of a record, in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import command
from queenbee.cli.rendering import table
from queenbee.core.text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.services.history import Revision
    from queenbee.workflows.hive import Hive


def _show(revisions: Sequence[Revision]) -> None:
    rows = [
        [
            str(each.rev),
            each.at or "?",
            each.by or "?",
            shortened(json.dumps(each.changes, ensure_ascii=False), 90),
        ]
        for each in revisions
    ]
    table(["REV", "WHEN", "WHO", "WHAT"], rows, empty="No lines.", text=["WHAT"])


@command("history", show=_show, example="queen history 5W6X")
@click.argument("identifier", metavar="ID")
def history(hive: Hive, identifier: str) -> list[Revision]:
    """Show every line of a record, in order, with who and when"""
    return hive.history(identifier)
