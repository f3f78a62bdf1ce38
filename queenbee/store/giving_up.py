"""Giving up: an event ends what a thread waits for, and keeps it from writing any more.

Every wait of the store looks at the event of its thread, and so does every turn at writing, before
it records anything. What was recorded before stays.
"""

from __future__ import annotations

from _thread import _local
from contextlib import contextmanager

from queenbee.errors import Cancelled

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Event(Protocol):
        """What says that a call is given up, such as a `threading.Event`."""

        def is_set(self) -> bool: ...


class _OfThread(_local):
    """What holds for one thread."""

    event: Event | None = None


_here = _OfThread()


@contextmanager
def until(event: Event | None) -> Iterator[None]:
    """Has this thread give up inside, once the event is set; None leaves it as it was."""
    before = _here.event
    _here.event = event if event is not None else before
    try:
        refuse()
        yield
    finally:
        _here.event = before


@contextmanager
def not_now() -> Iterator[None]:
    """Has this thread not give up inside: what it does there has to be done to the end."""
    before = _here.event
    _here.event = None
    try:
        yield
    finally:
        _here.event = before


def is_asked() -> bool:
    """Returns whether this thread is to give up."""
    return _here.event is not None and _here.event.is_set()


def refuse() -> None:
    """Raises `Cancelled` if this thread is to give up."""
    if is_asked():
        raise Cancelled("given up: the caller no longer wants it; nothing was written")
