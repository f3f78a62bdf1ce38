"""`queen undo`: takes back what your last command wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Answer, command, invocation
from queenbee.cli.options import dry_run as dry_run_option
from queenbee.cli.person import sits_here
from queenbee.cli.rendering import paragraph
from queenbee.cli.terminal import aside, say
from queenbee.core.text import printable
from queenbee.core.timestamps import format_duration, instant_ms

if TYPE_CHECKING:
    from queenbee.library.hive import Hive
    from queenbee.services.undo.undoing import Undone


def _show(done: Undone) -> None:
    if not done.reversals:
        say("nothing was taken back")
        return
    paragraph(f"{'would take back' if done.dry_run else 'took back'} {_what(done)}:")
    for each in done.reversals:
        paragraph(f"  {printable(str(each))}")
    if done.to_commit:
        paragraph(printable(f"which is not as it is committed now: {done.to_commit}"))


def _what(done: Undone) -> str:
    ago_s = max(0, invocation().hive.now_ms() - (instant_ms(done.at) or 0)) / 1000
    command = printable(done.command) or "the last change"
    return f"{command}, {format_duration(ago_s).split(' ')[0]} ago"


@command(show=_show, example="queen undo --dry-run\nqueen undo")
@dry_run_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask")
def undo(hive: Hive, dry_run: bool, yes: bool) -> Undone | Answer:
    """Take back what your last command wrote

    It takes back what you claimed, released, completed, assigned or reserved, issues that you
    made, changed, closed, deleted or imported, messages that nobody has read, and a setting: by
    new records, so that nothing is lost. A person at a terminal is shown what follows, and asked.
    Another queen undo takes the first one back.

    It is refused once somebody has built on it, and for work that has landed; an agent takes back
    only its own, and no setting. An issue that was deleted earlier comes back by queen issue
    reopen.
    """
    if sits_here(is_json=invocation().json) and not (dry_run or yes):
        planned = hive.undo(dry_run=True)
        aside(f"{_what(planned)}:")
        for each in planned.reversals:
            aside(f"  {printable(str(each))}")
        if not click.confirm("Take it back?", err=True):
            return Answer(replace(planned, reversals=()), yes=False)
    return hive.undo(dry_run=dry_run)
