"""What is shown on a terminal while an index is built that takes long."""

from __future__ import annotations

import time

from queenbee.cli.app import aside

AFTER_S = 1.0
"""Nobody needs to be told of what is over before they wonder."""
_EVERY_S = 0.1
_WIDTH = 30


class Bar:
    """A bar on standard error, from the first second of a build to its end."""

    def __init__(self) -> None:
        self._begun_s: float | None = None
        self._shown_s = 0.0
        self._shown = ""

    def __call__(self, done: int, total: int) -> None:
        """Shows how much of a build is done; where all of it is, takes the bar away again."""
        now_s = time.monotonic()
        if done >= total:
            aside("\r" + " " * len(self._shown) + "\r", end="") if self._shown else None
            self._begun_s, self._shown = None, ""
        elif self._begun_s is None:
            self._begun_s = now_s
        elif now_s - self._begun_s >= AFTER_S and now_s - self._shown_s >= _EVERY_S:
            filled = "#" * (_WIDTH * done // total)
            self._shown_s = now_s
            self._shown = f"building the index [{filled:.<{_WIDTH}}] {100 * done // total:2}%"
            aside("\r" + self._shown, end="")
