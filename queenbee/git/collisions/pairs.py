"""Each two snapshots merged in memory: one process for all of them, and what it says.

The program that answers is git's own merge, so its verdict is git's. It works in the run's folder
if a merge driver is configured, which would put files where it works.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.conflicts.markers import Conflict
from queenbee.core.conflicts.rules import both_added
from queenbee.errors import ExternalFailure
from queenbee.git.collisions.found import ConflictingFile
from queenbee.git.collisions.reach import Reach
from queenbee.git.lines import CHANGES, hunks, overlaps
from queenbee.git.run import git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from queenbee.git.collisions.cache import Cache
    from queenbee.store.git_files.worktrees import Worktree

LEAST_GIT = (2, 38)
_MERGE_TREE = ("merge-tree", "--write-tree", "--stdin", "--allow-unrelated-histories")
_KINDS = {
    "CONFLICT (modify/delete)": "modify/delete",
    "CONFLICT (rename/rename)": "rename/rename",
    "CONFLICT (rename/delete)": "rename/delete",
    "CONFLICT (rename involved in collision)": "rename/add",
    "CONFLICT (binary)": "binary",
    "CONFLICT (distinct modes)": "mode",
    "CONFLICT (distinct types)": "mode",
    "CONFLICT (file/directory)": "file/directory",
    "CONFLICT (directory rename suggested)": "directory rename",
    "CONFLICT (directory rename collision)": "directory rename",
    "CONFLICT (directory rename unclear split)": "directory rename",
    "CONFLICT(directory rename unclear split)": "directory rename",
    "CONFLICT (file in way of directory rename)": "directory rename",
}
"""Git's names of conflicts, which never change, and ours. The others follow from the stages."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What came out of a merge: the tree, and the files that conflict."""

    tree: str
    files: list[ConflictingFile]


class Merger:
    """Merges commits in the cache's objects, for the worktree whose attributes count."""

    def __init__(self, cache: Cache, place: Worktree, is_joined: Callable[[str], bool]) -> None:
        self.is_joined = is_joined
        """Whether landing keeps both additions to a file by itself."""
        self._cache = cache
        self._place = place
        self._programs = cache.programs(place)
        self._cwd: str | None = None
        if any(key.startswith("merge.") for key in self._programs):
            self._cwd = self._apart()

    def merge(self, pairs: Sequence[tuple[str, str]]) -> list[Merged]:
        """Returns what comes out of each pair. Raises `ExternalFailure`."""
        if not pairs:
            return []
        lines = "".join(f"{a} {b}\n" for a, b in pairs).encode()
        try:
            said = self._git(*_MERGE_TREE, stdin=lines)
        except ExternalFailure as error:
            self._refuse_old_git(error)
            raise
        return list(_parsed(said, pairs))

    def reach(self, commits: Sequence[str]) -> Reach:
        """Returns what tells which of these commits could conflict."""
        return Reach(commits, partial(self._cache.git, place=self._place, cwd=self._cwd))

    def joins(self, file: ConflictingFile) -> bool:
        """Returns whether landing joins a file that was located, so that nobody has to."""
        return file.is_joined and self.is_joined(file.path)

    def settled(self, merged: Merged) -> str | None:
        """Returns the tree of a merge, with one side of the files that landing joins by name; None
        if others conflict.
        """
        if any(not self.is_joined(each.path) or 2 not in each.stages for each in merged.files):
            return None
        if not merged.files:
            return merged.tree
        index = os.path.join(self._cache.run, f"index-{os.urandom(6).hex()}")
        run = partial(self._cache.git, place=self._place, index=index, cwd=self._cwd)
        run("read-tree", merged.tree)
        rows = [
            f"{mode} {blob}\t".encode() + os.fsencode(each.path) + b"\0"
            for each in merged.files
            for mode, blob in [each.stages[2]]
        ]
        run("update-index", "--add", "-z", "--index-info", stdin=b"".join(rows))
        return run("write-tree").decode().strip()

    def commit(self, tree: str, *parents: str) -> str:
        """Returns a commit of a tree, for the next merge of a chain."""
        words = [f"-p{each}" for each in parents]
        return self._git("commit-tree", *words, no_dash(tree)).decode().strip()

    def locate(self, files: Iterable[ConflictingFile]) -> None:
        """Sets the lines of these files, by one diff of all of them."""
        wanted: dict[tuple[str, str], int] = {}
        texts = [each for each in files if each.kind == "content" and len(each.stages) == 3]
        for each in texts:
            for side in (2, 3):
                wanted.setdefault((each.stages[1][1], each.stages[side][1]), len(wanted))
        if not wanted:
            return
        # A line of a text has a sign before it, and is never taken for a heading.
        sections = (b"\n" + self._diff(list(wanted))).split(b"\ndiff --git ")[1:]
        diffs = {int(each.split(b"\n", 1)[0].rpartition(b"/")[2]): each for each in sections}
        for each in texts:
            base = each.stages[1][1]
            of_a, of_b = (diffs.get(wanted[base, each.stages[side][1]], b"") for side in (2, 3))
            if b"\nBinary files " in of_a + of_b:
                each.kind = "binary"
                continue
            each.lines = overlaps(hunks(of_a.split(b"\n")), hunks(of_b.split(b"\n")))
            each.only_added = bool(each.lines) and all(
                one.base[1] < one.base[0] for one in each.lines
            )
            each.is_joined = each.only_added and all(
                both_added(Conflict(one.added[0], [], one.added[1], before=[], after=[]))
                for one in each.lines
            )

    def _diff(self, blobs: Sequence[tuple[str, str]]) -> bytes:
        """Returns git's changes, without context, from the one to the other of each pair; the
        names of the files are their places in the list.
        """
        trees = []
        for side in (0, 1):
            rows = b"".join(
                f"100644 blob {pair[side]}\t{number}\n".encode()
                for number, pair in enumerate(blobs)
            )
            trees.append(self._git("mktree", stdin=rows).decode().strip())
        return self._git("diff-tree", "-p", "--no-renames", *CHANGES, *map(no_dash, trees))

    def programs(self, paths: Sequence[str]) -> dict[str, str]:
        """Returns the filter or merge driver that git would run for each of these paths."""
        known = {key.rpartition(".")[0] for key in self._programs}
        if not known or not paths:
            return {}
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        said = self._git("check-attr", "-z", "--stdin", "merge", "filter", stdin=names)
        fields = said.split(b"\0")
        found: dict[str, str] = {}
        for path, attribute, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
            name = f"{attribute.decode()}.{os.fsdecode(value)}"
            if name in known:
                found.setdefault(os.fsdecode(path), name)
        return found

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return self._cache.git(*arguments, place=self._place, stdin=stdin, cwd=self._cwd)

    def _apart(self) -> str:
        """Returns a folder with this worktree's attributes and nothing else.

        Git puts the files that it hands to a merge driver where it works.
        """
        folder = os.path.join(self._cache.run, "attributes")
        os.makedirs(folder, exist_ok=True)
        wanted = ("--", ".gitattributes", "**/.gitattributes")
        listed = self._cache.git(
            *("--glob-pathspecs", "ls-files", "-z", "--cached", "--others", *wanted),
            place=self._place,
        )
        for name in dict.fromkeys(listed.split(b"\0")):
            source = os.path.join(self._place.path, os.fsdecode(name))
            target = os.path.join(folder, os.fsdecode(name))
            with suppress(OSError):
                if not name or os.path.islink(source):
                    continue
                with open(source, "rb") as file:
                    data = file.read(1024 * 1024)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "wb") as copy:
                    copy.write(data)
        return folder

    def _refuse_old_git(self, error: ExternalFailure) -> None:
        said = git("version", cwd=self._place.path).decode(errors="replace").split()
        numbers = [int(each) for each in said[2].split(".")[:2] if each.isdigit()]
        if tuple(numbers) < LEAST_GIT:
            raise ExternalFailure(
                f"git {said[2]} cannot merge in memory",
                hint="install git 2.38 or later",
                program="git",
            ) from error


