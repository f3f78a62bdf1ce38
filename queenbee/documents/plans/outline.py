"""The phases and sprints of a plan with the blocks under them, before their fields are read.

Pure. What looks like a sprint but is none is a finding here: nothing gets lost silently.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from queenbee.documents.findings import Finding
from queenbee.documents.markdown import Block, parse_blocks, split_lines
from queenbee.documents.plans.grammar import (
    FIELD,
    IN_TITLES,
    PHASE,
    PHASE_LEVEL,
    SPRINT,
    SPRINT_LEVEL,
    unread,
)
from queenbee.documents.plans.marks import Mark, read_marks, read_title_marks
from queenbee.documents.plans.unread import (
    Line,
    named_in_heading,
    named_in_line,
    said_done,
    said_waiting,
    visible_lines,
)
from queenbee.documents.sprints.numbers import is_sprint, phase_of

_HIDDEN = re.compile(r"[ ]{0,3}#{2,3}[ \t]+(?:Phase|Sprint)[ \t]+[0-9]", re.MULTILINE)
_VERBATIM = re.compile(r"\s*<(?:[!?]|pre\b|script\b|style\b|textarea\b)", re.IGNORECASE)
"""Comments and code. Other HTML extends to the next empty line, which few people know."""
_CLOSED = re.compile(
    r"\s*(?:<!--(?s:.*?)-->|<\?(?s:.*?)\?>|<!\[(?s:.*?)\]\]>|<![a-z](?s:.*?)>"
    r"|<[a-z](?s:.*?)</(?:pre|script|style|textarea)>)|\s*<!-->",
    re.IGNORECASE,
)
_KEY = re.compile(r"[\w\"'-][\w .\"'-]{0,60}:(?:\s|\Z)")


@dataclass(frozen=True)
class Heading:
    """A heading that begins a phase or a sprint; `mark` says whether it is done or skipped."""

    kind: Literal["phase", "sprint"]
    number: str
    title: str
    mark: Mark | None = None


@dataclass(frozen=True)
class Phase:
    """One `## Phase N: title`; `mark` says whether it is done or skipped."""

    number: str
    title: str
    line: int
    mark: Mark | None = None


@dataclass(frozen=True)
class Section:
    """A sprint's heading, the index of its line, the phase above it, and the blocks below it.

    A `record` is a second heading of a sprint that only says that it is done.
    """

    heading: Heading
    first: int
    phase: Phase | None
    blocks: Sequence[Block]
    record: bool = False

    @property
    def mark(self) -> Mark | None:
        """Whether it is done or skipped, by its own mark or else its phase's."""
        return self.heading.mark or (self.phase.mark if self.phase else None)


@dataclass(frozen=True)
class Outline:
    """The phases, each with the blocks above its first sprint, and the sections of a plan.

    `left_out` are lines of sprints that are not read, `said_done` those that say that a sprint or
    a phase of the plan is done or skipped, each with its path, and `said_waiting` those that say
    that a sprint waits for another.
    """

    phases: tuple[tuple[Phase, Sequence[Block]], ...]
    sections: tuple[Section, ...]
    findings: tuple[Finding, ...] = ()
    left_out: tuple[int, ...] = ()
    said_done: tuple[tuple[str, Line], ...] = ()
    said_waiting: tuple[tuple[str, str, Line], ...] = ()


def read_outline(text: str) -> Outline:
    """Returns the outline of a Markdown document. Never raises, whatever the text."""
    blocks = parse_blocks(_without_front_matter(text.removeprefix("\ufeff")))
    phases: list[tuple[Phase, Sequence[Block]]] = []
    sections: list[Section] = []
    phase: Phase | None = None
    for index, block in enumerate(blocks):
        if not _ends_section(block):
            continue
        heading = read_heading(block.text, block.level)
        if heading is not None and heading.kind == "sprint":
            sections.append(Section(heading, block.first, phase, _section(blocks, index)))
        elif heading is not None:
            phase = Phase(heading.number, heading.title, block.first + 1, heading.mark)
            phases.append((phase, _section(blocks, index)))
        elif block.level < SPRINT_LEVEL:
            phase = None
    sections = _with_records(sections)
    known = {section.heading.number for section in sections}
    used = {section.phase.number for section in sections if section.phase is not None}
    findings, left_out = _unread(blocks, known, {*_numbered(blocks, used)})
    paths = {path for each in known for path in (f"sprints[{each}]", f"phases[{phase_of(each)}]")}
    lines = [
        line
        for block in blocks
        if block.kind != "heading" and not _is_verbatim(block)
        for line in visible_lines(block)
    ]
    done = ((said_done(line.text, paths), line) for line in lines)
    return Outline(
        tuple(phases),
        tuple(sections),
        tuple(findings),
        tuple(left_out),
        tuple((where, line) for where, line in done if where is not None),
        tuple((*pair, line) for line in lines for pair in said_waiting(line.text, known)),
    )


def read_heading(text: str, level: int) -> Heading | None:
    """Returns the phase or sprint that a heading begins, or None."""
    plain, mark = read_marks(text)
    found = _plain_heading(plain, level)
    if found is None:
        return _plain_heading(text, level)
    title, said = read_title_marks(found.title)
    return replace(found, title=title, mark=mark or said)


