"""What is shown of a bead of any kind: its checks and evidence, its gates, its history."""

from __future__ import annotations

from dataclasses import dataclass, field

from queenbee.core.beads import blockers_of
from queenbee.documents import folders as places
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.sprints.rules import MERGE, WORK
from queenbee.documents.sprints.teams import is_sprint_bead, team_of
from queenbee.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from queenbee.core.beads import Issue
    from queenbee.documents.ralph.store import BeadFile
    from queenbee.services.hive import Services
    from queenbee.workflows.documents import HiveDocuments
    from queenbee.workflows.hive import Hive

    Kind = Literal["ralph", "sprint", "session"]

_SPRINT_FIELDS = ("phase", "sprint", "branch", "source_branch", "worktree_path", "plan_file")
_SESSION_FIELDS = ("session_id", "session_task", "role", "role_spec", "session_path")


@dataclass(frozen=True)
class BeadView:
    """Is one bead. `waits` says why nobody should take it up yet, or is None."""

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
    told: Mapping[str, object] = field(default_factory=dict)
    """What only beads of its kind have."""
    document: Mapping[str, Any] = field(default_factory=dict)

    def brief(self) -> dict[str, object]:
        """Returns what a list shows of it."""
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
        """Returns all but the document as plain values."""
        return {
            **self.brief(),
            "file": self.file,
            "checks": list(self.checks),
            "waits_for": list(self.waits_for),
            "gates": list(self.gates),
            "verification": self.verification,
            "missing_evidence": list(self.missing_evidence),
            **self.told,
        }


def kind_of(issue: Issue, *, is_ralph: bool) -> Kind | None:
    """Returns which kind of bead an issue is, or None for one that is no bead."""
    if is_sprint_bead(issue.fields):
        return "sprint"
    if "session_task" in metadata_of(issue.fields):
        return "session"
    return "ralph" if is_ralph else None


def given_up(issue: Issue) -> bool:
    """Returns whether a sprint bead has no attempt left that could let it pass."""
    from queenbee.documents.sprints.history import next_step

    return _has_attempts(issue) and next_step(dict(issue.fields)) == "give up"


def bead_view(
    hive: Services, documents: HiveDocuments, issue_id: str, issue: Issue | None
) -> BeadView | None:
    """Returns all that is known of a bead, or None for an issue that is none."""
    beads = documents.ralph_beads()
    bead = beads.by_id.get(issue_id) if beads is not None else None
    kind = kind_of(issue, is_ralph=bead is not None) if issue is not None else None
    if issue is None or kind is None:
        return None
    holder = hive.assignments.active(issue_id)
    record = last_verification(hive, issue_id)
    return BeadView(
        issue_id,
        kind,
        issue,
        holder.droid if holder is not None else None,
        documents.held_back({issue_id: issue}).get(issue_id),
        team_of(issue.fields) if kind != "ralph" else None,
        metadata_of(beads.issues[issue_id].fields)["bead_file"] if beads and bead else None,
        _checks(issue, bead),
        _waits_for(hive, documents, issue, bead),
        [gate.to_dict() for gate in documents.gates().before(issue.fields)],
        record,
        _missing_evidence(hive, record),
        _told(kind, issue, bead),
        bead.document if bead is not None else issue.fields,
    )


def require_view(hive: Hive, bead_id: str) -> BeadView:
    """Returns all that is known of a bead. Raises `NotFound`, or `InvalidInput` for no bead."""
    view = bead_view(hive, hive.documents, bead_id, hive.issues.get(bead_id))
    if view is None:
        raise InvalidInput(
            f"{bead_id} is an issue, and no bead", hint=f"queen show {bead_id}", issue_id=bead_id
        )
    return view


def brief_views(hive: Hive, issues: Sequence[Issue] | None = None) -> list[BeadView]:
    """Returns the beads among the issues (default: all), without what only a list of one needs."""
    documents = hive.documents
    beads = documents.ralph_beads()
    ralph = beads.by_id if beads is not None else {}
    holders = {each.issue_id: each.droid for each in hive.assignments.find()}
    everything = hive.issues.all()
    held = documents.held_back(everything)
    found = []
    for issue in hive.issues.find() if issues is None else issues:
        kind = kind_of(issue, is_ralph=issue.id in ralph)
        if kind is not None:
            team = team_of(issue.fields) if kind != "ralph" else None
            blockers = [] if issue.done else blockers_of(issue, everything)
            blocked = f"waits for {', '.join(blockers)}" if blockers else None
            waits = held.get(issue.id) or blocked
            view = BeadView(issue.id, kind, issue, holders.get(issue.id), waits, team)
            found.append(view)
    return found


