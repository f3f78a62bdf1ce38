"""The one thread of a process that looks after what all of its tasks wait for.

It looks often after something has happened, and then less and less, as a thread does that waits
alone; it ends when nobody waits.
"""

from __future__ import annotations

import os
import threading
import time
from itertools import groupby
from typing import TYPE_CHECKING

from queenbee.errors import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.services.waiting.pauses import Pause
    from queenbee.store.giving_up import Event

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.1


class Watched:
    """A pause that is looked after, and what became of it."""

    def __init__(self, pause: Pause, event: Event, tell: Callable[[], None]) -> None:
        self.pause: Pause = pause
        self.came: bool = False
        self.error: BaseException | None = None
        """What is to be raised where it waits."""
        self._event = event
        self.tell: Callable[[], None] = tell
        """Tells the task that it has ended."""

    def has_ended(self, now_s: float) -> bool:
        """Looks whether the pause is over."""
        if self._event.is_set():
            self.error = Cancelled("given up: the caller no longer wants it; nothing was written")
            return True
        try:
            self.came = self.pause.engine.asks(self.pause.true)
        except BaseException as error:  # noqa: BLE001 - it is raised where it waits
            self.error = error
        return self.came or self.error is not None or now_s >= self.pause.until_s


class Watcher:
    """Looks after pauses, in a thread that is there as long as there are any."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._all: dict[Watched, None] = {}
        self._runs = False

    def watch(self, watched: Watched) -> None:
        """Looks after a pause, until it has ended or is forgotten."""
        with self._news:
            self._all[watched] = None
            self._news.notify()
            if self._runs:
                return
            self._runs = True
        threading.Thread(target=self._run, name="queenbee-watcher", daemon=True).start()

    def forget(self, watched: Watched) -> None:
        """Does not look after a pause any more."""
        with self._news:
            self._all.pop(watched, None)
            self._news.notify()

    def look(self) -> None:
        """Looks at once: an event was set."""
        with self._news:
            self._news.notify()

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            with self._news:
                if not self._all:
                    self._runs = False
                    return
                found = list(self._all)
            ended = _ended(found)
            for each in ended:
                self.forget(each)
                each.tell()
            until_s = min(each.pause.until_s for each in found)
            with self._news:
                left_s = max(0.0, until_s - time.monotonic())
                is_told = bool(ended) or self._news.wait(min(pause_s, left_s))
            pause_s = _FIRST_PAUSE_S if is_told else min(pause_s * 2, _LONGEST_PAUSE_S)


def _ended(found: list[Watched]) -> list[Watched]:
    now_s = time.monotonic()
    ended = []
    by_engine = sorted(found, key=lambda each: id(each.pause.engine))
    for engine, several in groupby(by_engine, key=lambda each: each.pause.engine):
        with engine.watching():
            ended += [each for each in several if each.has_ended(now_s)]
    return ended


def _begin() -> None:
    global watcher  # noqa: PLW0603 - a child of a fork does not have the thread
    watcher = Watcher()


watcher: Watcher = Watcher()
os.register_at_fork(after_in_child=_begin)
