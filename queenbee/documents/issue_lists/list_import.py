"""What a list of issues changes in the tracker: rows to add and to update.

Pure. An issue is found again by its `external_ref`, and one of our own export by its id. Only what
changed at the source since its last import changes here, field by field; what was closed here stays
closed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from queenbee._hashing import sha256
from queenbee.core.beads import DONE, changed_ms
from queenbee.core.names import checked_issue_id, checked_new_id
from queenbee.core.text import some
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.documents.findings import Finding
from queenbee.documents.graphs import find_cycles
from queenbee.documents.issue_lists.listed import IssueList, Listed
from queenbee.documents.issue_lists.sources import DROPPED
from queenbee.documents.issue_rows import (
    Row,
    RowChange,
    RowImport,
    blocked_by,
    close_row,
    metadata_of,
    new_row,
)
from queenbee.documents.reconcile import (
    LONGEST_ID,
    change_of,
    fresh_id,
    hashed_id,
    merge_dependencies,
)
from queenbee.errors import InvalidInput

SEEN = "source_updated_at"
"""In the metadata of an issue: when it had changed elsewhere, as of its last import."""
SAID = "source_fields"
"""In the metadata: a digest of what the source said of each field then."""
_GONE = "no longer in the list"


@dataclass(frozen=True)
class Importing:
    """Who imports, when, and how: `complete` says that the list is all that its source has, `part`
    that it has only what changed there, so that nothing is missing from it.
    """

    prefix: str
    actor: str
    now_ms: int
    complete: bool = False
    part: bool = False


def import_issue_list(
    listed: IssueList, existing: Sequence[Row], importing: Importing
) -> RowImport:
    """Returns the rows to add and to update so that the tracker has each issue of the list.

    Raises `InvalidInput` for issues that wait for each other, and for ids that cannot be ids.
    """
    if listed.rows:
        changes = _whole(listed.rows, existing, importing.now_ms)
        return _without_circles(changes, existing, listed.findings())
    work = _Import(listed, existing, importing)
    changes = work.changes()
    missing = [] if importing.part else work.missing()
    to_close, orphans = (missing, []) if importing.complete else ([], missing)
    for row in to_close:
        closed = close_row(row, importing.now_ms, _GONE)
        changes.append(change_of(str(row["external_ref"]), row, closed, importing.now_ms))
    findings = [*listed.findings(), *work.findings()]
    return _without_circles(changes, existing, findings, tuple(row["id"] for row in orphans))


def list_summary(listed: IssueList) -> str:
    """Returns what a list is, for the first line: `Linear export, 120 issues`."""
    return f"{listed.source.said}, {listed.count} issue{'' if listed.count == 1 else 's'}"


class _Import:
    def __init__(self, listed: IssueList, existing: Sequence[Row], importing: Importing) -> None:
        self._listed = listed
        self._importing = importing
        self._known = {row["id"]: row for row in existing}
        self._by_ref = {row["external_ref"]: row for row in existing if row.get("external_ref")}
        self._absent: dict[str, int] = {}
        self._rows = [self._row_of(at, each) for at, each in enumerate(listed.issues)]
        self._ids: dict[str, str] = {
            name: row["id"]
            for each, (row, _) in zip(reversed(listed.issues), reversed(self._rows), strict=True)
            for name in each.names
        }
        self._needs = self._all_needs()
        self._ours = {row["id"] for row, _ in self._rows}
        if importing.part:  # Of what is not in it, the source says nothing; but it may be named.
            scopes = self._scopes()
            self._ours |= {
                row["id"] for ref, row in self._by_ref.items() if _scope(str(ref)) in scopes
            }

    def _row_of(self, at: int, each: Listed) -> tuple[Row, bool]:
        """Returns the row of an issue, and whether it is new."""
        old = next((self._by_ref[ref] for ref in each.refs if ref in self._by_ref), None)
        for ref in each.refs[1:]:  # Another entry of that number is another repository's.
            self._by_ref.pop(ref, None)
        if old is not None:
            return old, False
        # Of the reference alone: clones that import one list make the same issues.
        source = partial(hashed_id, digits=LONGEST_ID)
        identifier = fresh_id(self._importing.prefix, each.refs[0], self._known, source)
        created = format_ms(each.created_ms or self._importing.now_ms + at)
        row = new_row(identifier, self._importing.actor, created, issue_type="task")
        self._known[identifier] = row
        return {**row, "updated_at": format_ms(self._importing.now_ms + at)}, True

    def changes(self) -> list[RowChange]:
        """Returns what becomes of each issue of the list."""
        needs = self._needs
        changes = []
        for at, (each, (row, is_new)) in enumerate(
            zip(self._listed.issues, self._rows, strict=True)
        ):
            now_ms = self._importing.now_ms + at
            if is_new:
                made = self._as_listed(row, each, needs[row["id"]], now_ms)
                changes.append(RowChange(each.refs[0], "add", made))
            elif row.get("status") == "tombstone" or _is_older(row, each):
                changes.append(RowChange(each.refs[0], "keep", row))
            else:
                made = self._as_listed(row, each, needs[row["id"]], now_ms)
                changes.append(change_of(each.refs[0], row, made, now_ms))
        return changes

    def _all_needs(self) -> dict[str, dict[tuple[str, str], None]]:
        """Returns what the issue of each row depends on, with the kinds, as the list says."""
        needs: dict[str, dict[tuple[str, str], None]] = {row["id"]: {} for row, _ in self._rows}
        for each, (row, _) in zip(self._listed.issues, self._rows, strict=True):
            for name, kind in each.needs:
                if target := self._id_of(name, each):
                    needs[row["id"]][target, kind] = None
            for name, kind in each.needed_by:
                other = self._id_of(name, each)
                if other in needs:
                    needs[other][row["id"], kind] = None
        return needs

    def _id_of(self, name: str, listed: Listed) -> str | None:
        """Returns the id of the issue that another one calls by this name."""
        plain = name.casefold()
        number = re.sub(r"^\D+-(?=[\d.]+$)", "", plain)
        found = self._ids.get(plain) or self._ids.get(name)
        if found is None and self._listed.source.name == "backlog.md":
            # A folder whose prefix was changed has one numbering all the same.
            same = (its for key, its in self._ids.items() if key.rpartition("-")[2] == number)
            found = next(same, None)
        if found is None:
            refs = (f"{_scope(listed.refs[0])}{name}", f"{self._listed.source.ref}{name}", name)
            row = next((self._by_ref[ref] for ref in refs if ref in self._by_ref), None)
            found = row["id"] if row is not None else None
        if found is None:
            self._absent[name] = self._absent.get(name, 0) + 1
        return found

    def _as_listed(
        self, row: Row, each: Listed, needs: Mapping[tuple[str, str], None], now_ms: int
    ) -> Row:
        """Returns the row with what the source changed since it was imported last."""
        said: dict[str, object] = {"title": each.title, **each.fields}
        if each.status is not None:
            said["status"] = [each.status, each.reason]
        if self._listed.says_needs:
            said["dependencies"] = sorted(needs)
        digests = {name: _digest(value) for name, value in said.items()}
        seen = metadata_of(row).get(SAID)
        seen = seen if isinstance(seen, dict) else {}
        news = {name: said[name] for name in said if seen.get(name) != digests[name]}
        row = {**row, **{name: news[name] for name in news if name in each.fields}}
        row["title"] = news.get("title", row.get("title"))
        if row.get("external_ref") in (None, "", *each.refs):
            row["external_ref"] = each.refs[0]
        noted = {SEEN: each.changed_at} if each.changed_at is not None else {}
        row["metadata"] = {**metadata_of(row), **noted, SAID: {**seen, **digests}}
        if "dependencies" in news:
            row["dependencies"] = merge_dependencies(
                row, [each for each in needs if each[0] != row["id"]],
                self._ours, now=format_ms(now_ms),
                actor=self._importing.actor, kinds=("blocks", "parent-child"),
            )  # fmt: skip
        return _with_status(row, each, now_ms) if "status" in news else row

    def missing(self) -> list[Row]:
        """Returns the open issues that were imported from where the list is from, and are not in
        it.
        """
        there = {row["id"] for row, _ in self._rows}
        scopes = self._scopes()
        return [
            row
            for key, row in self._known.items()
            if key not in there
            and row.get("status") not in DONE
            and isinstance(row.get("external_ref"), str)
            and _scope(row["external_ref"]) in scopes
            and {SEEN, SAID} & metadata_of(row).keys()
        ]

    def _scopes(self) -> set[str]:
        return {_scope(each.refs[0]) for each in self._listed.issues}

    def findings(self) -> list[Finding]:
        """Returns warnings about dependencies: on what nobody knows, and on a parent."""
        found: list[Finding] = []
        if self._absent:
            names, count = some([*self._absent], 20), len(self._absent)
            what = "1 issue that is" if count == 1 else f"{count} issues that are"
            message = f"dependencies on {what} neither in the list nor here: {names}"
            found.append(Finding("", message, "warning", hint="import a list with all issues"))
        stuck = [
            refs[0]
            for refs, needs in zip(
                (each.refs for each in self._listed.issues), self._needs.values(), strict=True
            )
            if any((target, "blocks") in needs for target, kind in needs if kind == "parent-child")
        ]
        if stuck:
            message = (
                f"parts of an issue that also wait for it, so neither can begin: {some(stuck, 20)}"
            )
            found.append(Finding("", message, "warning", hint="remove one of the two"))
        return found


def _is_older(row: Row, each: Listed) -> bool:
    """Returns whether a list is older than the one that was imported last; or as old, if only its
    time was noted then, as version 0.2 did.
    """
    noted = metadata_of(row)
    seen_ms, changed_ms = instant_ms(noted.get(SEEN)), instant_ms(each.changed_at)
    if seen_ms is None or changed_ms is None:
        return False
    return changed_ms < seen_ms or (changed_ms == seen_ms and SAID not in noted)


def _with_status(row: Row, each: Listed, now_ms: int) -> Row:
    if row.get("status") in DONE or each.status is None:
        return row
    if each.status != "closed":
        return {**row, "status": each.status}
    row = close_row(row, now_ms, each.reason)
    return row if each.closed_ms is None else {**row, "closed_at": format_ms(each.closed_ms)}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:10]


_JUDGING = frozenset({"dod", "qa_agents"})
"""What in an issue's metadata says who judges it; with it go its branch and its attempts."""
_CLOSED = frozenset(_digest(["closed", why]) for why in (None, *DROPPED))


