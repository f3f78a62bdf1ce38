"""Glob patterns: their normal form, the paths they cover, and whether two share a path.

All answers are exact: they compare the languages of the patterns. `docs/format.md`, section
"Patterns"; ADR 0003.
"""

from __future__ import annotations

from queenbee.core.glob.chars import ANY_CHAR, Chars, everything_but, fold, fold_char, fold_ranges
from queenbee.core.glob.parse import (
    ANY,
    GLOBSTAR,
    MAX_CHARS,
    SPECIAL,
    STAR,
    Group,
    escaped,
    parse,
    unwritable,
)
from queenbee.core.glob.runs import meet
from queenbee.core.glob.segments import Segment, common_name, sample_name
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.core.glob.chars import Part
    from queenbee.core.glob.parse import Item

    Run = tuple[str | Segment, ...]

_MEMO_SIZE = 1024
"""How many parsed patterns and segments are cached: 0.6 MB of typical ones."""

_NO_NAMES = frozenset(("", ".", ".."))
_WILD: dict[str, Part] = {"*": None, "?": ANY_CHAR}
_INVOLVED = frozenset("[{}\\")


class Branch:
    """One sequence of segments: the runs between its `**`, of names and `Segment`s."""

    __slots__ = ("runs",)

    def __init__(self, runs: tuple[Run, ...]) -> None:
        self.runs = runs


class Pattern:
    """A parsed pattern, ready to compare; `path` is its only path, if it is literal."""

    __slots__ = ("branches", "normal", "path")

    def __init__(self, normal: str, branches: tuple[Branch, ...]) -> None:
        self.normal = normal
        self.branches = branches
        self.path: str | None = None
        if len(branches) == len(branches[0].runs) == 1:
            names = [name for name in branches[0].runs[0] if isinstance(name, str)]
            if len(names) == len(branches[0].runs[0]):
                self.path = "/".join(names)


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
    one, other = (a, b) if a <= b else (b, a)
    return common_path(compiled(one, fold_case), compiled(other, fold_case))


def matches(pattern: str, path: str, *, fold_case: bool = False) -> bool:
    """Returns whether the pattern covers the path, which is literal and from the root.

    No pattern covers a path with an empty segment, `.` or `..`. Raises `BadPattern` for the
    pattern only.
    """
    return covers(compiled(pattern, fold_case), fold(path) if fold_case else path)


def escape(path: str) -> str:
    """Returns the pattern that covers exactly this path. Raises `BadPattern` if none can."""
    names = path.split("/")
    if not _NO_NAMES.isdisjoint(names):
        first = next(index for index, name in enumerate(names) if name in _NO_NAMES)
        column = sum(len(name) + 1 for name in names[:first]) + 1
        raise BadPattern(path, column, "it is not a path from the root with a name between slashes")
    text = "".join(
        escaped(char) if char in SPECIAL or (unwritable(char) and char != "\0") else char
        for char in path
    )
    return parse("\\" + text if text[0] == "!" else text).normal


def is_literal(pattern: str) -> bool:
    """Returns whether the pattern names exactly one path.

    Raises `BadPattern`.
    """
    return compiled(pattern).path is not None


def literal_path(pattern: str) -> str | None:
    """Returns the path that a literal pattern names, unescaped, or None. Raises `BadPattern`."""
    return compiled(pattern).path


def literal_prefix(pattern: str) -> str:
    """Returns the folder that holds, or is, everything covered: `src/auth` of `src/auth/*.py`.

    A literal pattern is its own prefix; `""` is the root. Raises `BadPattern`.
    """
    return head_of(compiled(pattern))


