"""How far the plan is, phase by phase, and which issue waits for which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from queenbee.core.beads import Issue
from queenbee.core.readiness import BLOCKING, PARENT, STATES, Standing, counts, urgency
from queenbee.documents.gates.phases import phase_number, plan_workflow, workflows_of
from queenbee.documents.issue_rows import metadata_of
from queenbee.report import caps
from queenbee.report.drawing import Bend, layers
from queenbee.report.values import GateLine, Graph, IssueLine, Phase

_Place = tuple[object, ...]

_ELSEWHERE = "Without a phase"


def issue_line(standing: Standing) -> IssueLine:
    """Returns what a report says of an issue."""
    review = standing.review
    return IssueLine(
        standing.issue.id,
        standing.issue.title,
        standing.state,
        standing.holder,
        standing.waits_for,
        standing.because,
        f"{review} {review.asks}".strip() if review is not None else None,
    )


def open_issues(found: Mapping[str, Standing]) -> list[IssueLine]:
    """Returns the issues that are not done: those at work first, then those that are ready."""
    order = {state: number for number, state in enumerate(("active", "ready", "waits", "on_hold"))}
    undone = [each for each in found.values() if not each.issue.done]
    undone.sort(key=lambda each: (order[each.state], urgency(each.issue)))
    return [issue_line(each) for each in undone]


def phases(found: Mapping[str, Standing], gates: Sequence[GateLine]) -> list[Phase]:
    """Returns the phases of the plans, in order, then epics, then everything else.

    An epic counts as the name of its children, and not as work, if it has any.
    """
    parents = {key: parent for key, each in found.items() if (parent := _parent(each.issue, found))}
    groups: dict[_Place, list[Standing]] = {}
    names: dict[_Place, str] = {}
    gates_of: dict[_Place, list[GateLine]] = {}
    epics = set(parents.values())
    for key, standing in found.items():
        fields = standing.issue.fields
        place, name, own = _phase_of(fields, gates)
        if place is None:
            if key in epics:
                continue
            parent = parents.get(key)
            place = (1, *urgency(found[parent].issue)) if parent else (2,)
            name = f"{parent}: {found[parent].issue.title}" if parent else _ELSEWHERE
            own = []
        groups.setdefault(place, []).append(standing)
        names[place], gates_of[place] = name, own
    if set(groups) == {(2,)}:
        names[2,] = "All issues"
    return [Phase(names[place], counts(groups[place]), gates_of[place]) for place in sorted(groups)]


def graph(found: Mapping[str, Standing]) -> Graph:
    """Returns which issue waits for which. What is finished on all sides goes first where there
    are too many; if that does not help, the graph is empty.
    """
    needs = {
        key: [
            target
            for target, kind in dict.fromkeys(each.issue.dependencies)
            if kind in BLOCKING and target in found and target != key
        ]
        for key, each in found.items()
    }
    needs = {key: list(dict.fromkeys(each)) for key, each in needs.items()}
    linked = {key for key, each in needs.items() if each}
    linked |= {target for each in needs.values() for target in each}
    shown = linked
    if _too_large(needs, shown):
        undone = {key for key in linked if not found[key].issue.done}
        shown = undone | {target for key in undone for target in needs[key]}
    if _too_large(needs, shown):
        shown = set()
    kept = [key for key in found if key in shown]
    waiting = [] if kept or not linked else [each for each in open_issues(found) if each.waits_for]
    return Graph(
        nodes={key: issue_line(found[key]) for key in kept},
        needs={key: [each for each in needs[key] if each in shown] for key in kept},
        alone=len(found) - len(linked),
        left_out=len(linked) - len(kept),
        waiting=waiting[: caps.ISSUES],
    )


def totals(found: Iterable[Standing]) -> dict[str, int]:
    """Returns how many issues are in each state, and in total."""
    all_of_them = counts(found)
    return {name: all_of_them[name] for name in (*STATES, "total")}


def _too_large(needs: Mapping[str, Sequence[str]], shown: set[str]) -> bool:
    edges = {key: [each for each in needs[key] if each in shown] for key in needs if key in shown}
    if len(shown) > caps.NODES or sum(map(len, edges.values())) > caps.EDGES:
        return True
    bends = sum(isinstance(each, Bend) for layer in layers(edges) for each in layer)
    return bends > caps.BENDS


def _phase_of(
    fields: Mapping[str, object], gates: Sequence[GateLine]
) -> tuple[_Place | None, str, list[GateLine]]:
    """Returns what the phase of an issue is sorted by, its name, and its gates."""
    metadata = metadata_of(fields)
    number = phase_number(str(metadata.get("phase") or ""))
    if number is None:
        return None, "", []
    plan = metadata.get("plan_file")
    of = plan_workflow(plan) if isinstance(plan, str) else ""
    workflows = workflows_of(metadata)
    own = [
        each
        for each in gates
        if each.workflow_id in workflows and phase_number(each.phase_id) == number
    ]
    name = f"Phase {number[0]}{number[1]}" + (f" of {of}" if of else "")
    return (0, of, *number), name, own


def _parent(issue: Issue, found: Mapping[str, Standing]) -> str | None:
    return next(
        (
            target
            for target, kind in issue.dependencies
            if kind == PARENT and target in found and target != issue.id
        ),
        None,
    )
