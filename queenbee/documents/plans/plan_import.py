"""Imports a plan as beads: the rows that make the issues of a tracker agree with it.

Pure. `docs/plans.md`, section "Import". The annotation decides which bead is a sprint's before the
number, which moves. A bead that somebody claimed, ran or finished keeps its sprint, unless the
caller accepts the change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from queenbee.core.beads import DONE
from queenbee.core.text import shell_word, suggested
from queenbee.documents.findings import Finding, errors_in
from queenbee.documents.graphs import find_cycles
from queenbee.documents.issue_rows import (
    Row,
    RowChange,
    RowImport,
    blocked_by,
    current_rows,
    metadata_of,
    plan_and_sprint,
)
from queenbee.documents.plans.plan import Plan, Sprint
from queenbee.documents.plans.plan_check import check_plan, default_prefix
from queenbee.documents.plans.plan_graph import merges, plan_dependencies
from queenbee.documents.plans.rows import PlanSetting, Taken, Worksite, begun_as, sprint_row
from queenbee.documents.reconcile import Item, Source, match_rows, reconcile
from queenbee.documents.sprints.numbers import is_sprint, without_zeros
from queenbee.errors import InvalidInput


class InvalidPlan(InvalidInput):
    """A plan with errors; `findings` has them all, warnings included."""

    code = "invalid_plan"
    findings: Sequence[Finding] = ()


def import_plan(
    plan: Plan,
    existing: Iterable[Mapping[str, object]],
    *,
    setting: PlanSetting,
    now_ms: int,
    agents: Collection[str] | None = None,
) -> RowImport:
    """Returns the rows to add and to update so that the tracker has a bead for each sprint.

    `existing` are the tracker's rows; `agents` are those of `check_plan`. A sprint's bead is the
    one that the annotation under its heading names; without an annotation, the one that names
    the plan file and the sprint. Raises `InvalidPlan` when the plan has errors,
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
        Source(setting.plan_file, setting.prefix, setting.actor, now_ms),
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
        site = replace(sites[sprint.number], merged=merged)
        needs, row = dependencies[sprint.number], partial(sprint_row, sprint, site, setting)
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


def match_beads(
    plan: Plan, known: Mapping[str, Row], setting: PlanSetting
) -> tuple[dict[str, Row], list[Finding]]:
    """Returns the bead that each sprint has so far, and every contradiction as a finding."""
    matching = _Matching(known, setting)
    annotated = {
        sprint.number: row
        for sprint in plan.sprints
        if (row := matching.by_annotation(sprint)) is not None
    }
    moved = {row["id"] for row in annotated.values()}
    rest = {key: row for key, row in known.items() if key not in moved}

    def number_in(row: Row) -> str | None:
        file, number = plan_and_sprint(row)
        is_ours = file == setting.plan_file and isinstance(number, str)
        return without_zeros(str(number)) if is_ours else None

    numbered = match_rows(rest, number_in)
    found: dict[str, Row] = {}
    for sprint in plan.sprints:
        row = annotated.get(sprint.number)
        if row is None and (row := numbered.get(without_zeros(sprint.number))) is not None:
            matching.check_title(sprint, row)
        if row is not None:
            found[sprint.number] = row
            matching.check_done(sprint, row)
    return found, matching.findings


class _Matching:
    def __init__(self, known: Mapping[str, Row], setting: PlanSetting) -> None:
        self._known = known
        self._setting = setting
        self.findings: list[Finding] = []

    def by_annotation(self, sprint: Sprint) -> Row | None:
        """Returns the bead that the annotation under a sprint names, if it is a sprint's bead."""
        if sprint.bead_id is None:
            return None
        row = self._known.get(sprint.bead_id)
        if row is None or row.get("status") == "tombstone":
            state = "does not exist" if row is None else "was deleted"
            text = f"the annotation names {sprint.bead_id}, which {state}"
            self.findings.append(sprint.finding(text, severity="warning"))
            return None
        file, number = plan_and_sprint(row)
        if not isinstance(number, str) or not is_sprint(number):
            text = f"the annotation names {sprint.bead_id}, which is not the bead of a sprint"
            self.findings.append(sprint.finding(text, hint="remove the annotation"))
            return None
        if file != self._setting.plan_file and file in self._setting.other_plans:
            text = f"the annotation names {sprint.bead_id}, the bead of sprint {number} in {file}"
            hint = "remove the annotation: each plan has its own beads"
            self.findings.append(sprint.finding(text, hint=hint))
            return None
        if without_zeros(number) != without_zeros(sprint.number):
            hint = f"if that is the same work under a new number: {self._accepting()}; "
            hint += "if not, remove the annotation"
            now = f"its annotation is under sprint {sprint.number}"
            self._check_begun(sprint, row, f"sprint {number}", now, hint)
        return row

    def check_title(self, sprint: Sprint, row: Row) -> None:
        """Reports a bead with a history whose number now belongs to a sprint with another title."""
        # The tracker's title may have been edited.
        if _plain(sprint.title) in map(_plain, (str(row.get("title")), _made_from(row))):
            return
        hint = (
            f"write <!-- beads-ralph: {row['id']} --> under the heading of the sprint that it "
            f"belongs to; if that is sprint {sprint.number}: {self._accepting()}"
        )
        now = f"sprint {sprint.number} is now {sprint.title!r}"
        self._check_begun(sprint, row, repr(_made_from(row)), now, hint)

    def check_done(self, sprint: Sprint, row: Row) -> None:
        """Reports a sprint that is marked as done while somebody works on its bead."""
        state = begun_as(row, self._setting.claimed)
        if sprint.mark == "done" and state is not None and row.get("status") != "closed":
            text = f"is marked as done, but its bead {row['id']} is not closed ({state})"
            hint = f"queen complete {shell_word(row['id'])}"
            self.findings.append(sprint.finding(text, severity="warning", hint=hint))

    def _check_begun(self, sprint: Sprint, row: Row, was: str, now: str, hint: str) -> None:
        state = begun_as(row, self._setting.claimed)
        if state is not None and not self._setting.accept:
            text = f"{row['id']} ({state}) was made from {was}, but {now}"
            self.findings.append(sprint.finding(text, hint=hint))

    def _accepting(self) -> str:
        return f"queen plan import {shell_word(self._setting.plan_file)} --accept"


def _made_from(row: Row) -> str:
    """Returns the title in a bead's `plan_section`, which only imports write."""
    section = metadata_of(row).get("plan_section")
    text = section.rpartition("### Sprint ")[2] if isinstance(section, str) else ""
    return text.partition(":")[2].strip() or str(row.get("title"))


def _plain(title: str) -> str:
    return " ".join(title.casefold().split())
