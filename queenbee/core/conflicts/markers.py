"""Texts with conflict markers, as `git merge-file --diff3 --marker-size=97` makes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.conflicts.appended import is_prose
from queenbee.core.text import suggested, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKER_SIZE = 97
"""No underline of a heading is so long by chance."""
_MARKERS = _BEGIN, _BASE, _MIDDLE, _END = tuple(bytes([each]) * MARKER_SIZE for each in b"<|=>")


@dataclass(frozen=True, slots=True)
class Conflict:
    """One place where two sides differ: what each has there, what both began with, and the lines
    around it up to the next conflict.
    """

    main: list[bytes]
    base: list[bytes]
    branch: list[bytes]
    before: list[bytes]
    after: list[bytes]


def parts(text: bytes) -> tuple[list[list[bytes]], list[Conflict]]:
    """Returns the lines between the conflicts of a marked text, and the conflicts: there is one
    conflict less. The first side is the target's, as `main`.
    """
    between: list[list[bytes]] = [[]]
    found: list[list[list[bytes]]] = []
    sides: list[list[bytes]] = []
    for line in _lines(text):
        mark = _mark(line)
        if mark == _BEGIN and not sides:
            sides = [[]]
        elif (mark, len(sides)) in ((_BASE, 1), (_MIDDLE, 2)):
            sides.append([])
        elif mark == _END and len(sides) == 3:
            found.append(sides)
            between.append([])
            sides = []
        else:
            (sides or between)[-1].append(line)
    conflicts = [
        Conflict(main, base, branch, between[at], between[at + 1])
        for at, (main, base, branch) in enumerate(found)
    ]
    return between, conflicts


def holds_marker(text: bytes) -> bool:
    """Returns whether a line of a file would be read as a marker: who wrote it could have others'
    lines taken for a side of a conflict.
    """
    return any(_mark(each) in _MARKERS for each in _lines(text))


def _mark(line: bytes) -> bytes:
    return line.rstrip(b"\r\n").partition(b" ")[0]


def both_only_added(text: bytes) -> bool:
    """Returns whether a marked text has conflicts, and in each both sides only added lines."""
    _, found = parts(text)
    return bool(found) and not any(each.base for each in found)


def ended(lines: list[bytes]) -> list[bytes]:
    """Returns lines of which each but the last has a line break: the last one of a file may have
    none, and others may follow it now.
    """
    end = b"\r\n" if any(each.endswith(b"\r\n") for each in lines) else b"\n"
    return [each if each.endswith(b"\n") else each + end for each in lines[:-1]] + lines[-1:]


def _lines(text: bytes) -> list[bytes]:
    # Not `splitlines`: git's lines end with a line feed only.
    lines = text.split(b"\n")
    return [each + b"\n" for each in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def union_setting(paths: Iterable[str]) -> str:
    """Returns the command that sets `land.union` to name exactly these files too, without code;
    empty if none can be named.

    Its patterns are those of `.gitignore`, each one word of a shell: `*` in a name stands for
    itself.
    """
    wanted = [each for each in paths if is_prose(each) and visible(each)]
    shown = [re.sub(r"([\\*?\[\]])|^(?=[!#])| (?= *$)", _escaped_glob, each) for each in wanted]
    return suggested("queen config set --add land.union", *shown) if shown else ""


def _escaped_glob(found: re.Match[str]) -> str:
    return "\\" + found[0]
