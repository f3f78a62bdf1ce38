"""Pull requests at GitHub, by its GraphQL.

A field that the token may not read is null in the answer, and all else of it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from queenbee.core.reviews.pull_requests import FAILED, PASSED, PENDING, Check, PullRequest, Remark
from queenbee.core.text import mentioned, quotation
from queenbee.errors import QueenError
from queenbee.git.hosts.client import GRAPHQL, Client, HostRefuses
from queenbee.git.proposing.host import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queenbee.git.hosts.repository import Repository

_FIELDS = """
number id state url isDraft isCrossRepository headRefName headRefOid baseRefName mergeCommit { oid }
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
_CREATE = """
mutation($input: CreatePullRequestInput!) {
  createPullRequest(input: $input) { pullRequest { number id url state headRefName headRefOid } }
}
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
_BRIEF = "number id state url headRefName headRefOid baseRefName isCrossRepository"
_FEW = "states: [OPEN], first: 10"
_LAST = "states: [OPEN, MERGED], last: 10"
_NEUTRAL = ("SUCCESS", "NEUTRAL", "SKIPPED")
_LOG_BYTES = 40_000
_SAID_CHARS = 300
_ANSWERED = 200


@dataclass(frozen=True, slots=True)
class GitHub:
    """A repository at GitHub, or at an Enterprise server."""

    repository: Repository

    def look(self, numbers: Sequence[int], branches: Sequence[str] = ()) -> Answer:
        """See `Host`."""
        found, errors = self._query(_query(numbers, branches, _NEWER), branches)
        if found is None and any(map(_is_unknown, errors)):
            found, errors = self._query(_query(numbers, branches, {}), branches)
        if found is None:
            raise HostRefuses(f"{self.repository}: {_words(errors)}", hint="gh auth status")
        sees_checks = not any("statusCheckRollup" in map(str, _path(each)) for each in errors)
        by_number = {each: _read(found.get(f"n{each}"), sees_checks) for each in numbers}
        return Answer(
            str(found.get("id") or ""),
            {number: each for number, each in by_number.items() if each is not None},
            {name: [*_nodes(found.get(f"b{at}"), name)] for at, name in enumerate(branches)},
            [name for at, name in enumerate(branches) if _at(found, f"o{at}", "nodes")],
        )

    def open(
        self, known: Answer, *, branch: str, base: str, title: str, body: str, is_draft: bool
    ) -> PullRequest:
        """See `Host`."""
        said: dict[str, object] = {"repositoryId": known.repository_id, "baseRefName": base}
        said |= {"headRefName": branch, "title": title, "body": body, "draft": is_draft}
        data, errors = self._change(_CREATE, said)
        made = data.get("createPullRequest")
        request = _read(made.get("pullRequest")) if isinstance(made, dict) else None
        if request is None:
            raise HostRefuses(
                f"{self.repository} opens no pull request for {branch}: {_words(errors)}",
                hint="queen land, once that is mended",
            )
        return request

    def ask_review(self, number: int, reviewers: Sequence[str], labels: Sequence[str]) -> list[str]:
        """See `Host`. By REST, which takes names; one for each, as an unknown one fails it all."""
        asked: list[tuple[str, str, str]] = []
        for each in reviewers:
            _, slash, name = each.rpartition("/")
            what = "team_reviewers" if slash else "reviewers"
            asked.append((f"pulls/{number:d}/requested_reviewers", what, name))
        asked += [(f"issues/{number:d}/labels", "labels", each) for each in labels]
        wrong = []
        for path, what, name in asked:
            try:
                where = f"repos/{self.repository.slug}/{path}"
                self._client.ask(where, method="POST", body={what: [name]})
            except QueenError as error:
                wrong.append(f"#{number} goes without {mentioned(name)}: {error.message}")
        return wrong

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
            f"{self.repository} does not merge #{seen.number}: {'; '.join(words)}", hint=seen.url
        )

    def log(self, check: Check) -> str:
        """See `Host`."""
        if not check.job:
            return ""
        path = f"repos/{self.repository.slug}/actions/jobs/{check.job:d}/logs"
        return self._client.text(path, _LOG_BYTES)

    @property
    def _client(self) -> Client:
        return Client(self.repository, again="queen land")

    def _query(
        self, query: str, branches: Sequence[str]
    ) -> tuple[dict[str, Any] | None, list[Any]]:
        """Returns what the host says of the repository, and its errors."""
        owner, name = self.repository.slug.split("/")
        variables = {"owner": owner, "name": name}
        variables |= {f"b{at}": branch for at, branch in enumerate(branches)}
        data, errors = self._ask({"query": query, "variables": variables})
        found = data.get("repository")
        return found if isinstance(found, dict) else None, errors

    def _must(self, query: str, given: Mapping[str, object], seen: PullRequest, verb: str) -> None:
        """Makes a change of a pull request. Raises `HostRefuses` if the host does not."""
        data, errors = self._change(query, given)
        if not any(isinstance(each, dict) for each in data.values()):
            words = f"{self.repository} does not {verb} #{seen.number}: {_words(errors)}"
            raise HostRefuses(words, hint=seen.url)

    def _change(self, query: str, given: Mapping[str, object]) -> tuple[dict[str, Any], list[Any]]:
        return self._ask({"query": query, "variables": {"input": given}})

    def _ask(self, request: Mapping[str, object]) -> tuple[dict[str, Any], list[Any]]:
        """Returns the data and the errors of an answer, of which both may be there."""
        reply = self._client.ask(GRAPHQL, body=request)
        if reply.status != _ANSWERED or not isinstance(reply.value, dict):
            raise self._client.unread()
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


def _nodes(said: object, branch: str) -> Iterator[PullRequest]:
    nodes = said.get("nodes") if isinstance(said, dict) else None
    for each in nodes if isinstance(nodes, list) else ():
        request = _read(each)  # A fork may have a branch of any name.
        is_own = request is not None and each.get("isCrossRepository") is False
        if request is not None and is_own and request.branch == branch:
            yield request


def _read(said: object, sees_checks: bool = True) -> PullRequest | None:
    """Returns what an answer says of a pull request; None if it says nothing."""
    if not isinstance(said, dict) or type(said.get("number")) is not int:
        return None
    commit, auto = said.get("mergeCommit"), said.get("autoMergeRequest")

    def text(name: str, of: Mapping[str, object] = said) -> str:
        value = of.get(name)
        return value if isinstance(value, str) else ""

    return PullRequest(
        said["number"],
        text("state"),
        text("headRefOid"),
        url=text("url"),
        id=text("id"),
        branch=text("headRefName"),
        base=text("baseRefName"),
        is_of_fork=said.get("isCrossRepository") is True,
        merge_commit=text("oid", commit) if isinstance(commit, dict) else "",
        is_draft=said.get("isDraft") is True,
        merge_state=text("mergeStateStatus"),
        decision=text("reviewDecision"),
        is_queued=said.get("isInMergeQueue") is True,
        auto_method=text("mergeMethod", auto) if isinstance(auto, dict) else "",
        checks=_checks(said.get("commits")) if sees_checks else None,
        reviews=[*_remarks(_at(said, "reviews", "nodes"))],
        threads=[*_threads(_at(said, "reviewThreads", "nodes"))],
        comments=[*_remarks(_at(said, "comments", "nodes"))],
    )


def _remarks(nodes: object) -> Iterator[Remark]:
    for each in nodes if isinstance(nodes, list) else ():
        if isinstance(each, dict):
            by, role = _at(each, "author", "login"), each.get("authorAssociation")
            body, state = (str(each.get(name) or "") for name in ("body", "state"))
            yield Remark(str(each.get("id")), str(by), body, str(role), state)


def _threads(nodes: object) -> Iterator[Remark]:
    for each in nodes if isinstance(nodes, list) else ():
        first = next(_remarks(_at(each, "comments", "nodes")), None)
        if first is not None and each.get("isResolved") is False:
            line, path = each.get("line"), str(each.get("path") or "")
            at = line if type(line) is int else 0
            yield replace(first, thread=str(each.get("id")), path=path, line=at)


def _checks(commits: object) -> list[Check]:
    """Returns the checks of the last commit."""
    path = ("nodes", 0, "commit", "statusCheckRollup", "contexts", "nodes")
    contexts = _at(commits, *path)
    return [_check(each) for each in contexts or () if isinstance(each, dict)]


def _check(said: Mapping[str, Any]) -> Check:
    is_run = said.get("__typename") == "CheckRun"
    if is_run:
        is_done = said.get("status") == "COMPLETED"
        outcome = str(said.get("conclusion")) if is_done else "PENDING"
    else:
        outcome = str(said.get("state"))
    waits = outcome in ("PENDING", "EXPECTED")
    state = PASSED if outcome in _NEUTRAL else PENDING if waits else FAILED
    job = said.get("databaseId")
    return Check(
        str(said.get("name") if is_run else said.get("context")),
        state,
        is_required=said.get("isRequired") is not False,
        job=job if type(job) is int else 0,
        url=str(said.get("detailsUrl") or said.get("targetUrl") or ""),
    )


def _at(said: Any, *path: str | int) -> Any:
    for each in path:
        if isinstance(each, int):
            said = said[each] if isinstance(said, list) and len(said) > each else None
        else:
            said = said.get(each) if isinstance(said, dict) else None
    return said


def _is_unknown(error: object) -> bool:
    return bool(_at(error, "extensions", "code") == "undefinedField")


def _path(error: object) -> Sequence[object]:
    path = _at(error, "path")
    return path if isinstance(path, list) else ()


def _words(errors: Sequence[object]) -> str:
    said = [
        quotation(str(each.get("message")), _SAID_CHARS)
        for each in errors
        if isinstance(each, dict)
    ]
    return "; ".join(said) or "no reason is given"
