"""Words that both forms of a report use."""

from __future__ import annotations

from queenbee.core.text import printable, shortened
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.report.values import Conflict, Report, Run, Wait

GENERATOR = "QueenBee report"
"""By these words in its head, a file is known as a report, which a new one may replace."""
STATES = {
    "done": "done",
    "active": "active",
    "ready": "ready",
    "waits": "waiting",
    "on_hold": "on hold",
}
NOT_RECORDED = (
    "Not recorded: conflicts of merges, checks of landings, refused requests, and how long a "
    "request waited in the queue; so files that another droid got within 15 minutes count as "
    "handed over."
)


def short(text: str, most: int) -> str:
    """Returns a text on one line in at most so many characters, with escapes for what would be
    acted on or hidden; a line break shows. However long the text is, it costs little.
    """
    return shortened(printable(text[: most + 1]), most)


def clock(at_ms: int) -> str:
    """Returns an instant to the minute, in UTC."""
    return format_ms(at_ms)[:16].replace("T", " ")


def many(number: int, one: str) -> str:
    """Returns a number with its noun."""
    return f"{number:,} {one if number == 1 else one + 's'}"


def heading(report: Report) -> str:
    """Returns when a report was made, and of what time."""
    since = f", of what happened since {clock(report.since_ms)}" if report.since_ms else ""
    return f"As of {clock(report.made_ms)} UTC{since}."


def usual_wait(wait_s: float) -> str:
    """Returns how long most issues waited for somebody."""
    return f"Half of the issues were taken within {format_duration(wait_s)} of being ready."


def worked(wait: Wait) -> str:
    """Returns how long an issue took once somebody had it."""
    return "not done" if wait.worked_s is None else format_duration(wait.worked_s)


def verdict(run: Run) -> str:
    """Returns the verdict on a run as words."""
    return run.verdict.replace("_", " ")


def sentence(conflict: Conflict) -> str:
    """Returns what became of a conflict, without the names."""
    return {
        "superseded": "after a merge, the older grant counted",
        "withdrawn": "the remote confirmed the other grant",
        "taken over": "taken over",
        "reassigned": "given to another droid",
    }[conflict.kind]
