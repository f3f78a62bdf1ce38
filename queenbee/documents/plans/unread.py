"""The one rule of a plan: a line that names something, and is not read as such, is told.

Pure. `grammar` has the patterns. What is in code or in a comment names nothing, and neither does a
mention of a sprint that the plan has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from queenbee.documents.findings import Finding
from queenbee.documents.markdown import Block
from queenbee.documents.plans.grammar import (
    ANNOTATION,
    ARROW,
    BEAD_NAMED,
    BEFORE,
    IN_SECTIONS,
    IS_DONE,
    MENTION,
    NAMED,
    NUMBER,
    OTHER_WORD,
    PHASE_LEVEL,
    RELATION,
    SAID_DONE,
    SAID_WAITING,
    SPRINT_LEVEL,
    WAITS,
    WAITS_FOR,
    unread,
)
from queenbee.documents.sprints.numbers import is_before, is_sprint

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_FENCE = re.compile(r"[\s>*+-]*(?:[0-9]{1,9}[.)]\s+)?(```+|~~~+)")
_COLUMNS = {
    "Sprint": re.compile(r"sprints?(?:\s*(?:#|no\.?|number|id))?", re.IGNORECASE),
    "Phase": re.compile(r"phases?", re.IGNORECASE),
    "needs": WAITS,
}
_CELLS = {
    "Sprint": re.compile(rf"(?:sprint\s+)?({NUMBER})(?!\w)", re.IGNORECASE),
    "Phase": re.compile(r"([0-9]+[a-z]*)\Z", re.IGNORECASE),
}
_HEADING = re.compile(r"[\s>|~*_+-]*(?:[0-9]{1,9}[.)]\s+)?[\s~*_]*(?:\[[ xX]\]\s+)?#")


class Naming(NamedTuple):
    """What a line names: its kind, and the number of a sprint, empty if none can be read."""

    kind: str
    number: str | None
    severity: Literal["error", "warning"] = "warning"


class Line(NamedTuple):
    """A line of text in a plan, from 1; `text` has common characters, `source` is as written."""

    number: int
    text: str
    source: str


def named_in_heading(text: str, level: int, known: Collection[str]) -> Naming | None:
    """Returns what a heading names. `known` are the plan's sprints.

    It is an error if the heading begins like a sprint or phase, or has a whole sprint that the plan
    lacks. At other levels than theirs, only a whole one counts: `# Sprint 3 plan` is prose.
    """
    text = common_characters(text)
    found = NAMED["a sprint"].search(text)
    if found is not None:
        word, number, colon = found[1].lower(), found[2].lower(), found[3]
        begins, whole = _begins(found), is_sprint(number) and colon
        if not whole and level not in (PHASE_LEVEL, SPRINT_LEVEL):
            return None
        if number in known and (found[3] is None or not (begins or colon)):
            return None
        lost = begins or (whole and number not in known)
        return Naming("a sprint", number, "error" if lost and word == "sprint" else "warning")
    found = NAMED["a phase"].search(text)
    if found is not None and _begins(found):
        told = level == PHASE_LEVEL or found[3] is not None
        return Naming("a phase", None, "error") if told else None
    if level != SPRINT_LEVEL:
        return None
    other = OTHER_WORD.match(text)
    if other is not None and (other[2] == ":" or other[1] not in known):
        return Naming("a sprint", other[1])
    return Naming("a sprint", "") if text.startswith("Sprint") and ":" in text else None


def named_in_line(text: str, known: Collection[str]) -> Naming | None:
    """Returns what a line outside headings begins with: a sprint that the plan lacks, or a phase.

    "Sprint 1.2 - 1.4 are about ..." is prose, unless something stands before it.
    """
    for kind, pattern in NAMED.items():
        found = pattern.search(text)
        if found is None or not _begins(found):
            continue
        before, number = text[: found.start()], found[2].lower()
        if _HEADING.match(before):
            return Naming(kind, number if kind == "a sprint" else None, "error")
        if kind == "a phase":
            return Naming(kind, None) if before.strip() in ("**", "__") and found[3] else None
        is_bold = "**" in before or "__" in before
        if number in known or not (is_bold or is_sprint(number)):
            return None
        # The title is behind the number, or in the same bold.
        ends = found[3] == ":" or (found[3] is not None and before.strip())
        whole = is_bold and text.rstrip().endswith(("**", "__"))
        return Naming(kind, number) if ends or whole else None
    return None


def named_in_section(
    blocks: Sequence[Block],
    read: Collection[int],
    known: Collection[str],
    path: str,
    under: Sequence[str] = (),
) -> Iterator[Finding]:
    """Yields what the lines under a sprint or phase name, except those that were `read`.

    `under` are the sprint, and those that it depends on.
    """
    for block in blocks:
        for line in visible_lines(block):
            kind = None if line.number in read else _kind_in_section(line.text, known)
            if kind is not None:
                is_lost = kind == "a dependency" and block.kind != "other"
                severity: Literal["error", "warning"] = "error" if is_lost else "warning"
                yield unread(kind, line.source, line.number, severity, path)
            elif line.number not in read and _is_relation(line.text, known, under):
                yield unread("a dependency", line.source, line.number, "warning", path)
        if block.kind in ("fence", "code") or ANNOTATION.fullmatch(block.text):
            continue
        for match in BEAD_NAMED.finditer(block.text):
            at = block.text.count("\n", 0, match.start())
            yield unread("a bead", block.text.split("\n")[at], block.first + 1 + at, "error", path)


def visible_lines(block: Block) -> Iterator[Line]:
    """Yields the lines of a block, except those in code fences.

    The rows of a table with a column for sprints, phases or what they wait for are sentences.
    """
    fence, columns = "", dict[str, int]()
    for at, row in enumerate(block.text.split("\n"), start=block.first + 1):
        mark = _FENCE.match(row) if block.kind in ("list", "other") else None
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1][:3]
        if mark or fence or block.kind in ("fence", "code", "rule"):
            continue
        text = common_characters(row)
        cells = text.strip(" \t>").removeprefix("|").split("|")
        names = [cell.strip(" \t*_~`") for cell in cells]
        if len(cells) == 1 or not columns:
            columns = _columns(names) if len(cells) > 1 else {}
        else:
            text = _sentence(names, columns) or text
        yield Line(at, text, row)


def _columns(names: Sequence[str]) -> dict[str, int]:
    """Returns where the head of a table has the columns that name something."""
    return {
        kind: at
        for kind, pattern in _COLUMNS.items()
        for at, name in enumerate(names)
        if pattern.fullmatch(name)
    }


def _sentence(names: Sequence[str], columns: Mapping[str, int]) -> str | None:
    """Returns a row as a sentence about its sprint or phase, None if it has none."""
    for kind, pattern in _CELLS.items():
        at = columns.get(kind, len(names))
        found = pattern.match(names[at]) if at < len(names) else None
        if found is not None:
            needs = columns.get("needs", len(names))
            rest = (name for n, name in enumerate(names) if n not in (at, needs))
            after = f" | after {names[needs]}" if needs < len(names) else ""
            title = names[at][found.end() :]
            return f"| {kind} {found[1]}: {' | '.join((title, *rest))}{after}"
    return None


def common_characters(text: str) -> str:
    """Returns a text with common characters for full-width ones, and without invisible ones."""
    return text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def said_done(text: str, known: Collection[str]) -> str | None:
    """Returns the sprint or phase that a line outside headings says is done or skipped, as the path
    of a finding; `known` are those of the plan.
    """
    for kind, path in (("a sprint", "sprints"), ("a phase", "phases")):
        found = NAMED[kind].search(text)
        if found is not None and _begins(found):
            where = f"{path}[{found[2].lower()}]"
            is_about_it = found[3] is not None or IS_DONE.match(text, found.end())
            return where if where in known and is_about_it and SAID_DONE.search(text) else None
    return None


def said_waiting(text: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields each sprint that a line outside headings begins with, or has before an arrow, and
    another that it waits for; `known` are those of the plan.
    """
    pairs = [(found[2], found[1]) for found in ARROW.finditer(text)]
    if (found := SAID_WAITING.match(text)) is not None:
        pairs += [(found["number"], need) for need in MENTION.findall(text, found.end())]
    for sprint, need in pairs:
        if sprint != need and sprint in known and need in known:
            yield sprint, need


def _is_relation(text: str, known: Collection[str], under: Sequence[str]) -> bool:
    found = RELATION.match(text)
    if found is not None and found["first"].lower().split()[-1] in known:
        return True
    # "Removed again after Sprint 2.1" is no dependency of an earlier sprint.
    return bool(under) and any(
        need in known
        and need not in under
        and not (is_before(need, under[0]) or is_before(under[0], need))
        for need in WAITS_FOR.findall(text)
    )


def _begins(found: re.Match[str]) -> bool:
    return BEFORE.fullmatch(found.string[: found.start()]) is not None


def _kind_in_section(text: str, known: Collection[str]) -> str | None:
    for kind, pattern in IN_SECTIONS.items():
        found = pattern.match(text)
        # "Needs: 1.5 GB" is prose.
        if found is not None and (
            kind != "a dependency" or found["word"] or found["number"].lower() in known
        ):
            return kind
    return None
