"""Exchanging records until stopped: `queen sync --watch`.

What is written here is noticed by events of the file system, what others push by looking at the
remote, less and less often while nothing happens. While it runs, it serves the requests of this
machine (`services/behind.py`), so no process is started for them. ADR 0029.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from queenbee.errors import Busy, Unreachable
from queenbee.git.remote.background import lock
from queenbee.git.remote.following import Pauses
from queenbee.git.remote.syncing import sync
from queenbee.services import behind
from queenbee.store.files import stamp_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.git.remote.syncing import Synced
    from queenbee.services.hive import Services

LOOK_S, LONGEST_S = 2.0, 15.0
"""Between two looks at the remote: right after something happened, and at most."""
_GATHER_S = 0.1
"""Several writes in a row go out together."""
_STOP_S = 0.2
"""How soon a request to stop is noticed while it waits."""
_TURN_S = 5.0


class State:
    """How the exchange stands: what was exchanged so far, and why it cannot be now, if so."""

    def __init__(self) -> None:
        self.taken = 0
        self.sent = 0
        self.confirmed = 0
        self.refused = 0
        self.number = 0
        self.away: str | None = None
        """Why the remote cannot be reached; None if it was reached at the last attempt."""

    def add(self, done: Synced) -> bool:
        """Adds an exchange; returns whether it exchanged anything."""
        self.away = None
        self.number = done.number
        for name in ("taken", "sent", "confirmed", "refused"):
            setattr(self, name, getattr(self, name) + getattr(done, name))
        return bool(done.taken or done.sent or done.confirmed or done.refused)

    def to_dict(self) -> dict[str, object]:
        """Returns the fields for `--json`."""
        return dict(vars(self))


def watch(hive: Services, *, stopped: Callable[[], bool], show: Callable[[State], None]) -> State:
    """Exchanges records until `stopped`, through times without the remote. `show` is called with
    the state after each exchange that changed it.

    An exchange that is under way when it is stopped is finished first. Raises `Busy` if another
    process does the same, and what cannot get better by waiting, such as a missing remote.
    """
    state, pauses = State(), Pauses(LOOK_S, LONGEST_S)
    with lock(hive, timeout_s=_TURN_S):
        while not stopped():
            seen = _stamp(hive)
            before = state.to_dict()
            try:
                if state.add(sync(hive)):
                    pauses.took(0)
                else:
                    pauses.idle()
            except Unreachable as error:
                state.away = error.message
                pauses.failed()
            except Busy:  # Others push all the time: their lines were taken in meanwhile.
                pauses.idle()
            if state.to_dict() != before:
                show(state)
            _wait(hive, seen, pauses, stopped, away=state.away is not None)
    return state


def _wait(
    hive: Services, seen: object, pauses: Pauses, stopped: Callable[[], bool], *, away: bool
) -> None:
    """Returns when something was written here, when it is time to look at the remote, or when it
    is stopped.
    """
    until_s = time.monotonic() + pauses.next_s()
    if away:  # No write makes a remote reachable.
        while not stopped() and time.monotonic() < until_s:
            time.sleep(max(0.0, min(_STOP_S, until_s - time.monotonic())))
        return
    # Each look at the files also looks whether to stop.
    if hive.wait(lambda: (stopped(), _stamp(hive)), (False, seen), until_s):
        time.sleep(_GATHER_S)


def _files(hive: Services, kind: str) -> tuple[str, str]:
    ledger = hive.ledger(kind)
    return ledger.path, ledger.journal_path


def _stamp(hive: Services) -> tuple[object, ...]:
    """Returns what differs once something was written, or an exchange was asked for."""
    files = [path for kind in hive.kinds() for path in _files(hive, kind)]
    return (*map(stamp_of, files), behind.is_asked(hive.layout))
