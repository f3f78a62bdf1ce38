"""Which code host a remote is on.

The host comes from the address of the remote or from this machine's git config, and its client from
this machine: no file of the repository has a say in either. ADR 0050.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned
from queenbee.errors import InvalidInput
from queenbee.git.run import OWNERS, line, settings

_ADDRESS = re.compile(
    r"(?:([a-z+]+)://)?(?:[^@/\s]+@)?([A-Za-z0-9.-]+)(?::\d+/|[:/])(?!//)(.+?)(?:\.git)?/?"
)
_LOGIN = re.compile(r"(?<=://)[^@/\s]*@")
"""May have a token."""
_SLUG = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SLUG_OF_GITLAB = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)+")
"""Groups may be in groups there."""
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_HERE, _FORK = "host", "fork"
"""Where git's config of this machine says which repository is meant: `queenbee.host`."""
GITHUB, GITLAB, GITEA = _KINDS = ("github", "gitlab", "gitea")
_NAMES = {
    GITLAB: re.compile(r"(?:^|\.)gitlab\b"),
    GITEA: re.compile(r"(?:^|\.)(?:gitea|forgejo|codeberg)\b"),
    "": re.compile(r"(?:^|\.)(?:bitbucket|sr\.ht|azure|visualstudio)\b"),
}
"""What the address of a host of each kind has; any other one is taken for one of GitHub's."""
_WAY = "git config queenbee.{} github://HOST/OWNER/NAME, or gitlab:// or gitea://"
_FOR_SSH = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at a host, such as `me/shop` at `github.com`."""

    host: str
    slug: str
    kind: str = GITHUB

    @classmethod
    def of_remote(
        cls, tree: str, remote: str, *, kind: str | None = None, setting: str = _HERE
    ) -> Repository:
        """Returns that of a remote: as git's config of this machine says, or else its address.
        `kind` insists on what is there. Raises `InvalidInput` where neither names one.
        """
        known = settings(rf"^queenbee\.{setting}$", cwd=tree)
        said = [value for scope, _, value in known if scope in OWNERS]
        asked = ("remote", "get-url", "--push", no_dash(remote))
        address = said[-1] if said else line(*asked, cwd=tree, repository={}) or ""
        found = _ADDRESS.fullmatch(address)
        scheme, host, slug = found.groups() if found else ("", "", "")
        host, slug = _FOR_SSH.get(host.lower(), host.lower()), slug.lstrip("/")
        kind = kind or (scheme if scheme in _KINDS else _kind(host))
        form = _SLUG_OF_GITLAB if kind == GITLAB else _SLUG
        if not (_HOST.fullmatch(host) and form.fullmatch(slug)) or kind not in _KINDS:
            what = f"no code host is known for {mentioned(_LOGIN.sub('', address) or remote)}"
            raise InvalidInput(what, hint=_WAY.format(setting))
        return cls(host, slug, kind)

    def fork(self, tree: str, remote: str) -> str:
        """Returns the name of the fork that a remote is; empty if it is no other one. Raises
        `InvalidInput`.
        """
        found = Repository.of_remote(tree, remote, kind=self.kind, setting=_FORK).slug.lower()
        return "" if found == self.slug.lower() else found

    def __str__(self) -> str:
        return f"{self.host}/{self.slug}"


def _kind(host: str) -> str:
    return next((kind for kind, form in _NAMES.items() if form.search(host)), GITHUB)
