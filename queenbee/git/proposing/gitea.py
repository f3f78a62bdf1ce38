"""Pull requests at Gitea and Forgejo, by their REST: one question for each, and two or three for
each that is open.

It has no logs of checks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from queenbee.core.reviews.pull_requests import (
    CLOSED_THERE,
    FAILED,
    MERGED_THERE,
    OPEN,
    PASSED,
    PENDING,
    UNSURE,
    Check,
    PullRequest,
    Remark,
)
from queenbee.git.hosts import values
from queenbee.git.hosts.client import HostRefuses
from queenbee.git.proposing.host import Answer, head_of
from queenbee.git.proposing.reviewers import ask_review

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.git.hosts.client import Client


_DRAFTS = ("WIP:", "[WIP]")
"""How the title of a draft begins."""
_PASSED, _FAILED = ("success", "skipped", "warning"), ("failure", "error")
_MOST = 30


@dataclass(frozen=True)
class Gitea:
    """A repository at Gitea."""

    client: Client
    fork: str = ""
    """The fork that has the branches; empty if they are where the target is."""

    def look(self, numbers: Sequence[int], branches: Sequence[str] = ()) -> Answer:
        """See `Host`."""
        here = values.number(self.client.value(self._top), "id")
        found: dict[int, PullRequest] = {}
        for each in numbers:
            try:
                found[each] = self._more(self._read(self.client.value(self._pull(each))))
            except HostRefuses:  # There is none.
                continue
        own: dict[str, list[PullRequest]] = {}
        bases = []
        asked = self._pulls("state=all&sort=recentupdate") if branches else []
        recent = [*map(self._read, asked)]
        for name in branches:
            of_branch = [x for x in recent if (x.branch, x.fork) == (name, self.fork)]
            own[name] = [each for each in of_branch if each.state != CLOSED_THERE]
            stacked = map(self._read, self._pulls(f"state=open&base_branch={_word(name)}"))
            bases += [name for each in stacked if each.base == name]
        return Answer(str(here), found, own, bases)

    def open(
        self, known: Answer, *, branch: str, base: str, title: str, body: str, is_draft: bool
    ) -> PullRequest:
        """See `Host`."""
        said = {"head": head_of(self.fork, branch), "base": base, "body": body}
        said["title"] = f"{_DRAFTS[0]} {title}" if is_draft else title
        return self._read(self.client.value(f"{self._top}/pulls", method="POST", body=said))

    def ask_review(self, number: int, reviewers: Sequence[str], labels: Sequence[str]) -> list[str]:
        """See `Host`."""
        return ask_review(self.client, number, reviewers, labels)

    def reply(self, seen: PullRequest, thread: str, text: str) -> None:
        """See `Host`. Whoever writes at the same line answers."""
        (at,) = (each for each in seen.threads if each.thread == thread)
        comment = {"path": at.path, "new_position": at.line, "body": text}
        said = {"event": "COMMENT", "commit_id": seen.head, "comments": [comment]}
        self.client.value(f"{self._pull(seen.number)}/reviews", method="POST", body=said)

    def close(self, seen: PullRequest) -> None:
        """See `Host`."""
        self.client.value(self._pull(seen.number), method="PATCH", body={"state": "closed"})

    def merge(self, seen: PullRequest, method: str) -> None:
        """See `Host`."""
        said = {"Do": method, "head_commit_id": seen.head}
        self.client.value(f"{self._pull(seen.number)}/merge", method="POST", body=said)

    def log(self, check: Check) -> str:
        """See `Host`."""
        return ""

    @property
    def _top(self) -> str:
        return f"repos/{quote(self.client.repository.slug)}"

    def _pull(self, number: int) -> str:
        return f"{self._top}/pulls/{number:d}"

    def _pulls(self, wanted: str) -> list[dict[str, Any]]:
        return values.objects(self.client.value(f"{self._top}/pulls?limit=50&{wanted}"))

    def _read(self, said: object) -> PullRequest:
        """Returns what it says of one, but for what others say of that."""
        if not isinstance(said, dict) or type(said.get("number")) is not int:
            raise self.client.unread()
        state = OPEN if said.get("state") == "open" else CLOSED_THERE
        if said.get("merged") is True:
            state = MERGED_THERE
        has_it = values.text(said, "head", "repo", "full_name").lower() or "?"
        is_draft = said.get("draft") is True or values.text(said, "title").startswith(_DRAFTS)
        may_be_merged = said.get("mergeable") is True
        return PullRequest(
            said["number"],
            state,
            values.commit(said, "head", "sha"),
            url=values.text(said, "html_url"),
            branch=values.text(said, "head", "label"),  # `ref` is another one once it is gone.
            base=values.text(said, "base", "ref"),
            fork="" if has_it == self.client.repository.slug.lower() else has_it,
            merge_commit=values.commit(said, "merge_commit_sha"),
            is_draft=is_draft,
            merge_state="CLEAN" if may_be_merged else "DRAFT" if is_draft else UNSURE,
        )

    def _more(self, seen: PullRequest) -> PullRequest:
        """Returns it with its checks, and with what others say of it."""
        if seen.state == CLOSED_THERE:
            said = self.client.maybe(f"{self._top}/issues/{seen.number:d}/comments")
            return replace(seen, comments=self._remarks(values.objects(said)[-5:]))
        if seen.state != OPEN:
            return seen
        rules = self.client.maybe(f"{self._top}/branches/{_word(seen.base)}")
        said = values.objects(self.client.maybe(f"{self._pull(seen.number)}/reviews?limit=50"))
        written = [each for each in said if each.get("dismissed") is not True]
        last = {
            values.text(each, "user", "login"): each
            for each in written
            if each.get("state") in ("APPROVED", "REQUEST_CHANGES")
        }
        counted = [each.get("state") for each in last.values() if each.get("official") is True]
        approved = counted.count("APPROVED") >= values.number(rules, "required_approvals")
        decision = "APPROVED" if approved else "REVIEW_REQUIRED"
        if "REQUEST_CHANGES" in counted:
            decision = "CHANGES_REQUESTED"
        asked = [each for each in last.values() if each.get("state") == "REQUEST_CHANGES"]
        commented = [each for each in written[-_MOST:] if values.number(each, "comments_count")]
        return replace(
            seen,
            checks=self._checks(seen, rules),
            decision=decision,
            reviews=self._remarks(asked, "CHANGES_REQUESTED"),
            threads=self._threads(seen, commented),
        )

    def _checks(self, seen: PullRequest, rules: object) -> list[Check] | None:
        """Returns the checks of what it proposes, also those that are required and not there."""
        said = self.client.maybe(f"{self._top}/commits/{_word(seen.head)}/status")
        if said is None:
            return None
        is_on = values.at(rules, "enable_status_check") is True
        known = values.at(rules, "status_check_contexts")
        wanted = [str(each) for each in known or ()] if is_on and isinstance(known, list) else []
        found = []
        for each in values.objects(said, "statuses"):
            name, outcome = values.text(each, "context"), values.text(each, "status")
            state = PASSED if outcome in _PASSED else FAILED if outcome in _FAILED else PENDING
            is_wanted = any(fnmatchcase(name, form) for form in wanted)
            required = is_on and (is_wanted or not wanted)
            url = values.text(each, "target_url")
            found.append(Check(name, state, is_required=required, url=url))
        names = [each.name for each in found]
        late = [form for form in wanted if not any(fnmatchcase(x, form) for x in names)]
        return [*found, *(Check(form, PENDING) for form in late)]

    def _threads(self, seen: PullRequest, reviews: Iterable[Mapping[str, Any]]) -> list[Remark]:
        """Returns the first comment at each line that is not resolved."""
        first: dict[tuple[str, int], dict[str, Any]] = {}
        for each in reviews:
            path = f"{self._pull(seen.number)}/reviews/{values.number(each, 'id')}/comments"
            for comment in values.objects(self.client.maybe(path)):
                if comment.get("resolver") is None:
                    where = values.text(comment, "path"), values.number(comment, "position")
                    first.setdefault(where, comment)
        return [
            replace(remark, thread=remark.id, path=path, line=line)
            for (path, line), remark in zip(first, self._remarks(first.values()), strict=True)
        ]

    def _remarks(self, said: Iterable[Mapping[str, Any]], state: str = "") -> list[Remark]:
        """Returns them, each with the role of its author: of those who may push there."""
        said = [*said]
        may = {values.text(x, "login") for x in values.objects(self._may_push)} if said else set()
        return [
            Remark(
                str(each.get("id")),
                (by := values.text(each, "user", "login")),
                values.text(each, "body"),
                "MEMBER" if by and by in may else "NONE",
                state,
            )
            for each in said
        ]

    @cached_property
    def _may_push(self) -> Any:
        return self.client.maybe(f"{self._top}/assignees")


def _word(text: str) -> str:
    return quote(text, safe="")
