"""Everything known about one bead of any kind: checks, evidence, gates and history."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.checks.check import describe
from queenbee.checks.verification import missing_evidence, recorded_results
from queenbee.core.beads import definition_of_done
from queenbee.documents.folders import evidence_dir
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.ralph.ralph_bead import bead_checks, first_error, unmet_dependencies
from queenbee.documents.sprints.executions import (
    attempts_left,
    describe_judges,
    feedback,
    has_history,
    next_step,
)
from queenbee.documents.sprints.sprint_bead import MERGE, WORK, is_sprint_bead, team_of
from queenbee.workflows.verifications import last_verification

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from queenbee.core.beads import Issue
    from queenbee.documents.gates.phases import GateState
    from queenbee.documents.ralph.bead_files import BeadFile
    from queenbee.services.hive import Services

    Kind = Literal["ralph", "sprint", "session"]

_SPRINT_FIELDS = ("phase", "sprint", "branch", "source_branch", "worktree_path", "plan_file")
_SESSION_FIELDS = ("session_id", "session_task", "role", "role_spec", "session_path")
_RALPH_FIELDS = ("attempt_count", "last_attempt", "failure_reason")


@dataclass(frozen=True, slots=True)
class BeadView:
    """One bead. `waits` says why it is not ready, or is None."""

    bead_id: str
    kind: Kind
    issue: Issue
    holder: str | None
    waits: str | None
    team: str | None = None
    file: str | None = None
    checks: Sequence[str] = ()
    waits_for: Sequence[str] = ()
    gates: Sequence[Mapping[str, object]] = ()
    verification: Mapping[str, object] | None = None
    missing_evidence: Sequence[str] = ()
    """The checks of the last verification whose evidence is not on this machine."""
    of_kind: Mapping[str, object] = field(default_factory=dict)
    """The fields that only beads of its kind have."""
    document: Mapping[str, Any] = field(default_factory=dict)

    def brief(self) -> dict[str, object]:
        """Returns the fields that a list shows."""
        return {
            "id": self.bead_id,
            "kind": self.kind,
            "title": self.issue.title,
            "status": self.issue.status,
            "priority": self.issue.priority,
            "team": self.team,
            "holder": self.holder,
            "waits": self.waits,
        }

    def to_dict(self) -> dict[str, object]:
        """Returns everything but the document as plain values."""
        return {
            **self.brief(),
            "file": self.file,
            "checks": list(self.checks),
            "waits_for": list(self.waits_for),
            "gates": list(self.gates),
            "verification": self.verification,
            "missing_evidence": list(self.missing_evidence),
            **self.of_kind,
        }


def kind_of(issue: Issue, *, is_ralph: bool) -> Kind | None:
    """Returns which kind of bead an issue is, or None for one that is not a bead."""
    if is_sprint_bead(issue.fields):
        return "sprint"
    if "session_task" in metadata_of(issue.fields):
        return "session"
    return "ralph" if is_ralph or definition_of_done(issue.fields) is not None else None


def bead_view(
    hive: Services,
    issue: Issue,
    bead: BeadFile | None,
    *,
    waits: str | None,
    gates: Sequence[GateState],
    lookup: Callable[[str], Mapping[str, Any] | None],
) -> BeadView | None:
    """Returns everything known about a bead, or None for an issue that is not one.

    `bead` has its checks, `waits` says why it is not ready, `gates` are those before it, and
    `lookup` finds the document of an id that it waits for.
    """
    kind = kind_of(issue, is_ralph=bead is not None)
    if kind is None:
        return None
    valid = bead if bead is not None and not first_error(bead.document) else None
    top = os.path.realpath(hive.layout.root)  # The path from there is the same in every clone.
    holder = hive.assignments.active(issue.id)
    record = last_verification(hive, issue.id)
    return BeadView(
        bead_id=issue.id,
        kind=kind,
        issue=issue,
        holder=holder.droid if holder is not None else None,
        waits=waits,
        team=team_of(issue.fields) if kind != "ralph" else None,
        file=os.path.relpath(os.path.realpath(bead.path), top) if bead is not None else None,
        checks=_checks(issue, bead, valid),
        waits_for=_waits_for(hive, issue, valid, lookup),
        gates=[gate.to_dict() for gate in gates],
        verification=record,
        missing_evidence=missing_evidence(
            recorded_results(record or {}), evidence_dir(hive.layout)
        ),
        of_kind=_of_kind(kind, issue, bead),
        document=bead.document if bead is not None else issue.fields,
    )


def _checks(issue: Issue, bead: BeadFile | None, valid: BeadFile | None) -> list[str]:
    if bead is None:
        return describe_judges(issue.fields) if has_history(issue.fields) else []
    return describe(bead_checks(valid.document)) if valid is not None else []


def _waits_for(
    hive: Services,
    issue: Issue,
    valid: BeadFile | None,
    lookup: Callable[[str], Mapping[str, Any] | None],
) -> list[str]:
    blockers = [] if issue.done else hive.issues.blockers(issue)
    unmet = unmet_dependencies(valid.document, lookup) if valid is not None else []
    return list(dict.fromkeys([*blockers, *(one.bead_id for one in unmet)]))


def _of_kind(kind: Kind, issue: Issue, bead: BeadFile | None) -> dict[str, object]:
    metadata = metadata_of(issue.fields)
    if kind == "session":
        return {"session": {name: metadata.get(name) for name in _SESSION_FIELDS}}
    if kind == "sprint":
        return {"sprint": _sprint(issue, metadata)}
    assert bead is not None
    meta = bead.document.get("ralph_meta")
    meta = meta if isinstance(meta, dict) else {}
    return {"ralph": {name: meta.get(name) for name in _RALPH_FIELDS}}


def _sprint(issue: Issue, metadata: Mapping[str, Any]) -> dict[str, object]:
    fields: dict[str, object] = {name: metadata.get(name) for name in _SPRINT_FIELDS}
    has_attempts = issue.get("issue_type") in (WORK, MERGE)
    if has_attempts and isinstance(issue.get("metadata"), dict):
        row = dict(issue.fields)
        fields["attempts_left"] = attempts_left(row)
        fields["next_step"] = None if issue.done else next_step(row)
        fields["feedback"] = feedback(row)
        fields["pr_url"] = metadata.get("pr_url")
    return fields
