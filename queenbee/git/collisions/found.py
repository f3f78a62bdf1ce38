"""What the comparison of worktrees finds: sides, pairs, files and lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.lines import Overlap
    from queenbee.store.git_files.worktrees import Worktree


@dataclass(frozen=True, slots=True)
class Changes:
    """What a worktree has that is not committed."""

    place: Worktree
    parents: list[str]
    """The last commit, and those that are being merged."""
    modes: dict[str, int]
    """The changed files, each with its mode; 0 for one that is not there."""
    committed: list[str]
    """Those of them that the last commit or the index has."""


@dataclass(slots=True, eq=False)
class Side:
    """What one worktree, or the main branch, would bring to a merge."""

    name: str
    """What it is called in the answer: its branch, or the folder of its worktree."""
    worktree: str | None
    """The top of the tree; None for the tip of the main branch."""
    branch: str | None
    droid: str | None = None
    head: str | None = None
    commit: str | None = None
    """What was compared, a snapshot if files of others were met; None if there is nothing."""
    changes: Changes | None = None
    """What is not committed, until a snapshot has it."""
    uncommitted: int = 0
    """How many files differ from the last commit."""
    notes: list[str] = field(default_factory=list)
    """What was left out of the comparison, and why."""

    def to_dict(self) -> dict[str, object]:
        """Returns who this is, and what of it was compared."""
        return {
            "name": self.name,
            "worktree": self.worktree,
            "branch": self.branch,
            "droid": self.droid,
            "head": self.head,
            "uncommitted": self.uncommitted,
            "compared": self.commit is not None,
            "notes": self.notes,
        }


@dataclass(slots=True)
class ConflictingFile:
    """A file that git cannot merge by itself."""

    path: str
    kind: str
    """`content`, `add/add`, `modify/delete`, `rename`, `mode`, `binary`, `submodule` and so on."""
    stages: dict[int, tuple[str, str]]
    """Mode and object by stage, as in git's index: 1 the base, 2 the one side, 3 the other."""
    lines: list[Overlap] = field(default_factory=list)
    """Empty where lines say nothing: a binary file, a deletion."""
    only_added: bool = False
    """Whether both sides only added lines, at the same places."""
    is_joined: bool = False
    """Whether `queen land` keeps both sides of it by itself."""
    program: str | None = None
    """A filter or merge driver that git would run for this file, and that was not run."""

    def to_dict(self) -> dict[str, object]:
        """Returns the file, the kind of conflict, and the lines."""
        return {
            "path": self.path,
            "kind": self.kind,
            "lines": [each.to_dict() for each in self.lines],
            "only_added": self.only_added,
            "program": self.program,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides that would conflict."""

    a: Side
    b: Side
    files: Sequence[ConflictingFile]

    def to_dict(self) -> dict[str, object]:
        """Returns both sides by name, and the files."""
        return {
            "a": self.a.name,
            "b": self.b.name,
            "files": [each.to_dict() for each in self.files],
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One landing of the suggested order."""

    side: Side
    files: Sequence[str]
    """What conflicts when it lands at this place; empty if it merges by itself."""
    after: dict[str, list[str]]
    """The earlier sides that it conflicts with, each with the files."""

    def to_dict(self) -> dict[str, object]:
        """Returns who lands, and what conflicts with whom."""
        return {"name": self.side.name, "conflicts": list(self.files), "after": self.after}


@dataclass(frozen=True, slots=True)
class Failing:
    """The smallest combination that was found to fail, and the end of what the check printed."""

    sides: Sequence[str]
    """By name; none if the main branch fails by itself."""
    output: str


@dataclass(slots=True)
class Together:
    """What the check said of all worktrees together."""

    command: str
    sides: Sequence[str] = ()
    """Those that were checked together, by name."""
    left_out: Sequence[str] = ()
    """Those that do not merge by themselves."""
    failing: list[Failing] = field(default_factory=list)
    checks: int = 0


@dataclass(slots=True)
class Collisions:
    """The answer: who was compared, and who would conflict with whom."""

    target: str | None
    """The main worktree's branch."""
    sides: Sequence[Side]
    pairs: Sequence[Pair]
    everybody_adds_to: Sequence[str] = ()
    """The files that more than one pair conflicted in because both sides only added lines, now or
    at an earlier call, and that the setting `[land] union` does not name.
    """
    order: Sequence[Step] | None = None
    together: Together | None = None
    """What the check said of all that merge by themselves, if that was asked for."""

    def to_dict(self) -> dict[str, object]:
        """Returns everything for `--json`."""
        return {
            "target": self.target,
            "sides": [each.to_dict() for each in self.sides],
            "pairs": [each.to_dict() for each in self.pairs],
            "everybody_adds_to": list(self.everybody_adds_to),
            "order": None if self.order is None else [each.to_dict() for each in self.order],
            "check": self.together,
        }
