"""Compares one pattern with many: through an index, or by scanning a list once.

Both only save comparisons. Candidates are compared exactly. The others share no path, because
their literal beginnings or their literal ends differ.

Stored patterns were checked when they were written. An invalid pattern, written by another tool,
covers no path here, and `queen doctor` reports it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import chain, count

from queenbee.core.glob.chars import fold
from queenbee.core.glob.pattern import (
    Branch,
    Pattern,
    common_path,
    compiled,
    covers,
    literal_head,
)
from queenbee.core.glob.runs import meet
from queenbee.core.glob.segments import common_name, literal_ends
from queenbee.core.glob.sieve import letters_after, letters_before, shared_beginning, sift
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeVar

    from queenbee.core.glob.pattern import Run
    from queenbee.core.glob.segments import Segment

    Key = TypeVar("Key")
    Value = TypeVar("Value")
    Entry = TypeVar("Entry", bound=tuple[Any, ...])

_TAIL = 2
"""Letters of a literal end that sort patterns into bins: `.py` and `.ts` differ; bins are few."""

_MANY_RESTS = 4096
"""Beyond so many they are forgotten: an index of long life has seen many more than it holds."""

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
        """A number for each key: what is found is gathered as numbers, which sort fast."""
        self._keys: dict[int, str] = {}
        self._count = 0
        self._literal: dict[str, dict[int, None]] = {}
        self._starting: dict[str, dict[str, dict[tuple[int, int], Branch]]] = {}
        self._rests: dict[tuple[Run, ...], int] = {}
        """A number for what follows the literal folders of a branch: a hive has few of these."""
        self._numbers = count()
        # Both in bins by literal end; in a bin sorted, so that what is below a folder is a slice.
        self._paths: dict[str, list[tuple[str, int]]] = {}
        self._shapes: dict[str, list[tuple[str, int, int, int, Branch]]] = {}

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
        self._keys[added] = key
        if new.path is not None:
            self._literal.setdefault(new.path, {})[added] = None
            insort(self._paths.setdefault(tail_of(new.path), []), (new.path, added))
            return
        for number, branch in enumerate(new.branches):
            beginning = beginning_of(branch)
            rest = self._number(_rest(branch))
            bins = self._starting.setdefault(beginning, {})
            for tail in ends_of(branch):
                bins.setdefault(tail, {})[added, number] = branch
                shapes = self._shapes.setdefault(tail, [])
                insort(shapes, (beginning, added, number, rest, branch))

    def discard(self, key: str) -> None:
        """Removes the key's pattern, if there is one."""
        old = self._patterns.pop(key, None)
        if old is None:
            return
        added = self._added.pop(key)
        del self._keys[added]
        if old.path is not None:
            del self._literal[old.path][added]
            if not self._literal[old.path]:
                del self._literal[old.path]
            _remove(self._paths, tail_of(old.path), (old.path, added))
            return
        for number, branch in enumerate(old.branches):
            beginning = beginning_of(branch)
            bins = self._starting[beginning]
            for tail in ends_of(branch):
                del bins[tail][added, number]
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
        met = ((key, common_path(new, self._patterns[key])) for key in self.meeting(pattern))
        return [(key, path) for key, path in met if path is not None]

    def meeting(self, pattern: str) -> list[str]:
        """Returns the key of each pattern that overlaps this one. Raises `BadPattern`.

        It looks for no path that both cover, which takes most of the time of `overlapping`.
        """
        new = compiled(pattern, self._fold_case)
        found: set[int] = set()
        if new.path is not None:
            self._covering(new.path, found)
        else:
            for branch in new.branches:
                self._meeting(branch, found)
        return [self._keys[added] for added in sorted(found)]

    def covering(self, path: str) -> list[str]:
        """Returns the key of each pattern that covers the path, which is literal."""
        folded = fold(path) if self._fold_case else path
        found: set[int] = set()
        # `**` covers every valid path and no other.
        if covers(compiled("**"), folded):
            self._covering(folded, found)
        return [self._keys[added] for added in sorted(found)]

    def _number(self, rest: tuple[Run, ...]) -> int:
        """Returns a number that no other rest has; the same rest seldom has two."""
        number = self._rests.get(rest)
        if number is None:
            if len(self._rests) >= _MANY_RESTS:
                self._rests.clear()
            number = self._rests[rest] = next(self._numbers)
        return number

    def _covering(self, path: str, found: set[int]) -> None:
        found.update(self._literal.get(path, ()))
        runs = (tuple(path.split("/")),)
        wanted = _wanted(frozenset((tail_of(path),))) or (_OPEN,)
        # `h/**` covers `h` itself.
        for shapes in self._shapes_starting(folders_of(path + "/"), wanted):
            for (added, _), branch in shapes.items():
                if added not in found and meet(branch.runs, runs, common_name):
                    found.add(added)

    def _meeting(self, branch: Branch, found: set[int]) -> None:
        """Adds the overlapping patterns: those that start above the branch, and those below it."""
        beginning = beginning_of(branch)
        wanted = _wanted(ends_of(branch))
        self._cover(branch, beginning[:-1], found)
        *above, _ = folders_of(beginning)
        for starting in self._shapes_starting(above, wanted):
            for (added, _), other in starting.items():
                if added not in found and meet(branch.runs, other.runs, common_name):
                    found.add(added)
        shapes = [_below(each, beginning) for each in _members(self._shapes, wanted)]
        paths = [_below(each, beginning) for each in _members(self._paths, wanted)]
        if _covers_all_below(branch):
            found.update(added for _, added in chain(*paths))
            found.update(added for _, added, *_ in chain(*shapes))
            return
        name = _only_name_below(branch)
        if name is not None:
            _meet_below(branch, chain(*shapes), found)
            _cover_below(name, chain(*paths), found)
            return
        # Without `**` the number of segments is fixed; `h/**` may cover one segment less.
        depth = len(branch.runs[0]) if len(branch.runs) == 1 else None
        for start, added, _, _, other in chain(*shapes):
            if added in found or (depth is not None and start.count("/") > depth):
                continue
            if meet(branch.runs, other.runs, common_name):
                found.add(added)
        for path, added in chain(*paths):
            if added not in found and (depth is None or path.count("/") == depth - 1):
                self._cover(branch, path, found)

    def _shapes_starting(
        self, folders: Iterable[str], wanted: tuple[str, ...] | None
    ) -> Iterator[dict[tuple[int, int], Branch]]:
        for folder in folders:
            bins = self._starting.get(folder)
            if bins is not None:
                yield from _members(bins, wanted)

    def _cover(self, branch: Branch, path: str, found: set[int]) -> None:
        numbers = self._literal.get(path)
        if numbers and meet(branch.runs, (tuple(path.split("/")),), common_name):
            found.update(numbers)


