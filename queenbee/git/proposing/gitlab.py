"""Merge requests at GitLab, by its REST: one question for all of them, and two for each that is
open.

A thread that is not resolved is a request for a change: reviewers there leave nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from queenbee.core.reviews.pull_requests import (
    CLOSED_THERE,
    FAILED,
    MERGED_THERE,
    OPEN,
    PASSED,
    PENDING,
    Check,
    PullRequest,
    Remark,
)
from queenbee.core.text import mentioned
from queenbee.errors import QueenError
from queenbee.git.hosts import values
from queenbee.git.hosts.client import HostRefuses
from queenbee.git.proposing.host import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.git.hosts.client import Client


_STATES = {"opened": OPEN, "locked": OPEN, "merged": MERGED_THERE, "closed": CLOSED_THERE}
_MERGE_STATES = {
    **dict.fromkeys(("mergeable", "can_be_merged"), "CLEAN"),
    **dict.fromkeys(("conflict", "broken_status", "cannot_be_merged"), "DIRTY"),
    **dict.fromkeys(("", "checking", "unchecked", "preparing", "approvals_syncing"), "UNKNOWN"),
    "need_rebase": "BEHIND",
}
"""What keeps it from being merged, in the words of GitHub; else it is blocked."""
_WANTS_CHANGES = ("requested_changes", "discussions_not_resolved")
_PASSED, _FAILED = ("success", "skipped"), ("failed", "canceled", "canceling")
_DEVELOPER = 30
"""The access level from which on somebody may push there."""
_MOST_NUMBERS = 50
_LOG_BYTES = 40_000


@dataclass(frozen=True, slots=True)
class GitLab:
    """A project at GitLab."""

    client: Client
    fork: str = ""
    """The fork that has the branches; empty if they are where the target is."""

    def look(self, numbers: Sequence[int], branches: Sequence[str] = ()) -> Answer:
        """See `Host`."""
        project = values.number(self.client.value(_path(self.client.repository.slug)), "id")
        found: dict[int, PullRequest] = {}
        for begin in range(0, len(numbers), _MOST_NUMBERS):
            some = numbers[begin : begin + _MOST_NUMBERS]
            for said in self._list("&".join(f"iids%5B%5D={each:d}" for each in some)):
                seen = self._more(self._read(said), said)
                found[seen.number] = seen
        return Answer(
            str(project),
            found,
            {each: self._own(each) for each in branches},
            [each for each in branches if self._list(f"target_branch={_word(each)}", "opened")],
        )

    def open(
        self, known: Answer, *, branch: str, base: str, title: str, body: str, is_draft: bool
    ) -> PullRequest:
        """See `Host`."""
        said: dict[str, object] = {"source_branch": branch, "target_branch": base}
        said |= {"title": f"{'Draft: ' if is_draft else ''}{title}", "description": body}
        said |= {"target_project_id": int(known.repository_id)} if self.fork else {}
        path = f"{_path(self.fork or self.client.repository.slug)}/merge_requests"
        return self._read(self.client.value(path, method="POST", body=said))

    def ask_review(self, number: int, reviewers: Sequence[str], labels: Sequence[str]) -> list[str]:
        """See `Host`."""
        wrong, ids = [], []
        for each in reviewers:
            try:
                known = values.objects(self.client.value(f"users?username={_word(each)}"))
                ids.append(known[0]["id"])
            except (QueenError, LookupError):
                wrong.append(f"#{number} goes without {mentioned(each)}: nobody is called that")
        asked: list[dict[str, object]] = [{"reviewer_ids": ids}] if ids else []
        asked += [{"add_labels": each} for each in labels]
        for body in asked:
            try:
                self.client.value(self._request(number), method="PUT", body=body)
            except QueenError as error:
                wrong.append(f"#{number} goes without {next(iter(body))}: {error.message}")
        return wrong

    def reply(self, seen: PullRequest, thread: str, text: str) -> None:
        """See `Host`."""
        path = f"{self._request(seen.number)}/discussions/{_word(thread)}/notes"
        self.client.value(path, method="POST", body={"body": text})

    def close(self, seen: PullRequest) -> None:
        """See `Host`."""
        self.client.value(self._request(seen.number), method="PUT", body={"state_event": "close"})

    def merge(self, seen: PullRequest, method: str) -> None:
        """See `Host`. Whether it is rebased or merged, the project says."""
        body = {"sha": seen.head, "squash": method == "squash"}
        try:
            self.client.value(f"{self._request(seen.number)}/merge", method="PUT", body=body)
        except HostRefuses as error:
            train = f"{self._top}/merge_trains/merge_requests/{seen.number:d}"
            try:
                self.client.value(train, method="POST", body=body)
            except HostRefuses as also:
                what = f"#{seen.number} is not merged: {error.message}; {also.message}"
                raise HostRefuses(what, hint=seen.url) from None

    def log(self, check: Check) -> str:
        """See `Host`."""
        projects = [each for each in (self.client.repository.slug, self.fork) if each and check.job]
        paths = (f"{_path(each)}/jobs/{check.job:d}/trace" for each in projects)
        return next(filter(None, (self.client.text(each, _LOG_BYTES) for each in paths)), "")

    @property
    def _top(self) -> str:
        return _path(self.client.repository.slug)

    def _request(self, number: int) -> str:
        return f"{self._top}/merge_requests/{number:d}"

    def _list(self, wanted: str, state: str = "all") -> list[dict[str, Any]]:
        asked = f"scope=all&state={state}&per_page=100&with_merge_status_recheck=true"
        return values.objects(self.client.value(f"{self._top}/merge_requests?{asked}&{wanted}"))

    def _own(self, branch: str) -> list[PullRequest]:
        found = map(self._read, self._list(f"source_branch={_word(branch)}"))
        own = [each for each in found if (each.branch, each.fork) == (branch, self.fork)]
        return [each for each in own if each.state != CLOSED_THERE]

    def _read(self, said: object) -> PullRequest:
        """Returns what it says of one, but for what others say of that."""
        if not isinstance(said, dict) or type(said.get("iid")) is not int:
            raise self.client.unread()
        commits = (values.commit(said, f"{each}_sha") for each in ("merge_commit", "squash_commit"))
        head, state = values.commit(said, "sha"), _STATES.get(values.text(said, "state"), "")
        detail = values.text(said, "detailed_merge_status") or values.text(said, "merge_status")
        merge_state = "DIRTY" if said.get("has_conflicts") is True else ""
        is_merged = state == MERGED_THERE  # By a fast-forward there is no other commit.
        changes = "CHANGES_REQUESTED" if detail in _WANTS_CHANGES else ""
        return PullRequest(
            said["iid"],
            state,
            head,
            url=values.text(said, "web_url"),
            branch=values.text(said, "source_branch"),
            base=values.text(said, "target_branch"),
            fork=self._fork(said.get("source_project_id"), said.get("target_project_id")),
            merge_commit=next(filter(None, commits), head) if is_merged else "",
            is_draft=said.get("draft") is True,
            merge_state=merge_state or _MERGE_STATES.get(detail, "BLOCKED"),
            decision="REVIEW_REQUIRED" if detail == "not_approved" else changes,
            is_queued=said.get("merge_when_pipeline_succeeds") is True,
        )

    def _fork(self, source: object, target: object) -> str:
        if source == target:
            return ""
        name = ""
        if type(source) is int:
            try:
                name = values.text(self.client.value(f"projects/{source}"), "path_with_namespace")
            except HostRefuses:  # It is gone, or private.
                name = ""
        return name.lower() or "?"

    def _more(self, seen: PullRequest, said: Mapping[str, Any]) -> PullRequest:
        """Returns it with its checks, and with what others say of it."""
        here = self._request(seen.number)
        if seen.state == CLOSED_THERE:
            notes = values.objects(self.client.maybe(f"{here}/notes?per_page=10"))
            own = [each for each in reversed(notes) if each.get("system") is not True]
            return replace(seen, comments=self._remarks(own))
        if seen.state != OPEN:
            return seen
        discussions = values.objects(self.client.maybe(f"{here}/discussions?per_page=100"))
        first = [(each, note) for each in discussions for note in values.objects(each, "notes")[:1]]
        open_ = [(a, b) for a, b in first if b.get("resolvable") is True and not b.get("resolved")]
        alone = [b for a, b in first if a.get("individual_note") and not b.get("system")]
        threads = [
            replace(
                remark,
                thread=values.text(each, "id"),
                path=values.text(note, "position", "new_path"),
                line=values.number(note, "position", "new_line"),
            )
            for (each, note), remark in zip(open_, self._remarks(b for _, b in open_), strict=True)
        ]
        decision = seen.decision
        if any(each.counts for each in threads):
            decision = "CHANGES_REQUESTED"
        is_asked = said.get("detailed_merge_status") == "requested_changes"
        reviews = self._remarks(alone, "CHANGES_REQUESTED") if is_asked else []
        checks = self._checks(seen)
        return replace(seen, checks=checks, threads=threads, reviews=reviews, decision=decision)

    def _remarks(self, notes: Iterable[Mapping[str, Any]], state: str = "") -> list[Remark]:
        """Returns them, each with the role of its author: from those on who may push there."""
        notes = [*notes]
        if not notes:
            return []
        ids = {values.number(each, "author", "id") for each in notes}
        asked = "&".join(f"user_ids%5B%5D={each:d}" for each in sorted(ids))
        members = values.objects(self.client.maybe(f"{self._top}/members/all?per_page=100&{asked}"))
        high = (x for x in members if values.number(x, "access_level") >= _DEVELOPER)
        may = {values.number(each, "id") for each in high} - {0}
        return [
            Remark(
                str(each.get("id")),
                values.text(each, "author", "username"),
                values.text(each, "body"),
                "MEMBER" if values.number(each, "author", "id") in may else "NONE",
                state,
            )
            for each in notes
        ]

    def _checks(self, seen: PullRequest) -> list[Check] | None:
        """Returns the jobs of the last pipeline that ran for what it proposes, or for its merge."""
        pipelines = self.client.maybe(f"{self._request(seen.number)}/pipelines?per_page=20")
        if pipelines is None:
            return None
        refs = [f"refs/merge-requests/{seen.number:d}/{what}" for what in ("merge", "train")]
        known = values.objects(pipelines)
        fits = [x for x in known if x.get("sha") == seen.head or x.get("ref") in refs]
        if not fits:
            return []
        state = _check_state(values.text(fits[0], "status"))
        if state == PASSED:
            return []
        project, one = (values.number(fits[0], name) for name in ("project_id", "id"))
        path = f"projects/{project:d}/pipelines/{one:d}/jobs?per_page=100"
        found = [
            Check(
                values.text(each, "name"),
                _check_state(values.text(each, "status")),
                is_required=each.get("allow_failure") is not True,
                job=values.number(each, "id"),
                url=values.text(each, "web_url"),
            )
            for each in values.objects(self.client.maybe(path))
        ]
        if not any(each.is_required and each.state == state for each in found):
            found.append(Check("pipeline", state, url=values.text(fits[0], "web_url")))
        return found


def _check_state(said: str) -> str:
    return PASSED if said in _PASSED else FAILED if said in _FAILED else PENDING


def _path(slug: str) -> str:
    return f"projects/{_word(slug)}"


def _word(text: str) -> str:
    return quote(text, safe="")
