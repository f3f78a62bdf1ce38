"""Tells a client that a resource has changed, if it subscribed to that.

A thread for each hive follows its changes, from the first subscription on, until the server ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from queenbee.errors import QueenError
from queenbee.library.hive import Hive
from queenbee.mcp.resources import concerns
from queenbee.services.changes import Change


class Subscriptions:
    """What one client subscribed to. `tell` gets the address of what has changed."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._of_place: dict[str, set[str]] = {}
        self._ended = threading.Event()

    def add(self, place: str, uri: str, open_hive: Callable[[], Hive]) -> None:
        """Tells of a resource of a hive from now on."""
        if place not in self._of_place:
            hive = open_hive()
            found = hive.changes(hive.cursor(), cancel=self._ended)
            self._of_place[place] = set()
            follow = (hive, found, self._of_place[place])
            threading.Thread(target=self._follow, args=follow, daemon=True).start()
        self._of_place[place].add(uri)

    def remove(self, uri: str) -> None:
        """Tells of a resource no more."""
        for uris in self._of_place.values():
            uris.discard(uri)

    def close(self) -> None:
        """Ends the threads."""
        self._ended.set()

    def _follow(self, hive: Hive, found: Iterator[Change], uris: set[str]) -> None:
        actor = hive.actor_or_none
        try:
            for change in found:
                for uri in [*uris]:
                    if concerns(change, uri, actor):
                        self._tell(uri)
        except QueenError:
            for uri in [*uris]:  # Whoever reads it is told what is wrong.
                self._tell(uri)
        finally:
            hive.close()
