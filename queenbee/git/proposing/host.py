"""Where pull requests are: which host the remote is on, and the small interface to it.

The host comes from the address of the remote or from this machine's git config, and its client from
this machine: no file of the repository has a say in either. ADR 0050.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned
from queenbee.errors import ExternalFailure, InvalidInput, Unreachable
from queenbee.git.run import OWNERS, line, settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.reviews.pull_requests import Check, PullRequest

_ADDRESS = re.compile(
    r"(?:[a-z+]+://)?(?:[^@/\s]+@)?([A-Za-z0-9.-]+)(?::\d+/|[:/])(.+?)(?:\.git)?/?"
)
_SLUG = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_SETTING = "queenbee.host"
_NOT_OF_GH = re.compile(r"(?:^|\.)(?:gitlab|bitbucket|codeberg|gitea|sr\.ht|azure|visualstudio)\b")


class HostAway(Unreachable):
    """The code host does not answer, or answers no more for now; `until_s` says until when."""

    code = "host_away"


class NotLoggedIn(ExternalFailure):
    """The client of the code host has no token, or one that the host does not take."""

    code = "not_logged_in"


class NoClient(ExternalFailure):
    """The client of the code host is not installed."""

    code = "no_host_client"


class HostRefuses(ExternalFailure):
    """The code host does not do what it is asked for; the message has its words."""

    code = "host_refuses"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at a host, such as `me/shop` at `github.com`."""

    host: str
    slug: str

    @classmethod
    def of_remote(cls, tree: str, remote: str) -> Repository:
        """Returns that of a remote: as git's config of this machine says, or else its address.
        Raises `InvalidInput` where neither names one that a client is known for.
        """
        said = [
            value for scope, _, value in settings(r"^queenbee\.host$", cwd=tree) if scope in OWNERS
        ]
        asked = ("remote", "get-url", "--push", no_dash(remote))
        address = said[-1] if said else line(*asked, cwd=tree, repository={}) or ""
        found = _ADDRESS.fullmatch(address)
        host, slug = (found[1].lower(), found[2].lstrip("/")) if found else ("", "")
        if not (_HOST.fullmatch(host) and _SLUG.fullmatch(slug)) or _NOT_OF_GH.search(host):
            raise InvalidInput(
                f"no code host with pull requests is known for {mentioned(address or remote)}",
                hint=f"git config {_SETTING} HOST/OWNER/NAME, if it is one of GitHub's; else: "
                "queen config set land.by merge",
            )
        return cls(host, slug)

    def __str__(self) -> str:
        return f"{self.host}/{self.slug}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host says of a repository: its pull requests by number, or by the branch asked for."""

    repository_id: str = ""
    by_number: Mapping[int, PullRequest] = field(default_factory=dict)
    by_branch: Mapping[str, Sequence[PullRequest]] = field(default_factory=dict)
    """The last ones whose head is one of the branches asked for, open or merged."""
    bases: Sequence[str] = ()
    """Those of these branches on which an open one is to be merged."""


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

    def merge(self, seen: PullRequest, method: str) -> None:
        """Merges one that could be merged, if it still proposes what was seen; or puts it into the
        merge queue, where there is one.
        """

    def log(self, check: Check) -> str:
        """Returns the end of the log of a check, or nothing if it has none."""
