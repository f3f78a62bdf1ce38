"""The terminal: color, the width of a text, lines on both outputs, and a progress bar."""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator

import click

from queenbee.cli import outliving
from queenbee.core.text import JOINERS

BAR_AFTER_S = 1.0
"""A shorter build shows no bar."""
_BAR_EVERY_S = 0.1
_LINE_EVERY_S = 10.0
"""How often a line is written where there is no terminal to draw on."""
_BAR_COLUMNS = 30
_USUAL_COLUMNS = 80
"""The width of a terminal that does not say how wide it is."""


class Meaning:
    """What the words for a state mean: its color, as terminals name it, its symbol, and the words.

    A color says what the word says, so nothing is lost without it; where there is no room for the
    word, the symbol stands for it.
    """

    def __init__(self, color: str, symbol: str, *words: str) -> None:
        self.color = color
        self.symbol = symbol
        self.words: frozenset[str] = frozenset(words)


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


def wants_color() -> bool:
    """Returns whether standard output wants color.

    The first that is set decides: NO_COLOR, FORCE_COLOR (or CLICOLOR_FORCE), TERM=dumb, CLICOLOR;
    otherwise, whether it is a terminal.
    """
    env = os.environ
    if env.get("NO_COLOR"):
        return False
    if any(env.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if env.get("TERM") == "dumb" or env.get("FORCE_COLOR") == "0" or env.get("CLICOLOR") == "0":
        return False
    return sys.stdout.isatty()


def columns() -> int | None:
    """Returns how many columns a line may take; None if nothing limits it.

    Nothing does where standard output is not a terminal: scripts and agents get whole values.
    COLUMNS goes before both.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and len(given) < 6 and int(given):
        return int(given)
    if not sys.stdout.isatty():
        return None
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        found = 0
    return found or _USUAL_COLUMNS


def width(text: str) -> int:
    """Returns how many columns a terminal gives to the text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) or char in JOINERS
        else 2 if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )  # fmt: skip


def encodable(text: str) -> str:
    """Returns the text with escapes for what the encoding of standard output lacks.

    The output does so anyway: what is measured must be what is shown.
    """
    if text.isascii():
        return text
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def cut(text: str, most: int) -> str:
    """Returns the text in at most this many columns, with a mark where it was cut."""
    if _end_of_fit(text, 0, most) == len(text):
        return text
    mark = "…" if encodable("…") == "…" else "..."
    if most <= len(mark):
        return mark[:most]
    return text[: _end_of_fit(text, 0, most - len(mark))] + mark


def wrapped(text: str, most: int) -> Iterator[str]:
    """Yields the text in lines of at most this many columns, broken at blanks if there are any."""
    begin = 0
    while (end := _end_of_fit(text, begin, most)) < len(text):
        end = max(end, begin + 1)
        blank = text.rfind(" ", begin, end + 1)
        if blank > begin and not text[begin:blank].isspace():
            end = blank
        yield text[begin:end].rstrip(" ")
        begin = end
        while begin < len(text) and text[begin] == " ":
            begin += 1
    yield text[begin:]


def _end_of_fit(text: str, begin: int, most: int) -> int:
    """Returns the index at which a line ends that begins at `begin` and has `most` columns."""
    if text.isascii():
        return min(len(text), begin + most)
    taken = 0
    for index in range(begin, len(text)):
        taken += width(text[index])
        if taken > most:
            return index
    return len(text)


def tinted(text: str) -> str:
    """Returns the name of a state in its color."""
    meaning = meaning_of(text)
    if meaning is None or not wants_color():
        return text
    if meaning.color == "dim":
        return click.style(text, dim=True)
    return click.style(text, fg=meaning.color)


def say(text: str, *, bold: bool = False) -> None:
    """Prints a line to standard output, bold where color is wanted."""
    # click takes the color out of what is no terminal, unless it is told that color is wanted.
    wanted = wants_color()
    click.echo(click.style(text, bold=True) if bold and wanted else text, color=wanted or None)


def aside(text: str, *, end: str = "\n") -> None:
    """Prints to standard error; does nothing if that is closed, full or unread.

    The result of a command must not depend on whether anyone reads its notices.
    """
    try:
        click.echo(text + end, err=True, nl=False)
    except OSError:
        return


class Bar:
    """What is said on standard error while something takes long: on a terminal one line, with the
    part that is done and the time that is left; elsewhere a line every ten seconds.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell or (lambda text: aside(f"queen: {text}"))
        """Prints a line that stays, where there is no terminal."""
        self.is_mute = False
        """Whether somebody else says what is waited for."""
        self._said_s = 0.0
        self._begun_s: float | None = None
        self._shown_s = 0.0
        self._shown = ""
        self._is_terminal = sys.stderr.isatty()
        self._running = allocate_lock()

    def __enter__(self) -> Bar:
        """Begins to say how long it takes, as long as nobody says how much is done."""
        self._running.acquire()
        start_new_thread(self._tick, (time.monotonic(),))
        return self

    def __exit__(self, *error: object) -> None:
        self._running.release()
        self.pause()

    def _tick(self, begun_s: float) -> None:
        every_s = BAR_AFTER_S if self._is_terminal else _LINE_EVERY_S
        while not self._running.acquire(timeout=every_s):
            now_s = time.monotonic()
            was_told = not self._is_terminal and now_s - self._said_s < every_s / 2
            is_mute = self.is_mute or was_told or outliving.is_unseen()
            if self._begun_s is None and not is_mute:
                self._draw(f"working {now_s - begun_s:.0f} s")

    def pause(self) -> None:
        """Removes the line, unless another process shows what this one prints, and draws it."""
        if self._shown and sys.stderr.isatty():
            aside("\r" + " " * len(self._shown) + "\r", end="")
            self._shown = ""

    def make_way(self) -> None:
        """Removes the line, before a notice is written; that says already that somebody works."""
        self.pause()
        self._said_s = time.monotonic()

    def _draw(self, text: str) -> None:
        if not self._is_terminal:
            self._tell(f"still {text}")
            return
        if not sys.stderr.isatty():
            return
        before, self._shown = self._shown, text
        aside("\r" + text.ljust(len(before)), end="")

    def __call__(self, done: int, total: int) -> None:
        """Shows how much is done, and removes the line when it ends."""
        now_s = time.monotonic()
        if done >= total:
            self.pause()
            self._begun_s = None
            return
        if self._begun_s is None:
            self._begun_s = self._shown_s = now_s
        after_s, every_s = (BAR_AFTER_S, _BAR_EVERY_S) if self._is_terminal else (0, _LINE_EVERY_S)
        spent_s = now_s - self._begun_s
        if spent_s >= after_s and now_s - self._shown_s >= every_s:
            self._shown_s = now_s
            self._show(done, total, spent_s)

    def _show(self, done: int, total: int, spent_s: float) -> None:
        left = f", {spent_s * (total - done) / done:.0f} s left" if done else ""
        percent = f"{100 * done // total:2}%{left}"
        filled = "#" * (_BAR_COLUMNS * done // total)
        bar = f"[{filled:.<{_BAR_COLUMNS}}] " if self._is_terminal else ""
        self._draw(f"working {bar}{percent}")