def sprint_headings(text: str) -> list[tuple[str, int, list[Block]]]:
    """Returns (sprint, index of its line, blocks under it) for each heading that is its sprint's.

    A record of a sprint has none, nor a skipped sprint whose number another sprint has.
    """
    sections = [each for each in read_outline(text).sections if not each.record]
    planned = {each.heading.number for each in sections if each.mark != "skipped"}
    return [
        (each.heading.number, each.first, list(each.blocks))
        for each in sections
        if each.mark != "skipped" or each.heading.number not in planned
    ]


def _without_front_matter(text: str) -> str:
    """Returns the text with empty lines in place of YAML front matter, which Markdown has not."""
    lines = split_lines(text)
    if not lines or lines[0][0].rstrip() != "---":
        return text
    end = next((n for n, (line, _) in enumerate(lines) if n and line.rstrip() in ("---", "...")), 0)
    inside = [line for line, _ in lines[1:end] if line.strip()]
    if not inside or not _KEY.match(inside[0]) or any(line.startswith("##") for line in inside):
        return text
    return "".join(("" if n <= end else line) + ending for n, (line, ending) in enumerate(lines))


def _plain_heading(text: str, level: int) -> Heading | None:
    if level == SPRINT_LEVEL and (match := SPRINT.fullmatch(text)):
        return Heading("sprint", match[1], match[2].strip())
    if level == PHASE_LEVEL and (match := PHASE.fullmatch(text)):
        return Heading("phase", match[1], (match[2] or "").strip())
    return None


def _section(blocks: Sequence[Block], index: int) -> list[Block]:
    end = index + 1
    while end < len(blocks) and not _ends_section(blocks[end]):
        end += 1
    return list(blocks[index + 1 : end])


def _ends_section(block: Block) -> bool:
    return block.kind == "heading" and not block.nested and block.level <= SPRINT_LEVEL


def _with_records(sections: list[Section]) -> list[Section]:
    """Returns the sections, with those that only record a sprint of the phases as done."""
    in_phases = {each.heading.number for each in sections if each.phase is not None}
    return [
        replace(each, record=True)
        if each.phase is None and each.mark == "done" and each.heading.number in in_phases
        else each
        for each in sections
    ]


def _numbered(blocks: Sequence[Block], used: Collection[str]) -> Iterator[int]:
    """Yields the lines of headings such as `### 1.2 Login` in phases that have no sprints."""
    phase = None
    for block in filter(_ends_section, blocks):
        heading = read_heading(block.text, block.level)
        if block.level < SPRINT_LEVEL:
            phase = heading.number if heading is not None and heading.number not in used else None
        number = read_marks(block.text)[0].partition(" ")[0]
        if heading is None and is_sprint(number) and phase_of(number) == phase:
            yield block.first + 1


def _unread(
    blocks: Sequence[Block], known: Collection[str], numbered: Collection[int]
) -> tuple[list[Finding], list[int]]:
    """Returns what the blocks hide or name, and the lines with sprints that the plan lacks."""
    findings: dict[int, Finding] = {}
    left_out = []
    # A heading in a list or a quotation is a block of its own, after the whole list.
    headings = {block.first + 1 for block in blocks if block.kind == "heading"}
    for block in blocks:
        hidden = _never_closed(block)
        if hidden is not None:
            findings[block.first + 1] = hidden
            continue
        is_heading = block.kind == "heading"
        named = _in_heading(block, known) if is_heading else _in_lines(block, known)
        for finding, number in named:
            assert finding.line is not None
            if finding.line in headings and not is_heading:
                continue
            findings.setdefault(finding.line, finding)
            if number is not None and number not in known:
                left_out.append(finding.line)
        if is_heading and block.first + 1 in numbered:
            at = block.first + 1
            findings.setdefault(at, unread("a sprint", block.text, at, "warning"))
            left_out.append(at)
    return list(findings.values()), sorted(set(left_out))


def _never_closed(block: Block) -> Finding | None:
    if block.kind == "fence" and not block.closed:
        message = "this code fence is never closed: everything below it is code"
    elif block.kind == "html" and _VERBATIM.match(block.text) and not _CLOSED.match(block.text):
        message = "this HTML is never closed: everything below it belongs to it"
    else:
        return None
    lost = _HIDDEN.search(block.text) is not None
    return Finding("", message, "error" if lost else "warning", line=block.first + 1)


def _in_heading(block: Block, known: Collection[str]) -> Iterator[tuple[Finding, str | None]]:
    line = block.first + 1
    if block.last > line and any(map(FIELD.fullmatch, block.text.split("\n"))):
        # A line of dashes under them makes fields a heading, which ends their sprint.
        yield unread("a field", block.text, line), None
        return
    read = None if block.nested else read_heading(block.text, block.level)
    if read is None:
        found = named_in_heading(block.text, block.level, known)
    else:
        # The title of a phase can be a whole sprint.
        found = named_in_heading(read.title, 1, known) if read.kind == "phase" else None
        if found is None and IN_TITLES.search(read.title):
            yield unread("a status", block.text, line, "warning"), None
    if found is not None:
        severity = "warning" if block.nested else found.severity
        yield unread(found.kind, block.text, line, severity), found.number


def _is_verbatim(block: Block) -> bool:
    return block.kind == "html" and _VERBATIM.match(block.text) is not None


def _in_lines(block: Block, known: Collection[str]) -> Iterator[tuple[Finding, str | None]]:
    if _is_verbatim(block):
        return
    for line in visible_lines(block):
        found = named_in_line(line.text, known)
        if found is not None:
            yield unread(found.kind, line.source, line.number, found.severity), found.number
