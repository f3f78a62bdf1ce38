"""What both sides added at one place, where each of it is whole: definitions, sections, entries.

Both are kept, in the order of landing, if no two have a name in common and not half of their words.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from queenbee.core.conflicts import lists
from queenbee.core.conflicts.markers import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.core.conflicts.markers import Conflict

    Lines = list[bytes]
    Split = Callable[[Conflict, Lines], Lines]
    """Returns the names of what the lines of a side are; none if there is anything else."""

_MOST_SHIFTED = 12
_DEFINITION = re.compile(
    rb"\s*(?:(?:export|default|pub(?:\([\w ]+\))?|public|private|protected|internal|static|final"
    rb"|abstract|override|async|unsafe|const|extern)\s+)*(?:(?:def|class|function\*?|func|fn"
    rb"|struct|enum|interface|trait|type|impl|module)\s+(?:\([^)]*\)\s*)?([\w.$?!]+)"
    rb"|(?:it|test|describe|context|suite)\(\s*(\"[^\"]*\"|'[^']*'|`[^`]*`))"
)
_NOTE = re.compile(rb"\s*(?:#|@|//|/\*|\*)")
_CLOSER = re.compile(rb"\s*(?:[\])}][\])};,]*|end)\s*$")
_BULLET = re.compile(rb"\s*(?:[-*+]|\d+[.)])\s+(\S.*)")
_KEY = re.compile(rb"""\s*([\w.$-]+|"[^"]*"|'[^']*')\s*(?::|=>?)\s*\S[^#]*,\s*(?:(?:#|//).*)?$""")
_MEMBER = re.compile(rb"\s*([A-Za-z]\w*)\s*=\s*(\S[^#]*)(?:#.*)?$")
_ENUM = re.compile(rb"\s*class\s+\w+\(.*(?:Enum|Flag|Choices)\b.*\):")
_TITLE = re.compile(rb"(#{1,6})\s+(\S.*)")
_UNDERLINE = re.compile(rb"([=\-~^+*'`\"#])\1{2,}\s*$")
_WORD = re.compile(rb"[^\W\d_]\w+")
_COMMON = frozenset(
    (
        b"and as assert async auto await bool break case catch class const continue def"
        b" default do elif else end enum err except expect export extends false False final"
        b" finally fn for from func function if import in int is it lambda let new nil None not"
        b" null of or pass pub public pytest raise return self static str string struct super"
        b" switch test the then this throw to true True try type var void while with yield"
    ).split()
)
"""Words that say nothing of what something is about."""


def definitions(conflict: Conflict) -> Lines | None:
    """Joins whole functions, tests and classes that both sides only added."""
    return _both(conflict, _definitions, is_spaced=True)


def sections(conflict: Conflict) -> Lines | None:
    """Joins sections of a text, each with its heading, that both sides only added."""
    return _both(conflict, _sections, is_spaced=True)


def entries(conflict: Conflict) -> Lines | None:
    """Joins entries that both sides only added: of a list with bullets, of a table of keys in
    brackets, members of an enumeration.
    """
    found = (_both(conflict, each) for each in (_bullets, _keys, _members))
    return next((each for each in found if each is not None), None)


def _both(conflict: Conflict, split: Split, *, is_spaced: bool = False) -> Lines | None:
    for moved in _shifted(conflict) if not conflict.base else ():
        main, branch = (split(moved, each) for each in (moved.main, moved.branch))
        if main and branch:
            is_twice = len({*main, *branch}) < len(main) + len(branch)
            if is_twice or _are_alike(moved.main, moved.branch):
                return None
            return _one_after_the_other(moved, len(conflict.before), is_spaced=is_spaced)
    return None


def _shifted(conflict: Conflict) -> Iterator[Conflict]:
    """Yields the conflict as git has it, and as it may be meant: where what was added ends as the
    lines before it end, it may begin that many lines earlier.
    """
    rows = zip(*map(reversed, (conflict.before, conflict.main, conflict.branch)), strict=False)
    most = sum(1 for _ in takewhile(lambda row: row[0] == row[1] == row[2], rows))
    for count in range(min(most, _MOST_SHIFTED) + 1):
        cut = len(conflict.before) - count
        before, moved = conflict.before[:cut], conflict.before[cut:]
        main, branch = (
            [*moved, *side[: len(side) - count]] for side in (conflict.main, conflict.branch)
        )
        yield replace(
            conflict, main=main, branch=branch, before=before, after=[*moved, *conflict.after]
        )


