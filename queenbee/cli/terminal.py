"""The terminal: colour, the width of a text, lines on both outputs, and a progress bar."""

from __future__ import annotations

import os
import sys
import time
import unicodedata

import click

from queenbee.core.text import JOINERS

BAR_AFTER_S = 1.0
"""A shorter build shows no bar."""
_BAR_EVERY_S = 0.1
_BAR_COLUMNS = 30


def wants_colour() -> bool:
    """Returns whether standard output is a terminal that wants colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


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


def say(text: str, *, bold: bool = False) -> None:
    """Prints a line to standard output, bold on a terminal that wants it."""
    click.echo(click.style(text, bold=True) if bold and wants_colour() else text)


def aside(text: str, *, end: str = "\n") -> None:
    """Prints to standard error; does nothing if that is closed, full or unread.

    The result of a command must not depend on whether anyone reads its notices.
    """
    try:
        click.echo(text + end, err=True, nl=False)
    except OSError:
        return


class Bar:
    """A progress bar on standard error, shown while a large index is built."""

    def __init__(self) -> None:
        self._begun_s: float | None = None
        self._shown_s = 0.0
        self._shown = ""

    def __call__(self, done: int, total: int) -> None:
        """Shows how much of the build is done, and removes the bar when it ends."""
        now_s = time.monotonic()
        if done >= total:
            if self._shown:
                aside("\r" + " " * len(self._shown) + "\r", end="")
            self._begun_s, self._shown = None, ""
        elif self._begun_s is None:
            self._begun_s = now_s
        elif now_s - self._begun_s >= BAR_AFTER_S and now_s - self._shown_s >= _BAR_EVERY_S:
            filled = "#" * (_BAR_COLUMNS * done // total)
            self._shown_s = now_s
            self._shown = f"building the index [{filled:.<{_BAR_COLUMNS}}] {100 * done // total:2}%"
            aside("\r" + self._shown, end="")
