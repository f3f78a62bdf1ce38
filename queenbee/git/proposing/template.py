"""The repository's template of pull requests, which the body of one begins with at its host."""

from __future__ import annotations

from contextlib import suppress

from queenbee.core.command_lines import no_dash
from queenbee.errors import ExternalFailure
from queenbee.git.run import git

_FOLDERS = (".github/", ".gitea/", "", "docs/")
_PLACES = (
    *(f"{folder}pull_request_template.{end}" for folder in _FOLDERS for end in ("md", "txt")),
    ".gitlab/merge_request_templates/default.md",
)
"""Where hosts look for it, in lower case, the first one first."""
_MOST_BYTES = 20_000


def template_at(tree: str, commit: str) -> str:
    """Returns the template that a commit has; empty if it has none, or one of more than 20 KB."""
    asked = ("ls-tree", "-l", "-z", "--full-tree", no_dash(commit))
    folders = sorted({f"{each.rpartition('/')[0]}/" for each in _PLACES if "/" in each})
    with suppress(ExternalFailure, ValueError):
        found = git(*asked, cwd=tree, repository={})
        found += git(*asked, "--", *folders, cwd=tree, repository={})
        blobs = dict[str, str]()
        for entry in found.decode().split("\0"):
            about, _, path = entry.partition("\t")
            mode, _, name, size = about.split() if about else ("", "", "", "")
            if mode in ("100644", "100755") and int(size) <= _MOST_BYTES:
                blobs.setdefault(path.lower(), name)
        place = next((each for each in _PLACES if each in blobs), None)
        if place is not None:
            said = git("cat-file", "blob", no_dash(blobs[place]), cwd=tree, repository={})
            return said.decode()
    return ""
