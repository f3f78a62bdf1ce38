"""Compares one pattern with many: through an index, or by scanning a list once.

Both only save comparisons. Candidates are compared exactly. The others share no path, because
their literal beginnings or their literal ends differ.

Stored patterns were checked when they were written. An invalid pattern, written by another tool,
covers no path here, and `queen doctor` reports it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import chain

from queenbee.core.glob.chars import fold
from queenbee.core.glob.pattern import (
    Branch,
    Pattern,
    common_path,
    compiled,
    covers,
    literal_head,
    meeting_path,
)
from queenbee.core.glob.runs import meet
from queenbee.core.glob.segments import common_name
from queenbee.core.glob.sieve import letters_after, letters_before, shared_beginning, sift
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")
    Entry = TypeVar("Entry", bound=tuple[Any, ...])

_TAIL = 2
"""Letters of a literal end that sort patterns into bins: `.py` and `.ts` differ; bins are few."""

_OPEN = ""
"""The bin of patterns that may end in anything."""


class GlobIndex:
    """A set of patterns with keys that finds those that overlap a new one.

    It returns what comparing each of them would, in the order in which they were added.
    """

    def __init__(self, *, fold_case: bool = False) -> None:
        self._fold_case = fold_case
        self._patterns: dict[str, Pattern] = {}
        self._added: dict[str, int] = {}
        self._count = 0
        self._literal: dict[str, dict[str, None]] = {}
        self._starting: dict[str, dict[str, dict[tuple[str, int], Branch]]] = {}
        # Both in bins by literal end; in a bin sorted, so that what is below a folder is a slice.
        self._paths: dict[str, list[tuple[str, int, str]]] = {}
        self._shapes: dict[str, list[tuple[str, int, int, str, Branch]]] = {}

    def __len__(self) -> int:
        return len(self._patterns)

    def __contains__(self, key: object) -> bool:
        return key in self._patterns

    def add(self, key: str, pattern: str) -> None:
        """Adds the pattern, replacing any other with this key.

        An invalid pattern is ignored.
        """
        self.discard(key)
        new = _usable(pattern, self._fold_case)
        if new is None:
            return
        self._patterns[key] = new
        self._count += 1
        self._added[key] = added = self._count
        if new.path is not None:
            self._literal.setdefault(new.path, {})[key] = None
            insort(self._paths.setdefault(_bin(new.path), []), (new.path, added, key))
            return
        for number, branch in enumerate(new.branches):
            beginning = _beginning(branch)
            bins = self._starting.setdefault(beginning, {})
            for tail in _ends(branch):
                bins.setdefault(tail, {})[key, number] = branch
                insort(self._shapes.setdefault(tail, []), (beginning, added, number, key, branch))

    def discard(self, key: str) -> None:
        """Removes the key's pattern, if there is one."""
        old = self._patterns.pop(key, None)
        if old is None:
            return
        added = self._added.pop(key)
        if old.path is not None:
            del self._literal[old.path][key]
            if not self._literal[old.path]:
                del self._literal[old.path]
            _remove(self._paths, _bin(old.path), (old.path, added))
            return
        for number, branch in enumerate(old.branches):
            beginning = _beginning(branch)
            bins = self._starting[beginning]
            for tail in _ends(branch):
                del bins[tail][key, number]
                if not bins[tail]:
                    del bins[tail]
                _remove(self._shapes, tail, (beginning, added, number))
            if not bins:
                del self._starting[beginning]

    def overlapping(self, pattern: str) -> list[tuple[str, str]]:
        """Returns the key of each pattern that overlaps this one, with a path that both cover.

        Raises `BadPattern`.
        """
        new = compiled(pattern, self._fold_case)
        found: dict[str, str] = {}
        if new.path is not None:
            self._covering(new.path, found)
        else:
            for branch in new.branches:
                self._meeting(branch, found)
        return sorted(found.items(), key=lambda item: self._added[item[0]])

    def covering(self, path: str) -> list[str]:
        """Returns the key of each pattern that covers the path, which is literal."""
        folded = fold(path) if self._fold_case else path
        found: dict[str, str] = {}
        # `**` covers every valid path and no other.
        if covers(compiled("**"), folded):
            self._covering(folded, found)
        return sorted(found, key=self._added.__getitem__)

    def _covering(self, path: str, found: dict[str, str]) -> None:
        found.update(dict.fromkeys(self._literal.get(path, ()), path))
        runs = (tuple(path.split("/")),)
        wanted = _wanted(frozenset((_bin(path),))) or (_OPEN,)
        # `h/**` covers `h` itself.
        for shapes in self._shapes_starting(_folders(path + "/"), wanted):
            for (key, _), branch in shapes.items():
                if key not in found and meet(branch.runs, runs, common_name):
                    found[key] = path

    def _meeting(self, branch: Branch, found: dict[str, str]) -> None:
        """Adds the overlapping patterns: those that start above the branch, and those below it."""
        beginning = _beginning(branch)
        wanted = _wanted(_ends(branch))
        self._cover(branch, beginning[:-1], found)
        *above, _ = _folders(beginning)
        for starting in self._shapes_starting(above, wanted):
            for (key, _), other in starting.items():
                self._meet(branch, key, other, found)
        shapes = chain(*[_below(each, beginning) for each in _members(self._shapes, wanted)])
        paths = chain(*[_below(each, beginning) for each in _members(self._paths, wanted)])
        if _covers_all_below(branch):
            found.update((key, path) for path, _, key in paths)
            for *_, key, other in shapes:
                found.setdefault(key, other.sample)
            return
        # Without `**` the number of segments is fixed; `h/**` may cover one segment less.
        depth = len(branch.runs[0]) if len(branch.runs) == 1 else None
        for start, *_, key, other in shapes:
            if depth is None or start.count("/") <= depth:
                self._meet(branch, key, other, found)
        for path, _, key in paths:
            if key not in found and (depth is None or path.count("/") == depth - 1):
                self._cover(branch, path, found)

    def _shapes_starting(
        self, folders: Iterable[str], wanted: tuple[str, ...] | None
    ) -> Iterator[dict[tuple[str, int], Branch]]:
        for folder in folders:
            bins = self._starting.get(folder)
            if bins is not None:
                yield from _members(bins, wanted)

    def _meet(self, branch: Branch, key: str, other: Branch, found: dict[str, str]) -> None:
        if key not in found:
            path = meeting_path(branch, other)
            if path is not None:
                found[key] = path

    def _cover(self, branch: Branch, path: str, found: dict[str, str]) -> None:
        keys = self._literal.get(path)
        if keys and meet(branch.runs, (tuple(path.split("/")),), common_name):
            found.update(dict.fromkeys(keys, path))


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


