"""Pull requests at GitHub, by its GraphQL.

A field that the token may not read is null in the answer, and all else of it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from queenbee.core.reviews.pull_requests import FAILED, PASSED, PENDING, Check, PullRequest, Remark
from queenbee.core.text import quotation
from queenbee.git.hosts import values
from queenbee.git.hosts.client import GRAPHQL, HostRefuses
from queenbee.git.proposing.host import Answer, head_of
from queenbee.git.proposing.reviewers import ask_review

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from queenbee.git.hosts.client import Client


_FIELDS = """
number id state url isDraft headRefName headRefOid baseRefName mergeCommit { oid }
isCrossRepository headRepository { nameWithOwner }
mergeStateStatus reviewDecision autoMergeRequest { mergeMethod } %(queue)s
reviews(last: 30) { nodes { id state %(remark)s } }
reviewThreads(last: 50) { nodes {
  id isResolved path line comments(first: 1) { nodes { id %(remark)s } }
} }
comments(last: 5) { nodes { id %(remark)s } }
commits(last: 1) { nodes { commit { oid statusCheckRollup { contexts(first: 100) { nodes {
  __typename
  ... on CheckRun { name status conclusion databaseId detailsUrl %(run)s }
  ... on StatusContext { context state targetUrl %(status)s }
} } } } } }
"""
_NEWER = {"queue": "isInMergeQueue"}
"""What an older GitHub Enterprise does not know, and then refuses as a whole."""
_MERGE = """
mutation($input: MergePullRequestInput!) {
  mergePullRequest(input: $input) { pullRequest { number } }
}
"""
_ENQUEUE = """
mutation($input: EnqueuePullRequestInput!) {
  enqueuePullRequest(input: $input) { mergeQueueEntry { id } }
}
"""
_REMARK = "body authorAssociation author { login }"
_BRIEF = (
    "number id state url headRefName headRefOid baseRefName "
    "isCrossRepository headRepository { nameWithOwner }"
)
_CREATE = f"""
mutation($input: CreatePullRequestInput!) {{
  createPullRequest(input: $input) {{ pullRequest {{ {_BRIEF} }} }}
}}
"""
_REPLY = """
mutation($input: AddPullRequestReviewThreadReplyInput!) {
  addPullRequestReviewThreadReply(input: $input) { comment { id } }
}
"""
_CLOSE = """
mutation($input: ClosePullRequestInput!) {
  closePullRequest(input: $input) { pullRequest { number } }
}
"""
_FEW = "states: [OPEN], first: 10"
_LAST = "states: [OPEN, MERGED], last: 10"
_NEUTRAL = ("SUCCESS", "NEUTRAL", "SKIPPED")
_LOG_BYTES = 40_000
_SAID_CHARS = 300
_ANSWERED = 200


@dataclass(frozen=True, slots=True)
class GitHub:
    """A repository at GitHub, or at an Enterprise server."""

    client: Client
    fork: str = ""
    """The fork that has the branches, such as `ann/shop`; empty if they are where the target is."""

    def look(self, numbers: Sequence[int], branches: Sequence[str] = ()) -> Answer:
        """See `Host`."""
        found, errors = self._query(_query(numbers, branches, _NEWER), branches)
        if found is None and any(map(_is_unknown, errors)):
            found, errors = self._query(_query(numbers, branches, {}), branches)
        if found is None:
            raise HostRefuses(f"{self.client.repository}: {_words(errors)}", hint="gh auth status")
        sees_checks = not any("statusCheckRollup" in map(str, _path(each)) for each in errors)
        by_number = {each: _read(found.get(f"n{each}"), sees_checks) for each in numbers}
        return Answer(
            str(found.get("id") or ""),
            {number: each for number, each in by_number.items() if each is not None},
            {
                name: [*_own(found.get(f"b{at}"), name, self.fork)]
                for at, name in enumerate(branches)
            },
            [name for at, name in enumerate(branches) if values.at(found, f"o{at}", "nodes")],
        )

    def open(
        self, known: Answer, *, branch: str, base: str, title: str, body: str, is_draft: bool
    ) -> PullRequest:
        """See `Host`."""
        said: dict[str, object] = {"repositoryId": known.repository_id, "baseRefName": base}
        said |= {"headRefName": head_of(self.fork, branch), "title": title, "body": body}
        said["draft"] = is_draft
        data, errors = self._change(_CREATE, said)
        made = data.get("createPullRequest")
        request = _read(made.get("pullRequest")) if isinstance(made, dict) else None
        if request is None:
            raise HostRefuses(
                f"{self.client.repository} opens no pull request for {branch}: {_words(errors)}",
                hint="queen land, once that is mended",
            )
        return request

    def ask_review(self, number: int, reviewers: Sequence[str], labels: Sequence[str]) -> list[str]:
        """See `Host`."""
        return ask_review(self.client, number, reviewers, labels)

    def reply(self, seen: PullRequest, thread: str, text: str) -> None:
        """See `Host`."""
        self._must(_REPLY, {"pullRequestReviewThreadId": thread, "body": text}, seen, "answer in")

    def close(self, seen: PullRequest) -> None:
        """See `Host`."""
        self._must(_CLOSE, {"pullRequestId": seen.id}, seen, "close")

    def merge(self, seen: PullRequest, method: str) -> None:
        """See `Host`."""
        said = {"pullRequestId": seen.id, "expectedHeadOid": seen.head}
        ways = ((_MERGE, {**said, "mergeMethod": method.upper()}), (_ENQUEUE, said))
        words = []
        for query, given in ways:
            data, errors = self._change(query, given)
            if any(isinstance(each, dict) for each in data.values()):
                return
            words.append(_words(errors))
        raise HostRefuses(
            f"{self.client.repository} does not merge #{seen.number}: {'; '.join(words)}",
            hint=seen.url,
        )

    def log(self, check: Check) -> str:
        """See `Host`."""
        if not check.job:
            return ""
        path = f"repos/{self.client.repository.slug}/actions/jobs/{check.job:d}/logs"
        return self.client.text(path, _LOG_BYTES)

    def _query(
        self, query: str, branches: Sequence[str]
    ) -> tuple[dict[str, Any] | None, list[Any]]:
        """Returns what the host says of the repository, and its errors."""
        owner, name = self.client.repository.slug.split("/")
        variables = {"owner": owner, "name": name}
        variables |= {f"b{at}": branch for at, branch in enumerate(branches)}
        data, errors = self._ask({"query": query, "variables": variables})
        found = data.get("repository")
        return found if isinstance(found, dict) else None, errors

    def _must(self, query: str, given: Mapping[str, object], seen: PullRequest, verb: str) -> None:
        """Makes a change of a pull request. Raises `HostRefuses` if the host does not."""
        data, errors = self._change(query, given)
        if not any(isinstance(each, dict) for each in data.values()):
            words = f"{self.client.repository} does not {verb} #{seen.number}: {_words(errors)}"
            raise HostRefuses(words, hint=seen.url)

    def _change(self, query: str, given: Mapping[str, object]) -> tuple[dict[str, Any], list[Any]]:
        return self._ask({"query": query, "variables": {"input": given}})

    def _ask(self, request: Mapping[str, object]) -> tuple[dict[str, Any], list[Any]]:
        """Returns the data and the errors of an answer, of which both may be there."""
        reply = self.client.ask(GRAPHQL, body=request)
        if reply.status != _ANSWERED or not isinstance(reply.value, dict):
            raise self.client.unread()
        data, errors = reply.value.get("data"), reply.value.get("errors")
        return (
            data if isinstance(data, dict) else {},
            errors if isinstance(errors, list) else [],
        )


def _query(numbers: Sequence[int], branches: Sequence[str], newer: Mapping[str, str]) -> str:
    parts = [f"n{x:d}: pullRequest(number: {x:d}) {{ {_fields(x, newer)} }}" for x in numbers]
    for at in range(len(branches)):
        asked, more = f"headRefName: $b{at}, {_LAST}", f"baseRefName: $b{at}, {_FEW}"
        parts.append(f"b{at}: pullRequests({asked}) {{ nodes {{ {_BRIEF} }} }}")
        parts.append(f"o{at}: pullRequests({more}) {{ nodes {{ number }} }}")
    names = "".join(f", $b{at}: String!" for at in range(len(branches)))
    about = "repository(owner: $owner, name: $name)"
    return f"query($owner: String!, $name: String!{names}) {{ {about} {{ id {' '.join(parts)} }} }}"


def _fields(number: int, newer: Mapping[str, str]) -> str:
    required = f"isRequired(pullRequestNumber: {number:d})"
    said = {"queue": newer.get("queue", ""), "run": required, "status": required}
    return _FIELDS % {**said, "remark": _REMARK}


def _own(said: object, branch: str, fork: str) -> Iterator[PullRequest]:
    for request in map(
        _read, values.objects(said, "nodes")
    ):  # A fork may have a branch of any name.
        if request is not None and (request.branch, request.fork) == (branch, fork):
            yield request


def _read(said: object, sees_checks: bool = True) -> PullRequest | None:
    """Returns what an answer says of a pull request; None if it says nothing."""
    if not isinstance(said, dict) or type(said.get("number")) is not int:
        return None
    is_elsewhere = said.get("isCrossRepository") is not False
    return PullRequest(
        said["number"],
        values.text(said, "state"),
        values.commit(said, "headRefOid"),
        url=values.text(said, "url"),
        id=values.text(said, "id"),
        branch=values.text(said, "headRefName"),
        base=values.text(said, "baseRefName"),
        fork=(values.text(said, "headRepository", "nameWithOwner").lower() or "?") * is_elsewhere,
        merge_commit=values.commit(said, "mergeCommit", "oid"),
        is_draft=said.get("isDraft") is True,
        merge_state=values.text(said, "mergeStateStatus"),
        decision=values.text(said, "reviewDecision"),
        is_queued=said.get("isInMergeQueue") is True,
        auto_method=values.text(said, "autoMergeRequest", "mergeMethod"),
        checks=_checks(said) if sees_checks else None,
        reviews=[*map(_remark, values.objects(said, "reviews", "nodes"))],
        threads=[*_threads(values.objects(said, "reviewThreads", "nodes"))],
        comments=[*map(_remark, values.objects(said, "comments", "nodes"))],
    )


def _remark(said: Mapping[str, Any]) -> Remark:
    by, role = values.at(said, "author", "login"), said.get("authorAssociation")
    return Remark(
        str(said.get("id")),
        str(by),
        values.text(said, "body"),
        str(role),
        values.text(said, "state"),
    )


def _threads(nodes: Iterable[Mapping[str, Any]]) -> Iterator[Remark]:
    for each in nodes:
        first = next(map(_remark, values.objects(each, "comments", "nodes")), None)
        if first is not None and each.get("isResolved") is False:
            where = {"path": values.text(each, "path"), "line": values.number(each, "line")}
            yield replace(first, thread=str(each.get("id")), **where)  # type: ignore[arg-type]


def _checks(said: object) -> list[Check]:
    """Returns the checks of the last commit."""
    path = ("commits", "nodes", 0, "commit", "statusCheckRollup", "contexts", "nodes")
    return [*map(_check, values.objects(said, *path))]


def _check(said: Mapping[str, Any]) -> Check:
    is_run = said.get("__typename") == "CheckRun"
    if is_run:
        is_done = said.get("status") == "COMPLETED"
        outcome = str(said.get("conclusion")) if is_done else "PENDING"
    else:
        outcome = str(said.get("state"))
    waits = outcome in ("PENDING", "EXPECTED")
    state = PASSED if outcome in _NEUTRAL else PENDING if waits else FAILED
    return Check(
        str(said.get("name") if is_run else said.get("context")),
        state,
        is_required=said.get("isRequired") is not False,
        job=values.number(said, "databaseId"),
        url=values.text(said, "detailsUrl") or values.text(said, "targetUrl"),
    )


def _is_unknown(error: object) -> bool:
    return values.text(error, "extensions", "code") == "undefinedField"


def _path(error: object) -> Sequence[object]:
    path = values.at(error, "path")
    return path if isinstance(path, list) else ()


def _words(errors: Sequence[object]) -> str:
    said = [
        quotation(str(each.get("message")), _SAID_CHARS)
        for each in errors
        if isinstance(each, dict)
    ]
    return "; ".join(said) or "no reason is given"
