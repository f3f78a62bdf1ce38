"""Short, untracked logs next to the journal: what a guard or a hook allowed, and why."""

from __future__ import annotations

import os
import time

from queenbee.core.timestamps import format_ms

_MOST_BYTES = 512 * 1024
"""About three thousand entries. The previous log is kept, and older ones are dropped."""


def note(state_dir: str, name: str, text: str) -> bool:
    """Adds a line with the time to `<state_dir>/<name>.log`; returns whether that worked.

    Never raises, and makes no folder: if the state cannot be written, there is no log.
    """
    path = os.path.join(state_dir, f"{name}.log")
    line = " ".join(text.split())
    try:
        if os.path.exists(path) and os.path.getsize(path) > _MOST_BYTES:
            os.replace(path, path + ".1")
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{format_ms(time.time_ns() // 1_000_000)} {line}\n")
    except (OSError, ValueError):
        return False
    return True
