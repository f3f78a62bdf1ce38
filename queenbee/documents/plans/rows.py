"""The row of one sprint's bead, made from the plan and from the row that it has so far."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from queenbee._hashing import sha256
from queenbee.core.timestamps import format_ms
from queenbee.documents.agents import DEFAULT_AGENT, agent_path
from queenbee.documents.fields import slug
from queenbee.documents.issue_rows import Row, metadata_of, new_row, plan_and_sprint
from queenbee.documents.plans.plan import Sprint
from queenbee.documents.plans.sprint_fields import AgentRef
from queenbee.documents.sprints.numbers import (
    branch_name,
    labels,
    phase_of,
    team_name,
    worktree_path,
)
from queenbee.documents.sprints.reports import DEFAULT_SCHEMA
from queenbee.documents.sprints.sprint_bead import DEFAULT_ATTEMPTS, MERGE, WORK, objects_in

DEFAULT_MODEL = "sonnet"
SCRUM_MASTER = "beads-ralph-scrum-master"

_QA_TYPES = ("code-review", "security-scan", "lint", "integration-test")
_RAN = (
    "attempt_count",
    "dev_agent_session_id",
    "scrum_master_session_id",
    "dev_agent_executions",
    "qa_agent_executions",
    "pr_url",
    "scrum_result",
)
"""What a bead has once its work has begun."""

_BEGINNINGS: dict[str, Any] = {
    "max_retry_attempts": DEFAULT_ATTEMPTS,
    "attempt_count": 0,
    "scrum_master_session_id": None,
    "dev_agent_session_id": None,
    "dev_agent_executions": [],
    "qa_agent_executions": [],
    "pr_url": None,
    "pr_number": None,
    "scrum_result": None,
}
"""The fields of a bead that nothing has happened to yet."""
_OWN_LABELS = ("phase-", "sprint-")


@dataclass(frozen=True)
class PlanSetting:
    """The context of an import: what the plan does not say itself.

    `plan_file` is its path from the repository's top folder, with `/`; `repository` is the
    absolute path of that folder; `rig` names the repository; `prefix` begins new ids; `actor`
    is who imports; `source_branch` is for sprints that name none.

    `branch_prefix` begins the branches of sprints that name none; None means `sprint`.
    `unit` is the form of the headings that somebody named as the sprints.
    `claimed` are the issues that somebody has or had; `other_plans` are the paths of the plans
    that are still there; `accept` lets a bead that was begun change its sprint.
    """

    plan_file: str
    repository: str
    rig: str
    prefix: str
    actor: str
    source_branch: str = "main"
    branch_prefix: str | None = None
    unit: str = ""
    claimed: Collection[str] = ()
    other_plans: Collection[str] = ()
    accept: bool = False


@dataclass(frozen=True)
class Worksite:
    """Where the work of a sprint happens, and the branches that it merges."""

    source_branch: str
    branch: str
    worktree: str
    team: str
    merged: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, sprint: Sprint, old: Row | None, setting: PlanSetting, prefix: str, taken: Taken
    ) -> Worksite:
        """Returns what the plan states, or what the bead has, or else default names not taken."""
        had = metadata_of(old or {})
        source = sprint.source_branch or had.get("source_branch") or setting.source_branch
        plain = branch_name(prefix, sprint.number, sprint.title).removeprefix(f"{prefix}/")
        free = _free_name(f"{prefix}/", plain, setting.plan_file, taken.branches)
        branch = sprint.branch or had.get("branch") or free
        plain = team_name(sprint.number, sprint.title)
        team = sprint.team or had.get("team_name")
        team = team or _free_name("", plain, setting.plan_file, taken.teams)
        if sprint.worktree is not None:
            # A plan is read from the top folder, where its author wrote `../app-worktrees/…`.
            worktree = os.path.normpath(os.path.join(setting.repository, sprint.worktree))
        else:
            worktree = had.get("worktree_path") or worktree_path(setting.repository, branch)
        return cls(source, branch, worktree, team)


@dataclass(frozen=True)
class Taken:
    """The branches, worktrees and teams of other beads, each with a bead that has it."""

    branches: Mapping[str, Row]
    worktrees: Mapping[str, Row]
    teams: Mapping[str, Row]

    @classmethod
    def by(cls, rows: Iterable[Row], plan_file: str) -> Taken:
        """Returns what these beads have; a team only if the bead is from another plan."""
        branches: dict[str, Row] = {}
        worktrees: dict[str, Row] = {}
        teams: dict[str, Row] = {}
        for row in rows:
            had = metadata_of(row)
            other_plan = plan_and_sprint(row)[0] != plan_file
            for name, into in (("branch", branches), ("worktree_path", worktrees)):
                if isinstance(had.get(name), str) and row.get("status") != "tombstone":
                    into.setdefault(had[name], row)
            if other_plan and isinstance(had.get("team_name"), str):
                teams.setdefault(had["team_name"], row)
        return cls(branches, worktrees, teams)


def sprint_row(
    sprint: Sprint,
    site: Worksite,
    setting: PlanSetting,
    old: Row | None,
    identifier: str,
    now_ms: int,
) -> Row:
    """Returns the whole row of a sprint's bead, its dependencies unchanged.

    `old` is its current row, which is not changed.
    """
    merged, now = bool(site.merged), format_ms(now_ms)
    row = (
        deepcopy(old)
        if old
        else new_row(identifier, setting.actor, now, issue_type="", assignee=SCRUM_MASTER)
    )
    row["title"] = sprint.title
    row["description"] = _description(sprint)
    if sprint.acceptance or "acceptance_criteria" in row:
        row["acceptance_criteria"] = "\n".join(f"- {item}" for item in sprint.acceptance)
    if sprint.priority is not None:
        row["priority"] = sprint.priority
    row["issue_type"] = MERGE if merged else WORK
    row["labels"] = _labels(sprint, row.get("labels"), merge=merged)
    row["updated_at"] = now
    if sprint.mark == "done" and begun_as(row, setting.claimed) is None:
        row["status"], row["closed_at"] = "closed", now
    row["metadata"] = _metadata(sprint, site, setting, metadata_of(row))
    return row


def begun_as(row: Row, claimed: Collection[str]) -> str | None:
    """Returns in what way somebody has begun or finished a bead, or None if nobody has."""
    status = row.get("status")
    if status not in (None, "open"):
        return str(status)
    if row["id"] in claimed:
        return "claimed"
    return "has run" if any(metadata_of(row).get(name) for name in _RAN) else None


def _metadata(
    sprint: Sprint, site: Worksite, setting: PlanSetting, had: dict[str, Any]
) -> dict[str, Any]:
    """Returns the metadata in the order of the document; unknown keys come last."""
    dev = sprint.dev_agents[0] if sprint.dev_agents else None
    dev_path = had.get("dev_agent_path")
    had_path = dev_path if isinstance(dev_path, str) and dev_path else DEFAULT_AGENT
    stated: dict[str, Any] = {
        "rig": had.get("rig") or setting.rig,
        "worktree_path": site.worktree,
        "branch": site.branch,
        "source_branch": site.source_branch,
        "phase": phase_of(sprint.number),
        "sprint": sprint.number,
        "team_name": site.team,
        "plan_file": setting.plan_file,
        "plan_section": sprint.section,
        "plan_sprint_id": sprint.number,
        **({"plan_unit": setting.unit} if setting.unit else {}),
    }
    if site.merged or "branches_to_merge" in had:
        stated["branches_to_merge"] = list(site.merged) or None
    stated |= {
        "dev_agent_path": agent_path(dev.name) if dev else had_path,
        "dev_model": (dev and dev.model) or had.get("dev_model") or DEFAULT_MODEL,
        "dev_prompts": _prompts(sprint, site),
        "agent_type": _agent_type(had, merge=bool(site.merged)),
        "qa_agents": _qa_agents(sprint, had.get("qa_agents")),
    }
    if len(sprint.dev_agents) > 1 or "other_dev_agents" in had:
        stated["other_dev_agents"] = [
            {"agent_path": agent_path(agent.name), "model": agent.model, "prompt": agent.prompt}
            for agent in sprint.dev_agents[1:]
        ]
    stated |= sprint.metadata
    begun = {
        key: value
        for key, value in deepcopy(_BEGINNINGS).items()
        if key not in had and key not in stated
    }
    return {**stated, **begun, **{key: value for key, value in had.items() if key not in stated}}


def _agent_type(had: dict[str, Any], *, merge: bool) -> str:
    kind = had.get("agent_type")
    if not isinstance(kind, str) or kind in ("dev", "merge"):
        return "merge" if merge else "dev"
    return kind


def _description(sprint: Sprint) -> str:
    """Returns what a person wrote for a sprint: its phase's own text, then its section."""
    return "\n\n".join(filter(None, (sprint.phase_text, sprint.text)))


