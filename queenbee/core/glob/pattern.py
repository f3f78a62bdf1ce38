"""Glob patterns: their normal form, the paths they cover, and whether two share a path.

All answers are exact: they compare the languages of the patterns. `docs/format.md`, section
"Patterns"; ADR 0003.
"""

from __future__ import annotations

from queenbee.core.glob.chars import SPECIAL, fold, quoted
from queenbee.core.glob.parse import NO_NAMES, parse
from queenbee.core.glob.word_sets import Words, common_name, names_meet
from queenbee.errors import BadPattern

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Key = TypeVar("Key")

_MEMO_SIZE = 1024
"""How many parsed patterns are cached."""
_FIRST_CUT = 4
"""How many first letters are compared first: of so few, many texts have the same."""
_DOTS = ("..", "{.", ",.", "}.", "\\.")
"""Signs that a segment of a text may be `..`, which takes away the folder before it."""


class Pattern:
    """What a pattern covers, and its normal form; `path` is its only path, if it is literal."""

    def __init__(self, normal: str, words: Words) -> None:
        self.normal = normal
        self.words = words
        self.path: str | None = None
        if len(words.sequences) == 1 and all(isinstance(each, str) for each in words.sequences[0]):
            self.path = "/".join(words.sequences[0])

    def head(self) -> str:
        """Returns the literal path that holds, or is, all it covers: `src` for `src/*.py`."""
        shared = []
        for names in zip(*self.words.sequences, strict=False):
            if len(set(names)) > 1 or not isinstance(names[0], str):
                break
            shared.append(names[0])
        return "/".join(shared)


def normalise(text: str) -> str:
    """Returns the pattern's normal form: the text that is stored.

    Without `.`, `..`, empty segments, repeated `**` and needless escapes; `src/` becomes
    `src/**`, and `{a}` becomes `a`. It covers the same paths, and is its own normal form. Raises
    `BadPattern` for a text that is invalid, or that covers no path.
    """
    return compiled(text).normal


def overlap(a: str, b: str, *, fold_case: bool = False) -> str | None:
    """Returns a path that both patterns cover, or None if there is none.

    The answer does not depend on the order of the two. With `fold_case` the path is given in its
    folded form. Raises `BadPattern`.
    """
    one, other = _in_order(compiled(min(a, b), fold_case), compiled(max(a, b), fold_case))
    walk = other.words.walk(one.words.sequences, names_meet)
    # Two that both cover every path cover `x`.
    return "/".join(other.words.spelled(walk, common_name)[0]) or "x" if walk else None


def matches(pattern: str, path: str, *, fold_case: bool = False) -> bool:
    """Returns whether the pattern covers the path, which is literal and from the root.

    No pattern covers a path with an empty segment, `.` or `..`. Raises `BadPattern` for the
    pattern only.
    """
    return paths_meet(compiled(pattern, fold_case), _literal(path, fold_case))


def escape(path: str) -> str:
    """Returns the pattern that covers exactly this path. Raises `BadPattern` if none can."""
    column = 1
    for name in path.split("/"):
        if name in NO_NAMES:
            reason = "it is not a path from the root with a name between slashes"
            raise BadPattern(path, column, reason)
        column += len(name) + 1
    text = "".join(map(quoted, path))
    return normalise("\\" + text if text[0] == "!" else text)


def is_literal(pattern: str) -> bool:
    """Returns whether the pattern names exactly one path. Raises `BadPattern`."""
    return compiled(pattern).path is not None


def literal_path(pattern: str) -> str | None:
    """Returns the path that a literal pattern names, unescaped, or None. Raises `BadPattern`."""
    return compiled(pattern).path


def compiled(text: str, fold_case: bool = False) -> Pattern:
    """Returns the parsed pattern, cached for the next time. Raises `BadPattern`."""
    pattern = _memo.get((text, fold_case))
    if pattern is None:
        pattern = Pattern(*parse(text, fold_case))
        if len(_memo) >= _MEMO_SIZE:
            _memo.clear()
        _memo[text, fold_case] = pattern
    return pattern


def _literal(path: str, fold_case: bool = False) -> Pattern:
    """Returns what covers just this path, of any length; nothing covers an invalid one."""
    names = (fold(path) if fold_case else path).split("/")
    return Pattern("", Words([names] if NO_NAMES.isdisjoint(names) else []))


def _in_order(one: Pattern, other: Pattern) -> tuple[Pattern, Pattern]:
    # A walk is shorter along a literal path than across it.
    return (one, other) if one.path is not None else (other, one)


def paths_meet(one: Pattern, other: Pattern) -> bool:
    """Returns whether some path is in both."""
    one, other = _in_order(one, other)
    return other.words.walk(one.words.sequences, names_meet) is not None


