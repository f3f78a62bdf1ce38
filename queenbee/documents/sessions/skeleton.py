"""A new, valid session: what `queen session new` writes.

Pure. After the document on team sessions: its directory structure and its two schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queenbee.core.timestamps import format_ms
from queenbee.documents.fields import slug
from queenbee.documents.json_documents import format_json
from queenbee.documents.sessions.folder import SHARED_MEMORY, TASK_ANALYSIS, TEAM_SESSION
from queenbee.errors import InvalidInput

ROLES = ("researcher", "developer", "tester")

_WISDOM = ("learnings", "decisions", "issues")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True)
class Skeleton:
    """A session to write: the name of its folder, and its files by their paths in it."""

    folder: str
    files: Mapping[str, bytes]


def session_skeleton(
    task_description: str, *, now_ms: int, roles: Sequence[str] = ROLES, team: str | None = None
) -> Skeleton:
    """Returns a valid session with one task for each role, each after the one before.

    Raises `InvalidInput` for an empty description, no roles, a duplicate role, or a role whose
    name is not a plain word.
    """
    if not task_description.strip():
        raise InvalidInput("a session needs a task", hint='queen session new "what to do"')
    _refuse_roles(roles)
    now = format_ms(now_ms)
    subject = slug(task_description)[:40].strip("-")
    name = f"TC-{subject or 'session'}-{now[:10]}"
    graph = _graph(roles)
    session = {
        "session_id": name,
        "task_description": task_description,
        "status": "active",
        "team_name": team or subject or "team",
        "roles": [_role(role) | {"role_spec": f"role-specs/{role}.md"} for role in roles],
        "pipeline": {"dependency_graph": graph, "tasks_total": len(graph), "tasks_completed": 0},
        "active_workers": [],
        "completed_tasks": [],
        "completion_action": "interactive",
        "created_at": now,
    }
    files = {
        TEAM_SESSION: format_json(session),
        TASK_ANALYSIS: format_json(_analysis(roles, graph)),
        SHARED_MEMORY: format_json({}),
        "explorations/cache-index.json": format_json({}),
        **{f"wisdom/{name}.md": f"# {name.title()}\n".encode() for name in _WISDOM},
        **{f"role-specs/{role}.md": _role_spec(role).encode() for role in roles},
    }
    return Skeleton(name, files)


def _analysis(roles: Sequence[str], graph: dict[str, object]) -> dict[str, object]:
    return {
        "capabilities": [
            {"name": role, "description": f"What the {role} does", "artifact_type": "markdown"}
            for role in roles
        ],
        "dependency_graph": graph,
        "roles": [_role(role) | {"role_spec_metadata": _messages(role)} for role in roles],
        "complexity_score": 0,
    }


def prefix_of(role: str) -> str:
    """Returns the prefix of a role's tasks: `RESEARCHER` for `researcher`."""
    return re.sub(r"[^A-Z0-9]+", "_", role.upper()).strip("_")


def _refuse_roles(roles: Sequence[str]) -> None:
    if not roles:
        raise InvalidInput("a session needs a role")
    for role in roles:
        if _NAME.fullmatch(role) is None:
            hint = "use letters, digits, '_' and '-', and start with a letter or a digit"
            raise InvalidInput(f"{role!r} is not a valid role name", hint=hint)
    if len({prefix_of(role) for role in roles}) < len(roles):
        raise InvalidInput("two roles would have the same prefix")


def _graph(roles: Sequence[str]) -> dict[str, object]:
    tasks = [f"{prefix_of(role)}-001" for role in roles]
    return {
        task: {"depends_on": tasks[index - 1 : index] if index else [], "role": roles[index]}
        for index, task in enumerate(tasks)
    }


def _role(role: str) -> dict[str, object]:
    return {
        "name": role,
        "prefix": prefix_of(role),
        "responsibility_type": role,
        "inner_loop": False,
    }


def _messages(role: str) -> dict[str, object]:
    success = f"{prefix_of(role).lower()}_complete"
    return {"subagents": [], "message_types": {"success": success, "error": "error"}}


def _role_spec(role: str) -> str:
    name = role.replace("-", " ").replace("_", " ").title()
    return f"""\
---
role: {_scalar(role)}
prefix: {_scalar(prefix_of(role))}
inner_loop: false
message_types:
  success: {_scalar(f"{prefix_of(role).lower()}_complete")}
  error: error
---

# {name} — Phase 2-4

## Phase 2: Context Loading

Read the task, the wisdom of the session, and the artifacts of the tasks before this one.

## Phase 3: Execution

Do the work of the {role} and write the results to `artifacts/`.

## Phase 4: Validation

Check the result against the task, and record what you learned in `wisdom/`.
"""


def _scalar(text: str) -> str:
    """Returns a YAML string, quoted if YAML would read it as a number or a truth value."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", text) and text.lower() not in _RESERVED
    return text if plain else json.dumps(text)
