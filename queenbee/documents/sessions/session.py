"""Whether a team session is valid, what it says, and how far its work is.

After the document on team sessions: the steps of its "Validation Algorithm" in its order; each
message begins with its text, and the hint is its recovery step. The algorithm stops at the first
error; this reports every problem. `docs/sessions.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from queenbee.core.text import suggested
from queenbee.documents.findings import Finding, errors_in
from queenbee.documents.json_documents import parse_json
from queenbee.documents.sessions.folder import (
    ROLE_SPECS,
    SHARED_MEMORY,
    TASK_ANALYSIS,
    TEAM_SESSION,
    File,
    SessionFolder,
    read_session_folder,
)
from queenbee.documents.sessions.roles import (
    NOUNS,
    RESUME,
    field_fault,
    name_fault,
    role_spec_findings,
)
from queenbee.documents.sessions.task_graph import (
    Pipeline,
    Task,
    graph_findings,
    pipeline,
    read_tasks,
    with_capabilities,
    with_listed,
)
from queenbee.errors import NotFound, Unreadable

ORIGINAL_TASK = "Re-run team-coordinate with original task"
INSPECTION = "Manual inspection or re-run team-coordinate"
STATUSES = ("active", "paused", "completed")
COMPLETION_ACTIONS = ("interactive", "auto_archive", "auto_keep")

_NO_SESSION = "Session required. Usage: --session=<path-to-TC-folder>"
_NOT_FOUND = "Session directory not found: "
_MAKE_ONE = "name a session's folder, or make one with queen session new"
_REQUIRED: dict[str, tuple[tuple[str, type], ...]] = {
    TEAM_SESSION: (
        ("session_id", str),
        ("task_description", str),
        ("status", str),
        ("team_name", str),
        ("roles", list),
    ),
    TASK_ANALYSIS: (("capabilities", list), ("dependency_graph", dict), ("roles", list)),
}
_MISSING_HINT = {TEAM_SESSION: ORIGINAL_TASK, TASK_ANALYSIS: RESUME}


@dataclass(frozen=True)
class Role:
    """One role of a session."""

    name: str
    prefix: str | None = None
    responsibility: str | None = None
    inner_loop: bool = False
    role_spec: str | None = None


@dataclass(frozen=True)
class Session:
    """What the readable parts of a session's two documents say."""

    path: str
    session_id: str
    task_description: str
    status: str
    team_name: str
    roles: tuple[Role, ...]
    tasks: tuple[Task, ...]
    completed: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """What orders its tasks and cannot be read."""

    @property
    def pipeline(self) -> Pipeline:
        """The progress of each task."""
        return pipeline(self.tasks, frozenset(self.completed), frozenset(self.active))


def validate_session(path: str | None) -> list[Finding]:
    """Returns every problem of the session at `path`; None or empty means a missing option."""
    if not path:
        hint = "queen session validate --session=PATH"
        return [Finding("--session", _NO_SESSION, hint=hint)]
    return session_findings(read_session_folder(path))


def session_findings(folder: SessionFolder) -> list[Finding]:
    """Returns every problem of a session, in the order of the document's algorithm.

    Errors are what the document checks. Anything else that would stop the work (a cycle in the
    graph, a role without a task) follows as a warning.
    """
    if not folder.exists:
        return [Finding(folder.path, _NOT_FOUND + folder.path, hint=_MAKE_ONE)]
    session, found = _document(folder.team_session, TEAM_SESSION)
    found += _role_entries(session)
    analysis, more = _document(folder.task_analysis, TASK_ANALYSIS)
    found += more
    if not folder.role_specs:
        gone = folder.role_specs is None
        fault = "role-specs/ directory missing" if gone else "no role-spec files in role-specs/"
        found.append(Finding(f"{ROLE_SPECS}/", f"Invalid session: {fault}", hint=RESUME))
    found += _roles_findings(folder, session)
    found += _remarks(folder, session, analysis)
    return found


