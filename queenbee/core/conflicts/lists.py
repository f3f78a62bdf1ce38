"""Lists of names as a conflict has them: read, whatever their wrapping, joined, written again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Lines = list[bytes]
    Names = Sequence[bytes]

_LINE = 88
"""How long a list on one line may become, if no line around it is longer."""
_MOST, _MOST_BYTES = 1000, 500
"""A list with more lines or names is generated, and so is a longer line."""
_LEAST_SORTED = 3
"""Two names are in order by chance."""
_ITEM = re.compile(rb"""[A-Za-z_$][\w.$]*(?: as \w+)?|"[^"\\,\n]*"|'[^'\\,\n]*'""")
_COMMENT = rb"((?:#|//)[^\r\n]*)?"
_GAP = re.compile(rb"[ \t]*,[ \t]*%s\s*" % _COMMENT)
_LAST = re.compile(rb"([ \t]*,?)[ \t]*%s" % _COMMENT)
_CLOSING = re.compile(rb"""[\])}]?[ \t]*(?:from\s+(?:"[^"\n]*"|'[^'\n]*'))?[ \t]*[,;]?""")
_HEAD = re.compile(
    rb"\s*(?:from\s+\S+\s+)?import\s(?:type\s)?|\s*export\s(?=\{)|\s*(?:pub\s+)?use\s[\w:]+::(?=\{)"
    rb"|[^#\n]*?[=:][ \t]*(?=[\[({])|[\w\s]*\benum\s+\w+\s*(?=\{)|"
)
_OPEN = re.compile(rb"[ \t]*[\[({]?\s*")
_PYTHON = re.compile(rb"\s*(?:from\s+\S+\s+)?import\s+$")


@dataclass(frozen=True, slots=True)
class NameList:
    """A list of names in a text, or a part of one; of each name the comment behind it."""

    head: bytes
    """What says which list it is, such as `from x import`; empty if that is before the lines."""
    opening: bytes
    """From there to the first name: the bracket and white space."""
    items: dict[bytes, bytes]
    comma: bytes
    """What is right behind the last name."""
    closing: bytes
    """The rest."""
    counts: tuple[int, ...]
    """How many names are on each line that has any."""
    indent: bytes
    """White space before a name that is the first on its line."""
    width: int
    """The length of the longest line."""

    @property
    def frame(self) -> tuple[object, ...]:
        """What has to be the same on both sides; an import may have brackets on one of them."""
        opens, closes = self.opening.strip(), self.closing.strip()
        is_whole = bool(opens) == (closes[:1] in (b")", b"]", b"}") and bool(closes))
        if _PYTHON.match(self.head) and is_whole:
            return self.head.split(), closes.strip(b")")
        return self.head.rstrip(), opens, closes

    @property
    def layout(self) -> tuple[object, ...]:
        """How it is wrapped."""
        return len(self.counts) > 1, max(self.counts, default=0) > 1, self.indent, self.opening

    def written(self, names: Names, comments: Mapping[bytes, bytes]) -> bytes:
        """Returns it with these names, in its own layout; wrapped where a line gets too long."""
        end = b"\r\n" if b"\r\n" in self.closing + self.opening else b"\n"
        before, after = self.head + self.opening, self.comma + self.closing
        line = before + b", ".join(names) + after
        if self._is_one_line and len(line.rstrip()) <= max(_LINE, self.width):
            return line
        if self._is_one_line and self._can_wrap:
            return self._wrapped(end).written(names, comments)
        if self._is_one_line and self.head:
            return line
        if max(self.counts, default=0) > 1:
            return before + self._filled(names, end) + after
        said = [comments[each] and b"  " + comments[each] for each in names]
        texts = [name + b"," + more for name, more in zip(names, said, strict=True)]
        texts[-1] = names[-1] + self.comma + said[-1]
        return before + (end + self.indent).join(texts) + self.closing

    @property
    def _is_one_line(self) -> bool:
        """Whether more names are written on the same line."""
        is_part = not self.head and max(self.counts) == 1
        return len(self.counts) < 2 and b"\n" not in self.opening and not is_part

    @property
    def _can_wrap(self) -> bool:
        is_followed = b"#" in self.closing or b"//" in self.closing
        return not is_followed and bool(self.opening.strip() or _PYTHON.match(self.head))

    def _wrapped(self, end: bytes) -> NameList:
        indent = self.head[: len(self.head) - len(self.head.lstrip())]
        bracket = self.opening.strip() or b"("
        closing = end + indent + (self.closing.strip() or b")") + end
        inner = indent + b"    "
        return replace(
            self, opening=bracket + end + inner, closing=closing, comma=b",",
            counts=(1, 1), indent=inner,
        )  # fmt: skip

    def _filled(self, names: Sequence[bytes], end: bytes) -> bytes:
        # Of three lines or more, the longest says how long one may be.
        width = self.width if len(self.counts) > 2 else max(self.width, _LINE)
        lines = [b""]
        before = len((self.head + self.opening).rpartition(b"\n")[2])
        for each in names:
            more = lines[-1] + (b" " if lines[-1] else b"") + each + b","
            if lines[-1] and before + len(more) > width:
                lines.append(each + b",")
                before = len(self.indent)
            else:
                lines[-1] = more
        return (end + self.indent).join(lines)[:-1]


