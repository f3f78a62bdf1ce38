"""The report as one HTML file: no script, no network, light and dark, for the screen and paper."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from queenbee._hashing import sha256
from queenbee.core.text import some
from queenbee.core.timestamps import format_duration
from queenbee.report import caps
from queenbee.report.drawing import graph_drawing, timeline_drawing
from queenbee.report.markup import Markup, document, element, joined, style
from queenbee.report.values import (
    Bar,
    Checked,
    Conflict,
    Foreseen,
    GateLine,
    Handover,
    IssueLine,
    Phase,
    Report,
    Run,
    Thread,
    Wait,
    Waiting,
)
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
from queenbee.store.droids.spending import Spent
from queenbee.version import __version__

T = TypeVar("T")
_Column = tuple[str, Callable[[T], str]]
"""A heading, and the cell of a value below it."""

_STYLE_PATH = os.path.join(os.path.dirname(__file__), "page.css")
_SHARE = 220
"""The width of a phase's bar."""
_AS_TABLE = "The same as a table"
_VERDICTS = frozenset({"passed", "failed", "pending", "in_progress", "unreadable"})


def page(report: Report) -> str:
    """Returns the whole page."""
    sections = (
        ("plan", "Plan", _plan),
        ("graph", "Dependencies", _graph),
        *([("started", "Agents", _started)] if report.started else []),
        *([("cost", "Cost", _cost)] if report.spent else []),
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
        element(
            "main",
            *(_section(key, name, of(report)) for key, name, of in sections),
        ),
        element("footer", _left_out(report.left_out)),
    )
    return document("en", _head(report), body)


def _head(report: Report) -> Markup:
    with open(_STYLE_PATH, encoding="utf-8") as file:
        rules = file.read()
    digest = base64.b64encode(sha256(rules.encode()).digest()).decode()
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
    is_empty = content.startswith(_EMPTY)
    head = element("h2", name, id=key, tabindex=-1)
    return element("section", head, content, class_="empty" if is_empty else None)


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
        (f"{len(report.foreseen)}", "conflicts foreseen"),
        (f"{failing}", "checks failing"),
    ]
    items = [element("li", element("b", number), name) for number, name in figures]
    return element("ul", *items, class_="figures")


def _plan(report: Report) -> Markup:
    columns: list[_Column[Phase]] = [
        ("Phase", lambda each: _short(each.name)),
        ("Progress", lambda each: _share(each.counts)),
        # The headings are the legend of the bar, too.
        *((_state(state), partial(_count, state)) for state in STATES),
        ("Gate", lambda each: joined(*(_state(gate.status) for gate in each.gates))),
    ]
    table = _table("How many issues of each phase are in which state", report.phases, columns, 5)
    if not report.open:
        return table
    issues = _table("Issues", report.open, _ISSUES)
    return joined(table, _details(f"Open issues ({len(report.open)})", issues))


def _count(state: str, phase: Phase) -> str:
    return f"{phase.counts[state]}" if phase.counts[state] else ""


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


def _graph(report: Report) -> Markup:
    graph = report.graph
    if graph.nodes:
        alone = many(graph.alone, "further issue") if graph.alone else ""
        note = f"{alone} {'waits' if graph.alone == 1 else 'wait'} for nothing." if alone else None
        columns: list[_Column[tuple[str, IssueLine]]] = [
            ("Issue", lambda each: _short(each[0])),
            ("Title", lambda each: _short(each[1].title)),
            ("State", lambda each: _state(each[1].state)),
            ("Waits for", lambda each: _some(graph.needs[each[0]])),
        ]
        return joined(
            _scroll(graph_drawing(graph), "Graph of issues"),
            element("p", note, class_="soft") if note else None,
            _details(_AS_TABLE, _table("What each issue waits for", graph.nodes.items(), columns)),
        )
    if graph.left_out:
        more = element("p", "There are too many issues to draw. These wait for others:")
        return joined(more, _table("Issues", graph.waiting, _ISSUES))
    return _none("No issue waits for another.")


