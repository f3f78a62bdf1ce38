"""Default names for sprints whose plan gives none: branch, worktree, team, labels.

After the document on sprint beads, "Branch Naming Convention" and "Worktree Path Normalization".
"""

from __future__ import annotations

import os
import re

from queenbee.documents.titles import slug

_NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[./]|[./]$|\.lock$")
_BRANCH = re.compile("[a-zA-Z0-9/_-]+")


def sprint_part(sprint: str) -> str:
    """Returns a sprint number as a branch or label has it: `3a-2b` for `3a.2b`."""
    return sprint.replace(".", "-")


def branch_name(prefix: str, sprint: str, title: str) -> str:
    """Returns `<prefix>/<sprint-id>-<sprint-name>`: `sprint/1-2-auth-api`.

    The document's prefix is the source branch; git cannot have both `main` and `main/1-2-…`.
    """
    return f"{prefix}/{'-'.join(filter(None, [sprint_part(sprint), slug(title)]))}"


def worktree_path(repository: str, branch: str) -> str:
    """Returns the absolute path of `../<repo-name>-worktrees/<branch-name>`.

    `repository` is the absolute path of the repository's top folder.
    """
    root = repository.rstrip("/") or "/"
    return os.path.join(os.path.dirname(root), f"{os.path.basename(root)}-worktrees", branch)


def team_name(sprint: str, title: str) -> str:
    """Returns the team of a sprint that names none: `sprint-2.1-ui`."""
    return "-".join(filter(None, ["sprint", sprint, slug(title)]))


def labels(sprint: str) -> list[str]:
    """Returns the labels of the document's beads: `phase-01` and `sprint-1-2`."""
    match = re.match("([0-9]+)([a-z]*)", sprint)
    assert match is not None
    return [f"phase-{match[1].zfill(2)}{match[2]}", f"sprint-{sprint_part(sprint)}"]


def branch_fault(branch: str) -> str | None:
    """Returns why this cannot be a branch name, or None.

    The document's pattern decides; git refuses four forms that the pattern allows.
    """
    if _BRANCH.fullmatch(branch) is None:
        return "must contain only letters, digits, '/', '_' and '-'"
    if branch.startswith("-"):
        return "must not start with '-'"
    if branch == "HEAD":
        return "must be another name: HEAD is git's own"
    if branch.startswith("/") or branch.endswith("/") or "//" in branch:
        return "must not have an empty part before, after or between its '/'"
    return None


def source_branch_fault(branch: str) -> str | None:
    """Returns why this cannot be a branch of git, or None; unlike ours, it may contain dots."""
    if branch.startswith("-"):
        return "must not start with '-'"
    if _NOT_IN_REF.search(branch):
        return "cannot be a branch: git refuses this name"
    return None


def is_absolute(path: str) -> bool:
    """Returns whether a path is absolute on the system it was written for."""
    if "\0" in path:
        return False
    return path.startswith("/") or re.match(r"[A-Za-z]:[\\/]|\\\\", path) is not None
