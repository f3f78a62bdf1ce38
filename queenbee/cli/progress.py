"""The progress of checks and of waiting, shown on standard error."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from queenbee.cli.app import invocation, tell
from queenbee.cli.terminal import aside, meaning_of
from queenbee.core.text import printable, shortened, some
from queenbee.core.timestamps import format_duration
from queenbee.services.unasked import staleness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.checks.executing import Progress
    from queenbee.services.waiting.attempts import Progress as Waiting

_COLUMNS = 60
_SHOWN = 5
_WORTH_TELLING_S = 3.0
_LINE_EVERY_S = 10
"""Progress comes about once a second."""


def watcher() -> Callable[[Progress], None] | None:
    """Returns the function that shows the progress of checks, or None under `--json`.

    On a terminal, one line counts the seconds and shows the last line of output. Elsewhere each
    check is only named when it begins: its result is part of the answer.
    """
    if invocation().json:
        return None
    return _watch_on_terminal if sys.stderr.isatty() else _watch


def waiting() -> Callable[[Waiting | None], None] | None:
    """Returns the function that shows how a wait stands in one line, or None without a terminal.

    Called with None, it removes the line.
    """
    return _wait_on_terminal if sys.stderr.isatty() and not invocation().json else None


@contextmanager
def waiting_for(what: str, wait_s: float) -> Iterator[Callable[[float], None]]:
    """Shows on a terminal what is waited for, and for how long at most, until the block ends.

    The block gets what says elsewhere, each time after twice as long, who has an issue, given the
    seconds.
    """
    begun_s, is_json = time.monotonic(), invocation().json
    shown = bool(wait_s) and sys.stderr.isatty() and not is_json
    if shown:
        columns = shutil.get_terminal_size().columns
        text = f"waiting for {what}, {format_duration(wait_s)} at most"
        aside(printable(shortened(text, max(20, columns - 1))), end="")
    again_s, invocation().bar.is_mute = _LINE_EVERY_S, True

    def say_again(waited_s: float) -> None:
        nonlocal again_s
        if waited_s >= again_s and not (shown or is_json):
            again_s *= 2
            tell(f"waiting for {what}, {format_duration(waited_s)} so far{_at_work()}")
            if old := staleness(invocation().hive.layout):
                tell(old)

    try:
        yield say_again
    finally:
        invocation().bar.is_mute = False
        waited_s = time.monotonic() - begun_s
        if shown:
            aside("\r\x1b[K", end="")
        elif waited_s >= _WORTH_TELLING_S and not is_json:
            tell(f"waited {format_duration(waited_s)} for {what}")


def _at_work() -> str:
    issues: dict[str, list[str]] = {}
    for each in invocation().hive.assignments.find():
        issues.setdefault(each.droid, []).append(each.issue_id)
    had = [f"{droid} has {some(ids, _SHOWN)}" for droid, ids in issues.items()]
    return f": {some(had, _SHOWN, '; ')}" if had else ""


def _wait_on_terminal(progress: Waiting | None) -> None:
    aside("\r\x1b[K", end="")
    if progress is None:
        return
    columns = shutil.get_terminal_size().columns
    times = f"{format_duration(progress.waited_s)} of {format_duration(progress.whole_s)}"
    begun = f"waiting for {progress.want} ({times}): "
    why = progress.refusal.message
    if progress.ahead:
        from queenbee.services.leases.lease_refusals import place_in_line  # noqa: PLC0415 - start-up

        why = place_in_line(progress.ahead)
    aside(printable(shortened(begun + why, max(20, columns - 1))), end="")


def _watch(progress: Progress) -> None:
    if progress.event == "started":
        aside(_begun(progress))
    elif progress.event == "running" and int(progress.elapsed_s) % _LINE_EVERY_S == 0:
        aside(f"{_begun(progress)} {format_duration(progress.elapsed_s)}")


def _watch_on_terminal(progress: Progress) -> None:
    aside("\r\x1b[K", end="")
    if progress.event == "finished" and progress.result is not None:
        result = progress.result
        meaning = meaning_of(result.status)
        symbol = meaning.symbol if meaning is not None else " "
        text = f"{symbol} {printable(progress.name)}"
        aside(f"{text}: {printable(shortened(result.reason, 200))}")
        return
    last = printable(shortened(progress.last_line, _COLUMNS))
    spent = format_duration(progress.elapsed_s)
    aside(f"{_begun(progress)} {spent} {last}", end="")


def _begun(progress: Progress) -> str:
    name = printable(shortened(progress.name, _COLUMNS))
    return f"[{progress.number}/{progress.total}] {name}"