def _time(report: Report) -> Markup:
    if not report.bars:
        return _none("Nobody had an issue or a lease.")
    names = {"issue": "issue", "exclusive": "exclusive lease", "shared": "shared lease"}
    keys = [element("span", name, class_=f"key {kind}") for kind, name in names.items()]
    columns: list[_Column[Bar]] = [
        ("Droid", lambda each: _short(each.droid)),
        ("What", lambda each: "lease" if each.kind == "exclusive" else names[each.kind]),
        ("Name", lambda each: _short(each.what)),
        ("From (UTC)", lambda each: _time_cell(each.begin_ms)),
        ("Until", lambda each: "" if each.how == "held" else _time_cell(each.end_ms)),
        ("How", lambda each: _short(each.how)),
        ("Reason", lambda each: _short(each.reason)),
    ]
    table = _table("Assignments and leases, newest first", reversed(report.bars), columns)
    return joined(
        element("p", *(each for key in keys for each in (key, " "))),
        _scroll(timeline_drawing(report.bars, report.made_ms), "Time line"),
        _details(_AS_TABLE, table),
    )


def _started(report: Report) -> Markup:
    return _lines([short(each, caps.REASON) for each in report.started])


def _cost(report: Report) -> Markup:
    columns: list[_Column[Spent]] = [
        ("Issue", lambda each: _short(each.issue_id)),
        ("Droid", lambda each: _short(each.droid)),
        ("USD", lambda each: f"{each.cost_usd:.2f}"),
        ("Tokens", lambda each: f"{each.tokens:,}"),
    ]
    return _table("As the clients on this machine report it", report.spent, columns, numbers=2)


def _waits(report: Report) -> Markup:
    parts: list[Markup] = []
    if report.waiting:
        columns: list[_Column[Waiting]] = [
            ("Droid", lambda each: _short(each.droid)),
            ("Waits for", lambda each: _short(each.what)),
            ("Since (UTC)", lambda each: _time_cell(each.since_ms)),
            ("For", lambda each: format_duration((report.made_ms - each.since_ms) / 1000)),
        ]
        caption = "Droids in the queue now, in the order in which they are served"
        parts.append(_table(caption, report.waiting[: caps.WAITS], columns))
    if report.usual_wait_s is not None:
        parts.append(element("p", usual_wait(report.usual_wait_s)))
        parts.append(_table("Issues that waited longest for a droid", report.waits, _WAITS))
    return joined(*parts) if parts else _none("No waiting times are known.")


def _conflicts(report: Report) -> Markup:
    lost, had = (
        "Grants that a droid lost",
        "Files that droids had one after the other instead of at once",
    )
    foreseen = "Worktrees whose present work would conflict in a merge"
    if not (report.met or report.avoided or report.foreseen):
        return _none("None were met, and none are foreseen; no files were handed over.")
    return joined(
        _part("Met", lost, report.met, _MET, "None were met."),
        _part("Avoided", had, report.avoided, _AVOIDED, "No files were handed over."),
        _part("Foreseen", foreseen, report.foreseen, _FORESEEN, "None are foreseen."),
        element("p", NOT_RECORDED, class_="soft"),
    )


def _part(
    name: str, caption: str, values: Sequence[T], columns: Sequence[_Column[T]], empty: str
) -> Markup:
    content = _table(caption, values, columns) if values else _none(empty)
    return joined(element("h3", name), content)


def _checks(report: Report) -> Markup:
    parts = [_table("Phase gates", report.gates, _GATES)] if report.gates else []
    parts += [_subject(each) for each in report.checks]
    return joined(*parts) if parts else _none("No beads or gates have been checked.")


def _subject(checked: Checked) -> Markup:
    runs = many(len(checked.runs) + checked.earlier, "run")
    earlier = f"; {checked.earlier} earlier ones are not shown" if checked.earlier else ""
    # In words that a screen reader can say, oldest first.
    history = " → ".join(_short(verdict(each)) for each in checked.runs[-caps.WORDS :])
    return _details(
        joined(
            f"{checked.kind} {_short(checked.subject)}: ",
            _state(checked.runs[-1].verdict),
            f", {runs}{earlier}, {history}",
        ),
        _table("Runs, newest first", reversed(checked.runs), _RUNS),
    )


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
    parts: list[Markup] = []
    if thread.earlier:
        parts.append(_none(f"{many(thread.earlier, 'earlier message')} not shown."))
    for each in thread.messages:
        when = f"{clock(each.at_ms)}: {_short(each.sender)} to {_short(each.to)}"
        parts.append(element("p", when, class_="soft"))
        body = each.body or ("" if each.cut else each.subject)
        parts.append(element("pre", body, " […]" if each.cut else None))
    return _details(f"{title} · {many(count, 'message')} · {_some(thread.droids)}", *parts)


