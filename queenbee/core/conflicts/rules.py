"""The rules by which a conflict joins without anybody: each returns the lines, or None where it
does not apply.

What each got right on the merges of public projects is in ADR 0036; `make replay` measures it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.conflicts import lists, neighbours
from queenbee.core.conflicts.manifests import is_manifest
from queenbee.core.conflicts.markers import ended, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from queenbee.core.conflicts.markers import Conflict

    Lines = list[bytes]
    Rule = Callable[[Conflict], Lines | None]

_LEAST_SORTED = 5
"""Fewer lines are too often in order by chance."""
_VERSION = re.compile(
    rb"(?<![\w.])v?(\d++(?:\.\d++)++)([-.]?(?:dev|a|alpha|b|beta|c|rc|post)\.?)?(\d*)(?![\w.]*\d)"
    rb"|\b(\d{4})-(\d\d)-(\d\d)\b"
)
_SAYS_VERSION = re.compile(
    rb"(?:(?<![A-Za-z])[Vv]ersion|(?<=[a-z])Version|(?<![A-Za-z])VERSION)[A-Za-z]*[\W_]*$"
)
"""What stands before a version: the word, which is not that of a conversion, and signs."""
_SETS = re.compile(rb"(?<![=<>!~^|])[=:]\s*$")
"""What stands before a number that is the whole value: a timeout, say, or a rate."""
_PLAIN = 2
"""A number with so many parts may be such a value: `1.5`."""
_CLOSES = re.compile(rb"\s*[\])}]")
_BULLET = re.compile(rb"\s*[-*+]\s")
_KEYWORDS = frozenset({b"from", b"import"})
_HEADING = re.compile(
    rb"\s*(?:#{1,6}\s|([=\-~^+*'`.\"])\1{2,}\s*$|\*\*[^*]+\*\*\s*$|v?\d+\.\d+\S*\s|[*+-]\s*$)"
)
"""A heading or the line under it, a version that was released, or a bullet without a text."""
_TITLE = re.compile(rb"#{1,6}\s|=+\s|v?\d+\.\d")
_UNDERLINE = re.compile(rb"\s*([=\-~^+*'`.\"])\1{2,}\s*$")
_NOT_OUT = re.compile(
    rb"(?i)unreleased|not yet released|upcoming|\bnext\b|\bt\.?b\.?[adr]\b|\bx{2,4}-x{2}|\bdev\b"
)
"""What the heading of a release says that is not out yet."""
_WORD = re.compile(rb"[^\W\d_]\w+")
_TEXTS = (".md", ".markdown", ".rst", ".adoc", ".txt", ".tex", ".org")
"""Elsewhere, a comment looks like a heading."""


def identical(conflict: Conflict) -> Lines | None:
    """Joins sides that differ in white space at the ends of lines at most."""
    return conflict.main if _bare(conflict.main) == _bare(conflict.branch) else None


def greater_version(conflict: Conflict) -> Lines | None:
    """Joins lines that differ in what comes after the word "version" alone: the greater ones if no
    side went back. Any other such number may be an argument or an address.
    """
    return _greater(conflict, lambda before, _: _SAYS_VERSION.search(before) is not None)


def greater_number(conflict: Conflict) -> Lines | None:
    """Joins lines that differ in versions or dates alone, as in a manifest. A plain number that is
    a value, such as that of a timeout, is none unless the line says so.
    """
    return _greater(
        conflict,
        lambda before, parts: (
            parts > _PLAIN or not _SETS.search(before) or bool(_SAYS_VERSION.search(before))
        ),
    )


def _greater(conflict: Conflict, is_version: Callable[[bytes, int], bool]) -> Lines | None:
    main, branch, base = conflict.main, conflict.branch, conflict.base
    if not main or len(main) != len(branch) or len(base) not in (0, len(main)):
        return None
    main_is_greater = set()
    for number, lines in enumerate(zip(main, branch, strict=True)):
        texts = [*lines, *base[number : number + 1]]
        if len({_VERSION.sub(b"\0", each.rstrip()) for each in texts}) > 1 or _excludes(lines):
            return None
        for one, other, *before in zip(*map(_versions, texts), strict=True):
            if one[0] != other[0] or any(min(one[1], other[1]) < each[1] for each in before):
                return None
            if one[:2] != other[:2]:
                if not (is_version(one[2], len(one[1])) and is_version(other[2], len(other[1]))):
                    return None
                main_is_greater.add(one > other)
    if len(main_is_greater) != 1:
        return None
    return main if main_is_greater.pop() else branch


def sorted_block(conflict: Conflict) -> Lines | None:
    """Joins entries that both sides added to a sorted block, and keeps it sorted."""
    main, branch, base = (_bare(each) for each in (conflict.main, conflict.branch, conflict.base))
    added = [set(main) - set(base), set(branch) - set(base)]
    both = {*main, *branch}
    indents = {_indent(each) for each in both}
    if not all(added) or not set(base) <= set(main) & set(branch) or len(indents) != 1:
        return None
    firsts = [{_first_word(each) for each in side - other} for side, other in (added, added[::-1])]
    if lists.are_alike(*firsts) or len({*firsts[0], *firsts[1]} & _KEYWORDS) > 1:
        return None
    before = _sorted_run(_bare(conflict.before)[::-1], indents, bytes.__gt__)[::-1]
    after = _sorted_run(_bare(conflict.after), indents, bytes.__lt__)
    sides = [[*before, *each, *after] for each in (main, branch)]
    if not all(len(each) >= _LEAST_SORTED and _is_sorted(each) for each in sides):
        return None
    lines = {each.rstrip(): each for each in (*conflict.branch, *conflict.main)}
    return ended([lines[each] for each in sorted(both)])


def listed_names(conflict: Conflict) -> Lines | None:
    """Joins names that both sides added to a list, or to what is imported, however it is wrapped;
    or to several of these, one below the other.
    """
    sides = (conflict.base, conflict.main, conflict.branch)
    base, main, branch = map(lists.read, sides)
    if main and branch and (base or not conflict.base):
        around = lists.Around() if base and main.head else None
        if not main.head and not main.opening.strip():
            is_last = main.closing.strip() or _CLOSES.match(b"".join(conflict.after))
            if is_last or (main.comma and branch.comma):
                around = lists.around(conflict.before, conflict.after)
        if around is None:
            return None
        text = lists.joined(base, main, branch, around)
        return text.splitlines(keepends=True) if text is not None else None
    found = [*map(lists.statements, sides)]
    if len({*map(len, found)}) > 1:
        return None
    joined = [_one_list(*each) for each in zip(*found, strict=True)]
    return [line for each in joined if each for line in each] if all(joined) else None


def _one_list(base: Lines, main: Lines, branch: Lines) -> Lines | None:
    if main == branch:
        return main
    before, one, other = map(lists.read, (base, main, branch))
    if not (before and one and other and before.head):
        return None
    text = lists.joined(before, one, other, lists.Around())
    return text.splitlines(keepends=True) if text is not None else None


def both_added(conflict: Conflict) -> Lines | None:
    """Joins lines that both sides only added: the branch's first, and what both have at the edges
    once. A heading begins a part of its own, and its place is for somebody to choose.
    """
    head, rest, tail = trimmed(conflict)
    if conflict.base or any(_HEADING.match(each) for each in (*rest.main, *rest.branch)):
        return None
    return _one_after_the_other(head, rest, tail)


def next_release(conflict: Conflict) -> Lines | None:
    """Joins what both sides added under a heading for a release that is not out yet: under the one
    that landed if both may mean one release, else as two sections, the greater version first.
    """
    head, rest, tail = trimmed(conflict)
    main, branch = _unreleased(rest.main), _unreleased(rest.branch)
    if conflict.base or not main or not branch:
        return None
    one, other = ([each[:2] for each in _versions(side[0][0])] for side in (main, branch))
    if one and other and one != other:
        if one[0][0] != other[0][0]:
            return None
        first, second = (rest.main, rest.branch) if one > other else (rest.branch, rest.main)
        blank = [] if _is_blank(first[-1]) else [b"\n"]
        return ended([*head, *ended(first), *blank, *second, *tail])
    entries = both_added(replace(rest, main=main[1], branch=branch[1]))
    return ended([*head, *main[0], *entries, *tail]) if entries is not None else None


def _unreleased(lines: Lines) -> tuple[Lines, Lines] | None:
    """Returns the heading of a release that is not out, and what is below it; None if lines begin
    with anything else, or have a second release.
    """
    titles = [
        at
        for at, (line, below) in enumerate(pairwise([*lines, b""]))
        if not _is_blank(line) and (_TITLE.match(line) or _UNDERLINE.match(below))
    ]
    releases = [at for at in titles if _VERSION.search(lines[at]) or _NOT_OUT.search(lines[at])]
    if not releases or releases[1:] or not all(map(_is_blank, lines[: releases[0]])):
        return None
    at = releases[0]
    if not _NOT_OUT.search(lines[at]):
        return None
    size = 2 if _UNDERLINE.match(b"".join(lines[at + 1 : at + 2])) else 1
    return lines[at : at + size], lines[at + size :]


APPENDED: Mapping[str, Rule] = {
    "identical": identical,
    "both kept": both_added,
    "next release": next_release,
}
"""The rules for files that everybody appends to, in the order in which they are tried."""
SURE: Mapping[str, Rule] = {
    "identical": identical,
    "greater version": greater_version,
    "sorted": sorted_block,
}
"""The rules for all other files."""
KEPT: Mapping[str, Rule] = {
    **SURE,
    "names joined": listed_names,
    "entries kept": neighbours.entries,
    "definitions kept": neighbours.definitions,
    "sections kept": neighbours.sections,
}
"""The rules for these, where a check runs on the result and the branches have parted lately."""
LATELY_S = 14 * 24 * 3600
"""Of additions to branches that parted longer ago, one has often been moved or dropped since."""


def in_file(path: str, rules: Mapping[str, Rule]) -> Mapping[str, Rule]:
    """Returns the rules as they count for a file that nobody appends to."""
    if is_manifest(path):
        rules = {**rules, "greater version": greater_number}
    if path.lower().endswith(_TEXTS):
        return rules
    return {name: rule for name, rule in rules.items() if rule is not neighbours.sections}


class Joint(NamedTuple):
    """Where a conflict was joined: by which rule, and the lines of the result, with the number of
    the first one.
    """

    rule: str
    first: int
    lines: Lines


def settle(conflict: Conflict, rules: Mapping[str, Rule]) -> tuple[str, Lines] | None:
    """Returns the first rule that joins a conflict, with its lines; None if there is none."""
    for name, rule in rules.items():
        lines = rule(conflict)
        if lines is not None:
            return name, lines
    return None


def join(text: bytes, rules: Mapping[str, Rule]) -> tuple[bytes, list[Joint]] | None:
    """Returns a marked text without its conflicts, and where they were; None unless the rules join
    each of them.
    """
    between, conflicts = parts(text)
    lines = list(between[0])
    places = []
    for conflict, rest in zip(conflicts, between[1:], strict=True):
        settled = settle(conflict, rules)
        if settled is None:
            return None
        places.append(Joint(settled[0], len(lines) + 1, settled[1]))
        lines += [*settled[1], *rest]
    return b"".join(ended(lines)), places


def trimmed(conflict: Conflict) -> tuple[Lines, Conflict, Lines]:
    """Returns the lines both begin with, the conflict without them, and those both end with.

    An entry of several lines stays whole: both may end in the same line and be about two things.
    """
    main, branch = conflict.main, conflict.branch
    most = min(len(main), len(branch))
    head = next((at for at in range(most) if main[at] != branch[at]), most)
    while 0 < head < most and (_goes_on(main[head]) or _goes_on(branch[head])):
        head -= 1
    most -= head
    tail = next((at for at in range(most) if main[-1 - at] != branch[-1 - at]), most)
    while 0 < tail < most and _goes_on(main[-tail]):
        tail -= 1
    rest = replace(
        conflict, main=main[head : len(main) - tail], branch=branch[head : len(branch) - tail]
    )
    return main[:head], rest, main[len(main) - tail :]


def _goes_on(line: bytes) -> bool:
    """Returns whether a line goes on with the one before: it is further in, and no entry."""
    return line[:1] in (b" ", b"\t") and not _is_blank(line) and not _BULLET.match(line)


def _one_after_the_other(head: Lines, rest: Conflict, tail: Lines) -> Lines:
    """Returns both additions, the branch's first, with the blank lines around them between them."""
    blank = list(takewhile(_is_blank, reversed(head))) or list(takewhile(_is_blank, tail))
    is_one_list = _is_tight_list(rest.branch) and _is_tight_list(rest.main)
    between = blank if rest.main and rest.branch and not is_one_list else []
    return ended([*head, *rest.branch, *between, *rest.main, *tail])