def _parsed(said: bytes, pairs: Sequence[tuple[str, str]]) -> Iterable[Merged]:
    """Yields the merges of one answer: `status NUL tree NUL [files NUL messages] NUL` for each."""
    fields = iter(said.split(b"\0"))
    for pair in pairs:
        status, tree = next(fields).strip(), next(fields).decode()
        entries, messages = [], []
        if status != b"1":
            entries = list(iter(fields.__next__, b""))
            messages = list(_messages(fields))
        else:
            next(fields)
        yield Merged(tree, _files(entries, messages, pair))


def _messages(fields: Iterator[bytes]) -> Iterator[tuple[list[str], str]]:
    for number in iter(fields.__next__, b""):
        paths = [os.fsdecode(next(fields)) for _ in range(int(number))]
        kind = next(fields).decode()
        next(fields)  # The same in words.
        yield paths, kind


def _files(
    entries: Iterable[bytes],
    messages: Sequence[tuple[list[str], str]],
    pair: tuple[str, str],
) -> list[ConflictingFile]:
    stages: dict[str, dict[int, tuple[str, str]]] = {}
    for entry in entries:
        facts, _, name = entry.partition(b"\t")
        mode, oid, stage = facts.decode().split(" ")
        stages.setdefault(_own_name(os.fsdecode(name), pair), {})[int(stage)] = (mode, oid)
    said: dict[str, str] = {}
    for paths, kind in messages:
        meant = [_own_name(path, pair) for path in paths]
        if kind in _KINDS:
            for path in meant:
                said.setdefault(path, _KINDS[kind])
            # A conflict without a file of its own (an unclear split of a folder) still is one.
            if not any(path in stages for path in meant):
                stages[meant[0]] = {}
        elif kind.startswith("CONFLICT (submodule"):
            said.setdefault(meant[0], "submodule")
    return [
        ConflictingFile(path, said.get(path) or _kind(found), found)
        for path, found in sorted(stages.items())
    ]


def _own_name(path: str, pair: tuple[str, str]) -> str:
    """Returns the name of a file; git puts `~` and its side behind it where a folder has it."""
    for commit in pair:
        path = path.removesuffix(f"~{commit}")
    return path


def _kind(stages: Mapping[int, tuple[str, str]]) -> str:
    if any(mode == "160000" for mode, _ in stages.values()):
        return "submodule"
    if 1 not in stages:
        return "add/add"
    if 2 not in stages or 3 not in stages:
        return "modify/delete"
    (mode, base), (mode_a, a), (mode_b, b) = stages[1], stages[2], stages[3]
    if mode_a != mode_b and mode not in (mode_a, mode_b):
        return "mode"
    return "content" if len({base, a, b}) == 3 or a != b else "mode"
