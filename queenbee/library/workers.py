"""The threads in which the calls of tasks run: a few for a process, however many tasks there are.

A thread ends as soon as there is nothing to do. A call that may take its time has one of its own.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Job = Callable[[], None]

MOST = 8
"""Steps of waits take milliseconds, and write one after the other in any case."""
NAME = "queenbee"


class Workers:
    """Runs jobs, which do not raise, in at most so many threads at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._jobs: deque[Job] = deque()
        self._running = 0

    def run(self, job: Job, *, alone: bool = False) -> None:
        """Has a job run soon; one that is to be alone, at once, in a thread of its own."""
        if alone:
            _start(job)
            return
        with self._lock:
            self._jobs.append(job)
            if self._running == self._most:
                return
            self._running += 1
        _start(self._work)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._running -= 1
                    return
                job = self._jobs.popleft()
            job()


def _start(job: Job) -> None:
    threading.Thread(target=job, name=NAME, daemon=True).start()


def _begin() -> None:
    global workers  # noqa: PLW0603 - a child of a fork has none of the threads
    workers = Workers(MOST)


workers: Workers = Workers(MOST)
os.register_at_fork(after_in_child=_begin)