def read_session(folder: SessionFolder) -> Session:
    """Returns what a session says, without its invalid parts.

    Raises `NotFound`, or `Unreadable` if one of its two documents cannot be read at all.
    """
    if not folder.exists:
        raise NotFound(_NOT_FOUND + folder.path, hint=_MAKE_ONE, path=folder.path)
    documents = {}
    for file, name in ((folder.team_session, TEAM_SESSION), (folder.task_analysis, TASK_ANALYSIS)):
        document, found = _document(file, name)
        if document is None:
            hint = suggested("queen session validate", session=folder.path)
            raise Unreadable(found[0].message, hint=hint, path=folder.path)
        documents[name] = document
    session, analysis = documents[TEAM_SESSION], documents[TASK_ANALYSIS]
    tasks, faults = _tasks(session, analysis)
    return Session(
        path=folder.path,
        session_id=_text(session, "session_id"),
        task_description=_text(session, "task_description"),
        status=_text(session, "status"),
        team_name=_text(session, "team_name"),
        roles=tuple(_roles(session)),
        tasks=tuple(tasks),
        unread=tuple(f"{each.path}: {each.message}" for each in errors_in(faults)),
        completed=tuple(_names(session.get("completed_tasks"))),
        active=tuple(_names(session.get("active_workers"))),
    )


