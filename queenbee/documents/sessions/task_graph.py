"""The tasks of a session, from its dependency graph, and their progress.

Pure. The graph is an object, `{task: {depends_on, role}}`, as in the document, or a list of such
tasks that hold their own names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from queenbee.core.text import one_line
from queenbee.documents.findings import Finding
from queenbee.documents.graphs import find_cycles, sort_by_need

State = Literal["completed", "active", "ready", "waiting"]

_NAMES = ("id", "task_id", "task", "name")
_NEEDS = frozenset(
    {"dependson", "dependencies", "deps", "blockedby", "addblockedby", "requires", "needs",
     "waitsfor", "prerequisites"}
)  # fmt: skip
"""The keys of what a task waits for, without case, `_` and `-`."""
GOALS = ("goal", "description", "title", "subject")
_SIGNS = {"completed": "✓", "active": "▶", "ready": "○", "waiting": "·"}


@dataclass(frozen=True)
class Task:
    """One task of the graph; what the session does not say about it is None."""

    name: str
    depends_on: tuple[str, ...] = ()
    role: str | None = None
    goal: str | None = None
    capability: str | None = None
    """The name of the capability that it needs."""


@dataclass(frozen=True)
class TaskState:
    """A task and its progress; `waits_for` are the needs that are not completed."""

    task: Task
    state: State
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pipeline:
    """The progress of a session's tasks, each after all that it depends on."""

    tasks: tuple[TaskState, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""
        states = [state.state for state in self.tasks]
        return {state: states.count(state) for state in ("completed", "active", "ready", "waiting")}


def read_tasks(graph: object, path: str) -> tuple[list[Task], list[Finding]]:
    """Returns the tasks in a dependency graph, and findings for the rest."""
    if isinstance(graph, dict):
        entries = [(name, value, f"{path}.{name}") for name, value in graph.items()]
    elif isinstance(graph, list):
        entries = [
            (_first(value, _NAMES), value, f"{path}[{index}]") for index, value in enumerate(graph)
        ]
    else:
        return [], []
    tasks: dict[str, Task] = {}
    findings: list[Finding] = []
    for name, value, where in entries:
        if not isinstance(name, str) or not name:
            findings.append(Finding(where, "has no task name", "warning"))
            continue
        if name in tasks:
            findings.append(Finding(where, f"task {name!r} is in the graph twice", "warning"))
            continue
        needs, fault = _needs(value)
        if fault is not None:
            findings.append(Finding(where, fault))
        tasks[name] = Task(
            name,
            needs,
            role=_text(value, ("role",)),
            goal=_text(value, GOALS),
            capability=_text(value, ("capability",)),
        )
    findings += _unread(entries, tasks)
    return list(tasks.values()), findings


def _unread(
    entries: Sequence[tuple[Any, object, str]], tasks: Mapping[str, Task]
) -> Iterator[Finding]:
    """Yields an error for each other key that names tasks which it waits for nowhere else."""
    for name, value, where in entries:
        for key, names in value.items() if isinstance(value, dict) else ():
            listed = _listed_names(names)
            if key in _NAMES or not listed or not {*listed} <= {*tasks}:
                continue
            if not {*listed} <= {*tasks[name].depends_on}:
                message = f"{key} names tasks, and orders nothing: {', '.join(listed)[:80]}"
                hint = "name what a task waits for in its depends_on"
                yield Finding(f"{where}.{key}", message, hint=hint)


def with_listed(tasks: Sequence[Task], listed: Sequence[Task]) -> list[Task]:
    """Returns the tasks of a graph with what a list of them says besides; without any, the list."""
    more = {task.name: task for task in listed}
    if not tasks:
        return list(listed)
    return [
        replace(
            task,
            depends_on=tuple(dict.fromkeys((*task.depends_on, *said.depends_on))),
            role=task.role or said.role,
            goal=task.goal or said.goal,
            capability=task.capability or said.capability,
        )
        for task in tasks
        for said in (more.get(task.name, task),)
    ]


def graph_findings(tasks: Sequence[Task], roles: Collection[str], path: str) -> Iterator[Finding]:
    """Returns what keeps a graph from being finished: missing needs, cycles, unknown roles.

    They are warnings: the document's validation does not check the graph.
    """
    names = {task.name for task in tasks}
    for task in tasks:
        for need in task.depends_on:
            if need not in names:
                message = f"depends on {need!r}, which is not a task"
                yield Finding(f"{path}.{task.name}", message, "warning")
        if task.role is not None and task.role not in roles:
            message = f"is for the role {task.role!r}, which the session does not have"
            yield Finding(f"{path}.{task.name}", message, "warning")
    for cycle in find_cycles(graph_of(tasks)):
        message = f"a cycle: {' waits for '.join((*cycle, cycle[0]))}"
        yield Finding(f"{path}.{cycle[0]}", message, "warning")


def graph_of(tasks: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """Returns what each task waits for."""
    return {task.name: task.depends_on for task in tasks}


def pipeline(
    tasks: Sequence[Task], completed: Collection[str], active: Collection[str]
) -> Pipeline:
    """Returns the progress of each task. A task on a cycle waits forever and says for what."""
    states: list[TaskState] = []
    by_name = {task.name: task for task in tasks}
    for task in map(by_name.__getitem__, sort_by_need(graph_of(tasks))):
        waits_for = tuple(need for need in task.depends_on if need not in completed)
        state: State = "waiting" if waits_for else "ready"
        if task.name in completed:
            state, waits_for = "completed", ()
        elif task.name in active:
            state = "active"
        states.append(TaskState(task, state, waits_for))
    return Pipeline(tuple(states))


def render_pipeline(found: Pipeline, beads: Mapping[str, str] | None = None) -> str:
    """Returns one line for each task, with its bead if it has one, then the counts."""
    lines = []
    width = max((len(state.task.name) for state in found.tasks), default=0)
    for state in found.tasks:
        role = f"[{state.task.role}]" if state.task.role else ""
        waits = f"waits for {', '.join(state.waits_for)}" if state.waits_for else ""
        columns = [_SIGNS[state.state], state.task.name.ljust(width), state.state.ljust(9)]
        bead = (beads or {}).get(state.task.name)
        lines.append(one_line("  ".join([*columns, *filter(None, [bead, role, waits])])).rstrip())
    counts = found.counts
    total = f"{counts['completed']} of {len(found.tasks)} tasks completed"
    rest = ", ".join(f"{counts[state]} {state}" for state in ("active", "ready", "waiting"))
    return "\n".join([*lines, f"{total}; {rest}"]) + "\n"


def _needs(value: object) -> tuple[tuple[str, ...], str | None]:
    """Returns what an entry of a graph waits for: it is a list, or has one under some key."""
    if not isinstance(value, dict):
        value = {"depends_on": value}
    said = [each for key, each in value.items() if _plain(key) in _NEEDS and each is not None]
    good: dict[str, None] = {}
    for each in said:
        names = _listed_names(each)
        if names is None:
            return tuple(good), "depends on something that is not a list of task names"
        good |= dict.fromkeys(names)
    return tuple(good), None


def _listed_names(value: object) -> list[str] | None:
    """Returns the task names in a text, a list of texts or objects, or the keys of an object."""
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, (list, dict)):
        return None
    names = [each if isinstance(each, str) else _first(each, _NAMES) for each in entries]
    return names if all(isinstance(each, str) and each for each in names) else None


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def with_capabilities(
    tasks: Sequence[Task], capabilities: object, prefixes: Mapping[str, str | None]
) -> list[Task]:
    """Returns the tasks with what their capability and their prefix say about them.

    A capability lists its tasks, or has the name or the prefix of a task's role. `prefixes` has the
    prefix of each role; `DEV-001` is a task of the role with the prefix `DEV`.
    """
    entries = (
        [each for each in capabilities if isinstance(each, dict)]
        if isinstance(capabilities, list)
        else []
    )
    return [_completed(task, entries, prefixes) for task in tasks]


def _completed(
    task: Task, capabilities: Sequence[Mapping[str, Any]], prefixes: Mapping[str, str | None]
) -> Task:
    listed = [(each, _listed(each, task.name)) for each in capabilities]
    capability, entry = next(((each, found) for each, found in listed if found), ({}, {}))
    role = task.role or _text(entry, ("role",)) or _text(capability, ("role",))
    name = _text(capability, ("name",))
    if role is None and name in prefixes:
        role = name
    if role is None:
        begin = task.name.rpartition("-")[0]
        own = [each for each, prefix in prefixes.items() if prefix and prefix == begin]
        role = own[0] if len(own) == 1 else None
    if not capability and role is not None:
        name = next(
            (
                _text(each, ("name",))
                for each in capabilities
                if role == each.get("name") or (each.get("prefix") or 0) == prefixes.get(role)
            ),
            None,
        )
    return replace(
        task,
        role=role,
        goal=task.goal or _text(entry, GOALS),
        capability=task.capability or name,
    )


def _listed(capability: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Returns the entry of a task in the list of a capability; empty if it is not there."""
    tasks = capability.get("tasks")
    for entry in tasks if isinstance(tasks, list) else ():
        if entry == task:
            return {"id": task}
        if _first(entry, _NAMES) == task:
            assert isinstance(entry, dict)
            return entry
    return {}


def _text(value: object, names: Sequence[str]) -> str | None:
    """Returns the first of these fields that is a text with something in it."""
    if not isinstance(value, dict):
        return None
    texts = (value.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _first(value: object, names: Sequence[str]) -> Any:
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in names if value.get(name) is not None), None)
