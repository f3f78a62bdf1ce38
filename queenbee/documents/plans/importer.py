"""A plan becomes beads: the rows that make the issues of a tracker agree with it.

Pure. `docs/plans.md`, section "Import". What the plan states is taken from the plan; what it
leaves to a default keeps the value that the bead has; what happened to the bead since (status,
executions, comments, keys that are not known here) is never touched.
"""

from __future__ import annotations

from queenbee.core.beads import DONE
from queenbee.documents import issue_rows
from queenbee.documents.findings import Finding
from queenbee.documents.graphs import find_cycles
from queenbee.documents.plans.check import check_plan, where
from queenbee.documents.plans.graph import merges, plan_dependencies
from queenbee.documents.plans.rows import PlanSetting, SprintPlace, sprint_row
from queenbee.documents.sprints.numbers import is_sprint
from queenbee.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from queenbee.documents.issue_rows import IdSource, Row
    from queenbee.documents.plans.plan import Plan, Sprint


class InvalidPlan(InvalidInput):
    """A plan with errors; `findings` has all that was found, warnings included."""

    code = "invalid_plan"


def import_plan(
    plan: Plan,
    existing: Iterable[Mapping[str, object]],
    *,
    setting: PlanSetting,
    now_ms: int,
    agents: Collection[str] | None = None,
    id_source: IdSource = issue_rows.hashed_id,
) -> issue_rows.RowImport:
    """Returns the rows to add and to update so that the tracker has a bead for each sprint.

    `existing` are the tracker's rows; `agents` are those of `check_plan`. A sprint's bead is known
    by plan file and sprint; failing that (the file was renamed) by the annotation under its
    heading. The same plan again changes nothing. Raises `InvalidPlan` when the plan has errors or
    depends on beads that do not exist; nothing is imported then.
    """
    found_wrong = check_plan(plan, source_branch=setting.source_branch, agents=agents)
    _refuse(found_wrong, f"queen plan check {setting.plan_file}")
    known = issue_rows.current_rows(existing)
    found = _beads_of(plan, known, setting.plan_file)
    ids = issue_rows.assign_ids(
        {sprint.number: f"{setting.plan_file}\n{sprint.number}" for sprint in plan.sprints},
        found,
        prefix=setting.prefix,
        taken=known,
        id_source=id_source,
    )
    mend = f"mend **Depends On:** in {setting.plan_file}; queen issues lists the beads there are"
    _refuse(_dangling(plan, known), mend)
    # A bead whose sprint is gone from the plan still belongs to it: nothing shall wait for it.
    ours = {*ids.values(), *_of_file(known, setting.plan_file)}
    changes = _changes(plan, found, ids, ours, setting, now_ms)
    _refuse(_cycles(plan, known, changes), mend)
    return issue_rows.RowImport(changes, _orphans(known, ids, setting.plan_file))


def _changes(
    plan: Plan,
    found: Mapping[str, Row | None],
    ids: Mapping[str, str],
    ours: Collection[str],
    setting: PlanSetting,
    now_ms: int,
) -> tuple[issue_rows.RowChange, ...]:
    dependencies = plan_dependencies(plan)
    joined = merges(dependencies)
    places = {
        sprint.number: SprintPlace.of(sprint, found[sprint.number], setting)
        for sprint in plan.sprints
    }
    changes = []
    # Lists of issues go by age: each bead is a little younger than the sprint before it.
    for at_ms, sprint in enumerate(plan.sprints, start=now_ms):
        row = sprint_row(
            sprint,
            found[sprint.number],
            identifier=ids[sprint.number],
            place=places[sprint.number],
            merged=[places[other].branch for other in joined.get(sprint.number, ())],
            setting=setting,
            now_ms=at_ms,
        )
        needs = [ids.get(need, need) for need in dependencies[sprint.number]]
        row["dependencies"] = issue_rows.merge_dependencies(
            row, needs, ours, now=row["updated_at"], actor=setting.actor
        )
        changes.append(issue_rows.change_of(sprint.number, found[sprint.number], row, at_ms))
    return tuple(changes)


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


def _beads_of(plan: Plan, known: Mapping[str, Row], plan_file: str) -> dict[str, Row | None]:
    """Returns the bead that each sprint has so far."""
    named: dict[object, Row] = {}
    # Two clones may each have made one; the older one is the one that others know.
    for row in sorted(known.values(), key=lambda row: (str(row.get("created_at")), row["id"])):
        file, sprint = issue_rows.plan_and_sprint(row)
        if file == plan_file and row.get("status") != "tombstone":
            named.setdefault(sprint, row)
    return {
        sprint.number: named.get(sprint.number) or _annotated(sprint, known)
        for sprint in plan.sprints
    }


def _annotated(sprint: Sprint, known: Mapping[str, Row]) -> Row | None:
    row = known.get(sprint.bead_id or "")
    if (
        row is None
        or row.get("status") == "tombstone"
        or issue_rows.plan_and_sprint(row)[1] != sprint.number
    ):
        return None
    return row


def _dangling(plan: Plan, known: Mapping[str, Row]) -> list[Finding]:
    return [
        Finding(
            where(sprint, "depends_on"),
            f"depends on {need}, and there is no such bead",
            line=sprint.line,
        )
        for sprint in plan.sprints
        for need in sprint.depends_on
        if not is_sprint(need) and need not in known
    ]


def _cycles(
    plan: Plan, known: Mapping[str, Row], changes: Sequence[issue_rows.RowChange]
) -> list[Finding]:
    """Returns the cycles that a sprint is on; those among other issues are not the plan's."""
    sprints = {change.row["id"]: change.key for change in changes}
    lines = {sprint.number: sprint.line for sprint in plan.sprints}
    graph = {identifier: issue_rows.blocked_by(row) for identifier, row in known.items()}
    graph |= {change.row["id"]: issue_rows.blocked_by(change.row) for change in changes}
    found = []
    for cycle in find_cycles(graph):
        on_it = [sprints[identifier] for identifier in cycle if identifier in sprints]
        if on_it:
            message = f"a cycle: {' waits for '.join((*cycle, cycle[0]))}"
            path = f"sprints[{on_it[0]}].depends_on"
            found.append(Finding(path, message, line=lines[on_it[0]]))
    return found


def _orphans(known: Mapping[str, Row], ids: Mapping[str, str], plan_file: str) -> tuple[str, ...]:
    used = set(ids.values())
    return tuple(
        identifier
        for identifier in _of_file(known, plan_file)
        if identifier not in used and known[identifier].get("status") not in DONE
    )


def _of_file(known: Mapping[str, Row], plan_file: str) -> list[str]:
    return sorted(
        identifier
        for identifier, row in known.items()
        if issue_rows.plan_and_sprint(row)[0] == plan_file
    )