def is_open_there(row: Mapping[str, Any]) -> bool:
    """Returns whether the source of an issue had it open when it was imported last."""
    seen = metadata_of(row).get(SAID)
    said = seen.get("status") if isinstance(seen, dict) else None
    return said is not None and said not in _CLOSED


def _scope(ref: str) -> str:
    """Returns what the references of a repository, a team or a file begin with."""
    return re.sub(r"[^/#:-]*$", "", ref)


def _whole(
    rows: Sequence[Mapping[str, Any]], existing: Sequence[Row], now_ms: int
) -> list[RowChange]:
    """Returns what rows of an export change: those that are new come with their ids."""
    known = {row["id"]: row for row in existing}
    by_ref = {row["external_ref"]: row for row in existing if row.get("external_ref")}
    here = {
        row["id"]: by_ref[row["external_ref"]]["id"]
        for row in rows
        if row["id"] not in known and row.get("external_ref") in by_ref
    }
    changes = []
    for at, row in enumerate(rows):
        each = _renamed(row, here) if here else row
        old = known.get(each["id"])
        if old is None:
            checked_issue_id(checked_new_id(each["id"]))
            changes.append(RowChange(each["id"], "add", {**each}))
        elif old.get("status") == "tombstone" or changed_ms(each) < changed_ms(old):
            changes.append(RowChange(each["id"], "keep", old))
        else:
            row = _as_judged_here({**old, **each}, old)
            if old.get("status") in DONE:
                ending = ("status", "closed_at", "close_reason")
                row.update({name: old[name] for name in ending if name in old})
            change = change_of(each["id"], old, row, now_ms + at)
            changes.append(change)
    return changes


