"""Issues: Beads' `issues.jsonl`, the documents that add issues to it, and what is ready."""

from __future__ import annotations

import os

from queenbee.core import beads, readiness
from queenbee.core.beads import Issue
from queenbee.core.leases import assignment_end_ms
from queenbee.core.names import checked_issue_id, nearest
from queenbee.core.readiness import Standing, by_urgency, missing_blockers
from queenbee.core.records import Assignment
from queenbee.core.text import bracketed, mentioned, suggested
from queenbee.core.timestamps import instant_ms
from queenbee.errors import IssueClosed, NotFound, NotReady, Taken
from queenbee.store import issues_file
from queenbee.store.files import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queenbee.core.fold import Fields
    from queenbee.services.assignments import Assignments
    from queenbee.services.documents import Documents
    from queenbee.services.store import Store


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
        self._stamp: tuple[int, ...] | None = None
        self._tracked: dict[str, Issue] = {}
        self.unusable_lines: list[int] = []
        """The numbers of the lines of the file that are neither an issue nor known bookkeeping."""

    @property
    def unusable(self) -> int:
        """How many lines of the file are neither an issue nor known bookkeeping."""
        return len(self.unusable_lines)

    def all(self) -> dict[str, Issue]:
        """Returns every issue by id, without tombstones. Raises `Unreadable`."""
        return {key: issue for key, issue in self._read().items() if issue.status != "tombstone"}

    def tracked(self) -> dict[str, Issue]:
        """Returns the tracker's own issues by id, tombstones included. Raises `Unreadable`."""
        path = self._store.layout.issues_path
        stamp = stamp_of(path)
        if stamp != self._stamp:
            found = issues_file.read(path)
            self._tracked = beads.read_rows(found.rows)
            if found.anonymous:
                # The row of a blocker that is not there may be one of those.
                known = {**self._documents.issues(), **self._tracked}
                rows = [issues_file.unreadable_row(gone) for _, gone in missing_blockers(known)]
                self._tracked.update(beads.read_rows(rows))
            self.unusable_lines = [number for number, _ in found.unusable]
            self._stamp = stamp
        return self._tracked

    def rows(self) -> list[Fields]:
        """Returns the tracker's rows for writing back, with a closed row for each issue that was
        completed here: a newer row that said `open` would open it again. Raises `Unreadable`.
        """
        rows = issues_file.read_rows_exactly(self._store.layout.issues_path)
        tracked = self.tracked()
        closed = {
            key: one
            for key, one in self._read().items()
            if one.completion is not None and not tracked[key].done
        }
        newest = {str(row.get("id")): row for row in rows if row.get("id") in closed}
        return [*rows, *({**newest[key], **closed[key].ending()} for key in newest)]

    def get(self, issue_id: str) -> Issue:
        """Returns one issue. Raises `NotFound`, which suggests a similar id."""
        issue = self._read().get(issue_id)
        if issue is None or issue.status == "tombstone":
            raise self._unknown(issue_id)
        return issue

    def get_or_none(self, issue_id: str) -> Issue | None:
        """Returns one issue, or None if the tracker does not have it."""
        return self.all().get(issue_id)

    def tombstone(self, issue_id: str) -> Issue | None:
        """Returns an issue that the tracker has deleted, or None."""
        issue = self.tracked().get(issue_id)
        return issue if issue is not None and issue.status == "tombstone" else None

    def find(self, *, status: str | None = None) -> list[Issue]:
        """Returns the issues, or those of one status: most urgent first, then oldest."""
        return by_urgency(each for each in self.all().values() if status in (None, each.status))

    def standings(self, *, everything: bool = False) -> dict[str, Standing]:
        """Returns where each issue stands that is work for droids, by id; with `everything`, also
        the tracker's own bookkeeping.
        """
        issues = self._read()
        return readiness.standings(
            issues,
            holders={each.issue_id: each.droid for each in self._assignments().find()},
            now_ms=self._store.now_ms(),
            held_back=self._documents.held_back(issues),
            everything=everything,
        )

    def listed(self, *, status: str | None = None, everything: bool = False) -> list[Standing]:
        """Returns where the issues stand that are not done; or all, or those of one status. Most
        urgent first, then oldest.
        """
        found = self.standings(everything=everything or status is not None)
        chosen = [
            each
            for each in found.values()
            if everything
            or (each.issue.status == status if status is not None else not each.issue.done)
        ]
        return sorted(chosen, key=lambda each: readiness.urgency(each.issue))

    def ready(self, *, actor: str | None = None) -> list[Issue]:
        """Returns the issues that `actor` could start now: most urgent first, then oldest.

        `docs/format.md`, section "Issues", lists what keeps an issue out.
        """
        return readiness.startable(self.standings().values(), actor)

    def blockers(self, issue: Issue) -> list[str]:
        """Returns the ids of the issues that this one waits for."""
        return readiness.blockers_of(issue, self._read())

    def check_known(self, issue_id: str) -> Issue | None:
        """Returns the issue, or None if it is unknown and any id is allowed. Raises `NotFound`.

        An id must be in the file if the setting `issues` is `strict`, or if it is `auto` (the
        default) and the file exists.
        """
        checked_issue_id(issue_id)
        return self._check_known(issue_id, self._read())

    def _check_known(self, issue_id: str, issues: Mapping[str, Issue]) -> Issue | None:
        setting = self._store.layout.settings.issues
        issue = issues.get(issue_id)
        if issue is not None and issue.status == "tombstone":
            issue = None
        exists = os.path.exists(self._store.layout.issues_path)
        if issue is None and (setting == "strict" or (setting == "auto" and exists)):
            raise self._unknown(issue_id)
        return issue

    def check_claimable(self, issue_id: str, droid: str, *, anyway: bool = False) -> Issue | None:
        """Returns the issue, or None if it is unknown and any id is allowed.

        Raises `NotFound`, `IssueClosed` if it is done, `NotReady` if it waits for others or is set
        aside, and `Taken` if the tracker gives it to somebody else; `anyway` allows the last two.
        """
        checked_issue_id(issue_id)
        issues = self._read()
        issue = self._check_known(issue_id, issues)
        self._check_not_done(issue_id, issue, issues, anyway=anyway)
        if not anyway and issue is not None:
            found = self.standings()
            standing = found.get(issue_id)
            if standing is not None and not standing.startable(droid):
                self._refuse(standing, found, droid)
        return issue

    def completion(self, issue_id: str) -> Assignment | None:
        """Returns the assignment by which an issue was completed here and has not been reopened
        since, or None.
        """
        return self._completion(issue_id, self._read())

    def _completion(self, issue_id: str, issues: Mapping[str, Issue]) -> Assignment | None:
        issue = issues.get(issue_id)
        done = self._completed().get(issue_id) if issue is None or issue.done else None
        return done if issue is None or issue.status != "tombstone" else None

    def _check_not_done(
        self, issue_id: str, issue: Issue | None, issues: Mapping[str, Issue], *, anyway: bool
    ) -> None:
        if issue is not None and not issue.done:
            return
        done = self._completion(issue_id, issues)
        if issue is None and (done is None or anyway):
            return
        title = f" ({issue.title})" if issue is not None and issue.title else ""
        how = f"was completed by {done.droid} at {done.updated_at}" if done else "is closed"
        again = "queen issue reopen" if issue is not None else "queen claim --anyway"
        raise IssueClosed(
            f"issue {issue_id} {how}{title}",
            hint=f"queen next; to work on it again: {suggested(again, issue_id)}",
            issue_id=issue_id,
        )

    def _refuse(self, standing: Standing, found: Mapping[str, Standing], droid: str) -> None:
        issue_id = standing.issue.id
        if droid == self._store.actor_or_none:
            claim = suggested("queen claim", issue_id, anyway=True)
            anyway = f"queen next, or to take it all the same: {claim}"
        else:
            assign = suggested("queen assign", issue_id, droid, anyway=True)
            anyway = f"queen ready, or to assign it all the same: {assign}"
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

    def _completed(self) -> dict[str, Assignment]:
        """Returns the last completion of each issue, by its id."""
        last: dict[str, Assignment] = {}
        for fields in self._store.state("assignments").select({"status": "completed"}):
            each = Assignment(fields)
            known = last.get(each.issue_id)
            if known is None or assignment_end_ms(known) < assignment_end_ms(each):
                last[each.issue_id] = each
        return last

    def _unknown(self, issue_id: str) -> NotFound:
        if self.tombstone(issue_id) is not None:
            return NotFound(
                f"the tracker has deleted {issue_id}",
                hint=suggested("queen show", issue_id),
                issue_id=issue_id,
            )
        close = nearest(issue_id, self._read())
        return NotFound(
            f"there is no issue {issue_id!r} in {self._store.layout.issues_path}",
            hint=f"did you mean {close!r}?" if close else "queen issues",
            issue_id=issue_id,
        )

    def _read(self) -> dict[str, Issue]:
        """Returns the rows and the documents beside them; done in the hive is done."""
        tracked, beside = self.tracked(), self._documents.issues()
        issues = {**beside, **tracked}
        if not tracked:
            return issues
        for issue_id, completed in self._completed().items():
            issue = tracked.get(issue_id)  # A document says itself whether it is done.
            if issue is None or issue.status == "tombstone":
                continue
            # If its row is newer, somebody has opened it again.
            changed_ms = instant_ms(issue.updated_at) or 0
            if issue.done or changed_ms <= assignment_end_ms(completed):
                issues[issue_id] = issue.completed_by(completed)
        return issues


def _blocker(standing: Standing | None, issue_id: str) -> str:
    """Returns an issue's id, and who has it."""
    if standing is None:
        return mentioned(issue_id)
    return f"{mentioned(issue_id)} {bracketed(standing.holder or 'nobody has it')}"