def why_apart(left: str, right: str) -> str:
    """Returns the simplest reason why two patterns that do not overlap share no path.

    It explains the verdict of `overlap` and decides nothing. Raises `BadPattern`.
    """
    one, other = compiled(left), compiled(right)
    if one.path is not None and other.path is not None:
        return f"{one.path} and {other.path} are different paths"
    if one.path is not None:
        return f"{right} does not cover {one.path}, the only path of {left}"
    if other.path is not None:
        return f"{left} does not cover {other.path}, the only path of {right}"
    folders = zip(one.head().split("/"), other.head().split("/"), strict=False)
    if any(mine != theirs for mine, theirs in folders if mine and theirs):
        return f"one is in {one.head()}/, the other in {other.head()}/"
    mine, theirs = _literal_end(one.normal), _literal_end(other.normal)
    if mine and theirs and not (mine.endswith(theirs) or theirs.endswith(mine)):
        return f"one matches names ending in {mine}, the other in {theirs}"
    return "no path fits both patterns"


def _literal_end(normal: str) -> str:
    """Returns the literal text that every path of the pattern ends in, or ""."""
    return "" if "\\" in normal else normal[max(map(normal.rfind, "*?]},/")) + 1 :]


def scan_meeting(
    pattern: str, patterns: Iterable[tuple[Key, str]], fold_case: bool = False
) -> list[Key]:
    """Returns the key of each pattern that overlaps this one. Raises `BadPattern` for `pattern`.

    For one question. An invalid pattern, written by another tool, covers no path.
    """
    return _scan(compiled(pattern, fold_case), list(patterns), fold_case)


def scan_covering(
    path: str, patterns: Iterable[tuple[Key, str]], fold_case: bool = False
) -> list[Key]:
    """Returns the key of each pattern that covers the path, which is literal and of any length."""
    return _scan(_literal(path, fold_case), list(patterns), fold_case)


def _scan(new: Pattern, pairs: list[tuple[Key, str]], fold_case: bool) -> list[Key]:
    """Rules out most patterns by the letters of their text, and parses only the others."""
    shown = fold if fold_case else str
    head, tail = new.head(), shown(_literal_end(new.normal))[::-1]
    texts = "\n".join([text for _, text in pairs])
    dotted = {text for sign in _DOTS if sign in texts for _, text in pairs if sign in text}
    cut = 0
    while cut < len(head):
        cut = 2 * cut or _FIRST_CUT
        near = {each for each in {text[:cut] for _, text in pairs} if _may_meet(head, shown(each))}
        pairs = [pair for pair in pairs if pair[1][:cut] in near or pair[1] in dotted]
    return [
        key
        for key, text in pairs
        if _may_meet(tail, shown(text)[::-1])
        if (other := _usable(text, fold_case)) and paths_meet(new, other)
    ]


def _may_meet(letters: str, text: str) -> bool:
    """Returns whether a pattern with this text may cover what begins (or ends) with the letters.

    A `.` or `/` may vanish: `a//b` and `./a` are ways to write `a/b` and `a`.
    """
    for mine, theirs in zip(letters, text, strict=False):
        if mine != theirs or theirs in SPECIAL:
            return theirs in SPECIAL or theirs in "./]"
    return True


def _usable(text: str, fold_case: bool) -> Pattern | None:
    try:
        return compiled(text, fold_case)
    except BadPattern:
        return None


class ByFolder:
    """Patterns by key, found by the literal path that each begins with: for many questions.

    An invalid one, written by another tool, covers no path.
    """

    def __init__(
        self, patterns: Iterable[tuple[str, str]] = (), *, fold_case: bool = False
    ) -> None:
        self._fold_case = fold_case
        self._heads: dict[str, str] = {}
        self._tables: dict[str, dict[str, Pattern]] = {}
        for key, text in patterns:
            self.add(key, text)

    def add(self, key: str, text: str) -> None:
        """Adds a pattern under a key that has none."""
        if new := _usable(text, self._fold_case):
            head = self._heads[key] = new.head()
            self._tables.setdefault(head, {})[key] = new

    def discard(self, key: str) -> None:
        """Removes the key's pattern, if there is one."""
        head = self._heads.pop(key, None)
        if head is not None and len(self._tables[head]) > 1:
            del self._tables[head][key]
        elif head is not None:
            del self._tables[head]

    def covering(self, path: str) -> list[str]:
        """Returns the key of each pattern that covers the path, which is literal."""
        return self._meeting(_literal(path, self._fold_case))

    def meeting(self, text: str, matters: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Returns the key of each pattern that overlaps this one, and matters by its key. Raises
        `BadPattern`.
        """
        return self._meeting(compiled(text, self._fold_case), matters)

    def _meeting(self, new: Pattern, matters: Callable[[str], bool] = lambda _: True) -> list[str]:
        head = new.head()
        folders = [head[:at] for at, char in enumerate(head) if char == "/"]
        near = dict.fromkeys(["", *folders, head])
        if new.path is None:
            below = head + "/" if head else ""
            near.update((each, None) for each in self._tables if each.startswith(below))
        tables = [self._tables[each] for each in near if each in self._tables]
        return [
            key
            for table in tables
            for key, each in table.items()
            if matters(key) and paths_meet(new, each)
        ]


_memo: dict[tuple[str, bool], Pattern] = {}
