"""Issues exchanged with the code host: what changed there comes, and what was completed here is
closed there. ADR 0051.

Either all that changed is imported, or nothing is. A push can be repeated at any step: the host
says whether an issue is closed and has our comment.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.checks.consent import Consent
from queenbee.core.text import one_line
from queenbee.core.timestamps import instant_ms
from queenbee.documents.issue_lists.list_import import Importing, is_open_there
from queenbee.documents.issue_lists.listed import understood
from queenbee.documents.issue_lists.sources import BY_NAME
from queenbee.documents.issue_rows import RowImport
from queenbee.errors import InvalidInput, QueenError
from queenbee.git.hosts.client import Client, refuse_early
from queenbee.git.hosts.hosted_issues import HostedIssues, newest_ms
from queenbee.git.hosts.repository import Repository
from queenbee.git.run import line
from queenbee.store.creating import make_state_dir
from queenbee.store.host_note import HostNote
from queenbee.store.lock import LongLock
from queenbee.store.trust import CLOSING, hosted_remote, of_exchange
from queenbee.workflows.imports import import_listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queenbee.core.records import Assignment
    from queenbee.documents.issue_lists.reading import Entry
    from queenbee.workflows.complete_hive import Hive

_AGAIN_MS = 300_000
"""What changed so shortly before the newest is asked for again: a host may show it later."""
_BEFORE_MS = 86_400_000
"""A clock may differ by so much from the host's."""
_LOCK_S = 60.0


@dataclass(slots=True)
class Pushed:
    """What a push did, or would do."""

    repository: str
    closed: list[str] = field(default_factory=list)
    """The issues that are closed there now."""
    before: list[str] = field(default_factory=list)
    """Those that somebody had closed there."""
    waits: list[str] = field(default_factory=list)
    """Those whose commit is not at the remote yet."""
    dry_run: bool = False


