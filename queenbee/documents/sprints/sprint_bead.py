"""A sprint bead: its schema, a reader for rows that may not follow it, and what is wrong with one:
its fields, the rules between them, and the agents it names.

Unknown keys are allowed everywhere; all findings are reported at once. `docs/sprint-beads.md`;
after the document on sprint beads, "Schema Validation".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Literal

from queenbee.core.beads import SPRINTS, metadata_of
from queenbee.core.beads import is_sprint_bead as is_sprint_bead
from queenbee.core.beads import team_of as team_of
from queenbee.core.timestamps import instant_ms
from queenbee.documents.agents import agent_finding
from queenbee.documents.findings import Finding
from queenbee.documents.schema import schema_findings
from queenbee.documents.sprints.numbers import (
    SprintNumber,
    Track,
    branch_fault,
    is_absolute,
    is_phase,
    is_sprint,
    parse_sprint,
    phase_of,
)
from queenbee.documents.sprints.reports import schema_rules

Part = Literal["DevExecution", "QAExecution", "ScrumResult"]

SCHEMA_PATH = os.path.join(os.path.dirname(__file__), "sprint-bead.schema.json")
DEFAULT_ATTEMPTS = 3

_PATTERNS = {
    "branch": "^(?!-|HEAD$)[a-zA-Z0-9_-]+(?:/[a-zA-Z0-9_-]+)*$",
    "absolute-path": r"^(?:/|[A-Za-z]:[\\/]|\\\\)[^\u0000]*$",
    "date-time": "^[0-9]{4}-.{5}[Tt ][0-9]{2}.{6}",
}
"""What the formats in the schema mean, as far as a pattern can say it."""
_MERGE_BEADS = {
    "if": {"properties": {"issue_type": {"const": "beads-ralph-merge"}}},
    "then": {
        "properties": {
            "metadata": {
                "required": ["branches_to_merge"],
                "properties": {"branches_to_merge": {"type": "array", "minItems": 1}},
            }
        }
    },
}


def sprint_schema(*, strict: bool = False) -> dict[str, Any]:
    """Returns the JSON Schema of a sprint bead, Draft 2020-12.

    It refuses nothing that `check_bead` accepts; `docs/sprint-beads.md`, section "What is
    checked", lists what it cannot say. With `strict` it also requires `team_name` and
    `agent_type`, which the document requires but its own examples lack.
    """
    schema = deepcopy(_schema())
    metadata, agent = schema["$defs"]["SprintMetadata"], schema["$defs"]["QAAgent"]
    agent["properties"]["output_schema"] = {"$ref": "#/$defs/OutputSchema"}
    schema |= _MERGE_BEADS
    _spell_out(schema)
    if strict:
        metadata["required"] += ["team_name", "agent_type"]
        agent["required"] += ["agent_type"]
        for owner, name in (
            (metadata, "team_name"),
            (metadata, "agent_type"),
            (agent, "agent_type"),
        ):
            # Null means "not yet", which is missing here.
            owner["properties"][name]["type"] = "string"
    return schema


def _spell_out(node: object) -> None:
    """Adds patterns that say what our formats mean: other validators do not know these."""
    if isinstance(node, list):
        for each in node:
            _spell_out(each)
    elif isinstance(node, dict):
        name = node.get("format")
        if isinstance(name, str):
            node["pattern"] = _PATTERNS[name]
            if name != "date-time":
                del node["format"]
        if isinstance(node.get("pattern"), str):
            # Python's `$` also matches before a line end, and many validators are in Python.
            node["pattern"] = re.sub(r"\$\Z", r"$(?!\\n)", node["pattern"])
        for each in node.values():
            _spell_out(each)


def field_findings(bead: object) -> list[Finding]:
    """Returns everything that is wrong with a bead's fields, each field on its own."""
    return schema_findings(bead, _schema(), formats=_FORMATS, exact=True)


def metadata_fields() -> Collection[str]:
    """Returns the names of the fields of the metadata."""
    fields: dict[str, Any] = _schema()["$defs"]["SprintMetadata"]["properties"]
    return fields


def metadata_findings(name: str, value: object) -> list[Finding]:
    """Returns what is wrong with one field of the metadata."""
    schema = {"$ref": f"#/$defs/SprintMetadata/properties/{name}", "$defs": _schema()["$defs"]}
    return schema_findings(value, schema, formats=_FORMATS, exact=True)