def _one_after_the_other(moved: Conflict, place: int, *, is_spaced: bool) -> Lines:
    """Returns both additions, as lines at the place where git has the conflict."""
    sides = [moved.main, moved.branch]
    if len(_indent_of(sides[0])) < len(_indent_of(sides[1])):
        sides.reverse()  # What is further in belongs to what is before it.
    first, second = sides
    has_gap = not is_spaced or not first[-1].strip() or not second[0].strip()
    blank = takewhile(lambda each: not each.strip(), reversed(moved.before))
    lines = ended([*first, *(() if has_gap else blank), *second])
    count = place - len(moved.before)
    return [*lines[count:], *lines[:count]]


def _are_alike(main: Lines, branch: Lines) -> bool:
    """Returns whether half the words of one are the other's too: it may be the same, twice."""
    words = [{*_WORD.findall(b"".join(each))} - _COMMON for each in (main, branch)]
    return 2 * len(words[0] & words[1]) >= min(map(len, words))


def _definitions(conflict: Conflict, side: Lines) -> Lines:
    found: Lines = []
    has_note = False
    indent = _indent_of(side)
    for line in side:
        defined = _DEFINITION.match(line)
        if not line.strip() or line[len(indent) :][:1].isspace():
            continue
        if not line.startswith(indent):
            return []
        if defined:
            found.append(defined[1] or defined[2])
        elif not _NOTE.match(line) and (has_note or not found or not _CLOSER.match(line)):
            return []
        has_note = not defined and _NOTE.match(line) is not None
    is_whole = not has_note and _is_whole(b"".join(side))
    return found if is_whole and not _goes_on(conflict, indent, found) else []


def _goes_on(conflict: Conflict, indent: bytes, names: Lines) -> bool:
    """Returns whether lines around an addition belong to it, or define the same."""
    following = next(filter(bytes.strip, conflict.after), b"")
    before = next(filter(bytes.strip, reversed(conflict.before)), b"")
    if len(_indent_of([following])) > len(indent) or before.lstrip().startswith(b"@"):
        return True
    around = [each for each in (*conflict.before, *conflict.after) if _indent_of([each]) == indent]
    return any(each and (each[1] or each[2]) in names for each in map(_DEFINITION.match, around))


def _sections(_: Conflict, side: Lines) -> Lines:
    found: Lines = []
    first = b""
    for line, below in zip(side, [*side[1:], b""], strict=True):
        title = _TITLE.match(line)
        under = _UNDERLINE.match(below) if line.strip() else None
        level = title[1] if title else under[1] if under else b""
        if level and level == (first or level):
            first = level
            found.append(title[2].strip() if title else line.strip())
        elif line.strip() and not found:
            return []
    return found


def _bullets(_: Conflict, side: Lines) -> Lines:
    found: Lines = []
    indent = _indent_of(side)
    for line in side:
        bullet = _BULLET.match(line)
        if bullet and _indent_of([line]) == indent:
            found.append(bullet[1].strip())
        elif not found or (line.strip() and len(_indent_of([line])) <= len(indent)):
            return []
    return found


def _keys(conflict: Conflict, side: Lines) -> Lines:
    found = _of_lines(_KEY, side)
    if not found or lists.around(conflict.before, conflict.after) is None:
        return []
    return [each[1].strip(b"\"'") for each in found]


def _members(conflict: Conflict, side: Lines) -> Lines:
    """Returns the names and the values: two members with one value would be one."""
    inner = len(_indent_of(side))
    above = (each for each in reversed(conflict.before) if each.strip())
    head = next((each for each in above if len(_indent_of([each])) < inner), b"")
    found = _of_lines(_MEMBER, side) if _ENUM.match(head) else []
    values = (b"=" + each[2].strip() for each in found)
    return [*(each[1] for each in found), *(each for each in values if each != b"=auto()")]


def _of_lines(pattern: re.Pattern[bytes], side: Lines) -> list[re.Match[bytes]]:
    """Returns the matches if each line is whole, has one, and is as far in as the others."""
    found = [each for each in map(pattern.match, side) if each]
    is_one = len({_indent_of([each]) for each in side}) == 1 and all(map(_is_whole, side))
    return found if is_one and len(found) == len(side) else []


def _indent_of(lines: Lines) -> bytes:
    """Returns the white space before the first of the lines that is not blank."""
    line = next(filter(bytes.strip, lines), b"")
    return line[: len(line) - len(line.lstrip())]


def _is_whole(text: bytes) -> bool:
    """Returns whether a text closes what it opens."""
    pairs = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    quotes = (b'"""', b"'''")
    return all(text.count(a) == text.count(b) for a, b in pairs) and not any(
        text.count(each) % 2 for each in quotes
    )
