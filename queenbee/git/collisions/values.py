"""What the comparison of worktrees finds: sides, pairs, files and lines."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

Range = tuple[int, int]
"""The first and the last line; the last is below the first for a place between two lines."""


class Side:
    """What one worktree, or the main branch, would bring to a merge."""

    __slots__ = ("branch", "commit", "droid", "head", "name", "notes", "uncommitted", "worktree")

    def __init__(
        self, name: str, *, worktree: str | None, branch: str | None, droid: str | None
    ) -> None:
        self.name = name
        """What it is called in the answer: its branch, or the folder of its worktree."""
        self.worktree = worktree
        """The top of the tree; None for the tip of the main branch."""
        self.branch = branch
        self.droid = droid
        self.head: str | None = None
        self.commit: str | None = None
        """The snapshot that was compared; None if there is nothing to compare."""
        self.uncommitted = 0
        """How many files differ from the last commit."""
        self.notes: list[str] = []
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


class Overlap:
    """Lines that both sides changed, each in a numbering of its own."""

    __slots__ = ("a", "b", "base")

    def __init__(self, base: Range, a: Range, b: Range) -> None:
        self.base = base
        self.a = a
        self.b = b

    def to_dict(self) -> dict[str, object]:
        """Returns the first and last line in the base and on both sides."""
        return {"base": list(self.base), "a": list(self.a), "b": list(self.b)}


class ConflictingFile:
    """A file that git cannot merge by itself."""

    __slots__ = ("kind", "lines", "only_added", "path", "program", "stages")

    def __init__(self, path: str, kind: str, stages: dict[int, tuple[str, str]]) -> None:
        self.path = path
        self.kind = kind
        """`content`, `add/add`, `modify/delete`, `rename`, `mode`, `binary`, `submodule` and so
        on."""
        self.stages = stages
        """Mode and object by stage, as in git's index: 1 the base, 2 the one side, 3 the other."""
        self.lines: list[Overlap] = []
        """Empty where lines say nothing: a binary file, a deletion."""
        self.only_added = False
        """Whether both sides only added lines, at the same places."""
        self.program: str | None = None
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


class Pair:
    """Two sides that would conflict."""

    __slots__ = ("a", "b", "files")

    def __init__(self, a: Side, b: Side, files: Sequence[ConflictingFile]) -> None:
        self.a = a
        self.b = b
        self.files = files

    def to_dict(self) -> dict[str, object]:
        """Returns both sides by name, and the files."""
        return {
            "a": self.a.name,
            "b": self.b.name,
            "files": [each.to_dict() for each in self.files],
        }


class Step:
    """One landing of the suggested order."""

    __slots__ = ("after", "files", "side")

    def __init__(self, side: Side, files: Sequence[str], after: dict[str, list[str]]) -> None:
        self.side = side
        self.files = files
        """What conflicts when it lands at this place; empty if it merges by itself."""
        self.after = after
        """The earlier sides that it conflicts with, each with the files."""

    def to_dict(self) -> dict[str, object]:
        """Returns who lands, and what conflicts with whom."""
        return {"name": self.side.name, "conflicts": list(self.files), "after": self.after}


class Collisions:
    """The answer: who was compared, and who would conflict with whom."""

    __slots__ = ("everybody_adds_to", "order", "pairs", "sides", "target")

    def __init__(self, target: str | None, sides: Sequence[Side], pairs: Sequence[Pair]) -> None:
        self.target = target
        """The main worktree's branch."""
        self.sides = sides
        self.pairs = pairs
        self.everybody_adds_to: Sequence[str] = ()
        """The files that more than one pair conflicted in because both sides only added lines, now
        or at an earlier call, and that the setting `[land] union` does not name.
        """
        self.order: Sequence[Step] | None = None

    def to_dict(self) -> dict[str, object]:
        """Returns everything for `--json`."""
        return {
            "target": self.target,
            "sides": [each.to_dict() for each in self.sides],
            "pairs": [each.to_dict() for each in self.pairs],
            "everybody_adds_to": list(self.everybody_adds_to),
            "order": None if self.order is None else [each.to_dict() for each in self.order],
        }
