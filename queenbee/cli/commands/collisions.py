"""`queen worktree collisions`: which worktrees' work would conflict, and an order to land in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Answer, command
from queenbee.cli.rendering import entry, paragraph, show_lines
from queenbee.core.conflicts.markers import union_setting
from queenbee.core.text import mentioned, one_line, printable
from queenbee.git.lines import shown
from queenbee.workflows.next_text import block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.collisions.found import (
        Collisions,
        ConflictingFile,
        Pair,
        Side,
        Step,
        Together,
    )
    from queenbee.git.landing.together.checked import Check
    from queenbee.library.hive import Hive

_SECTION = 40
_PLACES = 3
"""Places of one file that are shown; `--json` has them all."""


def _show(found: Collisions) -> None:
    for side in found.sides:
        for note in side.notes:
            paragraph(f"note: {_title(side)}: {printable(note)}")
    for pair in found.pairs:
        _show_pair(pair)
    count = sum(side.commit is not None for side in found.sides)
    if not found.pairs:
        paragraph(f"no conflicts among {count} {'side' if count == 1 else 'sides'}")
    for path in found.everybody_adds_to:
        setting = union_setting([path])
        advice = f"; to keep both when they land: {setting}" if setting else ""
        paragraph(f"both sides only add lines to {mentioned(printable(path))}{advice}")
    if found.order is not None:
        _show_order(found.order, found.target)
    if found.together is not None:
        _show_together(found.together)


def _show_together(said: Together) -> None:
    checks = "1 check" if said.checks == 1 else f"{said.checks} checks"
    names = ", ".join(mentioned(printable(each)) for each in said.sides)
    if said.left_out:
        left_out = ", ".join(mentioned(printable(each)) for each in said.left_out)
        paragraph(f"not checked, because they conflict: {left_out}")
    if not said.failing:
        paragraph(f"the check passes on all together ({checks}): {names or 'nothing to land'}")
    for each in said.failing:
        who = " with ".join(mentioned(printable(name)) for name in each.sides)
        alone = " alone" if len(each.sides) == 1 else ""
        paragraph(
            f"the check fails on {who or 'the main branch'}{alone} ({checks} in all)", bold=True
        )
        show_lines(block(each.output))


def _show_pair(pair: Pair) -> None:
    files = "1 file" if len(pair.files) == 1 else f"{len(pair.files)} files"
    paragraph(f"{_title(pair.a)} and {_title(pair.b)} conflict in {files}", bold=True)
    for file in pair.files:
        entry(f"  {printable(file.path)}  ", _where(file, pair), f"  {file.kind}")
        if file.program:
            paragraph(f"    as text; git would run {mentioned(printable(file.program))}")


def _where(file: ConflictingFile, pair: Pair) -> str:
    places = [
        (
            f"{shown(one.a)} of {_name(pair.a)}, {shown(one.b)} of {_name(pair.b)}"
            if one.a != one.b
            else f"{shown(one.a)} of both"
        )
        + (f" in {mentioned(one_line(one.section, _SECTION))}" if one.section else "")
        for one in file.lines[:_PLACES]
    ]
    more = len(file.lines) - _PLACES
    if more > 0:
        places.append(f"{more} more")
    return f"lines {'; '.join(places)}" if places else ""


def _show_order(order: Sequence[Step], target: str | None) -> None:
    if not order:
        paragraph("nothing to land")
        return
    onto = f" on {printable(target)}" if target else ""
    paragraph(f"an order to land{onto}", bold=True)
    for number, step in enumerate(order, 1):
        state = "clean" if not step.files else "conflicts"
        entry(f"  {number}  {state:9}  ", _title(step.side), f"  {_paths(step.files)}".rstrip())
    edges = [(name, step.side.name, files) for step in order for name, files in step.after.items()]
    if edges:
        paragraph("who before whom", bold=True)
        width = max(len(printable(before)) for before, _, _ in edges)
        for before, after, files in edges:
            line = f"  {printable(before):{width}}  ──▶  {printable(after)}  "
            entry(line, _paths(files))


def _paths(files: Sequence[str]) -> str:
    return ", ".join(printable(each) for each in files)


def _title(side: Side) -> str:
    droid = f" ({printable(side.droid)})" if side.droid and side.droid != side.name else ""
    return f"{_name(side)}{droid}"


def _name(side: Side) -> str:
    return mentioned(printable(side.name))


@command(show=_show, example="queen worktree collisions\nqueen worktree collisions --order")
@click.option("--order", is_flag=True, help="Also find an order to land in with few conflicts")
@click.option("--check", is_flag=True, help="Also run land.check on all of it together")
def collisions(hive: Hive, order: bool, check: bool) -> Answer:
    """Show which worktrees' present work would conflict

    Merges the work of each two worktrees in memory, with uncommitted changes and untracked files,
    and each with the main branch. Exits with status 1 if any conflict. No worktree, index or
    branch is touched.

    --check finds work that merges cleanly and fails together: it runs the check that is set
    (land.check) on a copy of the main branch with all that merge, then on halves. The copy has
    what git tracks, and nothing else.
    """
    from queenbee.git.collisions.comparing import compare  # noqa: PLC0415 - start-up

    chosen, jobs = _check(hive) if check else (None, 1)
    found = compare(hive.layout, with_order=order, check=chosen, jobs=jobs)
    failing = found.together is not None and found.together.failing
    return Answer(found, yes=not found.pairs and not failing)


def _check(hive: Hive) -> tuple[Check, int]:
    """Returns the check that is set, and how many may run side by side."""
    from queenbee.git.landing import Rules  # noqa: PLC0415 - start-up
    from queenbee.git.landing.leading import seen_check  # noqa: PLC0415 - start-up
    from queenbee.git.landing.requests import no_check  # noqa: PLC0415 - start-up
    from queenbee.git.landing.together.checked import check_of  # noqa: PLC0415 - start-up

    rules = Rules.of(hive)
    seen = seen_check(hive, rules)
    if seen is None:
        raise no_check(hive.layout)
    return check_of(seen, rules.check_timeout_s, hive.layout.common_dir), rules.jobs
