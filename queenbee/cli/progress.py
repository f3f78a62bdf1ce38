"""What is shown on standard error while checks run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Session, aside
from queenbee.cli.render import printable, shortened
from queenbee.core.timestamps import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.checks.engine import Progress

_MARKS = {"passed": "✓", "failed": "✗", "skipped": "·", "interrupted": "!"}
_COLUMNS = 60


def watcher() -> Callable[[Progress], None] | None:
    """Returns what shows the progress of checks, or None under `--json`.

    On a terminal a line counts the seconds and shows the last line of output; elsewhere each check
    is named when it begins, since what came of it is part of the answer.
    """
    if click.get_current_context().ensure_object(Session).json:
        return None
    return _watch_on_terminal if sys.stderr.isatty() else _watch


def _watch(progress: Progress) -> None:
    if progress.event == "started":
        aside(_begun(progress))


def _watch_on_terminal(progress: Progress) -> None:
    aside("\r\x1b[K", end="")
    if progress.event == "finished" and progress.result is not None:
        result = progress.result
        text = f"{_MARKS.get(result.status, ' ')} {printable(progress.name)}"
        aside(f"{text}: {printable(shortened(result.reason, 200))}")
        return
    last = printable(shortened(progress.last_line, _COLUMNS))
    spent = format_duration(progress.elapsed_s)
    aside(f"{_begun(progress)} {spent} {last}", end="")


def _begun(progress: Progress) -> str:
    name = printable(shortened(progress.name, _COLUMNS))
    return f"[{progress.number}/{progress.total}] {name}"
