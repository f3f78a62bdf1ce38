"""The beads of a hive: shown, listed, ready by team, and their history; what `queen bead` calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from queenbee.core.beads import Issue
from queenbee.core.readiness import blockers_of
from queenbee.core.text import suggested
from queenbee.documents.issue_rows import Row
from queenbee.documents.json_documents import parse_json
from queenbee.documents.sprints.executions import (
    record_dev_execution,
    record_pull_request,
    record_qa_execution,
    record_scrum_result,
)
from queenbee.documents.sprints.metadata_edits import edit_metadata
from queenbee.documents.sprints.sprint_bead import group_by_team, is_sprint_bead, team_of
from queenbee.errors import InvalidInput, Unreadable
from queenbee.workflows.bead_view import BeadView, kind_of
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.locks import refuse_in_hand
from queenbee.workflows.owning.owner import Owner

What = Literal["dev", "qa", "result", "pr"]


_OF_JSON = {
    "dev": record_dev_execution,
    "qa": record_qa_execution,
    "result": record_scrum_result,
}


def require_view(hive: Hive, bead_id: str) -> BeadView:
    """Returns everything known about a bead. Raises `NotFound`, or `InvalidInput` for an issue."""
    view = hive.documents.view(hive.issues.get(bead_id))
    if view is None:
        raise InvalidInput(
            f"{bead_id} is an issue, not a bead",
            hint=suggested("queen show", bead_id),
            issue_id=bead_id,
        )
    return view


def brief_views(hive: Hive, issues: Sequence[Issue] | None = None) -> list[BeadView]:
    """Returns the beads among the issues (default: all), with only the fields that a list shows."""
    beads = hive.documents.ralph_beads()
    ralph = beads.by_id if beads is not None else {}
    holders = {each.issue_id: each.droid for each in hive.assignments.find()}
    everything = hive.issues.all()
    held = hive.documents.held_back(everything)
    found = []
    for issue in hive.issues.find() if issues is None else issues:
        kind = kind_of(issue, is_ralph=issue.id in ralph)
        if kind is not None:
            team = team_of(issue.fields) if kind != "ralph" else None
            blockers = [] if issue.done else blockers_of(issue, everything)
            blocked = f"waits for {', '.join(blockers)}" if blockers else None
            waits = held.get(issue.id) or blocked
            found.append(BeadView(issue.id, kind, issue, holders.get(issue.id), waits, team))
    return found


def ready_teams(hive: Hive, *, team: str | None = None) -> list[tuple[str | None, list[BeadView]]]:
    """Returns the ready beads of each team, in the order of their sprints.

    Ralph beads, which have no team, come last under None.
    """
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


def record_history(hive: Hive, what: What, bead_id: str, text: str) -> Row:
    """Adds an entry to the history of a sprint bead, and returns its row.

    `text` is the entry as a JSON object, or the URL of a pull request. Adding the same entry again
    changes nothing. Raises `NotFound`, `InvalidInput`, `InvalidRecord`, `NoAttemptLeft`, or
    `Conflict` for a bead that a `queen start` of another process has in hand.
    """
    entry = _entry(what, text)
    hive.look({"entry": entry})
    return _rewritten(hive, bead_id, lambda row, now_ms: _changed(row, what, entry, now_ms))


def name_pull_request(hive: Hive, issue_id: str, url: str, number: int) -> None:
    """Says in the row of a sprint bead which pull request proposes it; others have no field for it.
    Raises as `record_history` does.
    """
    row = hive.issues.row(issue_id)
    if row is not None and is_sprint_bead(row.fields):
        said = partial(record_pull_request, url=url, number=number)
        _rewritten(hive, issue_id, lambda row, now_ms: said(row, now_ms=now_ms))


def set_metadata(hive: Hive, bead_id: str, settings: Sequence[str]) -> Row:
    """Sets fields of a sprint bead's metadata, each given as `metadata.NAME=VALUE`; returns its
    row. Raises `NotFound`, `InvalidInput`, or `Conflict` as `record_history` does; nothing is
    written then.
    """
    changes = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals or not name.startswith("metadata."):
            hint = "such as --set metadata.max_retry_attempts=5"
            raise InvalidInput(f"{each[:80]!r} is not metadata.NAME=VALUE", hint=hint)
        changes[name.removeprefix("metadata.")] = value
    hive.look({"metadata": changes})
    return _rewritten(hive, bead_id, lambda row, now_ms: edit_metadata(row, changes, now_ms=now_ms))


def _rewritten(hive: Hive, bead_id: str, change: Callable[[Row, int], Row]) -> Row:
    row = _row(hive, bead_id)
    refuse_in_hand(hive, bead_id)
    # Before the lock: loading the models takes longer than everything under it, and matching the
    # patterns of an `output_schema`, which anyone may write, can take forever.
    changed = change(row, hive.now_ms())
    owner = Owner.of(hive)
    if owner is not None:
        if changed != row:
            owner.put([changed], actor=hive.actor)
        return changed
    with hive.transaction() as tx:
        current = _row(hive, bead_id)
        if current != row:
            changed = change(current, tx.now_ms)
        if changed != current:
            hive.issues.put(tx, changed)
    return changed


def _changed(row: Row, what: What, entry: dict[str, Any], now_ms: int) -> Row:
    if what == "pr":
        number = entry.get("pr_number")
        return record_pull_request(row, entry["pr_url"], number=number, now_ms=now_ms)
    return _OF_JSON[what](row, entry, now_ms=now_ms)


def _row(hive: Hive, bead_id: str) -> Row:
    hive.issues.get(bead_id)
    row = hive.issues.exact_row(bead_id, ended=True)
    if row is None:
        raise InvalidInput(
            f"{bead_id} is a Ralph bead: only queen bead run and verify write its history",
            hint=suggested("queen bead verify", bead_id),
            bead_id=bead_id,
        )
    return row


def _entry(what: What, text: str) -> dict[str, Any]:
    if what == "pr" and not text.lstrip().startswith("{"):
        return {"pr_url": text.strip()}
    try:
        entry = parse_json(text.encode(), "the entry")
    except (Unreadable, UnicodeEncodeError) as error:
        raise InvalidInput(f"the entry cannot be read: {error}") from error
    if not isinstance(entry, dict):
        raise InvalidInput("the entry must be a JSON object")
    if what == "pr" and not (
        isinstance(entry.get("pr_url"), str) and type(entry.get("pr_number", 1)) is int
    ):
        raise InvalidInput("pr_url must be a string, and pr_number a whole number")
    return entry
