"""One segment of a pattern against one segment of another: a name that both cover.

A segment is a plain `str` (a literal name) or a `Segment`. No segment is empty, `.` or `..`, so
these three are in no segment's language, whatever its pattern says.
"""

from __future__ import annotations

from queenbee.core.glob.chars import DOT, Chars, common_char
from queenbee.core.glob.runs import meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.glob.chars import Part

    Runs = tuple[str | tuple[str | Chars, ...], ...]
    """The characters between the stars."""

_MEMO_SIZE = 4096
_NO_NAMES = ("", ".", "..")


class Segment:
    """A segment that holds a wildcard, a class or alternatives."""

    __slots__ = ("_hash", "choices", "parts")

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self.choices = tuple(map(_runs, _spread(parts)))
        """The runs of each choice of alternatives; just one if there are none."""
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Segment) and self.parts == other.parts)

    def __hash__(self) -> int:
        return self._hash

    def covers(self, name: str) -> bool:
        """Returns whether a valid name is in the segment's language."""
        return any(_covers(runs, name) for runs in self.choices)


def common_name(one: str | Segment, other: str | Segment) -> str | None:
    """Returns a name that both segments cover, or None."""
    if isinstance(one, str):
        if isinstance(other, str):
            return one if one == other else None
        return one if other.covers(one) else None
    if isinstance(other, str):
        return other if one.covers(other) else None
    key = (one, other)
    if key not in _common:
        if len(_common) >= _MEMO_SIZE:
            _common.clear()
        _common[key] = _first_common(one, other)
    return _common[key]


def sample_name(segment: str | Segment) -> str | None:
    """Returns a name that the segment covers, or None if it covers none."""
    return segment if isinstance(segment, str) else common_name(segment, _ANY_NAME)


def _first_common(one: Segment, other: Segment) -> str | None:
    names = (_meet(mine, theirs) for mine in one.choices for theirs in other.choices)
    return next((name for name in names if name is not None), None)


def _meet(one: Runs, other: Runs) -> str | None:
    meeting = meet(one, other, common_char)
    if meeting is None:
        return None
    head, tail, elastic = meeting
    name = "".join(head + tail)
    if elastic and (name in _NO_NAMES or (not head and name[0] == ".")):
        return "".join([*head, "x", *tail])
    return _other_than_dots(one, other) if name in _NO_NAMES else name


def _other_than_dots(one: Runs, other: Runs) -> str | None:
    """Returns a name that both cover and that is not only dots, or None. One of them has no star,
    so that all their names are as long.
    """
    (fixed,), runs = (one, other) if len(one) == 1 else (other, one)
    for at, place in enumerate(fixed):
        less = _without_dot(place)
        narrowed = (*fixed[:at], less, *fixed[at + 1 :]) if less is not None else None
        meeting = meet((narrowed,), runs, common_char) if narrowed is not None else None
        if meeting is not None:
            return "".join(meeting[0])
    return None


def _without_dot(place: str | Chars) -> str | Chars | None:
    if isinstance(place, str):
        return None if place == "." else place
    ranges = []
    for low, high in place.ranges:
        ranges += [(low, DOT - 1), (DOT + 1, high)] if low <= DOT <= high else [(low, high)]
    left = Chars(tuple(ends for ends in ranges if ends[0] <= ends[1]), place.folded)
    return left if left.ranges else None


def _covers(runs: Runs, name: str) -> bool:
    first, last = runs[0], runs[-1]
    if len(runs) == 2 and isinstance(first, str) and isinstance(last, str):
        return (
            len(name) >= len(first) + len(last) and name.startswith(first) and name.endswith(last)
        )
    return meet(runs, (name,), common_char) is not None


def _spread(parts: Sequence[Part]) -> list[tuple[str | Chars | None, ...]]:
    """Returns the parts for each choice of alternatives; `parse` bounds how many there are."""
    spread: list[tuple[str | Chars | None, ...]] = [()]
    for part in parts:
        options = (
            [choice for alternative in part for choice in _spread(alternative)]
            if isinstance(part, tuple)
            else [(part,)]
        )
        spread = [(*before, *option) for before in spread for option in options]
    return spread


def _runs(parts: Sequence[str | Chars | None]) -> Runs:
    runs: list[list[str | Chars]] = [[]]
    for part in parts:
        if part is None:
            runs.append([])
        else:
            runs[-1].append(part)
    return tuple(map(_run, runs))


def _run(run: list[str | Chars]) -> str | tuple[str | Chars, ...]:
    letters = [part for part in run if isinstance(part, str)]
    return "".join(letters) if len(letters) == len(run) else tuple(run)


_common: dict[tuple[Segment, Segment], str | None] = {}
_ANY_NAME = Segment((None,))
