"""Which headings of a plan are phases and sprints, and which almost are.

A heading that looks like a sprint but is not written as one would silently lose work, so it is an
error that says what to write instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.documents.findings import Finding
from queenbee.documents.sprints.numbers import is_phase, is_sprint

if TYPE_CHECKING:
    from typing import Literal

PHASE_LEVEL = 2
SPRINT_LEVEL = 3

_SPRINT = re.compile(r"Sprint[ \t]+([0-9]+[a-z]*\.[0-9]+[a-z]*):[ \t]*(\S.*)")
_PHASE = re.compile(r"Phase[ \t]+([0-9]+[a-z]*)(?:[ \t]*:[ \t]*(.*))?")
_LIKE = re.compile(r"[\W_]*(sprint|phase)(?![A-Za-z])(.*)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"[\s#:*_.-]*([0-9]+[A-Za-z]*(?:\.[0-9A-Za-z]+)*)(.*)", re.DOTALL)
_UNSPACED = re.compile(r"[ ]{0,3}#{1,}\s*(?:sprint|phase)[\s#]*[0-9]", re.IGNORECASE)
_OTHER_WORD = re.compile(r"(?:[A-Za-z]+[ \t]+)?[0-9]+[a-z]*\.[0-9]+[a-z]*[ \t]*:.*")
_BOLD = re.compile(r"(\*\*|__)\s*(?:sprint\s+[0-9]|phase\s+[0-9]).*\1:?", re.IGNORECASE)
_ANY_NUMBER = re.compile(r"([0-9]+[A-Za-z]*(?:\.[0-9A-Za-z]+)*)[\s:*_`–—-]*(.*)", re.DOTALL)
_SPRINT_FORM = "### Sprint 1.2: Title"
_PHASE_FORM = "## Phase 1: Title"
_SHOWN = 80
"""Characters of a heading that a message repeats."""
_SEPARATORS = (":", "-", "–", "—")


@dataclass(frozen=True)
class Heading:
    """A heading that begins a phase or a sprint."""

    kind: Literal["phase", "sprint"]
    number: str
    title: str


def read_heading(text: str, level: int) -> Heading | None:
    """Returns the phase or sprint that a heading begins, or None."""
    if level == SPRINT_LEVEL and (match := _SPRINT.fullmatch(text)):
        return Heading("sprint", match[1], match[2].strip())
    if level == PHASE_LEVEL and (match := _PHASE.fullmatch(text)):
        return Heading("phase", match[1], (match[2] or "").strip())
    return None


def near_miss(text: str, level: int, line: int) -> Finding | None:
    """Returns why `read_heading` did not accept a heading that looks like a phase or sprint."""
    like = _LIKE.match(text)
    if like is None:
        if level == SPRINT_LEVEL and _OTHER_WORD.fullmatch(text):
            return _finding(text, "sprint", ["'Sprint' is not its first word"], line, "warning")
        return None
    word, rest = like[1], like[2]
    kind = word.lower()
    number = _NUMBER.match(rest)
    if number is None:
        # "### Sprint planning" may be prose; "## Sprint planning" certainly is.
        if level == SPRINT_LEVEL and text.startswith("Sprint"):
            return _finding(text, kind, ["it has no number"], line, "warning")
        return None
    reasons = _reasons(text, like, number, level)
    return _finding(text, kind, reasons, line, "error") if reasons else None


def near_miss_line(text: str, line: int) -> Finding | None:
    """Returns why a line that looks like a phase or sprint is not a heading."""
    if _UNSPACED.match(text):
        kind = "phase" if "phase" in text.lower()[:20] else "sprint"
        reason = "a heading has up to six #, and a space after them"
        return _finding(text.strip(), kind, [reason], line, "error")
    if _BOLD.fullmatch(text.strip()):
        kind = "phase" if "phase" in text.lower()[:20] else "sprint"
        return _finding(text.strip(), kind, ["bold text is not a heading"], line, "warning")
    return None


def _reasons(text: str, like: re.Match[str], found: re.Match[str], level: int) -> list[str]:
    """Returns everything that is wrong, in the order of the text; nothing for prose."""
    word, number, after = like[1], found[1], found[2].lstrip("*_` \t")
    sprint = word.lower() == "sprint"
    wanted_level = SPRINT_LEVEL if sprint else PHASE_LEVEL
    whole = (is_sprint if sprint else is_phase)(number.lower())
    whole = whole and (after[:1] in _SEPARATORS if sprint or after else True)
    # A near miss is a sprint at its own level or the one above, or a phase at its own. At other
    # levels ("# Sprint 3 plan", "#### Sprint 1.1 in review") it must have the whole form.
    if level not in ((PHASE_LEVEL, SPRINT_LEVEL) if sprint else (PHASE_LEVEL,)) and not whole:
        return []
    reasons = []
    if level != wanted_level:
        reasons.append(f"it has {level} #, not {wanted_level}")
    if not text.startswith(word):
        reasons.append(f"{word!r} is not its first word")
    if word != word.capitalize():
        reasons.append(f"it says {word!r}, not {word.capitalize()!r}")
    if not re.match(r"[ \t]+[0-9]", like[2]):
        reasons.append("only a space may be between the word and its number")
    reasons += _number_reasons(number, after, sprint=sprint)
    reasons += _title_reasons(after, sprint=sprint)
    return reasons or ["a colon must come right after the number, followed by a title"]


def _number_reasons(number: str, after: str, *, sprint: bool) -> list[str]:
    if number != number.lower():
        return ["the letters of a number must be lower case"]
    if sprint and "." not in number:
        return ["the dot between phase and sprint is missing"]
    if not (is_sprint if sprint else is_phase)(number):
        return [f"{number!r} is not a {'sprint' if sprint else 'phase'} number"]
    if sprint and re.match(r"[-_/][0-9]", after):
        return [f"{(number + after).split()[0]!r} is not a sprint number"]
    return []


def _title_reasons(after: str, *, sprint: bool) -> list[str]:
    if after.startswith(":"):
        return ["it has no title"] if sprint and not after.strip(": \t*_`") else []
    if re.match(r"[-_/.]?[0-9]", after):
        return []
    if after[:1] in _SEPARATORS:
        return ["a colon, not a dash, must come after the number"]
    return ["the colon after the number is missing"] if sprint or after else []


def _finding(
    text: str, kind: str, reasons: list[str], line: int, severity: Literal["error", "warning"]
) -> Finding:
    message = f"{text[:_SHOWN]!r} looks like a {kind}, but {'; '.join(reasons)}"
    return Finding("", message, severity, hint=f"write it as {_form(text, kind)}", line=line)


def _form(text: str, kind: str) -> str:
    """Returns how to write the heading: with its own number and title if it has both."""
    found = _ANY_NUMBER.search(text[:_SHOWN])
    number, title = (found[1].lower(), found[2].strip("*_`# \t")) if found else ("", "")
    if kind == "sprint":
        return f"### Sprint {number}: {title}" if is_sprint(number) and title else _SPRINT_FORM
    return f"## Phase {number}: {title}" if is_phase(number) and title else _PHASE_FORM
