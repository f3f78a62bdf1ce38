"""Which of many commits could conflict at all: one reading of their history spares most merges.

Two sides conflict in a file only if commits that only one of them has touch it on both sides, or
if one has a folder where the other has a file, or has emptied a folder into which the other puts
something. Each commit is compared with each of its parents, so nothing is missed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.errors import ExternalFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_LOG = ("log", "-z", "-m", "--raw", "--no-renames", "--no-abbrev", "--no-color", "--topo-order")
_FORMAT = "--format=%x01%H %P"
_BEGIN = b"\x01"
_LIMIT_S = 10.0


class Touched:
    """The files that some commits touch, and their folders."""

    __slots__ = ("above", "emptied", "files")

    def __init__(self) -> None:
        self.files: set[bytes] = set()
        self.above: set[bytes] = set()
        """All folders above these files."""
        self.emptied: set[bytes] = set()
        """The folders above those that were removed: git may take that for a renamed folder."""

    def add(self, path: bytes, *, is_removed: bool) -> None:
        """Takes note of a file."""
        self.files.add(path)
        folders = set(_above(path))
        self.above |= folders
        if is_removed:
            self.emptied |= folders

    def update(self, other: Touched) -> None:
        """Takes note of all that others touch."""
        self.files |= other.files
        self.above |= other.above
        self.emptied |= other.emptied

    def meets(self, other: Touched) -> bool:
        """Returns whether the two could conflict."""
        return not (
            self.files.isdisjoint(other.files)
            and self.files.isdisjoint(other.above)
            and self.above.isdisjoint(other.files)
            and self.emptied.isdisjoint(other.above)
            and self.above.isdisjoint(other.emptied)
        )


class Reach:
    """What each of some commits has that others have not."""

    def __init__(self, commits: Sequence[str], git: Callable[..., bytes]) -> None:
        self._numbers: dict[str, int] = {}
        self._touched: list[Touched] = []
        self._before: dict[str, int] = {}
        """The commits in the history of each, as bits, itself included."""
        self._known: dict[int, Touched] = {}
        self._can_tell = self._read(commits, git)

    def add(self, name: str, parent: str, touched: Touched) -> None:
        """Takes what would be a commit after one of these, by a name of its own."""
        self._before[name] = self._before.get(parent, 0) | 1 << len(self._touched)
        self._touched.append(touched)

    def meet(self, one: str, other: str) -> bool:
        """Returns whether two of the commits could conflict; True where nobody can tell."""
        if not self._can_tell:
            return True
        of_one, of_other = (self._before.get(each, 0) for each in (one, other))
        mine, theirs = self._only(of_one & ~of_other), self._only(of_other & ~of_one)
        return mine.meets(theirs)

    def _read(self, commits: Sequence[str], git: Callable[..., bytes]) -> bool:
        wanted = [no_dash(each) for each in dict.fromkeys(commits)]
        try:
            base = git("merge-base", "--octopus", *wanted).split()
            if not base:
                return False
            since = no_dash(f"^{base[0].decode()}")
            said = git(*_LOG, _FORMAT, *wanted, since, "--", limit_s=_LIMIT_S)
        except ExternalFailure:  # Without a common history, or in too long a one.
            return False
        parents = self._parsed(said)
        for commit in reversed(parents):  # Parents come first now.
            bits = 1 << self._numbers[commit]
            for each in parents[commit]:
                bits |= self._before.get(each, 0)
            self._before[commit] = bits
        return True

    def _parsed(self, said: bytes) -> dict[str, list[str]]:
        """Returns the parents of each commit, the newest first; a merge comes once a parent."""
        parents: dict[str, list[str]] = {}
        touched = Touched()
        fields = iter(said.split(b"\0"))
        for field in fields:
            if field.startswith(_BEGIN):
                commit, *above = field[1:].decode().split()
                if commit not in parents:
                    parents[commit] = above
                    self._numbers[commit] = len(self._touched)
                    self._touched.append(Touched())
                touched = self._touched[self._numbers[commit]]
            elif field.lstrip(b"\n").startswith(b":"):
                touched.add(next(fields), is_removed=field.endswith(b" D"))
        return parents

    def _only(self, bits: int) -> Touched:
        found = self._known.get(bits)
        if found is None:
            found = self._known[bits] = Touched()
            for number in _ones(bits):
                found.update(self._touched[number])
        return found


def _ones(bits: int) -> Iterator[int]:
    while bits:
        last = bits & -bits
        yield last.bit_length() - 1
        bits ^= last


def _above(path: bytes) -> Iterator[bytes]:
    folder = os.path.dirname(path)
    while folder:
        yield folder
        folder = os.path.dirname(folder)
