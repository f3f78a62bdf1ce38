"""How much the tests try, and on which disk.

`make test` tries a share of everything, `make test-all` all of it.
A test with the mark `thorough` runs only in the latter. What it looks for has a quicker test too,
which runs in both. Of one with the mark `some(N)`, the former runs N cases, spread over all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

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


class Spread:
    """Which cases of tests are run, if of some tests not all are; they are asked for in order."""

    def __init__(self, cases: Iterable[tuple[str, int]]) -> None:
        self._has = Counter(name for name, _ in cases)
        self._seen: Counter[str] = Counter()

    def takes(self, case: tuple[str, int]) -> bool:
        """Returns whether the next case of a test is run, of which so many are; all if 0."""
        name, some = case
        has, at = self._has[name], self._seen[name]
        self._seen[name] += 1
        return not 0 < some < has or at * some // has != (at - 1) * some // has


def memory_is_a_disk(folder: str) -> bool:
    """Returns whether the files of all tests fit into a folder in memory, programs among them: the
    tests make 350,000 files, and what they ask of the disk is to be fast.
    """
    try:
        system = os.statvfs(folder)
    except OSError:
        return False
    return system.f_bavail * system.f_frsize >= _ROOM and not system.f_flag & os.ST_NOEXEC
