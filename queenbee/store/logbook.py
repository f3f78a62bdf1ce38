"""Short, untracked logs next to the memory: what a guard or a hook allowed, and why."""

from __future__ import annotations

import os
import time

from queenbee.core.timestamps import format_ms
from queenbee.errors import QueenError
from queenbee.store import safe_open

_MOST_BYTES = 512 * 1024
"""About three thousand entries. The previous log is kept, and older ones are dropped."""


def note(state_dir: str, name: str, text: str) -> bool:
    """Adds a line with the time to `<state_dir>/<name>.log`; returns whether that worked.

    Never raises, and makes no folder: if the state cannot be written, or the log is a link, there
    is no log.
    """
    path = os.path.join(state_dir, f"{name}.log")
    line = " ".join(text.split())
    try:
        if os.path.exists(path) and os.path.getsize(path) > _MOST_BYTES:
            safe_open.replace(path, path + ".1")
        entry = f"{format_ms(time.time_ns() // 1_000_000)} {line}\n"
        safe_open.append(path, entry.encode(errors="backslashreplace"))
    except (OSError, ValueError, QueenError):
        return False
    return True
