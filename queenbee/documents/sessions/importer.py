"""A session's dependency graph becomes beads that can be claimed, one for each task.

Pure. Like the import of a plan: the same session again changes nothing, and what happened to a
bead since is not touched, but that a task which the session calls completed is closed.
"""

from __future__ import annotations

from copy import deepcopy

from queenbee.core.beads import DONE
from queenbee.core.timestamps import format_ms
from queenbee.documents import issue_rows
from queenbee.documents.graphs import find_cycles
from queenbee.documents.sessions.graph import graph_of
from queenbee.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from queenbee.documents.issue_rows import IdSource, Row, RowImport
    from queenbee.documents.sessions.graph import Task
    from queenbee.documents.sessions.session import Role, Session

_MAX_TITLE = 200


class InvalidGraph(InvalidInput):
    """A dependency graph that cannot be worked off: no task, a cycle, a need that is no task."""

    code = "invalid_graph"


def import_session(
    session: Session,
    existing: Iterable[Mapping[str, object]],
    *,
    prefix: str,
    actor: str,
    now_ms: int,
    id_source: IdSource = issue_rows.hashed_id,
) -> RowImport:
    """Returns the rows to add and to update so that the tracker has a bead for each task.

    `existing` are the tracker's rows; a task's bead is known by session and task. Raises
    `InvalidGraph`; nothing is imported then.
    """
    _refuse_graph(session)
    known = issue_rows.current_rows(existing)
    found = _beads_of(session, known)
    ids = issue_rows.assign_ids(
        {task.name: f"{session.session_id}\n{task.name}" for task in session.tasks},
        found,
        prefix=prefix,
        taken=known,
        id_source=id_source,
    )
    # The bead of a task that is gone is still the session's own: nothing shall wait for it.
    ours = {*ids.values(), *(row["id"] for row in found.values())}
    changes = []
    # Lists of issues go by age: each bead is a little younger than the task before it.
    for at_ms, task in enumerate(session.tasks, start=now_ms):
        row = _row(task, session, found.get(task.name), ids[task.name], actor, format_ms(at_ms))
        row["dependencies"] = issue_rows.merge_dependencies(
            row,
            [ids[need] for need in task.depends_on],
            ours,
            now=format_ms(at_ms),
            actor=actor,
        )
        changes.append(issue_rows.change_of(task.name, found.get(task.name), row, at_ms))
    orphans = sorted(
        row["id"]
        for name, row in found.items()
        if name not in ids and row.get("status") not in DONE
    )
    return issue_rows.RowImport(tuple(changes), tuple(orphans))


def _refuse_graph(session: Session) -> None:
    names = {task.name for task in session.tasks}
    faults = [
        f"{task.name} depends on {need}, which is no task"
        for task in session.tasks
        for need in task.depends_on
        if need not in names
    ]
    faults += [
        f"a cycle: {' waits for '.join((*cycle, cycle[0]))}"
        for cycle in find_cycles(graph_of(session.tasks))
    ]
    if not session.tasks:
        faults.append("there is no task in it")
    if not session.session_id:
        faults.append("the session has no session_id, by which its beads would be known")
    if faults:
        raise InvalidGraph(
            f"the dependency graph cannot be imported: {'; '.join(faults)}",
            hint=f"queen session validate --session={session.path}",
            faults=faults,
        )


def _beads_of(session: Session, known: Mapping[str, Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in sorted(known.values(), key=lambda row: (str(row.get("created_at")), row["id"])):
        metadata = issue_rows.metadata_of(row)
        task = metadata.get("session_task")
        if (
            metadata.get("session_id") == session.session_id
            and isinstance(task, str)
            and row.get("status") != "tombstone"
        ):
            found.setdefault(task, row)
    return found


def _row(
    task: Task, session: Session, old: Row | None, identifier: str, actor: str, now: str
) -> Row:
    row = deepcopy(old) if old else issue_rows.new_row(identifier, actor, now, issue_type="task")
    role = next((role for role in session.roles if role.name == task.role), None)
    row["title"] = _title(task, session)
    row["description"] = _description(task, role, session)
    row["labels"] = _labels(task, row.get("labels"))
    row["updated_at"] = now
    had = issue_rows.metadata_of(row)
    # One session has a path for each worktree; the first import's stays.
    place = {"session_path": had.get("session_path") or session.path}
    row["metadata"] = {**had, **_metadata(task, role, session), **place}
    if task.name in session.completed and row.get("status") not in DONE:
        row |= {"status": "closed", "closed_at": now}
    return row


def _title(task: Task, session: Session) -> str:
    subject = " ".join(session.task_description.split())
    if len(subject) > _MAX_TITLE:
        subject = f"{subject[: _MAX_TITLE - 1]}…"
    role = f" ({task.role})" if task.role else ""
    return f"{task.name}{role}: {subject}" if subject else f"{task.name}{role}"


def _description(task: Task, role: Role | None, session: Session) -> str:
    lines = [session.task_description, "", f"Task {task.name} of session {session.session_id}"]
    if task.role:
        spec = f", after role-specs/{task.role}.md" if role else ""
        lines.append(f"Role: {task.role}{spec}")
    return "\n".join(lines).strip()


def _metadata(task: Task, role: Role | None, session: Session) -> dict[str, object]:
    return {
        "team_name": session.team_name,
        "session_id": session.session_id,
        "session_task": task.name,
        "role": task.role,
        "role_prefix": role.prefix if role else None,
        "role_spec": f"role-specs/{role.name}.md" if role else None,
        "inner_loop": role.inner_loop if role else False,
    }


def _labels(task: Task, had: object) -> list[str]:
    own = ["session"] + ([f"role-{task.role}"] if task.role else [])
    labels = had if isinstance(had, list) else []
    return [*own, *(label for label in labels if label not in own)]
