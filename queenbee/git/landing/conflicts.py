"""The conflicts of a merge or a rebase, and joining those that need nobody.

The rules are in `core.conflicts.rules`; here is which of them count for a file.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.conflicts.appended import everybody_appends_to
from queenbee.core.text import mentioned, named, one_line, quotation, suggested
from queenbee.errors import InvalidInput, QueenError
from queenbee.git.landing.commands import git
from queenbee.git.landing.refusals import SHOWN, Unresolved
from queenbee.git.run import user_git
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from queenbee.core.conflicts.rules import Joint, Rule
    from queenbee.core.fold import Fields
    from queenbee.git.landing.commands import Changed, Commands

OFF = "off"
_SHOWN = 8
"""Lines of one place that are shown before the target moves."""
_MOST_CHARS = 120
_MOST_LEFT = 120
"""Lines of all that is left in conflict."""
_MOST_WANTED, _WANTED_CHARS = 3, 60
_MOST_BYTES = 1 << 20
_STAGES = frozenset({"1", "2", "3"})
_REGULAR = frozenset({"100644", "100755"})


class Joins:
    """Which rules join the conflicts of which files: the settings `[land] join` and `union`."""

    def __init__(
        self, union: Sequence[str] = (), which: str = "on", is_checked: bool = False
    ) -> None:
        try:
            everybody_appends_to("", which, union)
        except ValueError as error:
            raise InvalidInput(
                f"land.union: {error}", hint="queen config set land.union CHANGELOG.md"
            ) from error
        self._union = union
        self._which = which
        self.is_checked = is_checked
        """Whether a check runs on the result: some rules count only then."""

    def keeps_both(self, path: str) -> bool:
        """Returns whether both additions to a file are kept."""
        return everybody_appends_to(path, self._which, self._union)

    def rules_for(self, path: str, have_parted_lately: Callable[[], bool]) -> Mapping[str, Rule]:
        """Returns the rules that count for a file; those of the hive have their own."""
        if self._which == OFF or path.startswith(".beads/"):
            return {}
        from queenbee.core.conflicts.rules import (  # noqa: PLC0415 - start-up
            APPENDED,
            KEPT,
            SURE,
            in_file,
        )

        if self.keeps_both(path):
            return APPENDED
        are_kept = self.is_checked and (self._which == "all" or have_parted_lately())
        return in_file(path, KEPT if are_kept else SURE)


@dataclass(frozen=True, slots=True)
class Joined:
    """A file whose conflicts were joined: the rule for each, the first and last of its lines in the
    result, and these lines.
    """

    path: str
    rules: Sequence[str]
    lines: Sequence[Sequence[int]]
    text: Sequence[str]

    @classmethod
    def of(cls, path: str, places: Sequence[Joint]) -> Joined:
        """Returns what was joined in a file."""
        return cls(
            path,
            [each.rule for each in places],
            [[each.first, each.first + len(each.lines) - 1] for each in places],
            [b"".join(each.lines).decode(errors="replace") for each in places],
        )

    @classmethod
    def promised(cls, kept: Fields) -> list[Joined]:
        """Returns what a promise says was joined of a branch, by whoever landed it."""
        said = kept.get("joined")
        found = []
        for each in said if isinstance(said, list) else []:
            with suppress(TypeError, ValueError):
                one = cls(**each)
                one.shown()
                found.append(one)
        return found

    def sentences(self) -> list[str]:
        """Returns where, and by which rule: one sentence for each place."""
        return [
            f"joined {mentioned(one_line(self.path))} lines {first}-{last}: {rule}"
            for rule, (first, last) in zip(self.rules, self.lines, strict=True)
        ]

    def shown(self) -> list[str]:
        """Returns the sentences, each with the joined lines; the first of them if they are many."""
        told = []
        for sentence, text in zip(self.sentences(), self.text, strict=True):
            lines = text.splitlines()
            told += [sentence, *(f"  {one_line(each, _MOST_CHARS)}" for each in lines[:_SHOWN])]
            told += [f"  … {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        return told


def tell_joined(tell: Callable[[str], None], joined: Sequence[Joined]) -> None:
    """Shows what was joined."""
    for each in joined:
        for said in each.shown():
            tell(said)


def left_places(tree: str, files: Sequence[str], sides: Mapping[str, str]) -> list[str]:
    """Returns the places that git marked in files that are left in conflict: for each its lines,
    and what is there, the first ones if they are many; and for each file what both sides wanted.

    `sides` has the commits that only one side has, by its name.
    """
    told: list[str] = []
    for path in files:
        name, places = mentioned(one_line(path)), _marked_places(_read(tree, path))
        told += [f"{name}: {said}" for said in _wanted(tree, path, sides)]
        told += [] if places else [f"{name}: one side deleted, renamed or replaced it: git status"]
        for first, lines in places:
            told.append(f"{name} lines {first}-{first + len(lines) - 1}:")
            told += [f"  {one_line(each, _MOST_CHARS)}" for each in lines]
    more = [f"  … {len(told) - _MOST_LEFT} more lines"] if len(told) > _MOST_LEFT else []
    return told[:_MOST_LEFT] + more


def _wanted(tree: str, path: str, sides: Mapping[str, str]) -> Iterator[str]:
    """Yields the subjects of the commits with which each side changed a file, the newest first."""
    for name, commits in sides.items():
        how = ("--no-merges", "--no-commit-header", "--format=%s", f"--max-count={_MOST_WANTED}")
        asked = ("--literal-pathspecs", "rev-list", *how, no_dash(commits), "--", path)
        subjects = user_git(*asked, cwd=tree)[1].decode(errors="replace").splitlines()
        if subjects:
            said = ", ".join(quotation(one_line(each, _WANTED_CHARS)) for each in subjects)
            yield f"{named([name])} wanted {said}"


def with_markers(tree: str, changed: Changed) -> dict[str, str]:
    """Returns the files with more places between git's markers than before: those of a conflict
    that somebody forgot, each with its first line, as `a.py:3`.
    """
    found = {}
    for path, (before, _) in changed.items():
        if places := _marked_places(_read(tree, path)):
            old = (
                git("cat-file", "blob", no_dash(before), cwd=tree) if set(before) != {"0"} else b""
            )
            if len(places) > len(_marked_places(old)):
                found[path] = f"{path}:{places[0][0]}"
    return found


def _read(tree: str, path: str) -> bytes:
    with suppress(OSError, QueenError):
        return safe_open.read(os.path.join(tree, path), _MOST_BYTES)
    return b""


def _marked_places(text: bytes) -> list[tuple[int, list[str]]]:
    """Returns the number of the first line of each place between git's markers, and its lines."""
    found: list[tuple[int, list[str]]] = []
    is_open = False
    if b"\n>>>>>>> " not in text:
        return found
    for number, line in enumerate(text.decode(errors="replace").split("\n"), 1):
        if line.startswith("<<<<<<< "):
            is_open = True
            found.append((number, []))
        if is_open:
            found[-1][1].append(line)
            is_open = not line.startswith(">>>>>>> ")
    return found


