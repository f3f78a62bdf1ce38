"""Which process each droid's agent is: files in the untracked state, which nothing depends on.

A runner may start a hook for each event, so a process counts only once it has been met twice.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.names import is_name
from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.droids.liveness import caller, has_child_since, is_running

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.store.layout import Layout

SURE = " again"
"""The end of the note of a process that was met twice."""
_ENDED = "ended"
_MOST_BYTES = 512


def note(layout: Layout, name: str | None) -> None:
    """Notes that the process above us runs a droid's agent. Never fails."""
    if name is None or not is_name(name):
        return
    with suppress(OSError, QueenError):
        known = _read(layout, name)
        if known.endswith(SURE) and is_running(known.removesuffix(SURE)):
            return
        process = caller()
        if process and os.path.isdir(layout.state_dir):
            path = path_of(layout, name)
            safe_open.make_folder(os.path.dirname(path))
            met_again = process == known.removesuffix(SURE)
            safe_open.write(path, f"{process}{SURE * met_again}".encode())


def end(layout: Layout, name: str) -> None:
    """Notes that a droid's session is over, although its agent's process may go on. Never fails."""
    with suppress(OSError, QueenError):
        if _read(layout, name):
            safe_open.write(path_of(layout, name), _ENDED.encode())


def is_gone(layout: Layout, name: str) -> bool:
    """Returns whether a droid's agent has certainly ended: its session has, or its process is known
    and runs no more.

    False if it ran on another machine, or among processes that cannot be seen from here.
    """
    if process := process_of(layout, name):
        return is_running(process) is False
    return is_name(name) and _read(layout, name) == _ENDED


def process_of(layout: Layout, name: str) -> str:
    """Returns the process that runs a droid's agent, as it is noted; "" if it is not certain."""
    known = _read(layout, name) if is_name(name) else ""
    return known.removesuffix(SURE) if known.endswith(SURE) else ""


def is_elsewhere(layout: Layout, name: str) -> bool:
    """Returns whether another process than the one above us certainly runs a droid's agent."""
    process = process_of(layout, name)
    return bool(process) and process != caller() and is_running(process) is True


def is_busy(layout: Layout, name: str, since_ms: int) -> bool:
    """Returns whether a droid's agent runs a command that it began after its last sign of life: it
    can give none until that ends. What it began before, such as a server, counts for nothing.
    """
    process = process_of(layout, name)
    return bool(process) and has_child_since(process, since_ms)


def _read(layout: Layout, name: str) -> str:
    try:
        return safe_open.read(path_of(layout, name), _MOST_BYTES).decode(errors="replace")
    except (OSError, QueenError):
        return ""


def path_of(layout: Layout, name: str) -> str:
    """Returns the file in which a droid's process is noted."""
    return os.path.join(layout.state_dir, "clients", name)
