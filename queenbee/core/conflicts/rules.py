"""The rules by which a conflict joins without anybody: each returns the lines, or None where it
does not apply.

What each got right on the merges of public projects is in ADR 0035; `make replay` measures it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple

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
    rb"(?<![\w.])v?(\d+(?:\.\d+)+)([-.]?(?:dev|a|alpha|b|beta|c|rc|post)\.?)?(\d*)(?![\w.]*\d)"
    rb"|\b(\d{4})-(\d\d)-(\d\d)\b"
)
_SAYS_VERSION = re.compile(
    rb"(?<![A-Za-z])[Vv]ersion|(?<=[a-z])Version|(?<![A-Za-z])VERSION"
)  # Not a conversion.
_ITEM = rb"""\s*(?:[A-Za-z_][\w.]*(?: as \w+)?|"[^"\\,]*"|'[^'\\,]*')\s*"""
_ITEMS = rb"(%s(?:,%s)*)" % (_ITEM, _ITEM)
_IMPORT = re.compile(rb"(\s*(?:from\s+\S+\s+)?import\s+\(?)" + _ITEMS + rb"(,?\)?)")
_LIST = re.compile(rb"(.*[=:]\s*[\[({])" + _ITEMS + rb"(,?[\])}],?)")
_ENTRY = re.compile(_ITEM + rb",(?:\s*#.*)?")
_DEFINITION = re.compile(
    rb"\s*(?:export\s+)?(?:default\s+)?(?:pub\s+)?(?:async\s+)?"
    rb"(?:(?:def|class|function|func|fn)\s|(?:it|test|describe)\()"
)
_BULLET = re.compile(rb"\s*[-*+]\s")
_KEYWORDS = frozenset({b"from", b"import"})
_NOTE = re.compile(rb"\s*(?:#|@|//)")
_DEFINED = re.compile(
    rb"^\s*(?:async\s+)?(?:def|class|function|func|fn|const|let|var|type|struct|enum|interface)"
    rb"\s+(\w+)|^\s*([\w.]+)\s*(?::[^=]*)?=(?!=)|^\s*[\"']([^\"']+)[\"']\s*:",
    re.MULTILINE,
)
_HEADING = re.compile(
    rb"\s*(?:#{1,6}\s|([=\-~^+*'`.\"])\1{2,}\s*$|\*\*[^*]+\*\*\s*$|v?\d+\.\d+\S*\s|[*+-]\s*$)"
)
"""A heading or the line under it, a version that was released, or a bullet without a text."""
_WORD = re.compile(rb"[^\W\d_]\w+")


def identical(conflict: Conflict) -> Lines | None:
    """Joins sides that differ in white space at the ends of lines at most."""
    return conflict.main if _bare(conflict.main) == _bare(conflict.branch) else None


def greater_version(conflict: Conflict) -> Lines | None:
    """Joins lines that say "version" where they differ, and differ in versions or dates alone: the
    greater ones if no side went back. Elsewhere, such a number may be an argument or an address.
    """
    sides = zip(conflict.main, conflict.branch, strict=False)
    differing = [each for pair in sides if pair[0].rstrip() != pair[1].rstrip() for each in pair]
    return greater_number(conflict) if all(map(_SAYS_VERSION.search, differing)) else None


def greater_number(conflict: Conflict) -> Lines | None:
    """Joins lines that differ in versions or dates alone, whatever they say, as in a manifest."""
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
            if one != other:
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
    if _are_alike(*firsts) or len({*firsts[0], *firsts[1]} & _KEYWORDS) > 1:
        return None
    before = _sorted_run(_bare(conflict.before)[::-1], indents, bytes.__gt__)[::-1]
    after = _sorted_run(_bare(conflict.after), indents, bytes.__lt__)
    sides = [[*before, *each, *after] for each in (main, branch)]
    if not all(len(each) >= _LEAST_SORTED and _is_sorted(each) for each in sides):
        return None
    lines = {each.rstrip(): each for each in (*conflict.branch, *conflict.main)}
    return ended([lines[each] for each in sorted(both)])


def listed_names(conflict: Conflict) -> Lines | None:
    """Joins names that both sides added to a list on one line, or to what one line imports."""
    main, branch, base = conflict.main, conflict.branch, conflict.base
    if not len(main) == len(branch) == len(base):
        return None
    joined = [_one_line(*sides) for sides in zip(base, main, branch, strict=True)]
    found = [each for each in joined if each is not None]
    return found if len(found) == len(joined) else None


def both_added(conflict: Conflict) -> Lines | None:
    """Joins lines that both sides only added: the branch's first, and what both have at the edges
    once. A heading begins a part of its own, and its place is for somebody to choose.
    """
    head, rest, tail = trimmed(conflict)
    if conflict.base or any(_HEADING.match(each) for each in (*rest.main, *rest.branch)):
        return None
    return _one_after_the_other(head, rest, tail)


def entries_apart(conflict: Conflict) -> Lines | None:
    """Joins entries of a list, one on each line, that both sides only added, if none are alike."""
    return _apart(conflict, "entries")


def definitions_apart(conflict: Conflict) -> Lines | None:
    """Joins whole definitions that both sides only added, if nothing in them is alike."""
    return _apart(conflict, "definitions")


def _apart(conflict: Conflict, shape: str) -> Lines | None:
    head, rest, tail = trimmed(conflict)
    sides = (rest.main, rest.branch)
    shapes = {_shape(each, conflict.after) for each in sides}
    if conflict.base or _WORD.search(b"".join(head)) or len(shapes) != 1:
        return None
    found = shapes.pop()
    if found is None or found[0] != shape:
        return None
    lines = [{each for each in _bare(side) if _WORD.search(each)} for side in sides]
    words = [set(_WORD.findall(b"".join(each))) for each in sides]
    defined = [_defined(b"".join(each)) for each in sides]
    if lines[0] & lines[1] or defined[0] & defined[1]:
        return None
    if 2 * len(words[0] & words[1]) >= min(map(len, words)):
        return None
    return _one_after_the_other(head, rest, tail)


