"""What patterns mean, decided by other means than the product's: slow, plain, and independent.

Braces are expanded as text, a path is matched by naive recursion, and whether two patterns share
a path is settled by walking letter by letter through both at once, over a handful of letters.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

import extent
from hypothesis import settings
from hypothesis import strategies as st

LETTERS = "ab."
"""The letters that enumerated names are made of."""

STRANGER = "~"
"""A letter that no generated pattern names: what only a wildcard or a negated class takes."""


GLOBSTAR = "\x01"
"""Stands for a `**` that was written as such; two stars that braces bring together are stars."""


def examples(count: int) -> settings:
    """Returns the settings for so many examples, each of which may take the time it takes."""
    return settings(max_examples=extent.examples(count))


def usable(name: str) -> bool:
    """Returns whether a path can have a segment of this name."""
    return name not in ("", ".", "..")


NAMES = [
    name
    for length in (1, 2, 3)
    for name in map("".join, product(LETTERS, repeat=length))
    if usable(name) and (length < 3 or name in ("aaa", "aba", "a.b", "b.a", "..."))
]
PATHS = [
    "/".join(names)
    for depth in (1, 2, 3)
    for names in product(NAMES if depth < 3 else NAMES[:7], repeat=depth)
]


def expansions(pattern: str) -> list[str]:
    """Returns the pattern once for each choice of alternatives, with its `**` marked."""
    return _expanded(re.sub(r"(\\.)|\*\*", lambda found: found[1] or GLOBSTAR, pattern))


def _expanded(pattern: str) -> list[str]:
    opened = _find_brace(pattern)
    if opened is None:
        return [pattern]
    depth, starts, at = 0, [opened + 1], opened
    ends = []
    while True:
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _class_end(pattern, at)
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                ends.append(at)
                break
        elif char == "," and depth == 1:
            ends.append(at)
            starts.append(at + 1)
        at += 1
    head, tail = pattern[:opened], pattern[at + 1 :]
    choices = [pattern[start:end] for start, end in zip(starts, ends, strict=True)]
    return [text for choice in choices for text in _expanded(head + choice + tail)]


def segments(expansion: str) -> list[str]:
    """Returns the segments that an expansion stands for, as texts."""
    resolved: list[str] = []
    parts = expansion.split("/")
    for index, part in enumerate(parts):
        if part == ".." and resolved:
            resolved.pop()
        elif part == "" and index == len(parts) - 1:
            resolved.append(GLOBSTAR)
        elif part not in ("", "."):
            resolved.append(part)
    return resolved or [GLOBSTAR]


def covered(pattern: str, path: str) -> bool:
    """Returns whether the pattern covers the path, by naive recursion."""
    names = path.split("/")
    if not all(map(usable, names)):
        return False
    return any(_path_covered(parts, names) for parts in _meanings(pattern))


@lru_cache(maxsize=64)
def _meanings(pattern: str) -> list[list[str]]:
    return [segments(text) for text in expansions(pattern)]


def share_a_path(one: str, other: str) -> bool:
    """Returns whether some path, of any length, is covered by both."""
    letters = sorted(set(one + other + "/" + STRANGER))
    return any(
        _walk(mine, theirs, letters) for mine in _meanings(one) for theirs in _meanings(other)
    )


def _find_brace(pattern: str) -> int | None:
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            at = _class_end(pattern, at)
        elif pattern[at] == "{":
            return at
        at += 1
    return None


def _class_end(pattern: str, at: int) -> int:
    at += 1
    if pattern[at] in "!^":
        at += 1
    first = at
    while pattern[at] != "]" or at == first:
        at += 2 if pattern[at] == "\\" else 1
    return at


def _path_covered(parts: list[str], names: list[str]) -> bool:
    if not parts:
        return not names
    if parts[0] == GLOBSTAR:
        return any(_path_covered(parts[1:], names[skip:]) for skip in range(len(names) + 1))
    return bool(names) and _name_covered(parts[0], names[0]) and _path_covered(parts[1:], names[1:])


def _name_covered(part: str, name: str) -> bool:
    if not part:
        return not name
    if part[0] == "*":
        return any(_name_covered(part[1:], name[skip:]) for skip in range(len(name) + 1))
    length = _token_length(part)
    return (
        bool(name)
        and _letter_covered(part[:length], name[0])
        and _name_covered(part[length:], name[1:])
    )


def _token_length(part: str) -> int:
    if part[0] == "[":
        return _class_end(part, 0) + 1
    return 2 if part[0] == "\\" else 1


def _letter_covered(token: str, letter: str) -> bool:
    if token == "?":
        return True
    if token[0] == "\\":
        return token[1] == letter
    if token[0] != "[":
        return token == letter
    inside = token[1:-1]
    negated = inside[0] in "!^"
    members = inside[negated:]
    found, at = False, 0
    while at < len(members):
        at += members[at] == "\\"
        low = high = members[at]
        at += 1
        if members[at : at + 1] == "-" and at + 1 < len(members):
            at += 1
            at += members[at] == "\\"
            high = members[at]
            at += 1
        found = found or low <= letter <= high
    return found != negated


def _walk(mine: list[str], theirs: list[str], letters: list[str]) -> bool:
    """Walks all words at once: what remains of each side, and the name that is being spelled."""
    start = (_closed({(tuple(mine), True)}), _closed({(tuple(theirs), True)}), "")
    waiting, seen = [start], {start}
    while waiting:
        one, other, name = waiting.pop()
        if usable(name) and _done(one) and _done(other):
            return True
        for letter in letters:
            if letter == "/":
                if not usable(name):
                    continue
                longer = ""
            else:
                longer = (name + letter)[:3] if set(name + letter) == {"."} else STRANGER
            state = (_after(one, letter), _after(other, letter), longer)
            if state[0] and state[1] and state not in seen:
                seen.add(state)
                waiting.append(state)
    return False


def _closed(states: set[tuple[tuple[str, ...], bool]]) -> frozenset:
    """Adds what is reached without a letter. A state is what remains, and whether a name begins."""
    waiting = list(states)
    while waiting:
        parts, begins = waiting.pop()
        more = []
        if begins and parts and parts[0] == GLOBSTAR:
            more = [(parts[1:], True), (("*", *parts), False)]
        elif parts and parts[0][:1] == "*":
            more = [((parts[0][1:], *parts[1:]), False)]
        for state in more:
            if state not in states:
                states.add(state)
                waiting.append(state)
    return frozenset(states)


def _after(states: frozenset, letter: str) -> frozenset:
    reached = set()
    for parts, begins in states:
        if not parts or (begins and parts[0] == GLOBSTAR):
            continue
        part = parts[0]
        if letter == "/":
            if part == "" and not begins:
                reached.add((parts[1:], True))
        elif part[:1] == "*":
            reached.add((parts, False))
        elif part:
            length = _token_length(part)
            if _letter_covered(part[:length], letter):
                reached.add(((part[length:], *parts[1:]), False))
    return _closed(reached)


def _done(states: frozenset) -> bool:
    return any(
        not begins and parts[:1] == ("",) and all(part == GLOBSTAR for part in parts[1:])
        for parts, begins in states
    )


_letters = st.sampled_from(["a", "b", ".", "a", "b", "\\*", "\\[", "\\{", "~"])
_classes = st.sampled_from(["[ab]", "[!a]", "[^b.]", "[a-b]", "[.]", "[!.]", "[]a]", "[\\]b-]"])
_tokens = st.one_of(_letters, _letters, st.sampled_from(["*", "?"]), _classes)


def _no_double_star(text: str) -> str:
    while "**" in text:
        text = text.replace("**", "*")
    return text


_plain_names = st.lists(_tokens, min_size=1, max_size=4).map("".join).map(_no_double_star)
_groups = (
    st.lists(
        st.lists(_tokens, max_size=3).map("".join).map(_no_double_star), min_size=1, max_size=3
    )
    .filter(any)
    .map(lambda choices: "{" + ",".join(choices) + "}")
)
_braced_names = st.tuples(
    st.sampled_from(["", "a", "?"]),
    _groups,
    st.sampled_from(["", "b"]),
    st.one_of(_groups, st.just("")),
).map("".join)
_segments = st.one_of(
    _plain_names, _plain_names, st.just("**"), st.just("**"), _braced_names, st.just("*")
)
_wide_groups = st.lists(
    st.lists(_segments, min_size=1, max_size=2).map("/".join), min_size=2, max_size=3
).map(lambda choices: "{" + ",".join(choices) + "}")

plain_patterns = st.lists(
    st.one_of(_plain_names, _plain_names, st.just("**"), st.just("*")), min_size=1, max_size=4
).map("/".join)
patterns = st.lists(
    st.one_of(_segments, _segments, _segments, _wide_groups), min_size=1, max_size=4
).map("/".join)
"""Patterns of every construct over a few letters. Some are refused: `usable_patterns` are not."""

_star_names = (
    st.lists(st.sampled_from(["*", "*", "a", "b", "?", "[!a]"]), min_size=2, max_size=9)
    .map("".join)
    .map(_no_double_star)
)
_star_paths = st.lists(
    st.sampled_from(["**", "**", "a", "b", "?", "a*"]), min_size=2, max_size=7
).map("/".join)
starry_patterns = st.one_of(_star_names, _star_names, _star_paths)
"""Patterns with many stars of one kind, of which the runs between have to find a place."""

_words_of_trees = st.sampled_from(["src", "src", "lib", "auth", "ab", "ac", "a", ".x"])
_files_of_trees = st.sampled_from(
    ["a.py", "b.py", "a.ts", "b", "*", "*.py", "a*", "?.ts", "**", "**", "[ab].py"]
)
real_patterns = st.tuples(st.lists(_words_of_trees, max_size=3), _files_of_trees).map(
    lambda parts: "/".join([*parts[0], parts[1]])
)
wide_patterns = st.sampled_from(
    [
        "{src,lib}/*.py",
        "{src/a.py,lib/**}",
        "*.{py,ts}",
        "**/*.{py,md}",
        "{src/**,docs}/a.py",
        "src{,/ab}/b",
    ]
)
untidy_patterns = st.sampled_from(
    [
        r"./src/a.py",
        r"x/../src/*",
        r"src/",
        r"src//a.py",
        r"src/./*.py",
        r"{.,a}/src/b",
        r".{,x}/src",
        r"src/.",
        r"lib/{.,a}{.,b}/src",
        r"ab/{a,}.",
        r"ab/\.",
        r"src/{..,a}/lib",
        r"..",
        r"src/[",
        r"a/{b/,.}",
        r"SRC/A.py",
    ]
)
texts = st.one_of(
    real_patterns,
    real_patterns,
    real_patterns,
    wide_patterns,
    untidy_patterns,
    patterns,
    plain_patterns,
)
"""Patterns as a hive has them, some of them of other tools: invalid, or not in normal form."""
