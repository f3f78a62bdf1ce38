"""`queen doctor`: examines the hive's files, and repairs them without losing data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from queenbee.agents.protection import outdated, unprotected
from queenbee.cli.app import Answer, command
from queenbee.cli.rendering import paragraph
from queenbee.core.text import printable
from queenbee.git.index_lock import complete_left
from queenbee.git.left_out import left_out
from queenbee.git.unfinished import outlived
from queenbee.services.care.doctor import examine, repair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.library.hive import Hive
    from queenbee.services.diagnosis import Diagnosis


def _show(findings: Sequence[Diagnosis]) -> None:
    for each in findings:
        place = f"{each.file}:{each.line}" if each.line else each.file
        state = "fixed" if each.fixed else each.severity
        hint = f" [{printable(each.hint)}]" if each.hint and not each.fixed else ""
        line = f"{state:5} {printable(place)}: {printable(each.message)}{hint}"
        paragraph(line, state=state)
    if not any(each.severity == "error" and not each.fixed for each in findings):
        paragraph("The hive is sound.")


@command(show=_show, example="queen doctor --fix")
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing data")
def doctor(hive: Hive, fix: bool) -> Answer:
    """Examine the hive's files, and whether work can land here

    Exit 0 if they are sound, 1 if something is wrong.
    """
    from queenbee.git.beforehand.hindrances import in_diagnosis  # noqa: PLC0415 - start-up
    from queenbee.git.remote.relocating import on_no_branch, tracked_still  # noqa: PLC0415 - start-up
    from queenbee.git.remote.withheld import not_sent  # noqa: PLC0415 - start-up

    if fix and hive.layout.common_dir is not None:
        complete_left(hive.layout.common_dir)
    findings = [*(repair(hive) if fix else examine(hive)), *left_out(hive), *tracked_still(hive)]
    findings += [*on_no_branch(hive), *not_sent(hive)]
    findings += [*unprotected(hive.layout, os.environ), *outdated(hive.layout, os.environ)]
    findings += [*in_diagnosis(hive.layout), *outlived(hive)]
    wrong = [each for each in findings if each.severity == "error" and not each.fixed]
    return Answer(findings, yes=not wrong)
