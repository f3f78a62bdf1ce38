"""The two drawings of the page, as SVG in it: the graph of issues, and the time line.

The nodes of the graph are in layers: what waits stands right of what it waits for. An edge that
passes a layer has a bend in it. In each layer, nodes and bends are in an order in which few edges
cross: by the mean place of the neighbours, a few times in both directions (Sugiyama).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from queenbee.core.timestamps import format_ms
from queenbee.documents.graphs import sort_by_need
from queenbee.report import caps
from queenbee.report.markup import Markup, element, joined
from queenbee.report.values import Bar, Graph, IssueLine
from queenbee.report.words import STATES, clock, short

_Point = tuple[int, int]
Needs = Mapping[str, Sequence[str]]

_BOX_WIDTH, _BOX_HEIGHT = 184, 40
_BEND_HEIGHT = 10
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
    place: dict[Place, _Point] = {}
    bottom = 0
    for number, column in enumerate(columns):
        y = _MARGIN
        for each in column:
            place[each] = (_MARGIN + number * (_BOX_WIDTH + _GAP_X), y)
            y += (_BOX_HEIGHT if isinstance(each, str) else _BEND_HEIGHT) + _GAP_Y
        bottom = max(bottom, y - _GAP_Y)
    layer_of = {each: n for n, column in enumerate(columns) for each in column}
    width = 2 * _MARGIN + len(columns) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    height = bottom + _MARGIN
    edges = [
        _edge([place[each] for each in route(need, node, layer_of)])
        for node in graph.needs
        for need in graph.needs[node]
    ]
    boxes = [_box(graph.nodes[each], *place[each]) for each in place if isinstance(each, str)]
    label = f"Graph of {len(boxes)} issues; an arrow leads from an issue to what waits for it"
    return _svg(width, height, label, [*edges, *boxes])


def timeline_drawing(bars: Sequence[Bar], now_ms: int) -> Markup:
    """Returns the time line: each droid's issues and leases; what overlaps is one below another."""
    begin_ms, end_ms = time_span(bars, now_ms)
    parts: list[Markup] = []
    y = _AXIS
    for droid, rows in lanes(bars).items():
        top = y
        shown = short(droid, 22)
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
        elif len(rows) < caps.ROWS:
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
    word = STATES[issue.state]
    about = f"{issue.issue_id}: {issue.title} ({word})"
    who = issue.holder if issue.state == "active" and issue.holder else word
    first = short(f"{issue.issue_id} · {who}", _TITLE)
    return element(
        "g",
        element("title", short(about, caps.TEXT)),
        element("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=5),
        element("text", first, x=x + 8, y=y + 16, class_="id"),
        element("text", short(issue.title, _TITLE), x=x + 8, y=y + 32),
        class_=f"box {issue.state}",
    )


def _edge(way: Sequence[_Point]) -> Markup:
    """Returns an arrow from the first place to the last; where it bends, it runs straight as far as
    a box would be wide.
    """
    (x, y), *bends, (x2, y2) = way
    x, y, y2 = x + _BOX_WIDTH, y + _BOX_HEIGHT // 2, y2 + _BOX_HEIGHT // 2
    forward = x2 > x
    line = f"M{x} {y}"
    for bend_x, bend_y in bends:
        middle = bend_y + _BEND_HEIGHT // 2
        line += _curve(x, y, bend_x, middle) + f" H{bend_x + _BOX_WIDTH}"
        x, y = bend_x + _BOX_WIDTH, middle
    line += _curve(x, y, x2 - 6, y2)
    return joined(
        element("path", d=line, class_="edge" if forward else "edge back"),
        element("path", d=f"M{x2} {y2} l-7 -4 v8 z", class_="tip"),
    )


def _curve(x1: int, y1: int, x2: int, y2: int) -> str:
    bend = max(_GAP_X // 2, abs(x2 - x1) // 2)
    return f" C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


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
        shown = short(bar.what, fits)
        label = element("text", shown, x=x + 3, y=y + 11)
    about = f"{bar.droid}: {bar.what}, {bar.how}, {clock(bar.begin_ms)} to {clock(bar.end_ms)} UTC"
    return element(
        "g",
        element("title", short(about, caps.TEXT)),
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


_SWEEPS = 4


class Bend(NamedTuple):
    """Where the edge from `need` to `node` passes a layer."""

    need: str
    node: str
    layer: int


Place = str | Bend


def layers(graph: Needs) -> list[list[Place]]:
    """Returns nodes and bends layer by layer, each layer from top to bottom.

    Every node stands in a later layer than those it waits for; in a circle, one edge leads back,
    and has no bends.
    """
    layer_of: dict[Place, int] = {}
    for node in sort_by_need(graph):
        known = [layer_of[need] for need in graph[node] if need in layer_of]
        layer_of[node] = max(known, default=-1) + 1
    found: list[list[Place]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for node in graph:
        found[layer_of[node]].append(node)
    before: dict[Place, list[Place]] = {}
    after: dict[Place, list[Place]] = {}
    for node in graph:
        for need in dict.fromkeys(graph[node]):
            way = route(need, node, layer_of)
            for bend in way[1:-1]:
                assert isinstance(bend, Bend)
                found[bend.layer].append(bend)
            for left, right in pairwise(way):
                before.setdefault(right, []).append(left)
                after.setdefault(left, []).append(right)
    for _ in range(_SWEEPS):
        _sort(found, range(1, len(found)), before)
        _sort(found, range(len(found) - 2, -1, -1), after)
    return found


def route(need: str, node: str, layer_of: Mapping[Place, int]) -> list[Place]:
    """Returns the places an edge leads through: both nodes, and a bend in each layer between."""
    between = range(layer_of[need] + 1, layer_of[node])
    return [need, *(Bend(need, node, layer) for layer in between), node]


def _sort(
    found: Sequence[list[Place]], order: Sequence[int], neighbours: Mapping[Place, Sequence[Place]]
) -> None:
    """Sorts layers, one after the other, by the mean place of the neighbours."""
    rank = {place: number for layer in found for number, place in enumerate(layer)}

    def mean(place: Place) -> float:
        near = [rank[each] for each in neighbours.get(place, ())]
        return sum(near) / len(near) if near else rank[place]

    for number in order:
        found[number].sort(key=mean)
        rank.update((place, number) for number, place in enumerate(found[number]))
