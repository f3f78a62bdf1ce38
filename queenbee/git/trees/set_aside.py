"""What may be somebody's work and is in the way gets another name: only people can tell."""

from __future__ import annotations

import os

from queenbee.core.text import mentioned
from queenbee.errors import Conflict

_TRIES = 1_000


def set_aside(path: str, beside: str, why: str) -> str:
    """Gives a folder a name beside another one, or itself; returns a sentence about it. Raises
    `Conflict` if that cannot be, and `OSError`.
    """
    names = (f"{beside}.set-aside-{number}" for number in range(1, _TRIES))
    aside = next((each for each in names if not os.path.lexists(each)), None)
    if aside is None or os.path.islink(beside):
        raise Conflict(f"{mentioned(path)} cannot be set aside: {why}")
    os.rename(path, aside)
    return f"{mentioned(path)} was set aside as {mentioned(aside)}: {why}"
