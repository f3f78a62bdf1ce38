"""Reads the text of a pattern, and finds its normal form.

Braces that hold a `/` or a `**`, or that can leave a segment empty, `.` or `..`, are expanded into
paths of segments; all other braces stay in their segment. ADR 0003.
"""

from __future__ import annotations

from queenbee.core.glob.chars import (
    ANY_CHAR,
    SPECIAL,
    fold,
    outside,
    quoted,
    unwritable,
    with_both_cases,
)
from queenbee.core.glob.word_sets import STAR, Words, name_of
from queenbee.errors import BadPattern

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.core.glob.chars import Place
    from queenbee.core.glob.word_sets import Name

MAX_CHARS = 1024
MAX_DEPTH = 16
MAX_PATHS = 64
MAX_NAMES = 512
"""The choices of alternatives in all segments: more than a list that fits in a pattern has."""
MAX_SPREAD = 4096
"""The places of all paths, and of all such choices: each meets each of the other pattern."""

NO_NAMES = frozenset(("", ".", ".."))
"""What no segment of a path can be."""
_WILD: dict[str, Place | None] = {"*": STAR, "?": ANY_CHAR}
_IN_CLASS = frozenset("[]\\-!^")
_HEX = frozenset("0123456789abcdefABCDEF")


class Item:
    """A letter, a set of characters, `*`, `**`, `/` or braces: its normal text within braces, its
    column from 1, and what it accepts.
    """

    def __init__(self, text: str, column: int, accepts: Place | None = STAR) -> None:
        self.text = text
        self.column = column
        self.accepts = accepts
        self.alternatives: list[Items] = []
        """Of braces."""
        self.spans: bool = text in ("/", "**")
        """Whether braces hold a `/` or a `**`, or this is one."""


Items = list[Item]


def parse(text: str, fold_case: bool) -> tuple[str, Words]:
    """Returns the normal form, and the paths as words of names. Raises `BadPattern`."""
    plain = _plain_word(fold(text) if fold_case else text)
    if plain is not None:
        return text, Words([plain])
    reader = _Reader(text, fold_case)
    reader.check_characters()
    items = reader.sequence(0)
    branches: dict[str, list[Items]] = {}
    words, tidy = [], True
    for path in reader.paths(items):
        branch = reader.resolved(path)
        word, normal = reader.word(branch), _text(branch)
        tidy = tidy and normal == _text(path)
        branches.setdefault(normal, branch)
        if all(name.sequences for name in word if isinstance(name, Words)):
            words.append(word)
    if len(branches) > 1:
        normal = _text([items])
    if len(branches) > 1 and not tidy:
        normal = "{" + ",".join("/".join(map(_joined, each)) for each in branches.values()) + "}"
        # The new braces go around items that may already have the maximum depth.
        _Reader(normal, fold_case).sequence(0)
    if len(normal) > MAX_CHARS:
        raise reader.fail(1, f"its normal form is longer than {MAX_CHARS:,} characters")
    if not words:
        raise reader.fail(1, "it covers no path", "no segment of a path can be . or ..")
    return normal, Words(words)


def _plain_word(text: str) -> list[Name] | None:
    """Returns the names of a text in normal form without braces, classes and escapes, or None.

    That is nearly every text, and takes a tenth of the time.
    """
    segments = text.split("/")
    if (
        not (SPECIAL - {"*", "?"}).isdisjoint(text)
        or not NO_NAMES.isdisjoint(segments)
        or not text.isprintable()
        or len(text) > MAX_CHARS
        or text[0] == "!"
        or "**/**" in text
        or any(segment != "**" for segment in segments if "**" in segment)
    ):
        return None
    word: list[Name] = []
    for segment in segments:
        if segment == "**":
            word.append(STAR)
        elif "*" in segment or "?" in segment:
            word.append(name_of([[_WILD.get(char, char) for char in segment]]))
        else:
            word.append(segment)
    return word


