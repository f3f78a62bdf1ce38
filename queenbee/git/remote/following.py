"""Taking in what the remote has while something else goes on, such as a wait for one's turn.

Whoever waits watches the files of this machine. A thread brings what others push there, so that a
release on another machine ends the wait like one on this. ADR 0029.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from queenbee.errors import Busy, QueenError, Unreachable
from queenbee.git.remote.syncing import take_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.services.hive import Services

SHORTEST_S, LONGEST_S = 1.0, 30.0
"""Between two looks at the remote: the longer one after it could not be reached."""
_SHARE = 5
"""A look at a slow remote takes at most a fifth of the time."""


@contextmanager
def following(
    hive: Services, tell: Callable[[str], None] = lambda text: None
) -> Iterator[threading.Thread]:
    """Takes in what the remote has, about once a second, until the block ends.

    A remote that cannot be reached is told once, and tried again ever less often.
    """
    ended = threading.Event()
    # A daemon: who has what it waited for does not wait for a remote that is slow to answer.
    thread = threading.Thread(target=_follow, args=(hive, tell, ended), daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        ended.set()


def _follow(hive: Services, tell: Callable[[str], None], ended: threading.Event) -> None:
    pauses = Pauses()
    while not ended.wait(pauses.next_s()):
        begun_s = time.monotonic()
        try:
            # Of many who wait on this machine, one fetches for all.
            take_in(hive, older_than_s=SHORTEST_S / 2)
        except Unreachable as error:
            if not pauses.failures:
                tell(f"{error.message}; trying on")
            pauses.failed()
        except Busy:  # Another process exchanges everything.
            continue
        except QueenError as error:
            # It will not get better, and whoever waits for files goes on with what is here.
            tell(f"no longer looking at the remote: {error.message}")
            return
        else:
            pauses.took(time.monotonic() - begun_s)


class Pauses:
    """How long to wait before the next look at a remote: longer while it cannot be reached."""

    def __init__(self, shortest_s: float = SHORTEST_S, longest_s: float = LONGEST_S) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._pause_s = shortest_s
        self.failures = 0

    def next_s(self) -> float:
        """Returns the next pause, with jitter: many machines ask one remote."""
        return self._pause_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, not a secret

    def took(self, lasted_s: float) -> None:
        """Notes that the remote answered, and how long that took."""
        self.failures = 0
        self._pause_s = min(self._longest_s, max(self._shortest_s, _SHARE * lasted_s))

    def failed(self) -> None:
        """Notes that it could not be reached."""
        self.failures += 1
        self._pause_s = min(self._longest_s, self._shortest_s * 2**self.failures)

    def idle(self) -> None:
        """Notes that it had nothing new: the next look may be a little later."""
        self._pause_s = min(self._longest_s, self._pause_s * 1.5)
