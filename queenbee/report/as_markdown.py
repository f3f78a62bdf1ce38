"""The report as Markdown, short enough for a comment: what others wrote is code in it.

Code is the one place where a host of Markdown interprets nothing: no HTML, link, image, mention,
issue number or emoji. So a title, a name or a reason always is a code span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from queenbee.core.text import some
from queenbee.core.timestamps import format_duration
from queenbee.report.values import Phase, Report
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

T = TypeVar("T")
_Column = tuple[str, Callable[[T], str]]
"""A heading, and the cell of a value below it."""

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
        ("Agents", some([f"- {code(each)}" for each in report.started], _ROWS, "\n")),
        ("Cost", _cost(report)),
        ("Checks and gates", _checks(report)),
        ("Conflicts", _conflicts(report)),
        ("Waiting times", _waits(report)),
        ("Threads", _threads(report)),
    ]


def _plan(report: Report) -> str:
    return _table(
        report.phases,
        ("Phase", lambda each: code(each.name)),
        *((word, partial(_count, state)) for state, word in STATES.items()),
        ("Gate", lambda each: _names([gate.status for gate in each.gates])),
    )


def _count(state: str, phase: Phase) -> str:
    return str(phase.counts[state] or "")


def _at_work(report: Report) -> str:
    return _table(
        [each for each in report.open if each.state == "active"],
        ("Issue", lambda each: code(each.issue_id)),
        ("Title", lambda each: code(each.title)),
        ("Droid", lambda each: code(each.holder or "")),
        ("Pull request", lambda each: code(each.review or "")),
    )


def _cost(report: Report) -> str:
    return _table(
        report.spent,
        ("Issue", lambda each: code(each.issue_id)),
        ("Droid", lambda each: code(each.droid)),
        ("USD", lambda each: f"{each.cost_usd:.2f}"),
        ("Tokens", lambda each: f"{each.tokens:,}"),
    )


def _checks(report: Report) -> str:
    passed = sum(each.status == "passed" for each in report.gates)
    gates = _table(
        [each for each in report.gates if each.status != "passed"],
        ("Gate", lambda each: code(each.name)),
        ("Status", lambda each: code(each.status)),
        ("Blocked by", lambda each: _names(each.blocking)),
    )
    checked = _table(
        report.checks,
        ("Checked", lambda each: f"{each.kind} {code(each.subject)}"),
        ("Last", lambda each: code(verdict(each.runs[-1]))),
        ("Runs", lambda each: str(len(each.runs) + each.earlier)),
        ("Not passed", lambda each: _names(each.runs[-1].failed)),
    )
    return _parts(f"{many(passed, 'gate')} passed." if report.gates else "", gates, checked)


def _conflicts(report: Report) -> str:
    met_text = f"{many(len(report.met), 'conflict')} met"
    avoided = f"{many(len(report.avoided), 'file')} handed over"
    foreseen_text = f"{many(len(report.foreseen), 'pair')} of worktrees would conflict"
    met = _table(
        report.met,
        ("At (UTC)", lambda each: clock(each.at_ms)),
        ("What", lambda each: code(each.what)),
        ("Lost by", lambda each: code(each.droid)),
        ("How", sentence),
        ("Now with", lambda each: code(each.other or "")),
    )
    foreseen = _table(
        report.foreseen,
        ("Worktree", lambda each: code(each.a)),
        ("Worktree", lambda each: code(each.b)),
        ("Files", lambda each: _names(each.files)),
    )
    return _parts(f"{met_text}, {avoided}, {foreseen_text}.", met, foreseen, NOT_RECORDED)


def _waits(report: Report) -> str:
    waiting = _table(
        report.waiting,
        ("Droid", lambda each: code(each.droid)),
        ("Waits for", lambda each: code(each.what)),
        ("Since (UTC)", lambda each: clock(each.since_ms)),
    )
    if report.usual_wait_s is None:
        return waiting
    waited = _table(
        report.waits,
        ("Issue", lambda each: code(each.issue_id)),
        ("Waited", lambda each: format_duration(each.waited_s)),
        ("Taken by", lambda each: code(each.droid)),
        ("Then took", worked),
    )
    return _parts(waiting, usual_wait(report.usual_wait_s), waited)


def _threads(report: Report) -> str:
    return _table(
        report.threads,
        ("Thread", lambda each: code(each.subject) or "(no subject)"),
        ("Issue", lambda each: code(each.issue_id or "")),
        ("Messages", lambda each: str(len(each.messages) + each.earlier)),
        ("Droids", lambda each: _names(each.droids)),
    )


def _parts(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _names(texts: Sequence[str]) -> str:
    return some([*map(code, texts)], _NAMES)


def _table(values: Sequence[T], *columns: _Column[T]) -> str:
    """Returns a table of the first values, and how many more there are; empty without any."""
    if not values:
        return ""
    lines = [[name for name, _ in columns], ["---"] * len(columns)]
    lines += [[cell(each) for _, cell in columns] for each in values[:_ROWS]]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    more = len(values) - _ROWS
    return f"{table}\n\n{more:,} more." if more > 0 else table
