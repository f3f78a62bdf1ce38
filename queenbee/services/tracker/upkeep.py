"""Brings the index of the tracker up to date with its file, the assignments and the documents.

Where an issue stands is decided by `core.readiness` alone. What this module adds is for which
issues to ask again, and which others have to be known for that.
"""

from __future__ import annotations

import json

from queenbee.core import readiness
from queenbee.core.beads import as_completed, last_completions
from queenbee.core.leases import assignment_end_ms
from queenbee.core.named_files import named_in
from queenbee.core.readiness import BLOCKING, PARENT, Waits, estimate
from queenbee.core.records import Assignment
from queenbee.core.timestamps import instant_ms
from queenbee.store.index.tracker import waits_of
from queenbee.store.index.tracker_lines import (
    catch_up,
    is_current,
    issues_of,
    read_all,
    winning_rows,
)
from queenbee.store.ledger.codec import without_collection
from queenbee.store.machine import run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.readiness import Standing
    from queenbee.services.documents import Documents
    from queenbee.store.index.tracker import TrackerTables
    from queenbee.store.index.tracker_lines import Source
    from queenbee.store.records import Cursor, Records

_LASTING = 2**20
"""A cursor of the fold in memory begins with a smaller number, and means nothing elsewhere."""
_MANY = 1000
"""If more records changed, or so many issues are affected, looking at all of them takes less."""
_PLACES = 17
"""Columns of the table of issues."""