def read(lines: Iterable[bytes]) -> NameList | None:
    """Returns the list that some lines are, or a part of one; None if they are anything else, or
    have a name twice.
    """
    lines = [*lines]
    if len(lines) > _MOST or any(len(each) > _MOST_BYTES for each in lines):
        return None
    text = b"".join(lines)
    headed = _HEAD.match(text)
    head = headed[0] if headed else b""
    opened = _OPEN.match(text, len(head))
    at = begin = last = opened.end() if opened else len(head)
    items: dict[bytes, bytes] = {}
    starts = []
    while item := _ITEM.match(text, at):
        if item[0] in items or len(items) == _MOST:
            return None
        last = item.end()
        starts.append(at)
        gap = _GAP.match(text, last)
        items[item[0]] = gap[1] or b"" if gap else b""
        if gap is None:
            break
        at = gap.end()
    ended = _LAST.match(text, last)
    assert ended is not None
    if not _CLOSING.fullmatch(text[ended.end() :].strip()) or not (items or head):
        return None
    closing = text[ended.end() :]
    if (
        items and len(lines) == 1 and (head or len(items) > 1)
    ):  # It belongs to the line, whatever its last name is.
        closing = text[ended.end(1) :]
    elif items:
        items[[*items][-1]] = ended[2] or b""
    return _measured(text, head, begin, items, starts, comma=ended[1], closing=closing)


def _measured(  # noqa: PLR0913 - by name
    text: bytes,
    head: bytes,
    begin: int,
    items: dict[bytes, bytes],
    starts: Sequence[int],
    *,
    comma: bytes,
    closing: bytes,
) -> NameList | None:
    """Returns a list with how it is wrapped; None if comments stand within its lines."""
    counts = [len([*same]) for _, same in groupby(text.count(b"\n", 0, at) for at in starts)]
    if any(items.values()) and max(counts) > 1:
        return None
    before = [text[text.rfind(b"\n", 0, at) + 1 : at] for at in starts]
    indent = next((each for each in before if not each.strip()), b"")
    width = max(len(each.rstrip()) for each in text.split(b"\n"))
    opening = text[len(head) : begin]
    return NameList(head, opening, items, comma, closing, tuple(counts), indent, width)


def joined(base: NameList | None, main: NameList, branch: NameList, around: Around) -> bytes | None:
    """Returns the list with the names of both, in the wrapping of whoever wrapped it again; None
    if the sides are not one list, one of them removed a name, or two names are alike.
    """
    if main.frame != branch.frame or (base is not None and base.frame != main.frame):
        return None
    known = base.items if base is not None else {}
    added = [{*side.items} - {*known} for side in (main, branch)]
    if not known.keys() <= main.items.keys() & branch.items.keys():
        return None
    both = added[0] & added[1]
    is_twice = (added[0] | added[1]) & {*around.before, *around.after}
    if is_twice or are_alike(added[0] - both, added[1] - both):
        return None
    names = in_turn([*main.items], [*branch.items], added[0] - both)
    sides = ([*around.before, *each, *around.after] for each in (known, main.items, branch.items))
    if len(names) + len(around.before) + len(around.after) >= _LEAST_SORTED and (
        order := _order(*sides)
    ):
        names.sort(key=order)
    comments = {each: main.items.get(each) or branch.items.get(each) or b"" for each in names}
    is_wrapped_by_branch = base is not None and main.layout == base.layout
    return (branch if is_wrapped_by_branch else main).written(names, comments)


def in_turn(main: Sequence[bytes], branch: Sequence[bytes], landed: set[bytes]) -> Lines:
    """Returns the names of two lists, each once and in the order of its side; of names that both
    added at one place, those that `landed` first.
    """
    found = [*main]
    for at, name in enumerate(branch):
        if name not in found:
            place = found.index(branch[at - 1]) + 1 if at else 0
            while place < len(found) and found[place] in landed:
                place += 1
            found.insert(place, name)
    return found