# A branch such as `src/**/*.md` covers a name at any depth below literal folders. Whether another
# branch that starts below them shares a path with it is decided by what follows that branch's own
# literal folders: `**` covers the folders, and at least one segment follows.


def _only_name_below(branch: Branch) -> str | Segment | None:
    """Returns the one segment that follows `**` below literal folders, if that is all."""
    runs = branch.runs
    alone = len(runs) == 2 and len(runs[1]) == 1 and len(literal_head(branch)) == len(runs[0])
    return runs[1][0] if alone else None


def _meet_below(
    branch: Branch, shapes: Iterable[tuple[str, int, int, int, Branch]], found: set[int]
) -> None:
    verdicts: dict[int, bool] = {}
    for _, added, _, rest, other in shapes:
        verdict = verdicts.get(rest)
        if verdict is None:
            meeting = meet(branch.runs, other.runs, common_name)
            verdict = verdicts[rest] = meeting is not None
        if verdict:
            found.add(added)


def _cover_below(name: str | Segment, paths: Iterable[tuple[str, int]], found: set[int]) -> None:
    ends = literal_ends(name)
    if ends is not None:
        found.update([added for path, added in paths if path.endswith(ends)])
        return
    for path, added in paths:
        if common_name(name, path[path.rfind("/") + 1 :]) is not None:
            found.add(added)


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


def beginning_of(branch: Branch) -> str:
    """Returns the literal folders that the branch begins with, each with its `/`."""
    return "".join(name + "/" for name in literal_head(branch))


def _rest(branch: Branch) -> tuple[Run, ...]:
    """Returns the runs of a branch without its literal folders; all of them if that is nothing."""
    first, *others = branch.runs
    rest = (first[len(literal_head(branch)) :], *others)
    return rest if rest != ((),) else branch.runs


def _covers_all_below(branch: Branch) -> bool:
    """Returns whether the branch is `**` below literal folders."""
    runs = branch.runs
    return len(runs) == 2 and not runs[1] and len(literal_head(branch)) == len(runs[0])


def folders_of(folder: str) -> Iterator[str]:
    """Returns the root, each folder on the way and the folder itself, each with its `/`."""
    at = 0
    while at >= 0:
        yield folder[:at]
        at = folder.find("/", at) + 1 or -1


def tail_of(name: str) -> str:
    """Returns the bin of a literal path or name."""
    tail = name[-_TAIL:]
    return _OPEN if len(tail) < _TAIL or "/" in tail else tail


def ends_of(branch: Branch) -> frozenset[str]:
    """Returns the bins in which the branch's paths can end."""
    if not branch.runs[-1]:
        return frozenset((_OPEN,))
    segment = branch.runs[-1][-1]
    if isinstance(segment, str):
        return frozenset((tail_of(segment),))
    if segment.choices is None:
        return frozenset((_OPEN,))
    lasts = [runs[-1] for runs in segment.choices]
    ends = frozenset(tail_of(last) if isinstance(last, str) else _OPEN for last in lasts)
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
