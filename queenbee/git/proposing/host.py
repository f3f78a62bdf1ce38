"""What pull requests need of a code host: a small interface to it. ADR 0050."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.reviews.pull_requests import Check, PullRequest


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host says of a repository: its pull requests by number, or by the branch asked for."""

    repository_id: str = ""
    by_number: Mapping[int, PullRequest] = field(default_factory=dict)
    by_branch: Mapping[str, Sequence[PullRequest]] = field(default_factory=dict)
    """The last ones whose head is one of the branches asked for, open or merged."""
    bases: Sequence[str] = ()
    """Those of these branches on which an open one is to be merged."""


def head_of(fork: str, branch: str) -> str:
    """Returns how GitHub and Gitea name a branch, which may be in a fork: `ann:ui`."""
    owner = fork.partition("/")[0]
    return f"{owner}:{branch}" if owner else branch


class Host(Protocol):
    """A client of a code host. Each call raises `HostAway`, `NotLoggedIn`, `NoClient` and
    `HostRefuses`.
    """

    def look(self, numbers: Sequence[int], branches: Sequence[str] = ()) -> Answer:
        """Returns what the host says of all these pull requests, in one request."""

    def open(
        self, known: Answer, *, branch: str, base: str, title: str, body: str, is_draft: bool
    ) -> PullRequest:
        """Opens a pull request for a branch that was pushed."""

    def ask_review(self, number: int, reviewers: Sequence[str], labels: Sequence[str]) -> list[str]:
        """Asks people for their review of one, and gives it labels; returns what went wrong."""

    def reply(self, seen: PullRequest, thread: str, text: str) -> None:
        """Answers in a thread of one."""

    def close(self, seen: PullRequest) -> None:
        """Closes one that is open, and does not merge it."""

    def merge(self, seen: PullRequest, method: str) -> None:
        """Merges one that could be merged, if it still proposes what was seen; or puts it into the
        merge queue, where there is one.
        """

    def log(self, check: Check) -> str:
        """Returns the end of the log of a check, or nothing if it has none."""
