"""Which start of this machine this is: a power cut may take back the last writes to a database."""

from __future__ import annotations

import os
from functools import cache

from queenbee.errors import Unreadable
from queenbee.store import safe_open

_BOOT = "/proc/sys/kernel/random/boot_id"


@cache
def boot_id() -> str:
    """Returns what tells one start of this machine from the next; "" where nothing does."""
    try:
        return safe_open.read(_BOOT, 64).decode().strip()
    except (OSError, Unreadable, ValueError):
        return ""


@cache
def run_id() -> str:
    """Returns the same, or, where nothing tells, what tells this process from any other."""
    return boot_id() or os.urandom(8).hex()
