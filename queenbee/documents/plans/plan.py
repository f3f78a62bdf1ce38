"""A plan: phases and sprints in a Markdown document, as values.

`docs/plans.md`; after the document on sprint beads, "Plan Back-Annotation". Parsing never fails:
a fault becomes a finding with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from queenbee.documents.findings import Finding
from queenbee.documents.markdown import parse_blocks
from queenbee.documents.plans.fields import (
    AgentRef,
    gather_fields,
    plain_value,
    read_agents,
    read_needs,
    read_priority,
)
from queenbee.documents.plans.headings import (
    SPRINT_LEVEL,
    near_miss,
    near_miss_line,
    read_heading,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.documents.markdown import Block
    from queenbee.documents.plans.fields import Fields
    from queenbee.documents.plans.headings import Heading

ANNOTATION = re.compile(r"[ \t]{0,3}<!--[ \t]*beads-ralph:[ \t]*([^\s<>]+?)[ \t]*-->[ \t]*")
_HIDDEN = re.compile(r"[ ]{0,3}#{2,3}[ \t]+(?:Phase|Sprint)[ \t]+[0-9]", re.MULTILINE)
_VERBATIM = re.compile(r"\s*<(?:[!?]|pre\b|script\b|style\b|textarea\b)", re.IGNORECASE)
"""Comments and code. Other HTML extends to the next empty line, which few people know."""


@dataclass(frozen=True)
class Phase:
    """One `## Phase N: title`."""

    number: str
    title: str
    line: int


@dataclass(frozen=True)
class Sprint:
    """One `### Sprint ID: title` with its fields; what the plan leaves out is None or empty.

    `phase` is the number of the phase heading above it, `line` the line of its own heading.
    """

    number: str
    title: str
    line: int
    phase: str | None = None
    worktree: str | None = None
    branch: str | None = None
    source_branch: str | None = None
    team: str | None = None
    priority: int | None = None
    dev_agents: tuple[AgentRef, ...] = ()
    qa_agents: tuple[AgentRef, ...] = ()
    tasks: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    prose: str = ""
    bead_ids: tuple[str, ...] = ()

    @property
    def bead_id(self) -> str | None:
        """The bead that its annotation names."""
        return self.bead_ids[0] if self.bead_ids else None

    @property
    def section(self) -> str:
        """Its place in the plan, as in a bead's `plan_section`."""
        heading = f"### Sprint {self.number}: {self.title}"
        return heading if self.phase is None else f"## Phase {self.phase} > {heading}"


@dataclass(frozen=True)
class Plan:
    """A plan as it was read, with the findings from parsing."""

    phases: tuple[Phase, ...]
    sprints: tuple[Sprint, ...]
    findings: tuple[Finding, ...] = ()


def parse_plan(text: str) -> Plan:
    """Returns the plan in a Markdown document. Never raises, whatever the text."""
    blocks = parse_blocks(text.removeprefix("\ufeff"))
    phases: list[Phase] = []
    sprints: list[Sprint] = []
    findings = [finding for block in blocks for finding in _stray(block)]
    phase: str | None = None
    for index, block in enumerate(blocks):
        if block.kind != "heading" or block.nested or block.level > SPRINT_LEVEL:
            continue
        heading = read_heading(block.text, block.level)
        if heading is not None and heading.kind == "sprint":
            section = _section(blocks, index)
            sprint, found = _sprint(heading, block.first + 1, phase, section)
            sprints.append(sprint)
            findings += found
        elif heading is not None:
            phase = heading.number
            phases.append(Phase(heading.number, heading.title, block.first + 1))
        elif block.level < SPRINT_LEVEL:
            phase = None
    findings.sort(key=lambda finding: finding.line or 0)
    return Plan(tuple(phases), tuple(sprints), tuple(findings))


def find_sprint_headings(text: str) -> list[tuple[str, int, list[Block]]]:
    """Returns (sprint, index of its line, blocks under it) for each sprint heading."""
    blocks = parse_blocks(text)
    found: list[tuple[str, int, list[Block]]] = []
    for index, block in enumerate(blocks):
        if block.kind == "heading" and not block.nested:
            heading = read_heading(block.text, block.level)
            if heading is not None and heading.kind == "sprint":
                found.append((heading.number, block.first, _section(blocks, index)))
    return found


def _section(blocks: Sequence[Block], index: int) -> list[Block]:
    end = index + 1
    while end < len(blocks) and not _ends_section(blocks[end]):
        end += 1
    return list(blocks[index + 1 : end])


def _ends_section(block: Block) -> bool:
    top = block.kind == "heading" and not block.nested
    return top and block.level <= SPRINT_LEVEL


