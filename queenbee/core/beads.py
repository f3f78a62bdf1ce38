"""Beads' issues: how a row of `issues.jsonl` is read. `core.readiness` says which can be started.

The file belongs to Beads. `bd` (Go) and `br` (Rust) write it differently; both are read.
`docs/format.md`, section "Issues".
"""

from __future__ import annotations

import json
import re

from queenbee.core.leases import assignment_end_ms
from queenbee.core.records import Assignment, Flag, OptionalText, Record, Text
from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from queenbee.core.fold import Fields

DONE = ("closed", "tombstone")
CATEGORY = "status_category"
"""What the tracker's program counts a status of its users' own as, where its rows are a copy."""
DEFAULT_PRIORITY = 2
NOT_WORK = frozenset({"merge-request", "gate", "molecule", "message", "agent", "role", "rig"})
"""Types of issues that Beads keeps for itself."""
SPRINTS = ("beads-ralph-work", "beads-ralph-merge")
"""The types of sprint beads."""
ACROSS = "across"
"""The label of an issue that is about files everywhere."""
WISP = "-wisp-"
"""In the id of an issue that Beads throws away."""
_PATH = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.\w{1,8}(?![\w/-])", re.ASCII)
_NAME = re.compile(r"`([A-Za-z_][\w.]{2,80})(?:\(\))?`", re.ASCII)
DECISION, HUMAN = "decision", "human"
"""The type of a question, and the label of an issue that a person is to decide: those of Beads."""
ASKING = (f'*"labels"*"{HUMAN}"*', f'*"{DECISION}"*')
"""What the row of such an issue is like, as text; others may be, too."""
_FIRST = ("id", "title", "description", "status", "priority", "issue_type")
"""The fields that are shown first."""
_TEXTS = ("title", "description", "design", "acceptance_criteria", "notes")
_AT_MOST_CHARS = 20_000
"""What is read of one text: longer ones are logs."""


class Issue(Record):
    """One issue of the tracker."""

    __slots__ = ("completion",)
    _shown = ("title", "status", "priority")

    completion: Assignment | None
    """The assignment by which a droid completed it since its row last changed, or None."""

    title: Text = Text("title")
    description: Text = Text("description")
    status: Text = Text("status", "open")
    issue_type: Text = Text("issue_type", "task")
    assignee: OptionalText = OptionalText("assignee")
    updated_at: OptionalText = OptionalText("updated_at")
    closed_at: OptionalText = OptionalText("closed_at")
    pinned: Flag = Flag("pinned")
    ephemeral: Flag = Flag("ephemeral")
    template: Flag = Flag("is_template")

    def __init__(
        self, fields: Mapping[str, object], *, completion: Assignment | None = None
    ) -> None:
        object.__setattr__(self, "_fields", fields)
        object.__setattr__(self, "completion", completion)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and getattr(other, "completion", None) == self.completion

    def __hash__(self) -> int:
        return hash((self.id, self._fields.get("updated_at"), self.completion))

    def __reduce__(self) -> tuple[object, ...]:
        return _issue, ({**self._fields}, self.completion)

    def __repr__(self) -> str:
        said = super().__repr__().removesuffix(f", rev={self.rev})")
        return said + (f", completed_by={self.completion.droid!r})" if self.completion else ")")

    @property
    def priority(self) -> int:
        """0 (most urgent) to 4; 2 if the row does not say, whatever other rows say."""
        priority = self._fields.get("priority")
        if isinstance(priority, int) and not isinstance(priority, bool):
            return priority
        return DEFAULT_PRIORITY

    @property
    def team(self) -> str | None:
        """The team of a sprint bead; None for any other issue."""
        return team_of(self._fields) if self._fields.get("issue_type") in SPRINTS else None

    @property
    def dependencies(self) -> list[tuple[str, str]]:
        """The issues that this one depends on, each with the kind of dependency."""
        rows = self._fields.get("dependencies")
        return (
            [pair for row in rows if (pair := _dependency(row, self.id))]
            if isinstance(rows, list)
            else []
        )

    @property
    def is_across(self) -> bool:
        """Whether its label says that it is about files everywhere."""
        labels = self._fields.get("labels")
        return isinstance(labels, list) and ACROSS in labels

    def waits_for_any_child_of(self, spawner: str) -> bool:
        """Returns whether a `waits-for` dependency on this issue ends with its first child."""
        rows = self._fields.get("dependencies")
        return isinstance(rows, list) and any(
            _dependency(row, self.id) == (spawner, "waits-for") and _gate(row) == "any-children"
            for row in rows
        )

    @property
    def done(self) -> bool:
        """Whether other issues no longer wait for it."""
        # Asked of every row of the tracker, so it reads the fields themselves.
        return self._fields.get("status") in DONE or self._fields.get(CATEGORY) == "done"

    def completed_by(self, assignment: Assignment) -> Issue:
        """Returns this issue as the assignment that completed it leaves it: closed."""
        closed: dict[str, object] = {}
        if not self.done:
            closed = {"status": "closed", "closed_at": assignment.updated_at}
            if assignment.reason:
                closed["close_reason"] = assignment.reason
        return Issue({**self._fields, **closed}, completion=assignment)

    def ending(self) -> dict[str, object]:
        """Returns the fields of its row that say that it is closed, how and when."""
        names = ("status", "closed_at", "close_reason")
        return {name: self._fields[name] for name in names if name in self._fields}

    def to_dict(self) -> dict[str, object]:
        """Returns the row with the effective priority; and closed, with `completed_by`, if a droid
        completed it since its row last changed. The order of the fields is the same on every
        machine; one that is null is left out.
        """
        row = {**self.fields, "priority": self.priority}
        names = [*_FIRST, *sorted({*row}.difference(_FIRST))]
        row = {name: row[name] for name in names if row.get(name) is not None}
        if self.completion is not None:
            row["completed_by"] = self.completion.droid
        return row


