"""The marks in a plan that say that a sprint, a phase or a task is done or left out.

`[x]`, a check mark or `DONE` mean done; `SKIPPED` and its like, or a heading that is struck
through, mean skipped. `docs/plans.md`, section "Done and skipped".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Literal

    Mark = Literal["done", "skipped"]

_DONE = "done|completed?|finished"
_SKIPPED = "skipped|cancell?ed|dropped|abandoned|obsolete|removed"
_WORD = f"{_DONE}|{_SKIPPED}"
_CHECK = (
    "(?:[\u2705\u2611\u2714\u2713]\ufe0f?"
    "|:(?:white_check_mark|heavy_check_mark|ballot_box_with_check):)"
)
_LEADING = re.compile(
    rf"(?:\[(?P<box>[ xX])\]|(?P<check>{_CHECK})|\[(?P<tag>{_WORD})\]|\((?P<bracket>{_WORD})\)"
    rf"|(?P<word>{_WORD})(?=[ \t]*[:–—-]|[ \t]+(?:~~)?(?:sprint|phase)\b))[ \t]*[:–—-]?[ \t]*",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    rf"(?:^|[ \t]+)(?:[-–—:|][ \t]*)?"
    rf"(?:\([ \t]*(?:{_CHECK}[ \t]*)?(?P<bracket>{_WORD})(?P<more>[^()]*)\)"
    rf"|\[(?P<tag>{_WORD})\]"
    rf"|(?P<check>{_CHECK})(?:[ \t]*\**(?:{_WORD})\**)?)[ \t]*\Z",
    re.IGNORECASE,
)
# Without brackets, only capitals after a dash: "Get it done" is a title.
_CAPITALS = re.compile(rf"[ \t]+[-–—|][ \t]*\**(?P<word>{_WORD.upper()})\**[ \t]*\Z")
_AFTER_STRIKE = re.compile(rf"[-–—:|]?[ \t]*\**(?P<word>{_WORD})\**[ \t]*\Z", re.IGNORECASE)
_STRUCK = re.compile(r"~~[ \t]*(.+?)[ \t]*~~[ \t]*(.*)", re.DOTALL)
_REMARK = re.compile(r"[(–—-]")
_DETAIL = re.compile(r"[ \t]*(?:[,;:–—#-]|\d|(?:on|in|by|see|PR|into|with PR)\b).*", re.DOTALL)
_STATUS = re.compile(
    rf"(?:{_CHECK}[ \t]*)?[*_]*(?P<word>{_WORD})[*_]*[ \t]*(?:{_CHECK}[ \t]*)?"
    rf"(?:\Z|[(\[,.;:#–—-]|\d|(?:on|in|by|see|PR)\b|\n)",
    re.IGNORECASE,
)
_MAX_LENGTH = 1_000
"""Characters of a heading: Beads refuses titles half as long, and the patterns take time."""


@dataclass(frozen=True)
class Marked:
    """A text without its marks, and what they say; None if there is none."""

    text: str
    mark: Mark | None


def read_marks(text: str) -> Marked:
    """Returns a heading without the marks around it, and what they say.

    A word for skipped outranks a check mark, which outranks a strike: people strike out what
    they have finished as well as what they have given up.
    """
    if len(text) > _MAX_LENGTH:
        return Marked(text, None)
    rest, marks = _strip(text.strip())
    crossed = False
    struck = _STRUCK.fullmatch(rest)
    if struck is not None and not _is_renamed(struck[2]):
        inner, more = _strip(struck[1])
        marks += more
        remark, after = _strip(struck[2])
        word = _AFTER_STRIKE.match(remark)
        marks += [*after, *([_meaning(word["word"])] if word else [])]
        rest, crossed = inner, True
    return Marked(rest, _strongest(marks, struck=crossed))


def read_title_marks(title: str) -> Marked:
    """Returns the title of a heading without a strike through all of it, and what that says."""
    struck = _STRUCK.fullmatch(title) if len(title) <= _MAX_LENGTH else None
    if struck is None or _is_renamed(struck[2]):
        return Marked(title, None)
    remark, marks = _strip(struck[2])
    word = _AFTER_STRIKE.match(remark)
    marks += [_meaning(word["word"])] if word else []
    return Marked(struck[1], _strongest(marks, struck=True))


def read_status(text: str) -> Mark | None:
    """Returns what the value of a `Status` field says; only finished states have a meaning."""
    match = _STATUS.match(text.strip()[:_MAX_LENGTH])
    return _meaning(match["word"]) if match else None


def _is_renamed(after: str) -> bool:
    """Returns whether words follow a strike: `~~old~~ new` is a new title."""
    plain, marks = _strip(after)
    return bool(plain) and not marks and _REMARK.match(plain) is None and not _is_word(plain)


def _is_word(text: str) -> bool:
    return _AFTER_STRIKE.fullmatch(text) is not None


def _strip(text: str) -> tuple[str, list[Mark]]:
    """Returns a text without the marks at its two ends, and their meanings."""
    marks: list[Mark] = []
    while match := _LEADING.match(text):
        if match["check"] or (match["box"] or " ") != " ":
            marks.append("done")
        elif word := match["tag"] or match["bracket"] or match["word"]:
            marks.append(_meaning(word))
        text = text[match.end() :]
    while (match := _TRAILING.search(text) or _CAPITALS.search(text)) and _is_mark(match):
        found = match.groupdict()
        word = found.get("bracket") or found.get("tag") or found.get("word")
        marks.append(_meaning(word) if word else "done")
        text = text[: match.start()]
    return text.strip(), marks


def _is_mark(match: re.Match[str]) -> bool:
    """Returns whether what is in brackets is a state: "(complete rewrite)" is none."""
    found = match.groupdict()
    more = (found.get("more") or "").strip()
    if not more:
        return True
    word = found["bracket"]
    return _DETAIL.fullmatch(more) is not None and (word.isupper() or _meaning(word) == "skipped")


def _meaning(word: str) -> Mark:
    return "done" if re.fullmatch(_DONE, word, re.IGNORECASE) else "skipped"


def _strongest(marks: list[Mark], *, struck: bool) -> Mark | None:
    if "skipped" in marks:
        return "skipped"
    if "done" in marks:
        return "done"
    return "skipped" if struck else None