def head_of(pattern: Pattern) -> str:
    """Returns the literal path that holds, or is, everything that the pattern covers."""
    if pattern.path is not None:
        return pattern.path
    heads = [literal_head(branch) for branch in pattern.branches]
    shared: list[str] = []
    for names in zip(*heads, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


def compiled(text: str, fold_case: bool = False) -> Pattern:
    """Returns the parsed pattern, cached for the next time. Raises `BadPattern`."""
    memo = _folded if fold_case else _exact
    pattern = memo.get(text)
    if pattern is None:
        pattern = _compile(text, fold_case)
        if len(memo) >= _MEMO_SIZE:
            memo.clear()
        memo[text] = pattern
    return pattern


def common_path(one: Pattern, other: Pattern) -> str | None:
    """Returns a path that both cover, or None."""
    if one.path is not None and other.path is not None:
        return one.path if one.path == other.path else None
    for mine in one.branches:
        for theirs in other.branches:
            path = meeting_path(mine, theirs)
            if path is not None:
                return path
    return None


def meeting_path(one: Branch, other: Branch) -> str | None:
    """Returns a path that both branches cover, or None."""
    meeting = meet(one.runs, other.runs, common_name)
    if meeting is None:
        return None
    head, tail, _ = meeting
    return "/".join(head + tail) or "x"


def covers(pattern: Pattern, path: str) -> bool:
    """Returns whether the pattern covers the path, folded if the pattern is."""
    names = tuple(path.split("/"))
    if pattern.path is not None or not _NO_NAMES.isdisjoint(names):
        return path == pattern.path
    return any(meet(branch.runs, (names,), common_name) for branch in pattern.branches)


def _compile(text: str, fold_case: bool) -> Pattern:
    segments = _simple_segments(fold(text) if fold_case else text)
    if segments is not None and len(text) <= MAX_CHARS:
        return Pattern(text, (_branch(segments),))
    tree = parse(text)
    branches = (
        _branch(
            [
                None if items[0][0] == GLOBSTAR else _segment(_parts(items, fold_case))
                for items in segments
            ]
        )
        for segments in tree.branches
    )
    able = tuple(filter(_covers_something, branches))
    if not able:
        raise BadPattern(text, 1, "it covers no path", hint="no segment of a path can be . or ..")
    return Pattern(tree.normal, able)


def _simple_segments(text: str) -> list[str | Segment | None] | None:
    """Returns the segments of a text without classes, braces and escapes; None stands for `**`.

    It saves the cost of `parse` for a text that is its own normal form, as nearly all are.
    Returns None if the text needs `parse`.
    """
    names = text.split("/")
    if (
        not _INVOLVED.isdisjoint(text)
        or not _NO_NAMES.isdisjoint(names)
        or not text.isprintable()
        or text[0] == "!"
    ):
        return None
    segments: list[str | Segment | None] = []
    for name in names:
        if "*" not in name and "?" not in name:
            segments.append(name)
        elif name == "**" and (not segments or segments[-1] is not None):
            segments.append(None)
        elif "**" in name:
            return None
        else:
            segments.append(_segment(tuple(_WILD.get(char, char) for char in name)))
    return segments


def _branch(segments: list[str | Segment | None]) -> Branch:
    runs: list[list[str | Segment]] = [[]]
    for segment in segments:
        if segment is None:
            # `**` covers any number of segments, or none.
            runs.append([])
        else:
            runs[-1].append(segment)
    return Branch(tuple(map(tuple, runs)))


def _covers_something(branch: Branch) -> bool:
    return all(sample_name(segment) is not None for run in branch.runs for segment in run)


def _segment(parts: tuple[Part, ...]) -> str | Segment:
    segment = _segments.get(parts)
    if segment is None:
        letters = [part for part in parts if isinstance(part, str)]
        if len(letters) == len(parts):
            return "".join(letters)
        if len(_segments) >= _MEMO_SIZE:
            _segments.clear()
        segment = _segments[parts] = Segment(parts)
    return segment


def _parts(items: list[Item], fold_case: bool) -> tuple[Part, ...]:
    parts: list[Part] = []
    for what, _ in items:
        if isinstance(what, str):
            parts.append(fold_char(what) if fold_case else what)
        elif isinstance(what, Group):
            parts.append(tuple(_parts(choice, fold_case) for choice in what.alternatives))
        elif isinstance(what, tuple):
            negated, ranges = what
            if fold_case:
                # Fold before negating: `[!a]` does not cover `A` either.
                ranges = fold_ranges(ranges)
            parts.append(Chars(everything_but(ranges) if negated else ranges, fold_case))
        elif what == ANY:
            parts.append(ANY_CHAR)
        else:
            assert what == STAR
            parts.append(None)
    return tuple(parts)


def literal_head(branch: Branch) -> list[str]:
    names = []
    for segment in branch.runs[0]:
        if not isinstance(segment, str):
            break
        names.append(segment)
    return names


_exact: dict[str, Pattern] = {}
_folded: dict[str, Pattern] = {}
_segments: dict[tuple[Part, ...], Segment] = {}


_ENDS = frozenset("*?[]{}\\,/")


def why_apart(left: str, right: str) -> str:
    """Returns the simplest reason why two patterns that do not overlap share no path.

    It explains the verdict of `glob.overlap` and decides nothing. Raises `BadPattern`.
    """
    if is_literal(left) and is_literal(right):
        return f"{literal_path(left)} and {literal_path(right)} are different paths"
    for one, other in ((left, right), (right, left)):
        path = literal_path(one)
        if path is not None and not matches(other, path):
            return f"{other} does not cover {path}, the only path of {one}"
    folders = literal_prefix(left).split("/"), literal_prefix(right).split("/")
    if any(mine != theirs for mine, theirs in zip(*folders, strict=False) if mine and theirs):
        return f"one is in {literal_prefix(left)}/, the other in {literal_prefix(right)}/"
    ends = _literal_end(left), _literal_end(right)
    if all(ends) and not (ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])):
        return f"one matches names ending in {ends[0]}, the other in {ends[1]}"
    return "no path fits both patterns"


def _literal_end(pattern: str) -> str:
    """Returns the literal text that every path of the pattern ends in, or ""."""
    if "{" in pattern or "\\" in pattern or pattern.endswith("**"):
        return ""
    begin = len(pattern)
    while begin > 0 and pattern[begin - 1] not in _ENDS:
        begin -= 1
    return pattern[begin:]