def part_findings(part: Part, value: object) -> list[Finding]:
    """Returns everything that is wrong with the fields of one part of a bead."""
    schema = {"$ref": f"#/$defs/{part}", "$defs": _schema()["$defs"]}
    return schema_findings(value, schema, formats=_FORMATS, exact=True)


class SprintBead:
    """Reads a row of the tracker as a sprint bead; what violates the schema is left out."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = row

    @property
    def metadata(self) -> dict[str, Any]:
        """The row's metadata; empty if it has none."""
        return metadata_of(self.row)

    @property
    def qa_agents(self) -> list[dict[str, Any]]:
        """The agents that judge the work."""
        return objects_in(self.metadata.get("qa_agents"))

    @property
    def dev_executions(self) -> list[dict[str, Any]]:
        """The recorded attempts of the dev agent."""
        return objects_in(self.metadata.get("dev_agent_executions"))

    @property
    def qa_executions(self) -> list[dict[str, Any]]:
        """The recorded judgements of all QA agents."""
        return objects_in(self.metadata.get("qa_agent_executions"))

    @property
    def last_attempt(self) -> int:
        """The number of the last recorded attempt; 0 before the first."""
        attempts = [execution.get("attempt") for execution in self.dev_executions]
        return max((attempt for attempt in attempts if type(attempt) is int), default=0)

    @property
    def max_attempts(self) -> int:
        """How many attempts the bead has in total."""
        limit = self.metadata.get("max_retry_attempts", DEFAULT_ATTEMPTS)
        return limit if type(limit) is int and limit >= 1 else DEFAULT_ATTEMPTS

    @property
    def stopped(self) -> bool:
        """Whether a QA agent said to stop, or the scrum master that nothing helps."""
        return self.fatal or any(one.get("status") == "stop" for one in self.qa_executions)

    @property
    def fatal(self) -> bool:
        """Whether the scrum master's result ends the bead."""
        result = self.metadata.get("scrum_result")
        return isinstance(result, dict) and result.get("fatal") is True

    def judgements(self) -> dict[str, dict[str, Any]]:
        """Returns each QA agent's latest judgement of the last attempt, by the agent's path."""
        last = self.last_attempt
        return {
            str(execution.get("agent_path")): execution
            for execution in self.qa_executions
            if execution.get("attempt") == last
        }


def objects_in(values: object) -> list[dict[str, Any]]:
    """Returns the objects in a list; nothing if it is not a list."""
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


@cache
def _schema() -> dict[str, Any]:
    with open(SCHEMA_PATH, encoding="utf-8") as file:
        schema: dict[str, Any] = json.load(file)
    return schema


_FORMATS = {
    "date-time": lambda text: (
        "must be an RFC 3339 timestamp such as 2026-02-07T10:00:00Z"
        if instant_ms(text) is None
        else None
    ),
    "branch": branch_fault,
    "absolute-path": lambda text: None if is_absolute(text) else "must be an absolute path",
}


MAX_BYTES = 1024 * 1024
"""The size limit of a bead: it is a line of `issues.jsonl`, and longer lines are not read."""

WORK, MERGE = SPRINTS
_LAST = SprintNumber(Track((1 << 30, ""), ""), (0, ""), "")


def group_by_team(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Returns the beads of each team in the order of their sprints, the earliest team first."""

    def place(row: Mapping[str, Any]) -> tuple[SprintNumber, str]:
        sprint = metadata_of(row).get("sprint")
        known = isinstance(sprint, str) and is_sprint(sprint)
        return (parse_sprint(str(sprint)) if known else _LAST, str(row.get("id")))

    teams: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=place):
        teams.setdefault(team_of(row), []).append(row)
    return teams


def check_bead(
    bead: object, *, agents: Collection[str] | None = None, strict: bool = False
) -> list[Finding]:
    """Returns everything that is wrong with a sprint bead.

    `agents` are the known agents (`list_agents`); with None, agents need only be in their folder.
    With `strict`, a missing `team_name` or `agent_type` is an error and not a warning.
    """
    found = field_findings(bead)
    if not isinstance(bead, dict):
        return found
    metadata = bead.get("metadata")
    found += _bead_rules(bead)
    if isinstance(metadata, dict):
        found += _number_rules(metadata)
        found += _merge_rules(bead, metadata)
        for path, agent in _objects(metadata, "qa_agents"):
            if isinstance(agent.get("output_schema"), dict):
                found += schema_rules(agent["output_schema"], f"{path}.output_schema")
        found += _history_rules(metadata)
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


def _agent_rules(metadata: dict[str, Any], agents: Collection[str] | None) -> Iterator[Finding]:
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
