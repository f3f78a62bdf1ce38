"""Reads the text of a pattern, and finds its normal form.

Braces that hold a `/` or a `**` are expanded into **branches**, one sequence of segments each; all
other braces stay in their segment. ADR 0003.
"""

from __future__ import annotations

from queenbee.core.glob.chars import merged
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.core.glob.chars import Ranges

    Class = tuple[bool, Ranges]
    """A character class: whether it is negated, and its ranges as written."""

    Item = tuple["str | int | Class | Group", int]
    """A literal character, a mark, a class or a group; and its column, from 1."""

    Segment = list[Item]

ANY, STAR, GLOBSTAR, SLASH = range(4)
_MARKS = {ANY: "?", STAR: "*", GLOBSTAR: "**", SLASH: "/"}

MAX_CHARS = 1024
MAX_DEPTH = 16
MAX_BRANCHES = 64
MAX_NAMES = 512
"""The choices of alternatives of all segments together: more than a list that fits in a pattern."""
MAX_SPREAD = 4096
"""The items of all branches together, and of all such choices: each is compared with each of the
other pattern."""

SPECIAL = frozenset("*?[{}\\")
"""Characters with a special meaning; a `]`, and a `,` outside braces, have none."""

_IN_CLASS = frozenset("[]\\-!^")

_HEX = frozenset("0123456789abcdefABCDEF")


def unwritable(char: str) -> bool:
    r"""Returns whether a pattern writes this character of a path as `\uHHHH`.

    They are control characters, and bytes that are not UTF-8 as Python reads them from the file
    system. They do not survive terminals, logs or JSON, but a file may be named with them.
    """
    code = ord(char)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xDC80 <= code < 0xDD00


def escaped(char: str) -> str:
    r"""Returns the text that stands for this one character: `\[`, `\u000a`."""
    return f"\\u{ord(char):04x}" if unwritable(char) else "\\" + char


class Group:
    """A pair of braces with at least two different alternatives."""

    __slots__ = ("alternatives", "spans")

    def __init__(self, alternatives: list[list[Item]]) -> None:
        self.alternatives = alternatives
        self.spans: bool = any(
            what in (SLASH, GLOBSTAR) or (isinstance(what, Group) and what.spans)
            for alternative in alternatives
            for what, _ in alternative
        )


class Tree:
    """A parsed pattern: its branches and its normal form."""

    __slots__ = ("branches", "normal")

    def __init__(self, branches: list[list[Segment]], normal: str) -> None:
        self.branches = branches
        self.normal = normal


def parse(text: str) -> Tree:
    """Returns the pattern that the text means. Raises `BadPattern`."""
    _check_characters(text)
    reader = _Reader(text)
    items = reader.sequence(0)
    branches: dict[str, list[Segment]] = {}
    tidy = True
    for spread in reader.spread_paths(items):
        branch = reader.resolve(spread)
        reader.refuse_too_many_names(branch)
        tidy = tidy and branch == spread
        branches.setdefault(render(_flat(branch)), branch)
    if len(branches) == 1:
        (normal,) = branches
    elif tidy:
        normal = render(items)
    else:
        normal = render([(Group([_flat(branch) for branch in branches.values()]), 1)])
        # The new braces go around items that may already have the maximum depth.
        _Reader(normal).sequence(0)
    if len(normal) > MAX_CHARS:
        raise reader.fail(1, f"its normal form is longer than {MAX_CHARS:,} characters")
    return Tree(list(branches.values()), normal)


def render(items: list[Item]) -> str:
    """Returns the one text for these items."""
    text = _render(items, 0)
    # Only an unescaped first character can negate.
    return "\\" + text if text.startswith("!") else text


