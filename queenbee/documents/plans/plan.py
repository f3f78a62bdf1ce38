"""A plan: phases and sprints in a Markdown document, as values.

`docs/plans.md`; after the document on sprint beads, "Plan Back-Annotation". Parsing never fails:
a fault becomes a finding with its line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from queenbee.documents.findings import Finding
from queenbee.documents.plans.grammar import ANNOTATION, Unread, unread
from queenbee.documents.plans.marks import Mark
from queenbee.documents.plans.outline import Outline, Section, read_outline
from queenbee.documents.plans.outline import Phase as Phase
from queenbee.documents.plans.sprint_fields import AgentRef, gather_fields
from queenbee.documents.plans.unread import named_in_section
from queenbee.documents.sprints.numbers import is_before, phase_of


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
    heading, line = section.heading, section.first + 1
    where = f"sprints[{heading.number}]"
    fields = gather_fields(section.blocks, where, line)
    annotated = (ANNOTATION.fullmatch(each.text) for each in section.blocks if each.kind == "html")
    mark, why = _state(section, fields.status(), done)
    sprint = Sprint(
        number=heading.number,
        title=heading.title,
        line=line,
        phase=section.phase.number if section.phase else None,
        worktree=fields.word("worktree"),
        branch=fields.word("branch"),
        source_branch=fields.word("source_branch"),
        team=fields.word("team"),
        priority=fields.priority(),
        dev_agents=fields.agents("dev_agents"),
        qa_agents=fields.agents("qa_agents"),
        tasks=tuple(fields.values.get("tasks", ())),
        ticked=frozenset(fields.ticked),
        acceptance=tuple(fields.values.get("acceptance", ())),
        depends_on=fields.needs(),
        prose=fields.text(),
        bead_ids=tuple(dict.fromkeys(match[1] for match in annotated if match)),
        mark=mark,
        why=why,
        metadata=fields.metadata(),
    )
    under = (sprint.number, *sprint.depends_on)
    named = named_in_section(section.blocks, fields.read, known, where, under)
    return sprint, [*fields.findings, *named]


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
