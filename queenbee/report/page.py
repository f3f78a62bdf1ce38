"""The report as one HTML file: no script, no network, light and dark, for the screen and paper."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING

from queenbee.core.text import shortened
from queenbee.core.timestamps import format_duration
from queenbee.report import limits
from queenbee.report.drawing import graph_drawing, timeline_drawing
from queenbee.report.markup import Markup, document, element, joined, style
from queenbee.report.words import (
    GENERATOR,
    NOT_RECORDED,
    STATES,
    clock,
    heading,
    many,
    sentence,
    short,
    verdict,
    worked,
)
from queenbee.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.report.values import Checked, IssueLine, Phase, Report, Run, Thread

_STYLE_PATH = os.path.join(os.path.dirname(__file__), "page.css")
_SHARE = 220
"""The width of a phase's bar."""
_VERDICTS = frozenset({"passed", "failed", "pending", "in_progress", "unreadable"})


def page(report: Report) -> str:
    """Returns the whole page."""
    sections = (
        ("plan", "Plan", _plan),
        ("graph", "Dependencies", _graph),
        ("time", "Time line", _time),
        ("waits", "Waiting times", _waits),
        ("conflicts", "Conflicts", _conflicts),
        ("checks", "Checks and gates", _checks),
        ("threads", "Threads", _threads),
    )
    links = [element("li", element("a", name, href=f"#{key}")) for key, name, _ in sections]
    body = element(
        "body",
        element("a", "Skip to the report", href="#plan", class_="skip"),
        element(
            "header",
            element("h1", f"Report: {_short(report.name)}"),
            element("p", heading(report), class_="soft"),
            _figures(report),
            element("nav", element("ul", *links), aria_label="Sections"),
        ),
        element("main", *(_section(key, name, of(report)) for key, name, of in sections)),
        element("footer", _left_out(report.left_out)),
    )
    return document("en", _head(report), body)


def _head(report: Report) -> Markup:
    with open(_STYLE_PATH, encoding="utf-8") as file:
        rules = file.read()
    digest = base64.b64encode(hashlib.sha256(rules.encode()).digest()).decode()
    # Nothing may be loaded, and no script may run, even if a text became an element.
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="generator", content=f"{GENERATOR} {__version__}"),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="referrer", content="no-referrer"),
        element("meta", name_="robots", content="noindex"),
        element("title", f"Report: {_short(report.name)}"),
        style(rules),
    )


def _section(key: str, name: str, content: Markup) -> Markup:
    return element("section", element("h2", name, id=key, tabindex=-1), content)


def _figures(report: Report) -> Markup:
    counts = report.counts
    failing = sum(each.runs[-1].verdict == "failed" for each in report.checks)
    held = sum(each.how == "held" and each.kind != "issue" for each in report.bars)
    figures = [
        (f"{counts['done']} of {counts['total']}", "issues done"),
        (f"{counts['active']}", "at work"),
        (f"{counts['ready']}", "ready"),
        (f"{held}", "live leases"),
        (f"{len(report.waiting)}", "droids in the queue"),
        (f"{len(report.met)}", "conflicts met"),
        (f"{failing}", "checks failing"),
    ]
    items = [element("li", element("b", number), name) for number, name in figures]
    return element("ul", *items, class_="figures")


def _plan(report: Report) -> Markup:
    headings = ["Phase", "Progress", *STATES.values(), "Gate"]
    rows = [_phase_row(each) for each in report.phases]
    table = _table("How many issues of each phase are in which state", headings, rows, numbers=5)
    issues = element(
        "details",
        element("summary", f"Open issues ({len(report.open)})"),
        _issues_table(report.open),
    )
    return joined(table, issues if report.open else None)


def _phase_row(phase: Phase) -> list[str]:
    gates = [_state(each.status) for each in phase.gates]
    numbers = [f"{phase.counts[state]}" if phase.counts[state] else "" for state in STATES]
    return [_short(phase.name), _share(phase.counts), *numbers, joined(*gates)]


def _share(counts: Mapping[str, int]) -> Markup:
    x, parts = 0.0, []
    for state in STATES:
        width = _SHARE * counts[state] / max(1, counts["total"])
        if width:
            parts.append(element("rect", x=x, y=0, width=width, height=14, class_=state))
        x += width
    label = f"{counts['done']} of {counts['total']} done"
    return element(
        "svg", *parts, width=_SHARE, height=14, role="img", aria_label=label, class_="share"
    )


def _issues_table(issues: Iterable[IssueLine]) -> Markup:
    rows = [
        [
            _short(each.issue_id),
            _short(each.title),
            _state(each.state),
            _short(each.holder or ""),
            _some(each.waits_for) if each.waits_for else _short(each.because or ""),
        ]
        for each in issues
    ]
    return _table("Issues", ["Issue", "Title", "State", "Droid", "Waits for"], rows)


