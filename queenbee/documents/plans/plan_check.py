"""Whether a plan can become beads: finds everything that is wrong with it at once.

The parser has already found near misses and invalid fields; this checks numbers, the order of
work, and names.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate

from queenbee.core.text import some
from queenbee.documents.agents import agent_finding, agent_path
from queenbee.documents.findings import Finding
from queenbee.documents.graphs import ancestors, find_cycles
from queenbee.documents.plans.plan import Plan, Sprint
from queenbee.documents.plans.plan_graph import number_dependencies, plan_dependencies
from queenbee.documents.sprints.numbers import (
    Natural,
    Track,
    branch_fault,
    branch_name,
    is_sprint,
    parse_sprint,
    phase_of,
    source_branch_fault,
)

MAX_WAITS = 250_000
"""Every sprint of one number waits for every sprint of the previous number: 500 for 500."""

MAX_TITLE_BYTES = 500
"""Beads refuses a longer title."""

MAX_TEXT_BYTES = 8 * 1024 * 1024
"""What phases say is given to each of their sprints, and kept with each."""

PREFIXES = ("sprint", "sprints", "plan")
"""What default branches begin with: the first that is not a branch itself."""


def check_plan(
    plan: Plan,
    *,
    source_branch: str = "main",
    branch_prefix: str | None = None,
    agents: Collection[str] | None = None,
) -> list[Finding]:
    """Returns everything that is wrong with a plan, by line; without errors it can be imported.

    `source_branch` is for sprints that name none; `branch_prefix` begins the branches of sprints
    that name none, `sprint` if it is None. `agents` are the known agents
    (`agents.list_agents`); None leaves agents' paths unchecked.
    """
    waits = sum(map(len, number_dependencies(each.number for each in plan.sprints).values()))
    if waits > MAX_WAITS:
        message = f"its sprints wait for each other {waits:,} times; at most {MAX_WAITS:,} can be"
        hint = "put a sprint between two numbers that have many letters"
        return [*plan.findings, Finding("", message, hint=hint)]
    found = [*plan.findings, *_number_rules(plan), *_order_rules(plan), *_done_rules(plan)]
    prefix = branch_prefix or default_prefix(plan, source_branch)
    found += _shared_places(plan, prefix)
    for sprint in plan.sprints:
        found += _sprint_rules(sprint, prefix)
        source = sprint.source_branch or source_branch
        if (fault := source_branch_fault(source)) is not None:
            found.append(sprint.finding(f"{source!r} {fault}", "source_branch"))
        if agents is not None:
            found += _agent_rules(sprint, agents)
    found += [*_default_rules(plan), *_git_rules(plan, source_branch, prefix)]
    if not plan.sprints and not plan.skipped:
        hint = "queen plan check --unit '##' takes the headings of level 2; for a plain list: "
        message = "this plan has no headings with numbers or boxes"
        found.append(Finding("", message, hint=f"{hint}queen plan convert --unit list", line=1))
    return sorted(found, key=lambda finding: finding.line or 0)


def default_prefix(plan: Plan, source_branch: str) -> str:
    """Returns what the default branches of a plan begin with."""
    named = {source_branch, *(sprint.source_branch for sprint in plan.sprints)}
    named.update(sprint.branch for sprint in plan.sprints)
    return next((prefix for prefix in PREFIXES if prefix not in named), PREFIXES[0])


def _number_rules(plan: Plan) -> Iterator[Finding]:
    first: dict[object, int] = {}
    letters: dict[tuple[Track, Natural], set[bool]] = {}
    for sprint in plan.sprints:
        number = parse_sprint(sprint.number)
        if number in first:
            message = f"sprint {sprint.number} is already defined in line {first[number]}"
            yield sprint.finding(message)
        first.setdefault(number, sprint.line)
        kinds = letters.setdefault((number.track, number.group), set())
        kinds.add(bool(number.letters))
        if len(kinds) == 2:
            message = "runs in parallel with the sprint of this number with other letters"
            yield sprint.finding(message, severity="warning")
            kinds.clear()
        phase = phase_of(sprint.number)
        if sprint.phase is None and plan.is_own and plan.phases:
            message = f"is not under a phase heading; ## Phase {phase} is assumed"
            yield sprint.finding(message, severity="warning")
        elif sprint.phase not in (None, phase):
            message = f"is under ## Phase {sprint.phase}, but belongs to phase {phase}"
            yield sprint.finding(message)
    yield from _annotation_rules(plan)
    yield from _phases(plan)
    given = Counter(sprint.phase for sprint in plan.sprints)
    for each in plan.phases:
        if given[each.number] * len(each.text) > MAX_TEXT_BYTES:
            message = f"each of its {given[each.number]:,} sprints gets what it says: too much"
            hint = "put it in a file that the phase names"
            yield Finding(f"phases[{each.number}]", message, hint=hint, line=each.line)


def _annotation_rules(plan: Plan) -> Iterator[Finding]:
    """Returns the beads that two sprints claim, and the sprints that claim two beads."""
    first: dict[str, Sprint] = {}
    for sprint in plan.sprints:
        if len(sprint.bead_ids) > 1:
            message = f"has the annotations of two beads, {' and '.join(sprint.bead_ids[:2])}"
            yield sprint.finding(message, hint="keep one of them")
        for bead in sprint.bead_ids:
            other = first.setdefault(bead, sprint)
            if other is not sprint:
                message = f"{bead} is annotated here and under sprint {other.number}"
                hint = f"keep the annotation in one place; the other is in line {other.line + 1}"
                yield sprint.finding(message, hint=hint)


def _done_rules(plan: Plan) -> Iterator[Finding]:
    """Returns a note about the sprints that count as done."""
    done = [sprint for sprint in plan.sprints if sprint.mark == "done"]
    if done:
        numbers = some([sprint.number for sprint in done], 10)
        message = f"marked as done, so no work is planned for it: {numbers}"
        yield Finding("", message, "warning", line=done[0].line)


def _phases(plan: Plan) -> Iterator[Finding]:
    used = {sprint.phase for sprint in (*plan.sprints, *plan.skipped)}
    first: dict[Track, int] = {}
    for phase in plan.phases:
        path = f"phases[{phase.number}]"
        track = parse_sprint(f"{phase.number}.1").track
        if track in first and plan.is_own:
            message = f"phase {phase.number} is already defined in line {first[track]}"
            yield Finding(path, message, line=phase.line)
        first.setdefault(track, phase.line)
        if phase.number not in used:
            yield Finding(
                path, "has no sprints, and nothing waits for it", "warning", line=phase.line
            )


def _order_rules(plan: Plan) -> Iterator[Finding]:
    dependencies = plan_dependencies(plan)
    lines = {sprint.number: sprint.line for sprint in plan.sprints}
    skipped = {sprint.number for sprint in plan.skipped}
    for sprint in plan.sprints:
        for need in sprint.depends_on:
            if is_sprint(need) and need not in dependencies:
                gone = "is skipped" if need in skipped else "is not in this plan"
                message = f"depends on sprint {need}, which {gone}"
                yield sprint.finding(message, "depends_on")
    for cycle in find_cycles(dependencies):
        message = f"a cycle: {' waits for '.join((*cycle, cycle[0]))}"
        yield Finding(f"sprints[{cycle[0]}].depends_on", message, line=lines[cycle[0]])


def _sprint_rules(sprint: Sprint, prefix: str) -> Iterator[Finding]:
    if len(sprint.title.encode(errors="replace")) > MAX_TITLE_BYTES:
        message = f"the title is longer than {MAX_TITLE_BYTES} bytes"
        yield sprint.finding(message)
    branch = _branch(sprint, prefix)
    fault = branch_fault(branch)
    if fault is not None:
        hint = None if sprint.branch else "--branch-prefix, or name one: **Branch:** `name`"
        yield sprint.finding(f"{branch!r} {fault}", "branch", hint=hint)
    if len(sprint.dev_agents) > 1:
        message = f"has {len(sprint.dev_agents)} dev agents: a bead has one, so the first is used"
        yield sprint.finding(message, "dev_agents", "warning")


def _default_rules(plan: Plan) -> Iterator[Finding]:
    """Returns one note about everything that the sprints leave to defaults."""
    sprints = [sprint for sprint in plan.sprints if sprint.mark is None]
    missing = {
        "dev agents": [sprint for sprint in sprints if not sprint.dev_agents],
        "QA agents": [sprint for sprint in sprints if not sprint.qa_agents],
    }
    parts = [
        f"{name} ({some([sprint.number for sprint in lacking], 10)})"
        for name, lacking in missing.items()
        if lacking
    ]
    if parts:
        line = min(sprint.line for lacking in missing.values() for sprint in lacking)
        yield Finding("", f"defaults are used for {', '.join(parts)}", "warning", line=line)


def _shared_places(plan: Plan, prefix: str) -> Iterator[Finding]:
    """Yields an error for each sprint with a branch or worktree that another sprint has.

    Sprints of one team that wait for each other may share them: they work one after another.
    """
    dependencies = plan_dependencies(plan)
    branches: dict[str, Sprint] = {}
    worktrees: dict[str, Sprint] = {}
    for sprint in plan.sprints:
        branch = _branch(sprint, prefix)
        for kind, name, first in (
            ("branch", branch, branches),
            ("worktree", os.path.normpath(sprint.worktree or f"{branch}/"), worktrees),
        ):
            other = first.setdefault(name, sprint)
            if other is sprint or other.number == sprint.number:
                continue
            if _in_turn(sprint, other, dependencies):
                continue
            message = f"has the {kind} {name}, which sprint {other.number} has too"
            hint = (
                f"give it another **{kind.title()}:**; sprints that work one after another there "
                "name the same **Team:**"
            )
            yield sprint.finding(message, kind, hint=hint)
            break  # The worktree follows the branch.


def _in_turn(one: Sprint, other: Sprint, dependencies: Mapping[str, tuple[str, ...]]) -> bool:
    if one.team is None or one.team != other.team:
        return False
    waits = other.number in ancestors(dependencies, [one.number])
    return waits or one.number in ancestors(dependencies, [other.number])


def _git_rules(plan: Plan, source_branch: str, prefix: str) -> Iterator[Finding]:
    """Returns a warning if git cannot have all branches: a branch is a file, so never a folder."""
    branches = {_branch(sprint, prefix): sprint for sprint in reversed(plan.sprints)}
    named = {*branches, *(sprint.source_branch or source_branch for sprint in plan.sprints)}
    clashes = [
        (sprint.line, branch, above)
        for branch, sprint in branches.items()
        for above in accumulate(branch.split("/")[:-1], "{}/{}".format)
        if above in named
    ]
    if clashes:
        line, branch, above = min(clashes)
        more = f", and {len(clashes) - 1} more like it" if len(clashes) > 1 else ""
        message = f"git cannot have the branch {branch} beside the branch {above}{more}"
        hint = f"use other names, such as **Branch:** `sprint/{branch.rpartition('/')[2]}`"
        yield Finding("", message, "warning", hint=hint, line=line)


def _branch(sprint: Sprint, prefix: str) -> str:
    return sprint.branch or branch_name(prefix, sprint.number, sprint.title)


def _agent_rules(sprint: Sprint, agents: Collection[str]) -> Iterator[Finding]:
    for field, named in (("dev_agents", sprint.dev_agents), ("qa_agents", sprint.qa_agents)):
        for index, agent in enumerate(named):
            found = agent_finding(agent_path(agent.name), agents, "")
            if found is not None:
                yield sprint.finding(found.message, f"{field}[{index}]", hint=found.hint)
