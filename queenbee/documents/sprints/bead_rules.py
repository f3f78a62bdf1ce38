"""Sprint beads: which issues are one, their teams, and whether one is valid: its fields, the rules
between them, and the agents it names.

All findings are reported at once, and the checked value never changes.
`docs/sprint-beads.md`; after the document on sprint beads, "Schema Validation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.beads import SPRINTS
from queenbee.core.beads import team_of as team_of
from queenbee.core.timestamps import instant_ms
from queenbee.documents.agents import agent_finding
from queenbee.documents.findings import Finding
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.sprints.numbers import (
    SprintNumber,
    Track,
    is_phase,
    is_sprint,
    parse_sprint,
    phase_of,
)
from queenbee.documents.sprints.reports import schema_rules
from queenbee.documents.sprints.sprint_bead import field_findings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

MAX_BYTES = 1024 * 1024
"""The size limit of a bead: it is a line of `issues.jsonl`, and longer lines are not read."""

WORK, MERGE = SPRINTS
_LAST = SprintNumber(Track((1 << 30, ""), ""), (0, ""), "")


def is_sprint_bead(row: Mapping[str, Any]) -> bool:
    """Returns whether an issue has the type of a sprint bead, or names a sprint."""
    return row.get("issue_type") in SPRINTS or "sprint" in metadata_of(row)


def group_by_team(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Returns the beads of each team in the order of their sprints, the earliest team first."""
    teams: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=_order):
        teams.setdefault(team_of(row), []).append(row)
    return teams


def _order(row: Mapping[str, Any]) -> tuple[SprintNumber, str]:
    sprint = metadata_of(row).get("sprint")
    known = isinstance(sprint, str) and is_sprint(sprint)
    return (parse_sprint(str(sprint)) if known else _LAST, str(row.get("id")))


def check_bead(
    bead: object, *, agents: Collection[str] | None = None, strict: bool = False
) -> list[Finding]:
    """Returns everything that is wrong with a sprint bead.

    `agents` are the known agents (`list_agents`); None leaves agents' paths unchecked. With
    `strict`, a missing `team_name` or `agent_type` is an error and not a warning.
    """
    found = field_findings(bead)
    if not isinstance(bead, dict):
        return found
    metadata = bead.get("metadata")
    found += _bead_rules(bead)
    if isinstance(metadata, dict):
        found += _number_rules(metadata)
        found += _merge_rules(bead, metadata)
        found += _schema_rules(metadata)
        found += _history_rules(metadata)
        if agents is not None:
            found += _agent_rules(metadata, agents)
        found += _left_out(metadata, strict=strict)
    return found


def _bead_rules(bead: dict[str, Any]) -> Iterator[Finding]:
    if bead.get("id") is None:
        yield Finding("id", "is missing: nobody can claim the bead or wait for it", "warning")
    closed = bead.get("status") == "closed"
    if isinstance(bead.get("status"), str) and closed != (bead.get("closed_at") is not None):
        state = "closed beads have one" if closed else "only closed beads have one"
        yield Finding("closed_at", f"{state}: Beads refuses this row", "warning")
    title = bead.get("title")
    if isinstance(title, str) and len(title.encode(errors="replace")) > 500:
        yield Finding("title", "is longer than 500 bytes: Beads refuses this row", "warning")


def _number_rules(metadata: dict[str, Any]) -> Iterator[Finding]:
    phase, sprint = metadata.get("phase"), metadata.get("sprint")
    if not isinstance(phase, str) or not isinstance(sprint, str):
        return
    if is_phase(phase) and is_sprint(sprint) and phase_of(sprint) != phase:
        yield Finding("metadata.sprint", f"must begin with its phase, {phase}; it is {sprint!r}")


def _merge_rules(bead: dict[str, Any], metadata: dict[str, Any]) -> Iterator[Finding]:
    branches = metadata.get("branches_to_merge")
    if bead.get("issue_type") == MERGE and (branches is None or branches == []):
        yield Finding("metadata.branches_to_merge", "a merge bead names the branches to merge")
    if bead.get("issue_type") == WORK and branches:
        message = "only merge beads have branches to merge"
        yield Finding("metadata.branches_to_merge", message, "warning")


def _schema_rules(metadata: dict[str, Any]) -> Iterator[Finding]:
    for path, agent in _objects(metadata, "qa_agents"):
        if isinstance(agent.get("output_schema"), dict):
            yield from schema_rules(agent["output_schema"], f"{path}.output_schema")


def _history_rules(metadata: dict[str, Any]) -> Iterator[Finding]:
    limit, count = metadata.get("max_retry_attempts", 3), metadata.get("attempt_count", 0)
    if type(limit) is int and type(count) is int and 1 <= limit < count:
        message = f"is {count}, which exceeds max_retry_attempts, {limit}"
        yield Finding("metadata.attempt_count", message, "warning")
    for name in ("dev_agent_executions", "qa_agent_executions"):
        for path, execution in _objects(metadata, name):
            started = instant_ms(execution.get("started_at"))
            completed = instant_ms(execution.get("completed_at"))
            if started is not None and completed is not None and completed < started:
                yield Finding(f"{path}.completed_at", "is before started_at", "warning")


def _agent_rules(metadata: dict[str, Any], agents: Collection[str]) -> Iterator[Finding]:
    named: list[tuple[str, object]] = [("metadata.dev_agent_path", metadata.get("dev_agent_path"))]
    for path, agent in _objects(metadata, "qa_agents"):
        named.append((f"{path}.agent_path", agent.get("agent_path")))
    for where, named_path in named:
        if isinstance(named_path, str) and named_path.strip():
            finding = agent_finding(named_path, agents, where)
            if finding is not None:
                yield finding


def _left_out(metadata: dict[str, Any], *, strict: bool) -> Iterator[Finding]:
    holders = [("metadata", metadata, name) for name in ("team_name", "agent_type")]
    holders += [(path, agent, "agent_type") for path, agent in _objects(metadata, "qa_agents")]
    for path, holder, name in holders:
        if holder.get(name) is None:
            yield Finding(
                f"{path}.{name}",
                "is required, but missing",
                "error" if strict else "warning",
                hint=f"add it; with{'out' if strict else ''} --strict this is "
                + ("a warning, since the source's own examples lack it" if strict else "an error"),
            )


def _objects(metadata: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    values = metadata.get(name)
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, dict):
            yield f"metadata.{name}[{index}]", value