class IssueExchange:
    """The exchange of issues between a hive and the host that its remote is on."""

    def __init__(self, hive: Hive, kind: str | None = None) -> None:
        """Raises `InvalidInput` if no host is known."""
        self._hive = hive
        self._remote = hosted_remote(hive.layout)
        self._repository = Repository.of_remote(hive.layout.tree, self._remote, kind=kind)
        self._note = HostNote(hive.layout)

    def pull(
        self, *, complete: bool = False, prefix: str | None = None, dry_run: bool = False
    ) -> RowImport:
        """Imports what changed there since the last pull; see `library.issues`."""
        since_ms = None if complete else self._note.issues.get(str(self._repository))
        with self._asking("queen issue pull") as there:
            entries = there.changed(since_ms)
        how = partial(Importing, complete=complete, part=since_ms is not None)
        found = self._imported(entries, how, prefix=prefix, dry_run=dry_run)
        newest = newest_ms(entries)
        if newest is not None and not dry_run:
            self._note.issues[str(self._repository)] = newest - _AGAIN_MS
            self._note.note()
        which = "changed since the last pull" if since_ms is not None else "in all"
        source = f"{self._repository}, {len(entries)} issue{'s' * (len(entries) != 1)} {which}"
        return replace(found, source=source)

    def push(self, *, dry_run: bool = False) -> Pushed:
        """Closes there what was completed here; see `library.issues`."""
        hive = self._hive
        setting = hive.layout.settings.host_issues
        if setting != "both":
            raise InvalidInput(
                "nothing is closed at the code host, as it is not set",
                hint=f"queen config set {CLOSING} both",
            )
        Consent.of(hive).require(of_exchange(hive.layout, setting))
        done = Pushed(str(self._repository), dry_run=dry_run)
        make_state_dir(hive.layout)
        answers: list[Entry] = []
        lock = f"{hive.layout.state_dir}/issue-push.lock"
        with LongLock(lock, holder="queen issue push", timeout_s=_LOCK_S):
            try:
                with self._asking("queen issue push") as there:
                    for number, ended in self._completed():
                        answers += self._close(there, number, ended, done)
            finally:  # What is closed there already is known here, also after a failure.
                if not dry_run:
                    self._imported(answers, partial(Importing, part=True))
        return done

    def _completed(self) -> Iterator[tuple[str, Assignment]]:
        """Yields the issues of the host that were completed here and are open there, as far as is
        known here: the number of each, and what completed it.
        """
        address = re.compile(
            rf"https?://{re.escape(str(self._repository))}(?:/-)?/(?:issues|work_items)/(\d+)",
            re.IGNORECASE,
        )
        ended = {each.issue_id: each for each in self._hive.assignments.find(status="completed")}
        for issue_id, assignment in sorted(ended.items()):
            row = self._hive.issues.get_or_none(issue_id)
            if row is None:
                continue
            found = address.fullmatch(str(row.get("external_ref")))
            if found and row.done and is_open_there(row.fields):
                yield found[1], assignment

    def _close(
        self, there: HostedIssues, number: str, ended: Assignment, done: Pushed
    ) -> Sequence[Entry]:
        """Closes one issue, unless it waits for its commit; returns what the host says of it."""
        if ended.landed and not self._is_there(ended.landed):
            done.waits.append(ended.issue_id)
            return []
        known = there.issue(number)
        if known.get("state") == "closed":
            done.before.append(ended.issue_id)
            return [known]
        done.closed.append(ended.issue_id)
        if done.dry_run:
            return []
        # No id is said there: anybody may have written it.
        mark = f"<!-- queenbee {sha256(ended.issue_id.encode()).hexdigest()} -->"
        since_ms = (instant_ms(ended.updated_at) or 0) - _BEFORE_MS
        comment = f"Completed in {ended.landed}." if ended.landed else "Completed."
        is_said = there.has_comment(number, mark, since_ms)
        try:
            return [there.close(number, None if is_said else f"{comment}\n\n{mark}")]
        except QueenError:
            done.closed.pop()
            raise

    def _is_there(self, commit: str) -> bool:
        """Returns whether the remote has a commit, as far as was fetched or pushed."""
        asked = ("for-each-ref", "--count=1", f"--contains={commit}", "--format=%(refname)")
        where = f"refs/remotes/{self._remote}/"
        try:
            return line(*asked, where, cwd=self._hive.layout.tree, repository={}) is not None
        except QueenError:  # The commit is not even here.
            return False

    def _imported(
        self,
        entries: Sequence[Entry],
        how: Callable[[str, str, int], Importing],
        *,
        prefix: str | None = None,
        dry_run: bool = False,
    ) -> RowImport:
        listed = understood(BY_NAME[self._repository.kind], entries)
        listed.can_map = False
        if not entries:
            return RowImport(())
        return import_listed(self._hive, listed, how, prefix=prefix, dry_run=dry_run)

    @contextmanager
    def _asking(self, command: str) -> Iterator[HostedIssues]:
        """Refuses while the host wants to be left alone, and notes what goes wrong."""
        note = self._note
        refuse_early(note, self._hive.now_ms(), command)
        try:
            yield HostedIssues(Client(self._repository, again=command))
        except QueenError as error:
            note.failed(error)
            raise
        note.note(error="", until_ms=0)


def exchange(hive: Hive, tell: Callable[[str], None]) -> None:
    """Exchanges issues with the host as `host.issues` says. What goes wrong is told, and is tried
    again the next time.
    """
    setting = hive.layout.settings.host_issues
    if setting == "off":
        return
    try:
        Consent.of(hive).require(of_exchange(hive.layout, setting))
        issues = IssueExchange(hive)
        found = issues.pull()
        if found.rows:
            tell(f"{found.source}: {len(found.rows)} changed here")
        if setting == "both":
            done = issues.push()
            if done.closed:
                tell(f"closed at {done.repository}: {', '.join(done.closed)}")
    except QueenError as error:
        tell(f"issues are as the code host had them before: {one_line(error.message, 300)}")
