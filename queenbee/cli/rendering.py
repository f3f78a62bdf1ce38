"""What `queen` prints: one JSON document, or tables, relative times and findings for people.

Subjects, bodies and reasons are other people's text. Every view for people shows it through
`core.text.printable`, on a terminal and off.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from queenbee.cli.terminal import columns, cut, encodable, say, tinted, width, wrapped
from queenbee.core.json_form import to_plain
from queenbee.core.text import bracketed, mentioned, printable
from queenbee.core.timestamps import format_duration
from queenbee.workflows.next_text import Heading, of_review

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.core.records import Assignment, Reservation
    from queenbee.documents.findings import Finding
    from queenbee.store.host_note import HostNote

_LEAST_COLUMNS = 10
"""What a column keeps before another is left out: enough to recognise a name or a title."""
_STATES = frozenset({"", "STATUS", "STATE", "LEFT", "SEVERITY"})
"""The headings of columns whose words are ours, and have a color."""
_GAP = 2
"""The blanks between two columns."""


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    empty: str,
    text: Sequence[str] = (),
    spare: Sequence[str] = (),
    mine: Sequence[bool] = (),
) -> None:
    """Prints aligned columns, or a sentence if there is nothing to show.

    On a terminal, no line is longer than it is wide: the columns in `text` are cut first, then
    those in `spare` are left out, the first of them first. Rows that are `mine` get a `*`.
    """
    if not rows:
        paragraph(empty)
        return
    lines = [[printable(cell) for cell in row] for row in (headings, *rows)]
    most = columns()
    if most is not None:
        lines = [[encodable(cell) for cell in line] for line in lines]
        if any(mine):
            lines = [[mark, *line] for mark, line in zip(("", *_marks(mine)), lines, strict=True)]
        lines = _fitted(lines, most, text, spare)
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    states = [heading in _STATES for heading in lines[0]]
    for number, line in enumerate(lines):
        whole = _aligned(line, widths)
        if most is not None and width(whole) > most:
            say(cut(whole, most))
        elif number:
            tints = zip(line, states, strict=True)
            cells = [tinted(cell) if state else cell for cell, state in tints]
            say(_aligned(line, widths, cells))
        else:
            say(whole, bold=True)


def entry(before: str, text: str, after: str = "", *, state: str | None = None) -> None:
    """Prints one line of a list: on a terminal, `text` is cut to what the rest leaves.

    `state` is the word with which the line begins; it is shown in its color.
    """
    most = columns()
    if most is not None:
        before, text, after = encodable(before), encodable(text), encodable(after)
        after = cut(after, most // 3)
        blanks = len(before) - len(before.rstrip())
        least = min(width(text), _LEAST_COLUMNS) + blanks
        before = cut(before[: len(before) - blanks], most - width(after) - least) + " " * blanks
        text = cut(text, most - width(before) - width(after))
    say(_begun(f"{before}{text}{after}", state))


def paragraph(text: str, indent: str = "", *, bold: bool = False, state: str | None = None) -> None:
    """Prints a line of text; a terminal that is too narrow gets several, broken at blanks.

    All of them are indented as the text is. `state` is the word with which the text begins; it is
    shown in its color.
    """
    most = columns()
    if most is None:
        say(_begun(f"{indent}{text}" if text else "", state), bold=bold)
        return
    body = text.lstrip(" ")
    indent = (indent + " " * (len(text) - len(body)))[: most // 3]
    for number, line in enumerate(wrapped(encodable(body), most - len(indent))):
        say(_begun(f"{indent}{line}".rstrip(), None if number else state), bold=bold)


def show_lines(lines: Iterable[str]) -> None:
    """Prints lines, of which headings are bold."""
    for line in lines:
        paragraph(line, bold=isinstance(line, Heading))


def show_findings(findings: Iterable[Finding], source: str) -> None:
    """Prints findings about a document, one per line: severity, place, message; a hint once."""
    said = set[str]()
    for each in findings:
        place = f"{printable(source)}:{each.line}" if each.line else printable(source)
        path = f" {printable(each.path)}" if each.path else ""
        line = f"{each.severity:7} {place}:{path} {printable(each.message)}"
        paragraph(line, state=each.severity)
        if each.hint and each.hint not in said:
            said.add(each.hint)
            paragraph(f"        try: {printable(each.hint)}")


def show_json(value: object) -> None:
    """Shows a JSON document for people and pipes."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


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


