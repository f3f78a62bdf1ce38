"""Names that a sprint is given when its plan gives none: branch, worktree, team, labels.

After the document on sprint beads, "Branch Naming Convention" and "Worktree Path Normalization".
"""

from __future__ import annotations

import os
import re
import unicodedata

BRANCH_PATTERN = "^[a-zA-Z0-9/_-]+$"

_BRANCH = re.compile(BRANCH_PATTERN[1:-1])
_SLUG_LENGTH = 80
"""A branch is also the name of a folder, and file systems stop at 255 bytes."""


def slug(title: str) -> str:
    """Returns a title in lower case, with `-` for spaces and without special characters.

    Accents go and leave their letter; letters that ASCII has no form of go. May be empty.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    kept = re.sub(r"[^a-z0-9_-]", "", re.sub(r"\s+", "-", plain.strip()))
    short = re.sub(r"-{2,}", "-", kept).strip("-")
    if len(short) <= _SLUG_LENGTH:
        return short
    return short[:_SLUG_LENGTH].rpartition("-")[0] or short[:_SLUG_LENGTH]


def sprint_part(sprint: str) -> str:
    """Returns a sprint number as a branch or label has it: `3a-2b` for `3a.2b`."""
    return sprint.replace(".", "-")


def branch_name(source_branch: str, sprint: str, title: str) -> str:
    """Returns `<source-branch>/<sprint-id>-<sprint-name>`: `main/1-2-auth-api`."""
    return f"{source_branch}/{'-'.join(filter(None, [sprint_part(sprint), slug(title)]))}"


def worktree_path(repository: str, branch: str) -> str:
    """Returns the absolute path of `../<repo-name>-worktrees/<branch-name>`.

    `repository` is the absolute path of the repository's top folder.
    """
    root = repository.rstrip("/") or "/"
    return os.path.join(os.path.dirname(root), f"{os.path.basename(root)}-worktrees", branch)


def team_name(sprint: str, title: str) -> str:
    """Returns the team of a sprint that names none: a team of its own, `sprint-2.1-ui`."""
    return "-".join(filter(None, ["sprint", sprint, slug(title)]))


def labels(sprint: str) -> list[str]:
    """Returns the labels that the document's beads carry: `phase-01` and `sprint-1-2`."""
    match = re.match("([0-9]+)([a-z]*)", sprint)
    assert match is not None
    return [f"phase-{match[1].zfill(2)}{match[2]}", f"sprint-{sprint_part(sprint)}"]


def branch_fault(branch: str) -> str | None:
    """Returns why this is no branch name, or None.

    The document's pattern decides; of what it lets through, git refuses three forms.
    """
    if _BRANCH.fullmatch(branch) is None:
        return "must be made of letters, digits, '/', '_' and '-' only"
    if branch.startswith("-"):
        return "must not begin with '-'"
    if branch.startswith("/") or branch.endswith("/") or "//" in branch:
        return "must not have an empty part before, after or between its '/'"
    return None


def is_absolute(path: str) -> bool:
    """Returns whether a path is absolute, on the system it was written for."""
    if "\0" in path:
        return False
    return path.startswith("/") or re.match(r"[A-Za-z]:[\\/]|\\\\", path) is not None
