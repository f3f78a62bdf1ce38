"""Threads that follow the hive: one reads what was written, one looks for conflicts."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from queenbee.errors import InvalidInput, QueenError
from queenbee.git.collisions.comparing import compare
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.git.collisions.found import Collisions
    from queenbee.tui.facts import Facts, Reader
    from queenbee.workflows.hive import Hive

_WAIT_S = 30.0
"""Then the folders are watched anew, since one may have been made meanwhile."""
_READ_AGAIN_S = 300.0
"""Time passes without events: a deferral ends, a clock is set right."""
_AFTER_REFUSAL_S = 3.0
_LEAST_S = 0.3
_SHARE = 4
"""After a read, rests so many times as long as that took: a busy hive takes a fifth of a processor
at most.
"""
_COMPARE_EVERY_S = 60.0


class Follower(threading.Thread):
    """Gives the facts to `found` now and whenever they change, and refusals to `refused`."""

    def __init__(
        self, reader: Reader, found: Callable[[Facts], object], refused: Callable[[str], object]
    ) -> None:
        super().__init__(name="queen-watch-facts", daemon=True)
        self._reader = reader
        self._found = found
        self._refused = refused
        self._ended = threading.Event()

    def run(self) -> None:
        """Reads and waits until `end`."""
        while not self._ended.is_set():
            begun_s = time.monotonic()
            try:
                # Before reading, so that nothing written meanwhile is missed.
                stamp = self._reader.stamp()
                facts = self._reader.read()
                self._found(facts)
                took_s = time.monotonic() - begun_s
                self._ended.wait(max(_LEAST_S, _SHARE * took_s))
                # A waiter that was killed leaves no event: only a look shows that it is gone.
                someone = facts.status.queue or facts.status.landing
                self._rest(stamp, begun_s + (_WAIT_S if someone else _READ_AGAIN_S))
            except QueenError as error:
                self._refused(error.message)
                self._ended.wait(_AFTER_REFUSAL_S)

    def _rest(self, stamp: object, until_s: float) -> None:
        """Waits for something new, or for the time to read again in any case."""
        while not self._ended.is_set() and time.monotonic() < until_s:
            if self._reader.wait(self._ended, stamp, time.monotonic() + _WAIT_S):
                return

    def end(self) -> None:
        """Lets the thread end, within half a second."""
        self._ended.set()


class Foreseer(threading.Thread):
    """Compares the worktrees when it is asked to, and gives the result to `found`."""

    def __init__(self, hive: Hive, found: Callable[[Collisions | None, str], object]) -> None:
        super().__init__(name="queen-watch-conflicts", daemon=True)
        self._hive = hive
        self._found = found
        self._asked = threading.Event()
        self._ended = False
        self._looked_s = float("-inf")

    def ask(self) -> None:
        """Has it look now."""
        self._asked.set()

    def ask_if_old(self) -> None:
        """Has it look if the last look was a while ago."""
        if time.monotonic() - self._looked_s >= _COMPARE_EVERY_S:
            self._asked.set()

    def run(self) -> None:
        """Looks whenever it is asked, until `end`."""
        while True:
            self._asked.wait()
            if self._ended:
                return
            self._asked.clear()
            self._found(*self._look())
            self._looked_s = time.monotonic()

    def end(self) -> None:
        """Lets the thread end, after the look that is under way."""
        self._ended = True
        self._asked.set()

    def _look(self) -> tuple[Collisions | None, str]:
        try:
            if len(worktrees(self._hive.layout)) < 2:
                return None, "One worktree: nothing to compare."
            return compare(self._hive.layout), ""
        except InvalidInput:
            return None, "Not a git repository: nothing to compare."
        except QueenError as error:
            return None, error.message
