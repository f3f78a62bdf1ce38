"""The block structure of Markdown: headings, paragraphs and lists, each with its lines.

CommonMark by markdown-it-py, which knows that a `#` in a code fence or a comment does not begin a
heading. Only blocks are parsed: the text inside a line stays as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

Kind = Literal["heading", "paragraph", "list", "html", "fence", "code", "rule", "other"]

MAX_BYTES = 1024 * 1024
"""The size of one document."""
MAX_LINES = 50_000
"""Parsing costs by line: this many take 3 s and 160 MB if each is its own list, else half."""

_MARKER = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_BOX = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_CHECK = re.compile(r"([ \t>]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX~-])\]\*?(?:[ \t]+(.*))?")
_FENCE = re.compile(r"\s*(```|~~~)")


class Item(NamedTuple):
    """One item of a list: the index of its line, its text without marker, box and indentation.

    `ticked` says whether it has a box with a cross.
    """

    first: int
    text: str
    ticked: bool = False


class CheckItem(NamedTuple):
    """An item of a check list: how far it is indented, the character in its box, its text."""

    depth: int
    mark: str
    text: str


@dataclass(frozen=True)
class Block:
    """One top-level block, or a nested heading, code or HTML.

    `text` is the source of a heading or paragraph without its markup, else the lines as written;
    `first` and `last` are the indices of its lines, `last` not included. `level` is that of a
    heading. A list has its `items`.
    """

    kind: Kind
    text: str
    first: int
    last: int
    level: int = 0
    nested: bool = False
    items: tuple[Item, ...] = ()
    closed: bool = True
    """False for a code fence without an end, which runs to the end of the document."""


def split_lines(text: str) -> list[tuple[str, str]]:
    """Returns each line with its ending (`\\n`, `\\r\\n`, `\\r`, or empty on an unended last line).

    These are the lines that Markdown counts; `str.splitlines` also splits at form feeds and
    Unicode separators, which would move every later line number.
    """
    lines = [(match[1], match[2]) for match in _LINE.finditer(text)]
    if lines and lines[-1] == ("", ""):
        lines.pop()
    return lines


def parse_blocks(text: str) -> list[Block]:
    """Returns the document's blocks in order. Never raises, whatever the text."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    # CommonMark replaces NUL; lines that are kept as written must not reintroduce it.
    text = text.replace("\0", "\ufffd")
    lines = [line for line, _ in split_lines(text)]
    tokens = parser.parse(text)
    blocks: list[Block] = []
    for at, token in enumerate(tokens):
        block = _block(tokens, at, lines) if token.map is not None else None
        if block is not None:
            blocks.append(block)
    return blocks


def strip_item(lines: Sequence[str]) -> tuple[str, bool]:
    """Returns the text of a list item without marker, box and indentation, and if it is ticked."""
    first, ticked = strip_box(_MARKER.sub("", lines[0]))
    if len(lines) == 1:
        return first.strip(), ticked
    rest = dedent("\n".join(lines[1:]))
    return f"{first}\n{rest}".strip(), ticked


def strip_box(text: str) -> tuple[str, bool]:
    """Returns a text without the box of a task list at its beginning, and if that is ticked."""
    box = _BOX.match(text)
    return (text[box.end() :], box[1] != " ") if box else (text, False)


def unfenced_lines(text: str) -> Iterator[str]:
    """Yields the lines of a text that are in no code fence, without their endings."""
    fence = ""
    for line, _ in split_lines(text):
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not fence:
            yield line


def check_item(line: str) -> CheckItem | None:
    """Returns the item of a check list that a line is, at any depth."""
    found = _CHECK.fullmatch(line)
    if found is None:
        return None
    return CheckItem(len(found[1].expandtabs(4)), found[2], (found[3] or "").strip())


_KINDS: dict[str, Kind] = {
    "html_block": "html",
    "fence": "fence",
    "code_block": "code",
    "hr": "rule",
    "paragraph_open": "paragraph",
    "blockquote_open": "other",
}


def _block(tokens: Sequence[Token], at: int, lines: list[str]) -> Block | None:
    token = tokens[at]
    assert token.map is not None
    first, last = token.map
    if token.type == "heading_open":
        text = tokens[at + 1].content
        return Block("heading", text, first, last, int(token.tag[1]), nested=token.level > 0)
    nested = token.level > 0
    if nested and token.type not in ("fence", "code_block", "html_block"):
        return None
    if token.type in ("bullet_list_open", "ordered_list_open"):
        text = "\n".join(lines[first:last])
        return Block("list", text, first, last, items=_items(tokens, at, lines))
    kind = _KINDS.get(token.type)
    if kind is None:
        return None
    if kind == "paragraph":
        return Block(kind, tokens[at + 1].content, first, last)
    closed = kind != "fence" or _is_closed(token, lines)
    return Block(kind, "\n".join(lines[first:last]), first, last, nested=nested, closed=closed)


def _items(tokens: Sequence[Token], at: int, lines: list[str]) -> tuple[Item, ...]:
    items: list[Item] = []
    at += 1
    while tokens[at].level > 0:
        token = tokens[at]
        if token.type == "list_item_open" and token.level == 1 and token.map:
            first, last = token.map
            items.append(Item(first, *strip_item(lines[first:last])))
        at += 1
    return tuple(items)


def _is_closed(token: Token, lines: list[str]) -> bool:
    assert token.map is not None
    first, last = token.map
    closing = lines[last - 1].strip()
    return (
        last - first > 1 and closing.startswith(token.markup) and not closing.strip(token.markup[0])
    )
