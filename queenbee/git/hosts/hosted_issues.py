"""The issues of a repository at its code host: read page by page, and closed.

GitHub's are read by GraphQL, which leaves out pull requests and has parents and blockers; all else
is REST, where the hosts differ only in the words of a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from queenbee.core.text import quotation
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.git.hosts.client import GRAPHQL, Client, HostRefuses
from queenbee.git.hosts.repository import GITEA, GITHUB, GITLAB
from queenbee.git.hosts.values import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from queenbee.documents.issue_lists.reading import Entry

_QUERY = """
query($owner: String!, $name: String!, $after: String, $order: IssueOrder, $filter: IssueFilters) {
  repository(owner: $owner, name: $name) {
    issues(first: 100, after: $after, states: [OPEN, CLOSED], orderBy: $order, filterBy: $filter) {
      pageInfo { hasNextPage endCursor }
      nodes {
        number title body url state stateReason createdAt updatedAt closedAt authorAssociation
        labels(first: 100) { nodes { name } } assignees(first: 10) { nodes { login } } %s
      }
    }
  }
}
"""
_NEWER = "issueType { name } parent { url } blockedBy(first: 100) { nodes { url } }"
"""What an older host does not know, or a token may not read: then it is asked without."""
_WRITERS = ("OWNER", "MEMBER", "COLLABORATOR")
"""What GitHub calls an author whom the repository's owners have let in."""
BY_A_STRANGER = "by a stranger"
"""The state of an open issue of anybody else: it is on hold until somebody here has read it."""
_OLDEST_FIRST = {"field": "CREATED_AT", "direction": "ASC"}
"""So that what changes meanwhile moves nothing from one page to the one before."""
_MOST_PAGES = 1_000
_PAGE = 50
_SAID_CHARS = 300


@dataclass(frozen=True, slots=True)
class _Words:
    """What a host's REST calls things; `{}` is its repository, or the issue."""

    repository: str
    pages: str
    since: str
    key: str
    comments: str
    comment: str
    method: str
    closing: Mapping[str, object]


_REST = {
    GITHUB: _Words(
        "repos/{}", "", "", "number", "comments?per_page=100&since={}", "comments", "PATCH",
        {"state": "closed", "state_reason": "completed"},
    ),
    GITLAB: _Words(
        "projects/{}", "issues?scope=all&state=all&order_by=created_at&sort=asc&per_page={}",
        "updated_after", "iid", "notes?sort=desc&per_page=100", "notes", "PUT",
        {"state_event": "close"},
    ),
    GITEA: _Words(
        "repos/{}", "issues?state=all&type=issues&limit={}", "since", "number",
        "comments?since={}", "comments", "PATCH", {"state": "closed"},
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostedIssues:
    """The issues of a repository. Each call raises `HostAway`, `NotLoggedIn`, `NoClient` and
    `HostRefuses`.
    """

    client: Client

    def changed(self, since_ms: int | None) -> list[Entry]:
        """Returns those that have changed since, or all, as entries of a list; each once."""
        is_github = self.client.repository.kind == GITHUB
        pages = self._by_graphql(since_ms) if is_github else self._by_rest(since_ms)
        key = self._words.key
        # On a page that was read later, an issue is newer.
        return [*{each.get(key): each for page in pages for each in page}.values()]

    def issue(self, number: str) -> Entry:
        """Returns one as an entry of a list."""
        return self._entry(self.client.ask(self._path(number)).value)

    def has_comment(self, number: str, mark: str, since_ms: int) -> bool:
        """Returns whether an issue has had a comment with this mark since then."""
        path = self._words.comments.format(format_ms(since_ms))
        said = self.client.ask(f"{self._path(number)}/{path}").value
        return any(mark in str(each.get("body")) for each in objects(said))

    def close(self, number: str, comment: str | None) -> Entry:
        """Closes an issue as completed, after a comment; returns what it is now."""
        path, words = self._path(number), self._words
        if comment is not None:
            self.client.ask(f"{path}/{words.comment}", method="POST", body={"body": comment})
        return self._entry(self.client.ask(path, method=words.method, body=words.closing).value)

    @property
    def _words(self) -> _Words:
        return _REST[self.client.repository.kind]

    @property
    def _top(self) -> str:
        repository = self.client.repository
        safe = "" if repository.kind == GITLAB else "/"
        return self._words.repository.format(quote(repository.slug, safe=safe))

    def _path(self, number: str) -> str:
        return f"{self._top}/issues/{int(number)}"

    def _entry(self, said: Any) -> Entry:
        if not isinstance(said, dict) or type(said.get(self._words.key)) is not int:
            raise self.client.unread()
        return {str(name).lower(): value for name, value in said.items()}

    def _by_rest(self, since_ms: int | None) -> Iterator[list[Entry]]:
        words = self._words
        path = f"{self._top}/{words.pages.format(_PAGE)}"
        path += "" if since_ms is None else f"&{words.since}={format_ms(since_ms)}"
        for page in range(1, _MOST_PAGES + 1):
            said = self.client.ask(f"{path}&page={page}").value
            if not isinstance(said, list):
                raise self.client.unread()
            if not said:  # A host may have smaller pages than it was asked for.
                return
            yield [self._entry(each) for each in said]
        raise self.client.unread()

    def _by_graphql(self, since_ms: int | None) -> Iterator[list[Entry]]:
        owner, name = self.client.repository.slug.split("/")
        since = None if since_ms is None else {"since": format_ms(since_ms)}
        variables: dict[str, Any] = {"owner": owner, "name": name}
        variables |= {"order": _OLDEST_FIRST, "filter": since}
        newer, after = _NEWER, None
        for _ in range(_MOST_PAGES):
            found, errors = self._page(newer, {**variables, "after": after})
            if errors and newer:
                newer = ""
                found, errors = self._page(newer, {**variables, "after": after})
            if errors:
                said = (str(each.get("message")) for each in objects(errors))
                words = "; ".join(quotation(each, _SAID_CHARS) for each in said)
                raise HostRefuses(f"{self.client.repository}: {words}", hint="gh auth status")
            info, nodes = found.get("pageInfo"), found.get("nodes")
            if not isinstance(info, dict) or not isinstance(nodes, list):
                raise self.client.unread()
            yield [_read(self._entry(each)) for each in nodes]
            after = info.get("endCursor")
            if info.get("hasNextPage") is not True:
                return
        raise self.client.unread()

    def _page(self, newer: str, variables: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        body = {"query": _QUERY % newer, "variables": variables}
        said = self.client.ask(GRAPHQL, body=body).value
        if not isinstance(said, dict):
            raise self.client.unread()
        value = said.get("data")
        for name in ("repository", "issues"):
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}, said.get("errors")


def newest_ms(entries: Iterable[Entry]) -> int | None:
    """Returns when the last change of them was, by the clock of the host."""
    moments = (each.get("updated_at") or each.get("updatedat") for each in entries)
    return max((ms for each in moments if (ms := instant_ms(each)) is not None), default=None)


def _read(entry: Entry) -> Entry:
    """Returns an entry of GitHub whose parent and blockers are called by their addresses, as a
    number may be another repository's, and whose state says if anybody may have written it.
    """
    parent, blockers = entry.get("parent"), entry.get("blockedby")
    named: dict[str, Any] = {}
    if isinstance(blockers, dict):
        named["blockedby"] = [each.get("url") for each in objects(blockers.get("nodes"))]
        named["parent"] = parent.get("url") if isinstance(parent, dict) else None
    if entry.get("state") == "OPEN" and entry.get("authorassociation") not in _WRITERS:
        named["state"] = BY_A_STRANGER
    return {**entry, **named}
