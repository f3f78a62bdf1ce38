"""The two drawings of the page, as SVG in it: the graph of issues, and the time line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import one_line, printable, shortened
from queenbee.core.timestamps import format_ms
from queenbee.report import limits
from queenbee.report.layers import layers
from queenbee.report.markup import Markup, element, joined
from queenbee.report.words import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.report.values import Bar, Graph, IssueLine

_BOX_WIDTH, _BOX_HEIGHT = 184, 40
_GAP_X, _GAP_Y = 64, 12
_MARGIN = 8
_TITLE = 26
"""Characters of a title that fit into a box."""

_LABELS, _PLOT = 150, 850
_ROW, _BAR = 18, 14
_AXIS = 24
_CHAR = 6.6
"""The width of a character of a label, at least."""
_MINUTE = 60_000
_STEPS = (
    *(_MINUTE * each for each in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(1440 * _MINUTE * each for each in (1, 2, 7, 14, 30, 90, 180, 365, 1000, 4000)),
)
_TICKS = 8
_MOST_MS = 400 * 1440 * _MINUTE
"""The longest time that the axis shows: one record with a wrong date must not hide the rest."""


def graph_drawing(graph: Graph) -> Markup:
    """Returns the graph, from left to right."""
    columns = layers(graph.needs)
    place = {
        node: (
            _MARGIN + number * (_BOX_WIDTH + _GAP_X),
            _MARGIN + row * (_BOX_HEIGHT + _GAP_Y),
        )
        for number, column in enumerate(columns)
        for row, node in enumerate(column)
    }
    width = 2 * _MARGIN + len(columns) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + max(map(len, columns), default=0) * (_BOX_HEIGHT + _GAP_Y) - _GAP_Y
    edges = [_edge(place[need], place[node]) for node in graph.needs for need in graph.needs[node]]
    boxes = [_box(graph.nodes[node], *place[node]) for node in place]
    label = f"Graph of {len(place)} issues; an arrow leads from an issue to what waits for it"
    return _svg(width, height, label, [*edges, *boxes])


def timeline_drawing(bars: Sequence[Bar], now_ms: int) -> Markup:
    """Returns the time line: for each droid its issues and leases, below each other where they
    overlap.
    """
    begin_ms, end_ms = time_span(bars, now_ms)
    parts: list[Markup] = []
    y = _AXIS
    for droid, rows in lanes(bars).items():
        top = y
        shown = shortened(printable(one_line(droid)), 22)
        parts.append(element("text", shown, x=0, y=y + 13, class_="lane"))
        for row in rows:
            parts += [_bar(each, begin_ms, end_ms, y) for each in row if each.end_ms >= begin_ms]
            y += _ROW
        y = max(y, top + _ROW) + 6
        parts.append(element("line", x1=0, x2=_LABELS + _PLOT, y1=y - 3, y2=y - 3, class_="rule"))
    ticks = [_tick(at_ms, begin_ms, end_ms, y) for at_ms in tick_marks(begin_ms, end_ms)]
    label = "Time line of assignments and leases by droid; the table below it says the same"
    return _svg(_LABELS + _PLOT, y + 4, label, [*ticks, *parts])


def time_span(bars: Sequence[Bar], now_ms: int) -> tuple[int, int]:
    """Returns the first and the last instant of the time line: from the first beginning to the
    last event, or to now if that is not much later.
    """
    events = [each.begin_ms for each in bars]
    events += [each.end_ms for each in bars if each.how != "held"]
    end_ms = max(events, default=now_ms)
    begin_ms = max(min(events, default=now_ms), end_ms - _MOST_MS)
    end_ms = max(end_ms, begin_ms + _MINUTE)
    is_near = now_ms - end_ms < end_ms - begin_ms
    return begin_ms, max(now_ms, end_ms) if is_near else end_ms


def lanes(bars: Iterable[Bar]) -> dict[str, list[list[Bar]]]:
    """Returns the rows of each droid, in which no two bars overlap, droids by name.

    A bar for which a droid has no row left is not drawn.
    """
    found: dict[str, list[list[Bar]]] = {}
    for each in sorted(bars, key=lambda each: (each.droid, each.begin_ms, each.kind != "issue")):
        rows = found.setdefault(each.droid, [])
        free = next((row for row in rows if row[-1].end_ms <= each.begin_ms), None)
        if free is not None:
            free.append(each)
        elif len(rows) < limits.ROWS:
            rows.append([each])
    return found


def tick_marks(begin_ms: int, end_ms: int) -> list[int]:
    """Returns round instants within a time, at most eight."""
    step = next((each for each in _STEPS if (end_ms - begin_ms) / each <= _TICKS), _STEPS[-1])
    first = -(-begin_ms // step) * step
    return list(range(first, end_ms + 1, step))[:_TICKS]


def _svg(width: float, height: float, label: str, parts: Sequence[Markup]) -> Markup:
    return element(
        "svg",
        *parts,
        width=width,
        height=height,
        view_box=f"0 0 {width} {height}",
        role="img",
        aria_label=label,
    )


def _box(issue: IssueLine, x: int, y: int) -> Markup:
    state = issue.holder if issue.state == "active" and issue.holder else issue.state
    about = f"{issue.issue_id}: {issue.title} ({issue.state.replace('_', ' ')})"
    first = shortened(f"{issue.issue_id} · {state.replace('_', ' ')}", _TITLE)
    return element(
        "g",
        element("title", shortened(one_line(about), limits.TEXT)),
        element("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=5),
        element("text", one_line(first), x=x + 8, y=y + 16, class_="id"),
        element("text", one_line(issue.title, _TITLE), x=x + 8, y=y + 32),
        class_=f"box {issue.state}",
    )


def _edge(need: tuple[int, int], node: tuple[int, int]) -> Markup:
    x1, y1 = need[0] + _BOX_WIDTH, need[1] + _BOX_HEIGHT // 2
    x2, y2 = node[0], node[1] + _BOX_HEIGHT // 2
    bend = max(_GAP_X // 2, abs(x2 - x1) // 2)
    curve = f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 6} {y2}"
    tip = f"M{x2} {y2} l-7 -4 v8 z"
    return joined(
        element("path", d=curve, class_="edge" if x2 > x1 else "edge back"),
        element("path", d=tip, class_="tip"),
    )


def _bar(bar: Bar, begin_ms: int, end_ms: int, y: int) -> Markup:
    def x_of(at_ms: int) -> float:
        at_ms = min(max(at_ms, begin_ms), end_ms)
        return _LABELS + _PLOT * (at_ms - begin_ms) / (end_ms - begin_ms)

    x = x_of(bar.begin_ms)
    last_ms = end_ms if bar.how == "held" else bar.end_ms
    width = max(2.0, x_of(last_ms) - x)
    fits = int((width - 6) / _CHAR)
    label = None
    if fits >= 4:
        shown = shortened(printable(one_line(bar.what)), fits)
        label = element("text", shown, x=x + 3, y=y + 11)
    about = f"{bar.droid}: {bar.what}, {bar.how}, {clock(bar.begin_ms)} to {clock(bar.end_ms)} UTC"
    return element(
        "g",
        element("title", shortened(one_line(about), limits.TEXT)),
        element("rect", x=x, y=y, width=width, height=_BAR, rx=2),
        label,
        class_=f"bar {bar.kind}" + (" lost" if bar.how in ("superseded", "taken over") else ""),
    )


def _tick(at_ms: int, begin_ms: int, end_ms: int, bottom: int) -> Markup:
    x = _LABELS + _PLOT * (at_ms - begin_ms) / (end_ms - begin_ms)
    long = end_ms - begin_ms > 3 * 1440 * _MINUTE
    stamp = format_ms(at_ms)
    shown = stamp[:10] if long else f"{stamp[5:10]} {stamp[11:16]}"
    return joined(
        element("line", x1=x, x2=x, y1=_AXIS - 4, y2=bottom, class_="tick"),
        element("text", shown, x=min(x, _LABELS + _PLOT - 76), y=12, class_="axis"),
    )
