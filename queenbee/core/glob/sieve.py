"""Compares one pattern, or one path, with many patterns, most of which it does not parse.

A text is ruled out if one of its letters, before its first wildcard or after its last one, differs
from the letter that every path of the new pattern has there; the others are compared exactly. An
invalid pattern, written by another tool, covers no path here.
"""

from __future__ import annotations

from queenbee.core.glob.chars import fold
from queenbee.core.glob.parse import SPECIAL, unwritable
from queenbee.core.glob.pattern import (
    Branch,
    Pattern,
    common_path,
    compiled,
    covers,
    literal_head,
)
from queenbee.core.glob.segments import Segment
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeVar

    from queenbee.core.glob.chars import Part

    Key = TypeVar("Key")

_TAIL = 4
"""How many last letters are compared: an extension, of which a hive has few."""

_FIRST_CUT = 4
"""How many first letters are compared first: few differ, so most results are cached."""

_UNTIDY = ("..", "./", ".\n", "{.", ",.", "}.", "\\.")
"""Signs, in lines, that a segment of a pattern may become `.` or `..`, which removes letters that
the sieve compares. Few patterns have one, and those all pass."""

_VANISHING = frozenset("./")
"""Characters that the sieve cannot rely on: `a//b` and `./a` are ways to write `a/b` and `a`."""


def candidates(
    pattern: str, patterns: Iterable[tuple[Key, str]], *, fold_case: bool = False
) -> list[tuple[Key, str]]:
    """Returns the patterns that may overlap this one, in no particular order.

    It is for a process that compares once: it only parses `pattern`, and rules out most others
    by their beginnings and ends. The returned ones must still be compared; the others share no
    path with `pattern`, or are invalid. Raises `BadPattern` for `pattern` only.
    """
    branches = compiled(pattern, fold_case).branches
    prefix = shared_beginning([letters_before(branch) for branch in branches])
    tail = shared_beginning([letters_after(branch)[::-1] for branch in branches])[::-1]
    return sift(list(patterns), prefix, tail, fold_case)


def scan_meeting(
    pattern: str, patterns: Iterable[tuple[Key, str]], fold_case: bool = False
) -> list[Key]:
    """Returns the key of each pattern that overlaps this one.

    An invalid one among the patterns overlaps nothing. Raises `BadPattern` for `pattern`.
    """
    new = compiled(pattern, fold_case)
    found = []
    for key, text in candidates(pattern, patterns, fold_case=fold_case):
        other = _usable(text, fold_case)
        if other is not None and common_path(new, other) is not None:
            found.append(key)
    return found


def scan_covering(
    path: str, patterns: Iterable[tuple[Key, str]], fold_case: bool = False
) -> list[Key]:
    """Returns the key of each pattern that covers the path, which is literal and of any length."""
    folded = fold(path) if fold_case else path
    found = []
    for key, text in sift(list(patterns), folded, folded[folded.rfind("/") + 1 :], fold_case):
        other = _usable(text, fold_case)
        if other is not None and covers(other, folded):
            found.append(key)
    return found


def _usable(text: str, fold_case: bool) -> Pattern | None:
    try:
        return compiled(text, fold_case)
    except BadPattern:
        return None


def sift(
    left: list[tuple[Key, str]], prefix: str, tail: str, fold_case: bool
) -> list[tuple[Key, str]]:
    """Returns the pairs whose text may cover a path with this beginning and end.

    With `fold_case` the two are folded; the texts never are. A `/` at the end of the prefix
    matches a `/` or the end of the path.
    """
    # A literal that looks like a wildcard could match a real wildcard in a text.
    prefix = prefix[: next((at for at, char in enumerate(prefix) if char in SPECIAL), None)]
    tail = tail[max(tail.rfind(char) for char in (*SPECIAL, "]")) + 1 :][-_TAIL:]
    # In a text, `\u000a` ends in other letters than the character that it stands for.
    tail = tail[max((at + 1 for at, char in enumerate(tail) if unwritable(char)), default=0) :]
    kept = []
    untidy = _untidy("\n".join(["", *[text for _, text in left], ""]))
    if untidy:
        kept = [pair for pair in left if pair[1] in untidy]
        left = [pair for pair in left if pair[1] not in untidy]
    cut = 0
    while left and cut < len(prefix):
        cut = min(max(_FIRST_CUT, 2 * cut), len(prefix))
        heads = _Heads(prefix, cut, fold_case)
        left = [pair for pair in left if heads[pair[1][:cut]]]
    if tail:
        tails = _Tails(tail, fold_case)
        left = [pair for pair in left if tails[pair[1][-len(tail) :]]]
    return left + kept


