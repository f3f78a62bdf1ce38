"""Imports a plan as beads: the rows that make the issues of a tracker agree with it.

Pure. `docs/plans.md`, section "Import".
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.beads import DONE
from queenbee.core.text import suggested
from queenbee.documents.findings import Finding, errors_in
from queenbee.documents.graphs import find_cycles
from queenbee.documents.issue_rows import (
    blocked_by,
    current_rows,
    metadata_of,
    plan_and_sprint,
)
from queenbee.documents.plans.branches import default_prefix
from queenbee.documents.plans.matching import match_beads
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.plan_graph import merges, plan_dependencies
from queenbee.documents.plans.rows import SprintContext, Taken, Worksite, sprint_row
from queenbee.documents.reconcile import Item, Source, hashed_id, reconcile
from queenbee.documents.sprints.numbers import is_sprint
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Literal

    from queenbee.documents.issue_rows import Row, RowChange, RowImport
    from queenbee.documents.plans.plan import Plan
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

    `existing` are the tracker's rows; `agents` are those of `check_plan`. A sprint's bead is the
    one that the annotation under its heading names; without an annotation, the one that names
    the plan file and the sprint (`matching`). Raises `InvalidPlan` when the plan has errors,
    contradicts the beads or depends on beads that do not exist; nothing is imported then.
    """
    prefix = setting.branch_prefix or default_prefix(plan, setting.source_branch)
    found_wrong = check_plan(
        plan, source_branch=setting.source_branch, branch_prefix=prefix, agents=agents
    )
    _refuse(found_wrong, suggested("queen plan check", setting.plan_file))
    known = current_rows(existing)
    mend = f"correct **Depends On:** in {setting.plan_file}; for existing beads: queen issues"
    _refuse(_dangling(plan, known), mend)
    found, contradictions = match_beads(plan, known, setting)
    _refuse(contradictions, None)
    sites, collisions = _sites(plan, known, found, setting, prefix)
    _refuse(collisions, None)
    imported = reconcile(
        list(_items(plan, sites, setting)),
        Source(setting.plan_file, setting.prefix, setting.actor, now_ms, id_source),
        known=known,
        found=found,
        own=[key for key, row in known.items() if plan_and_sprint(row)[0] == setting.plan_file],
    )
    _refuse(_cycles(plan, known, imported.changes), mend)
    return replace(imported, findings=(*found_wrong, *contradictions, *collisions))


def _sites(
    plan: Plan,
    known: Mapping[str, Row],
    found: Mapping[str, Row],
    setting: PlanSetting,
    prefix: str,
) -> tuple[dict[str, Worksite], list[Finding]]:
    """Returns where each sprint's work happens, and where that is somebody else's place."""
    own = {row["id"] for row in found.values()}
    others = [row for key, row in known.items() if key not in own]
    # Defaults avoid all beads' places, also those of this plan that keep theirs.
    taken = Taken.by(known.values(), setting.plan_file)
    sites = {
        sprint.number: Worksite.of(sprint, found.get(sprint.number), setting, prefix, taken)
        for sprint in plan.sprints
    }
    collisions = []
    theirs = Taken.by((row for row in others if row.get("status") not in DONE), setting.plan_file)
    for sprint in plan.sprints:
        site, old = sites[sprint.number], metadata_of(found.get(sprint.number) or {})
        for kind, name, had, rows in (
            ("branch", site.branch, old.get("branch"), theirs.branches),
            ("worktree", site.worktree, old.get("worktree_path"), theirs.worktrees),
        ):
            if name not in rows:
                continue
            file, number = plan_and_sprint(rows[name])
            text = (
                f"has the {kind} {name}, which {rows[name]['id']} (sprint {number} of {file}) has"
            )
            severity: Literal["error", "warning"] = "warning" if had == name else "error"
            hint = f"give it another **{kind.title()}:**"
            if sprint.branch is None and sprint.worktree is None:
                hint += ", or use --branch-prefix"
            collisions.append(sprint.finding(text, kind, severity, hint))
            break
    return sites, collisions


def _items(plan: Plan, sites: Mapping[str, Worksite], setting: PlanSetting) -> Iterator[Item]:
    dependencies = plan_dependencies(plan)
    joined = merges(dependencies)
    for sprint in plan.sprints:
        merged = tuple(sites[other].branch for other in joined.get(sprint.number, ()))
        context = SprintContext(sprint, sites[sprint.number], merged, setting)
        needs, row = dependencies[sprint.number], partial(sprint_row, context)
        yield Item(sprint.number, needs, row, names=sprint.bead_id)


def _refuse(findings: Sequence[Finding], hint: str | None) -> None:
    """Raises `InvalidPlan` if there are errors; `hint` None means the first error's own."""
    errors = errors_in(findings)
    if errors:
        first = errors[0]
        at = f"line {first.line}: " if first.line else ""
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise InvalidPlan(
            f"the plan has errors: {at}{first.message}{more}",
            hint=hint or first.hint,
            findings=list(findings),
        )


def _dangling(plan: Plan, known: Mapping[str, Row]) -> list[Finding]:
    return [
        sprint.finding(f"depends on {need}, which does not exist", "depends_on")
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
