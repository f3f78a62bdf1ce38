"""What `queen` prints: one JSON document, or tables, relative times and findings for people.

Subjects, bodies and reasons are other people's text. Every view for people shows it through
`core.text.printable`, on a terminal and off.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from queenbee.cli.terminal import say, width
from queenbee.core.text import bracketed, mentioned, printable, shortened
from queenbee.core.timestamps import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.core.records import Reservation
    from queenbee.documents.findings import Finding
    from queenbee.errors import QueenError

_LINE_CHARS = 400
"""The length at which a line is cut when it shares a screen with others."""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Prints aligned columns, or a sentence if there is nothing to show."""
    if not rows:
        click.echo(empty)
        return
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [
        max(width(row[column]) for row in [list(headings), *cells])
        for column in range(len(headings))
    ]
    say(_aligned(headings, widths), bold=True)
    for row in cells:
        say(_aligned(row, widths))


def block(text: str, indent: str = "    ", *, most: int | None = None) -> None:
    """Prints a text of several lines, indented; no more than `most` of them."""
    lines = printable(text, keep_newlines=True).split("\n")
    for line in lines[:most]:
        click.echo(f"{indent}{line if most is None else shortened(line, _LINE_CHARS)}".rstrip())
    if most is not None and len(lines) > most:
        click.echo(f"{indent}… {len(lines) - most} more lines")


def describe(fields: Mapping[str, object], *, most: int | None = None) -> None:
    """Prints the description and the acceptance criteria of an issue."""
    for name, heading in (("description", ""), ("acceptance_criteria", "Acceptance criteria:\n")):
        text = fields.get(name)
        if isinstance(text, str) and text:
            block(f"{heading}{text}", most=most)


def show_findings(findings: Iterable[Finding], source: str) -> None:
    """Prints findings about a document, one per line: severity, place, message and hint."""
    for each in findings:
        place = f"{printable(source)}:{each.line}" if each.line else printable(source)
        path = f" {printable(each.path)}" if each.path else ""
        say(f"{each.severity:7} {place}:{path} {printable(each.message)}")
        if each.hint:
            say(f"        try: {printable(each.hint)}")


def verdict(valid: bool) -> str:
    """Returns the word or words for a valid or an invalid document."""
    return "valid" if valid else "not valid"


def purpose(lease: Reservation) -> str:
    """Returns what a lease is for (issue and reason), to print right after its pattern."""
    issue = f" for {mentioned(printable(lease.issue_id))}" if lease.issue_id else ""
    return issue + (f" {bracketed(printable(lease.reason))}" if lease.reason else "")


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


def summary(counts: Mapping[str, int]) -> str:
    """Returns how many issues are done, active, ready and so on, in words."""
    parts = [f"{counts['done']} of {counts['total']} done"]
    parts += [f"{counts[state]} {state}" for state in ("active", "ready", "waits") if counts[state]]
    if counts["on_hold"]:
        parts.append(f"{counts['on_hold']} on hold")
    return ", ".join(parts)


def print_json(value: object) -> None:
    """Prints one JSON document. Arrays print one element per line."""
    plain = to_plain(value)
    if isinstance(plain, list) and plain:
        rows = ",\n".join(_dumps(each) for each in plain)
        click.echo(f"[\n{rows}\n]")
    else:
        click.echo(_dumps(plain))


def to_plain(value: object) -> object:
    """Returns the value as JSON types."""
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    if isinstance(value, dict):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value


def error_document(error: QueenError) -> dict[str, object]:
    """Returns the JSON form of a refusal."""
    document: dict[str, object] = {"code": error.code, "message": error.message}
    if error.hint:
        document["hint"] = error.hint
    document.update((key, to_plain(each)) for key, each in error.details.items())
    return {"error": document}


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (size - width(cell)) for cell, size in zip(cells, widths, strict=True)]
    return "  ".join(padded).rstrip()


def _dumps(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        # An old terminal, or a file name that is not valid text: JSON can escape both.
        return json.dumps(value, separators=(",", ":"))
    return text
