"""Texts with conflict markers, as `git merge-file --diff3 --marker-size=40` makes them.

Where both sides only added lines at one place, both can be kept. Which comes first is the order of
the sides in the text.
"""

from __future__ import annotations

import re

from queenbee.core.text import suggested

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARKER_SIZE = 40
"""Long enough that no line of a file is read as a marker."""


class Conflict:
    """One place where two sides differ: what each has there, and what both began with."""

    __slots__ = ("base", "first", "line", "second")

    def __init__(
        self, line: int, first: list[bytes], base: list[bytes], second: list[bytes]
    ) -> None:
        self.line = line
        """Where it begins in the marked text, from 1."""
        self.first = first
        self.base = base
        self.second = second

    @property
    def only_adds(self) -> bool:
        """Whether both sides only added lines here."""
        return not self.base


def conflicts_in(text: bytes, size: int = MARKER_SIZE) -> list[Conflict]:
    """Returns the conflicts of a marked text, in order."""
    return [part for part in _parts(text, size) if isinstance(part, Conflict)]


def both_only_added(text: bytes, size: int = MARKER_SIZE) -> bool:
    """Returns whether a marked text has conflicts, and in each both sides only added lines."""
    found = conflicts_in(text, size)
    return bool(found) and all(each.only_adds for each in found)


def keeping_both(text: bytes, size: int = MARKER_SIZE) -> bytes | None:
    """Returns a marked text with the lines of both sides, the first side's first; None unless
    both sides only added lines.
    """
    if not both_only_added(text, size):
        return None
    kept = []
    for part in _parts(text, size):
        kept += _both(part) if isinstance(part, Conflict) else [part]
    return b"".join(kept)


def ranges_of_both(text: bytes, size: int = MARKER_SIZE) -> list[list[int]]:
    """Returns the first and last of the lines, from 1, at which `keeping_both` joins two sides, as
    they are numbered in what it returns.
    """
    ranges = []
    at = 0
    for part in _parts(text, size):
        many = len(_both(part)) if isinstance(part, Conflict) else 1
        if isinstance(part, Conflict):
            ranges.append([at + 1, at + many])
        at += many
    return ranges


def _both(part: Conflict) -> list[bytes]:
    return [*_ended(part.first, part.second), *part.second]


def _ended(first: list[bytes], second: list[bytes]) -> list[bytes]:
    """Returns lines that others follow: the last one of a file may have no line break."""
    if not first or not second or first[-1].endswith(b"\n"):
        return first
    end = b"\r\n" if second[0].endswith(b"\r\n") else b"\n"
    return [*first[:-1], first[-1] + end]


def _parts(text: bytes, size: int) -> Iterator[bytes | Conflict]:
    """Yields the lines outside of conflicts, and the conflicts."""
    begin, base, middle, end = (char * size for char in (b"<", b"|", b"=", b">"))
    sides: list[list[bytes]] = []
    at = 0
    for number, line in enumerate(_lines(text), 1):
        mark = line.rstrip(b"\r\n").partition(b" ")[0]
        if mark == begin and not sides:
            sides, at = [[]], number
        elif (mark, len(sides)) in ((base, 1), (middle, 2)):
            sides.append([])
        elif mark == end and len(sides) == 3:
            yield Conflict(at, *sides)
            sides = []
        elif sides:
            sides[-1].append(line)
        else:
            yield line


def _lines(text: bytes) -> list[bytes]:
    # Not `splitlines`: git's lines end with a line feed only.
    lines = text.split(b"\n")
    return [each + b"\n" for each in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def union_setting(paths: Iterable[str]) -> str:
    """Returns the command that sets `land.union` to name exactly these files too; empty if none
    can be named.

    Its patterns are those of `.gitignore`, each one word of a shell: `*` in a name stands for
    itself.
    """
    patterns = [re.sub(r"([\\*?\[\]])|^(?=[!#])| (?= *$)", _escaped_glob, each) for each in paths]
    shown = [each for each in patterns if each.isprintable()]
    return suggested("queen config set --add land.union", *shown) if shown else ""


def _escaped_glob(found: re.Match[str]) -> str:
    return "\\" + found[0]
