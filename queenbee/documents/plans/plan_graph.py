"""What each sprint waits for: from its number, and from what the plan adds.

Pure. `docs/plans.md`, section "What the numbers mean"; after the document on sprint beads,
"Mapping to Bead Dependencies".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from queenbee.core.text import one_line
from queenbee.documents.graphs import Node, ancestors, render_dot, render_mermaid
from queenbee.documents.plans.plan import Plan
from queenbee.documents.sprints.numbers import (
    Natural,
    Track,
    parse_sprint,
    phase_of,
    sort_phases,
    sort_sprints,
)

Dependencies = dict[str, tuple[str, ...]]


def number_dependencies(sprints: Iterable[str]) -> Dependencies:
    """Returns the sprints that each sprint's number waits for, in the plan's order.

    A sprint waits for all sprints of the previous number in its track that the plan has. The
    first number of a track waits for the last one of its parent track (`3a` for `3ab`), or, if
    there is none, for the last one of every track of the previous phase that the plan has.
    Raises `ValueError` for anything but sprint numbers.
    """
    groups: dict[Track, dict[Natural, list[str]]] = {}
    ordered = sort_sprints(dict.fromkeys(sprints))
    numbers = {sprint: parse_sprint(sprint) for sprint in ordered}
    for sprint, number in numbers.items():
        groups.setdefault(number.track, {}).setdefault(number.group, []).append(sprint)
    # Dictionaries keep the order of the sorted sprints: the last group is the highest number, and
    # tracks are in the order of the plan.
    previous = _previous(groups)
    return {sprint: previous[number.track, number.group] for sprint, number in numbers.items()}


def plan_dependencies(plan: Plan) -> Dependencies:
    """Returns what each sprint of a plan waits for: by number, then what it names itself.

    A sprint may name sprints that are missing from the plan, and beads. A duplicate counts once.
    """
    found = number_dependencies(sprint.number for sprint in plan.sprints)
    if plan.orders_itself:
        found = dict.fromkeys(found, ())
    for sprint in plan.sprints:
        found[sprint.number] = tuple(dict.fromkeys((*found[sprint.number], *sprint.depends_on)))
    return found


def merges(dependencies: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Returns the sprints that each merging sprint merges.

    A sprint merges the sprints that it waits for and that do not wait for each other, if there
    are at least two.
    """
    joined: dict[tuple[str, ...], tuple[str, ...]] = {}
    for needs in map(tuple, dependencies.values()):
        # All sprints of a group wait for the same ones, so look those up once.
        if needs not in joined:
            known = [need for need in needs if need in dependencies]
            earlier = ancestors(dependencies, known) if len(known) > 1 else ()
            joined[needs] = tuple(need for need in known if need not in earlier)
    return {
        sprint: joined[tuple(needs)]
        for sprint, needs in dependencies.items()
        if len(joined[tuple(needs)]) > 1
    }


def render_text(plan: Plan) -> str:
    """Returns the plan's phases and sprints, each with what it waits for, as lines of text."""
    dependencies = plan_dependencies(plan)
    titles = {sprint.number: sprint.title for sprint in plan.sprints}
    phases = {phase.number: phase.title for phase in plan.phases}
    joins = merges(dependencies)
    widths = [max(map(len, column), default=0) for column in (titles, titles.values())]
    lines: list[str] = []
    for phase in sort_phases({phase_of(sprint) for sprint in titles}):
        lines.append(one_line(f"Phase {phase}: {phases.get(phase, '')}").rstrip(": "))
        for sprint in (each for each in dependencies if phase_of(each) == phase):
            after = ", ".join(dependencies[sprint])
            columns = [
                sprint.ljust(widths[0]),
                one_line(titles[sprint]).ljust(min(widths[1], 50)),
                f"after {after}" if after else "",
                "(merge)" if sprint in joins else "",
            ]
            lines.append(("  " + "  ".join(filter(None, columns))).rstrip())
    return "\n".join(lines) + "\n" if lines else ""


def render_plan(plan: Plan, form: str) -> str:
    """Returns the plan's graph as `text`, `mermaid` or `dot`. Raises `ValueError` for others."""
    if form == "text":
        return render_text(plan)
    if form not in ("mermaid", "dot"):
        raise ValueError(f"{form!r} is not text, mermaid or dot")
    dependencies = plan_dependencies(plan)
    titles = {sprint.number: sprint.title for sprint in plan.sprints}
    joins = merges(dependencies)
    nodes = [
        Node(sprint, titles[sprint], "merge" if sprint in joins else "") for sprint in dependencies
    ]
    return (render_mermaid if form == "mermaid" else render_dot)(dependencies, nodes)


def _previous(
    groups: Mapping[Track, Mapping[Natural, list[str]]],
) -> dict[tuple[Track, Natural], tuple[str, ...]]:
    """Returns what each group of each track waits for."""
    last = {track: tuple(list(members.values())[-1]) for track, members in groups.items()}
    found: dict[tuple[Track, Natural], tuple[str, ...]] = {}
    for track, members in groups.items():
        waits_for = _before_track(track, last)
        for group, sprints in members.items():
            found[track, group] = waits_for
            waits_for = tuple(sprints)
    return found


def _before_track(track: Track, last: Mapping[Track, tuple[str, ...]]) -> tuple[str, ...]:
    for length in range(len(track.letters) - 1, -1, -1):
        parent = Track(track.phase, track.letters[:length])
        if parent in last:
            return last[parent]
    earlier = max((other.phase for other in last if other.phase < track.phase), default=None)
    return tuple(sprint for other in last if other.phase == earlier for sprint in last[other])