def _left_out(sentences: Sequence[str]) -> Markup:
    if not sentences:
        return joined()
    items = [element("li", _short(each)) for each in sentences]
    return element(
        "section",
        element("h2", "Left out"),
        element("ul", *items, class_="plain"),
        element("p", "The records have everything: queen hive history ID, queen msg thread ID."),
    )


def _table(
    caption: str, values: Iterable[T], columns: Sequence[_Column[T]], numbers: int = 0
) -> Markup:
    """Returns a table; of its columns, so many are numbers, after the first two."""
    classes = ["n" if 2 <= number < 2 + numbers else None for number in range(len(columns))]
    head = [
        element("th", name, scope="col", class_=kind)
        for (name, _), kind in zip(columns, classes, strict=True)
    ]
    lines = [
        element(
            "tr",
            *(
                element("td", cell(each), class_=kind)
                for (_, cell), kind in zip(columns, classes, strict=True)
            ),
        )
        for each in values
    ]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *lines),
    )
    return _scroll(table, caption)


def _details(summary: str, *content: Markup) -> Markup:
    return element("details", element("summary", summary), *content)


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


def _lines(texts: Sequence[str], most: int = caps.WORDS) -> Markup:
    shown = [element("li", _short(each)) for each in texts[:most]]
    more = len(texts) - len(shown)
    if more > 0:
        shown.append(element("li", f"{more} more"))
    return element("ul", *shown, class_="plain") if shown else joined()


def _some(names: Sequence[str]) -> str:
    return some([_short(each) for each in names], caps.WORDS)


def _short(text: str | None) -> str:
    return short(text or "", caps.TEXT)


_EMPTY = '<p class="none"'


def _none(text: str) -> Markup:
    return element("p", text, class_="none")


_ISSUES: list[_Column[IssueLine]] = [
    ("Issue", lambda each: _short(each.issue_id)),
    ("Title", lambda each: _short(each.title)),
    ("State", lambda each: _state(each.state)),
    ("Droid", lambda each: _short(each.holder)),
    ("Pull request", lambda each: _short(each.review)),
    ("Waits for", lambda each: _some(each.waits_for) or _short(each.because)),
]
_WAITS: list[_Column[Wait]] = [
    ("Issue", lambda each: _short(each.issue_id)),
    ("Title", lambda each: _short(each.title)),
    ("Waited", lambda each: format_duration(each.waited_s)),
    ("Taken by", lambda each: _short(each.droid)),
    ("Then took", worked),
]
_MET: list[_Column[Conflict]] = [
    ("At (UTC)", lambda each: _time_cell(each.at_ms)),
    ("What", lambda each: _short(each.what)),
    ("Lost by", lambda each: _short(each.droid)),
    ("How", sentence),
    ("Now with", lambda each: _short(each.other)),
    ("Reason", lambda each: _short(each.reason)),
]
_AVOIDED: list[_Column[Handover]] = [
    ("At (UTC)", lambda each: _time_cell(each.at_ms)),
    ("File", lambda each: _short(each.witness)),
    ("From", lambda each: _short(each.first)),
    ("To", lambda each: _short(each.then)),
    ("After", lambda each: format_duration(each.gap_s)),
]
_FORESEEN: list[_Column[Foreseen]] = [
    ("Worktree", lambda each: _short(each.a)),
    ("Worktree", lambda each: _short(each.b)),
    ("Files", lambda each: _some(each.files)),
]
_GATES: list[_Column[GateLine]] = [
    ("Gate", lambda each: _short(each.name)),
    ("Status", lambda each: _state(each.status)),
    ("Blocked by", lambda each: _lines(each.blocking)),
]
_RUNS: list[_Column[Run]] = [
    ("At (UTC)", lambda each: _time_cell(each.at_ms)),
    ("Verdict", lambda each: _state(each.verdict)),
    ("Took", lambda each: format_duration(each.seconds)),
    ("By", lambda each: _short(each.droid)),
    (
        "Not passed",
        lambda each: _lines([short(one, caps.REASON) for one in each.failed], caps.FAILED),
    ),
]
