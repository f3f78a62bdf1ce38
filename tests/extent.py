"""How much the tests try, and on which disk.

`make test` tries a share of everything, `make test-all` all of it.
A test with the mark `thorough` runs only in the latter. What it looks for has a quicker test too,
which runs in both.
"""

from __future__ import annotations

import os

EVERYTHING = "--everything"
"""The option of pytest that stands for `make test-all`."""

_ROOM = 6 << 30
_SHARE = 5
_FEWEST = 20

_everything = False


def try_everything() -> None:
    """Makes what is imported from here on try everything."""
    global _everything
    _everything = True


def quick_or(everything: int, *, quick: int) -> int:
    """Returns one of two sizes of a test."""
    return everything if _everything else quick


def examples(everything: int) -> int:
    """Returns how many examples of Hypothesis a law is tried with."""
    return quick_or(everything, quick=max(min(everything, _FEWEST), everything // _SHARE))


def memory_is_a_disk(folder: str) -> bool:
    """Returns whether the files of all tests fit into a folder in memory, programs among them: the
    tests make 350,000 files, and what they ask of the disk is to be fast.
    """
    try:
        system = os.statvfs(folder)
    except OSError:
        return False
    return system.f_bavail * system.f_frsize >= _ROOM and not system.f_flag & os.ST_NOEXEC
