"""Where two changes of one text meet: hunks of the base that overlap or touch, unless identical.

Git's merge takes changes for a conflict too where no unchanged line is left between them.
"""

from __future__ import annotations

from queenbee.git.collisions.values import Overlap, Range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from queenbee.git.collisions.values import ConflictingFile

CHANGES = (
    *("-U0", "--diff-algorithm=histogram", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-indent-heuristic", "--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/"),
)
"""Options of `git diff`: the changes as git's merge sees them."""
MOST = 20
"""Places that are named in one file."""


class Hunk:
    """One change of a text: lines of the base, and what is there instead."""

    __slots__ = ("after", "after_count", "base", "base_count", "text")

    def __init__(self, base: int, base_count: int, after: int, after_count: int) -> None:
        # Where there are no lines, git names the line before.
        self.base = base if base_count else base + 1
        self.base_count = base_count
        self.after = after if after_count else after + 1
        self.after_count = after_count
        self.text: list[bytes] = []


def hunks(diff: Iterable[bytes]) -> list[Hunk]:
    """Returns the hunks of a diff without context; `diff` are its lines, after the headings."""
    found: list[Hunk] = []
    for line in diff:
        if line.startswith(b"@@ "):
            _, minus, plus, *_ = line.split(b" ")
            found.append(Hunk(*_range(minus), *_range(plus)))
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


def locate(
    files: Sequence[ConflictingFile], diff: Callable[[Sequence[tuple[str, str]]], bytes]
) -> None:
    """Sets the lines of these files. `diff` returns the changes from the one object to the other
    of each pair, and is called once, whatever the number of files.
    """
    wanted: dict[tuple[str, str], int] = {}
    texts = [each for each in files if each.kind == "content" and len(each.stages) == 3]
    for each in texts:
        for side in (2, 3):
            wanted.setdefault((each.stages[1][1], each.stages[side][1]), len(wanted))
    if not wanted:
        return
    diffs = by_file(diff(list(wanted)))
    for each in texts:
        base = each.stages[1][1]
        of_a, of_b = (diffs.get(wanted[base, each.stages[side][1]]) for side in (2, 3))
        if of_a is None or of_b is None:
            each.kind = "binary"
            continue
        each.lines = overlaps(of_a, of_b)
        each.only_added = bool(each.lines) and all(one.base[1] < one.base[0] for one in each.lines)


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
    return [Overlap((first, last), _after(of_a), _after(of_b))]


def _after(group: Sequence[Hunk]) -> Range:
    return group[0].after, group[-1].after + group[-1].after_count - 1


def _told(group: Sequence[Hunk]) -> list[tuple[int, int, tuple[bytes, ...]]]:
    return [(each.base, each.base_count, tuple(each.text)) for each in group]


def by_file(diff: bytes) -> dict[int, list[Hunk]]:
    """Returns the hunks of each file of a diff by its number; a binary one is left out."""
    found: dict[int, list[Hunk]] = {}
    for number, lines in _sections(diff):
        if not any(line.startswith(b"Binary files ") for line in lines[:6]):
            found[number] = hunks(lines)
    return found


def _sections(diff: bytes) -> Iterator[tuple[int, list[bytes]]]:
    lines: list[bytes] = []
    number = -1
    left = 0
    for line in diff.split(b"\n"):
        # A text may have a line that looks like a heading; within a hunk, none is.
        if left <= 0 and line.startswith(b"diff --git "):
            if number >= 0:
                yield number, lines
            number, lines = int(line.rpartition(b"/")[2]), []
        elif left <= 0 and line.startswith(b"@@ "):
            _, minus, plus, *_ = line.split(b" ")
            left = _range(minus)[1] + _range(plus)[1]
            lines.append(line)
        elif left > 0 and line[:1] != b"\\":
            left -= 1
            lines.append(line)
        elif line[:1] == b"\\" or line.startswith(b"Binary files "):
            lines.append(line)
    if number >= 0:
        yield number, lines


def _range(text: bytes) -> tuple[int, int]:
    first, _, count = text[1:].partition(b",")
    return int(first), int(count) if count else 1
