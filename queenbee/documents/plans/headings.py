"""One heading of a plan: the word and number that it begins with, its title, and its marks.

No language and no word is known here, but for the two of the document on sprint beads. To read
another way to number headings, extend `_NUMBERED`. `docs/plans.md`, section "How a plan is read".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from queenbee.documents.markdown import Block
from queenbee.documents.plans.marks import CHECK, Mark, read_marks, read_title_marks
from queenbee.errors import InvalidInput

SPRINT, PHASE = "sprint", "phase"
PHASE_LEVEL, SPRINT_LEVEL = 2, 3

_ORNAMENT = re.compile(
    r"(?>:[a-z0-9_+-]+:|<[^<>]{0,200}>|[^\w<:`(\[]|[<:]|\[(?=[^\W\d_]+[\s#]*[0-9]))++",
    re.IGNORECASE,
)
"""What stands before the first word: an emoji, its short code, an anchor, stars, a bracket."""
_LINK = re.compile(r"\[([^\[\]]{1,300})\]\([^()]{0,500}\)")
_END = r"(?:[\s*_~`\])]|[(（][^()（）]{0,200}[)）])*"
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_NUMBERED = re.compile(
    r"(?:(?P<words>(?:[^\W\d_]+[ \t-]+){0,2}?)(?P<word>[^\W\d_]+)[\s#№.*_\[(`-]*)?"
    r"(?P<number>[0-9]{1,9}(?:[a-z]{1,2}(?![^\W_]))?(?:\.[0-9]{1,9}(?:[a-z]{1,2}(?![^\W_]))?)*"
    r"|(?<=[ \t])(?-i:[IVX]{1,5}|[A-Z])(?=\s*(?:[:.)–—-]|\Z))|[一二三四五六七八九十]{1,3})"
    rf"(?P<counter>[{_IDEOGRAPHS}]{{1,3}})?(?!\w)"
    rf"(?P<range>[ \t]*[-–—][ \t]*[0-9]+(?=[ \t]*(?:[:：.)|*_(–—-]|\Z)))?{_END}"
    r"(?P<separator>[:：.、)|/–—-]*)[\s*_]*",
    re.IGNORECASE,
)
"""A word and a number, or a number and its counter: `Week 2`, `第二周`, `2주차`, `一、`."""
_MARKED = re.compile(rf"{CHECK}|\[[ xX]\]")


@dataclass(frozen=True)
class Heading:
    """A heading: `first` is the index of its line, `text` it without its marks and ornaments.

    `lines` are its lines, with those of dashes below it. `word` and `number` are in lower case, and
    empty if it does not begin with a number; a number that is a letter ("Phase A") or a range is
    kept as written.
    """

    level: int
    first: int
    text: str
    word: str = ""
    number: str = ""
    title: str = ""
    mark: Mark | None = None
    lines: int = 1

    @property
    def place(self) -> str:
        """The heading as a bead's `plan_section` has it."""
        return f"{'#' * self.level} {' '.join(self.text.split())}"


class Unit(NamedTuple):
    """Which headings are the units of work: those of a level (0 is any) with a word.

    The word `1` means numbers without a word, `[ ]` any heading with boxes below it, and no word
    any heading.
    """

    level: int
    word: str

    def __str__(self) -> str:
        return " ".join(filter(None, ("#" * self.level, self.word.capitalize())))

    def takes(self, heading: Heading) -> bool:
        """Returns whether a heading has the form; boxes below it are not looked for."""
        named = self.word in ("", "[ ]") or (
            heading.number and heading.word == self.word.removeprefix("1")
        )
        return bool(named) and self.level in (0, heading.level)


def read_unit(text: str) -> Unit:
    """Returns the unit that somebody names: `## Sprint`, `##`, `Task`. Raises `InvalidInput`."""
    found = re.fullmatch(r"(#{0,6})[ \t]*(1|\[ \]|(?:[^\W\d_]+[ \t]+)*[^\W\d_]+)?", text.strip())
    if found is None or not found[0]:
        raise InvalidInput(
            f"{text!r} names no headings", hint="--unit '## Sprint', --unit '##' or --unit Task"
        )
    word = found[2] or ""
    return Unit(len(found[1]), word if word == "[ ]" else word.split(" ")[-1].casefold())


def read_heading(text: str, level: int, first: int = 0) -> Heading:
    """Returns what a heading says."""
    plain, mark = read_marks(text)
    plain = _LINK.sub(r"\1", plain)
    plain = _unwrapped(plain[ornament.end() :] if (ornament := _ORNAMENT.match(plain)) else plain)
    found = _NUMBERED.match(plain)
    if found is None or not _is_number(found, plain):
        return Heading(level, first, plain or text, title=plain or text, mark=mark)
    inner = None if found["word"] else _NUMBERED.match(plain, found.end())
    if inner and (inner["word"] or "").casefold() in (SPRINT, PHASE) and inner["separator"]:
        found = inner  # "3.1 Phase 1: Setup" is a phase.
    title = _unwrapped(plain[found.end() :])
    title, said = (read_marks if _MARKED.match(title) else read_title_marks)(title)
    return Heading(
        level,
        first,
        plain,
        (found["counter"] or found["word"] or "").casefold(),
        (found["number"] + (found["range"] or "")).lower().replace(" ", ""),
        title or plain,
        mark or said,
    )


def own_form(kind: str, number: str, title: str, mark: Mark | None = None) -> str:
    """Returns the heading of a phase or sprint as the document on sprint beads writes it."""
    level = SPRINT_LEVEL if kind == SPRINT else PHASE_LEVEL
    text = f"{kind.title()} {number}" + (f": {title}" if title else "")
    marked = {"done": f"\u2705 {text}", "skipped": f"~~{text}~~", None: text}[mark]
    return f"{'#' * level} {marked}"


def headings_of(blocks: list[Block]) -> list[Heading]:
    """Returns the headings of a document, but for those in a list or a quotation."""
    return [
        replace(
            read_heading(" ".join(block.text.split("\n")), block.level, block.first),
            lines=block.last - block.first,
        )
        for block in blocks
        if block.kind == "heading" and not block.nested
    ]


def _is_number(found: re.Match[str], text: str) -> bool:
    """Returns whether a heading begins with a number, as "3D graphics" and "2026" do not.

    "What Sprint 1.2 taught us" is none, but a "User Story 2" is.
    """
    if found["word"] or found["counter"]:
        if found["words"] and found["word"].casefold() in (SPRINT, PHASE):
            return False
        ends = found["separator"] or found.end() == len(text)
        return bool(ends or found["number"][0].isdigit())
    number, behind = found["number"], text[found.end("number") :]
    return (
        len(number.partition(".")[0]) < 4
        and (number[-1:].isdigit() or bool(found["separator"]))
        and behind[:1] in ("", " ", "\t", *":：.、)")
    )


def _unwrapped(text: str) -> str:
    """Returns a text without the stars around all of it, or before and behind it."""
    text = text.strip()
    while len(text) > 2 and text[0] == text[-1] and text[0] in "*_":
        text = text[1:-1].strip()
    for star in ("**", "__"):
        if text.count(star) == 1:
            text = text.replace(star, "").strip()
    return text
