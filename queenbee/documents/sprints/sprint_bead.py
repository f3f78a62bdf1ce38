"""A sprint bead: its schema, and a reader for rows that may not follow it.

Unknown keys are allowed everywhere. After the document on sprint beads.
"""

from __future__ import annotations

import json
import os
import re
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING

from queenbee.core.timestamps import instant_ms
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.schema import schema_findings
from queenbee.documents.sprints.numbers import branch_fault, is_absolute

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, Literal

    from queenbee.documents.findings import Finding

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


def _timestamp_fault(text: str) -> str | None:
    example = "must be an RFC 3339 timestamp such as 2026-02-07T10:00:00Z"
    return example if instant_ms(text) is None else None


_FORMATS = {
    "date-time": _timestamp_fault,
    "branch": branch_fault,
    "absolute-path": lambda text: None if is_absolute(text) else "must be an absolute path",
}