class Upkeep:
    """One look at everything that decides where issues stand."""

    def __init__(
        self,
        tables: TrackerTables,
        source: Source,
        *,
        documents: Documents,
        assignments: Records,
        holders: Mapping[str, str],
        now_ms: int,
    ) -> None:
        self._tables = tables
        self._source = source
        self._documents = documents
        self._assignments = assignments
        self._holders = holders
        self._now_ms = now_ms
        self._gates = json.dumps(documents.stamp())
        self._notes = tables.notes()
        self._cursor: Cursor | None = None
        self._counts: dict[str, int] = json.loads(str(self._notes.get("counts") or "{}"))
        """How many issues are in each state, those that are no work not counted."""

    def is_done(self, *, just_read: bool) -> bool:
        """Returns whether the index is up to date; `just_read` says that this very process has
        read the file since it was opened.
        """
        return (
            is_current(self._notes, self._source, just_read=just_read)
            and self._notes.get("gates") == self._gates
            and not self._held_otherwise()
            and not self._completed_otherwise()
            and not self._due()
        )

    def do(self) -> None:
        """Brings the index up to date, in the open transaction. Raises `Unfit`."""
        if "stamp" not in self._notes or not self._update():
            with without_collection(self._source.size_bytes):
                self._build()
        for key, value in (
            ("counts", json.dumps(self._counts)),
            ("gates", self._gates),
            ("at_ms", self._now_ms),
            ("cursor", json.dumps(self._cursor)),
            ("run", run_id()),
        ):
            self._tables.put_meta(key, value)

    # What changed, other than the file.

    def _held_otherwise(self) -> set[str]:
        known = {str(issue): str(droid) for issue, droid in self._tables.ask("SELECT * FROM held")}
        return {issue for issue, _ in known.items() ^ self._holders.items()}

    def _due(self) -> set[str]:
        """Returns the issues whose deferral began or ended since, as the clock says."""
        then_ms = int(str(self._notes.get("at_ms") or 0))
        rows = self._tables.ask(
            "SELECT id FROM issues WHERE deferred_ms > ? AND deferred_ms <= ?",
            min(then_ms, self._now_ms),
            max(then_ms, self._now_ms),
        )
        return {str(identifier) for (identifier,) in rows}

    def _completed_otherwise(self) -> dict[str, Assignment | None]:
        """Returns the issues whose last completion is another one now."""
        kept = json.loads(str(self._notes.get("cursor") or "null"))
        # After a power cut, the index of assignments may be older than this one.
        since = (kept[0], kept[1]) if kept and self._notes.get("run") == run_id() else None
        changed, cursor = self._assignments.changes(since)
        self._cursor = cursor if cursor[0] >= _LASTING else None
        if changed is None or since is None or len(changed) > _MANY:
            now = last_completions(self._assignments.select({"status": "completed"}))
            asked: Iterable[str] = now
            rows = self._tables.ask("SELECT issue, mark FROM completed")
        elif not changed:
            return {}
        else:
            fields = [self._assignments.get(each) or {} for each in changed]
            issues = {str(each.get("issue_id")) for each in fields}
            issues |= self._tables.texts(
                "SELECT issue FROM completed WHERE assignment IN ({})", changed
            )
            asked = issues
            now = last_completions(
                row
                for issue in issues
                for row in self._assignments.select({"issue_id": issue, "status": "completed"})
            )
            rows = list(
                self._tables.related(
                    "SELECT issue, mark FROM completed WHERE issue IN ({})", issues
                )
            )
        known = {str(issue): mark for issue, mark in rows}
        return {
            issue: now.get(issue)
            for issue in {*asked, *known}
            if known.get(issue) != (_mark(now[issue]) if issue in now else None)
        }

    def _take_completions(self, changed: Mapping[str, Assignment | None]) -> None:
        self._tables.forget("completed", "issue", changed)
        rows = [(key, one.id, _mark(one)) for key, one in changed.items() if one is not None]
        self._tables.add("completed", rows, 3)

    def _take_holders(self) -> None:
        self._tables.db.execute("DELETE FROM held")
        self._tables.add("held", self._holders.items(), 2)

    # All of it.

    def _build(self) -> None:
        self._tables.clear()
        lines = read_all(self._tables, self._source)
        issues = issues_of(line.fields for line in lines if line.fields is not None)
        self._notes = {}
        completed = self._completed_otherwise()
        self._take_completions(completed)
        self._take_holders()
        keys: dict[str, tuple[int, int]] = {}
        for key, line in enumerate(lines, start=1):
            if line.id is not None:
                keys[line.id] = max((line.changed_ms, key), keys.get(line.id, (line.changed_ms, 0)))
        self._take_shapes(issues.values())
        ended = {
            identifier: as_completed(issue, one)
            if (one := completed.get(identifier)) is not None
            else issue
            for identifier, issue in issues.items()
        }
        found = self._standings(ended)
        parents = _open_parents(found.values())
        self._tables.add(
            "issues",
            (
                _row(issues[each], keys[each][1], found.get(each), (None, None, None))
                for each in issues
            ),
            _PLACES,
        )
        self._counts = {}
        self._count((each.state for each in found.values()), 1)
        self._take_waits(found)
        self._tables.db.executemany(
            "UPDATE issues SET parent = 1 WHERE id = ?", [(each,) for each in parents]
        )
        self._rank(None)
        self._tables.sort()

    def _count(self, states: Iterable[object], by: int) -> None:
        for state in states:
            if isinstance(state, str):
                self._counts[state] = self._counts.get(state, 0) + by

    def _take_shapes(self, issues: Iterable[Issue]) -> None:
        """Stores what rows say that does not depend on anything else."""
        edges: list[tuple[str, str, str]] = []
        names: list[tuple[str, str]] = []
        for issue in issues:
            edges += [
                (issue.id, target, kind)
                for target, kind in dict.fromkeys(issue.dependencies)
                if kind == PARENT or kind in BLOCKING
            ]
            if not issue.done:
                names += [(name, issue.id) for name in named_in(issue)]
        self._tables.add("edges", edges, 3)
        self._tables.add("names", names, 2)

    def _take_waits(self, found: Mapping[str, Standing]) -> None:
        waits = [(key, each) for key, one in found.items() for each in one.waits_for]
        self._tables.add("waits", waits, 2)

    def _standings(self, issues: Mapping[str, Issue]) -> dict[str, Standing]:
        return readiness.standings(
            issues,
            holders=self._holders,
            now_ms=self._now_ms,
            held_back=self._documents.held_back(issues),
        )

    # A part of it.

    def _update(self) -> bool:
        """Takes in what changed; returns False if that is too much to be worth it."""
        tables = self._tables
        # 1. The lines; the edges are still those of before.
        rows_changed = set[str]()
        if not is_current(self._notes, self._source, just_read=False):
            rows_changed = catch_up(tables, self._source, self._notes)
        completed = self._completed_otherwise()
        changed = rows_changed | completed.keys() | self._due()
        if self._notes.get("gates") != self._gates:
            changed |= {
                str(each) for (each,) in tables.ask("SELECT id FROM issues WHERE documented")
            }
        held = self._held_otherwise()
        [[total]] = tables.ask("SELECT count(*) FROM issues")
        most = max(_MANY, int(str(total)) // 5)
        if len(changed) > most:
            return False
        affected, parents = tables.affected_by(changed), tables.parents_of(changed)
        # 2. What the changed rows say.
        rows = winning_rows(tables, self._source, rows_changed)
        for table, column in (("edges", "issue"), ("names", "issue")):
            tables.forget(table, column, rows_changed)
        self._take_shapes(issues_of(fields for _, fields in rows.values()).values())
        self._take_completions(completed)
        self._take_holders()
        # 3. Who is affected by what they say now.
        affected |= tables.affected_by(changed) | held
        parents |= tables.parents_of(changed) | changed
        if len(affected) > most:
            return False
        self._place(affected)
        self._find_parents(parents)
        return True

    def _place(self, affected: set[str]) -> None:
        """Stores where these issues stand, and what follows from that for the order."""
        tables = self._tables
        rows = winning_rows(tables, self._source, tables.needed_for(affected))
        plain = issues_of(fields for _, fields in rows.values())
        completed = completions(tables, self._assignments, plain)
        issues = {
            key: as_completed(one, completed[key]) if key in completed else one
            for key, one in plain.items()
        }
        found = self._standings(issues)
        query = (
            "SELECT id, waits, priority, minutes, free, state IS NULL OR state = 'done', "
            "urgency, chain, work, parent, state FROM issues WHERE id IN ({})"
        )
        before = {str(row[0]): row[1:] for row in tables.related(query, affected)}
        here = {key: found.get(key) for key in plain if key in affected}
        self._count((row[9] for row in before.values()), -1)
        self._count((one.state for one in here.values() if one is not None), 1)
        tables.forget("issues", "id", affected)
        tables.forget("waits", "issue", affected)
        made = {
            key: _row(plain[key], rows[key][0], one, before.get(key, (None,) * 9)[5:8])
            for key, one in here.items()
        }
        tables.add("issues", made.values(), _PLACES)
        tables.db.executemany(
            "UPDATE issues SET parent = 1 WHERE id = ?",
            [(key,) for key in made if key in before and before[key][8]],
        )
        self._take_waits({key: one for key, one in here.items() if one is not None})
        query = query.partition(", urgency")[0] + " FROM issues WHERE id IN ({})"
        now = {str(row[0]): row[1:] for row in tables.related(query, affected)}
        other = {key for key in affected if before.get(key, (None,) * 5)[:5] != now.get(key)}
        blockers = {
            each
            for key in other
            for row in (before.get(key), now.get(key))
            if row is not None
            for each in waits_of(row[0])
        }
        self._rank(other | blockers)

    def _find_parents(self, parents: Collection[str]) -> None:
        """Notes which of these have a child that is not done."""
        query = (
            "SELECT DISTINCT target FROM edges JOIN issues ON issues.id = edges.issue WHERE "
            "kind = 'parent-child' AND state IS NOT NULL AND state != 'done' AND target IN ({})"
        )
        having = self._tables.texts(query, parents)
        self._tables.db.executemany(
            "UPDATE issues SET parent = ? WHERE id = ?",
            [(each in having, each) for each in parents],
        )

    def _rank(self, changed: set[str] | None) -> None:
        """Stores what decides the order in which issues are taken: for those before the changed
        ones, or, with None or if the usual time is another one now, for all.
        """
        tables = self._tables
        open_ = "state IS NOT NULL AND state != 'done'"
        estimates = f"FROM issues WHERE minutes IS NOT NULL AND {open_}"
        [[count]] = tables.ask(f"SELECT count(*) {estimates}")
        usual = 1.0
        if count:
            query = f"SELECT minutes {estimates} ORDER BY minutes LIMIT 1 OFFSET ?"
            usual = float(str(tables.ask(query, int(str(count)) // 2)[0][0]))
        everything = changed is None or self._notes.get("usual") != usual
        tables.put_meta("usual", usual)
        columns = "SELECT id, priority, minutes, waits, free FROM issues WHERE "
        if everything or changed is None:
            rows = tables.ask(f"{columns}{open_}")
            wanted = {str(row[0]) for row in rows}
        else:
            wanted = tables.upstream_of(changed)
            behind = tables.downstream_of(wanted)
            rows = list(tables.related(f"{columns}{open_} AND id IN ({{}})", behind))
        work = {
            str(key): (int(str(priority)), minutes, waits_of(waits))
            for key, priority, minutes, waits, _ in rows
        }
        waits = Waits(work, usual)  # type: ignore[arg-type]
        free = {str(row[0]) for row in rows if row[4]}
        tables.db.executemany(
            "UPDATE issues SET urgency = ?, chain = ?, work = ? WHERE id = ?",
            [
                (
                    waits.urgency[key],
                    waits.chain[key],
                    waits.work_behind(key) if key in free else 0,
                    key,
                )
                for key in wanted
                if key in work
            ],
        )


def completions(
    tables: TrackerTables, assignments: Records, ids: Collection[str]
) -> dict[str, Assignment]:
    """Returns the last completions of these issues."""
    query = "SELECT issue, assignment FROM completed WHERE issue IN ({})"
    found = {}
    for issue, assignment in tables.related(query, ids):
        fields = assignments.get(str(assignment))
        if fields is not None:
            found[str(issue)] = Assignment(fields)
    return found


def _mark(completed: Assignment) -> str:
    """Returns what changes when a completion does."""
    return f"{completed.id} {completed.rev} {assignment_end_ms(completed)}"


def _open_parents(found: Iterable[Standing]) -> set[str]:
    return {
        target
        for each in found
        if not each.issue.done
        for target, kind in each.issue.dependencies
        if kind == PARENT
    }


def _row(
    issue: Issue, line: int, standing: Standing | None, ranks: tuple[object, ...]
) -> tuple[object, ...]:
    """Returns the row of an issue in the table of issues."""
    placed: tuple[object, ...] = (None, None, None, None, 0, None)
    if standing is not None:
        waits = json.dumps(standing.waits_for) if standing.waits_for else None
        held = bool(standing.waits_for or standing.because or standing.issue.done)
        placed = (standing.state, standing.holder, standing.because, waits, not held)
        placed += (estimate(issue),)
    metadata = issue.fields.get("metadata")
    return (
        issue.id,
        line,
        issue.status == "tombstone",
        isinstance(metadata, dict) and bool(metadata),
        instant_ms(issue.fields.get("defer_until")),
        issue.priority,
        issue.created_ms,
        *placed,
        *ranks,
        0,
    )