def _graph(report: Report) -> Markup:
    graph = report.graph
    if graph.nodes:
        alone = many(graph.alone, "further issue") if graph.alone else ""
        note = f"{alone} {'waits' if graph.alone == 1 else 'wait'} for nothing." if alone else None
        table = element(
            "details",
            element("summary", "The same as a table"),
            _table(
                "What each issue waits for",
                ["Issue", "Title", "State", "Waits for"],
                [
                    [_short(key), _short(each.title), _state(each.state), _some(graph.needs[key])]
                    for key, each in graph.nodes.items()
                ],
            ),
        )
        return joined(
            _scroll(graph_drawing(graph), "Graph of issues"),
            element("p", note, class_="soft") if note else None,
            table,
        )
    if graph.left_out:
        more = element("p", "There are too many issues to draw. These wait for others:")
        return joined(more, _issues_table(graph.waiting))
    return _none("No issue waits for another.")


def _time(report: Report) -> Markup:
    if not report.bars:
        return _none("Nobody had an issue or a lease.")
    keys = [
        element("span", name, class_=f"key {kind}")
        for kind, name in (
            ("issue", "issue"),
            ("exclusive", "exclusive lease"),
            ("shared", "shared lease"),
        )
    ]
    rows = [
        [
            _short(each.droid),
            {"issue": "issue", "exclusive": "lease", "shared": "shared lease"}[each.kind],
            _short(each.what),
            _time_cell(each.begin_ms),
            "" if each.how == "held" else _time_cell(each.end_ms),
            each.how if each.how == "held" else _short(each.how),
            _short(each.reason or ""),
        ]
        for each in reversed(report.bars)
    ]
    headings = ["Droid", "What", "Name", "From (UTC)", "Until", "How", "Reason"]
    caption = "Assignments and leases, newest first"
    return joined(
        element("p", *_spaced(keys)),
        _scroll(timeline_drawing(report.bars, report.made_ms), "Time line"),
        element(
            "details",
            element("summary", "The same as a table"),
            _table(caption, headings, rows),
        ),
    )


def _waits(report: Report) -> Markup:
    parts: list[Markup] = []
    if report.waiting:
        rows = [
            [
                _short(each.droid),
                _short(each.what),
                _time_cell(each.since_ms),
                format_duration((report.made_ms - each.since_ms) / 1000),
            ]
            for each in report.waiting[: limits.WAITS]
        ]
        caption = "Droids in the queue now, in the order in which they are served"
        parts.append(_table(caption, ["Droid", "Waits for", "Since (UTC)", "For"], rows))
    if report.usual_wait_s is not None:
        usual = format_duration(report.usual_wait_s)
        parts.append(element("p", f"Half of the issues were taken within {usual} of being ready."))
        rows = [
            [
                _short(each.issue_id),
                _short(each.title),
                format_duration(each.waited_s),
                _short(each.droid),
                worked(each),
            ]
            for each in report.waits
        ]
        headings = ["Issue", "Title", "Waited", "Taken by", "Then took"]
        parts.append(_table("Issues that waited longest for a droid", headings, rows))
    return joined(*parts) if parts else _none("No waiting times are known.")


def _conflicts(report: Report) -> Markup:
    met = [
        [
            _time_cell(each.at_ms),
            _short(each.what),
            _short(each.droid),
            sentence(each),
            _short(each.other or ""),
            _short(each.reason or ""),
        ]
        for each in report.met
    ]
    avoided = [
        [
            _time_cell(each.at_ms),
            _short(each.witness),
            _short(each.first),
            _short(each.then),
            format_duration(each.gap_s),
        ]
        for each in report.avoided
    ]
    foreseen = [[_short(each.a), _short(each.b), _some(each.files)] for each in report.foreseen]
    return joined(
        _part(
            "Met",
            "Grants that a droid lost",
            ["At (UTC)", "What", "Lost by", "How", "Now with", "Reason"],
            met,
            "None were met.",
        ),
        _part(
            "Avoided",
            "Files that droids had one after the other instead of at once",
            ["At (UTC)", "File", "From", "To", "After"],
            avoided,
            "No files were handed over.",
        ),
        _part(
            "Foreseen",
            "Worktrees whose present work would conflict in a merge",
            ["Worktree", "Worktree", "Files"],
            foreseen,
            "None are foreseen.",
        ),
        element("p", NOT_RECORDED, class_="soft"),
    )


def _part(
    name: str, caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], empty: str
) -> Markup:
    content = _table(caption, headings, rows) if rows else _none(empty)
    return joined(element("h3", name), content)


