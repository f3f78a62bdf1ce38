"""Issues: Beads' `issues.jsonl`, the documents that add issues to it, and what is ready."""

from __future__ import annotations

import os

from queenbee.core import beads
from queenbee.core.beads import Issue
from queenbee.core.leases import assignment_end_ms
from queenbee.core.names import checked_issue_id, nearest
from queenbee.core.timestamps import instant_ms
from queenbee.errors import IssueClosed, NotFound
from queenbee.store import issues_file
from queenbee.store.files import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        self.unusable = 0
        """The lines of the file that are neither an issue nor known bookkeeping."""

    def all(self) -> dict[str, Issue]:
        """Returns every issue by id, without tombstones. Raises `Unreadable`."""
        return {key: issue for key, issue in self._read().items() if issue.status != "tombstone"}

    def tracked(self) -> dict[str, Issue]:
        """Returns the tracker's own issues by id, tombstones included. Raises `Unreadable`."""
        path = self._store.layout.issues_path
        stamp = stamp_of(path)
        if stamp != self._stamp:
            rows, self.unusable = issues_file.read_rows(path)
            self._tracked = beads.read_rows(rows)
            self._stamp = stamp
        return self._tracked

    def get(self, issue_id: str) -> Issue:
        """Returns one issue. Raises `NotFound`, which suggests a similar id."""
        issue = self._read().get(issue_id)
        if issue is None or issue.status == "tombstone":
            raise self._unknown(issue_id)
        return issue

    def get_or_none(self, issue_id: str) -> Issue | None:
        """Returns one issue, or None if the tracker does not have it."""
        return self.all().get(issue_id)

    def find(self, *, status: str | None = None) -> list[Issue]:
        """Returns the issues, or those of one status: most urgent first, then oldest."""
        found = [each for each in self.all().values() if status in (None, each.status)]
        return sorted(found, key=lambda each: (each.priority, each.age))

    def ready(self, *, actor: str | None = None) -> list[Issue]:
        """Returns the issues that `actor` could start now: most urgent first, then oldest.

        `docs/format.md`, section "Issues", lists what keeps an issue out.
        """
        issues = self.all()
        return beads.ready(
            issues,
            actor=actor,
            holders={each.issue_id: each.droid for each in self._assignments().find()},
            now_ms=self._store.now_ms(),
            held_back={*self._documents.held_back(issues), *self._finished(issues)},
        )

    def _finished(self, issues: Mapping[str, Issue]) -> list[str]:
        """Returns the issues that were completed here and whose row has not changed since: the
        tracker does not know yet, but nobody should repeat the work.
        """
        return [
            each.issue_id
            for each in self._assignments().find(status="completed")
            if each.issue_id in issues
            and each.issue_id in self._tracked
            and (instant_ms(issues[each.issue_id].updated_at) or 0) <= assignment_end_ms(each)
        ]

    def blockers(self, issue: Issue) -> list[str]:
        """Returns the ids of the issues that this one waits for."""
        return beads.blockers_of(issue, self._read())

    def check_claimable(self, issue_id: str) -> Issue | None:
        """Returns the issue, or None if it is unknown and any id is allowed.

        Raises `NotFound`, `IssueClosed`.

        An id must be in the file if the setting `issues` is `strict`, or if it is `auto` (the
        default) and the file exists.
        """
        checked_issue_id(issue_id)
        setting = self._store.layout.settings.issues
        issue = self.get_or_none(issue_id)
        if issue is not None and issue.done:
            raise IssueClosed(
                f"issue {issue_id} is closed" + (f" ({issue.title})" if issue.title else ""),
                hint="queen ready",
                issue_id=issue_id,
            )
        exists = os.path.exists(self._store.layout.issues_path)
        if issue is None and (setting == "strict" or (setting == "auto" and exists)):
            raise self._unknown(issue_id)
        return issue

    def _unknown(self, issue_id: str) -> NotFound:
        close = nearest(issue_id, self._read())
        return NotFound(
            f"there is no issue {issue_id!r} in {self._store.layout.issues_path}",
            hint=f"did you mean {close!r}?" if close else "queen issues",
            issue_id=issue_id,
        )

    def _read(self) -> dict[str, Issue]:
        tracked, beside = self.tracked(), self._documents.issues()
        return {**beside, **tracked} if beside else tracked
