"""The report as Markdown, short enough for a comment: what others wrote is code in it.

Code is the one place where a host of Markdown interprets nothing: no HTML, link, image, mention,
issue number or emoji. So a title, a name or a reason always is a code span.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from queenbee.core.timestamps import format_duration
from queenbee.report.words import (
    GENERATOR,
    NOT_RECORDED,
    STATES,
    clock,
    heading,
    many,
    sentence,
    short,
    usual_wait,
    verdict,
    worked,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.report.values import Checked, GateLine, Report

MARK = f"<!-- {GENERATOR} -->"
_MOST_CHARS = 60_000
"""GitHub takes comments of 65,536 characters."""
_ROWS = 20
_NAMES = 6
_TEXT = 80
_READ = 1_000
"""Characters of a text that are looked at: blanks count as one."""
_BACKTICKS = re.compile("`+")
_BLANKS = re.compile(r"\s+")


def markdown(report: Report) -> str:
    """Returns the report; sections for which there is no room are named at the end."""
    counts = report.counts
    summary = f"**{counts['done']} of {counts['total']} issues done**"
    states = [f"{counts[state]} {STATES[state]}" for state in STATES if state != "done"]
    begin = [
        MARK,
        f"## Report: {code(report.name)}",
        "",
        heading(report),
        "",
        f"{summary}, {', '.join(states)}.",
        "",
    ]
    text = "\n".join(begin)
    dropped = []
    for name, section in _sections(report):
        if section:
            part = f"\n### {name}\n\n{section}\n"
            if len(text) + len(part) < _MOST_CHARS:
                text += part
            else:
                dropped.append(name)
    if dropped:
        text += f"\nLeft out for want of room: {', '.join(dropped)}.\n"
    return text


def code(text: str) -> str:
    """Returns a text as a code span, also for the cell of a table; blanks count as one."""
    line = _BLANKS.sub(" ", short(_BLANKS.sub(" ", text[:_READ]), _TEXT)).strip()
    if not line:
        return ""
    fence = "`"
    while fence in _BACKTICKS.findall(line):
        fence += "`"
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    # In a table, a bar ends the cell even within code.
    return f"{fence}{blank}{line}{blank}{fence}".replace("|", "\\|")


def _sections(report: Report) -> list[tuple[str, str]]:
    return [
        ("Plan", _plan(report)),
        ("At work", _at_work(report)),
        ("Checks and gates", _checks(report)),
        ("Conflicts", _conflicts(report)),
        ("Waiting times", _waits(report)),
        ("Threads", _threads(report)),
    ]


def _plan(report: Report) -> str:
    rows = [
        [
            code(each.name),
            *(str(each.counts[state] or "") for state in STATES),
            _gates(each.gates),
        ]
        for each in report.phases
    ]
    return _table(["Phase", *STATES.values(), "Gate"], rows)


def _gates(gates: Sequence[GateLine]) -> str:
    return ", ".join(code(each.status) for each in gates[:_NAMES])


def _at_work(report: Report) -> str:
    rows = [
        [code(each.issue_id), code(each.title), code(each.holder or "")]
        for each in report.open
        if each.state == "active"
    ]
    return _table(["Issue", "Title", "Droid"], rows)


def _checks(report: Report) -> str:
    gates = [
        [code(each.name), code(each.status), _names(each.blocking)]
        for each in report.gates
        if each.status != "passed"
    ]
    passed = sum(each.status == "passed" for each in report.gates)
    parts = [f"{many(passed, 'gate')} passed."] if report.gates else []
    parts += [_table(["Gate", "Status", "Blocked by"], gates)] if gates else []
    rows = [_check_row(each) for each in report.checks]
    parts += [_table(["Checked", "Last", "Runs", "Not passed"], rows)] if rows else []
    return "\n\n".join(parts)


def _check_row(checked: Checked) -> list[str]:
    last = checked.runs[-1]
    runs = len(checked.runs) + checked.earlier
    subject = f"{checked.kind} {code(checked.subject)}"
    return [subject, code(verdict(last)), str(runs), _names(last.failed)]


def _conflicts(report: Report) -> str:
    met_text = f"{many(len(report.met), 'conflict')} met"
    avoided = f"{many(len(report.avoided), 'file')} handed over"
    foreseen_text = f"{many(len(report.foreseen), 'pair')} of worktrees would conflict"
    parts = [f"{met_text}, {avoided}, {foreseen_text}."]
    met = [
        [
            clock(each.at_ms),
            code(each.what),
            code(each.droid),
            sentence(each),
            code(each.other or ""),
        ]
        for each in report.met
    ]
    parts += [_table(["At (UTC)", "What", "Lost by", "How", "Now with"], met)] if met else []
    foreseen = [[code(each.a), code(each.b), _names(each.files)] for each in report.foreseen]
    parts += [_table(["Worktree", "Worktree", "Files"], foreseen)] if foreseen else []
    return "\n\n".join([*parts, NOT_RECORDED])


def _waits(report: Report) -> str:
    parts = []
    if report.waiting:
        rows = [
            [code(each.droid), code(each.what), clock(each.since_ms)] for each in report.waiting
        ]
        parts.append(_table(["Droid", "Waits for", "Since (UTC)"], rows))
    if report.usual_wait_s is not None:
        parts.append(usual_wait(report.usual_wait_s))
        rows = [
            [code(each.issue_id), format_duration(each.waited_s), code(each.droid), worked(each)]
            for each in report.waits
        ]
        parts.append(_table(["Issue", "Waited", "Taken by", "Then took"], rows))
    return "\n\n".join(parts)


def _threads(report: Report) -> str:
    rows = [
        [
            code(each.subject) or "(no subject)",
            code(each.issue_id or ""),
            str(len(each.messages) + each.earlier),
            _names(each.droids),
        ]
        for each in report.threads
    ]
    return _table(["Thread", "Issue", "Messages", "Droids"], rows)


def _names(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _NAMES} more"] if len(texts) > _NAMES else []
    return ", ".join([*map(code, texts[:_NAMES]), *more])


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table of the first rows, and how many more there are."""
    if not rows:
        return ""
    lines = [headings, ["---"] * len(headings), *rows[:_ROWS]]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    more = len(rows) - _ROWS
    return f"{table}\n\n{more:,} more." if more > 0 else table
