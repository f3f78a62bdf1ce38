"""Imports a session's dependency graph as beads that can be claimed, one for each task.

Pure. As with plans, importing the same session again changes nothing, and what happened to a bead
since is kept; only a task that the session calls completed is closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial

from queenbee.core.beads import DONE
from queenbee.core.text import shortened, suggested
from queenbee.core.timestamps import format_ms
from queenbee.documents.graphs import find_cycles
from queenbee.documents.issue_rows import Row, RowImport, current_rows, metadata_of, new_row
from queenbee.documents.reconcile import Item, Source, match_rows, reconcile
from queenbee.documents.sessions.session import Role, Session
from queenbee.documents.sessions.task_graph import Task, graph_of
from queenbee.errors import InvalidInput

_MAX_TITLE = 200


class InvalidGraph(InvalidInput):
    """A dependency graph with no tasks, with a cycle, or with a need that is not a task."""

    code = "invalid_graph"
    faults: Sequence[object] = ()


def import_session(
    session: Session,
    existing: Iterable[Mapping[str, object]],
    *,
    prefix: str,
    actor: str,
    now_ms: int,
) -> RowImport:
    """Returns the rows to add and to update so that the tracker has a bead for each task.

    `existing` are the tracker's rows; a bead belongs to a task if it names session and task.
    Raises `InvalidGraph`; nothing is imported then.
    """
    _refuse_graph(session)
    known = current_rows(existing)

    def task_of(row: Row) -> str | None:
        had = metadata_of(row)
        is_ours = had.get("session_id") == session.session_id
        return task if is_ours and isinstance(task := had.get("session_task"), str) else None

    found = match_rows(known, task_of)
    return reconcile(
        [
            Item(task.name, task.depends_on, partial(_row, task, session, actor))
            for task in session.tasks
        ],
        Source(session.session_id, prefix, actor, now_ms),
        known=known,
        found=found,
        own={row["id"] for row in found.values()},
    )


def _refuse_graph(session: Session) -> None:
    names = {task.name for task in session.tasks}
    faults = [
        f"{task.name} depends on {need}, which is not a task"
        for task in session.tasks
        for need in task.depends_on
        if need not in names
    ]
    faults += [
        f"a cycle: {' waits for '.join((*cycle, cycle[0]))}"
        for cycle in find_cycles(graph_of(session.tasks))
    ]
    if not session.tasks:
        faults.append("it has no tasks")
    if not session.session_id:
        faults.append("the session has no session_id to identify its beads by")
    if faults:
        raise InvalidGraph(
            f"the dependency graph cannot be imported: {'; '.join(faults)}",
            hint=suggested("queen session validate", session=session.path),
            faults=faults,
        )


def _row(task: Task, session: Session, actor: str, old: Row | None, bead: str, now_ms: int) -> Row:
    now = format_ms(now_ms)
    row = deepcopy(old) if old else new_row(bead, actor, now, issue_type="task")
    role = next((role for role in session.roles if role.name == task.role), None)
    row["title"] = _title(task, session)
    row["description"] = _description(task, role, session)
    own = ["session", *([f"role-{task.role}"] if task.role else [])]
    labels = row.get("labels")
    others = labels if isinstance(labels, list) else []
    row["labels"] = [*own, *(each for each in others if each not in own)]
    row["updated_at"] = now
    had = metadata_of(row)
    # A session has a different path in each worktree; the path of the first import is kept.
    path = had.get("session_path") or session.path
    row["metadata"] = {**had, **_metadata(task, role, session), "session_path": path}
    if task.name in session.completed and row.get("status") not in DONE:
        row |= {"status": "closed", "closed_at": now}
    return row


def _title(task: Task, session: Session) -> str:
    subject = shortened(" ".join((task.goal or session.task_description).split()), _MAX_TITLE)
    role = f" ({task.role})" if task.role else ""
    return f"{task.name}{role}: {subject}" if subject else f"{task.name}{role}"


def _description(task: Task, role: Role | None, session: Session) -> str:
    lines = [task.goal, ""] if task.goal else []
    lines += [session.task_description, "", f"Task {task.name} of session {session.session_id}"]
    if task.role:
        spec = f", after role-specs/{task.role}.md" if role else ""
        lines.append(f"Role: {task.role}{spec}")
    if task.capability:
        lines.append(f"Capability: {task.capability}")
    return "\n".join(lines).strip()


def _metadata(task: Task, role: Role | None, session: Session) -> dict[str, object]:
    return {
        "team_name": session.team_name,
        "session_id": session.session_id,
        "session_task": task.name,
        "goal": task.goal,
        "capability": task.capability,
        "role": task.role,
        "role_prefix": role.prefix if role else None,
        "role_spec": f"role-specs/{role.name}.md" if role else None,
        "inner_loop": role.inner_loop if role else False,
    }