class _Reader:
    """Reads one pattern from left to right, each character once."""

    def __init__(self, text: str, fold_case: bool) -> None:
        self.text = text
        self.fold_case = fold_case
        self.at = 0

    def fail(self, column: int, reason: str, hint: str | None = None) -> BadPattern:
        return BadPattern(self.text, column, reason, hint=hint)

    def check_characters(self) -> None:
        """Raises `BadPattern` for what is wrong whatever the syntax says."""
        text = self.text
        if not text:
            raise self.fail(1, "it is empty", "write ** for every path")
        if len(text) > MAX_CHARS:
            reason = f"it is longer than {MAX_CHARS:,} characters"
            raise BadPattern(f"{text[:40]}…", MAX_CHARS + 1, reason)
        if text[0] == "/":
            reason = "it is absolute, but patterns are relative to the root of the repository"
            raise self.fail(1, reason, f"write {text.lstrip('/') or '**'}")
        if text[0] == "!":
            reason = "it is negated, and patterns cannot exclude paths"
            raise self.fail(1, reason, "write \\! for a name that starts with !")
        for column, char in enumerate("" if text.isprintable() else text, 1):
            if unwritable(char) or char == "\0" or "\ud800" <= char <= "\udfff":
                hint = f"write {quoted(char)}" if unwritable(char) else None
                reason = f"it contains the control character U+{ord(char):04X}"
                if char >= "\ud800":
                    reason = f"U+{ord(char):04X} is not a character of UTF-8 text"
                raise self.fail(column, reason, hint)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def sequence(self, depth: int) -> Items:
        """Reads up to the end, or inside braces up to the `,` or `}` that ends an alternative."""
        items: Items = []
        while self.peek() and not (depth and self.peek() in ",}"):
            column = self.at + 1
            char = self.take()
            items += self._braces(column, depth + 1) if char == "{" else [self._item(char, column)]
        return _single_stars(items)

    def _item(self, char: str, column: int) -> Item:
        if char == "*":
            return self._stars(column)
        if char == "[":
            return self._class(column)
        if char == "?":
            return Item("?", column, ANY_CHAR)
        if char == "}":
            raise self.fail(column, "this } closes nothing", "write \\} for a brace in a name")
        return self._letter(self._escaped(column) if char == "\\" else char, column)

    def _letter(self, char: str, column: int) -> Item:
        text = "\\," if char == "," else quoted(char)
        return Item(text, column, fold(char) if self.fold_case else char)

    def _stars(self, column: int) -> Item:
        while self.peek() == "*":
            self.at += 1
        if self.at == column:
            return Item("*", column)
        before = self.text[column - 2 : column - 1]
        if self.at > column + 1 or before not in "/{," or self.peek() not in "/},":
            raise self._partial(column)
        return Item("**", column)

    def _partial(self, column: int) -> BadPattern:
        hint = "write * within a segment, **/* for any depth"
        return self.fail(column, "** must be a whole segment", hint)

    def _escaped(self, column: int) -> str:
        char = self.take()
        if not char:
            raise self.fail(column, "the backslash at the end escapes nothing")
        if char == "u":
            digits = self.text[self.at : self.at + 4]
            self.at += 4
            code = int(digits, 16) if len(digits) == 4 and _HEX.issuperset(digits) else 0
            if unwritable(chr(code)):
                return chr(code)
            reason = "\\u does not stand for a control character or a byte that is not UTF-8"
            raise self.fail(column, reason, "write any other character itself")
        if char in "/_" or char.isalnum():
            reason = f"a backslash before {char} escapes nothing"
            raise self.fail(column, reason, "separate folders with /")
        return char

    def _braces(self, column: int, depth: int) -> Items:
        if depth > MAX_DEPTH:
            raise self.fail(column, f"braces are nested deeper than {MAX_DEPTH}")
        alternatives: dict[str, Items] = {}
        end = ","
        while end == ",":
            alternative = self.sequence(depth)
            alternatives.setdefault(_joined(alternative), alternative)
            end = self.take()
        if not end:
            raise self.fail(column, "this { is never closed", "write \\{ for a brace in a name")
        if list(alternatives) == [""]:
            raise self.fail(column, "the braces are empty", "write \\{\\} for braces in a name")
        if len(alternatives) == 1:
            return next(iter(alternatives.values()))
        braces = Item("{" + ",".join(alternatives) + "}", column)
        braces.alternatives = [*alternatives.values()]
        braces.spans = any(item.spans for each in braces.alternatives for item in each)
        return [braces]

    def _class(self, column: int) -> Item:
        negated = self.peek() in ("!", "^")
        self.at += negated
        first, members = self.at, []
        while self.peek() != "]" or self.at == first:
            low_column = self.at + 1
            low = high = self._member(column, first)
            # A `-` makes a range only between two members; first or last it is literal.
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                high = self._member(column, first)
            if high < low:
                raise self.fail(low_column, f"the range {chr(low)}-{chr(high)} is reversed")
            members.append((low, high))
        self.at += 1
        ranges = outside(outside(members))
        low, high = ranges[0]
        # A lone dot stays a class: `[.]` does not mean the folder itself.
        if low == high != ord(".") and len(ranges) == 1 and not negated:
            return self._letter(chr(low), column)
        text = ("[!" if negated else "[") + "".join(map(_rendered_range, ranges)) + "]"
        others = outside(with_both_cases(ranges) if self.fold_case else ranges)
        return Item(text, column, others if negated else outside(others))

    def _member(self, opened: int, first: int) -> int:
        char = self.take()
        if char == "\\":
            char = self.take()
        elif char == "[" and self.peek() == ":":
            reason = "named classes such as [:alpha:] are not supported"
            raise self.fail(self.at, reason, "write the ranges out, as in [a-zA-Z]")
        if char and char != "/":
            return ord(char)
        column, reason = opened, "this [ is never closed"
        if char:
            column, reason = self.at, "a class never covers /"
        elif self.text[first : first + 1] == "]":
            # `[]` and `[!]`: the bracket was read as the first member.
            reason = "the class is empty"
        raise self.fail(column, reason, "write \\[ for a bracket in a name")

    def paths(self, items: Items) -> list[list[Items]]:
        """Returns one list of segments for each choice of alternatives that shapes the path."""
        found: list[Items] = []
        for spread in self._spread(items, every=False):
            paths: list[Items] = [[]]
            for segment in _segments(spread):
                # A segment that could become ``, `.` or `..` affects its neighbors.
                shaping = _dots(segment) and any(item.alternatives for item in segment)
                choices = self._spread(segment, every=True) if shaping else [segment]
                paths = [[*path, *choice, Item("/", 0)] for path in paths for choice in choices]
                self._bound(_braces_column(segment), len(paths), sum(map(len, paths)) - len(paths))
            found += [_single_stars(path[:-1]) for path in paths]
            self._bound(_braces_column(items), len(found), sum(map(len, found)))
        return list(map(_segments, found))

    def _spread(self, items: Items, every: bool, names_at: int = 0) -> list[Items]:
        """Returns the items once for each choice of alternatives: of those that span, or every."""
        results: list[Items] = [[]]
        for item in items:
            if not (item.alternatives and (every or item.spans)):
                for result in results:
                    result.append(item)
                continue
            choices: list[Items] = []
            for alternative in item.alternatives:
                choices += self._spread(alternative, every, names_at)
                self._bound(item.column, len(results) * len(choices), 0, names_at)
            results = [[*result, *choice] for result in results for choice in choices]
            self._bound(item.column, len(results), sum(map(len, results)), names_at)
        return results

    def _bound(self, column: int, count: int, size: int, names_at: int = 0) -> None:
        """Raises `BadPattern` for braces that stand for too much; `names_at` if for names."""
        if count > (MAX_NAMES if names_at else MAX_PATHS) or (count > 1 and size > MAX_SPREAD):
            reason = "these braces, with the others that contain a /, expand to too many paths"
            if names_at:
                reason = "these braces, with the others, stand for too many names"
            raise self.fail(names_at or column, reason, "reserve them as several patterns")

    def resolved(self, path: list[Items]) -> list[Items]:
        """Returns the path without empty segments, `.`, `..` and repeated `**`."""
        kept: list[Items] = []
        column = 1
        for index, segment in enumerate(path):
            column = segment[0].column if segment else column
            name = _joined(segment)
            if not name and index == 0:
                left = "empty" if len(path) == 1 else "absolute"
                raise self.fail(column, f"one choice of its braces makes the pattern {left}")
            if name == "..":
                self._leave(kept, column)
            elif name == "**" or (not name and index == len(path) - 1):
                if not kept or kept[-1][0].text != "**":
                    kept.append([Item("**", column)])
            elif partial := [item.column for item in segment if item.text == "**"]:
                raise self._partial(partial[0])
            elif name and name != ".":
                kept.append(segment)
        # A pattern for the root names a folder, and a folder means everything below it.
        return kept or [[Item("**", column)]]

    def _leave(self, kept: list[Items], column: int) -> None:
        if not kept:
            raise self.fail(column, ".. leads out of the repository", "queen hive where")
        if kept.pop()[0].text == "**":
            raise self.fail(column, ".. after ** does not name one folder")

    def word(self, path: list[Items]) -> list[Name]:
        """Returns the names of the path, in which braces are choices."""
        word: list[Name] = []
        count = size = names_at = 0
        for segment in path:
            choices = [segment]
            if any(item.alternatives for item in segment):
                names_at = names_at or _braces_column(segment)
                choices = self._spread(segment, every=True, names_at=names_at)
                count, size = count + len(choices), size + sum(map(len, choices))
                self._bound(names_at, count, size, names_at)
            places = [[item.accepts for item in _single_stars(choice)] for choice in choices]
            letters = [place for place in places[0] if isinstance(place, str)]
            if segment[0].text == "**":
                word.append(STAR)
            elif places == [letters]:
                word.append("".join(letters))
            else:
                word.append(name_of(places))
        return word