def _checks(report: Report) -> Markup:
    gates = [
        [_short(each.name), _state(each.status), _lines(each.blocking)] for each in report.gates
    ]
    parts: list[Markup] = []
    if gates:
        parts.append(_table("Phase gates", ["Gate", "Status", "Blocked by"], gates))
    parts += [_subject(each) for each in report.checks]
    return joined(*parts) if parts else _none("No checks have run, and there are no gates.")


def _subject(checked: Checked) -> Markup:
    last = checked.runs[-1]
    rows = [
        [
            _time_cell(each.at_ms),
            _state(each.verdict),
            format_duration(each.seconds),
            _short(each.droid or ""),
            _lines([short(one, limits.REASON) for one in each.failed], limits.FAILED),
        ]
        for each in reversed(checked.runs)
    ]
    runs = many(len(checked.runs) + checked.earlier, "run")
    earlier = f"; {checked.earlier} earlier ones are not shown" if checked.earlier else ""
    return element(
        "details",
        element(
            "summary",
            f"{checked.kind} {_short(checked.subject)}: ",
            _state(last.verdict),
            f", {runs}{earlier}, {_history(checked.runs)}",
        ),
        _table("Runs, newest first", ["At (UTC)", "Verdict", "Took", "By", "Not passed"], rows),
    )


def _history(runs: Sequence[Run]) -> str:
    """Returns how the runs went, oldest first, in words that a screen reader can say."""
    return " → ".join(_short(verdict(each)) for each in runs[-limits.WORDS :])


def _threads(report: Report) -> Markup:
    if not report.threads:
        return _none("No messages.")
    return joined(
        element("p", f"{many(report.messages, 'message')}; the newest threads first."),
        *(_thread(each) for each in report.threads),
    )


def _thread(thread: Thread) -> Markup:
    about = f" ({_short(thread.issue_id)})" if thread.issue_id else ""
    count = len(thread.messages) + thread.earlier
    title = f"{_short(thread.subject) or 'Without a subject'}{about}"
    who = shortened(", ".join(thread.droids[: limits.WORDS]), limits.TEXT)
    parts: list[Markup] = []
    if thread.earlier:
        parts.append(_none(f"{many(thread.earlier, 'earlier message')} not shown."))
    for each in thread.messages:
        when = f"{clock(each.at_ms)}: {_short(each.sender)} to {_short(each.to)}"
        parts.append(element("p", when, class_="soft"))
        body = each.body or ("" if each.cut else each.subject)
        parts.append(element("pre", body, " […]" if each.cut else None))
    return element(
        "details",
        element("summary", f"{title} · {many(count, 'message')} · {who}"),
        *parts,
    )


def _left_out(sentences: Sequence[str]) -> Markup:
    if not sentences:
        return joined()
    items = [element("li", _short(each)) for each in sentences]
    return element(
        "section",
        element("h2", "Left out"),
        element("ul", *items, class_="plain"),
        element("p", "The records have everything: queen history ID, queen msg thread ID."),
    )


def _table(
    caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0
) -> Markup:
    """Returns a table; of its columns, so many are numbers, after the first two."""

    def of(number: int) -> str | None:
        return "n" if 2 <= number < 2 + numbers else None

    head = [
        element("th", each, scope="col", class_=of(number)) for number, each in enumerate(headings)
    ]
    lines = [
        element("tr", *(element("td", each, class_=of(number)) for number, each in enumerate(row)))
        for row in rows
    ]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *lines),
    )
    return _scroll(table, caption)


def _scroll(content: Markup, label: str) -> Markup:
    """Returns a part that scrolls by itself where the window is too narrow, also by keyboard."""
    return element("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def _state(state: str) -> Markup:
    known = state if state in STATES or state in _VERDICTS else "other"
    return element(
        "span", _short(STATES.get(state, state.replace("_", " "))), class_=f"state {known}"
    )


def _time_cell(at_ms: int) -> Markup:
    return element("span", clock(at_ms), class_="time")


def _lines(texts: Sequence[str], most: int = limits.WORDS) -> Markup:
    shown = [element("li", _short(each)) for each in texts[:most]]
    more = len(texts) - len(shown)
    if more > 0:
        shown.append(element("li", f"{more} more"))
    return element("ul", *shown, class_="plain") if shown else joined()


def _some(names: Sequence[str]) -> str:
    more = len(names) - limits.WORDS
    shown = ", ".join(_short(each) for each in names[: limits.WORDS])
    return f"{shown} and {more} more" if more > 0 else shown


def _short(text: str) -> str:
    return short(text, limits.TEXT)


def _none(text: str) -> Markup:
    return element("p", text, class_="none")


def _spaced(parts: Sequence[Markup]) -> list[str]:
    return [each for part in parts for each in (part, " ")]