def _as_judged_here(row: Row, old: Row) -> Row:
    """Returns a row with the checks and the judges that it has here, or none: an export from
    elsewhere does not change them.
    """
    said = {*metadata_of(old), *metadata_of(row)}
    names = ("dod", "metadata") if said & _JUDGING else ("dod",)
    kept = {name: value for name, value in row.items() if name not in names}
    return {**kept, **{name: old[name] for name in names if name in old}}


def _renamed(row: Mapping[str, Any], ids: Mapping[str, str]) -> Row:
    """Returns a row with the ids that its issue, and those that it depends on, have here."""

    def here(value: Any) -> Any:
        if isinstance(value, dict):
            names = ("id", "issue_id", "depends_on_id")
            ours = {name: ids.get(value[name], value[name]) for name in names if name in value}
            return {**value, **ours}
        return ids.get(value, value) if isinstance(value, str) else value

    needs = row.get("dependencies")
    mapped = {"dependencies": [here(each) for each in needs]} if isinstance(needs, list) else {}
    return {**here(dict(row)), **mapped}


def _without_circles(
    changes: Sequence[RowChange],
    existing: Sequence[Row],
    findings: Sequence[Finding],
    orphans: tuple[str, ...] = (),
) -> RowImport:
    """Returns the import. Raises `InvalidInput` if its issues wait for each other."""
    done = RowImport(tuple(changes), orphans, tuple(findings))
    rows = {row["id"]: row for row in (*existing, *done.rows)}
    graph = {key: blocked_by(row) for key, row in rows.items() if row.get("status") not in DONE}
    ours = {row["id"] for row in done.rows}
    circle = next((each for each in find_cycles(graph) if ours.intersection(each)), None)
    if circle is not None:
        keys = {change.row["id"]: change.key for change in changes}
        shown = " → ".join(keys.get(each, each) for each in (*circle, circle[0]))
        raise InvalidInput(
            f"issues of the list wait for each other: {shown}",
            hint="remove one of these dependencies where the list is from",
        )
    return done
