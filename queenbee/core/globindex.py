"""One pattern against many: an index to keep, and scans of a list that is read once.

Both only spare comparisons. What they let through is compared exactly, and what they hold back
shares no path, because two literal beginnings or two literal ends of theirs contradict.

What is stored was checked when it was written; a pattern that another tool wrote, and that is
not usable, covers no path here, and `queen doctor` names it.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from queenbee.core.globchars import fold
from queenbee.core.globruns import meet
from queenbee.core.globs import Branch, Pattern, common_path, compiled, covers, literal_head
from queenbee.core.globsegments import common_name
from queenbee.core.globsieve import letters_after, letters_before, shared_beginning, sift
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")

_TAIL = 2
"""Letters of a literal end that sort patterns into bins: `.py` and `.ts` part, bins stay few."""

_OPEN = ""
"""The bin of what may end in anything."""


class _Folder:
    """Is what an index holds for one literal beginning, in bins by literal end."""

    __slots__ = ("paths", "shapes")

    def __init__(self) -> None:
        self.paths: dict[str, set[str]] = {}
        self.shapes: dict[str, dict[tuple[str, int], Branch]] = {}


class GlobIndex:
    """Is a set of patterns under keys that answers which of them meet a new one.

    It answers as a comparison with each of them would, in the order in which they were added.
    """

    def __init__(self, *, fold_case: bool = False) -> None:
        self._fold_case = fold_case
        self._patterns: dict[str, Pattern] = {}
        self._added: dict[str, int] = {}
        self._count = 0
        self._literal: dict[str, dict[str, None]] = {}
        self._folders: dict[str, _Folder] = {}
        self._sorted: list[str] = []

    def __len__(self) -> int:
        return len(self._patterns)

    def __contains__(self, key: object) -> bool:
        return key in self._patterns

    def add(self, key: str, pattern: str) -> None:
        """Adds the pattern; one that has the key already is replaced."""
        self.discard(key)
        new = _usable(pattern, self._fold_case)
        if new is None:
            return
        self._patterns[key] = new
        self._count += 1
        self._added[key] = self._count
        if new.path is not None:
            self._literal.setdefault(new.path, {})[key] = None
            self._folder(_parent(new.path)).paths.setdefault(_bin(new.path), set()).add(new.path)
            return
        for number, branch in enumerate(new.branches):
            shapes = self._folder(_beginning(branch)).shapes
            for tail in _ends(branch):
                shapes.setdefault(tail, {})[key, number] = branch

    def discard(self, key: str) -> None:
        """Takes the key's pattern out, if there is one."""
        old = self._patterns.pop(key, None)
        if old is None:
            return
        del self._added[key]
        if old.path is not None:
            self._forget_path(key, old.path)
            return
        for number, branch in enumerate(old.branches):
            beginning = _beginning(branch)
            bins = self._folders[beginning].shapes
            for tail in _ends(branch):
                del bins[tail][key, number]
                if not bins[tail]:
                    del bins[tail]
            self._prune(beginning)

    def overlapping(self, pattern: str) -> list[tuple[str, str]]:
        """Returns the key of each pattern that meets this one, with a path that both cover."""
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
        # `**` covers every usable path and no other.
        if covers(compiled("**"), folded):
            self._covering(folded, found)
        return sorted(found, key=self._added.__getitem__)

    def _covering(self, path: str, found: dict[str, str]) -> None:
        found.update(dict.fromkeys(self._literal.get(path, ()), path))
        runs = (tuple(path.split("/")),)
        wanted = _wanted(frozenset((_bin(path),))) or (_OPEN,)
        for beginning in _beginnings(path + "/"):
            folder = self._folders.get(beginning)
            for shapes in _members(folder.shapes, wanted) if folder else ():
                for (key, _), branch in shapes.items():
                    if key not in found and meet(branch.runs, runs, common_name):
                        found[key] = path

    def _meeting(self, branch: Branch, found: dict[str, str]) -> None:
        """Adds what meets the branch: patterns that begin above it, and all that begin below."""
        beginning = _beginning(branch)
        wanted = _wanted(_ends(branch))
        # `h/**` covers `h` itself.
        self._cover(branch, [beginning[:-1]], found)
        for above in _beginnings(beginning):
            if above in self._folders:
                self._meet_shapes(branch, self._folders[above], wanted, found)
        # Without `**` the number of segments is given.
        depth = len(branch.runs[0]) if len(branch.runs) == 1 else None
        for below in self._below(beginning):
            folder = self._folders[below]
            slashes = below.count("/")
            if below != beginning and (depth is None or slashes <= depth):
                self._meet_shapes(branch, folder, wanted, found)
            if depth is None or slashes == depth - 1:
                for paths in _members(folder.paths, wanted):
                    self._cover(branch, paths, found)

    def _below(self, beginning: str) -> list[str]:
        if not beginning:
            return self._sorted
        start = bisect_left(self._sorted, beginning)
        # `0` is the character after `/`.
        return self._sorted[start : bisect_left(self._sorted, beginning[:-1] + "0")]

    def _meet_shapes(
        self, branch: Branch, folder: _Folder, wanted: tuple[str, ...] | None, found: dict[str, str]
    ) -> None:
        for shapes in _members(folder.shapes, wanted):
            for (key, _), other in shapes.items():
                if key not in found:
                    meeting = meet(branch.runs, other.runs, common_name)
                    if meeting is not None:
                        found[key] = "/".join(meeting[0] + meeting[1]) or "x"

    def _cover(self, branch: Branch, paths: Iterable[str], found: dict[str, str]) -> None:
        for path in paths:
            keys = self._literal.get(path)
            if keys and meet(branch.runs, (tuple(path.split("/")),), common_name):
                found.update(dict.fromkeys(keys, path))

    def _folder(self, beginning: str) -> _Folder:
        folder = self._folders.get(beginning)
        if folder is None:
            folder = self._folders[beginning] = _Folder()
            insort(self._sorted, beginning)
        return folder

    def _forget_path(self, key: str, path: str) -> None:
        del self._literal[path][key]
        if not self._literal[path]:
            del self._literal[path]
            bins = self._folders[_parent(path)].paths
            bins[_bin(path)].remove(path)
            if not bins[_bin(path)]:
                del bins[_bin(path)]
            self._prune(_parent(path))

    def _prune(self, beginning: str) -> None:
        folder = self._folders.get(beginning)
        if folder is not None and not folder.paths and not folder.shapes:
            del self._folders[beginning]
            del self._sorted[bisect_left(self._sorted, beginning)]


