"""One segment of a pattern against one segment of another: a name that both cover.

A segment is a plain `str` (a literal name) or a `Segment`. No segment is empty, `.` or `..`, so
these three are in no segment's language, whatever its pattern says.
"""

from __future__ import annotations

from queenbee.core.glob.chars import common_char
from queenbee.core.glob.runs import meet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.glob.chars import Chars, Part
    from queenbee.core.glob.product import Automaton

    Runs = tuple[str | tuple[str | Chars, ...], ...]
    """The characters between the stars."""

_MEMO_SIZE = 4096
_NO_NAMES = ("", ".", "..")


class Segment:
    """A segment that holds a wildcard, a class or alternatives."""

    __slots__ = ("_automaton", "_hash", "parts", "runs")

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self.runs = _runs(parts)
        """None for a segment with alternatives, for which its automaton decides."""
        self._automaton: Automaton | None = None
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Segment) and self.parts == other.parts)

    def __hash__(self) -> int:
        return self._hash

    @property
    def automaton(self) -> Automaton:
        """The segment as an automaton, created when first needed."""
        if self._automaton is None:
            from queenbee.core.glob.product import Automaton  # noqa: PLC0415 - start-up

            self._automaton = Automaton(self.parts)
        return self._automaton

    def covers(self, name: str) -> bool:
        """Returns whether a valid name is in the segment's language."""
        return self.automaton.accepts(name) if self.runs is None else _covers(self.runs, name)


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
        _common[key] = _meet(one, other)
    return _common[key]


def sample_name(segment: str | Segment) -> str | None:
    """Returns a name that the segment covers, or None if it covers none."""
    return segment if isinstance(segment, str) else common_name(segment, _ANY_NAME)


def common_name_by_automata(one: Segment, other: Segment) -> str | None:
    """Returns what `common_name` returns, decided without the shortcut for runs."""
    from queenbee.core.glob.product import common_word  # noqa: PLC0415 - start-up

    return common_word(one.automaton, other.automaton)


def _meet(one: Segment, other: Segment) -> str | None:
    if one.runs is None or other.runs is None:
        return common_name_by_automata(one, other)
    meeting = meet(one.runs, other.runs, common_char)
    if meeting is None:
        return None
    head, tail, elastic = meeting
    name = "".join(head + tail)
    if elastic and (name in _NO_NAMES or (not head and name[0] == ".")):
        return "".join([*head, "x", *tail])
    # The leftmost placing can give a name that no segment has though another placing is valid.
    return common_name_by_automata(one, other) if name in _NO_NAMES else name


def _covers(runs: Runs, name: str) -> bool:
    first, last = runs[0], runs[-1]
    if len(runs) == 2 and isinstance(first, str) and isinstance(last, str):
        return (
            len(name) >= len(first) + len(last) and name.startswith(first) and name.endswith(last)
        )
    return meet(runs, (name,), common_char) is not None


def _runs(parts: Sequence[Part]) -> Runs | None:
    runs: list[list[str | Chars]] = [[]]
    for part in parts:
        if isinstance(part, tuple):
            return None
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
