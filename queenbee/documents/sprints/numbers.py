"""Numbers of phases and sprints, and the names that a sprint gets from its number and title.

`3a.2b` is sprint 2, letter b, in track a of phase 3. `docs/plans.md`, section "What the numbers
mean"; after the document on sprint beads, "Phase/Sprint Numbering", "Branch Naming Convention" and
"Worktree Path Normalization".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from queenbee.documents.fields import slug

_PHASE = re.compile("[0-9]+[a-z]*")
_SPRINT = re.compile(r"([0-9]+)([a-z]*)\.([0-9]+)([a-z]*)")

_ZEROS = re.compile("(?<![0-9])0+(?=[0-9])")

Natural = tuple[int, str]
"""A whole number as (count of digits, digits): `int` refuses more than 4,300 digits."""


@dataclass(frozen=True, order=True)
class Track:
    """One line of work within a phase: `3`, `3a` or `3ab`."""

    phase: Natural
    letters: str


@dataclass(frozen=True, order=True)
class SprintNumber:
    """The position of a sprint in its plan; a smaller one comes first or runs in parallel."""

    track: Track
    group: Natural
    letters: str


def is_phase(text: str) -> bool:
    """Returns whether the whole text is a phase number such as `3` or `3a`."""
    return _PHASE.fullmatch(text) is not None


def is_sprint(text: str) -> bool:
    """Returns whether the whole text is a sprint number such as `1.2` or `3a.2b`."""
    return _SPRINT.fullmatch(text) is not None


def parse_sprint(text: str) -> SprintNumber:
    """Returns the number; leading zeros are ignored. Raises `ValueError` for anything else."""
    match = _SPRINT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a sprint number")
    phase, track, group, letters = match.groups()
    return SprintNumber(Track(_natural(phase), track), _natural(group), letters)


def without_zeros(sprint: str) -> str:
    """Returns a sprint number without leading zeros: `1.02` and `1.2` are the same sprint."""
    return _ZEROS.sub("", sprint)


def phase_of(sprint: str) -> str:
    """Returns the phase part of a sprint number, as it is written."""
    return sprint.partition(".")[0]


def is_before(need: str, sprint: str) -> bool:
    """Returns whether a sprint waits for another, if only in the end, by their numbers alone."""
    one, other = parse_sprint(need), parse_sprint(sprint)
    if one.track.phase != other.track.phase:
        return one.track.phase < other.track.phase
    if one.track != other.track:
        return other.track.letters.startswith(one.track.letters)
    return one.group < other.group


def sort_sprints(sprints: Iterable[str]) -> list[str]:
    """Returns sprint numbers in the plan's order: `1.2` before `1.10`, `3a.1` before `3b.1`."""
    return sorted(sprints, key=lambda text: (parse_sprint(text), text))


def sort_phases(phases: Iterable[str]) -> list[str]:
    """Returns phase numbers in the order of the plan."""
    return sorted(phases, key=lambda text: (parse_sprint(f"{text}.1"), text))


def _natural(digits: str) -> Natural:
    stripped = digits.lstrip("0")
    return (len(stripped), stripped)


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
