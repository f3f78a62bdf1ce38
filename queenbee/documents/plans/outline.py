"""The phases and sprints of a plan with the blocks under them, before their fields are read.

Pure. What looks like a sprint but is none is a finding here: nothing gets lost silently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from queenbee.documents.findings import Finding
from queenbee.documents.markdown import parse_blocks, split_lines
from queenbee.documents.plans.headings import (
    SPRINT_LEVEL,
    Miss,
    indented_heading,
    near_miss,
    near_miss_line,
    read_heading,
    sprint_in_title,
    sprints_in_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.documents.markdown import Block
    from queenbee.documents.plans.headings import Heading
    from queenbee.documents.plans.marks import Mark

_HIDDEN = re.compile(r"[ ]{0,3}#{2,3}[ \t]+(?:Phase|Sprint)[ \t]+[0-9]", re.MULTILINE)
_VERBATIM = re.compile(r"\s*<(?:[!?]|pre\b|script\b|style\b|textarea\b)", re.IGNORECASE)
"""Comments and code. Other HTML extends to the next empty line, which few people know."""
_CLOSED = re.compile(
    r"\s*(?:<!--(?s:.*?)-->|<\?(?s:.*?)\?>|<!\[(?s:.*?)\]\]>|<![a-z](?s:.*?)>"
    r"|<[a-z](?s:.*?)</(?:pre|script|style|textarea)>)|\s*<!-->",
    re.IGNORECASE,
)
_KEY = re.compile(r"[\w\"'-][\w .\"'-]{0,60}:(?:\s|\Z)")
_FENCE = re.compile(r"[\s>*+-]*(?:[0-9]{1,9}[.)]\s+)?(```+|~~~+)")


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
    """The phases and sections of a plan; `left_out` are lines of sprints that are not read."""

    phases: tuple[Phase, ...]
    sections: tuple[Section, ...]
    findings: tuple[Finding, ...] = ()
    left_out: tuple[int, ...] = ()


def read_outline(text: str) -> Outline:
    """Returns the outline of a Markdown document. Never raises, whatever the text."""
    blocks = parse_blocks(_without_front_matter(text.removeprefix("\ufeff")))
    phases: list[Phase] = []
    sections: list[Section] = []
    phase: Phase | None = None
    for index, block in enumerate(blocks):
        if block.kind != "heading" or block.nested or block.level > SPRINT_LEVEL:
            continue
        heading = read_heading(block.text, block.level)
        if heading is not None and heading.kind == "sprint":
            sections.append(Section(heading, block.first, phase, _section(blocks, index)))
        elif heading is not None:
            phase = Phase(heading.number, heading.title, block.first + 1, heading.mark)
            phases.append(phase)
        elif block.level < SPRINT_LEVEL:
            phase = None
    sections = _with_records(sections)
    known = {section.heading.number for section in sections}
    findings, left_out = _judged(blocks, known)
    return Outline(tuple(phases), tuple(sections), tuple(findings), tuple(left_out))


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


def _section(blocks: Sequence[Block], index: int) -> list[Block]:
    end = index + 1
    while end < len(blocks) and not _ends_section(blocks[end]):
        end += 1
    return list(blocks[index + 1 : end])


def _ends_section(block: Block) -> bool:
    top = block.kind == "heading" and not block.nested
    return top and block.level <= SPRINT_LEVEL


def _with_records(sections: list[Section]) -> list[Section]:
    """Returns the sections, with those that only record a sprint of the phases as done."""
    in_phases = {each.heading.number for each in sections if each.phase is not None}
    return [
        replace(each, record=True)
        if each.phase is None and each.mark == "done" and each.heading.number in in_phases
        else each
        for each in sections
    ]


def _judged(blocks: Sequence[Block], known: set[str]) -> tuple[list[Finding], list[int]]:
    """Returns what is wrong with the blocks, and the lines with sprints that the plan lacks.

    A mention of a sprint that the plan has is no finding, or a warning if it is a heading.
    """
    findings: dict[int, Finding] = {}
    left_out = []
    for found in (found for block in blocks for found in _stray(block)):
        if isinstance(found, Finding):
            findings[found.line or 0] = found
            continue
        finding, line = found.finding, found.finding.line or 0
        if found.mention and found.number in known:
            if finding.severity == "warning":
                continue
            finding = replace(finding, severity="warning")
        elif found.number is not None and found.number not in known:
            left_out.append(line)
        findings.setdefault(line, finding)
    return list(findings.values()), sorted(set(left_out))


def _stray(block: Block) -> Iterator[Finding | Miss]:
    """Yields what is wrong with a block, anywhere in the plan."""
    line = block.first + 1
    if block.kind == "heading":
        yield from _stray_heading(block, line)
    elif block.kind in ("paragraph", "list", "other"):
        yield from _stray_lines(block)
    elif block.kind == "fence" and not block.closed:
        lost = _HIDDEN.search(block.text) is not None
        message = "this code fence is never closed: everything below it is code"
        yield Finding("", message, "error" if lost else "warning", line=line)
    elif block.kind == "html" and _VERBATIM.match(block.text):
        if _CLOSED.match(block.text) is None:
            lost = _HIDDEN.search(block.text) is not None
            message = "this HTML is never closed: everything below it belongs to it"
            yield Finding("", message, "error" if lost else "warning", line=line)
    elif block.kind == "html":
        hint = "put an empty line above it"
        message = "this heading belongs to the HTML above it"
        for at, row in enumerate(block.text.split("\n"), start=line):
            if _HIDDEN.match(row):
                yield Finding("", message, hint=hint, line=at)
            elif miss := near_miss_line(row, at):
                yield miss


def _stray_lines(block: Block) -> Iterator[Miss]:
    """Yields the lines of a block that look like sprints, except those in code fences."""
    yield from sprints_in_table(block.text.split("\n"), block.first + 1)
    fence = ""
    for at, row in enumerate(block.text.split("\n"), start=block.first + 1):
        mark = _FENCE.match(row) if block.kind != "paragraph" else None
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1][:3]
        elif not fence:
            indented = indented_heading(row, at) if block.kind == "paragraph" else None
            if miss := near_miss_line(row, at) or indented:
                yield miss


def _stray_heading(block: Block, line: int) -> Iterator[Finding | Miss]:
    if block.last - block.first > 1 and re.search(r"\*\*[^*]+(?::\*\*|\*\*:)", block.text):
        message = "the line of dashes under these fields makes them a heading"
        yield Finding("", message, hint="put an empty line above the dashes", line=line)
        return
    heading = read_heading(block.text, block.level)
    if heading is None:
        miss = near_miss(block.text, block.level, line)
        if miss is not None:
            severity = "warning" if block.nested else miss.finding.severity
            yield replace(miss, finding=replace(miss.finding, severity=severity))
    elif block.nested:
        message = (
            f"{block.text[:80]!r} is inside a list or a quotation, so it is not a {heading.kind}"
        )
        sprint = heading.kind == "sprint"
        form = f"### Sprint {heading.number}: {heading.title}" if sprint else "## Phase 1: Title"
        hint = f"write it as {form}, at the start of a line"
        finding = Finding("", message, "warning", hint=hint, line=line)
        yield Miss(finding, heading.number if sprint else None)
    elif heading.kind == "phase" and (miss := sprint_in_title(heading, block.text, line)):
        yield miss
