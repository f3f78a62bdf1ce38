"""The issues that `queen next` has just offered to each droid with its own, so that nobody else is
offered the same: one file in the untracked state. Without it, nothing is held.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.layout import Layout

    Held = dict[str, tuple[str, int]]

HELD_FOR_MS = 120_000
"""For so long, an offer is held: an agent reads the answer, and claims what it takes."""
_MOST_BYTES = 2**18


def held(layout: Layout, now_ms: int) -> dict[str, str]:
    """Returns the issues that are held, each with the droid that it was offered to, in the order of
    the offers. Never fails.
    """
    with suppress(OSError, QueenError):
        with os.fdopen(safe_open.open_file(_path(layout), os.O_RDONLY), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # A writer empties it first.
            found = _live(file.read(_MOST_BYTES), now_ms)
        return {key: droid for key, (droid, _) in found.items()}
    return {}


def offer(
    layout: Layout, droid: str, issue_ids: Sequence[str], most: int, now_ms: int
) -> list[str]:
    """Holds the first of these issues for a droid that are not held for another, at most so many,
    in place of what was held for it; returns them. Never fails: where nothing can be written,
    nothing is held.
    """
    with suppress(OSError, QueenError):
        fd = safe_open.open_file(_path(layout), os.O_RDWR | os.O_CREAT)
        with os.fdopen(fd, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            others = {
                key: value
                for key, value in _live(file.read(_MOST_BYTES), now_ms).items()
                if value[0] != droid
            }
            free = [each for each in issue_ids if each not in others][:most]
            # A crash in between leaves what cannot be read: then nothing is held.
            file.seek(0)
            file.truncate()
            mine = dict.fromkeys(free, (droid, now_ms + HELD_FOR_MS))
            file.write(json.dumps(others | mine).encode())
            return free
    return list(issue_ids[:most])


def _live(said: bytes, now_ms: int) -> Held:
    """Returns what is held now; nothing of what cannot be read, or ends too late to be ours."""
    try:
        fields = json.loads(said or b"{}")
        return {
            str(key): (str(droid), int(until_ms))
            for key, (droid, until_ms) in fields.items()
            if now_ms < until_ms <= now_ms + HELD_FOR_MS
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _path(layout: Layout) -> str:
    return os.path.join(layout.state_dir, "offers")