def letters_before(branch: Branch) -> str:
    """Returns the beginning of every path of the branch; a path may lack its final `/`."""
    names = literal_head(branch)
    prefix = "/".join(names)
    if len(names) < len(branch.runs[0]):
        segment = branch.runs[0][len(names)]
        assert isinstance(segment, Segment)
        prefix += ("/" if names else "") + _first_letters(segment.parts)
    elif len(branch.runs) > 1 and names:
        prefix += "/"
    return prefix


def letters_after(branch: Branch) -> str:
    """Returns the literal end that every path of the branch has, within one name."""
    if not branch.runs[-1]:
        return ""
    segment = branch.runs[-1][-1]
    if isinstance(segment, str):
        return segment
    return _first_letters(segment.parts, backwards=True)[::-1]


def _first_letters(parts: Sequence[Part], *, backwards: bool = False) -> str:
    """Returns the letters that every name of a segment begins with; or its last ones, backwards."""
    letters = ""
    for part in reversed(parts) if backwards else parts:
        if isinstance(part, tuple):
            alternatives = [_first_letters(each, backwards=backwards) for each in part]
            return letters + shared_beginning(alternatives)
        if not isinstance(part, str):
            break
        letters += part
    return letters


def shared_beginning(texts: list[str]) -> str:
    low, high = min(texts), max(texts)
    for at, char in enumerate(low):
        if char != high[at]:
            return low[:at]
    return low


class _Heads(dict[str, bool]):
    """Remembers which beginnings of a pattern's text let it begin with the prefix."""

    def __init__(self, prefix: str, cut: int, fold_case: bool) -> None:
        super().__init__()
        self._prefix = prefix
        self._cut = cut
        self._fold_case = fold_case

    def __missing__(self, head: str) -> bool:
        prefix = self._prefix
        # A pattern that ends here is literal up to here; `src/**` covers `src` too.
        verdict = len(head) == self._cut or head + "/" == prefix or head[-1:] == "/"
        for mine, theirs in zip(prefix, fold(head) if self._fold_case else head, strict=False):
            if mine != theirs:
                verdict = theirs in SPECIAL or theirs in _VANISHING
                break
        self[head] = verdict
        return verdict


class _Tails(dict[str, bool]):
    """Remembers which ends of a pattern's text let it end in the tail."""

    def __init__(self, tail: str, fold_case: bool) -> None:
        super().__init__()
        self._tail = tail
        self._fold_case = fold_case

    def __missing__(self, end: str) -> bool:
        verdict = len(end) == len(self._tail)
        ending = (fold(end) if self._fold_case else end)[::-1]
        for mine, theirs in zip(self._tail[::-1], ending, strict=False):
            if mine != theirs:
                # A `/` at the end means `/**`.
                verdict = theirs in "]/" or theirs in SPECIAL
                break
        self[end] = verdict
        return verdict


def _untidy(lines: str) -> set[str]:
    """Returns the lines with a sign that they are not in normal form, in one search per sign."""
    found = set()
    for sign in _UNTIDY:
        at = lines.find(sign)
        while at >= 0:
            within = at + (sign[0] == "\n")
            end = lines.find("\n", within)
            found.add(lines[lines.rfind("\n", 0, within) + 1 : end])
            at = lines.find(sign, end)
    return found