def _is_tight_list(lines: Lines) -> bool:
    return bool(lines and _BULLET.match(lines[0])) and not any(map(_is_blank, lines))


def _excludes(lines: Sequence[bytes]) -> bool:
    """Returns whether lines differ in a version that is not to be used: both are not."""
    return len({*_bare(lines)}) > 1 and any(b"!=" in each for each in lines)


def _versions(text: bytes) -> list[tuple[bytes, list[int], bytes]]:
    """Returns each version or date: its form, its numbers, and what is before it in the line. Only
    those of one form compare.
    """
    found = []
    for each in _VERSION.finditer(text):
        numbers = each[1].split(b".") if each[1] else each.group(4, 5, 6)
        stage = [each[3]] if each[2] and each[3] else []
        parts_of = [int(one) for one in (*numbers, *stage)]
        found.append((each[2] or b"", parts_of, text[: each.start()]))
    return found


def _bare(lines: Iterable[bytes]) -> Lines:
    return [each.rstrip() for each in lines]


def _first_word(line: bytes) -> bytes:
    found = _WORD.search(line)
    return found[0] if found else line


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip())]


def _is_blank(line: bytes) -> bool:
    return not line.strip()


def _sorted_run(
    lines: Iterable[bytes], indents: set[bytes], goes_on: Callable[[bytes, bytes], bool]
) -> Lines:
    """Returns the first of the lines, up to where the indentation or the order ends."""
    run: Lines = []
    for each in lines:
        if not each or _indent(each) not in indents or (run and not goes_on(run[-1], each)):
            break
        run.append(each)
    return run


def _is_sorted(lines: Sequence[bytes]) -> bool:
    return all(a < b for a, b in pairwise(lines))
