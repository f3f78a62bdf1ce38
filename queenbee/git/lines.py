"""Where two changes of one text meet: hunks of the base that overlap or touch, unless identical.

Git's merge takes changes for a conflict too where no unchanged line is left between them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Hunks = Sequence["Hunk"]

Range = tuple[int, int]
"""The first and the last line; the last is below the first for a place between two lines."""

CHANGES = (
    *("-U0", "--diff-algorithm=histogram", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-indent-heuristic", "--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/"),
)
"""Options of `git diff`: the changes as git's merge sees them."""
_KEYWORDS = frozenset({"class", "def", "func", "function", "fn"})
MOST = 20
"""Places that are named in one file."""


class Overlap:
    """Lines that both sides changed, each in a numbering of its own."""

    def __init__(self, base: Range, a: Range, b: Range, of: tuple[Hunks, Hunks]) -> None:
        self.base = base
        self.a = a
        self.b = b
        self.section: str = of[0][0].section
        """The function or section where it begins; empty if git names none."""
        self.added: list[list[bytes]] = [
            [line[1:] + b"\n" for each in side for line in each.text] for side in of
        ]
        """The new lines of both sides."""

    def to_dict(self) -> dict[str, object]:
        """Returns the first and last line in the base and on both sides, and the section."""
        lines = {"base": list(self.base), "a": list(self.a), "b": list(self.b)}
        return {**lines, "section": self.section or None}


class Hunk:
    """One change of a text: lines of the base, and what is there instead."""

    def __init__(
        self, base: int, base_count: int, after: int, after_count: int, section: str = ""
    ) -> None:
        # Where there are no lines, git names the line before.
        self.base: int = base if base_count else base + 1
        self.base_count = base_count
        self.after: int = after if after_count else after + 1
        self.after_count = after_count
        self.text: list[bytes] = []
        """The lines that are new, each with the sign before it."""
        self.section = section
        """What git names as the function or section that it begins in; empty if nothing."""

    @property
    def range(self) -> Range:
        """The first and last line of the base; of a new text, the line before it."""
        first = self.base if self.base_count else max(self.base - 1, 1)
        return first, max(first + self.base_count - 1, first)


def hunks(diff: Iterable[bytes]) -> list[Hunk]:
    """Returns the hunks of a diff of one file without context, given its lines."""
    found: list[Hunk] = []
    header, is_blank = b"", False
    for line in diff:
        if is_blank and line[:1] in (b"+", b"-") and line[1:].strip():
            found[-1].section, is_blank = _section_at(line[1:], found[-1].section, header), False
        if line.startswith(b"@@ "):
            _, minus, plus, _, *rest = line.split(b" ", 4)
            header, is_blank = b"".join(rest), True
            found.append(Hunk(*_range(minus), *_range(plus), _section(header)))
        elif found and line[:1] in (b"+", b"\\"):
            found[-1].text.append(line)
    return found


def overlaps(of_a: Sequence[Hunk], of_b: Sequence[Hunk]) -> list[Overlap]:
    """Returns where two changes of one base meet, in the order of the base."""
    found: list[Overlap] = []
    group: tuple[list[Hunk], list[Hunk]] = ([], [])
    end = None
    events = [(each.base, 0, each) for each in of_a] + [(each.base, 1, each) for each in of_b]
    for base, side, hunk in sorted(events, key=lambda event: event[:2]):
        if end is None or base > end:
            found += _met(group)
            group, end = ([], []), base + hunk.base_count
        group[side].append(hunk)
        end = max(end, base + hunk.base_count)
    return (found + _met(group))[:MOST]


def shown(one: Range) -> str:
    """Returns lines for people: `12`, `12-15`, or `after 11` for a place between two lines."""
    first, last = one
    if last < first:
        return f"after {last}" if last else "at the top"
    return str(first) if first == last else f"{first}-{last}"


def _met(group: tuple[list[Hunk], list[Hunk]]) -> list[Overlap]:
    of_a, of_b = group
    if not of_a or not of_b or _told(of_a) == _told(of_b):
        return []
    both = [*of_a, *of_b]
    first = min(each.base for each in both)
    last = max(each.base + each.base_count for each in both) - 1
    return [Overlap((first, last), _after(of_a), _after(of_b), group)]


def _after(group: Sequence[Hunk]) -> Range:
    return group[0].after, group[-1].after + group[-1].after_count - 1


def _told(group: Sequence[Hunk]) -> list[tuple[int, int, tuple[bytes, ...]]]:
    return [(each.base, each.base_count, tuple(each.text)) for each in group]


def _section(header: bytes) -> str:
    """Returns the name in a line that begins a function or a section: `tax` of `def tax(n):`; empty
    for any other line, which git takes for one where it does not know the language.
    """
    words = header.decode(errors="replace").replace("(", " ").split()
    if words and not words[0].strip("#"):
        return " ".join(words[1:])
    names = (name for word, name in pairwise(words) if word in _KEYWORDS)
    return next(names, "").rstrip(":{")


def _section_at(line: bytes, above: str, header: bytes) -> str:
    """Returns the section of a change that begins with a line, below a header that git names: its
    own, if it begins one; none, if it is not indented, and so not in the function above.
    """
    if header.startswith(b"#"):
        return _section(line) if line.startswith(b"#") else above
    is_outside = line[:1] not in (b" ", b"\t")
    return ("" if line.startswith(b"#") else _section(line)) if is_outside else above


def _range(text: bytes) -> tuple[int, int]:
    first, _, count = text[1:].partition(b",")
    return int(first), int(count) if count else 1
