"""Which headings of a plan are phases and sprints, and which almost are.

A heading that looks like a sprint but is not written as one would silently lose work, so it is an
error that says what to write instead.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.documents.findings import Finding
from queenbee.documents.plans.marks import read_marks, read_title_marks
from queenbee.documents.sprints.numbers import is_phase, is_sprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from queenbee.documents.plans.marks import Mark

PHASE_LEVEL = 2
SPRINT_LEVEL = 3

_SPRINT = re.compile(r"Sprint[ \t]+([0-9]+[a-z]*\.[0-9]+[a-z]*):[ \t]*(\S.*)")
_PHASE = re.compile(r"Phase[ \t]+([0-9]+[a-z]*)(?:[ \t]*:[ \t]*(.*))?")
_LIKE = re.compile(r"[\W_]*(sprint|phase)(?![A-Za-z])(.*)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"[\s#:*_.~-]*([0-9]+[A-Za-z]*(?:\.[0-9A-Za-z]+)*)(.*)", re.DOTALL)
_SPRINT_NUMBER = r"[0-9]+[A-Za-z]*\.[0-9]+[A-Za-z]*"
_WITHIN = re.compile(
    rf"(?<![^\W_])(?<!-)(sprints?)[ \t#*_~]{{0,9}}({_SPRINT_NUMBER})(?![^\W_]|\.\w)(.*)",
    re.IGNORECASE | re.DOTALL,
)
# What people put before the word: a list's number, an emoji, an anchor, a state.
_DECORATION = re.compile(
    r"(?>:[a-z0-9_+-]+:|<[^<>]{0,200}>|[0-9]+[.)](?=\s)|phase\s{1,9}[0-9]+[a-z]*\b"
    r"|(?:wip|todo|doing|active|current|next|new|draft|planned|pending|blocked|done)\b|[\W_])*+",
    re.IGNORECASE,
)
_WORDS = re.compile("sprint|phase", re.IGNORECASE)
_HASHES = re.compile(r"#{1,6}(?:\s|\Z)")
_WORD_AND_NUMBER = re.compile(r"(?:sprint|phase)[\s#*_~]{0,9}[0-9]", re.IGNORECASE)
_OTHER_WORD = re.compile(r"(?:[^\W\d_]+[ \t]+)?[0-9]+[a-z]*\.[0-9]+[a-z]*[ \t]*[:\uff1a].*")
_OTHER_DASH = re.compile(r"[0-9]+[a-z]*\.[0-9]+[a-z]*[ \t]+[-–—][ \t].*")
_BOLD = re.compile(r"(\*\*|__)(.+)\1:?")
_ITEM = re.compile(
    r"(?:[\s>|]|[-*+](?=\s)|[0-9]{1,9}[.)](?=\s)|\[[ xX]\](?=\s)"
    r"|<[a-z0-9]{1,10}(?:\s[^<>]{0,200})?>)*",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"sprint\s{{1,9}}[*_]{{0,3}}({_SPRINT_NUMBER})[*_~`]{{0,6}}\s*(?:[:\uff1a–—-]|\Z)",
    re.IGNORECASE,
)
_ANY_NUMBER = re.compile(r"([0-9]+[A-Za-z]*(?:\.[0-9A-Za-z]+)*)[\s:\uff1a*_~`/–—-]*(.*)", re.DOTALL)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_COLUMN = re.compile(r"sprints?(?:\s*(?:#|no\.?|number|id))?", re.IGNORECASE)
_DECORATED_PHASE = re.compile(r"(?<![^\W_])Phase[ \t]+[0-9]+[a-z]*[ \t]*(?::|\Z)")
_RANGE = re.compile(rf"{_SPRINT_NUMBER}\b")
_SPRINT_FORM = "### Sprint 1.2: Title"
_PHASE_FORM = "## Phase 1: Title"
_SHOWN = 80
"""Characters of a heading that a message repeats."""
_MAX_TITLE = 500
_SEPARATORS = (":", "\uff1a", "-", "–", "—")
_OTHER_CHARACTERS = "it has full-width or invisible characters"
_FIRST_WORD = "'Sprint' is not its first word"
_FIRST_PHASE = "'Phase' is not its first word"


@dataclass(frozen=True)
class Heading:
    """A heading that begins a phase or a sprint; `mark` says whether it is done or skipped."""

    kind: Literal["phase", "sprint"]
    number: str
    title: str
    mark: Mark | None = None


@dataclass(frozen=True)
class Miss:
    """A heading or line that is not read, although it looks like a phase or a sprint.

    `number` is the sprint that it seems to be, empty if none can be read. A `mention` is probably
    about a sprint that is elsewhere in the plan, and matters only if there is none.
    """

    finding: Finding
    number: str | None = None
    mention: bool = False


def read_heading(text: str, level: int) -> Heading | None:
    """Returns the phase or sprint that a heading begins, or None."""
    marked = read_marks(text)
    found = _plain_heading(marked.text, level)
    if found is None:
        return _plain_heading(text, level)
    title = read_title_marks(found.title)
    return Heading(found.kind, found.number, title.text, marked.mark or title.mark)


def near_miss(text: str, level: int, line: int) -> Miss | None:
    """Returns why `read_heading` did not accept a heading that looks like a phase or sprint."""
    found = _near_miss(text, level, line)
    plain = common_characters(text)
    if plain == text or (found is not None and found.number):
        return found
    heading = read_heading(plain, level)
    if heading is not None:
        return _miss(plain, heading.kind, [_OTHER_CHARACTERS], line, "error")
    return _near_miss(plain, level, line) or found


def common_characters(text: str) -> str:
    """Returns a text with common characters for full-width ones, and without invisible ones."""
    return text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _near_miss(text: str, level: int, line: int) -> Miss | None:
    plain = read_marks(text).text
    like = _LIKE.match(plain)
    within = _WITHIN.search(plain)
    if within is not None and (like is None or like[1].lower() == "phase"):
        return _within(text, plain, within, level, line)
    if like is None:
        if level == SPRINT_LEVEL and _OTHER_WORD.fullmatch(text):
            return _miss(text, "sprint", [_FIRST_WORD], line, "warning")
        if level == SPRINT_LEVEL and _OTHER_DASH.fullmatch(text):
            miss = _miss(text, "sprint", [_FIRST_WORD], line, "warning")
            return Miss(miss.finding, miss.number, mention=True)
        phase = _DECORATED_PHASE.search(plain) if level == PHASE_LEVEL else None
        if phase is None or _DECORATION.fullmatch(plain[: phase.start()]) is None:
            return None
        return _miss(plain[phase.start() :], "phase", [_FIRST_PHASE], line, "error")
    word, rest = like[1], like[2]
    kind = word.lower()
    number = _NUMBER.match(rest)
    if number is None:
        # "### Sprint planning" may be prose; "## Sprint planning" certainly is.
        if level == SPRINT_LEVEL and text.startswith("Sprint"):
            miss = _miss(text, kind, ["it has no number"], line, "warning")
            return Miss(miss.finding, "") if ":" in text and miss.number is None else miss
        return None
    reasons = _reasons(plain, like, number, level)
    return _miss(text, kind, reasons, line, "error") if reasons else None


def near_miss_line(text: str, line: int) -> Miss | None:
    """Returns why a line outside headings looks like a phase or sprint.

    Such a line may be in a paragraph, a list, a table, a quotation or HTML.
    """
    text = common_characters(text)
    if _WORDS.search(text) is None:
        return None
    lead = _ITEM.match(text)
    assert lead is not None
    rest = text[lead.end() :].strip()
    kind = "phase" if "phase" in rest.lower()[:20] and not _WITHIN.search(rest) else "sprint"
    if _HASHES.match(rest):
        return None  # It is a heading, which is another block.
    if rest.lstrip("~*_").startswith("#") and _begins_like_one(rest.lstrip("~*_").lstrip("#")):
        reason = "a heading has up to six #, and a space after them"
        return _miss(rest, kind, [reason], line, "error")
    if "|" in lead[0]:
        cell, _, others = rest.partition("|")
        title = others.partition("|")[0].strip()
        rest = cell.strip() if ":" in cell else f"{cell.strip()}: {title}"
    bold = _BOLD.fullmatch(rest)
    if bold and _begins_like_one(bold[2]) and (kind == "sprint" or not lead[0].strip()):
        found = _miss(rest, kind, ["bold text is not a heading"], line, "warning")
        return found if kind == "phase" else Miss(found.finding, found.number, mention=True)
    named = _NAMED.match(_undecorated(rest.strip("*_~` ")))
    if named is None:
        return None
    if not (lead[0].strip() or rest.startswith(("**", "__")) or named[0].endswith(":")):
        return None  # "Sprint 1.2 - 1.4 are about ..." is prose.
    found = _miss(rest, "sprint", ["it is not a heading"], line, "warning")
    return Miss(found.finding, named[1].lower(), mention=True)


def sprints_in_table(rows: Sequence[str], line: int) -> Iterator[Miss]:
    """Yields the misses for the rows of tables whose first column has the numbers of sprints."""
    inside = False
    for at, row in enumerate(rows, start=line):
        first, bar, rest = row.strip(" \t>").removeprefix("|").partition("|")
        name = first.strip(" \t*_~`")
        if not bar or _COLUMN.fullmatch(name):
            inside = bool(bar)
        elif inside and is_sprint(name.lower()):
            title = rest.partition("|")[0].strip()
            found = _miss(f"{name}: {title}", "sprint", ["it is not a heading"], at, "warning")
            yield Miss(found.finding, name.lower(), mention=True)


def indented_heading(text: str, line: int) -> Miss | None:
    """Returns the miss for a line of a paragraph that is a heading but for its indentation."""
    rest = common_characters(text).strip()
    if _WORDS.search(rest) is None or _HASHES.match(rest) is None:
        return None
    level = len(rest) - len(rest.lstrip("#"))
    inner = rest.strip("# \t")
    found = read_heading(inner, level)
    if found is None:
        return near_miss(inner, level, line)
    indented = text.lstrip() != text and text.strip() == rest
    reason = "it is indented by more than three spaces" if indented else _OTHER_CHARACTERS
    return _miss(inner, found.kind, [reason], line, "error")


def sprint_in_title(heading: Heading, text: str, line: int) -> Miss | None:
    """Returns the miss for a phase heading that has a whole sprint for a title."""
    within = _WITHIN.match(heading.title)
    if within is None or within[3].lstrip("*_~` \t")[:1] not in _SEPARATORS:
        return None
    miss = _miss(text, "sprint", [_FIRST_WORD], line, "error")
    return Miss(miss.finding, within[2].lower(), mention=True)


def _begins_like_one(text: str) -> bool:
    """Returns whether a text begins with `Sprint` or `Phase` and a number, or almost."""
    return _WORD_AND_NUMBER.match(_undecorated(text)) is not None


def _undecorated(text: str) -> str:
    """Returns a text without the marks, symbols and states before its first word."""
    text = read_marks(text).text
    decoration = _DECORATION.match(text)
    return text[decoration.end() :] if decoration else text


def _plain_heading(text: str, level: int) -> Heading | None:
    if level == SPRINT_LEVEL and (match := _SPRINT.fullmatch(text)):
        return Heading("sprint", match[1], match[2].strip())
    if level == PHASE_LEVEL and (match := _PHASE.fullmatch(text)):
        return Heading("phase", match[1], (match[2] or "").strip())
    return None


def _within(text: str, plain: str, found: re.Match[str], level: int, line: int) -> Miss | None:
    """Returns the miss for a heading with other things before the word `Sprint`."""
    before, after = plain[: found.start()], found[3].lstrip("*_~` \t")
    decorated = _DECORATION.fullmatch(before) is not None and level in (PHASE_LEVEL, SPRINT_LEVEL)
    if not decorated and after[:1] not in _SEPARATORS:
        if level not in (PHASE_LEVEL, SPRINT_LEVEL):
            return None
        miss = _miss(text, "sprint", [_FIRST_WORD], line, "warning")
        return Miss(miss.finding, found[2].lower(), mention=True)
    # "Sprints 1.2: Title" is as likely to be about several sprints as to be one.
    severity: Literal["error", "warning"] = "warning" if found[1][-1] in "sS" else "error"
    miss = _miss(text, "sprint", [_FIRST_WORD], line, severity)
    return Miss(miss.finding, found[2].lower(), mention=not decorated)


def _reasons(text: str, like: re.Match[str], found: re.Match[str], level: int) -> list[str]:
    """Returns everything that is wrong, in the order of the text; nothing for prose."""
    word, number, after = like[1], found[1], found[2].lstrip("*_~` \t")
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
        return ["it has no title"] if sprint and not after.strip(": \t*_~`") else []
    if re.match(r"[-_/.]?[0-9]", after):
        return []
    if after.startswith("\uff1a"):
        return ["a colon of ASCII, not a full-width one, must come after the number"]
    if after[:1] in _SEPARATORS:
        return ["a colon, not a dash, must come after the number"]
    return ["the colon after the number is missing"] if sprint or after else []


def _miss(
    text: str, kind: str, reasons: list[str], line: int, severity: Literal["error", "warning"]
) -> Miss:
    message = f"{text[:_SHOWN]!r} looks like a {kind}, but {'; '.join(reasons)}"
    number, form = _form(text, kind)
    finding = Finding("", message, severity, hint=f"write it as {form}", line=line)
    return Miss(finding, number if kind == "sprint" else None)


def _form(text: str, kind: str) -> tuple[str | None, str]:
    """Returns the number of a near miss, and how to write it with its own number and title."""
    text = _LINK.sub(r"\1", text)
    marked = read_marks(text.lstrip("# \t") if text.startswith("#") else text)
    within = _WITHIN.search(marked.text) if kind == "sprint" else None
    found = _ANY_NUMBER.search(marked.text if within is None else marked.text[within.start(2) :])
    number, title = (found[1].lower(), found[2].strip("*_~`# \t\r\n")) if found else ("", "")
    behind = read_marks(" ".join(re.sub(r"</\w{1,10}>", "", title).split()).lstrip(".,;:)] "))
    title, mark = behind.text, marked.mark or behind.mark
    check = "\u2705 " if mark == "done" else ""
    if kind == "phase":
        whole = is_phase(number) and title
        return None, f"## {check}Phase {number}: {title}" if whole else _PHASE_FORM
    if not is_sprint(number) or not title or len(title) > _MAX_TITLE or _RANGE.match(title):
        return (number if is_sprint(number) else None), _SPRINT_FORM
    skipped = " (SKIPPED)" if mark == "skipped" else ""
    return number, f"### {check}Sprint {number}: {title}{skipped}"
