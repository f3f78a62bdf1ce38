"""Finds a word that two sequences with stars between their runs have in common.

A segment is a sequence of characters with `*` between its runs, and a path is a sequence of
segments with `**` between its runs. Both are decided here, without search. If both sides
have a star, each star covers whatever the other side needs, and only the fixed ends can conflict.
If one side has none, its symbols are the word, and the runs of the other are placed leftmost.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Symbol = TypeVar("Symbol")
    Run = Sequence[Symbol]
    Runs = tuple[Run[Symbol], ...]
    Common = Callable[[Symbol, Symbol], str | None]
    Meeting = tuple[list[str], list[str], bool]


def meet(one: Runs[Symbol], other: Runs[Symbol], common: Common[Symbol]) -> Meeting | None:
    """Returns the two halves of a word that both sequences cover, or None.

    A run is a sequence without a star; there is a star between any two runs. `common` returns what
    two symbols share. The third value says whether any other word fits between the halves.
    """
    if len(one) == 1 and len(other) == 1:
        if len(one[0]) != len(other[0]):
            return None
        word = _overlay(one[0], other[0], common)
        return None if word is None else (word, [], False)
    if len(other) == 1:
        word = _placed(one, other[0], common)
        return None if word is None else (word, [], False)
    if len(one) == 1:
        word = _placed(other, one[0], common)
        return None if word is None else (word, [], False)
    head = _overlay(one[0], other[0], common)
    if head is None:
        return None
    tail = _overlay(one[-1][::-1], other[-1][::-1], common)
    if tail is None:
        return None
    inner = one[1:-1] if one[1:-1] == other[1:-1] else one[1:-1] + other[1:-1]
    if not all(_spelled(run, common, head) for run in inner):
        return None
    return head, tail[::-1], True


def _overlay(one: Run[Symbol], other: Run[Symbol], common: Common[Symbol]) -> list[str] | None:
    """Returns what the longer run covers where it begins as the shorter one does."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if isinstance(long, str) and isinstance(short, str):
        return list(long) if long.startswith(short) else None
    word: list[str] = []
    for mine, theirs in zip(short, long, strict=False):
        shared = common(mine, theirs)
        if shared is None:
            return None
        word.append(shared)
    return word if _spelled(long[len(short) :], common, word) else None


def _spelled(run: Run[Symbol], common: Common[Symbol], word: list[str]) -> bool:
    """Adds a sample of the run to the word; returns whether the run covers anything."""
    for symbol in run:
        sample = symbol if isinstance(symbol, str) else common(symbol, symbol)
        if sample is None:
            return False
        word.append(sample)
    return True


def _placed(runs: Runs[Symbol], fixed: Run[Symbol], common: Common[Symbol]) -> list[str] | None:
    first, *inner, last = runs
    start, end = len(first), len(fixed) - len(last)
    if start > end:
        return None
    partners = [*first, *fixed[start:end], *last]
    accepting: dict[Symbol, int] = {}
    for run in inner:
        if isinstance(run, str) and isinstance(fixed, str):
            at = fixed.find(run, start, end)
        else:
            at = _leftmost(run, fixed, start, end, common, accepting)
        if at < 0:
            return None
        start = at + len(run)
        partners[at:start] = run
    return _overlay(partners, fixed, common)


def _leftmost(
    run: Run[Symbol],
    fixed: Run[Symbol],
    start: int,
    end: int,
    common: Common[Symbol],
    accepting: dict[Symbol, int],
) -> int:
    """Returns the first place from `start` where the run fits and ends by `end`, or -1.

    All places are tried at once: bit `i` of `fits` stands for place `i`, so that a run of n
    symbols costs n steps on integers and not n times the length of `fixed`. `accepting` keeps
    the places that each symbol accepts for the runs that follow.
    """
    fits = ((1 << max(0, end - start - len(run) + 1)) - 1) << start
    for offset, symbol in enumerate(run):
        if symbol not in accepting:
            accepting[symbol] = sum(
                1 << index for index, place in enumerate(fixed) if common(symbol, place) is not None
            )
        fits &= accepting[symbol] >> offset
    return (fits & -fits).bit_length() - 1
