"""Characters as patterns see them: sets of code points, and case folding.

A place in a pattern accepts one character (a `str`), or a set: sorted ranges of code points with
gaps between them, without `/` and NUL. ADR 0003 says why folding is per character.
"""

from __future__ import annotations

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable

    Ranges = tuple[tuple[int, int], ...]
    Place = str | Ranges

SPECIAL = frozenset("*?[{}\\")
"""Characters with a special meaning; a `]`, and a `,` outside braces, have none."""

_LAST = 0x10FFFF
_LAST_CASED = 0x1E943
"""No character beyond the Adlam letters has a case; a test holds this against the interpreter."""
_LOOKED_AT = 256
"""How many characters of a range a witness may choose from."""
_READABLE = "xabcdefghijklmnopqrstuvwyz0123456789_-"
"""The characters of a witness where a pattern allows any; `x` reads as a placeholder."""


def unwritable(char: str) -> bool:
    r"""Returns whether a pattern writes this character of a path as `\uHHHH`.

    They are control characters, and bytes that are not UTF-8 as Python reads them from the file
    system. They do not survive terminals, logs or JSON, but a file may be named with them.
    """
    code = ord(char)
    return 0 < code < 0x20 or 0x7F <= code < 0xA0 or 0xDC80 <= code < 0xDD00


def quoted(char: str) -> str:
    r"""Returns the text for this one character of a path: `a`, `\[`, `\u000a`."""
    if unwritable(char):
        return f"\\u{ord(char):04x}"
    return "\\" + char if char in SPECIAL else char


def fold(text: str) -> str:
    """Returns the text with every character folded, so that its length stays the same."""
    folded = text.casefold()
    return folded if len(folded) == len(text) else "".join(map(fold_char, text))


def fold_char(char: str) -> str:
    """Returns the character that represents all that differ from `char` only by case.

    It is `str.casefold` if that is one character; `ß` stays `ß`.
    """
    return next((form for form in (char.casefold(), char.lower()) if len(form) == 1), char)


def outside(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the set of all other characters. Called twice, it puts ranges in order."""
    gaps, start = [], 1
    for low, high in sorted([*ranges, (ord("/"), ord("/")), (_LAST + 1, _LAST + 1)]):
        if start < low:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return tuple(gaps)


def with_both_cases(ranges: Ranges) -> Ranges:
    """Returns the set with all characters that differ from one of its own only by case."""
    if not _families:
        for char in map(chr, range(_LAST_CASED + 1)):
            if char.casefold() != char and (folded := fold_char(char)) != char:
                _families.setdefault(folded, [folded]).append(char)
    families = (each for each in _families.values() if any(common_char(ranges, c) for c in each))
    return outside(outside([*ranges, *((ord(c), ord(c)) for each in families for c in each)]))


def common_char(one: Place, other: Place) -> Place:
    """Returns what two places both accept; it is false if there is nothing."""
    if isinstance(one, str):
        one, other = other, one
    if isinstance(one, str):
        return one if one == other else ""
    if isinstance(other, str):
        return other if any(low <= ord(other) <= high for low, high in one) else ""
    return tuple((max(a, c), min(b, d)) for a, b in one for c, d in other if a <= d and c <= b)


def sample(place: Place) -> str:
    """Returns the most readable character that a place accepts; a folded one where it has one.

    A dot comes after all other printable characters: `.` and `..` are not names.
    """
    if isinstance(place, str):
        return place
    readable = [char for char in _READABLE if common_char(place, char)]
    offered = (range(low, min(high, low + _LOOKED_AT) + 1) for low, high in place)
    return min(
        readable[:1] or (chr(code) for codes in offered for code in codes),
        key=lambda char: (fold_char(char) != char, not char.isprintable(), char == "."),
    )


_families: dict[str, list[str]] = {}
"""The characters that fold to the same one, by that."""

ANY_CHAR = outside([])
NO_DOT = outside([(ord("."), ord("."))])