def _stray(block: Block) -> list[Finding]:
    """Returns what is wrong with a block, anywhere in the plan."""
    line = block.first + 1
    if block.kind == "heading":
        return _stray_heading(block, line)
    if block.kind == "paragraph":
        rows = enumerate(block.text.split("\n"), start=line)
        return [miss for at, row in rows if (miss := near_miss_line(row, at))]
    if block.kind == "fence" and not block.closed:
        lost = _HIDDEN.search(block.text) is not None
        message = "this code fence is never closed: everything below it is code"
        return [Finding("", message, "error" if lost else "warning", line=line)]
    if block.kind == "html" and not _VERBATIM.match(block.text):
        hint = "put an empty line above it"
        rows = enumerate(block.text.split("\n"), start=line)
        message = "this heading belongs to the HTML above it"
        return [Finding("", message, hint=hint, line=at) for at, row in rows if _HIDDEN.match(row)]
    return []


def _stray_heading(block: Block, line: int) -> list[Finding]:
    if block.last - block.first > 1 and re.search(r"\*\*[^*]+(?::\*\*|\*\*:)", block.text):
        message = "the line of dashes under these fields makes them a heading"
        return [Finding("", message, hint="put an empty line above the dashes", line=line)]
    heading = read_heading(block.text, block.level)
    if heading is None:
        miss = near_miss(block.text, block.level, line)
        if miss is not None and block.nested:
            miss = replace(miss, severity="warning")
        return [miss] if miss else []
    if block.nested:
        message = (
            f"{block.text[:80]!r} is inside a list or a quotation, so it is not a {heading.kind}"
        )
        return [Finding("", message, "warning", line=line)]
    return []


def _sprint(
    heading: Heading, line: int, phase: str | None, section: list[Block]
) -> tuple[Sprint, list[Finding]]:
    fields = gather_fields(section)
    where = f"sprints[{heading.number}]"
    read = _Reader(fields, where, line)
    sprint = Sprint(
        number=heading.number,
        title=heading.title,
        line=line,
        phase=phase,
        worktree=read.word("worktree"),
        branch=read.word("branch"),
        source_branch=read.word("source_branch"),
        team=read.word("team"),
        priority=read.priority(),
        dev_agents=read.agents("dev_agents"),
        qa_agents=read.agents("qa_agents"),
        tasks=tuple(fields.values.get("tasks", ())),
        acceptance=tuple(fields.values.get("acceptance", ())),
        depends_on=read.needs(),
        prose=read.prose(),
        bead_ids=_annotated(section),
    )
    return sprint, read.findings


def _annotated(section: list[Block]) -> tuple[str, ...]:
    """Returns the beads that the annotations in a section name, each once."""
    found = (ANNOTATION.fullmatch(block.text) for block in section if block.kind == "html")
    return tuple(dict.fromkeys(match[1] for match in found if match))


class _Reader:
    """Reads the gathered fields of one sprint and keeps the findings about them."""

    def __init__(self, fields: Fields, where: str, line: int) -> None:
        self._fields = fields
        self._where = where
        self._line = line
        self.findings = list(fields.findings)

    def word(self, key: str) -> str | None:
        values = self._fields.values.get(key, [])
        if len(values) > 1:
            message = f"is given {len(values)} times; only the first is used"
            self.findings.append(Finding(f"{self._where}.{key}", message, line=self._at(key)))
        return (plain_value(values[0]) or None) if values else None

    def priority(self) -> int | None:
        text = self.word("priority")
        if text is None:
            return None
        priority, found = read_priority(text, f"{self._where}.priority", self._at("priority"))
        self.findings += found
        return priority

    def agents(self, key: str) -> tuple[AgentRef, ...]:
        agents, found = read_agents(
            self._fields.values.get(key, []), f"{self._where}.{key}", self._at(key)
        )
        self.findings += found
        return tuple(agents)

    def needs(self) -> tuple[str, ...]:
        needs, found = read_needs(
            self._fields.values.get("depends_on", []),
            f"{self._where}.depends_on",
            self._at("depends_on"),
        )
        self.findings += found
        return tuple(needs)

    def prose(self) -> str:
        """Returns the text around the fields, then the unknown fields."""
        parts = list(self._fields.prose)
        for key, values in self._fields.values.items():
            if key.startswith("other:"):
                items = values if len(values) == 1 else [f"\n- {item}" for item in values]
                parts.append(f"**{key[6:]}:** {''.join(items)}".rstrip())
        return "\n\n".join(parts)

    def _at(self, key: str) -> int:
        return self._fields.lines.get(key, self._line)
