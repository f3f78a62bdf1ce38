"""The issues of a scripted code host, as GitHub's GraphQL and the REST of each host have them.

Made from public descriptions, as `scripted_host` is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from queenbee.core.timestamps import format_ms, parse_ms

BEGIN_MS = parse_ms("2026-03-01T00:00:00Z")
_PATH = re.compile(r"/(?:repos|projects)/([^/]+(?:/[^/]+)?)/issues(?:/(\d+))?(?:/(\w+))?")
_KEYS = {"github": "number", "gitlab": "iid", "gitea": "number"}
_PLACES = {"github": "{}/issues", "gitlab": "{}/-/issues", "gitea": "{}/issues"}


class ScriptedIssues:
    """What people write there, and what the host says of it."""

    def __init__(self, slug: str, kind: str = "github", host: str = "github.com") -> None:
        self.slug, self.kind, self.host = slug, kind, host
        self.page = 100
        """How many it gives at most, whatever it is asked for."""
        self.by_number: dict[int, dict[str, Any]] = {}
        self.changes: list[str] = []
        """What was asked for with another method than GET, in order."""
        self._now_ms = BEGIN_MS

    def url(self, number: int) -> str:
        return f"https://{self.host}/{_PLACES[self.kind].format(self.slug)}/{number}"

    def write(self, number: int, **said: Any) -> None:
        """Has somebody open an issue, or change it; `needs` are the numbers that block it."""
        self._now_ms += 3_600_000
        now = format_ms(self._now_ms)
        usual = {"title": f"Issue {number}", "body": "", "open": True, "reason": None, "needs": []}
        usual |= {"labels": [], "people": [], "comments": [], "created": now, "closed": None}
        usual["author"] = "MEMBER"
        issue = {**self.by_number.get(number, usual), **said, "updated": now}
        if issue["open"] is False and issue["closed"] is None:
            issue["closed"] = now
        self.by_number[number] = issue

    def graphql(self, first: int, states: list[str], after: Any, **how: Any) -> dict[str, Any]:
        """Returns a page as GraphQL has it; the cursor is the number of the last one."""
        since = (how["filterBy"] or {}).get("since")
        assert (states, how["orderBy"]["direction"]) == (["OPEN", "CLOSED"], "ASC")
        found = [each for each in self._since(since) if each > int(after or 0)]
        shown = found[: min(first, self.page)]
        cursor = str(shown[-1]) if shown else None
        info = {"hasNextPage": len(found) > len(shown), "endCursor": cursor}
        return {"pageInfo": info, "nodes": [self._node(each) for each in shown]}

    def rest(self, method: str, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Returns the status and the answer to a request by REST."""
        parts = urlsplit(path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        found = _PATH.fullmatch(parts.path)
        if found is None or unquote(found[1]) != self.slug:
            return 404, {"message": "Not Found"}
        if method != "GET":
            self.changes.append(f"{method} {found[2]}{'/' + found[3] if found[3] else ''}")
        if found[2] is None:
            size = min(self.page, int(asked.get("per_page") or asked["limit"]))
            since = asked.get("since") or asked.get("updated_after")
            begin = (int(asked["page"]) - 1) * size
            return 200, [self._row(each) for each in self._since(since)[begin : begin + size]]
        number = int(found[2])
        issue = self.by_number[number]
        if found[3]:
            if method == "POST":
                issue["comments"].append(dict(body))
            return 200, issue["comments"]
        if body.get("state") == "closed" or body.get("state_event") == "close":
            self.write(number, open=False, reason=str(body.get("state_reason")).upper())
        return 200, self._row(number)

    def _since(self, since: str | None) -> list[int]:
        least = parse_ms(since) if since else 0
        found = self.by_number.items()
        return sorted(number for number, each in found if parse_ms(each["updated"]) >= least)

    def _node(self, number: int) -> dict[str, Any]:
        issue = self.by_number[number]
        return {
            "number": number, "title": issue["title"], "body": issue["body"],
            "url": self.url(number), "state": "OPEN" if issue["open"] else "CLOSED",
            "stateReason": issue["reason"], "createdAt": issue["created"],
            "updatedAt": issue["updated"], "closedAt": issue["closed"],
            "labels": {"nodes": [{"name": each} for each in issue["labels"]]},
            "assignees": {"nodes": [{"login": each} for each in issue["people"]]},
            "issueType": None, "parent": None, "authorAssociation": issue["author"],
            "blockedBy": {"nodes": [{"url": self.url(each)} for each in issue["needs"]]},
        }  # fmt: skip

    def _row(self, number: int) -> dict[str, Any]:
        issue, kind = self.by_number[number], self.kind
        open_ = "opened" if kind == "gitlab" else "open"
        labels: list[Any] = issue["labels"]
        if kind != "gitlab":
            labels = [{"id": 1, "name": each} for each in labels]
        return {
            "id": 7_000 + number, _KEYS[kind]: number, "title": issue["title"],
            "description" if kind == "gitlab" else "body": issue["body"],
            "web_url" if kind == "gitlab" else "html_url": self.url(number),
            "state": open_ if issue["open"] else "closed", "labels": labels,
            "state_reason": issue["reason"] and issue["reason"].lower(),
            "assignees": [{"login": each, "username": each} for each in issue["people"]],
            "created_at": issue["created"], "updated_at": issue["updated"],
            "closed_at": issue["closed"], "milestone": issue.get("milestone"),
        }  # fmt: skip