APPENDED: Mapping[str, Rule] = {"identical": identical, "both kept": both_added}
"""The rules for files that everybody appends to, in the order in which they are tried."""
SURE: Mapping[str, Rule] = {
    "identical": identical,
    "greater version": greater_version,
    "sorted": sorted_block,
    "names joined": listed_names,
}
"""The rules for all other files."""
CHECKED: Mapping[str, Rule] = {**SURE, "entries kept": entries_apart}
"""The rules for these, where a check runs on the result."""
ALL: Mapping[str, Rule] = {**CHECKED, "definitions kept": definitions_apart}
"""The same with those that are too often wrong to be used unless somebody says so."""


def in_file(path: str, rules: Mapping[str, Rule]) -> Mapping[str, Rule]:
    """Returns the rules as they count for a file that nobody appends to."""
    return {**rules, "greater version": greater_number} if is_manifest(path) else rules


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
    """Returns the lines both begin with, the conflict without them, and those both end with."""
    main, branch = conflict.main, conflict.branch
    most = min(len(main), len(branch))
    head = next((at for at in range(most) if main[at] != branch[at]), most)
    most -= head
    tail = next((at for at in range(most) if main[-1 - at] != branch[-1 - at]), most)
    rest = replace(
        conflict, main=main[head : len(main) - tail], branch=branch[head : len(branch) - tail]
    )
    return main[:head], rest, main[len(main) - tail :]


def _one_after_the_other(head: Lines, rest: Conflict, tail: Lines) -> Lines:
    """Returns both additions, the branch's first, with the blank lines around them between them."""
    blank = list(takewhile(_is_blank, reversed(head))) or list(takewhile(_is_blank, tail))
    is_one_list = _is_tight_list(rest.branch) and _is_tight_list(rest.main)
    between = blank if rest.main and rest.branch and not is_one_list else []
    return ended([*head, *rest.branch, *between, *rest.main, *tail])


def _is_tight_list(lines: Lines) -> bool:
    return bool(lines and _BULLET.match(lines[0])) and not any(map(_is_blank, lines))


def _shape(lines: Lines, after: Lines) -> tuple[str, bytes] | None:
    """Returns what all of some lines are, with their indentation: `entries` or `definitions`."""
    said = [each for each in lines if not _is_blank(each)]
    if not said or not _is_whole(b"".join(said)):
        return None
    indent = _indent(said[0])
    if all(_ENTRY.fullmatch(each.rstrip()) and _indent(each) == indent for each in said):
        return "entries", indent
    top = [each for each in said if _indent(each) == indent]
    following = next((each for each in after if not _is_blank(each)), b"")
    if any(len(_indent(each)) < len(indent) for each in said):
        return None
    if len(_indent(following)) > len(indent):
        return None
    first = next((each for each in top if not _NOTE.match(each)), b"")
    return ("definitions", indent) if _DEFINITION.match(first) else None


def _is_whole(text: bytes) -> bool:
    """Returns whether a text closes what it opens."""
    pairs = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    quotes = (b'"""', b"'''")
    return all(text.count(a) == text.count(b) for a, b in pairs) and not any(
        text.count(each) % 2 for each in quotes
    )


def _one_line(base: bytes, main: bytes, branch: bytes) -> bytes | None:
    if main == branch:
        return main
    for pattern in (_IMPORT, _LIST):
        found = [pattern.fullmatch(each.rstrip()) for each in (base, main, branch)]
        frames = {(each[1], each[3]) if each else None for each in found}
        if len(frames) != 1 or (frame := frames.pop()) is None:
            continue
        items = [[one.strip() for one in each[2].split(b",")] for each in found if each]
        added = [set(each) - set(items[0]) for each in items[1:]]
        both = added[0] & added[1]
        if all(set(items[0]) <= set(each) for each in items) and not _are_alike(
            added[0] - both, added[1] - both
        ):
            end = main[len(main.rstrip()) :]
            return frame[0] + b", ".join(_names(*items[1:])) + frame[1] + end
    return None


def _are_alike(one: set[bytes], other: set[bytes]) -> bool:
    """Returns whether two names may be tries at one: `_sleep` and `sleep`, `view` and `views`."""
    bare = [[each.strip(b"_\"' ").lower() for each in side] for side in (one, other)]
    return any(a.startswith(b) or b.startswith(a) for a in bare[0] for b in bare[1])


def _names(main: Sequence[bytes], branch: Sequence[bytes]) -> Lines:
    """Returns the names of two lists, each once; sorted if both are."""
    both = dict.fromkeys((*main, *branch))
    return sorted(both) if _is_sorted(main) and _is_sorted(branch) else list(both)


def _excludes(lines: Sequence[bytes]) -> bool:
    """Returns whether lines differ in a version that is not to be used: both are not."""
    return len({*_bare(lines)}) > 1 and any(b"!=" in each for each in lines)


def _versions(text: bytes) -> list[tuple[bytes, list[int]]]:
    """Returns each version or date: its form, and its numbers. Only those of one form compare."""
    found = []
    for each in _VERSION.finditer(text):
        numbers = each[1].split(b".") if each[1] else each.group(4, 5, 6)
        stage = [each[3]] if each[2] and each[3] else []
        found.append((each[2] or b"", [int(one) for one in (*numbers, *stage)]))
    return found


def _defined(text: bytes) -> set[bytes]:
    return {name for names in _DEFINED.findall(text) for name in names if name}


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
