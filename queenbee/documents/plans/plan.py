"""A plan: phases and sprints in a Markdown document, as values.

`docs/plans.md`; after the document on sprint beads, "Plan Back-Annotation". Parsing never fails:
a fault becomes a finding with its line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Literal

from queenbee.documents.findings import Finding
from queenbee.documents.plans.headings import SPRINT, Unit
from queenbee.documents.plans.marks import Mark
from queenbee.documents.plans.outline import Outline, read_outline
from queenbee.documents.plans.sections import (
    ANNOTATION,
    NO_BOXES,
    Boxes,
    Part,
    Section,
    Unread,
    is_annotation,
)
from queenbee.documents.plans.sections import Phase as Phase
from queenbee.documents.plans.sprint_fields import (
    FIELDS,
    AgentRef,
    Fields,
    Resolve,
    gather_fields,
    name_parts,
)
from queenbee.documents.sprints.numbers import is_before, is_sprint, phase_of

_END = r"((?:[^\W\d_]+[ \t#]+)?[0-9][0-9a-z.]*)"
_RANGE = re.compile(rf"{_END}[ \t]*(?:-|–|to|through)[ \t]*{_END}")
_COMMENT = re.compile(r"^[ \t>]*<!--\s*beads?[-_ ]?ralph\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Sprint:
    """One unit of work with its fields; what the plan leaves out is None or empty.

    `phase` is the number of the phase heading above it, `line` the line of its own heading.
    `says_needs` is whether it says what it depends on, if only "none".
    `section` is its place in the plan, as in a bead's `plan_section`, `text` its section as it
    stands, and `phase_text` what its phase says besides its sprints. `mark` says whether the
    sprint is done or skipped, and `why` what says so. `metadata` are fields for the bead's own.
    """

    number: str
    title: str
    line: int
    phase: str | None = None
    section: str = ""
    text: str = ""
    phase_text: str = ""
    boxes: Boxes = NO_BOXES
    worktree: str | None = None
    branch: str | None = None
    source_branch: str | None = None
    team: str | None = None
    priority: int | None = None
    dev_agents: tuple[AgentRef, ...] = ()
    qa_agents: tuple[AgentRef, ...] = ()
    prompts: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    says_needs: bool = False
    bead_ids: tuple[str, ...] = ()
    mark: Mark | None = None
    why: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def bead_id(self) -> str | None:
        """The bead that its annotation names."""
        return self.bead_ids[0] if self.bead_ids else None

    def finding(
        self,
        message: str,
        field: str = "",
        severity: Literal["error", "warning"] = "error",
        hint: str | None = None,
    ) -> Finding:
        """Returns a finding about the sprint, or about a field of it, at its heading."""
        path = f"sprints[{self.number}]" + (f".{field}" if field else "")
        return Finding(path, message, severity, hint=hint, line=self.line)


@dataclass(frozen=True)
class Plan:
    """A plan as it was read, with the findings from parsing.

    `unit` is the form of the headings that are its sprints. `skipped` are the sprints that it
    leaves out itself. `left_out` are the lines that have the form of sprints and are none, and
    `parts` the headings that are in no sprint and no phase. `other_units` are the forms of other
    headings with numbers, and how many have each.
    """

    phases: tuple[Phase, ...]
    sprints: tuple[Sprint, ...]
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Sprint, ...] = ()
    left_out: tuple[int, ...] = ()
    parts: tuple[Part, ...] = ()
    unit: Unit | None = None
    other_units: Mapping[str, int] = field(default_factory=dict)

    @property
    def orders_itself(self) -> bool:
        """Whether each of its sprints says what it depends on, and none has the document's form:
        their numbers then order nothing.
        """
        return not self.is_own and all(sprint.says_needs for sprint in self.sprints)

    @property
    def is_own(self) -> bool:
        """Whether its sprints have the form of the document on sprint beads."""
        return self.unit is not None and self.unit.word == SPRINT and not self.unit.level


def parse_plan(text: str, unit: Unit | None = None) -> Plan:
    """Returns the plan in a Markdown document. Never raises, whatever the text.

    `unit` is the form of the headings that are its sprints; None finds it.
    """
    outline = _with_states(read_outline(text, unit))
    done = {each.number: each.first + 1 for each in outline.sections if each.record}
    findings = list(outline.findings)
    sprints: list[Sprint] = []
    skipped: list[Sprint] = []
    names = _Names(outline)
    for section in outline.sections:
        if section.record:
            continue
        sprint, found = _sprint(section, done, names)
        (skipped if sprint.mark == "skipped" else sprints).append(sprint)
        findings += found
    findings += _notes(outline, skipped)
    findings.sort(key=lambda finding: finding.line or 0)
    return Plan(
        tuple(phase for phase, _ in outline.phases),
        tuple(sprints),
        tuple(findings),
        tuple(skipped),
        outline.left_out,
        outline.parts,
        outline.unit,
        outline.other_units,
    )


class _Names:
    """What the names in a plan mean: `1.2`, `Sprint 2` in this phase, `Phase 1`."""

    def __init__(self, outline: Outline) -> None:
        self._phases = {phase.number for phase, _ in outline.phases}
        self._all = [one.number for one in outline.sections]
        self.known = {*self._all}
        self._words = {outline.unit.word if outline.unit else "", SPRINT, "sprints", "task", ""}

    def meant_by(self, phase: str) -> Resolve:
        """Returns what tells the sprints that a name in this phase means."""

        def resolve(name: str) -> tuple[str, ...] | None:
            ends = _RANGE.fullmatch(name)
            if ends is not None:
                first, last = resolve(ends[1]), resolve(ends[2])
                places = [
                    self._all.index(each)
                    for each in (*(first or ()), *(last or ()))
                    if each in self.known
                ]
                if not first or not last or not places:
                    return None
                return tuple(self._all[min(places) : max(places) + 1])
            found = re.fullmatch(r"(?:([^\W\d_]+)[ \t#]+)?([0-9]+[a-z]*(?:\.[0-9]+[a-z]*)?)", name)
            if found is None:
                return None
            word, number = (found[1] or "").casefold(), found[2]
            if is_sprint(number):
                return (number,) if word in self._words or number in self.known else None
            if word == "phase" or (word and word not in self._words):
                inside = tuple(one for one in self._all if phase_of(one) == number)
                return inside if word == "phase" and inside else None
            if f"{phase}.{number}" in self.known:
                return (f"{phase}.{number}",)
            alike = {one for one in self.known if one.partition(".")[2] == number}
            return tuple(alike) if len(alike) == 1 else None

        return resolve


def _with_states(outline: Outline) -> Outline:
    """Returns the outline with what the `Status` of a phase says of its sprints."""
    marks = {
        phase.line: gather_fields(blocks, "", phase.line).status()[0]
        for phase, blocks in outline.phases
        if phase.mark is None
    }

    def marked(phase: Phase) -> Phase:
        return replace(phase, mark=phase.mark or marks.get(phase.line))

    return replace(
        outline,
        phases=tuple((marked(phase), blocks) for phase, blocks in outline.phases),
        sections=tuple(
            replace(each, phase=marked(each.phase)) if each.phase else each
            for each in outline.sections
        ),
    )


def _notes(outline: Outline, skipped: Sequence[Sprint]) -> Iterator[Finding]:
    """Yields a note for each heading that is read, but becomes no bead."""
    for phase, _ in outline.phases:
        if phase.mark is not None:
            message = f"is marked as {phase.mark}, and so are its sprints"
            yield Finding(f"phases[{phase.number}]", message, "warning", line=phase.line)
    for section in outline.sections:
        if section.record:
            message = "this heading only records that the sprint is done"
            yield Finding(f"sprints[{section.number}]", message, "warning", line=section.first + 1)
    for part in outline.parts:
        label = part.heading.text.partition(":")[0].strip("* ").lower()
        if label in FIELDS and part.heading.lines > 1:
            message = f"a line of dashes makes these fields a heading: {part.heading.text[:80]!r}"
            hint = "put an empty line above the dashes"
            yield Unread("", message, "error", hint, part.heading.first + 1)
    for sprint in skipped:
        message = "is marked as skipped: it gets no bead, and nothing waits for it"
        yield sprint.finding(message, severity="warning")


def _sprint(
    section: Section, done: Mapping[str, int], names: _Names
) -> tuple[Sprint, list[Finding]]:
    """Returns a sprint and what is wrong with it; records in lines of `done` say which are done."""
    heading, line, phase = section.heading, section.first + 1, section.phase
    fields = gather_fields(section.blocks, f"sprints[{section.number}]", line)
    annotated = (ANNOTATION.fullmatch(each.text) for each in section.blocks if is_annotation(each))
    mark, why = _state(section, fields, done)
    resolve = names.meant_by(phase_of(section.number))
    sprint = Sprint(
        number=section.number,
        title=heading.title,
        line=line,
        phase=phase.number if phase else None,
        section=f"{phase.place} > {heading.place}" if phase else heading.place,
        text=section.text,
        phase_text=phase.text if phase else "",
        boxes=section.boxes,
        worktree=fields.word("worktree"),
        branch=fields.word("branch"),
        source_branch=fields.word("source_branch"),
        team=fields.word("team"),
        priority=fields.priority(),
        dev_agents=fields.agents("dev_agents"),
        qa_agents=fields.agents("qa_agents"),
        prompts=tuple(fields.values.get("prompts", ())),
        acceptance=tuple(fields.values.get("acceptance", ())),
        depends_on=fields.needs(resolve, section.number, names.known),
        says_needs="depends_on" in fields.lines,
        bead_ids=tuple(dict.fromkeys(match[1] for match in annotated if match)),
        mark=mark,
        why=why,
        metadata=fields.metadata(),
    )
    unread = (*_labels(fields, sprint, names.known), *_comments(section))
    return sprint, [*fields.findings, *unread]


def _comments(section: Section) -> Iterator[Finding]:
    """Yields an error for each comment that names a bead and cannot be read as an annotation."""
    for block in section.blocks:
        if block.kind in ("fence", "code") or is_annotation(block):
            continue
        for match in _COMMENT.finditer(block.text):
            at = block.text.count("\n", 0, match.start())
            message = f"{block.text.split(chr(10))[at].strip()[:80]!r} names a bead, not read"
            hint = "write <!-- beads-ralph: bd-a1b2c3 --> on a line of its own, below the heading"
            yield Unread("", message, "error", hint, block.first + 1 + at)


def _labels(fields: Fields, sprint: Sprint, known: Collection[str]) -> Iterator[Finding]:
    """Yields a warning for each label that is nearly a field, or has only sprints as its value."""
    where = f"sprints[{sprint.number}]"
    for line, label, value in fields.others:
        meant = get_close_matches(label.lower(), FIELDS, n=1, cutoff=0.85)
        names = [*name_parts(value[:200])]
        if meant:
            hint = f"did you mean **{meant[0].title().replace('Qa ', 'QA ')}:**?"
            yield Unread("", f"the field {label!r} is unknown", "warning", hint, line)
        elif names and all(one in known and not is_before(one, sprint.number) for one in names):
            message = f"{label!r} names {', '.join(names)}, which it does not wait for"
            hint = f"if it waits: **Depends On:** {', '.join(names)}"
            yield Unread(where, message, "warning", hint, line)


def _state(section: Section, fields: Fields, done: Mapping[str, int]) -> tuple[Mark | None, str]:
    """Returns whether a sprint is done or skipped, and what says so."""
    heading, phase, status = section.heading, section.phase, fields.status()
    if heading.mark is not None:
        return heading.mark, f"its heading in line {section.first + 1}"
    if phase is not None and phase.mark is not None:
        return phase.mark, f"its phase in line {phase.line}"
    if status[0] is not None:
        return status[0], f"its status in line {status[1]}"
    if section.number in done:
        return "done", f"the record in line {done[section.number]}"
    if section.boxes.ticked and not section.boxes.open and "status" not in fields.values:
        return "done", "its tasks, which are all ticked"
    return None, ""