def in_review(assignment: Assignment, note: HostNote | None = None) -> str:
    """Returns by which pull request the work on an issue is proposed, to print behind it, with what
    was seen of that last; empty if by none.
    """
    review, shown = assignment.review, of_review(assignment)
    state, at_ms = note.seen(review.number) if note is not None and review is not None else ("", 0)
    if not state:
        return shown
    return printable(f"{shown} {state} (seen {ago(at_ms, time.time_ns() // 1_000_000)})")


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


class Streamed:
    """Values that are shown one after the other, as they come; as JSON, each on a line."""

    def __init__(self, values: Iterable[object]) -> None:
        self.values = values


def print_json(value: object) -> None:
    """Prints one JSON document. Arrays print one element per line."""
    if isinstance(value, Streamed):
        for each in value.values:
            click.echo(_dumps(to_plain(each)))
            sys.stdout.flush()
        return
    plain = to_plain(value)
    if isinstance(plain, list) and plain:
        rows = ",\n".join(_dumps(each) for each in plain)
        click.echo(f"[\n{rows}\n]")
    else:
        click.echo(_dumps(plain))


def _begun(line: str, state: str | None) -> str:
    """Returns a line with the state with which it begins in its color."""
    if state is None or not line.lstrip().startswith(state):
        return line
    return line.replace(state, tinted(state), 1)


def _marks(mine: Sequence[bool]) -> list[str]:
    return ["*" if each else "" for each in mine]


def _fitted(
    lines: Sequence[Sequence[str]], most: int, text: Sequence[str], spare: Sequence[str]
) -> list[list[str]]:
    """Returns the lines of a table, the headings first, cut so that each has `most` columns."""
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    kept = dict(enumerate(widths))
    headings = lines[0]
    if sum(widths) + _GAP * (len(kept) - 1) > most:
        kept = {n: size for n, size in kept.items() if any(line[n] for line in lines[1:])}
    for number in [n for name in spare for n in kept if headings[n] == name]:
        least = sum(min(size, _LEAST_COLUMNS) for size in kept.values())
        if least + _GAP * (len(kept) - 1) <= most:
            break
        del kept[number]
    sizes = {number: min(size, most) for number, size in kept.items()}
    room = most - _GAP * (len(sizes) - 1)
    of_text = [n for n in sizes if headings[n] in text]
    _shrink(sizes, of_text, room, _LEAST_COLUMNS)
    _shrink(sizes, list(sizes), room, _LEAST_COLUMNS)
    _shrink(sizes, list(sizes), room, 1)
    return [[cut(line[number], size) for number, size in sizes.items()] for line in lines]


def _shrink(sizes: dict[int, int], among: Sequence[int], room: int, least: int) -> None:
    """Makes columns narrower, the widest first, until all fit or these have the least width."""
    while sum(sizes.values()) > room and among:
        widest = max(among, key=sizes.__getitem__)
        if sizes[widest] <= least:
            return
        sizes[widest] -= 1


def _aligned(
    cells: Sequence[str], widths: Sequence[int], shown: Sequence[str] | None = None
) -> str:
    """Returns a line of a table; `shown` are the cells with their colors."""
    padded = [
        text + " " * (size - width(cell))
        for cell, size, text in zip(cells, widths, shown or cells, strict=True)
    ]
    return (" " * _GAP).join(padded).rstrip()


def _dumps(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        # An old terminal, or a file name that is not valid text: JSON can escape both.
        return json.dumps(value, separators=(",", ":"))
    return text
