"""Waiting for a file to change, without spinning: by the system's file events, or by looking.

The events come from watchfiles (inotify, FSEvents, kqueue). Where it is missing, or the system
gives no events (no watches left, a folder that is not there yet), two `stat` calls every 25 ms
serve instead.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

POLL_S = 0.025
_TRUST_S = 0.5
"""How long events are relied on before a look: network file systems report none of what other
hosts wrote, and a waiter looks at its clock for the end of a lease."""


def wait_for_change(
    stamp: Callable[[], object], before: object, paths: Sequence[str], deadline_s: float
) -> bool:
    """Returns True as soon as `stamp()` is no longer `before`, or False at the deadline.

    `deadline_s` is on the monotonic clock. `paths` are the files of which each change shows in
    the stamp: their folders are what is watched, since git replaces files.
    """
    folders = dict.fromkeys(os.path.dirname(path) for path in paths)
    notify = _watcher([folder for folder in folders if os.path.isdir(folder)])
    # The watch stands before the first look: what changes from here on is seen by one of the two.
    while stamp() == before:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        if notify is None:
            time.sleep(min(POLL_S, left_s))
        else:
            notify(max(1, int(min(_TRUST_S, left_s) * 1000)))
    return True


def _watcher(folders: list[str]) -> Callable[[int], None] | None:
    """Returns a function that waits for an event in the folders for so many ms, or None."""
    try:
        from watchfiles._rust_notify import RustNotify

        events = RustNotify(folders, False, False, 0, False, True)
    except (ImportError, OSError, RuntimeError, TypeError):
        return None  # A RuntimeError: the system has no watches left, as with many waiters.

    def wait(timeout_ms: int) -> None:
        # 10 ms to gather what belongs together, 2 ms of quiet to end it.
        if events.watch(10, 2, timeout_ms, None) == "signal":
            raise KeyboardInterrupt

    return wait
