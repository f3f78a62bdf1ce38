"""The journals in which versions up to 0.2 recorded lines: taken into the memory, then removed."""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.files import START, read_after, split_lines

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable

_BESIDE = ("", ".intent", ".gained", ".archived")
"""The journal, and the files that were kept next to it."""


def lines_of(path: str) -> list[bytes]:
    """Returns the lines of a journal, without those of a write that was cut off."""
    stop = None
    with suppress(OSError, ValueError):
        begin, size = map(int, safe_open.read(f"{path}.intent", 64).split())
        stop = begin if os.stat(path).st_size < begin + size else None
    return split_lines(read_after(path, START, stop=stop).lines)


def forget_old_journals(paths: Iterable[str]) -> None:
    """Removes journals whose lines the memory has. Never fails."""
    for path in paths:
        for suffix in _BESIDE:
            with suppress(OSError, QueenError):
                safe_open.unlink(path + suffix)
        with suppress(OSError):
            os.rmdir(os.path.dirname(path))
