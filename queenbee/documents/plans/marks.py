"""The marks in a plan that say that a sprint, a phase or a task is done or left out.

`[x]`, a check mark or `DONE` mean done; `SKIPPED` and its like, or a heading that is struck
through, mean skipped. `docs/plans.md`, section "Done and skipped".
"""

from __future__ import annotations

import re
from typing import Literal

DONE = "done|completed?|finished"
SKIPPED = "skipped|cancell?ed|dropped|abandoned|obsolete|removed"
STATE = f"{DONE}|{SKIPPED}"
CHECK = (
    "(?:[\u2705\u2611\u2714\u2713]\ufe0f?"
    "|:(?:white_check_mark|heavy_check_mark|ballot_box_with_check):)"
)
Mark = Literal["done", "skipped"]

_LEADING = re.compile(
    rf"(?:\[(?P<box>[ xX])\]|(?P<check>{CHECK})|\[(?P<tag>{STATE})\]|\((?P<bracket>{STATE})\)"
    rf"|(?P<word>{STATE})(?=[ \t]*[:–—-]|[ \t]+(?:~~)?(?:sprint|phase)\b))[ \t]*[:–—-]?[ \t]*",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    rf"(?:^|[ \t]+)(?:[-–—:|][ \t]*)?"
    rf"(?:\([ \t]*(?:{CHECK}[ \t]*)?(?P<bracket>{STATE})(?P<more>[^()]*)\)"
    rf"|\([^()\n]{{1,60}}{CHECK}[ \t]*\)"
    rf"|\[(?P<tag>{STATE})\]"
    rf"|(?P<check>{CHECK})(?:[ \t]*\**(?:{STATE})\**)?)[ \t]*\Z",
    re.IGNORECASE,
)
# Without brackets, only behind a dash, where "removed" may be a title: "Get it done" is one.
_BEHIND_DASH = re.compile(
    rf"[ \t]+[-–—|][ \t]*\**(?P<word>(?i:{DONE})|{SKIPPED.upper()})\**"
    r"(?:[ \t]*(?:[-–—|,][ \t]*)?(?:\([^()]*\)|#[0-9]+))*[ \t]*\Z"
)
_AFTER_STRIKE = re.compile(rf"[-–—:|]?[ \t]*\**(?P<word>{STATE})\**[ \t]*\Z", re.IGNORECASE)
_STRUCK = re.compile(r"~~[ \t]*+(.+?)[ \t]*~~[ \t]*(.*)", re.DOTALL)
_DETAIL = re.compile(r"[ \t]*(?:[,;:–—#-]|\d|(?:on|in|by|see|PR|into|with PR)\b).*", re.DOTALL)
_STATUS = re.compile(
    rf"(?:(?:{CHECK}|\[[xX]\])[ \t]*)*[*_]*(?P<word>{STATE})[*_]*[ \t]*(?:{CHECK}[ \t]*)?"
    rf"(?:\Z|[(\[,.;:#–—-]|\d|(?:on|in|by|see|PR)\b|\n)",
    re.IGNORECASE,
)
_MAX_LENGTH = 1_000
"""Characters of a heading: Beads refuses titles half as long, and the patterns take time."""


def read_marks(text: str) -> tuple[str, Mark | None]:
    """Returns a heading without the marks around it, and what they say; None if there is none.

    A word for skipped outranks a check mark, which outranks a strike: people strike out what
    they have finished as well as what they have given up.
    """
    if len(text) > _MAX_LENGTH:
        return text, None
    rest, marks = _strip(text.strip())
    inner, behind = _unstruck(rest)
    if behind is None:
        return rest, _strongest(marks)
    rest, within = _strip(inner)
    return rest, _strongest([*marks, *within, *behind]) or "skipped"


def read_title_marks(title: str) -> tuple[str, Mark | None]:
    """Returns the title of a heading without a strike through all of it, and what that says."""
    inner, behind = _unstruck(title) if len(title) <= _MAX_LENGTH else (title, None)
    return inner, None if behind is None else _strongest(behind) or "skipped"


def read_status(text: str) -> Mark | None:
    """Returns what the value of a `Status` field says; only finished states have a meaning."""
    match = _STATUS.match(text.strip()[:_MAX_LENGTH])
    return _meaning(match["word"]) if match else None


def _unstruck(text: str) -> tuple[str, list[Mark] | None]:
    """Returns a text without a strike through all of it, and the marks behind that; None if there
    is no such strike: `~~old~~ new` is a new title.
    """
    struck = _STRUCK.fullmatch(text)
    if struck is None:
        return text, None
    remark, marks = _strip(struck[2])
    word = _AFTER_STRIKE.match(remark)
    if remark and not marks and not word and remark[0] not in "(–—-":
        return text, None
    return struck[1], [*marks, *([_meaning(word["word"])] if word else [])]


def _strip(text: str) -> tuple[str, list[Mark]]:
    """Returns a text without the marks at its two ends, and their meanings."""
    marks: list[Mark] = []
    while match := _LEADING.match(text):
        if match["check"] or (match["box"] or " ") != " ":
            marks.append("done")
        elif word := match["tag"] or match["bracket"] or match["word"]:
            marks.append(_meaning(word))
        text = text[match.end() :]
    while (match := _TRAILING.search(text) or _BEHIND_DASH.search(text)) and _is_mark(match):
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
    return "done" if re.fullmatch(DONE, word, re.IGNORECASE) else "skipped"


def _strongest(marks: list[Mark]) -> Mark | None:
    return "skipped" if "skipped" in marks else "done" if marks else None
