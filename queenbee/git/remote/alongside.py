"""Exchanges beside other work: before a command reads and after it has answered, while somebody
waits, and until stopped (`queen sync --watch`). ADR 0029.

Whoever waits watches the files of this machine. A thread brings what others push there, so that a
release on another machine ends the wait like one on this.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from queenbee.errors import Busy, QueenError, Unreachable
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.syncing import sync, take_in
from queenbee.services import unasked
from queenbee.store import safe_open
from queenbee.store.lock import KernelLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.git.remote.syncing import Synced
    from queenbee.services.hive import Services

_BRIEF_S = 4.0
"""How long a command waits for the remote at most, before it reads or after it has answered."""
SHORTEST_S, LONGEST_S = 1.0, 30.0
"""Between two looks at the remote while somebody waits: the longer one after a failure."""
LOOK_S, LONGEST_LOOK_S = 2.0, 15.0
"""The same for a watch: right after something happened, and at most."""
_SHARE = 5
"""A look at a slow remote takes at most a fifth of the time."""
_GATHER_S = 0.1
"""Several writes in a row go out together."""
_TURN_S = 5.0


def freshen(hive: Services, *, anew: bool = False) -> None:
    """Takes in what others pushed, unless that was done just now and this is not `anew`."""
    age_s = 0 if anew else hive.layout.settings.sync_max_age_s
    with _briefly(hive):
        take_in(hive, older_than_s=age_s, most_s=_BRIEF_S)


def send(hive: Services) -> None:
    """Sends what was written since the last exchange."""
    with _briefly(hive), Branch(hive, most_s=_BRIEF_S) as branch:
        # A push that nobody overtook needs no fetch before it.
        sync(hive, fetch=False, branch=branch)


@contextmanager
def _briefly(hive: Services) -> Iterator[None]:
    """Leaves it to the next exchange if the remote cannot be reached, and notes why."""
    try:
        yield
    except (QueenError, OSError) as error:
        # If it is busy, others exchange everything now.
        if isinstance(error, Unreachable) or not isinstance(error, Busy):
            unasked.note_away(hive.layout, getattr(error, "message", str(error)))


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
    pauses = Pauses(SHORTEST_S, LONGEST_S)
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
        except OSError:  # The repository was removed meanwhile; whoever waits there is told so.
            return
        else:
            pauses.took(time.monotonic() - begun_s)


class Pauses:
    """How long to wait before the next look at a remote: longer while it cannot be reached."""

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._pause_s = shortest_s
        self.failures: int = 0

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


@dataclass
class State:
    """How a watch stands: what was exchanged so far, and why it cannot be now, if so."""

    taken: int = 0
    sent: int = 0
    confirmed: int = 0
    refused: int = 0
    number: int = 0
    away: str | None = None
    """Why the remote cannot be reached; None if it was reached at the last attempt."""

    def add(self, done: Synced) -> bool:
        """Adds an exchange; returns whether it exchanged anything."""
        before = asdict(self)
        for name in ("taken", "sent", "confirmed", "refused"):
            setattr(self, name, getattr(self, name) + getattr(done, name))
        has_changed = asdict(self) != before
        self.away, self.number = None, done.number
        return has_changed


def watch(hive: Services, *, stopped: Callable[[], bool], show: Callable[[State], None]) -> State:
    """Exchanges records until `stopped`, through times without the remote. `show` is called with
    the state after each exchange that changed it.

    An exchange that is under way when it is stopped is finished first. Raises `Busy` if another
    process does the same, and what cannot get better by waiting, such as a missing remote.
    """
    state, pauses = State(), Pauses(LOOK_S, LONGEST_LOOK_S)
    safe_open.make_folder(hive.layout.remote_dir)
    holder, path = hive.actor_or_none or "somebody", unasked.watch_path(hive.layout)
    with KernelLock(path, holder=holder, timeout_s=_TURN_S):
        while not stopped():
            seen = _stamp(hive)
            before = asdict(state)
            try:
                if state.add(sync(hive, at_first=True)):
                    pauses.took(0)
                else:
                    pauses.idle()
            except Unreachable as error:
                state.away = error.message
                pauses.failed()
            except Busy:  # Others push all the time: their lines were taken in meanwhile.
                pauses.idle()
            if asdict(state) != before:
                show(state)
            _wait(hive, None if state.away else seen, pauses.next_s(), stopped)
    return state


def _wait(hive: Services, seen: object, most_s: float, stopped: Callable[[], bool]) -> None:
    """Returns when something was written here, when it is time to look at the remote, or when it
    is stopped. No write makes a remote reachable: `seen` is None then.
    """

    def happened() -> bool:
        # Each look at the files also looks whether to stop.
        return stopped() or (seen is not None and _stamp(hive) != seen)

    until_s = time.monotonic() + most_s
    if hive.wait_for_change(happened, False, until_s):
        time.sleep(_GATHER_S)


def _stamp(hive: Services) -> list[object]:
    """Returns what differs once something was written."""
    return [hive.stamp(kind) for kind in hive.kinds()]
