"""A list of rows: drawn a line at a time, so that two thousand rows cost what twenty do.

Textual's own table keeps its columns as wide as their texts and scrolls sideways. Here the wide
columns share what the window leaves, and nothing is read as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from queenbee.watch.cells import Column, Panel, Row

_GAP = 2
_MARK = 2
"""The columns before a row, for the mark of the one that the keys act on."""
_LEAST = 10
"""What a wide column keeps before a spare one is left out."""
_MOST = 24
"""What a column that is not wide gets at most: a longer id or name is cut."""
_HEADER = "listing--header"
_CURSOR = "listing--cursor"


class Listing(ScrollView, can_focus=True):
    """A panel on the screen. Its cursor stays with its row when the rows change."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        _HEADER,
        _CURSOR,
        "listing--active",
        "listing--ready",
        "listing--muted",
        "listing--done",
        "listing--alarm",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "edge(0)", show=False),
        Binding("end,G", "edge(-1)", show=False),
        Binding("enter", "choose", "open"),
    ]

    class Chosen(Message):
        """A row was opened."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, panel: Panel, number: int) -> None:
        super().__init__(id=panel.name, classes="panel")
        self._number = number
        self._panel = panel
        self._cursor = 0
        self._widths: list[int] = []
        self._title()

    @property
    def panel(self) -> Panel:
        """What is shown."""
        return self._panel

    @property
    def row(self) -> Row | None:
        """The row that the keys act on."""
        rows = self._panel.rows
        return rows[self._cursor] if rows else None

    def put(self, panel: Panel) -> None:
        """Shows the panel as it is now."""
        if panel == self._panel:
            return
        before, rows = self.row, panel.rows
        self._panel = panel
        place = min(self._cursor, max(0, len(rows) - 1))
        if before is not None and (not rows or rows[place].key != before.key):
            keys = (number for number, each in enumerate(rows) if each.key == before.key)
            place = next(keys, place)
        self._cursor = place
        self._title()
        self._fit()

    def on_resize(self, event: Resize) -> None:
        """Shares the new width among the columns."""
        self._fit()

    def on_click(self, event: Click) -> None:
        """Moves the cursor to the row; a second click opens it."""
        place = event.get_content_offset(self)
        if place is None or place.y == 0:
            return
        number = place.y - 1 + int(self.scroll_offset.y)
        if number < len(self._panel.rows):
            self._go(number)
            if event.chain > 1:
                self.action_choose()

    def action_move(self, by: int) -> None:
        """Moves the cursor."""
        self._go(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Moves the cursor by what is visible."""
        self._go(self._cursor + by * max(1, self.size.height - 2))

    def action_edge(self, end: int) -> None:
        """Moves the cursor to the first or the last row."""
        self._go(0 if end == 0 else len(self._panel.rows) - 1)

    def action_choose(self) -> None:
        """Opens the row."""
        if self.row is not None:
            self.post_message(self.Chosen(self.row))

    def render_line(self, y: int) -> Strip:
        """Returns one line of what is visible: the headings, a row, or nothing."""
        width, rows = self.size.width, self._panel.rows
        plain = self.rich_style
        if not rows:
            text = self._panel.empty if y == 0 else ""
            style = plain + self.get_component_rich_style("listing--muted", partial=True)
            return Strip([Segment(set_cell_size(text, width), style)], width)
        if y == 0:
            style = plain + self.get_component_rich_style(_HEADER, partial=True)
            titles = [each.title for each in self._panel.columns]
            return self._line(titles, [style] * len(titles), "", style)
        number = y - 1 + int(self.scroll_offset.y)
        if number >= len(rows):
            return Strip.blank(width, plain)
        here = number == self._cursor and self.has_focus
        if here:
            plain += self.get_component_rich_style(_CURSOR, partial=True)
        cells = rows[number].cells
        names = [_STYLES.get(each.state) for each in cells]
        styles = [
            plain + self.get_component_rich_style(name, partial=True) if name else plain
            for name in names
        ]
        return self._line([each.text for each in cells], styles, "▸" if here else "", plain)

    def _line(
        self, texts: Sequence[str], styles: Sequence[Style], mark: str, plain: Style
    ) -> Strip:
        segments = [Segment(set_cell_size(mark, _MARK), plain)]
        for text, style, width in zip(texts, styles, self._widths, strict=True):
            if width:
                segments.append(Segment(_fitted(text, width), style))
                segments.append(Segment(" " * _GAP, plain))
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def _title(self) -> None:
        panel = self._panel
        parts = [f"{self._number} {panel.title}", str(len(panel.rows)), panel.note]
        self.border_title = Content("  ".join(each for each in parts if each))

    def _fit(self) -> None:
        rows = self._panel.rows
        self._widths = widths(self._panel, self.size.width - _MARK)
        self.virtual_size = Size(self.size.width, len(rows) + 1)
        self._go(self._cursor)

    def _go(self, number: int) -> None:
        rows = self._panel.rows
        self._cursor = min(max(0, number), max(0, len(rows) - 1))
        # The line of the headings is always there: what scrolls is one line less.
        height = max(1, self.size.height - 1)
        top = int(self.scroll_offset.y)
        if not top <= self._cursor < top + height:
            wanted = self._cursor if self._cursor < top else self._cursor - height + 1
            self.scroll_to(y=wanted, animate=False, force=True)
        self.refresh()


_STYLES = {
    "active": "listing--active",
    "landing": "listing--active",
    "unread": "listing--active",
    "ready": "listing--ready",
    "passed": "listing--ready",
    "waits": "listing--muted",
    "on hold": "listing--muted",
    "shared": "listing--muted",
    "done": "listing--done",
    "failed": "listing--alarm",
    "urgent": "listing--alarm",
    "quiet": "listing--alarm",
    "conflict": "listing--alarm",
}


def widths(panel: Panel, room: int) -> list[int]:
    """Returns how wide each column is in so much room; 0 for one that is left out."""
    natural = [
        max([cell_len(column.title), *(cell_len(row.cells[number].text) for row in panel.rows)])
        for number, column in enumerate(panel.columns)
    ]
    kept = dict(enumerate(panel.columns))
    while True:
        found = _shared(natural, kept, room)
        cramped = [
            number
            for number, width in found.items()
            if kept[number].wide and width < min(natural[number], _LEAST)
        ]
        spare = [number for number, column in kept.items() if column.spare]
        if not spare or not cramped:
            return [found.get(number, 0) for number in range(len(natural))]
        del kept[max(spare, key=lambda number: kept[number].spare)]


def _shared(natural: Sequence[int], kept: dict[int, Column], room: int) -> dict[int, int]:
    wide = [number for number, column in kept.items() if column.wide]
    found = {number: min(natural[number], _MOST) for number in kept if number not in wide}
    over = max(0, room - sum(found.values()) - _GAP * len(kept))
    # The narrowest first: what it does not need is left for the others.
    for place, number in enumerate(sorted(wide, key=lambda number: natural[number])):
        found[number] = min(max(natural[number], 0), over // (len(wide) - place))
        if place == len(wide) - 1:
            found[number] = over
        over -= found[number]
    return found


def _fitted(text: str, width: int) -> str:
    """Returns the text in exactly this many columns, with a mark where it was cut."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width) if width else ""
