"""Changes a JSON text and leaves every other byte of it unchanged, comments and commas included.

An item that is added to an empty container follows its bracket directly (`{"a": 1 }` from `{ }`);
in one that we made it is on its own line: so a later cut restores the original text. An item of
ours has several lines: on one line, another program has written the text again, and what a cut
leaves empty goes too. Positions are indexes into a text that `loads` accepts.
"""

from __future__ import annotations

import json
import re

_SPACE = " \t\n\r"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
# What each of these takes can end in one way only, so none of them ever goes back.
_BLANK = re.compile(r"(?:[ \t\n\r]++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LITERAL = re.compile(r"[^,\]}/ \t\n\r]*+")
_NO_BRACKET = re.compile(
    r"""(?:[^\[\]{}"/]++|"(?:[^"\\]++|\\.)*+"|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|/)*+""",
    re.DOTALL,
)
_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[\]}])', re.DOTALL)


def loads(text: str, *, comments: bool = False, once: bool = False) -> object:
    """Returns what a JSON text says; with `comments`, those and trailing commas are allowed; with
    `once`, no key is there twice.

    Raises `ValueError` or `RecursionError`.
    """
    if comments:
        text = _TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)
        text = _LAST_COMMA.sub(lambda found: found[0] if found[0][0] == '"' else "", text)
    return json.loads(text, object_pairs_hook=_each_once if once else None)


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(said := dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return said


class Container:
    """An object or array in a text: its brackets and its items, in order."""

    __slots__ = ("close", "items", "open")

    def __init__(self, text: str, start: int) -> None:
        self.open: int = start
        self.items: list[Item] = []
        position = _skip(text, start + 1)
        while text[position] not in "]}":
            item = Item(text, position, is_member=text[start] == "{")
            self.items.append(item)
            position = _skip(text, item.end)
            if text[position] == ",":
                position = _skip(text, position + 1)
        self.close: int = position

    def member(self, key: str) -> Item | None:
        """Returns the member of an object with this key; the last one if there are several."""
        return next((item for item in reversed(self.items) if item.key == key), None)


class Item:
    """A member of an object, or an element of an array."""

    __slots__ = ("end", "key", "start", "value")

    def __init__(self, text: str, start: int, *, is_member: bool) -> None:
        self.start: int = start
        self.key: str | None = None
        self.value: int = start
        """Where the value begins: after the key, in a member."""
        if is_member:
            key_end = _end_of_string(text, start)
            name = text[start:key_end]
            self.key = json.loads(name) if "\\" in name else name[1:-1]
            self.value = _skip(text, _skip(text, key_end) + 1)
        self.end: int = _end_of_value(text, self.value)


class Style:
    """The layout of a text: its line ending and its unit of indentation, if it has lines."""

    __slots__ = ("in_lines", "indent", "newline")

    def __init__(self, text: str) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        inside = begin(text) + 1
        first = _skip(text, inside)
        before = "" if text[first] in "]}" else text[inside:first]
        self.in_lines: bool = "\n" in before
        self.indent: str = _blanks(before.rpartition("\n")[2]) or "  "

    def lines(self, value: object, margin: str) -> str:
        """Returns a value in lines; all but the first are indented by a margin."""
        text = json.dumps(value, indent=self.indent, ensure_ascii=False)
        return text.replace("\n", self.newline + margin)


def begin(text: str) -> int:
    """Returns where the document begins in a text."""
    return _skip(text, 0)


def insert(text: str, container: Container, key: str | None, value: object, level: int) -> str:
    """Returns the text with a value added at the end of a container, under `key` in an object.

    `level` is the depth of the container's items, in units of indentation.
    """
    style = Style(text)
    name = f"{json.dumps(key)}: " if key is not None else ""
    margin = style.indent * level
    if not container.items:
        at = container.open + 1
        return text[:at] + name + style.lines(value, margin) + text[at:]
    last = container.items[-1]
    if _has_comment(text, last.end, container.close):
        return _insert_first(text, container, name, value, margin)
    before = container.items[-2].end if len(container.items) > 1 else container.open + 1
    space = text[before : last.start].replace(",", "", 1)
    if "\n" in space:
        margin = _blanks(space.rpartition("\n")[2])  # As deep as the one before.
    elif space.strip(_SPACE):
        space = " "
    if "\n" in space or (style.in_lines and not space):
        addition = f",{style.newline}{margin}{name}{style.lines(value, margin)}"
    else:
        addition = f",{space}{name}{style.lines(value, margin)}"
    return text[: last.end] + addition + text[last.end :]


def _insert_first(text: str, container: Container, name: str, value: object, margin: str) -> str:
    # A comment after the last item belongs to it, so nothing may come between them.
    style, at = Style(text), container.open + 1
    space = text[at : container.items[0].start]
    if space.strip(_SPACE):  # A comment follows the bracket.
        space = style.newline + margin
    elif "\n" in space:
        margin = space.rpartition("\n")[2]
    return f"{text[:at]}{space}{name}{style.lines(value, margin)},{text[at:]}"


def cut(text: str, path: list[Container], index: int) -> str | None:
    """Returns the text without one item of the last container of a path from the root down.

    If we made that container and it is now empty, it is removed too. None if nothing is left.
    """
    container = path[-1]
    item = container.items[index]
    if _is_among_comments(text, container, index):
        return _cut_bare(text, container, index)
    if index > 0:
        return text[: container.items[index - 1].end] + text[item.end :]
    if len(container.items) > 1:
        return text[: item.start] + text[container.items[1].start :]
    if item.start == container.open + 1 and not _is_in_one_line(text, item):
        return text[: item.start] + text[item.end :]
    inside = text[container.open + 1 : item.start] + text[item.end : container.close]
    if inside.replace(",", "", 1).strip(_SPACE):
        return _cut_bare(text, container, index)
    if len(path) == 1:
        around = text[: container.open] + text[container.close + 1 :]
        return _cut_bare(text, container, index) if around.strip(_SPACE) else None
    parent = path[-2]
    number = next(n for n, each in enumerate(parent.items) if each.value == container.open)
    return cut(text, path[:-1], number)


def _is_in_one_line(text: str, item: Item) -> bool:
    """Returns whether an item that has several lines as we write it has only one."""
    value = text[item.value : item.end]
    return value[0] in "[{" and "\n" not in value and bool(loads(value, comments=True))


def _is_among_comments(text: str, container: Container, index: int) -> bool:
    """Returns whether there is a comment between an item and one of its neighbors."""
    items, item = container.items, container.items[index]
    if index > 0 and _has_comment(text, items[index - 1].end, item.start):
        return True
    return index + 1 < len(items) and _has_comment(text, item.end, items[index + 1].start)


def _cut_bare(text: str, container: Container, index: int) -> str:
    """Returns the text without an item, its comma, and the blanks before it."""
    item = container.items[index]
    start, end = item.start, _skip(text, item.end)
    while text[start - 1] in _SPACE:
        start -= 1
    if text[end] == ",":
        return text[:start] + text[end + 1 :]
    return text[:start] + text[item.end :]


def _blanks(text: str) -> str:
    """Returns the blanks that a text begins with."""
    return text[: len(text) - len(text.lstrip(_SPACE))]


def _has_comment(text: str, start: int, end: int) -> bool:
    return bool(text[start:end].replace(",", "", 1).strip(_SPACE))


def _end_of_value(text: str, start: int) -> int:
    if text[start] == '"':
        return _end_of_string(text, start)
    if text[start] not in "[{":
        return _found(_LITERAL, text, start)
    depth, position = 0, start
    while True:
        position = _found(_NO_BRACKET, text, position)
        depth += 1 if text[position] in "[{" else -1
        position += 1
        if depth == 0:
            return position


def _end_of_string(text: str, start: int) -> int:
    return _found(_STRING, text, start)


def _skip(text: str, position: int) -> int:
    """Returns where the next token begins: after blanks and comments."""
    return _found(_BLANK, text, position)


def _found(what: re.Pattern[str], text: str, start: int) -> int:
    """Returns where the text ends that begins here."""
    found = what.match(text, start)
    assert found is not None, "this is no JSON"
    return found.end()
