"""The models of a sprint bead, after the document on sprint beads, field by field.

Only here is pydantic imported: it costs more than all the rest of a process. Whoever wants to
know whether a bead is valid asks `sprint_rules`; this module says what each field is on its own.
Unknown keys are allowed everywhere, and nothing here is ever written back.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from queenbee.core.timestamps import instant_ms
from queenbee.documents.findings import Finding
from queenbee.documents.schema import member_path
from queenbee.documents.sprints.names import BRANCH_PATTERN, branch_fault, is_absolute
from queenbee.documents.sprints.numbers import PHASE_PATTERN, SPRINT_PATTERN

_SHOWN = 80
"""Characters of a wrong value that a message repeats."""

_OUTPUT_SCHEMA = {
    "type": "object",
    "description": "JSON Schema of what the agent reports; it must define status and message",
    "required": ["properties"],
    "properties": {
        "properties": {
            "type": "object",
            "required": ["status", "message"],
            "properties": {
                "status": {
                    "type": "object",
                    "required": ["enum"],
                    "properties": {
                        "enum": {
                            "type": "array",
                            "items": {"enum": ["pass", "fail", "stop"]},
                            "minItems": 3,
                            "maxItems": 3,
                            "uniqueItems": True,
                        }
                    },
                }
            },
        }
    },
}


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _timestamp(text: str) -> str:
    if instant_ms(text) is None:
        raise ValueError("must be an RFC 3339 timestamp such as 2026-02-07T10:00:00Z")
    return text


def _branch(text: str) -> str:
    fault = branch_fault(text)
    if fault is not None:
        raise ValueError(fault)
    return text


def _absolute(text: str) -> str:
    if not is_absolute(text):
        raise ValueError("must be an absolute path")
    return text


def _as_object(dependency: object) -> object:
    # Both forms are checked as the object that the short one stands for.
    return {"depends_on_id": dependency} if isinstance(dependency, str) else dependency


Said = Annotated[str, Field(min_length=1), AfterValidator(_said)]
Timestamp = Annotated[
    str, AfterValidator(_timestamp), WithJsonSchema({"type": "string", "format": "date-time"})
]
Branch = Annotated[
    str,
    AfterValidator(_branch),
    WithJsonSchema({"type": "string", "pattern": BRANCH_PATTERN}),
]
Absolute = Annotated[Said, AfterValidator(_absolute)]
Phase = Annotated[str, Field(pattern=PHASE_PATTERN)]
SprintId = Annotated[str, Field(pattern=SPRINT_PATTERN)]
Model = Literal["sonnet", "opus", "haiku"]
QAStatus = Literal["pass", "fail", "stop"]
Attempt = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Dependency(_Part):
    """Is one dependency as Beads writes it."""

    depends_on_id: Said
    issue_id: str | None = None
    type: str = "blocks"
    created_at: Timestamp | None = None
    created_by: str | None = None


class QAAgent(_Part):
    """Is one agent that judges the work."""

    agent_path: Said
    model: Model
    prompt: Said
    agent_type: Literal["qa", "code-review", "security-scan", "lint", "integration-test"] | None = (
        None
    )
    input_schema: dict[str, Any] | None = None
    output_schema: Annotated[dict[str, Any], WithJsonSchema(_OUTPUT_SCHEMA)]


class DevExecution(_Part):
    """Is one attempt of the dev agent."""

    attempt: Attempt
    session_id: Said
    agent_path: Said
    model: Model
    started_at: Timestamp
    completed_at: Timestamp
    status: Literal["completed", "failed", "timeout"]
    feedback_from_qa: str | None = None


class QAExecution(_Part):
    """Is one judgement of a QA agent on one attempt."""

    attempt: Attempt
    session_id: Said
    agent_path: Said
    model: Model
    started_at: Timestamp
    completed_at: Timestamp
    status: QAStatus
    message: str
    details: dict[str, Any] | None = None


class QAResult(_Part):
    """Is what a scrum result repeats of one QA agent."""

    agent_path: Said
    status: QAStatus
    message: str | None = None
    details: dict[str, Any] | None = None


class ScrumResult(_Part):
    """Is what the scrum master reports when it is done with a bead."""

    bead_id: Said
    success: bool
    pr_url: str | None = None
    pr_number: Annotated[int, Field(ge=1)] | None = None
    bead_updated: bool
    attempt_count: Annotated[int, Field(ge=0)]
    qa_results: list[QAResult] | None = None
    error: str | None = None
    fatal: bool


class SprintMetadata(_Part):
    """Is everything that the document adds to a bead, in its `metadata`."""

    rig: Said
    worktree_path: Absolute
    branch: Branch
    source_branch: Said
    phase: Phase
    sprint: SprintId
    team_name: Said | None = None
    plan_file: Said
    plan_section: Said
    plan_sprint_id: Said
    branches_to_merge: list[Branch] | None = None
    dev_agent_path: Said
    dev_model: Model
    dev_prompts: Annotated[list[str], Field(min_length=1)]
    agent_type: Literal["dev", "qa", "code-review", "merge", "docs"] | None = None
    qa_agents: Annotated[list[QAAgent], Field(min_length=1)]
    max_retry_attempts: Annotated[int, Field(ge=1)] | None = 3
    attempt_count: Annotated[int, Field(ge=0)] | None = 0
    scrum_master_session_id: str | None = None
    dev_agent_session_id: str | None = None
    dev_agent_executions: list[DevExecution] | None = None
    qa_agent_executions: list[QAExecution] | None = None
    pr_url: str | None = None
    pr_number: Annotated[int, Field(ge=1)] | None = None
    scrum_result: ScrumResult | None = None


class SprintBead(_Part):
    """Is a sprint bead: an issue of Beads with the document's metadata."""

    id: Said | None = None
    title: Said
    description: str | None = None
    status: Literal["open", "in_progress", "closed", "blocked"]
    priority: Annotated[int, Field(ge=0, le=4)] | None = None
    issue_type: Literal["beads-ralph-work", "beads-ralph-merge"]
    assignee: Literal["beads-ralph-scrum-master"]
    owner: str | None = None
    dependencies: (
        list[
            Annotated[
                Dependency,
                BeforeValidator(_as_object, json_schema_input_type=Said | Dependency),
            ]
        ]
        | None
    ) = None
    labels: list[str] | None = None
    comments: list[Any] | None = None
    metadata: SprintMetadata
    external_ref: str | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    closed_at: Timestamp | None = None


