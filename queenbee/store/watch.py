"""Waiting for a file to change: by the system's file events, or by polling.

The events come from watchdog (inotify, FSEvents, kqueue). If it is missing, or the system gives
no events (no watches left, a folder that does not exist yet), it polls every 25 ms.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import contextmanager, suppress

try:
    from watchdog.events import (
        FileCreatedEvent,
        FileDeletedEvent,
        FileModifiedEvent,
        FileMovedEvent,
        FileSystemEvent,
        FileSystemEventHandler,
    )
    from watchdog.observers import Observer
except ImportError:  # Not there for every system.
    Observer = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# A thread of watchdog's that is just being stopped complains to whoever reads standard error.
for _name in ("watchdog", "fsevents"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

POLL_S = 0.025
_TRUST_S = 0.5
"""How long to rely on events before looking anyway: network file systems do not report writes
of other hosts."""


def wait_for_change(
    stamp: Callable[[], object], before: object, paths: Sequence[str], deadline_s: float
) -> bool:
    """Returns True as soon as `stamp()` is no longer `before`, or False at the deadline.

    `deadline_s` is on the monotonic clock. `paths` are the files whose changes show in the
    stamp: their folders are watched, since git replaces files.
    """
    wait = _Wait(stamp, before, deadline_s)
    folders = dict.fromkeys(os.path.dirname(path) for path in paths)
    # If there are no events. A RuntimeError means that no thread can be started.
    with suppress(OSError, RuntimeError):
        _wait_for_events(wait, [folder for folder in folders if os.path.isdir(folder)])
    while not wait.is_over():
        time.sleep(min(POLL_S, wait.left_s()))
    return wait.changed


class _Wait:
    """When to stop: at a change, or at the deadline."""

    def __init__(self, stamp: Callable[[], object], before: object, deadline_s: float) -> None:
        self._stamp = stamp
        self._before = before
        self._deadline_s = deadline_s
        self.changed = False

    def left_s(self) -> float:
        """Returns how long to wait at most."""
        return max(0.0, self._deadline_s - time.monotonic())

    def is_over(self) -> bool:
        """Checks whether to stop."""
        self.changed = self._stamp() != self._before
        return self.changed or not self.left_s()


def _wait_for_events(wait: _Wait, folders: Sequence[str]) -> None:
    """Returns when it is over. Raises what watchdog raises if it cannot watch."""
    if Observer is None or wait.is_over() or not folders:
        return
    with _events(folders) as event:
        # Watching has begun: this check or an event sees any later change.
        while not wait.is_over():
            event.wait(min(_TRUST_S, wait.left_s()))
            event.clear()


@contextmanager
def _events(folders: Sequence[str]) -> Iterator[threading.Event]:
    """Gives what is set whenever something changes in one of the folders, but not below them."""
    changed = threading.Event()

    class Handler(FileSystemEventHandler):
        def dispatch(self, event: FileSystemEvent) -> None:
            changed.set()

    observer = Observer()
    handler = Handler()
    kinds = [FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent]
    for folder in folders:
        observer.schedule(handler, folder, event_filter=kinds)
    try:
        observer.start()
        yield changed
    finally:
        observer.stop()
        if observer.is_alive():
            observer.join()
