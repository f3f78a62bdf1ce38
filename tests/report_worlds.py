"""Reports for tests: one in which every text is the same, and hives that have something to tell."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from hives import START_MS

from queenbee.core.readiness import STATES
from queenbee.report.values import (
    Bar,
    Checked,
    Conflict,
    Foreseen,
    GateLine,
    Graph,
    Handover,
    IssueLine,
    Phase,
    Report,
    Run,
    Said,
    Thread,
    Wait,
    Waiting,
)

HOUR_MS = 3_600_000
HOSTILE = (
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></svg></pre></details><iframe src=javascript:alert(1)>",
    "<!-- ]]> --> <![CDATA[",
    "&lt;b&gt; &amp; &#60;b&#62;",
    "javascript:alert(1)",
    "[a link](javascript:alert(1)) ![](https://example.com/x.png) <https://example.com>",
    "https://example.com www.example.com a@example.com",
    "| a | b |\n| --- | --- |",
    "\\| \\\\| `|` `` ` ``` |`",
    "@team @org/team #1 GH-1 0123456789abcdef0123456789abcdef01234567 :bomb:",
    "# heading\n- list\n> quote\n```\n~~~\n    code\n***",
    "*bold* _it_ ~~no~~ $x$ $$y$$ ==z== [^1] [x]: y\n\n[^1]: z",
    "one\x1b[2Jtwo\x07\x00\x9b31m",
    "user\u202egnp.exe\u2066\u200b\ufeff\u2028",
    "half \ud83d of a pair",
    "\u0301" * 40,
    "x" * 5_000,
    " ",
    "`",
)
"""What others may have written anywhere."""


def report_of(text: str, **changes: Any) -> Report:
    """Returns a report in which every text is this one."""
    states = {state: number + 1 for number, state in enumerate(STATES)}
    line = IssueLine(text, text, "active", text, [text], text)
    waiting = IssueLine(text, text, "waits", None, [text], None)
    gate = GateLine(text, text, "failed", [text] * 3)
    begin_ms, end_ms = START_MS - HOUR_MS, START_MS
    run = Run(end_ms, text, text, 2.0, [text])
    known: dict[str, Any] = {
        "name": text,
        "made_ms": START_MS,
        "since_ms": begin_ms,
        "counts": {**states, "total": 15},
        "phases": [Phase(text, {**states, "total": 15}, [gate])],
        "open": [line, waiting],
        "graph": Graph({text: line, f"{text}2": waiting}, {text: [], f"{text}2": [text]}, 1, 0),
        "bars": [
            Bar(text, kind, text, begin_ms, end_ms, how, text, text)
            for kind in ("issue", "exclusive", "shared")
            for how in ("held", text)
        ],
        "waits": [Wait(text, text, text, 60.0, None)],
        "usual_wait_s": 60.0,
        "waiting": [Waiting(text, text, begin_ms)],
        "met": [Conflict("superseded", end_ms, text, text, text, text)],
        "avoided": [Handover(end_ms, text, text, text, 5.0)],
        "foreseen": [Foreseen(text, text, [text])],
        "gates": [gate],
        "checks": [Checked("bead", text, [run, run], 1)],
        "threads": [
            Thread(text, text, end_ms, [text], [Said(end_ms, text, text, text, text, cut=True)], 1)
        ],
        "messages": 1,
        "left_out": [text],
    }
    return Report(**(known | changes))


class Seen(HTMLParser):
    """What a browser would make of a piece of HTML: its elements and its text."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.others: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)