def sprint_schema(*, strict: bool = False) -> dict[str, Any]:
    """Returns the JSON Schema of a sprint bead, Draft 2020-12.

    With `strict` it also requires `team_name` and `agent_type`, which the document requires but
    its own examples lack.
    """
    schema = SprintBead.model_json_schema(mode="validation")
    if strict:
        schema["$defs"]["SprintMetadata"]["required"] += ["team_name", "agent_type"]
        schema["$defs"]["QAAgent"]["required"] += ["agent_type"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def model_findings(model: type[BaseModel], value: object, *, path: str = "") -> list[Finding]:
    """Returns everything that is wrong with the fields of `value`, each with its path."""
    try:
        TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        return [_finding(detail, path) for detail in error.errors(include_url=False)]
    return []


def _finding(detail: Any, path: str) -> Finding:
    for step in detail["loc"]:
        path = f"{path}[{step}]" if isinstance(step, int) else member_path(path, str(step))
    return Finding(path, _message(detail))


def _message(detail: Any) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return "is required, but missing"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty"
    messages = {
        "value_error": f"{context.get('error')}",
        "literal_error": f"must be {context.get('expected')}",
        "string_pattern_mismatch": f"must match {context.get('pattern')}",
        "greater_than_equal": f"must be at least {context.get('ge')}",
        "less_than_equal": f"must be at most {context.get('le')}",
        "model_type": "must be an object",
        "dict_type": "must be an object",
        "list_type": "must be a list",
        "string_type": "must be a string",
        "int_type": "must be a whole number",
        "bool_type": "must be true or false",
    }
    return f"{messages.get(kind, detail['msg'])}; it is {_shown(detail['input'])}"


def _shown(value: object) -> str:
    text = repr(value[:_SHOWN]) if isinstance(value, (str, list)) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
