"""What people see: aligned tables, relative times, and text that cannot do harm.

Subjects, bodies and reasons are data from others. In every human view, control characters,
escape sequences, bidirectional overrides and other invisible characters are shown as escapes,
on a terminal and off, so that no text can move the cursor, hide, or pass for another column.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import click

from queenbee.core.timestamps import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = frozenset("\u200d\ufe0f")
"""They make one emoji of several and hide nothing by themselves."""


_LINE = 400
"""Where a line is cut that stands among others on one screen."""


def printable(text: str, *, keep_newlines: bool = False) -> str:
    """Returns the text with everything that a terminal would act on, or hide, spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char, keep_newlines) for char in text)


def _shown(char: str, keep_newlines: bool) -> str:
    if char == "\n":
        return char if keep_newlines else "⏎"
    if char == "\t":
        return "    " if keep_newlines else " "
    if char.isprintable() or char in _JOINERS:
        return char
    if unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Returns how many columns a terminal gives to the text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) or char in _JOINERS
        else 2 if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )  # fmt: skip


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Prints aligned columns, or a sentence where there is nothing to show."""
    if not rows:
        click.echo(empty)
        return
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [
        max(width(row[column]) for row in [list(headings), *cells])
        for column in range(len(headings))
    ]
    _line(headings, widths, bold=True)
    for row in cells:
        _line(row, widths)


def _line(cells: Sequence[str], widths: Sequence[int], *, bold: bool = False) -> None:
    last = len(cells) - 1
    text = "  ".join(
        cell if column == last else cell + " " * (size - width(cell))
        for column, (cell, size) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()
    say(text, bold=bold)


def say(text: str, **style: bool | str) -> None:
    """Prints a line, styled on a terminal that wants it."""
    from queenbee.cli.app import colours

    click.echo(click.style(text, **style) if style and colours() else text)  # type: ignore[arg-type]


def block(text: str, indent: str = "    ", *, most: int | None = None) -> None:
    """Prints a text of several lines, each set off from what is ours; no more than `most`."""
    lines = printable(text, keep_newlines=True).split("\n")
    for line in lines[:most]:
        click.echo(f"{indent}{line if most is None else shortened(line, _LINE)}".rstrip())
    if most is not None and len(lines) > most:
        click.echo(f"{indent}… {len(lines) - most} more lines")


def describe(fields: Mapping[str, object], *, most: int | None = None) -> None:
    """Prints what is to be done in an issue: its description, and what it is held against."""
    for name, heading in (("description", ""), ("acceptance_criteria", "Acceptance criteria:\n")):
        text = fields.get(name)
        if isinstance(text, str) and text:
            block(f"{heading}{text}", most=most)


def ago(instant_ms: int, now_ms: int) -> str:
    """Returns how long ago an instant was, in one unit."""
    if not instant_ms:
        return "?"
    seconds = (now_ms - instant_ms) / 1000
    if seconds < 0:
        return f"in {format_duration(-seconds).split(' ')[0]}"
    return f"{format_duration(seconds).split(' ')[0]} ago"


def left(until_ms: int, now_ms: int) -> str:
    """Returns how much time is left until an instant."""
    return format_duration((until_ms - now_ms) / 1000) if until_ms > now_ms else "ended"


def shortened(text: str, columns: int = 60) -> str:
    """Returns the text, cut to a width with a mark where it was."""
    return text if len(text) <= columns else text[: columns - 1] + "…"
