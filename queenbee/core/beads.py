"""Beads' issues: how a row of `issues.jsonl` is read, and which issues are ready.

The file belongs to Beads. `bd` (Go) and `br` (Rust) write it differently; both are read.
`docs/format.md`, section "Issues".
"""

from __future__ import annotations

import json

from queenbee.core.records import Flag, OptionalText, Record, Text
from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

BLOCKING = frozenset({"blocks", "conditional-blocks", "waits-for"})
PARENT = "parent-child"
WORKABLE = frozenset({"open", "in_progress"})
DONE = frozenset({"closed", "tombstone"})
DEFAULT_PRIORITY = 2


class Issue(Record):
    """One issue of the tracker."""

    __slots__ = ("priority",)

    priority: int
    """0 (most urgent) to 4; 2 if the row does not say, whatever other rows say."""

    title = Text("title")
    description = Text("description")
    status = Text("status", "open")
    issue_type = Text("issue_type", "task")
    assignee = OptionalText("assignee")
    updated_at = OptionalText("updated_at")
    closed_at = OptionalText("closed_at")
    pinned = Flag("pinned")
    ephemeral = Flag("ephemeral")
    template = Flag("is_template")

    def __init__(self, fields: Mapping[str, object]) -> None:
        super().__init__(fields)
        priority = fields.get("priority")
        usable = isinstance(priority, int) and not isinstance(priority, bool)
        object.__setattr__(self, "priority", priority if usable else DEFAULT_PRIORITY)

    @property
    def dependencies(self) -> list[tuple[str, str]]:
        """The issues that this one depends on, each with the kind of dependency."""
        rows = self.fields.get("dependencies")
        return (
            [pair for row in rows if (pair := _dependency(row, self.id))]
            if isinstance(rows, list)
            else []
        )

    @property
    def done(self) -> bool:
        """Whether other issues no longer wait for it."""
        return self.status in DONE

    def to_dict(self) -> dict[str, object]:
        """Returns the row as Beads wrote it, with the effective priority."""
        return {**self.fields, "priority": self.priority}


def read_rows(rows: Iterable[Mapping[str, object]]) -> dict[str, Issue]:
    """Returns the issues in these rows, by id; if two have the same id, the newer update wins.

    Rows without an id (Beads' memories carry `_type` instead) are not issues.
    """
    newest: dict[str, Mapping[str, object]] = {}
    for row in rows:
        identifier = row.get("id")
        if not isinstance(identifier, str) or not identifier:
            continue
        known = newest.get(identifier)
        if known is None or _supersedes(row, known):
            newest[identifier] = row
    return {key: Issue(row) for key, row in newest.items()}


def ready(
    issues: Mapping[str, Issue],
    *,
    actor: str | None,
    holders: Mapping[str, str],
    now_ms: int,
    held_back: Collection[str] = (),
) -> list[Issue]:
    """Returns the issues that `actor` could start now, most urgent first, then oldest.

    `holders` gives the droid with the active assignment of an issue; `held_back` are issues
    kept out by something other than the tracker, such as a gate that has not passed.
    """
    blocked = blocked_ids(issues)
    found = [
        issue
        for issue in issues.values()
        if issue.status in WORKABLE
        and not (issue.pinned or issue.ephemeral or issue.template)
        and (instant_ms(issue.fields.get("defer_until")) or 0) <= now_ms
        and issue.id not in blocked
        and issue.id not in held_back
        and not _taken(issue, actor, holders)
    ]
    return sorted(found, key=lambda issue: (issue.priority, issue.age))


def blocked_ids(issues: Mapping[str, Issue]) -> set[str]:
    """Returns the issues that wait for another one, and all children of those."""
    children: dict[str, list[str]] = {}
    blocked: set[str] = set()
    for issue in issues.values():
        for target, kind in issue.dependencies:
            if kind == PARENT:
                children.setdefault(target, []).append(issue.id)
            elif kind in BLOCKING and target in issues and not issues[target].done:
                blocked.add(issue.id)
    waiting = list(blocked)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in blocked:
                blocked.add(child)
                waiting.append(child)
    return blocked


def blockers_of(issue: Issue, issues: Mapping[str, Issue]) -> list[str]:
    """Returns the ids that this issue itself waits for, in the order of its row."""
    return [
        target
        for target, kind in issue.dependencies
        if kind in BLOCKING and target in issues and not issues[target].done
    ]


def missing_blockers(issues: Mapping[str, Issue]) -> list[tuple[str, str]]:
    """Returns (issue, blocker) for each blocker that the file does not have."""
    return sorted(
        (issue.id, target)
        for issue in issues.values()
        if not issue.done
        for target, kind in issue.dependencies
        if kind in BLOCKING and target not in issues
    )


def _taken(issue: Issue, actor: str | None, holders: Mapping[str, str]) -> bool:
    holder = holders.get(issue.id)
    if holder is None and issue.status == "in_progress":
        holder = issue.assignee or None
    return holder is not None and holder != actor


def _dependency(row: object, owner: str) -> tuple[str, str] | None:
    if isinstance(row, str):
        return (row, "blocks") if row else None
    if not isinstance(row, dict) or row.get("issue_id", owner) != owner:
        return None
    target = row.get("depends_on_id") or row.get("id")
    kind = row.get("type") or row.get("dependency_type") or "blocks"
    return (target, kind) if isinstance(target, str) and isinstance(kind, str) else None


def _supersedes(row: Mapping[str, object], known: Mapping[str, object]) -> bool:
    """Returns whether a row replaces an earlier one with its id.

    A union merge may leave two rows with the same time in either order: then their contents
    decide, and a closed issue stays closed. Without any time, the later row is newer.
    """
    ours, theirs = _updated_ms(row), _updated_ms(known)
    if ours != theirs or not ours:
        return ours >= theirs
    return _rank(row) > _rank(known)


def _rank(row: Mapping[str, object]) -> tuple[bool, str]:
    return str(row.get("status")) in DONE, json.dumps(row, sort_keys=True)


def _updated_ms(row: Mapping[str, object]) -> int:
    stamps = [instant_ms(row.get(name)) for name in ("updated_at", "deleted_at", "created_at")]
    return next((stamp for stamp in stamps if stamp is not None), 0)