def _prompts(sprint: Sprint, site: Worksite) -> list[str]:
    prompts = list(sprint.prompts) or [sprint.text]
    if site.merged:
        joined = f"{', '.join(site.merged[:-1])} and {site.merged[-1]}"
        prompts.insert(0, f"Merge branches {joined} into {site.branch}")
    return prompts


def _criteria(sprint: Sprint) -> str:
    return "Acceptance criteria:\n" + "\n".join(f"- {item}" for item in sprint.acceptance)


def _qa_agents(sprint: Sprint, had: object) -> list[dict[str, Any]]:
    """Returns the agents that the plan names, each with the other fields of its current entry."""
    entries = objects_in(had)
    if not sprint.qa_agents and entries:
        return deepcopy(entries)
    known = {entry.get("agent_path"): entry for entry in entries}
    agents = sprint.qa_agents or (None,)
    return [_qa_agent(sprint, agent, known) for agent in agents]


def _qa_agent(
    sprint: Sprint, agent: AgentRef | None, known: dict[Any, dict[str, Any]]
) -> dict[str, Any]:
    path = agent_path(agent.name) if agent else DEFAULT_AGENT
    entry = deepcopy(known.get(path, {}))
    subject = f"Verify sprint {sprint.number}, {sprint.title}."
    default = f"{subject} {_criteria(sprint)}" if sprint.acceptance else subject
    stated = {
        "agent_path": path,
        "model": (agent and agent.model) or entry.get("model") or DEFAULT_MODEL,
        "prompt": (agent and agent.prompt) or entry.get("prompt") or default,
        "agent_type": entry.get("agent_type")
        # Its name says it: `qa-security-scan` is a `security-scan`.
        or next((kind for kind in _QA_TYPES if kind in os.path.basename(path)), "qa"),
        "output_schema": entry.get("output_schema") or deepcopy(DEFAULT_SCHEMA),
    }
    return {**stated, **{key: value for key, value in entry.items() if key not in stated}}


def _labels(sprint: Sprint, had: object, *, merge: bool) -> list[str]:
    own = labels(sprint.number) + (["merge"] if merge else [])
    others = [
        label
        for label in (had if isinstance(had, list) else ())
        if isinstance(label, str) and label != "merge" and not label.startswith(_OWN_LABELS)
    ]
    return [*own, *others]


def _free_name(before: str, name: str, plan_file: str, taken: Mapping[str, object]) -> str:
    """Returns a name that is not taken: as it is, or with what tells its plan from another."""
    stem = slug(os.path.splitext(os.path.basename(plan_file))[0]) or "plan"
    digest = sha256(plan_file.encode(errors="replace")).hexdigest()[:4]
    names = (before + more + name for more in ("", f"{stem}-", f"{stem}-{digest}-"))
    return next((each for each in names if each not in taken), f"{before}{stem}-{digest}-{name}")
