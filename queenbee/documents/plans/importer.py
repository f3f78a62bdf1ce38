"""Imports a plan as beads: the rows that make the issues of a tracker agree with it.

Pure. `docs/plans.md`, section "Import". What the plan states comes from the plan; where it leaves
a default, the bead keeps its value; what happened to the bead since (status, executions, comments,
unknown keys) never changes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.documents.findings import Finding
from queenbee.documents.graphs import find_cycles
from queenbee.documents.issue_rows import blocked_by, current_rows, plan_and_sprint
from queenbee.documents.plans.check import check_plan, where
from queenbee.documents.plans.graph import merges, plan_dependencies
from queenbee.documents.plans.rows import SprintContext, Worksite, sprint_row
from queenbee.documents.reconcile import Item, Source, hashed_id, match_rows, reconcile
from queenbee.documents.sprints.numbers import is_sprint
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.documents.issue_rows import Row, RowChange, RowImport
    from queenbee.documents.plans.plan import Plan, Sprint
    from queenbee.documents.plans.rows import PlanSetting
    from queenbee.documents.reconcile import IdSource


class InvalidPlan(InvalidInput):
    """A plan with errors; `findings` has them all, warnings included."""

    code = "invalid_plan"


def import_plan(
    plan: Plan,
    existing: Iterable[Mapping[str, object]],
    *,
    setting: PlanSetting,
    now_ms: int,
    agents: Collection[str] | None = None,
    id_source: IdSource = hashed_id,
) -> RowImport:
    """Returns the rows to add and to update so that the tracker has a bead for each sprint.

    `existing` are the tracker's rows; `agents` are those of `check_plan`. A bead belongs to a
    sprint if it names plan file and sprint; if none does (the file was renamed), the annotation
    under the sprint's heading decides. Raises `InvalidPlan` when the plan has errors or depends
    on beads that do not exist; nothing is imported then.
    """
    found_wrong = check_plan(plan, source_branch=setting.source_branch, agents=agents)
    _refuse(found_wrong, suggested("queen plan check", setting.plan_file))
    known = current_rows(existing)
    mend = f"correct **Depends On:** in {setting.plan_file}; for existing beads: queen issues"
    _refuse(_dangling(plan, known), mend)
    found = _found(plan, known, setting.plan_file)
    imported = reconcile(
        list(_items(plan, found, setting)),
        Source(setting.plan_file, setting.prefix, setting.actor, now_ms, id_source),
        known=known,
        found=found,
        own=[key for key, row in known.items() if plan_and_sprint(row)[0] == setting.plan_file],
    )
    _refuse(_cycles(plan, known, imported.changes), mend)
    return imported


def _items(plan: Plan, found: Mapping[str, Row], setting: PlanSetting) -> Iterator[Item]:
    dependencies = plan_dependencies(plan)
    joined = merges(dependencies)
    sites = {
        sprint.number: Worksite.of(sprint, found.get(sprint.number), setting)
        for sprint in plan.sprints
    }
    for sprint in plan.sprints:
        merged = tuple(sites[other].branch for other in joined.get(sprint.number, ()))
        context = SprintContext(sprint, sites[sprint.number], merged, setting)
        yield Item(sprint.number, dependencies[sprint.number], partial(sprint_row, context))


def _refuse(findings: Sequence[Finding], hint: str) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        first = errors[0]
        at = f"line {first.line}: " if first.line else ""
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise InvalidPlan(
            f"the plan has errors: {at}{first.message}{more}",
            hint=hint,
            findings=list(findings),
        )


def _found(plan: Plan, known: Mapping[str, Row], plan_file: str) -> dict[str, Row]:
    """Returns the bead that each sprint has so far."""
    named = match_rows(known, lambda row: _sprint_of(row, plan_file))
    both = {each.number: named.get(each.number) or _annotated(each, known) for each in plan.sprints}
    return {number: row for number, row in both.items() if row is not None}


def _sprint_of(row: Row, plan_file: str) -> str | None:
    file, sprint = plan_and_sprint(row)
    return sprint if file == plan_file and isinstance(sprint, str) else None


def _annotated(sprint: Sprint, known: Mapping[str, Row]) -> Row | None:
    row = known.get(sprint.bead_id or "")
    if row is None or row.get("status") == "tombstone" or plan_and_sprint(row)[1] != sprint.number:
        return None
    return row


def _dangling(plan: Plan, known: Mapping[str, Row]) -> list[Finding]:
    return [
        Finding(
            where(sprint, "depends_on"),
            f"depends on {need}, which does not exist",
            line=sprint.line,
        )
        for sprint in plan.sprints
        for need in sprint.depends_on
        if not is_sprint(need) and need not in known
    ]


def _cycles(plan: Plan, known: Mapping[str, Row], changes: Sequence[RowChange]) -> list[Finding]:
    """Returns the cycles that include a sprint; cycles of other issues are ignored."""
    sprints = {change.row["id"]: change.key for change in changes}
    lines = {sprint.number: sprint.line for sprint in plan.sprints}
    graph = {identifier: blocked_by(row) for identifier, row in known.items()}
    graph |= {change.row["id"]: blocked_by(change.row) for change in changes}
    found = []
    for cycle in find_cycles(graph):
        on_it = [sprints[identifier] for identifier in cycle if identifier in sprints]
        if on_it:
            message = f"a cycle: {' waits for '.join((*cycle, cycle[0]))}"
            path = f"sprints[{on_it[0]}].depends_on"
            found.append(Finding(path, message, line=lines[on_it[0]]))
    return found
