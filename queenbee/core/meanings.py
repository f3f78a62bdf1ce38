"""What the words for a state mean, and so their color and their symbol: the same everywhere.

A color says what the word says, so nothing is lost without it; where there is no room for the word,
the symbol stands for it.
"""

from __future__ import annotations


class Meaning:
    """One meaning: its color, as terminals name it, its symbol, and the words that have it."""

    __slots__ = ("color", "symbol", "words")

    def __init__(self, color: str, symbol: str, *words: str) -> None:
        self.color = color
        self.symbol = symbol
        self.words = frozenset(words)


BAD = Meaning(
    "red", "✗", "held", "failed", "unreadable", "not valid", "error", "URGENT", "stale", "missing"
)
"""It stops you, or has to be mended."""
GOOD = Meaning("green", "✓", "ready", "free", "passed", "valid", "fixed")
"""You can go on."""
UNDER_WAY = Meaning("yellow", "▸", "active", "in progress", "in_progress", "*", "landing")
"""Somebody works on it; `*` marks what is yours."""
LOOK = Meaning("yellow", "!", "warning", "interrupted", "old")
"""It is worth a look."""
WAITING = Meaning("cyan", "…", "waits", "waiting", "blocked", "on hold", "on_hold", "new", "high")
"""It waits for something, or for you to read it."""
OVER = Meaning(
    "dim", "·", "done", "completed", "closed", "released", "reassigned", "superseded", "expired",
    "skipped",
)  # fmt: skip
"""It is only history."""

MEANINGS = (BAD, GOOD, UNDER_WAY, LOOK, WAITING, OVER)
_OF_WORDS = {word: each for each in MEANINGS for word in each.words}


def meaning_of(word: str) -> Meaning | None:
    """Returns what a word for a state means, or None for any other word."""
    return _OF_WORDS.get(word)
