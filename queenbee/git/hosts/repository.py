"""Which code host a remote is on.

The host comes from the address of the remote or from this machine's git config, and its client from
this machine: no file of the repository has a say in either. ADR 0050.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned
from queenbee.errors import InvalidInput
from queenbee.git.run import OWNERS, line, settings

if TYPE_CHECKING:
    from collections.abc import Collection

_ADDRESS = re.compile(
    r"(?:([a-z+]+)://)?(?:[^@/\s]+@)?([A-Za-z0-9.-]+)(?::\d+/|[:/])(.+?)(?:\.git)?/?"
)
_SLUG = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SLUG_OF_GITLAB = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)+")
"""Groups may be in groups there."""
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_SETTING = "queenbee.host"
GITHUB, GITLAB, GITEA = KINDS = ("github", "gitlab", "gitea")
_NAMES = {
    GITLAB: re.compile(r"(?:^|\.)gitlab\b"),
    GITEA: re.compile(r"(?:^|\.)(?:gitea|forgejo|codeberg)\b"),
    "": re.compile(r"(?:^|\.)(?:bitbucket|sr\.ht|azure|visualstudio)\b"),
}
"""What the address of a host of each kind has; any other one is taken for one of GitHub's."""
_OF_PULLS = f"git config {_SETTING} HOST/OWNER/NAME, if it is one of GitHub's; else: "
_WAYS = (
    ("pull requests", f"{_OF_PULLS}queen config set land.by merge"),
    ("issues", f"git config {_SETTING} github://HOST/OWNER/NAME, or gitlab:// or gitea://"),
)
_FOR_SSH = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at a host, such as `me/shop` at `github.com`."""

    host: str
    slug: str
    kind: str = GITHUB

    @classmethod
    def of_remote(
        cls, tree: str, remote: str, *, kinds: Collection[str] = KINDS, kind: str | None = None
    ) -> Repository:
        """Returns that of a remote: as git's config of this machine says, or else its address.
        `kind` insists on what is there. Raises `InvalidInput` where neither names one of `kinds`.
        """
        said = [
            value for scope, _, value in settings(r"^queenbee\.host$", cwd=tree) if scope in OWNERS
        ]
        asked = ("remote", "get-url", "--push", no_dash(remote))
        address = said[-1] if said else line(*asked, cwd=tree, repository={}) or ""
        found = _ADDRESS.fullmatch(address)
        scheme, host, slug = found.groups() if found else ("", "", "")
        host, slug = _FOR_SSH.get(host.lower(), host.lower()), slug.lstrip("/")
        kind = kind or (scheme if scheme in KINDS else _kind(host))
        form = _SLUG_OF_GITLAB if kind == GITLAB else _SLUG
        if not (_HOST.fullmatch(host) and form.fullmatch(slug)) or kind not in kinds:
            what, way = _WAYS[len(kinds) > 1]
            raise InvalidInput(
                f"no code host with {what} is known for {mentioned(address or remote)}", hint=way
            )
        return cls(host, slug, kind)

    def __str__(self) -> str:
        return f"{self.host}/{self.slug}"


def _kind(host: str) -> str:
    return next((kind for kind, form in _NAMES.items() if form.search(host)), GITHUB)
