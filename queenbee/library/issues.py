"""The tracker's issues, read and written."""

from __future__ import annotations

from queenbee._typed import typed
from queenbee.core.names import several
from queenbee.services.issues import Issues

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from queenbee.core.beads import Issue
    from queenbee.documents.issue_rows import RowImport
    from queenbee.git.hosts.issue_exchange import Pushed
    from queenbee.workflows.complete_hive import Hive
    from queenbee.workflows.tracking.tracker import Tracker

    HostKind = Literal["github", "gitlab", "gitea"]
    OpenStatus = Literal["open", "in_progress", "blocked", "deferred"]


class TrackedIssues(Issues):
    """The issues of a hive. Where Beads' own program keeps the tracker, it writes them."""

    def __init__(self, hive: Hive) -> None:
        super().__init__(hive, hive.documents, assignments=lambda: hive.assignments)
        self._hive = hive

    @property
    def _tracker(self) -> Tracker:
        from queenbee.workflows.tracking.tracker import Tracker  # noqa: PLC0415 - start-up

        return Tracker(self._hive)

    @typed
    def new(  # noqa: PLR0913 - by name
        self,
        title: str,
        description: str = "",
        *,
        issue_type: str = "task",
        priority: int = 2,
        acceptance: str | None = None,
        labels: Sequence[str] = (),
        estimate: int | None = None,
        depends_on: Sequence[str] = (),
        parent: str | None = None,
        prefix: str | None = None,
        issue_id: str | None = None,
    ) -> str:
        """Adds an issue, and returns its id.

        `priority` is 0 (most urgent) to 4, `estimate` is in minutes. Without `issue_id`, it gets a
        new id with the `prefix`, by default the most common one here. Raises `InvalidInput`,
        `NotFound` for an issue that it refers to, and `Conflict` if there is one with that id.
        """
        from queenbee.workflows.tracking.tracker import NewIssue  # noqa: PLC0415 - start-up

        asked = NewIssue(
            title,
            description,
            issue_type=issue_type,
            priority=priority,
            acceptance=acceptance,
            labels=several(labels),
            estimate=estimate,
            depends_on=several(depends_on),
            parent=parent,
            prefix=prefix,
            issue_id=issue_id,
        )
        return self._tracker.new(asked)

    @typed
    def edit(  # noqa: PLR0913 - by name
        self,
        issue_id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        acceptance: str | None = None,
        issue_type: str | None = None,
        priority: int | None = None,
        estimate: int | None = None,
        status: OpenStatus | None = None,
        assignee: str | None = None,
        defer_until: str | None = None,
        add_labels: Sequence[str] = (),
        remove_labels: Sequence[str] = (),
    ) -> Issue:
        """Changes fields of an issue, and returns it; None leaves a field as it is.

        `status` is one of `open`, `in_progress`, `blocked` and `deferred`; `defer_until` is a
        timestamp or a date. Raises as `new` does.
        """
        return self._tracker.edit(
            issue_id,
            title=title,
            description=description,
            acceptance_criteria=acceptance,
            issue_type=issue_type,
            priority=priority,
            estimated_minutes=estimate,
            status=status,
            assignee=assignee,
            defer_until=defer_until,
            add_labels=several(add_labels),
            remove_labels=several(remove_labels),
        )

    @typed
    def close(
        self, *issue_ids: str, reason: str | None = None, anyway: bool = False
    ) -> list[Issue]:
        """Closes issues that nobody works on, and returns them; repeating it changes nothing.

        If one is refused, none is closed: `NotFound`, `Taken` if a droid works on it, unless
        `anyway`, and `NotYours` for an agent of a team if it has checks.
        """
        tracker = self._tracker
        tracker.check(issue_ids, ended_by="queen issue close", anyway=anyway)
        with self._hive.one_step("queen issue close"):
            return [tracker.close(each, reason=reason, anyway=anyway) for each in issue_ids]

    @typed
    def delete(
        self, *issue_ids: str, reason: str | None = None, anyway: bool = False
    ) -> list[Issue]:
        """Deletes issues, and returns their tombstones. Raises as `close` does."""
        tracker = self._tracker
        tracker.check(issue_ids, ended_by="queen issue delete", anyway=anyway, deleted=True)
        with self._hive.one_step("queen issue delete"):
            return [tracker.delete(each, reason=reason, anyway=anyway) for each in issue_ids]

    @typed
    def reopen(self, *issue_ids: str) -> list[Issue]:
        """Opens issues again that are closed, completed or deleted, and returns them. Raises
        `NotFound`.
        """
        tracker = self._tracker
        tracker.check(issue_ids, deleted=tracker.owner is None)
        with self._hive.one_step("queen issue reopen"):
            return [tracker.reopen(each) for each in issue_ids]

    @typed
    def depend(self, issue_id: str, *on: str, kind: str = "blocks", remove: bool = False) -> Issue:
        """Makes an issue wait for others, or with `remove` no longer, and returns it.

        Raises `NotFound`, and `Conflict` for a circle.
        """
        return self._tracker.depend(issue_id, on, kind=kind, remove=remove)

    @typed
    def import_(  # noqa: PLR0913 - the options of a command
        self,
        data: bytes | str,
        *,
        name: str = "-",
        source: str | None = None,
        mapped: Sequence[str] = (),
        complete: bool = False,
        assign: bool = False,
        prefix: str | None = None,
        dry_run: bool = False,
    ) -> RowImport:
        """Imports a list of issues from elsewhere, and returns what changed, or would change.

        `data` is a list in one of the forms that docs/issue-lists.md has, or the path of a folder;
        `name` is its file's. `source` insists on a form; `mapped` are `COLUMN=field` and
        `STATE=status`; `complete` closes what was imported before and is not in it any more;
        `assign` gives open issues to their assignees that are droids here. Importing it again
        updates what changed there. Raises `InvalidInput`, and `NotYours` for an agent of a team
        that would end an issue with checks; nothing is imported then.
        """
        from queenbee.workflows.imports import ListImport, import_issues  # noqa: PLC0415 - start-up

        how = ListImport(name, source, mapped, complete=complete, assign=assign)
        return import_issues(self._hive, data, prefix=prefix, dry_run=dry_run, options=how)

    @typed
    def pull(
        self,
        source: HostKind | None = None,
        *,
        complete: bool = False,
        prefix: str | None = None,
        dry_run: bool = False,
    ) -> RowImport:
        """Imports the issues of the code host that changed there since the last pull, all the first
        time, and returns what changed here. `source` says what the host is, if its address does
        not; `complete` asks for all, and closes those that are gone there.

        Raises `InvalidInput` if no host is known, `HostAway`, `NotLoggedIn`, `NoClient` and
        `HostRefuses`, and as `import_` does; nothing is imported then.
        """
        from queenbee.git.hosts.issue_exchange import IssueExchange  # noqa: PLC0415 - start-up

        exchange = IssueExchange(self._hive, source)
        return exchange.pull(complete=complete, prefix=prefix, dry_run=dry_run)

    @typed
    def push(self, source: HostKind | None = None, *, dry_run: bool = False) -> Pushed:
        """Closes at the code host what was completed here and is open there, with a comment that
        names the commit, and returns which. Raises as `pull` does, `InvalidInput` unless
        `host.issues` is `both`, and `Untrusted` if nobody here has agreed to it.
        """
        from queenbee.git.hosts.issue_exchange import IssueExchange  # noqa: PLC0415 - start-up

        return IssueExchange(self._hive, source).push(dry_run=dry_run)
