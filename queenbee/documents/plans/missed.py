"""What has the form of a plan's sprints and is none: it is told with the line that makes it one.

Pure. What is in code or in a comment has no form.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Literal

from queenbee.documents.findings import Finding
from queenbee.documents.markdown import Block
from queenbee.documents.plans.headings import SPRINT, SPRINT_LEVEL, Heading, Unit, own_form
from queenbee.documents.plans.sections import Section, Unread
from queenbee.documents.sprints.numbers import is_sprint, phase_of

_VERBATIM = re.compile(r"\s*<(?:[!?]|pre\b|script\b|style\b|textarea\b)", re.IGNORECASE)
"""Comments and code. Other HTML extends to the next empty line, which few people know."""
_CLOSED = re.compile(
    r"\s*(?:<!--(?s:.*?)-->|<\?(?s:.*?)\?>|<!\[(?s:.*?)\]\]>|<![a-z](?s:.*?)>"
    r"|<[a-z](?s:.*?)</(?:pre|script|style|textarea)>)|\s*<!-->",
    re.IGNORECASE,
)
_HASHES = re.compile(r"[\s>*+-]*+(?:[0-9]+[.)]\s+)?[~\s]*+#")
_LEAD = re.compile(
    r"(?:[^\w\[<:]|_|(?-i:[A-Z]{2,9}):?\s|[0-9]+[.)]\s|\[[ x]?\]?|<[^<>]*>|:[a-z0-9_+-]+:|[<:])*+",
    re.IGNORECASE,
)
"""What stands before the first word of a line."""
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_LONGEST = 1_000
"""Characters of a line that are looked at."""
_SHOWN = 80
"""Characters of a line that a message repeats."""


def missed_units(
    blocks: Sequence[Block],
    lines: Sequence[str],
    headings: Sequence[Heading],
    unit: Unit | None,
    sections: Sequence[Section],
    used: Collection[int],
) -> tuple[list[Finding], list[int]]:
    """Returns what has the form of a unit and is none, or is hidden, and the lines of the first.

    `used` are the lines of the headings above units.
    """
    word = unit.word if unit is not None else ""
    read = {each.first for each in sections} | {
        one.first for one in headings if one.first in used and one.word == word
    }
    known = {each.number for each in sections} | {each.heading.number for each in sections}
    by_line = {one.first: one for one in headings}
    inner = {each.first for each in blocks if each.nested and each.kind == "heading"}
    firsts = [each.first for each in sections]
    form = _form_of(word)
    told: list[Finding] = []
    for line in _visible(blocks, len(lines), read):
        at = bisect_left(firsts, line) - 1
        near = sections[at] if at >= 0 else None
        over = near if near is not None and line < near.last else None
        heading, text = by_line.get(line), _common(lines[line][:_LONGEST])
        found = form.search(text)
        if found and found["number"].lower() not in known and _is_meant(found, heading, word):
            number = found["number"].lower()
            if not is_sprint(number):
                phase = phase_of(near.number) if near is not None else "1"
                number = f"{phase}.{re.split('[.-]', number)[-1]}"
            lost = not over if heading else line not in inner and bool(_HASHES.match(text))
            told.append(_told(line, text, over, number, found["title"], lost=lost))
        elif heading and not over and unit and _is_numbered(heading, unit):
            told.append(_told(line, heading.place, None, heading.number, heading.title))
    hidden = filter(None, (_never_closed(each, form) for each in blocks if not each.nested))
    return [*told, *hidden], [each.line for each in told if each.line]


def _form_of(word: str) -> re.Pattern[str]:
    """Returns how a line begins that has the form of a unit; a heading may have it further on."""
    if not word.isalpha():
        return re.compile(r"(?P<number>(?!))(?P<ends>)(?P<title>)")
    return re.compile(
        rf"(?<![^\W_]){word}[\s#*_`\[(]*(?P<number>[0-9]+[a-z]*(?:[.-][0-9a-z]+)*)"
        r"(?P<ends>(?:[*_~`\])\u2705]|\(#[^()]*\))*\s*(?:[:|.)–—-](?!\s*[0-9])|\*\*|\Z))?"
        r"[\s:|–—*_~-]*(?P<title>[^\n|<]*)",
        re.IGNORECASE,
    )


def has_form(text: str, word: str) -> bool:
    """Returns whether a line of a text begins with the form of a unit."""
    form, lines = _form_of(word), text.split("\n")
    return any((found := form.search(line)) and _begins(found) for line in lines)


def _visible(blocks: Sequence[Block], count: int, read: Collection[int]) -> list[int]:
    """Returns the indices of the lines that are not code, comments or `read`."""
    hidden = set(read)
    for each in blocks:
        is_html = each.kind == "html" and _VERBATIM.match(each.text)
        if each.kind in ("fence", "code") or is_html:
            hidden.update(range(each.first, each.last))
        elif each.kind == "heading":
            hidden.update(range(each.first + 1, each.last))
    return [line for line in range(count) if line not in hidden]


def _is_meant(found: re.Match[str], heading: Heading | None, word: str) -> bool:
    """Returns whether a line has the form of a unit, and does not only mention one."""
    text, begins = found.string, _begins(found)
    if heading is not None:
        is_high = heading.level > 1 or is_sprint(found["number"])
        return is_high and (begins or bool(found["ends"] and found["title"].strip()))
    is_bold = text.rstrip().endswith("**")
    return begins and bool(_HASHES.match(text) or is_bold or (found["ends"] and word == SPRINT))


def _begins(found: re.Match[str]) -> bool:
    return _LEAD.fullmatch(found.string, 0, found.start()) is not None


def _is_numbered(heading: Heading, unit: Unit) -> bool:
    """Returns whether a heading of the units' level has a sprint's number and a title."""
    if not is_sprint(heading.number) or heading.level != (unit.level or SPRINT_LEVEL):
        return False
    return heading.text.lower().partition(heading.number)[2].lstrip(" *_`")[:1] in (*":–—-",)


def _told(
    line: int, text: str, over: Section | None, number: str, title: str, *, lost: bool = False
) -> Finding:
    """Returns what is said of a line that has the form of a unit: it is lost, or a part of one."""
    right = own_form(SPRINT, number, title.strip(" ,*_~`") or "Title")
    where = "is in no sprint" if over is None else f"is read as a part of sprint {over.number}"
    message = f"{text.strip()[:_SHOWN]!r} {where}"
    severity: Literal["error", "warning"] = "error" if lost else "warning"
    return Unread("", message, severity, f"write it as {right[:_SHOWN]}", line + 1)


def _common(text: str) -> str:
    """Returns a text with common characters for full-width ones, and without invisible ones."""
    return text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _never_closed(block: Block, form: re.Pattern[str]) -> Finding | None:
    if block.kind == "fence" and not block.closed:
        message = "this code fence is never closed: everything below it is code"
    elif block.kind == "html" and _VERBATIM.match(block.text) and not _CLOSED.match(block.text):
        message = "this HTML is never closed: everything below it belongs to it"
    else:
        return None
    lines = block.text.split("\n")
    lost = any(line.lstrip().startswith("#") and form.search(line) for line in lines)
    return Finding("", message, "error" if lost else "warning", line=block.first + 1)