def _order(base: Names, main: Names, branch: Names) -> Callable[[bytes], Any] | None:
    """Returns by what both sides are sorted, or one that has sorted what was not; else None."""
    was_sorted = any(_is_sorted(base, key) for key in _ORDERS)
    for key in _ORDERS:
        are_sorted = [_is_sorted(side, key) for side in (main, branch)]
        if all(are_sorted) or (any(are_sorted) and not was_sorted):
            return key
    return None


def _is_sorted(names: Names, key: Callable[[bytes], Any]) -> bool:
    return all(key(a) < key(b) for a, b in pairwise(names))


def _bare(name: bytes) -> bytes:
    return name.strip(b"\"'")


def _by_kind(name: bytes) -> tuple[int, bytes]:
    """Constants first, then classes: the order of isort and Ruff."""
    bare = _bare(name)
    return (0 if bare.isupper() and len(bare) > 1 else 1 if bare[:1].isupper() else 2), bare


_ORDERS: Sequence[Callable[[bytes], Any]] = (
    _bare,
    _by_kind,
    lambda name: _bare(name).lower(),
    lambda name: _bare(name).lower().lstrip(b"_"),
)


def are_alike(one: Iterable[bytes], other: Iterable[bytes]) -> bool:
    """Returns whether two names may be tries at one: `_sleep` and `sleep`, `view` and `views`; not
    `chunk` and `chunk_while`.
    """
    bare = [[each.strip(b"_\"' ") for each in side] for side in (one, other)]
    return any(_begins(a, b) or _begins(b, a) for a in bare[0] for b in bare[1])


def _begins(name: bytes, longer: bytes) -> bool:
    """Returns whether a name is the beginning of another, but for whole words."""
    rest = longer[len(name) :]
    is_word = rest[:1] in (b"_", b"-", b".", b"/", b" ") or (rest[:1].isupper() and name.islower())
    return longer.lower().startswith(name.lower()) and not (rest and name and is_word)


@dataclass(frozen=True, slots=True)
class Around:
    """The names before and after a part of a list."""

    before: Sequence[bytes] = ()
    after: Sequence[bytes] = ()


_QUOTED = re.compile(rb"""("|')(?:\\.|(?!\1)[^\\])*+\1|(?:#|//).*""")
_BRACKET = re.compile(rb"[\[({]|[\])}]")
_OF_CALL = re.compile(rb"[\w)\]]\($")


def around(before: Sequence[bytes], after: Sequence[bytes]) -> Around | None:
    """Returns the names around a conflict that is within a list; None if it is in none, or in a
    call.
    """
    above = _run(reversed(before), is_upward=True)
    names = Around(
        [name for each in reversed(above) for name in each.items],
        [name for each in _run(after) for name in each.items],
    )
    depth, is_behind = 0, bool(above)
    rest = before[: len(before) - len(above)]
    for line in reversed(rest):
        bare = _QUOTED.sub(b"", line[:_MOST_BYTES]).strip()
        is_behind = is_behind or bare.endswith((b",", b"[", b"(", b"{"))
        if len(line) > _MOST_BYTES or (bare and not is_behind):
            return None  # In the imports of Go, names stand below each other without a comma.
        for each in reversed([*_BRACKET.finditer(bare)]):
            depth += 1 if each[0] in b"])}" else -1
            if depth < 0:
                is_call = _OF_CALL.search(bare[: each.end()]) or bare == b"import ("
                is_list = not bare[each.end() :] or read([line])
                return names if is_list and not is_call else None
    return names if not rest and above else None


def _run(lines: Iterable[bytes], *, is_upward: bool = False) -> list[NameList]:
    """Returns the first of the lines that are nothing but names."""
    found = []
    for line in lines:
        each = read([line])
        if each is None or each.head or each.opening.strip() or each.closing.strip():
            break
        if is_upward and not each.comma:
            break
        found.append(each)
        if not each.comma:
            break
    return found


def statements(lines: Lines) -> list[Lines]:
    """Returns lines as statements: one goes on as long as a bracket is open."""
    found: list[Lines] = []
    depth = 0
    for line in lines:
        if depth <= 0:
            found.append([])
        found[-1].append(line)
        brackets = _BRACKET.findall(_QUOTED.sub(b"", line[:_MOST_BYTES]))
        depth += sum(1 if each in b"[({" else -1 for each in brackets)
    return found