def _issue(fields: Mapping[str, object], completion: Assignment | None) -> Issue:
    return Issue(fields, completion=completion)


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row's metadata; empty unless it is an object."""
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def is_sprint_bead(row: Mapping[str, Any]) -> bool:
    """Returns whether an issue has the type of a sprint bead, or names a sprint."""
    return row.get("issue_type") in SPRINTS or "sprint" in metadata_of(row)


def team_of(row: Mapping[str, object]) -> str:
    """Returns the team of a sprint bead; one that names none gets its own team."""
    said = metadata_of(row)
    team = said.get("team_name")
    if isinstance(team, str) and team.strip():
        return team
    return f"sprint-{said.get('sprint') or row.get('id')}"


def definition_of_done(row: Mapping[str, object]) -> object | None:
    """Returns the checks that a row carries for itself, in `dod` or `metadata.dod`, usable or not;
    None if it has none.
    """
    dod = row.get("dod")
    metadata = row.get("metadata")
    return metadata.get("dod") if dod is None and isinstance(metadata, dict) else dod


def as_completed(issue: Issue, completed: Assignment) -> Issue:
    """Returns an issue of the tracker as its last completion leaves it: closed, unless the tracker
    has deleted it, or somebody has opened it again since.
    """
    if issue.status == "tombstone":
        return issue
    # If its row is newer, somebody has opened it again.
    reopened = (instant_ms(issue.updated_at) or 0) > assignment_end_ms(completed)
    return issue if reopened and not issue.done else issue.completed_by(completed)


def last_completions(rows: Iterable[Fields]) -> dict[str, Assignment]:
    """Returns the last completion of each issue, by its id, from completed assignments by age."""
    last: dict[str, Assignment] = {}
    for fields in rows:
        each = Assignment(fields)
        known = last.get(each.issue_id)
        if known is None or assignment_end_ms(known) < assignment_end_ms(each):
            last[each.issue_id] = each
    return last


def read_rows(rows: Iterable[Mapping[str, object]]) -> dict[str, Issue]:
    """Returns the issues in these rows, by id; if two have the same id, the newer update wins.

    Rows without an id (Beads' memories carry `_type` instead) are not issues.
    """
    return {key: Issue(row) for key, row in newest(rows).items()}


def newest(rows: Iterable[Mapping[str, object]]) -> dict[str, Mapping[str, object]]:
    """Returns the row of each issue that counts, by id."""
    found: dict[str, Mapping[str, object]] = {}
    for row in rows:
        identifier = row.get("id")
        if not isinstance(identifier, str) or not identifier:
            continue
        if identifier not in found or supersedes(row, found[identifier]):
            found[identifier] = row
    return found


def _dependency(row: object, owner: str) -> tuple[str, str] | None:
    if isinstance(row, str):
        return (row, "blocks") if row else None
    if not isinstance(row, dict) or row.get("issue_id", owner) != owner:
        return None
    target = row.get("depends_on_id") or row.get("id")
    kind = row.get("type") or row.get("dependency_type") or "blocks"
    return (target, kind) if isinstance(target, str) and isinstance(kind, str) else None


def _gate(row: object) -> object:
    """Returns the `gate` in a dependency's metadata, which is an object or JSON text."""
    metadata = row.get("metadata") if isinstance(row, dict) else None
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError):
            return None
    return metadata.get("gate") if isinstance(metadata, dict) else None


def supersedes(row: Mapping[str, object], known: Mapping[str, object]) -> bool:
    """Returns whether a row replaces an earlier line with its id; it does if both are as new."""
    return changed_ms(row) >= changed_ms(known)


def changed_ms(row: Mapping[str, object]) -> int:
    """Returns when a row last changed, in ms since 1970: of two with one id, the newer counts."""
    for name in ("updated_at", "deleted_at", "created_at"):
        if (stamp := instant_ms(row.get(name))) is not None:
            return stamp
    return 0


def named_in(issue: Issue) -> set[str]:
    """Returns what looks like the path of a file (`src/app.py`, `README.md`) in the texts of an
    issue, whether there is such a file or not.
    """
    return _found_in(issue, _PATH)


def subjects_of(issue: Issue) -> set[str]:
    """Returns what an issue names: paths as `named_in` does, and code between backquotes, such as
    the name of a module or a function.
    """
    return _found_in(issue, _PATH) | _found_in(issue, _NAME)


def _found_in(issue: Issue, pattern: re.Pattern[str]) -> set[str]:
    texts = (issue.get(name) for name in _TEXTS)
    found = (pattern.findall(each[:_AT_MOST_CHARS]) for each in texts if isinstance(each, str))
    return set().union(*found)


def asks_person(issue: Issue) -> bool:
    """Returns whether a person is to decide about an issue, as the tracker says."""
    labels = issue.get("labels")
    return issue.issue_type == DECISION or (isinstance(labels, list) and HUMAN in labels)
