"""The board: the lists, what acts on their rows, and how both fit the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from queenbee.git.collisions.found import Collisions
from queenbee.tui.listing import Listing
from queenbee.watch.cells import SYMBOLS, Panel, Row
from queenbee.watch.facts import Facts
from queenbee.watch.view import PANELS, conflicts_panel, headline, timeless_panels, timely_panels

_WIDE = (PANELS[:1], PANELS[1:3], PANELS[3:5], PANELS[5:7], PANELS[7:])
"""Which lists are beside each other where there is room for all."""
_EMPTY = 3
"""The lines of a list without rows: what says so, and its edges."""
_WIDE_COLUMNS, _TALL_ROWS = 120, 38
_READING = {name: Panel(name, name.capitalize(), (), (), "Reading …") for name in PANELS}


def shares(needed: Sequence[int], room: int) -> list[int]:
    """Returns how many of so many lines each list gets: what it needs, as far as that goes for all.
    Those that have rows share what is left over.
    """
    given = [0] * len(needed)
    order = sorted(range(len(needed)), key=lambda number: needed[number])
    for place, number in enumerate(order):
        given[number] = min(needed[number], (room - sum(given)) // (len(order) - place))
    grown = [number for number in order if needed[number] > _EMPTY] or order
    for place, number in enumerate(grown):
        given[number] += (room - sum(given)) // (len(grown) - place)
    return given


class Lists(Container):
    """Where the lists are."""

    def on_resize(self) -> None:
        """Shares the new height among them."""
        assert isinstance(self.screen, Team)
        self.screen.share_lines()
        self.screen.show_tabs()


class Team(Screen[None]):
    """All lists where the window has room for them; else the droids and one other."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE_COLUMNS, "-wide")]  # noqa: RUF012 - as Textual has it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL_ROWS, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"panel('{name}')", name, show=False)
            for number, name in enumerate(PANELS, 1)
        ),
        Binding("tab", "next(1)", "next list", show=False),
        Binding("shift+tab", "next(-1)", show=False),
        Binding("question_mark,f1", "app.keys", "help", key_display="?"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("m", "app.write", "write"),
        Binding("r", "app.answer", "answer"),
        Binding("x", "app.release", "release"),
        Binding("n", "app.nudge", "nudge"),
        Binding("c", "app.foresee", "conflicts", show=False),
        Binding("escape", "all", show=False),
        Binding("q", "app.quit", "quit"),
        Binding("ctrl+c", "app.quit", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._facts: Facts | None = None
        self._lasting: dict[str, Panel] = {}
        self._panels = {**_READING, "conflicts": conflicts_panel(None, "")}
        """What is shown, without the filter."""
        self._filter = ""
        # Kept, not looked up: facts may still arrive while the screen is being taken down.
        self._box = Lists(id="panels")
        self._lists = {name: Listing(_READING[name], n) for n, name in enumerate(PANELS, 1)}
        self._first_line = Static(id="headline")

    def compose(self) -> ComposeResult:
        """Lays out the lists, which are filled as soon as the hive has been read."""
        yield self._first_line
        with self._box:
            yield from self._lists.values()
        yield Static(id="tabs")
        yield Input(id="filter", placeholder="only rows with these words", compact=True)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begins in the first list."""
        self.query_one("#filter").display = False
        self._say("reading the hive …")
        self._show(self._panels)
        self._lists[PANELS[1]].add_class("-below")
        self.action_panel(PANELS[0])

    @property
    def row(self) -> Row | None:
        """The row that the keys act on."""
        return self._lists[self._current].row

    def take(self, facts: Facts, now_ms: int) -> None:
        """Shows new facts."""
        self._facts = facts
        self._lasting = timeless_panels(facts)
        self.tick(now_ms)

    def foresee(self, found: Collisions | None, problem: str) -> None:
        """Shows which worktrees would conflict."""
        self._show({"conflicts": conflicts_panel(found, problem)})
        self._headline()

    def tick(self, now_ms: int) -> None:
        """Shows how much time has passed."""
        if self._facts is not None:
            self._show({**self._lasting, **timely_panels(self._facts, now_ms)})
            self._headline()

    def share_lines(self) -> None:
        """Gives each list the lines that its rows need, as far as the window has them."""
        if not self.is_mounted:
            return
        droids = self._lists[PANELS[0]]
        is_wide = self.size.width >= _WIDE_COLUMNS and self.size.height >= _TALL_ROWS
        shown = _WIDE if is_wide else (PANELS[:1], self._below)
        needed = [_EMPTY + max(len(self._lists[name].panel.rows) for name in row) for row in shown]
        given = shares(needed, self._box.size.height)
        self._box.styles.grid_rows = " ".join(map(str, given)) if is_wide else None
        droids.styles.height = "1fr" if is_wide else given[0]

    @property
    def _below(self) -> list[str]:
        return [name for name, each in self._lists.items() if each.has_class("-below")]

    def refuse(self, text: str) -> None:
        """Shows why the hive cannot be read."""
        self._say(f"cannot read the hive: {text}")

    def action_panel(self, name: str) -> None:
        """Goes to a list."""
        for each in self._lists.values():
            each.set_class(each.id == name, "-current")
            if name != PANELS[0]:
                each.set_class(each.id == name, "-below")
        self.share_lines()
        self._lists[name].focus()
        self.show_tabs()

    def action_next(self, by: int) -> None:
        """Goes to the next list."""
        place = PANELS.index(self._current)
        self.action_panel(PANELS[(place + by) % len(PANELS)])

    def action_filter(self) -> None:
        """Asks for the words that rows must have."""
        entry = self.query_one("#filter", Input)
        entry.display = True
        entry.focus()

    def action_all(self) -> None:
        """Shows all rows again."""
        entry = self.query_one("#filter", Input)
        entry.value, entry.display = "", False
        self._narrow("")
        self.action_panel(self._current)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters while the words are typed."""
        self._narrow(event.value)

    def on_input_submitted(self) -> None:
        """Goes back to the list, with the filter on."""
        entry = self.query_one("#filter", Input)
        entry.display = bool(entry.value.strip())
        self.action_panel(self._current)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Notes which list was gone to, also by the mouse."""
        widget = event.widget
        # The news may be older than the next key.
        if isinstance(widget, Listing) and widget.has_focus and widget.id != self._current:
            self.action_panel(str(widget.id))

    @property
    def _current(self) -> str:
        return next((name for name, each in self._lists.items() if each.has_class("-current")), "")

    def _narrow(self, text: str) -> None:
        if text != self._filter:
            self._filter = text
            self._show(self._panels)

    def _show(self, panels: dict[str, Panel]) -> None:
        self._panels |= panels
        for name, panel in panels.items():
            self._lists[name].put(panel.filtered(self._filter))
        self.share_lines()

    def _headline(self) -> None:
        if self._facts is None:
            return
        status = self._facts.status
        failed = sum(gate.to_dict()["status"] == "failed" for gate in self._facts.gates)
        alerts = (
            ("unread", status.unread),
            ("waiting", len(status.queue)),
            ("conflicts", len(self._panels["conflicts"].rows)),
            ("failed gates", failed),
        )
        shown = [f"{SYMBOLS['urgent']} {what} {count}" for what, count in alerts if count]
        self._say("   ".join([status.actor or "nobody", *shown, headline(self._facts)]))

    def _say(self, text: str) -> None:
        self._first_line.update(Content(text))

    def show_tabs(self) -> None:
        """Shows the names of the lists; where they have no room, that of the current one."""
        names = [f"{number} {name}" for number, name in enumerate(PANELS, 1)]
        has_room = len(" ".join(names)) + 2 <= self.size.width
        parts = [
            Content.styled(text, "bold reverse")
            if name == self._current
            else Content.styled(text if has_room else text[0], "dim")
            for text, name in zip(names, PANELS, strict=True)
        ]
        self.query_one("#tabs", Static).update(Content(" ").join(parts))
