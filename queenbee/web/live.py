"""What the page shows now: read when the hive changes, and made into its parts for each reader."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from queenbee.git.collisions.found import Collisions
from queenbee.library.hive import Hive
from queenbee.report.gathering import newest_bars
from queenbee.report.times import bars
from queenbee.report.values import Bar
from queenbee.watch.asks import asks
from queenbee.watch.facts import Facts, Follower, Reader, foreseen
from queenbee.web.parts import Seen, parts

_TICK_S = 10.0
"""How often what only time changes is shown anew."""
_LOOK_EVERY_S = 60.0
_TIME_LINE_MS = 24 * 3_600_000


class Live:
    """An open hive that is followed for all readers of the page together."""

    def __init__(self, hive: Hive) -> None:
        self._hive = hive
        self._seen: Seen | None = None
        self._looked: tuple[Collisions | None, str, tuple[Bar, ...]] = (None, "", ())
        self._looked_s = float("-inf")
        self._problem = ""
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._follower = Follower(Reader(hive), self._found, self._refused)

    def start(self) -> None:
        """Begins to follow."""
        self._follower.start()

    def end(self) -> None:
        """Ends what `start` began."""
        self._follower.end()

    async def events(self) -> AsyncIterator[str]:
        """Yields what has changed on the page, as server-sent events, for ever."""
        shown: dict[str, str] = {}
        while True:
            news = self._news
            now = self._parts()
            changed = {key: text for key, text in now.items() if shown.get(key) != text}
            shown.update(changed)
            # A comment, where nothing has changed, finds readers that are gone.
            yield f"data: {json.dumps(changed)}\n\n" if changed else ":\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), _TICK_S)

    def _parts(self) -> dict[str, str]:
        if self._seen is None:
            return {"problem": self._problem} if self._problem else {}
        return {**parts(self._seen, self._hive.now_ms()), "problem": self._problem}

    def _found(self, facts: Facts) -> None:
        """Takes what the follower's thread has read."""
        self._take(Seen(facts, asks(self._hive, facts.status), *self._looked))
        if time.monotonic() - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            threading.Thread(target=self._look, name="queen-watch-look", daemon=True).start()

    def _look(self) -> None:
        """Reads what takes longer, on a thread of its own: git, and the history of a day."""
        hive, since_ms = self._hive, self._hive.now_ms() - _TIME_LINE_MS
        held, leases = hive.assignments.find(status="all"), hive.reservations.find(ended=True)
        of_a_day = newest_bars(bars(held, leases, hive.now_ms()), since_ms, [])
        self._looked = (*foreseen(hive), tuple(of_a_day))
        seen = self._seen
        if seen is not None:
            self._take(Seen(seen.facts, seen.asks, *self._looked))

    def _take(self, seen: Seen) -> None:
        self._seen, self._problem = seen, ""
        self._tell()

    def _refused(self, message: str) -> None:
        self._problem = message
        self._tell()

    def _tell(self) -> None:
        """Wakes all readers; for other threads."""
        with suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
