"""Telling a person what wants them: when something changes, each thing once, and not too often."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, NoReturn

from queenbee.core.names import PERSON
from queenbee.services.telling.people import Want
from queenbee.services.waiting.landing_turn import lines_dir
from queenbee.store.droids.told import Told, key_of
from queenbee.store.files import stamp_of
from queenbee.store.safe_open import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from queenbee.services.hive import Services

MOST = 5
PER_S = 60.0
"""At most so many at a time; what is more is counted in the last of them."""
LOOK_AGAIN_S = 30.0
"""How long to rely on files at most: a droid falls quiet without writing anything."""
_KINDS = ("messages", "assignments", "reservations")


class Announcer:
    """Tells what is new. Remembers on this machine what it told, so that a restart repeats nothing.

    `wants` returns everything that wants the person now; `tell` tells one thing.
    """

    def __init__(
        self,
        hive: Services,
        wants: Callable[[], Iterable[Want]],
        tell: Callable[[Want], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hive = hive
        self._wants = wants
        self._tell = tell
        self._clock = clock
        self._memory = Told(hive.layout, f"notify-{hive.actor_or_none or PERSON}")
        self._known: set[str] = set()
        """Kept here too, where nothing can be written."""
        self._when: deque[float] = deque()
        """When something was told, at most `PER_S` ago."""
        self._held_back = False

    def look(self) -> list[Want]:
        """Tells what is new, as far as the rate allows, and returns what was told."""
        with self._memory as mine:
            if not mine:
                return []
            known = self._known.union(self._memory.known())
            fresh = {key: each for each in self._wants() if (key := key_of(each.key)) not in known}
            room = self._room()
            self._held_back = bool(fresh) and not room
            if self._held_back:
                return []
            # Remembered first: a thing that is told again and again is worse than one untold.
            self._memory.add(fresh)
            self._known.update(fresh)
            told = _within(list(fresh.values()), room)
            for each in told:
                self._when.append(self._clock())
                self._tell(each)
        return told

    def next_look_s(self) -> float:
        """Returns in how many seconds another look makes sense, though nothing changes."""
        if not self._held_back:
            return LOOK_AGAIN_S
        return max(0.1, self._when[0] + PER_S - self._clock())

    def run(self, folders: Sequence[str] = ()) -> NoReturn:
        """Tells everything until an exception ends it. `folders` are watched too."""
        while True:
            before = self._stamp(folders)
            self.look()
            deadline_s = time.monotonic() + self.next_look_s()
            self._hive.wait_for_change(lambda: self._stamp(folders), before, deadline_s)

    def _room(self) -> int:
        """Returns how many may be told now."""
        while self._when and self._clock() - self._when[0] >= PER_S:
            self._when.popleft()
        return MOST - len(self._when)

    def _folders(self, more: Sequence[str]) -> list[str]:
        landing = lines_dir(self._hive)
        lines = [os.path.join(landing, name) for name in names_in(landing)]
        return [self._hive.layout.queue_dir, landing, *lines, *more]

    def _stamp(self, more: Sequence[str]) -> object:
        """Returns what differs if anything has changed: the files, and what is in the folders."""
        ledgers = [self._hive.stamp(kind) for kind in _KINDS]
        places = self._folders(more)
        inside = [
            (name, stamp_of(os.path.join(folder, name)))
            for folder in more
            for name in names_in(folder)
        ]
        return ledgers, [names_in(folder) for folder in places], inside


def _within(wants: list[Want], room: int) -> list[Want]:
    """Returns as many as there is room for; the last of them counts those that are left."""
    if len(wants) <= room:
        return wants
    left = len(wants) - room + 1
    more = Want("more", str(left), f"{left} more things want you: queen status, queen msg inbox")
    return [*wants[: room - 1], more]
