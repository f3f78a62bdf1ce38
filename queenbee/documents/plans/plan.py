"""A plan: phases and sprints in a Markdown document, as values.

`docs/plans.md`; after the document on sprint beads, "Plan Back-Annotation". Parsing never fails:
a fault becomes a finding with its line.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from queenbee.documents.findings import Finding
from queenbee.documents.plans.grammar import ANNOTATION, Unread, unread
from queenbee.documents.plans.marks import read_status
from queenbee.documents.plans.outline import Phase as Phase
from queenbee.documents.plans.outline import read_outline
from queenbee.documents.plans.sprint_fields import (
    METADATA,
    AgentRef,
    gather_fields,
    plain_value,
    read_agents,
    read_metadata,
    read_needs,
    read_priority,
)
from queenbee.documents.plans.unread import named_in_section
from queenbee.documents.sprints.numbers import is_before, phase_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Literal, TypeVar

    from queenbee.documents.markdown import Block
    from queenbee.documents.plans.marks import Mark
    from queenbee.documents.plans.outline import Outline, Section
    from queenbee.documents.plans.sprint_fields import Fields

    T = TypeVar("T")


@dataclass(frozen=True)
class Sprint:
    """One `### Sprint ID: title` with its fields; what the plan leaves out is None or empty.

    `phase` is the number of the phase heading above it, `line` the line of its own heading.
    `ticked` are the indices of the tasks that are ticked; `mark` says whether the sprint is done
    or skipped, and `why` what says so, or which words about its state were not read. `metadata`
    are fields for the bead's own.
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
    ticked: frozenset[int] = frozenset()
    mark: Mark | None = None
    why: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def bead_id(self) -> str | None:
        """The bead that its annotation names."""
        return self.bead_ids[0] if self.bead_ids else None

    @property
    def open_tasks(self) -> tuple[str, ...]:
        """The tasks that are not ticked."""
        return tuple(task for n, task in enumerate(self.tasks) if n not in self.ticked)

    @property
    def section(self) -> str:
        """Its place in the plan, as in a bead's `plan_section`."""
        heading = f"### Sprint {self.number}: {self.title}"
        return heading if self.phase is None else f"## Phase {self.phase} > {heading}"

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

    `skipped` are the sprints that it leaves out itself. `left_out` are the lines that look like
    sprints which the plan does not have.
    """

    phases: tuple[Phase, ...]
    sprints: tuple[Sprint, ...]
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Sprint, ...] = ()
    left_out: tuple[int, ...] = ()


def parse_plan(text: str) -> Plan:
    """Returns the plan in a Markdown document. Never raises, whatever the text."""
    outline = read_outline(text)
    findings = list(outline.findings)
    done = {each.heading.number: each.first + 1 for each in outline.sections if each.record}
    known = {each.heading.number for each in outline.sections}
    sprints: list[Sprint] = []
    skipped: list[Sprint] = []
    for section in outline.sections:
        if section.record:
            continue
        sprint, found = _sprint(section, done, known)
        (skipped if sprint.mark == "skipped" else sprints).append(sprint)
        findings += found
    for phase, blocks in outline.phases:
        found = list(named_in_section(blocks, (), known, f"phases[{phase.number}]"))
        findings += [replace(each, severity="warning") for each in found]
    findings += _notes(outline, skipped)
    findings += _said(outline, {each.number: each for each in sprints if each.mark is None})
    numbered = {phase.number: phase for phase, _ in outline.phases}
    told: dict[str | int | None, list[int | None]] = {}
    for each in findings:
        if isinstance(each, Unread) and each.kind == "a status":
            told.setdefault(each.path or each.line, []).append(each.line)
    sprints = [_with_unread_status(one, numbered.get(one.phase or ""), told) for one in sprints]
    findings.sort(key=lambda finding: finding.line or 0)
    phases = tuple(phase for phase, _ in outline.phases)
    return Plan(phases, tuple(sprints), tuple(findings), tuple(skipped), outline.left_out)


def _notes(outline: Outline, skipped: Sequence[Sprint]) -> Iterator[Finding]:
    """Yields a note for each heading that is read, but becomes no bead."""
    for phase, _ in outline.phases:
        if phase.mark is not None:
            message = f"is marked as {phase.mark}, and so are its sprints"
            yield Finding(f"phases[{phase.number}]", message, "warning", line=phase.line)
    for section in outline.sections:
        if section.record:
            message = "this heading only records that the sprint is done"
            where = f"sprints[{section.heading.number}]"
            yield Finding(where, message, "warning", line=section.first + 1)
    for sprint in skipped:
        message = "is marked as skipped: it gets no bead, and nothing waits for it"
        yield sprint.finding(message, severity="warning")


def _said(outline: Outline, unfinished: Mapping[str, Sprint]) -> Iterator[Finding]:
    """Yields each line elsewhere that says that a sprint is done, or waits for another, that is
    not so.
    """
    paths = {path for n in unfinished for path in (f"sprints[{n}]", f"phases[{phase_of(n)}]")}
    for where, line in outline.said_done:
        if where in paths:
            yield unread("a status", line.source, line.number, "warning", where)
    told = set()
    for number, need, line in outline.said_waiting:
        if line.number in told or not unfinished.keys() >= {number, need}:
            continue
        if need not in unfinished[number].depends_on and not is_before(need, number):
            told.add(line.number)
            where = f"sprints[{number}]"
            yield unread("a dependency", line.source, line.number, "warning", where)


def _sprint(
    section: Section, done: Mapping[str, int], known: Collection[str]
) -> tuple[Sprint, list[Finding]]:
    """Returns a sprint and what is wrong with it; records in lines of `done` say which are done."""
    fields = gather_fields(section.blocks)
    heading, line = section.heading, section.first + 1
    where = f"sprints[{heading.number}]"
    read = _Reader(fields, where, line)
    mark, why = _state(section, read.status(), done)
    sprint = Sprint(
        number=heading.number,
        title=heading.title,
        line=line,
        phase=section.phase.number if section.phase else None,
        worktree=read.word("worktree"),
        branch=read.word("branch"),
        source_branch=read.word("source_branch"),
        team=read.word("team"),
        priority=read.priority(),
        dev_agents=read.agents("dev_agents"),
        qa_agents=read.agents("qa_agents"),
        tasks=tuple(fields.values.get("tasks", ())),
        ticked=frozenset(fields.ticked),
        acceptance=tuple(fields.values.get("acceptance", ())),
        depends_on=read.needs(),
        prose=read.prose(),
        bead_ids=_annotated(section.blocks),
        mark=mark,
        why=why,
        metadata=read.metadata(),
    )
    under = (sprint.number, *sprint.depends_on)
    named = named_in_section(section.blocks, fields.read, known, where, under)
    return sprint, [*read.findings, *named]


def _state(
    section: Section, status: tuple[Mark | None, int], done: Mapping[str, int]
) -> tuple[Mark | None, str]:
    """Returns whether a sprint is done or skipped, and what says so."""
    heading, phase = section.heading, section.phase
    if heading.mark is not None:
        return heading.mark, f"its heading in line {section.first + 1}"
    if phase is not None and phase.mark is not None:
        return phase.mark, f"the heading of its phase in line {phase.line}"
    if status[0] is not None:
        return status[0], f"its status in line {status[1]}"
    if heading.number in done:
        return "done", f"the record in line {done[heading.number]}"
    return None, ""


def _with_unread_status(
    sprint: Sprint, phase: Phase | None, told: Mapping[str | int | None, list[int | None]]
) -> Sprint:
    """Returns an open sprint with the lines about its state that were not read."""
    of_sprint, of_phase = f"sprints[{sprint.number}]", f"phases[{phase_of(sprint.number)}]"
    keys = (of_sprint, of_phase, sprint.line, phase.line if phase is not None else None)
    lines = ", ".join(str(line) for key in keys for line in told.get(key, ()))
    why = f"not read: line {lines}" if lines and sprint.mark is None else sprint.why
    return replace(sprint, why=why)


def _annotated(section: Sequence[Block]) -> tuple[str, ...]:
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
            _, where, line = self._at(key)
            self.findings.append(Finding(where, message, line=line))
        return (plain_value(values[0]) or None) if values else None

    def status(self) -> tuple[Mark | None, int]:
        """Returns what a `Status` field says, and its line."""
        for key, values in self._fields.values.items():
            if key.lower() == "other:status" and values:
                return read_status(values[0]), self._at(key)[2]
        return None, 0

    def priority(self) -> int | None:
        text = self.word("priority")
        return None if text is None else self._kept(read_priority(text, *self._at("priority")[1:]))

    def metadata(self) -> dict[str, object]:
        """Returns the fields that go into the bead's metadata as they are."""
        texts = {name: self.word(name) for name in METADATA}
        return {
            key: value
            for name, text in texts.items()
            if text is not None
            for key, value in self._kept(read_metadata(name, text, *self._at(name)[1:])).items()
        }

    def agents(self, key: str) -> tuple[AgentRef, ...]:
        return tuple(self._kept(read_agents(*self._at(key))))

    def needs(self) -> tuple[str, ...]:
        return tuple(self._kept(read_needs(*self._at("depends_on"))))

    def prose(self) -> str:
        """Returns the text around the fields, then the unknown fields."""
        parts = list(self._fields.prose)
        for key, values in self._fields.values.items():
            if key.startswith("other:"):
                items = values if len(values) == 1 else [f"\n- {item}" for item in values]
                parts.append(f"**{key[6:]}:** {''.join(items)}".rstrip())
        return "\n\n".join(parts)

    def _kept(self, read: tuple[T, list[Finding]]) -> T:
        value, found = read
        self.findings += found
        return value

    def _at(self, key: str) -> tuple[list[str], str, int]:
        """Returns the values of a field, its path in a finding, and its line."""
        fields = self._fields
        where, line = f"{self._where}.{key}", fields.lines.get(key, self._line)
        return fields.values.get(key, []), where, line