def _check_characters(text: str) -> None:
    if not text:
        raise BadPattern(text, 1, "it is empty", hint="write ** for every path")
    if len(text) > MAX_CHARS:
        raise BadPattern(
            f"{text[:40]}…", MAX_CHARS + 1, f"it is longer than {MAX_CHARS:,} characters"
        )
    if text[0] == "/":
        reason = "it is absolute, but patterns are relative to the root of the repository"
        raise BadPattern(text, 1, reason, hint=f"write {text.lstrip('/') or '**'}")
    if text[0] == "!":
        reason = "it is negated, and patterns cannot exclude paths"
        raise BadPattern(text, 1, reason, hint="write \\! for a name that starts with !")
    if text.isprintable():
        return
    for index, char in enumerate(text):
        code = ord(char)
        hint = f"write {escaped(char)}" if unwritable(char) and code else None
        if code < 0x20 or 0x7F <= code < 0xA0:
            reason = f"it contains the control character U+{code:04X}"
            raise BadPattern(text, index + 1, reason, hint=hint)
        if 0xD800 <= code < 0xE000:
            reason = f"U+{code:04X} is not a character of UTF-8 text"
            raise BadPattern(text, index + 1, reason, hint=hint)


class _Reader:
    """Reads one pattern from left to right, each character once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, column: int, reason: str, hint: str | None = None) -> BadPattern:
        return BadPattern(self.text, column, reason, hint=hint)

    def sequence(self, depth: int) -> list[Item]:
        """Reads up to the end, or inside braces up to the `,` or `}` that ends an alternative."""
        text = self.text
        items: list[Item] = []
        while self.at < len(text):
            char, column = text[self.at], self.at + 1
            if depth and char in ",}":
                break
            self.at += 1
            if char == "*":
                self._stars(items, column)
            elif char == "{":
                for item in self._group(column, depth + 1):
                    _append(items, item)
            elif char == "}":
                raise self.fail(column, "this } closes nothing", "write \\} for a brace in a name")
            elif char == "[":
                items.append((self._class(column), column))
            elif char == "\\":
                items.append((self._escaped(column), column))
            else:
                items.append(({"?": ANY, "/": SLASH}.get(char, char), column))
        return items

    def _stars(self, items: list[Item], column: int) -> None:
        text = self.text
        while text[self.at : self.at + 1] == "*":
            self.at += 1
        if self.at == column:
            _append(items, (STAR, column))
            return
        before, after = text[column - 2 : column - 1], text[self.at : self.at + 1]
        if self.at - column > 1 or before not in "/{," or after not in "/},":
            raise self._partial(column)
        items.append((GLOBSTAR, column))

    def _partial(self, column: int) -> BadPattern:
        reason = "** must be a whole segment"
        return self.fail(column, reason, "write * within a segment, **/* for any depth")

    def _escaped(self, column: int) -> str:
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if not char:
            raise self.fail(column, "the backslash at the end escapes nothing")
        if char == "u":
            digits = self.text[self.at : self.at + 4]
            self.at += 4
            code = int(digits, 16) if len(digits) == 4 and _HEX.issuperset(digits) else 0
            if code and unwritable(chr(code)):
                return chr(code)
            reason = "\\u does not stand for a control character or a byte that is not UTF-8"
            raise self.fail(column, reason, "write any other character itself")
        if char == "/" or char == "_" or char.isalnum():
            reason = f"a backslash before {char} escapes nothing"
            raise self.fail(column, reason, "separate folders with /")
        return char

    def _group(self, column: int, depth: int) -> list[Item]:
        if depth > MAX_DEPTH:
            raise self.fail(column, f"braces are nested deeper than {MAX_DEPTH}")
        alternatives: list[list[Item]] = []
        texts = set()
        end = ","
        while end == ",":
            alternative = self.sequence(depth)
            end = self.text[self.at : self.at + 1]
            self.at += 1
            if not end:
                reason = "this { is never closed"
                raise self.fail(column, reason, "write \\{ for a brace in a name")
            text = _render(alternative, depth)
            if text not in texts:
                texts.add(text)
                alternatives.append(alternative)
        if alternatives == [[]]:
            raise self.fail(column, "the braces are empty", "write \\{\\} for braces in a name")
        if len(alternatives) == 1:
            return alternatives[0]
        return [(Group(alternatives), column)]

    def _class(self, column: int) -> str | Class:
        text = self.text
        negated = text[self.at : self.at + 1] in ("!", "^")
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = self.at
        while text[self.at : self.at + 1] != "]" or self.at == first:
            low_column = self.at + 1
            low = high = self._member(column, first)
            # A `-` makes a range only between two members; first or last it is literal.
            if text[self.at : self.at + 1] == "-" and text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                high = self._member(column, first)
                if high < low:
                    reason = f"the range {chr(low)}-{chr(high)} is reversed"
                    raise self.fail(low_column, reason)
            ranges.append((low, high))
        self.at += 1
        (low, high), *others = merged(ranges)
        # A lone dot stays a class: `[.]` does not mean the folder itself.
        if low == high != ord(".") and not others and not negated:
            return chr(low)
        return negated, ((low, high), *others)

    def _member(self, opened: int, first: int) -> int:
        text = self.text
        char = text[self.at : self.at + 1]
        self.at += 1
        if char == "\\":
            char = text[self.at : self.at + 1]
            self.at += 1
        elif char == "[" and text[self.at : self.at + 1] == ":":
            reason = "named classes such as [:alpha:] are not supported"
            raise self.fail(self.at, reason, "write the ranges out, as in [a-zA-Z]")
        if not char:
            # `[]` and `[!]`: the bracket was read as the first member.
            if text[first : first + 1] == "]":
                raise self.fail(opened, "the class is empty", "write \\[ for a bracket in a name")
            raise self.fail(opened, "this [ is never closed", "write \\[ for a bracket in a name")
        if char == "/":
            raise self.fail(self.at, "a class never covers /", "write \\[ for a bracket in a name")
        return ord(char)

    def spread_paths(self, items: list[Item]) -> list[list[Segment]]:
        """Returns one list of segments for each choice of alternatives that shapes the path."""
        paths: list[list[Segment]] = []
        for flat in self._spread(items, every=False):
            segments = _split(flat)
            choices: list[list[Item]] = [[]]
            for index, segment in enumerate(segments):
                names = [segment]
                # A segment that could become ``, `.` or `..` affects its neighbours.
                if any(isinstance(what, Group) for what, _ in segment) and _dots(segment):
                    names = self._spread(segment, every=True)
                slash: list[Item] = [(SLASH, 0)] if index else []
                choices = self._bounded(
                    [[*choice, *slash, *name] for choice in choices for name in names], segment
                )
            paths += [_split(choice) for choice in choices]
            self._bounded([_flat(path) for path in paths], items)
        return paths

    def _spread(self, items: list[Item], every: bool) -> list[list[Item]]:
        results: list[list[Item]] = [[]]
        for item in items:
            what = item[0]
            if isinstance(what, Group) and (every or what.spans):
                options: list[list[Item]] = []
                for alternative in what.alternatives:
                    options += self._spread(alternative, every)
                    if len(results) * len(options) > MAX_BRANCHES:
                        raise self._too_many(item[1])
                joined = [[*result, *option] for result in results for option in options]
                results = self._bounded(joined, [item])
            else:
                for result in results:
                    result.append(item)
        return results

    def _bounded(self, results: list[list[Item]], origin: list[Item]) -> list[list[Item]]:
        if len(results) > MAX_BRANCHES or (
            len(results) > 1 and sum(map(len, results)) > MAX_SPREAD
        ):
            raise self._too_many(
                next((column for what, column in origin if isinstance(what, Group)), 1)
            )
        return results

    def refuse_too_many_names(self, branch: list[Segment]) -> None:
        """Raises `BadPattern` if the braces within segments stand for too much."""
        braced = [each for each in branch if any(isinstance(what, Group) for what, _ in each)]
        extents = list(map(_extent, braced))
        counts, sizes = sum(count for count, _ in extents), sum(size for _, size in extents)
        if counts > MAX_NAMES or sizes > MAX_SPREAD:
            column = next(column for what, column in braced[0] if isinstance(what, Group))
            reason = "these braces, with the others, stand for too many names"
            raise self.fail(column, reason, "reserve them as several patterns")

    def _too_many(self, column: int) -> BadPattern:
        reason = "these braces, with the others that contain a /, expand to too many paths"
        return self.fail(column, reason, "reserve them as several patterns")

    def resolve(self, segments: list[Segment]) -> list[Segment]:
        """Returns the branch without empty segments, `.`, `..` and repeated `**`."""
        resolved: list[Segment] = []
        column = 1
        for index, segment in enumerate(segments):
            column = segment[0][1] if segment else column
            name = [what for what, _ in segment]
            if not name and index == 0:
                left = "empty" if len(segments) == 1 else "absolute"
                raise self.fail(column, f"one choice of its braces makes the pattern {left}")
            if name == [".", "."]:
                self._leave(resolved, column)
            elif name == [GLOBSTAR] or (not name and index == len(segments) - 1):
                if not resolved or resolved[-1][0][0] != GLOBSTAR:
                    resolved.append([(GLOBSTAR, column)])
            elif GLOBSTAR in name:
                raise self._partial(segment[name.index(GLOBSTAR)][1])
            elif name and name != ["."]:
                resolved.append(segment)
        # A pattern for the root names a folder, and a folder means everything below it.
        return resolved or [[(GLOBSTAR, column)]]

    def _leave(self, resolved: list[Segment], column: int) -> None:
        if not resolved:
            raise self.fail(column, ".. leads out of the repository", "queen hive where")
        if resolved[-1][0][0] == GLOBSTAR:
            raise self.fail(column, ".. after ** does not name one folder")
        resolved.pop()


def _append(items: list[Item], item: Item) -> None:
    # Two adjacent stars, which braces can produce, cover the same as one.
    if item[0] == STAR and items and items[-1][0] == STAR:
        return
    items.append(item)


def _split(items: list[Item]) -> list[Segment]:
    segments: list[Segment] = [[]]
    for item in items:
        if item[0] == SLASH:
            segments.append([])
        else:
            _append(segments[-1], item)
    return segments


def _flat(segments: list[Segment]) -> list[Item]:
    items: list[Item] = []
    for index, segment in enumerate(segments):
        items += [(SLASH, 0), *segment] if index else segment
    return items


def _extent(items: list[Item]) -> tuple[int, int]:
    """Returns how many choices of alternatives the items have, and the items of all of them."""
    count, size = 1, 0
    for what, _ in items:
        more, long = 1, 1
        if isinstance(what, Group):
            extents = list(map(_extent, what.alternatives))
            more, long = sum(each for each, _ in extents), sum(each for _, each in extents)
        count, size = count * more, size * more + count * long
    return count, size


def _dots(items: list[Item]) -> set[int]:
    """Returns how many dots (0 to 2) the items can come out as, where they can be only dots."""
    counts = {0}
    for what, _ in items:
        if isinstance(what, Group):
            steps = set().union(*map(_dots, what.alternatives))
        else:
            steps = {1} if what == "." else set()
        counts = {count + step for count in counts for step in steps if count + step <= 2}
    return counts


def _render(items: list[Item], depth: int) -> str:
    parts = []
    for what, _ in items:
        if isinstance(what, str):
            escape = what in SPECIAL or (depth > 0 and what == ",") or unwritable(what)
            parts.append(escaped(what) if escape else what)
        elif isinstance(what, int):
            parts.append(_MARKS[what])
        elif isinstance(what, Group):
            alternatives = [_render(alternative, depth + 1) for alternative in what.alternatives]
            parts.append("{" + ",".join(alternatives) + "}")
        else:
            negated, ranges = what
            members = "".join(map(_render_range, ranges))
            parts.append(("[!" if negated else "[") + members + "]")
    return "".join(parts)


def _render_range(ends: tuple[int, int]) -> str:
    low, high = (("\\" + chr(code)) if chr(code) in _IN_CLASS else chr(code) for code in ends)
    if ends[0] == ends[1]:
        return low
    return low + high if ends[0] + 1 == ends[1] else f"{low}-{high}"
