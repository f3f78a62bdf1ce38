"""What opens over the board: a question, a message to write, a page to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Input, Static, TextArea

from queenbee.tui.reading import Page
from queenbee.watch.cells import Cell, cell

HELP = (
    ("1 … 8, tab", "go to a list"),
    ("↑ ↓ j k", "move in it; also page up and down, home, end"),
    ("enter", "open an issue or a message, with the whole thread"),
    ("/", "show only rows with these words; escape shows all"),
    ("m", "write to the droid of the row, about its issue"),
    ("r", "answer the message of the row"),
    ("x", "release the issue or the lease of the row"),
    ("n", "nudge the droid of the row, which has gone quiet"),
    ("c", "look for conflicts between worktrees now"),
    ("q, ctrl+c", "leave"),
)
_LINES = {"title": "bold", "heading": "bold underline", "from": "bold cyan", "waits": "dim"}


@dataclass(frozen=True)
class Draft:
    """A message to send."""

    to: str
    body: str


class Question(ModalScreen[bool]):
    """Asks before something that others will notice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Shows the question, and the keys that answer it."""
        with Vertical(classes="dialog"):
            yield Static(Content(self._text))
            yield Static(Content("\ny yes    n no"))

    def action_answer(self, yes: bool) -> None:
        """Closes the question."""
        self.dismiss(yes)


class Writing(ModalScreen[Draft | None]):
    """Writes a message; the result is None if it was given up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "send", priority=True),
        Binding("escape", "cancel", "give up", priority=True),
    ]

    def __init__(self, title: str, to: str, *, answer: bool) -> None:
        super().__init__()
        self._title = title
        self._to = to
        self._answer = answer

    def compose(self) -> ComposeResult:
        """Shows the recipient, the text, and the keys that end it."""
        with Vertical(classes="dialog"):
            yield Static(Content(self._title))
            to = Input(self._to, placeholder="to: a droid, human or @all", id="to")
            to.disabled = self._answer
            yield to
            yield TextArea(id="body", tab_behavior="focus")
            yield Static(Content("ctrl+s send    escape give up    tab next field"))

    def on_mount(self) -> None:
        """Begins where something is missing."""
        self.query_one("#body" if self._to else "#to").focus()

    def on_input_submitted(self) -> None:
        """Goes from the recipient to the text."""
        self.query_one("#body").focus()

    def action_send(self) -> None:
        """Closes it with the message."""
        to, body = self.query_one("#to", Input).value, self.query_one("#body", TextArea).text
        self.dismiss(Draft(to.strip(), body))

    def action_cancel(self) -> None:
        """Closes it without one."""
        self.dismiss(None)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss")]

    def compose(self) -> ComposeResult:
        """Shows what each key does."""
        keys = Text()
        for key, does in HELP:
            keys.append(f"{key:<12}", "bold")
            keys.append(f"{does}\n")
        with Vertical(classes="dialog"):
            yield Static(keys)
            yield Static(Content("escape closes this"))


class Reading(Screen[None]):
    """A page that is brought up to date while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back"),
        Binding("r", "app.answer", "answer"),
        Binding("m", "app.write", "write"),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown,space", "scroll(10)", show=False),
        Binding("home,g", "edge(0)", show=False),
        Binding("end,G", "edge(1)", show=False),
        Binding("ctrl+c", "app.quit", show=False),
    ]

    def __init__(self, issue_id: str | None, message_id: str | None) -> None:
        super().__init__()
        self.issue_id = issue_id
        self.message_id = message_id
        self.page: Page | None = None

    def compose(self) -> ComposeResult:
        """Shows the page above the keys."""
        yield Static(id="title")
        with VerticalScroll(id="page"):
            yield Static(id="text")
        yield Footer(show_command_palette=False)

    def put(self, page: Page) -> None:
        """Shows the page as it is now."""
        if self.page is not None and self.page.lines == page.lines:
            return
        self.page = page
        self.query_one("#title", Static).update(Content(cell(page.title).text))
        self.query_one("#text", Static).update(_text(page.lines))

    def action_leave(self) -> None:
        """Goes back to the board."""
        self.dismiss()

    def action_scroll(self, by: int) -> None:
        """Moves the page; ten lines stand for a window full."""
        page = self.query_one("#page")
        lines = by if abs(by) == 1 else by // 10 * max(1, page.size.height - 2)
        page.scroll_relative(y=lines, animate=False)

    def action_edge(self, end: int) -> None:
        """Goes to the beginning or the end."""
        page = self.query_one("#page")
        page.scroll_to(y=page.max_scroll_y if end else 0, animate=False)


def _text(lines: Sequence[Cell]) -> Text:
    shown = Text()
    for each in lines:
        shown.append(each.text, _LINES.get(each.state, ""))
        shown.append("\n")
    return shown
