"""What has the form of a plan's sprints and is none: it is told with the line that makes it one.

Pure. What is in code or in a comment has no form.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
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
_FENCE = re.compile(r"[\s>*+-]*(?:[0-9]{1,9}[.)]\s+)?(```+|~~~+)")
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
    word, level = (unit.word, unit.level or SPRINT_LEVEL) if unit is not None else ("", 0)
    read = {one.first for one in headings if one.first in used and one.word == word}
    read.update(each.first for each in sections)
    known = {one.heading.number for one in sections}
    known.update(one.number for one in sections if one.heading.word == word)
    pattern = form_of(word)
    by_line = {one.first: one for one in headings}
    firsts = [one.first for one in sections]
    nested = {each.first for each in blocks if each.nested}
    told: dict[int, Finding] = {}
    for line, source, is_heading in _visible(blocks, lines, read):
        text = _common(source[:_LONGEST])
        heading = by_line.get(line) if is_heading else None
        found = (pattern.search if heading else pattern.match)(text)
        number = found["number"].lower() if found else ""
        above = bisect_left(firsts, line) - 1
        near = sections[above] if above >= 0 else None
        over = near if near is not None and line < near.last else None
        if heading.level == 1 and not is_sprint(number) if heading else word != SPRINT:
            continue
        bold = "**" in text[: found.start("number")] if found else False
        meant = heading or text.lstrip(" >*+-~").startswith("#")
        meant = meant or (bold and text.rstrip().endswith("**"))
        if found and number not in known and (meant or found["ends"]):
            phase = phase_of(near.number) if near is not None else "1"
            hint = f"write it as {_corrected(found, phase)[:_SHOWN]}"
            told.setdefault(line, _told(text, line, over, hint, is_heading or line in nested))
        elif heading and not over and heading.level == level and _is_titled(heading):
            told.setdefault(line, _without_word(heading))
    hidden = filter(None, (_never_closed(each, pattern) for each in blocks))
    return [*told.values(), *hidden], sorted(line + 1 for line in told)


def form_of(word: str) -> re.Pattern[str]:
    """Returns how a line begins that has the form of a unit, or a heading has it anywhere."""
    if not word.isalpha():
        return re.compile(r"(?P<number>(?!))(?P<ends>)(?P<title>)")
    return re.compile(
        rf"(?>(?!{word})(?:<[^<>]{{0,200}}>|:[a-z0-9_+-]+:|[^\W\d_]+\s[0-9]+[a-z]?\b(?=\W*\s)"
        rf"|(?-i:[A-Z]{{2,9}}:?\s)|[0-9]+[.)]\s|\[x\]|[\W_]))*+(?<![^\W_]){word}"
        rf"[\s#*_]*(?P<number>[0-9]+[a-z]*(?:[.-][0-9a-z]+)*)"
        rf"(?P<ends>[*_~`\])]*\s*(?:[:：|–—-](?!\s*[0-9])|\*\*|\Z))?[\s:：|–—*_~-]*(?P<title>[^\n|<]*)",
        re.IGNORECASE,
    )


def _visible(
    blocks: Sequence[Block], lines: Sequence[str], read: Collection[int]
) -> Iterator[tuple[int, str, bool]]:
    """Yields (index, text, whether it is a heading) of lines that are not code or `read`."""
    for block in blocks:
        if block.first in read or block.kind in ("fence", "code", "rule"):
            continue
        if block.kind == "html" and _VERBATIM.match(block.text):
            continue
        if block.kind == "heading":
            yield block.first, f"{'#' * block.level} {block.text}", not block.nested
            continue
        fence = ""
        for n, row in enumerate(lines[block.first : block.last], block.first):
            mark = _FENCE.match(row)
            if mark and (not fence or mark[1].startswith(fence)):
                fence = "" if fence else mark[1][:3]
            elif not fence:
                yield n, row, False


def _common(text: str) -> str:
    """Returns a text with common characters for full-width ones, and without invisible ones."""
    return text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _corrected(found: re.Match[str], phase: str) -> str:
    """Returns the line that makes a sprint of what has the form of one, in this phase."""
    number, title = found["number"].lower(), found["title"].strip(" ,*_~`") or "Title"
    if not is_sprint(number):
        number = f"{phase}.{re.split('[.-]', number)[-1]}"
    return own_form(SPRINT, number, title)


def _told(text: str, line: int, over: Section | None, hint: str, is_heading: bool) -> Finding:
    """Returns what is said of a line that has the form of a unit: it is lost, or a part of one."""
    begins = text.lstrip(" >*+-~").startswith("#")
    lost = (begins and not is_heading) or (text.startswith("#") and over is None)
    where = "is in no sprint" if over is None else f"is read as a part of sprint {over.number}"
    severity: Literal["error", "warning"] = "error" if lost else "warning"
    return Unread("", f"{text.strip()[:_SHOWN]!r} {where}", severity, hint, line + 1)


def _is_titled(heading: Heading) -> bool:
    """Returns whether a heading has a sprint's number and a title, as "1.2: Login"."""
    if not is_sprint(heading.number):
        return False
    behind = heading.text.lower().partition(heading.number)[2].lstrip(" *_`")
    return behind[:1] in (*":：–—-",)


def _without_word(heading: Heading) -> Finding:
    hint = f"write it as {own_form(SPRINT, heading.number, heading.title)[:_SHOWN]}"
    message = f"{heading.place[:_SHOWN]!r} is in no sprint"
    return Unread("", message, "warning", hint, heading.first + 1)


def _never_closed(block: Block, pattern: re.Pattern[str]) -> Finding | None:
    if block.kind == "fence" and not block.closed:
        message = "this code fence is never closed: everything below it is code"
    elif block.kind == "html" and _VERBATIM.match(block.text) and not _CLOSED.match(block.text):
        message = "this HTML is never closed: everything below it belongs to it"
    else:
        return None
    lines = block.text.split("\n")
    lost = any(line.lstrip().startswith("#") and pattern.search(line) for line in lines)
    return Finding("", message, "error" if lost else "warning", line=block.first + 1)