def _single_stars(items: Items) -> Items:
    # Two adjacent stars, which braces can produce, cover the same as one.
    pairs = zip(items, [None, *items], strict=False)
    return [item for item, last in pairs if not (last and item.text == last.text == "*")]


def _segments(items: Items) -> list[Items]:
    segments: list[Items] = [[]]
    for item in items:
        if item.text == "/":
            segments.append([])
        else:
            segments[-1].append(item)
    return segments


def _braces_column(items: Items) -> int:
    return next((item.column for item in items if item.alternatives), 1)


def _dots(items: Items) -> set[int]:
    """Returns how many dots (0 to 2) the items can come out as, where they can be only dots."""
    counts = {0}
    for item in items:
        steps = {1} if item.text == "." else set().union(*map(_dots, item.alternatives))
        counts = {count + step for count in counts for step in steps if count + step <= 2}
    return counts


def _text(path: list[Items]) -> str:
    names = ["".join("," if item.text == "\\," else item.text for item in name) for name in path]
    text = "/".join(names)
    # Only an unescaped first character can negate.
    return "\\" + text if text.startswith("!") else text


def _joined(items: Items) -> str:
    return "".join(item.text for item in items)


def _rendered_range(ends: tuple[int, int]) -> str:
    low, high = (("\\" + chr(code)) if chr(code) in _IN_CLASS else chr(code) for code in ends)
    if ends[0] == ends[1]:
        return low
    return low + high if ends[0] + 1 == ends[1] else f"{low}-{high}"
