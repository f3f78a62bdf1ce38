"""Asks people for their review, and for labels, by the REST of GitHub, which Gitea has, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.errors import QueenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.hosts.client import Client


def ask_review(
    client: Client, number: int, reviewers: Sequence[str], labels: Sequence[str]
) -> list[str]:
    """Asks for each by itself, as an unknown one fails it all; returns what went wrong."""
    asked: list[tuple[str, str, str]] = []
    for each in reviewers:
        _, slash, name = each.rpartition("/")
        what = "team_reviewers" if slash else "reviewers"
        asked.append((f"pulls/{number:d}/requested_reviewers", what, name))
    asked += [(f"issues/{number:d}/labels", "labels", each) for each in labels]
    wrong = []
    for path, what, name in asked:
        try:
            where = f"repos/{client.repository.slug}/{path}"
            client.ask(where, method="POST", body={what: [name]})
        except QueenError as error:
            wrong.append(f"#{number} goes without {mentioned(name)}: {error.message}")
    return wrong