class Unmerged:
    """The files of a worktree that are in conflict with what is merged or replayed there;
    `target_stage` is the target's side: 2 while commits are rebased, else 3.
    """

    def __init__(
        self, tree: str, target_stage: int, other: str = "MERGE_HEAD", listed: bytes | None = None
    ) -> None:
        """`listed` are the entries of a merge in memory; by default those of the index."""
        if listed is None:
            listed = git("ls-files", "--unmerged", "-z", cwd=tree)
        self._tree = tree
        self._other = other
        self._order = (str(target_stage), "1", str(5 - target_stage))
        self.joined: list[Joined] = []
        """What `join` resolved."""
        self._entries: dict[str, dict[str, tuple[str, str]]] = {}
        for entry in listed.split(b"\0"):
            if entry:
                said, _, path = entry.partition(b"\t")
                mode, name, stage = said.decode().split()
                self._entries.setdefault(os.fsdecode(path), {})[stage] = (mode, name)

    @property
    def files(self) -> list[str]:
        """The files, from the top of the worktree."""
        return list(self._entries)

    def not_added(self, files: Sequence[str]) -> Unresolved | None:
        """Returns the refusal where no file has markers any more, and they have only to be added;
        None where there is something to resolve.
        """
        if any(_marked_places(_read(self._tree, each)) for each in files):
            return None
        if not all(map(self.marked, files)):  # Git marks nothing in them.
            return None
        return Unresolved(
            f"resolved, but not added: {named(files, SHOWN)}",
            hint=f"{suggested('git add', *files)} && queen land --continue",
            files=files,
        )

    def only_added(self) -> list[str]:
        """Returns the files in which both sides only added lines at one place."""
        from queenbee.core.conflicts.markers import both_only_added  # noqa: PLC0415 - start-up

        marked = {path: self.marked(path) for path in self._entries}
        return [path for path, text in marked.items() if text and both_only_added(text)]

    def left(self, joins: Joins) -> list[str]:
        """Returns the files whose conflicts no rule joins, and changes nothing."""
        return [each for each in self._entries if self._joined(each, joins) is None]

    def join(self, commands: Commands, joins: Joins) -> list[str]:
        """Resolves the files whose conflicts the rules join; returns the others."""
        return [each for each in self._entries if not self._join(commands, each, joins)]

    def joined_in(self, files: str, joins: Joins) -> str:
        """Returns the tree of a merge in memory with the files that the rules join as they join
        them.
        """
        entries = b""
        for path, stages in self._entries.items():
            if joined := self._joined(path, joins):
                text, places = joined
                blob = git("hash-object", "-w", "--stdin", cwd=self._tree, stdin=text).strip()
                mode = stages[self._order[0]][0].encode()
                entries += b"%s %s\t%s\0" % (mode, blob, os.fsencode(path))
                self.joined.append(Joined.of(path, places))
        import tempfile  # noqa: PLC0415 - start-up

        with tempfile.TemporaryDirectory() as folder:
            run = partial(git, cwd=self._tree, repository={"GIT_INDEX_FILE": f"{folder}/index"})
            run("read-tree", no_dash(files))
            run("update-index", "-z", "--index-info", stdin=entries)
            return run("write-tree").decode().strip()

    def _join(self, commands: Commands, path: str, joins: Joins) -> bool:
        joined = self._joined(path, joins)
        if joined is None:
            return False
        text, places = joined
        blob = git("hash-object", "-w", "--stdin", cwd=self._tree, stdin=text).decode().strip()
        before = commands.step.fields.get("joined")
        known: Fields = before if isinstance(before, dict) else {}
        commands.step.write(commands.step.name, joined={**known, path: blob})
        # The file before the index: a merge can be taken back at any moment in between.
        filtered = git("cat-file", "--filters", f"--path={path}", no_dash(blob), cwd=self._tree)
        safe_open.write(os.path.join(self._tree, path), filtered, os.O_TRUNC)
        literally = {"GIT_LITERAL_PATHSPECS": "1"}
        done = commands("add", "--", path, cwd=self._tree, env=literally)
        if done.status != 0:
            return False
        self.joined.append(Joined.of(path, places))
        return True

    def _joined(self, path: str, joins: Joins) -> tuple[bytes, list[Joint]] | None:
        from queenbee.core.conflicts.rules import join  # noqa: PLC0415 - start-up

        rules = joins.rules_for(path, lambda: self._have_parted_lately)
        marked = self.marked(path) if rules else None
        return join(marked, rules) if marked is not None else None

    @cached_property
    def _have_parted_lately(self) -> bool:
        """Whether the first commit that only one side has is of the last two weeks."""
        from queenbee.core.conflicts.rules import LATELY_S  # noqa: PLC0415 - start-up

        sides = (no_dash(f"HEAD...{self._other}"), "--")
        status, out, _ = user_git("rev-list", "--timestamp", *sides, cwd=self._tree)
        times = [int(each.split()[0]) for each in out.splitlines()]
        return status == 0 and time.time() - min(times, default=0) <= LATELY_S

    def marked(self, path: str) -> bytes | None:
        """Returns the file with its conflicts marked, the target's side first; None if it has not
        three versions of one kind, or one of them has what would be read as a marker.
        """
        stages = self._entries[path]
        modes = {mode for mode, _ in stages.values()}
        if stages.keys() != _STAGES or len(modes) != 1 or not modes <= _REGULAR:
            return None
        import tempfile  # noqa: PLC0415 - start-up

        from queenbee.core.conflicts.markers import (  # noqa: PLC0415 - start-up
            MARKER_SIZE,
            holds_marker,
        )

        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for stage in self._order:
                text = git("cat-file", "blob", no_dash(stages[stage][1]), cwd=self._tree)
                if holds_marker(text):
                    return None
                paths.append(os.path.join(folder, stage))
                with open(paths[-1], "wb") as file:
                    file.write(text)
            size = f"--marker-size={MARKER_SIZE}"
            return _merge_file("--diff3", size, "--", *paths, cwd=self._tree)


def _merge_file(*arguments: str, cwd: str) -> bytes | None:
    """Returns the marked text, or None if git cannot merge it. Its status is that of conflicts."""
    status, out, _ = user_git("merge-file", "--stdout", "--quiet", *arguments, cwd=cwd)
    return out if 0 < status < 128 else None