def scan_overlapping(
    pattern: str, patterns: Iterable[tuple[Key, str]], fold_case: bool = False
) -> list[tuple[Key, str]]:
    """Returns the key of each pattern that overlaps this one, with a path that both cover.

    An invalid one among the patterns overlaps nothing. Raises `BadPattern` for `pattern`.
    """
    new = compiled(pattern, fold_case)
    found = []
    for key, text in candidates(pattern, patterns, fold_case=fold_case):
        other = _usable(text, fold_case)
        path = common_path(new, other) if other is not None else None
        if path is not None:
            found.append((key, path))
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


def _beginning(branch: Branch) -> str:
    """Returns the literal folders that the branch begins with, each with its `/`."""
    return "".join(name + "/" for name in literal_head(branch))


def _covers_all_below(branch: Branch) -> bool:
    """Returns whether the branch is `**` below literal folders."""
    runs = branch.runs
    return len(runs) == 2 and not runs[1] and len(literal_head(branch)) == len(runs[0])


def _folders(folder: str) -> Iterator[str]:
    """Returns the root, each folder on the way and the folder itself, each with its `/`."""
    at = 0
    while at >= 0:
        yield folder[:at]
        at = folder.find("/", at) + 1 or -1


def _bin(name: str) -> str:
    tail = name[-_TAIL:]
    return _OPEN if len(tail) < _TAIL or "/" in tail else tail


def _ends(branch: Branch) -> frozenset[str]:
    """Returns the bins in which the branch's paths can end."""
    if not branch.runs[-1]:
        return frozenset((_OPEN,))
    segment = branch.runs[-1][-1]
    if isinstance(segment, str):
        return frozenset((_bin(segment),))
    if segment.choices is None:
        return frozenset((_OPEN,))
    lasts = [runs[-1] for runs in segment.choices]
    ends = frozenset(_bin(last) if isinstance(last, str) else _OPEN for last in lasts)
    return frozenset((_OPEN,)) if _OPEN in ends else ends


def _wanted(ends: frozenset[str]) -> tuple[str, ...] | None:
    """Returns the bins that can hold patterns with these ends, or None for all of them."""
    return None if _OPEN in ends else (*ends, _OPEN)


def _members(bins: dict[str, Value], wanted: tuple[str, ...] | None) -> list[Value]:
    if wanted is None:
        return list(bins.values())
    return [bins[tail] for tail in wanted if tail in bins]


def _below(members: list[Entry], beginning: str) -> list[Entry]:
    """Returns the entries of a sorted list whose first value begins with this."""
    if not beginning:
        return members
    start = bisect_left(members, (beginning,))
    # `0` is the character after `/`.
    return members[start : bisect_left(members, (beginning[:-1] + "0",))]


def _remove(bins: dict[str, list[Entry]], tail: str, entry: tuple[object, ...]) -> None:
    members = bins[tail]
    del members[bisect_left(members, entry)]
    if not members:
        del bins[tail]