def ready_teams(hive: Hive, *, team: str | None = None) -> list[tuple[str | None, list[BeadView]]]:
    """Returns the ready beads of each team, in the order of their sprints.

    Ralph beads, which have no team, come last under None.
    """
    from queenbee.documents.sprints.teams import group_by_team

    ready = hive.issues.ready(actor=hive.actor_or_none)
    views = {view.bead_id: view for view in brief_views(hive, ready)}
    rows = [dict(view.issue.fields) for view in views.values() if view.team is not None]
    groups: list[tuple[str | None, list[BeadView]]] = [
        (name, [views[str(row["id"])] for row in members])
        for name, members in group_by_team(rows).items()
    ]
    alone = [view for view in views.values() if view.team is None]
    if alone:
        groups.append((None, alone))
    return [group for group in groups if team is None or group[0] == team]


def last_verification(hive: Services, bead_id: str) -> Mapping[str, object] | None:
    """Returns the newest record of a run of a bead's checks, or None."""
    equals = {"subject_id": bead_id, "subject_kind": "bead"}
    found = hive.state("verifications").select(equals, newest_first=True, limit=1)
    return found[0] if found else None


def _checks(issue: Issue, bead: BeadFile | None) -> list[str]:
    if bead is not None:
        from queenbee.checks.engine import describe
        from queenbee.documents.ralph.bead import bead_checks, validate_bead

        findings = validate_bead(bead.document)
        if not any(finding.severity == "error" for finding in findings):
            return describe(bead_checks(bead.document))
        return []
    from queenbee.documents.sprints.verdict import describe_judges, has_history

    return describe_judges(issue.fields) if has_history(issue.fields) else []


def _waits_for(
    hive: Services, documents: HiveDocuments, issue: Issue, bead: BeadFile | None
) -> list[str]:
    waits = [] if issue.done else hive.issues.blockers(issue)
    beads = documents.ralph_beads()
    if bead is not None and beads is not None and not beads.errors_of(bead):
        from queenbee.documents.ralph.bead import unmet_dependencies

        unmet = unmet_dependencies(bead.document, documents.lookup)
        waits = list(dict.fromkeys([*waits, *(one.bead_id for one in unmet)]))
    return waits


def _missing_evidence(hive: Services, record: Mapping[str, Any] | None) -> list[str]:
    if record is None:
        return []
    from queenbee.checks.verification import missing_evidence

    results = record.get("results")
    ran = [
        result
        for result in (results if isinstance(results, list) else ())
        if isinstance(result, dict) and isinstance(result.get("evidence"), str)
    ]
    kept = {"results": [{"name": "?", **result} for result in ran]}
    return missing_evidence(kept, places.evidence_dir(hive.layout))


def _has_attempts(issue: Issue) -> bool:
    own = issue.fields.get("issue_type") in (WORK, MERGE)
    return own and isinstance(issue.fields.get("metadata"), dict)


def _told(kind: Kind, issue: Issue, bead: BeadFile | None) -> dict[str, object]:
    metadata = metadata_of(issue.fields)
    if kind == "session":
        return {"session": {name: metadata.get(name) for name in _SESSION_FIELDS}}
    if kind == "sprint":
        sprint: dict[str, object] = {name: metadata.get(name) for name in _SPRINT_FIELDS}
        if _has_attempts(issue):
            from queenbee.documents.sprints import history as sprint_history

            row = dict(issue.fields)
            sprint["attempts_left"] = sprint_history.attempts_left(row)
            sprint["next_step"] = None if issue.done else sprint_history.next_step(row)
            sprint["feedback"] = sprint_history.feedback(row)
            sprint["pr_url"] = metadata.get("pr_url")
        return {"sprint": sprint}
    assert bead is not None
    meta = bead.document.get("ralph_meta")
    meta = meta if isinstance(meta, dict) else {}
    names = ("attempt_count", "last_attempt", "failure_reason")
    return {"ralph": {name: meta.get(name) for name in names}}
