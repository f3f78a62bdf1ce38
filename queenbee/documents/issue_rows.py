"""Rows for `issues.jsonl` as Beads writes them, and what an import of a document does to them.

Pure. An import is a list of rows: a new row for a new bead, the whole row as it is to be for a
changed one, nothing for the rest. `docs/format.md`, section "Issues".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from queenbee.core.beads import DEFAULT_PRIORITY, newest
from queenbee.core.beads import metadata_of as metadata_of
from queenbee.core.row_edits import later_than
from queenbee.core.text import one_line, shortened
from queenbee.documents.findings import Finding

Row = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One field that an import changes; `old` is None for a new field."""

    path: str
    old: object
    new: object


@dataclass(frozen=True)
class RowChange:
    """What an import does for one sprint or task, named by `key`."""

    key: str
    kind: Literal["add", "update", "keep"]
    row: Row
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class RowImport:
    """What an import does: a change for each sprint or task, in the document's order.

    `orphans` are the ids of beads whose sprint or task is no longer in the document; the import
    does not change them. `findings` are warnings about the document.
    """

    changes: tuple[RowChange, ...]
    orphans: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    source: str = ""
    """What a list of issues is from, and how many it has."""

    @property
    def ids(self) -> dict[str, str]:
        """The bead of each sprint or task."""
        return {change.key: change.row["id"] for change in self.changes}

    @property
    def rows(self) -> list[Row]:
        """The rows to put into `issues.jsonl`."""
        return [change.row for change in self.changes if change.kind != "keep"]


def current_rows(rows: Iterable[Mapping[str, object]]) -> dict[str, Row]:
    """Returns the current row of each id, the newest one."""
    return {identifier: dict(row) for identifier, row in newest(rows).items()}


def new_row(
    identifier: str, actor: str, now: str, *, issue_type: str, assignee: str | None = None
) -> Row:
    """Returns an open issue as Beads writes it, without a title or description yet."""
    return {
        "id": identifier,
        "title": "",
        "description": "",
        "status": "open",
        "priority": DEFAULT_PRIORITY,
        "issue_type": issue_type,
        **({"assignee": assignee} if assignee else {}),
        "owner": actor,
        "created_at": now,
        "created_by": actor,
        "updated_at": now,
        "labels": [],
        "dependencies": [],
        "metadata": {},
    }


def plan_and_sprint(row: Mapping[str, Any]) -> tuple[object, object]:
    """Returns the plan that a row's bead was made from, and its sprint there."""
    metadata = metadata_of(row)
    return metadata.get("plan_file"), metadata.get("plan_sprint_id") or metadata.get("sprint")


def blocked_by(row: Mapping[str, Any]) -> list[str]:
    """Returns the ids that a row waits for; only dependencies of type `blocks` order work."""
    dependencies = row.get("dependencies")
    entries = dependencies if isinstance(dependencies, list) else []
    return [target for entry in entries if (target := blocker(entry)) is not None]


def blocker(entry: object) -> str | None:
    """Returns the id that an entry of `dependencies` waits for, or None if it blocks nothing."""
    link = link_of(entry)
    return link[0] if link is not None and link[1] == "blocks" else None


def link_of(entry: object) -> tuple[str, str] | None:
    """Returns the id that an entry of `dependencies` names, with its type, or None."""
    if isinstance(entry, str):
        return (entry, "blocks") if entry else None
    if not isinstance(entry, dict):
        return None
    kind = entry.get("type") or entry.get("dependency_type") or "blocks"
    target = entry.get("depends_on_id") or entry.get("id")
    return (target, str(kind)) if isinstance(target, str) else None


def close_row(row: Row, now_ms: int, reason: str | None = None) -> Row:
    """Returns the closed row, with a later time than before even if the clock went back."""
    now = later_than(row, now_ms)
    why = {"close_reason": reason} if reason else {}
    return {**row, "status": "closed", "closed_at": now, "updated_at": now, **why}


def render_differences(found: RowImport) -> str:
    """Returns what an import would do: one line per bead and per changed field."""
    lines: list[str] = []
    signs = {"add": "+", "update": "~", "keep": "="}
    for change in found.changes:
        lines.append(
            f"{signs[change.kind]} {change.row['id']}  {change.key}  {change.row['title']}"
        )
        for difference in change.differences:
            old, new = _brief(difference.old), _brief(difference.new)
            lines.append(f"    {difference.path}: {old} → {new}")
    lines += [
        f"? {orphan}  is no longer in the document; it is not changed" for orphan in found.orphans
    ]
    return "".join(f"{one_line(line)}\n" for line in lines)


def _brief(value: object) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), 100)
