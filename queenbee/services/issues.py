"""Issues: Beads' `issues.jsonl`, the documents that add issues to it, and what is ready."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core import beads, readiness
from queenbee.core.beads import Issue
from queenbee.core.names import checked_issue_id, checked_new_id, nearest
from queenbee.core.readiness import Standing, by_urgency, missing_blockers
from queenbee.core.row_edits import with_changes
from queenbee.core.text import bracketed, mentioned, suggested
from queenbee.errors import IssueClosed, NotFound, NotReady, Taken
from queenbee.store import issues_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import TypedDict

    from queenbee.core.fold import Fields
    from queenbee.core.records import Assignment
    from queenbee.services.assignments import Assignments
    from queenbee.services.document_questions import Documents
    from queenbee.services.keeping import Moment
    from queenbee.services.open_store import Store
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.memory.recorded import Cursor

    class Circumstances(TypedDict):
        """What decides where issues stand, besides their rows: see `readiness.open_standings`."""

        holders: Mapping[str, str]
        now_ms: int
        held_back: Mapping[str, str]


_REF = "external_ref"
_MANY = 100
"""From so many issues on, one question about all completions takes less than one about each."""


class Issues:
    """The issues of the tracker, and the beads that count as issues.

    If both have an id, the tracker's row wins.
    """

    def __init__(
        self, store: Store, documents: Documents, *, assignments: Callable[[], Assignments]
    ) -> None:
        self._store = store
        self._documents = documents
        self._assignments = assignments
        self._stamp: object = None
        self._tracked: dict[str, Issue] = {}
        self._cursor: Cursor | None = None
        self._seen: tuple[Mapping[str, Issue], Mapping[str, Issue]] = ({}, {})
        """The rows and the documents that `_issues` was made of."""
        self._issues: dict[str, Issue] = {}
        self._exact: dict[str, Mapping[str, object]] = {}
        """The rows that were read last for writing back."""
        self._refs: set[object] | None = None
        """What they have in `external_ref`, once it was asked for."""
        self.unusable_lines: list[int] = []
        """The numbers of the lines of the file that are neither an issue nor known bookkeeping."""

    @property
    def unusable(self) -> int:
        """How many lines of the file are neither an issue nor known bookkeeping."""
        return len(self.unusable_lines)

    def all(self) -> dict[str, Issue]:
        """Returns every issue by id, without tombstones. Raises `Unreadable`."""
        found = self._completed(self._read())
        return {key: issue for key, issue in found.items() if issue.status != "tombstone"}

    def tracked(self) -> dict[str, Issue]:
        """Returns the tracker's own issues by id, tombstones included. Raises `Unreadable`."""
        moment = self._store.keeping.moment()
        if moment == self._stamp:
            return self._tracked
        found = issues_file.read(self._store.layout.issues_path)
        rows = self._mended(beads.newest(found.rows), moment)
        self._tracked = {key: Issue(row) for key, row in rows.items()}
        if found.anonymous:
            # The row of a blocker that is not there may be one of those.
            known = {**self._documents.issues(), **self._tracked}
            gone = [issues_file.unreadable_row(each) for _, each in missing_blockers(known)]
            self._tracked.update(beads.read_rows(gone))
        self.unusable_lines = [number for number, _ in found.unusable]
        self._stamp = moment
        return self._tracked

    def rows(self) -> dict[str, Fields]:
        """Returns the tracker's rows by id for writing back; what was completed here is closed: a
        newer row that said `open` would open it again. Raises `Unreadable`.
        """
        self._read_exactly()
        tracked = self.tracked()
        closed = {
            key: one.ending()
            for key, one in self._completed(self._read()).items()
            if one.completion is not None and not tracked[key].done
        }
        return {key: {**row, **closed.get(key, {})} for key, row in self._exact.items()}

    def _read_exactly(self, only: str | None = None) -> None:
        """Reads all rows for writing back; in step, at least the `only` one that is needed."""
        moment, path = self._store.keeping.moment(), self._store.layout.issues_path
        self._refs = None
        if only is not None and self._store.keeping.is_in_step(moment):
            from queenbee.store.issues_write import rows_of  # noqa: PLC0415 - start-up

            self._exact = rows_of(path, [only])
        else:
            self._exact = self._mended(beads.newest(issues_file.read_rows_exactly(path)), moment)

    def _mended(
        self, rows: dict[str, Mapping[str, object]], moment: Moment
    ) -> dict[str, Mapping[str, object]]:
        """Returns the rows of the file as they are to be."""
        if self._store.keeping.is_in_step(moment):
            return rows
        from queenbee.services.settling import mended  # noqa: PLC0415 - start-up

        return mended(self._store.keeping, rows, moment)

    def put(self, tx: Transaction, row: Fields) -> None:
        """Writes a row that was made from one of `rows` or `exact_row`, or a new one: at the end of
        the transaction, on the version of the row that is there then.

        An `external_ref` that another row has already is left out: Beads refuses a file with two.
        """
        was = self._exact.get(str(row["id"]), {})
        ref, before = row.get(_REF), was.get(_REF)
        if ref and row.get("status") == "tombstone":
            same = [each for each in self.tracked().values() if each.fields.get(_REF) == ref]
            row = with_changes(row, {_REF: None}) if len(same) > 1 else row
        elif ref and ref != before:
            if self._refs is None:
                rows = (each.fields for each in self.tracked().values())
                self._refs = {row.get(_REF) for row in rows}
            if ref in self._refs:
                row = with_changes(row, {_REF: before})
            self._refs.add(ref)
        tx.put_issue(row, was)

    def ids(self) -> Collection[str]:
        """Returns the ids of all issues, without tombstones. Raises `Unreadable`."""
        return [key for key, issue in self._read().items() if issue.status != "tombstone"]

    def get(self, issue_id: str) -> Issue:
        """Returns one issue. Raises `NotFound`, which suggests a similar id."""
        issue = self.get_or_none(issue_id)
        if issue is None:
            raise self._unknown(issue_id)
        return issue

    def get_or_none(self, issue_id: str) -> Issue | None:
        """Returns one issue, or None if the tracker does not have it."""
        return self.some([issue_id]).get(issue_id)

    def some(self, ids: Iterable[str]) -> dict[str, Issue]:
        """Returns those of these issues that the tracker has, without tombstones, by id."""
        wanted = list(ids)
        issues = self._read()
        found = {each: issues[each] for each in wanted if each in issues}
        return self._completed(
            {key: issue for key, issue in found.items() if issue.status != "tombstone"}
        )

    def row(self, issue_id: str) -> Issue | None:
        """Returns an issue as the tracker's own row says, a tombstone included, or None."""
        return self.tracked().get(issue_id)

    def exact_row(self, issue_id: str, *, ended: bool = False) -> Fields | None:
        """Returns the tracker's own row of an issue for writing back, or None: long integers keep
        every digit. If it `ended` by a completion here, it is closed. Raises `Unreadable`.
        """
        self._read_exactly(issue_id)
        row = self._exact.get(issue_id)
        issue = self.get_or_none(issue_id) if ended else None
        is_closed = issue is not None and issue.completion is not None
        ending = issue.ending() if issue is not None and is_closed else {}
        return {**row, **ending} if row is not None else None

    def tombstone(self, issue_id: str) -> Issue | None:
        """Returns an issue that the tracker has deleted, or None."""
        issue = self.row(issue_id)
        return issue if issue is not None and issue.status == "tombstone" else None

    def find(self, *, status: str | None = None) -> list[Issue]:
        """Returns the issues, or those of one status: most urgent first, then oldest."""
        return by_urgency(each for each in self.all().values() if status in (None, each.status))

    def standings(self, *, everything: bool = False) -> dict[str, Standing]:
        """Returns where each issue stands that is work for droids, by id; with `everything`, also
        the tracker's own bookkeeping.
        """
        issues = self._completed(self._read()) if everything else self._read()
        return readiness.standings(issues, **self._circumstances(issues), everything=everything)

    def open(self) -> dict[str, Standing]:
        """Returns where each issue stands that is work for droids and not done, by id."""
        return self.open_and_counts()[0]

    def standing(self, issue_id: str) -> Standing | None:
        """Returns where an issue stands, or None if there is none, or it is no work for droids."""
        return self.standings_of([issue_id]).get(issue_id)

    def standings_of(self, ids: Iterable[str]) -> dict[str, Standing]:
        """Returns where those of these issues stand that are work for droids, by id."""
        wanted = list(ids)
        issues = self._read()
        needed = readiness.needed_for(wanted, issues)
        found = readiness.standings(needed, **self._circumstances(issues))
        return {each: found[each] for each in wanted if each in found}

    def open_and_counts(self) -> tuple[dict[str, Standing], dict[str, int]]:
        """Returns where the issues stand that are work for droids and not done, by id; and how many
        there are in each state, those that are done included.
        """
        issues = self._read()
        found = readiness.open_standings(issues, **self._circumstances(issues))
        done = sum(1 for each in issues.values() if each.done and readiness.is_work(each))
        return found, readiness.counts(found.values(), done=done)

    def behind(self, issue_id: str) -> list[Standing]:
        """Returns where the issues stand that wait for this one."""
        return [each for each in self.open().values() if issue_id in each.waits_for]

    def counts(self) -> dict[str, int]:
        """Returns how many issues that are work for droids are in each state, and `total`."""
        return self.open_and_counts()[1]

    def listed(self, *, status: str | None = None, everything: bool = False) -> list[Standing]:
        """Returns where the issues stand that are not done; or all, or those of one status. Most
        urgent first, then oldest.
        """
        if not everything and status is None:
            chosen = list(self.open().values())
        else:
            found = self.standings(everything=True).values()
            chosen = [each for each in found if everything or each.issue.status == status]
        return sorted(chosen, key=lambda each: readiness.urgency(each.issue))

    def ready(self, *, actor: str | None = None, limit: int | None = None) -> list[Issue]:
        """Returns the issues that `actor` could start now, or the first ones: most urgent first,
        then oldest.

        `docs/format.md`, section "Issues", lists what keeps an issue out.
        """
        return readiness.startable(self.open().values(), actor)[:limit]

    def blockers(self, issue: Issue) -> list[str]:
        """Returns the ids of the issues that this one waits for."""
        return readiness.blockers_of(issue, self._read())

    def check_known(self, issue_id: str) -> Issue | None:
        """Returns the issue, or None if it is unknown and any id is allowed. Raises `NotFound`.

        An id must be in the file if the setting `issues` is `strict`, or if it is `auto` (the
        default) and the file exists.
        """
        checked_issue_id(issue_id)
        setting = self._store.layout.settings.issues
        issue = self.get_or_none(issue_id)
        exists = os.path.exists(self._store.layout.issues_path)
        if issue is None and (setting == "strict" or (setting == "auto" and exists)):
            raise self._unknown(issue_id)
        if issue is None:
            checked_new_id(issue_id)
        return issue

    def refuse_slip(self, issue_id: str) -> None:
        """Raises `NotFound` for an id that is in no tracker and that nobody had, although any id is
        allowed here: it is more often a slip than the start of something.
        """
        if self.check_known(issue_id) is not None or self._store.layout.settings.issues == "off":
            return
        if not self._store.state("assignments").select({"issue_id": issue_id}, limit=1):
            raise NotFound(
                f"nobody has described an issue {issue_id!r}",
                hint=f"{suggested('queen issue new', 'TITLE', id=issue_id)}; or to take it "
                "undescribed, add --new; or for all: queen config set issues off",
                issue_id=issue_id,
            )

    def check_claimable(self, issue_id: str, droid: str, *, anyway: bool = False) -> Issue | None:
        """Returns the issue, or None if it is unknown and any id is allowed.

        Raises `NotFound`, `IssueClosed` if it is done, `NotReady` if it waits for issues that the
        droid does not have or is set aside, and `Taken` if the tracker gives it to somebody else;
        `anyway` allows the last two.
        """
        issue = self.check_known(issue_id)
        self._check_not_done(issue_id, issue, anyway=anyway)
        if not anyway and issue is not None:
            standing = self.standing(issue_id)
            if standing is not None and not standing.startable(droid):
                blockers = self.standings_of(standing.waits_for)
                if not standing.follows(
                    {each for each in blockers if blockers[each].holder == droid}
                ):
                    self._refuse(standing, blockers, droid)
        return issue

    def completion(self, issue_id: str) -> Assignment | None:
        """Returns the assignment by which an issue was completed here and has not been reopened
        since, or None.
        """
        issue = self._read().get(issue_id)
        if issue is not None and (not issue.done or issue.status == "tombstone"):
            return None
        return self._completions([issue_id]).get(issue_id)

    def _check_not_done(self, issue_id: str, issue: Issue | None, *, anyway: bool) -> None:
        if issue is not None and not issue.done:
            return
        done = self.completion(issue_id)
        if issue is None and (done is None or anyway):
            return
        title = f" ({issue.title})" if issue is not None and issue.title else ""
        how = f"was completed by {done.droid} at {done.updated_at}" if done else "is closed"
        again = "queen issue reopen" if issue is not None else "queen claim --force"
        raise IssueClosed(
            f"issue {issue_id} {how}{title}",
            hint=f"queen next; to work on it again: {suggested(again, issue_id)}",
            issue_id=issue_id,
        )

    def _refuse(self, standing: Standing, found: Mapping[str, Standing], droid: str) -> None:
        issue_id = standing.issue.id
        if droid == self._store.actor_or_none:
            claim = suggested("queen claim", issue_id, force=True)
            anyway = f"queen next, or to take it anyway: {claim}"
        else:
            assign = suggested("queen issue assign", issue_id, droid, force=True)
            anyway = f"queen issue ready, or to assign it anyway: {assign}"
        if standing.waits_for:
            who = [_blocker(found.get(each), each) for each in standing.waits_for]
            raise NotReady(
                f"{mentioned(issue_id)} waits for {', '.join(who)}",
                hint=anyway,
                issue_id=issue_id,
                waits_for=standing.waits_for,
            )
        if standing.because and not standing.own_status:
            raise NotReady(
                f"{mentioned(issue_id)} cannot be started: {standing.because}",
                hint=anyway,
                issue_id=issue_id,
                waits_for=[],
            )
        holder = standing.holder
        if holder not in (None, droid) and self._assignments().active(issue_id) is None:
            raise Taken(
                f"the tracker gives {mentioned(issue_id)} to {mentioned(str(holder))}, who has "
                "begun it",
                hint=anyway,
                holder=holder,
                issue_id=issue_id,
            )

    def _unknown(self, issue_id: str) -> NotFound:
        if (gone := self.tombstone(issue_id)) is not None:
            again = suggested("queen issue new", gone.title or "TITLE")
            return NotFound(
                f"the tracker has deleted {issue_id}",
                hint=f"{suggested('queen show', issue_id)}; to have it again: {again}",
                issue_id=issue_id,
            )
        close = nearest(issue_id, self.ids())
        return NotFound(
            f"there is no issue {issue_id!r} in {self._store.layout.issues_path}",
            hint=f"did you mean {close!r}? {suggested('queen show', close)}"
            if close
            else "queen issues",
            issue_id=issue_id,
        )

    def _circumstances(self, issues: Mapping[str, Issue]) -> Circumstances:
        """Returns what decides where issues stand, besides their rows."""
        return {
            "holders": {each.issue_id: each.droid for each in self._assignments().find()},
            "now_ms": self._store.now_ms(),
            "held_back": self._documents.held_back(issues),
        }

    def _read(self) -> dict[str, Issue]:
        """Returns the rows and the documents beside them; done in the hive is done. Which droid
        completed an issue that its row closes, `_completed` adds: few questions need it.
        """
        beside = self._documents.issues()
        assignments = self._store.state("assignments")
        tracked = self.tracked()
        changed, self._cursor = assignments.changes(self._cursor)
        if changed == [] and self._seen[0] is tracked and self._seen[1] == beside:
            return self._issues
        issues = {**beside, **tracked}
        if tracked:
            completed = assignments.project(("issue_id",), {"status": "completed"})
            done_here = {each for (each,) in completed if isinstance(each, str)}
            # A document says itself whether it is done.
            still_open = [key for key in done_here & tracked.keys() if not tracked[key].done]
            for issue_id, one in self._completions(still_open).items():
                issues[issue_id] = beads.as_completed(tracked[issue_id], one)
        self._seen, self._issues = (tracked, beside), issues
        return issues

    def _completed(self, issues: Mapping[str, Issue]) -> dict[str, Issue]:
        """Returns these issues; those of the tracker that are done and were completed here say by
        whom.
        """
        tracked = self._tracked
        closed = [key for key in issues if key in tracked and tracked[key].done]
        completions = self._completions(closed)
        return {
            key: beads.as_completed(tracked[key], completions[key]) if key in completions else issue
            for key, issue in issues.items()
        }

    def _completions(self, issue_ids: Collection[str]) -> dict[str, Assignment]:
        """Returns the assignments by which these issues were last completed."""
        state, equals = self._store.state("assignments"), {"status": "completed"}
        if len(issue_ids) < _MANY:
            found = (state.select({**equals, "issue_id": each}) for each in issue_ids)
            return beads.last_completions(row for rows in found for row in rows)
        wanted = frozenset(issue_ids)
        last = beads.last_completions(state.select(equals))
        return {key: one for key, one in last.items() if key in wanted}


def _blocker(standing: Standing | None, issue_id: str) -> str:
    """Returns an issue's id, and who has it."""
    if standing is None:
        return mentioned(issue_id)
    return f"{mentioned(issue_id)} {bracketed(standing.holder or 'nobody has it')}"