def candidates(
    pattern: str, patterns: Iterable[tuple[Key, str]], *, fold_case: bool = False
) -> list[tuple[Key, str]]:
    """Returns those of the patterns that may meet this one, in no particular order.

    It is for a process that compares once: no pattern but the first is parsed, and most others
    are held back after one look at how they begin and end. What is returned has still to be
    compared; what is not shares no path with `pattern`, or is not usable. Raises `BadPattern`
    for `pattern` alone.
    """
    branches = compiled(pattern, fold_case).branches
    prefix = shared_beginning([letters_before(branch) for branch in branches])
    tail = shared_beginning([letters_after(branch)[::-1] for branch in branches])[::-1]
    return sift(list(patterns), prefix, tail, fold_case)


def scan_overlapping(
    pattern: str, patterns: Iterable[tuple[Key, str]], fold_case: bool = False
) -> list[tuple[Key, str]]:
    """Returns the key of each pattern that meets this one, with a path that both cover.

    One of the patterns that is not usable meets none. Raises `BadPattern` for `pattern`.
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


def _parent(path: str) -> str:
    return path[: path.rfind("/") + 1]


def _beginning(branch: Branch) -> str:
    """Returns the literal folders that the branch begins with, each with its `/`."""
    return "".join(name + "/" for name in literal_head(branch))


def _beginnings(folder: str) -> Iterator[str]:
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
    """Returns the bins that can hold what ends so, or None for all of them."""
    return None if _OPEN in ends else (*ends, _OPEN)


def _members(bins: dict[str, Value], wanted: tuple[str, ...] | None) -> list[Value]:
    if wanted is None:
        return list(bins.values())
    return [bins[tail] for tail in wanted if tail in bins]