def _document(file: File, name: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Returns a JSON document of the session, and what is wrong with it."""
    if not file.exists:
        message = f"Invalid session: {name} missing"
        return None, [Finding(name, message, hint=_MISSING_HINT[name])]
    try:
        if file.data is None:
            raise Unreadable(f"{name} {file.problem}")
        document = parse_json(file.data, name)
        if not isinstance(document, dict):
            raise Unreadable(f"{name} is not a JSON object")
    except Unreadable as error:
        message = f"Invalid session: {name} corrupt: {error.message}"
        return None, [Finding(name, message, hint=INSPECTION)]
    faults = [
        (field, fault)
        for field, kind in _REQUIRED[name]
        if (fault := _required_fault(document, field, kind)) is not None
    ]
    return document, [_field_finding(name, field, fault) for field, fault in faults]


def _required_fault(document: dict[str, Any], field: str, kind: type) -> str | None:
    value = document.get(field)
    if field == "dependency_graph" and isinstance(value, list):
        return None
    fault = field_fault(document, field, kind)
    if fault is not None:
        return fault
    if field == "roles" and not value:
        return "roles is empty"
    if field == "status" and value not in STATUSES:
        return f"status must be {', '.join(STATUSES[:-1])} or {STATUSES[-1]}, it is {value!r:.60}"
    return None


def _field_finding(name: str, field: str, fault: str) -> Finding:
    # The algorithm has no message for a field; this is the one in its table.
    message = f"Invalid session: {name} missing, corrupt, or missing required fields: {fault}"
    return Finding(f"{name}#{field}", message, hint=INSPECTION)


def _role_entries(session: dict[str, Any] | None) -> list[Finding]:
    """Returns what is wrong with the entries of `roles`: each is an object with three strings."""
    roles = (session or {}).get("roles")
    found: list[Finding] = []
    for index, role in enumerate(roles if isinstance(roles, list) else ()):
        path = f"roles[{index}]"
        if not isinstance(role, dict):
            fault = f"{path} must be an object with name, prefix and role_spec, it is {role!r:.60}"
            found.append(_field_finding(TEAM_SESSION, path, fault))
            continue
        for field in ("name", "prefix", "role_spec"):
            role_fault = field_fault(role, field, str)
            if role_fault is not None:
                finding = _field_finding(TEAM_SESSION, f"{path}.{field}", f"{path}.{role_fault}")
                found.append(finding)
    return found


def _roles_findings(folder: SessionFolder, session: dict[str, Any] | None) -> Iterator[Finding]:
    """Returns what is wrong with the role-spec of each role of the session, in its order.

    If the session cannot be read, the files that exist are checked.
    """
    specs = folder.role_specs or {}
    roles = list(_roles(session)) if session is not None else [Role(name) for name in specs]
    for name, prefix in {role.name: role.prefix for role in roles}.items():
        fault = name_fault(name)
        if fault is None and name in specs:
            yield from role_spec_findings(name, specs[name], prefix=prefix)
            continue
        message = f"Role-spec file not found: {ROLE_SPECS}/{name}.md"
        message = f"{message}: {fault}" if fault else message
        yield Finding(f"{ROLE_SPECS}/{name}.md", message, hint=RESUME)


def _remarks(
    folder: SessionFolder, session: dict[str, Any] | None, analysis: dict[str, Any] | None
) -> Iterator[Finding]:
    roles = list(_roles(session or {}))
    names = [role.name for role in roles]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Finding(f"{TEAM_SESSION}#roles", f"the role {name!r} is listed twice", "warning")
    for role in roles:
        wanted = f"{ROLE_SPECS}/{role.name}.md"
        if role.role_spec is not None and role.role_spec.removeprefix("./") != wanted:
            message = f"role_spec of {role.name!r} is {role.role_spec!r}, but {wanted} is read"
            yield Finding(f"{TEAM_SESSION}#roles", message, "warning")
    if session is not None:
        for name in sorted(set(folder.role_specs or ()) - set(names)):
            message = "no role of the session has this role-spec"
            yield Finding(f"{ROLE_SPECS}/{name}.md", message, "warning")
        yield from _optional_fields(session)
    if analysis is not None:
        tasks, found = _tasks(session or {}, analysis)
        path = f"{TASK_ANALYSIS}#dependency_graph"
        yield from found
        yield from graph_findings(tasks, names or [task.role for task in tasks if task.role], path)
    if folder.shared_memory.data is not None:
        try:
            parse_json(folder.shared_memory.data, SHARED_MEMORY)
        except Unreadable as error:
            yield Finding(SHARED_MEMORY, error.message, "warning")


def _optional_fields(session: dict[str, Any]) -> Iterator[Finding]:
    kinds = {"pipeline": dict, "active_workers": list, "completed_tasks": list, "created_at": str}
    for field, kind in kinds.items():
        if session.get(field) is not None and not isinstance(session[field], kind):
            message = f"{field} should be {NOUNS[kind]}"
            yield Finding(f"{TEAM_SESSION}#{field}", message, "warning")
    action = session.get("completion_action")
    if action is not None and action not in COMPLETION_ACTIONS:
        message = f"completion_action must be one of {', '.join(COMPLETION_ACTIONS)}"
        yield Finding(f"{TEAM_SESSION}#completion_action", message, "warning")


def _tasks(session: dict[str, Any], analysis: dict[str, Any]) -> tuple[list[Task], list[Finding]]:
    """Returns the tasks of the analysis or, if it has none, of the session's pipeline."""
    tasks, found = read_tasks(analysis.get("dependency_graph"), f"{TASK_ANALYSIS}#dependency_graph")
    copy = session.get("pipeline")
    if not tasks and isinstance(copy, dict):
        tasks, more = read_tasks(copy.get("dependency_graph"), f"{TEAM_SESSION}#pipeline")
        found += more
    for document, name in ((session, TEAM_SESSION), (analysis, TASK_ANALYSIS)):
        listed, more = read_tasks(_objects(document.get("tasks")), f"{name}#tasks")
        tasks, found = with_listed(tasks, listed), [*found, *more]
    prefixes = {role.name: role.prefix for role in _roles(session)}
    return with_capabilities(tasks, analysis.get("capabilities"), prefixes), found


def _roles(session: dict[str, Any]) -> Iterator[Role]:
    roles = session.get("roles")
    for role in roles if isinstance(roles, list) else ():
        if isinstance(role, dict) and isinstance(role.get("name"), str) and role["name"]:
            yield Role(
                name=role["name"],
                prefix=_text(role, "prefix") or None,
                responsibility=_text(role, "responsibility_type") or None,
                inner_loop=role.get("inner_loop") is True,
                role_spec=_text(role, "role_spec") or None,
            )


def _objects(values: object) -> object:
    """Returns a list or map of tasks without what is only the name of one."""
    if isinstance(values, dict):
        return {name: each for name, each in values.items() if isinstance(each, dict)}
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else None


def _names(values: object) -> Iterator[str]:
    """Returns the tasks that a list names, as strings or as objects."""
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            value = next((value[key] for key in ("task_id", "task", "id") if value.get(key)), None)
        if isinstance(value, str) and value:
            yield value


def _text(document: dict[str, Any], field: str) -> str:
    value = document.get(field)
    return value if isinstance(value, str) else ""
