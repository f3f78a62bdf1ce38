"""Rows of text, safe to show: what a list on the screen is made of.

Every text of others passes through `cell`, which leaves nothing that a terminal would act on. None
of it is ever read as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from queenbee.core.text import printable, shortened
from queenbee.core.timestamps import format_duration

SYMBOLS = {
    "active": "●",
    "ready": "○",
    "waits": "◌",
    "on hold": "‖",
    "done": "✓",
    "passed": "✓",
    "failed": "✗",
    "held": "■",
    "shared": "□",
    "quiet": "?",
    "unread": "●",
    "urgent": "!",
    "landing": "»",
    "conflict": "✗",
}
"""What stands before the word of a state, so that no color is needed to tell them apart."""
_MOST_CHARS = 300
"""No terminal shows more of one cell."""
_BAR = 10
BAR = "█░"
_ENDS_SOON_S = 120
"""Up to here, the time left is shown to the second."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One text of a row. `state` is the word that gives it its color."""

    text: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What a row is about, for the keys that act on it."""

    issue_id: str | None = None
    droid: str | None = None
    message_id: str | None = None
    lease_id: str | None = None
    pattern: str | None = None
    assigned: bool = False
    """Whether the droid has the issue, so that it can be released."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a list. Rows with the same key are about the same thing at any time."""

    key: str
    cells: tuple[Cell, ...]
    target: Target = field(default_factory=Target)

    def matches(self, words: Sequence[str]) -> bool:
        """Returns whether each of these words, in lower case, is somewhere in the row."""
        text = " ".join(each.text for each in self.cells).casefold()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: those that are `wide` share what the others leave; `spare` ones go first, the
    highest number before the others, where there is too little room.
    """

    title: str
    wide: bool = False
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """One list of the screen."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    empty: str
    note: str = ""
    """What else the title says."""

    def filtered(self, text: str) -> Panel:
        """Returns the panel with the rows that have all words of a text."""
        words = text.casefold().split()
        if not words:
            return self
        rows = [each for each in self.rows if each.matches(words)]
        return Panel(self.name, self.title, self.columns, rows, "nothing matches the filter")


def cell(text: str, state: str = "") -> Cell:
    """Returns others' text as a cell."""
    return Cell(printable(shortened(text, _MOST_CHARS)), state)


def marked(state: str, word: str | None = None) -> Cell:
    """Returns the symbol of a state and its word, or another one."""
    return Cell(f"{SYMBOLS[state]} {state if word is None else word}".rstrip(), state)


def age(then_ms: int, now_ms: int) -> str:
    """Returns how long ago something was, in one unit; it changes once a minute at most."""
    if not then_ms:
        return "?"
    minutes = max(0, now_ms - then_ms) // 60_000
    if minutes < 60:
        return f"{minutes}m" if minutes else "now"
    return f"{minutes // 60}h" if minutes < 24 * 60 else f"{minutes // (24 * 60)}d"


def left(until_ms: int, now_ms: int) -> str:
    """Returns how much time is left, to the second once it runs out."""
    seconds = (until_ms - now_ms) / 1000
    if seconds <= 0:
        return "ended"
    return format_duration(seconds if seconds < _ENDS_SOON_S else seconds // 60 * 60)


def bar(begun_ms: int, until_ms: int, now_ms: int) -> str:
    """Returns how much is left of a length of time, as a bar that runs out."""
    whole = max(1, until_ms - begun_ms)
    # A lease that is still there never looks as if it had ended.
    full = min(_BAR, max(1, -(-(until_ms - now_ms) * _BAR // whole)))
    return BAR[0] * full + BAR[1] * (_BAR - full)
