"""The branches, worktrees and teams of a plan's sprints, and where two of them meet.

Pure. After the document on sprint beads, "Branch Naming Convention". A default never begins with
the source branch: git cannot have `main/1-1-setup` beside `main`.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

from queenbee.documents.fields import slug
from queenbee.documents.findings import Finding
from queenbee.documents.graphs import ancestors
from queenbee.documents.plans.plan_graph import plan_dependencies
from queenbee.documents.sprints.numbers import branch_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queenbee.documents.plans.plan import Plan, Sprint

PREFIXES = ("sprint", "sprints", "plan")
"""What default branches begin with: the first that is not a branch itself."""


def default_prefix(plan: Plan, source_branch: str) -> str:
    """Returns what the default branches of a plan begin with."""
    named = {source_branch, *(sprint.source_branch for sprint in plan.sprints)}
    named.update(sprint.branch for sprint in plan.sprints)
    return next((prefix for prefix in PREFIXES if prefix not in named), PREFIXES[0])


def free_name(names: Iterator[str], taken: Mapping[str, object]) -> str:
    """Returns the first of these names that is not taken, or the last one."""
    for name in names:  # There is at least one.
        if name not in taken:
            break
    return name


def branch_names(prefix: str, sprint: Sprint, plan_file: str) -> Iterator[str]:
    """Yields the default branch of a sprint, then those that tell its plan from another."""
    plain = branch_name(prefix, sprint.number, sprint.title)
    yield plain
    rest = plain[len(prefix) + 1 :]
    for name in _plan_names(plan_file):
        yield f"{prefix}/{name}-{rest}"


def team_names(team: str, plan_file: str) -> Iterator[str]:
    """Yields the default team of a sprint, then those that tell its plan from another."""
    yield team
    for name in _plan_names(plan_file):
        yield f"{name}-{team}"


def shared_places(plan: Plan, prefix: str) -> Iterator[Finding]:
    """Yields an error for each sprint with a branch or worktree that another sprint has.

    Sprints of one team that wait for each other may share them: they work one after another.
    """
    dependencies = plan_dependencies(plan)
    branches: dict[str, Sprint] = {}
    worktrees: dict[str, Sprint] = {}
    for sprint in plan.sprints:
        branch = sprint.branch or branch_name(prefix, sprint.number, sprint.title)
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


def _plan_names(plan_file: str) -> Iterator[str]:
    stem = os.path.splitext(os.path.basename(plan_file))[0]
    name = slug(stem) or "plan"
    yield name
    yield f"{name}-{sha256(plan_file.encode(errors='replace')).hexdigest()[:4]}"
