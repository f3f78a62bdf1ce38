"""How much the tests try: a share of it in `make test`, and everything in `make test-all`.

A test with the mark `thorough` runs only in the latter. What it looks for has a quicker test too,
which runs in both.
"""

from __future__ import annotations

EVERYTHING = "--everything"
"""The option of pytest that stands for `make test-all`."""

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
