"""The parts of the page, each as HTML: what waits for a person, the lists, the time line.

All texts of others come through `report.markup`, which escapes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queenbee.core.text import printable
from queenbee.git.collisions.found import Collisions
from queenbee.report.drawing import timeline_drawing
from queenbee.report.markup import Markup, element, joined
from queenbee.report.values import Bar
from queenbee.watch.acts import Act, acts_of
from queenbee.watch.asks import Ask
from queenbee.watch.cells import BAR, Cell, Column, Panel, Row
from queenbee.watch.facts import Facts
from queenbee.watch.view import conflicts_panel, headline, timeless_panels, timely_panels

_MOST_ROWS = 100
_MOST_ASKS = 50
_SHORT_CHARS = 14
"""A text of so many is not broken, where there is room for the table."""
_KEYS = {"issue": "issue", "exclusive": "exclusive lease", "shared": "shared lease"}


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that the page is made of."""

    facts: Facts
    asks: list[Ask]
    collisions: Collisions | None = None
    problem: str = ""
    """Why the worktrees were not compared."""
    bars: tuple[Bar, ...] = ()


def parts(seen: Seen, now_ms: int) -> dict[str, str]:
    """Returns the inside of each part of the page, by its id; `title` is that of the window."""
    facts = seen.facts
    panels = {**timeless_panels(facts), **timely_panels(facts, now_ms)}
    panels["conflicts"] = conflicts_panel(seen.collisions, seen.problem)
    count = f"({len(seen.asks)}) " if seen.asks else ""
    return {
        "title": count,
        "headline": element("span", headline(facts)),
        "asks": _asks(seen.asks),
        **{name: _panel(panel, facts) for name, panel in panels.items()},
        "time": _time(seen, now_ms),
    }


def _asks(found: Sequence[Ask]) -> Markup:
    head = element("h2", "Waiting for you", _count(len(found)))
    if not found:
        return joined(head, _none("Nothing waits for you."))
    items = [
        element(
            "li",
            element("p", each.text),
            element("pre", each.detail, tabindex=0) if each.detail else None,
            _buttons(each.acts),
        )
        for each in found[:_MOST_ASKS]
    ]
    return joined(head, element("ul", *items), _more(len(found), _MOST_ASKS))


def _panel(panel: Panel, facts: Facts) -> Markup:
    head = element("h2", panel.title, _count(len(panel.rows)))
    note = element("p", panel.note, class_="soft") if panel.note else None
    if not panel.rows:
        return joined(head, note, _none(panel.empty))
    shown = [(each, acts_of(panel.name, each, facts)) for each in panel.rows[:_MOST_ROWS]]
    has_acts = any(acts for _, acts in shown)
    names = [each.title.capitalize() for each in panel.columns]
    heads = [element("th", each or _hidden("Sign"), scope="col") for each in names]
    if has_acts:
        heads.append(element("th", _hidden("What you can do"), scope="col"))
    table = element(
        "table",
        element("thead", element("tr", *heads, role="row"), role="rowgroup"),
        element(
            "tbody",
            *(_row(row, panel.columns, acts if has_acts else None) for row, acts in shown),
            role="rowgroup",
        ),
        role="table",  # Narrow windows show no table, which a browser would take for none.
        aria_label=panel.title,
    )
    return joined(head, note, table, _more(len(panel.rows), _MOST_ROWS))


def _row(row: Row, columns: Sequence[Column], acts: Sequence[Act] | None) -> Markup:
    cells = [_cell(one, of) for one, of in zip(row.cells, columns, strict=True)]
    if acts is not None:
        cells.append(element("td", _buttons(acts), role="cell", class_="acts"))
    return element("tr", *cells, role="row")


def _cell(cell: Cell, column: Column) -> Markup:
    text, label = cell.text.lstrip(BAR + " "), column.title.capitalize() or None
    kinds = {
        "wide": column.wide,
        "short": len(text) <= _SHORT_CHARS,
        "blank": text in ("", "-"),
    }
    if cell.state:
        text = element("span", text, class_=f"state {cell.state.replace(' ', '_')}")
        label = None  # It speaks for itself.
    names = " ".join(name for name, fits in kinds.items() if fits)
    return element("td", text, role="cell", data_label=label, class_=names or None)


def _buttons(acts: Sequence[Act]) -> Markup | None:
    if not acts:
        return None
    return element("div", *map(_button, acts), class_="buttons")


def _button(act: Act) -> Markup:
    return element(
        "button",
        act.label,
        type="button",
        data_act=act.name,
        data_about=act.about,
        data_question=act.question or None,
        data_text=act.wants_text,
    )


def _time(seen: Seen, now_ms: int) -> Markup:
    head = element("h2", "Time line of a day")
    if not seen.bars:
        return joined(head, _none("Nobody had an issue or a lease."))
    keys = [element("span", name, class_=f"key {kind}") for kind, name in _KEYS.items()]
    drawing = timeline_drawing(seen.bars, now_ms)
    return joined(
        head,
        element("p", *(each for key in keys for each in (key, " "))),
        element("div", drawing, class_="scroll", role="region", aria_label="Time line", tabindex=0),
    )


def _count(number: int) -> Markup | None:
    return element("span", f" {number}", class_="count") if number else None


def _more(number: int, most: int) -> Markup | None:
    return _none(f"{number - most:,} more.") if number > most else None


def _hidden(text: str) -> Markup:
    return element("span", printable(text), class_="hidden")


def _none(text: str) -> Markup:
    return element("p", text, class_="none")
