"""Characters as patterns see them: sets of code points, case folding, readable samples.

A place in a pattern accepts either one literal character (a `str` of length one) or a `Chars`.
`docs/adr/0003-exact-overlap.md` says why folding is per character.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
SLASH = 0x2F
DOT = 0x2E

_READABLE = "xabcdefghijklmnopqrstuvwyz0123456789_-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The characters of a witness where a pattern allows any; `x` reads as a placeholder."""

_LAST_CASED = 0x1E943
"""No character beyond the Adlam letters has a case; a test holds this against the interpreter."""

_LOOKED_AT = 4096
"""How far to search one range for a printable character before using any character."""

_MEMO_SIZE = 4096


class Chars:
    """A set of characters, as sorted and disjoint ranges of code points; never `/` or NUL.

    With `folded`, it only handles and returns folded characters.
    """

    __slots__ = ("_hash", "folded", "ranges")

    def __init__(self, ranges: Ranges, folded: bool) -> None:
        self.ranges = ranges
        self.folded = folded
        self._hash = hash(ranges)

    def __contains__(self, char: str) -> bool:
        code = ord(char)
        for low, high in self.ranges:
            if code <= high:
                return low <= code
        return False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Chars) and self.ranges == other.ranges and self.folded == other.folded
        )

    def __hash__(self) -> int:
        return self._hash


if TYPE_CHECKING:
    Part = str | Chars | None | tuple[tuple["Part", ...], ...]
    """A part of a segment: a character, a set, a star (None), or the alternatives of a group."""


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the same code points without `/`, as sorted ranges that are not adjacent."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    parts: list[tuple[int, int]] = []
    for low, high in joined:
        if low <= SLASH <= high:
            parts += [(low, SLASH - 1), (SLASH + 1, high)]
        else:
            parts.append((low, high))
    return tuple(part for part in parts if part[0] <= part[1])


def everything_but(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the characters outside the ranges, except `/` and NUL."""
    gaps: list[tuple[int, int]] = []
    start = 1
    for low, high in sorted([*ranges, (SLASH, SLASH)]):
        if start < low:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    if start <= LAST:
        gaps.append((start, LAST))
    return tuple(gaps)


def fold_char(char: str) -> str:
    """Returns the character that represents all that differ from `char` only by case.

    It is `str.casefold` if that is one character; `ß` stays `ß`, so lengths do not change.
    """
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char


def fold(text: str) -> str:
    """Returns the text with every character folded; its length stays the same."""
    folded = text.casefold()
    if len(folded) == len(text):
        return folded
    return "".join(map(fold_char, text))


def fold_ranges(ranges: Ranges) -> Ranges:
    """Returns the ranges with the folded form of each of their characters added."""
    added = []
    for low, high in ranges:
        for code in range(low, min(high, _LAST_CASED) + 1):
            folded = ord(fold_char(chr(code)))
            if folded != code:
                added.append((folded, folded))
    return merged([*ranges, *added])


def common_char(one: str | Chars, other: str | Chars) -> str | None:
    """Returns a readable character that both places accept, or None."""
    if type(one) is str:
        if type(other) is str:
            return one if one == other else None
        return one if one in other else None
    if type(other) is str:
        return other if other in one else None
    key = (one, other)
    if key not in _common:
        if len(_common) >= _MEMO_SIZE:
            _common.clear()
        assert isinstance(one, Chars)
        assert isinstance(other, Chars)
        shared = _shared_ranges(one.ranges, other.ranges)
        _common[key] = _sample(shared, one.folded or other.folded)
    return _common[key]


def _shared_ranges(one: Ranges, other: Ranges) -> list[tuple[int, int]]:
    shared = []
    i = j = 0
    while i < len(one) and j < len(other):
        low = max(one[i][0], other[j][0])
        high = min(one[i][1], other[j][1])
        if low <= high:
            shared.append((low, high))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return shared


def _sample(ranges: list[tuple[int, int]], folded: bool) -> str | None:
    offered = Chars(tuple(ranges), folded)
    for char in _READABLE:
        if char in offered and not (folded and fold_char(char) != char):
            return char
    # A dot comes after all other printable ones: `.` and `..` are not names of segments.
    last_resort = None
    for low, high in ranges:
        for code in range(low, high + 1):
            char = chr(code)
            if folded and fold_char(char) != char:
                continue
            if code != DOT and char.isprintable():
                return char
            if last_resort is None or last_resort < " ":
                last_resort = char
            if code - low >= _LOOKED_AT:
                break
    return last_resort


_common: dict[tuple[str | Chars, str | Chars], str | None] = {}

ANY_CHAR = Chars(everything_but([]), False)
"""Every character of a name. In a case-folded comparison, the other side limits it."""
