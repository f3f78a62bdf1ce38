"""Repositories with worktrees whose work conflicts or not, from a seed; and what git merges of it.

The truth comes from a clone in which everything is committed and merged by `git merge`: no code of
QueenBee takes part in it.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from hives import git

Stages = dict[str, dict[int, tuple[str, str]]]
"""What git's index says of each file that is not merged: mode and object by stage."""

MERGED = "merged"
"""In place of a content with conflicts in it, which name the sides as git was called."""

ATTRIBUTES = "*.list merge=union\n*.txt text eol=crlf\n*.dat binary\n"
TREES = 4
PAIRS = TREES * (TREES - 1) // 2


class World:
    """A repository with a few worktrees, each with commits and uncommitted work of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.repo = folder / "repo"
        self.trees = [folder / f"tree{number}" for number in range(TREES)]
        self._begin()
        for number, tree in enumerate(self.trees):
            git(self.repo, "worktree", "add", "-q", "-b", f"topic{number}", str(tree))
        for tree in self.trees:
            for _ in range(self.random.randint(0, 2)):
                self._work(tree)
                git(tree, "add", "-A")
                git(tree, "commit", "-q", "--allow-empty", "-m", "work")
            self._work(tree)
            if self.random.random() < 0.3:
                git(tree, "add", "-A", "--", ".")
                self._work(tree)

    def _begin(self) -> None:
        self.repo.mkdir(parents=True)
        git(self.repo, "init", "-q")
        git(self.repo, "config", "core.autocrlf", "false")
        write(self.repo / ".gitattributes", ATTRIBUTES.encode())
        for path in ("src/app.py", "src/deep/er/tax.py", "src/ui.py", "docs/a.md", "docs/b.md"):
            write(self.repo / path, self._text(30))
        write(self.repo / "notes.txt", self._text(20).replace(b"\n", b"\r\n"))
        write(self.repo / "mixed.md", self._text(20).replace(b"\n", b"\r\n"))
        write(self.repo / "names.list", self._text(10))
        write(self.repo / "logo.dat", self.random.randbytes(300))
        write(self.repo / "picture.png", b"\0" + self.random.randbytes(300))
        write(self.repo / "run.sh", self._text(8))
        (self.repo / "link").symlink_to("src/app.py")
        write(self.repo / "plain ü name", self._text(6))
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-qm", "base")

    def _text(self, lines: int) -> bytes:
        return b"".join(b"line %d of %d\n" % (n, self.random.randint(0, 9)) for n in range(lines))

    def _work(self, tree: Path) -> None:
        kinds: list[tuple[int, Callable[[Path], None]]] = [
            (9, self._edit), (3, self._append), (2, self._rename), (2, self._add_same),
            (1, self._delete), (1, self._mode), (1, self._binary), (1, self._crlf),
            (2, self._union), (1, self._folder), (1, self._link), (1, self._add_own),
            (1, self._replace_by_folder),
        ]  # fmt: skip
        weights, steps = zip(*kinds, strict=True)
        for step in self.random.choices(steps, weights, k=self.random.randint(1, 3)):
            step(tree)

    def _edit(self, tree: Path) -> None:
        path = self._any(tree, ("src/app.py", "src/ui.py", "docs/a.md", "src/deep/er/tax.py"))
        if path is not None:
            lines = path.read_bytes().splitlines(keepends=True)
            first = self.random.choice((2, 3, 4, 5, 12, 20)) % max(len(lines), 1)
            count = self.random.randint(0, 3)
            new = [b"changed %d\n" % self.random.randint(0, 2)] * self.random.randint(0, 2)
            lines[first : first + count] = new
            path.write_bytes(b"".join(lines))

    def _append(self, tree: Path) -> None:
        path = self._any(tree, ("docs/b.md", "src/ui.py", "notes.txt"))
        if path is not None:
            path.write_bytes(path.read_bytes() + b"added %d\n" % self.random.randint(0, 4))

    def _rename(self, tree: Path) -> None:
        path = self._any(tree, ("src/app.py", "docs/a.md", "src/ui.py"))
        if path is not None:
            new = tree / self.random.choice(("src/new.py", "moved/x.md", "docs/c.md"))
            if not os.path.lexists(new) and os.path.isdir(tree / "src"):
                new.parent.mkdir(parents=True, exist_ok=True)
                path.rename(new)

    def _add_same(self, tree: Path) -> None:
        path = tree / self.random.choice(("fresh.py", "nested/a/b/fresh.md"))
        if not path.is_dir() and all(not each.is_file() for each in path.parents):
            write(path, b"fresh %d\n" % self.random.randint(0, 2))

    def _add_own(self, tree: Path) -> None:
        write(tree / f"own-{tree.name}-{self.random.randint(0, 99)}", b"mine\n")

    def _delete(self, tree: Path) -> None:
        path = self._any(tree, ("src/app.py", "docs/b.md", "names.list", "run.sh"))
        if path is not None:
            path.unlink()

    def _mode(self, tree: Path) -> None:
        path = self._any(tree, ("run.sh", "src/app.py"))
        if path is not None:
            path.chmod(0o755)

    def _binary(self, tree: Path) -> None:
        path = self._any(tree, ("logo.dat", "picture.png"))
        if path is not None:
            path.write_bytes(b"\0" + self.random.randbytes(50))

    def _crlf(self, tree: Path) -> None:
        path = self._any(tree, ("mixed.md", "docs/a.md", "notes.txt"))
        if path is not None:
            data = path.read_bytes()
            old, new = (b"\r\n", b"\n") if b"\r\n" in data else (b"\n", b"\r\n")
            path.write_bytes(data.replace(old, new))

    def _union(self, tree: Path) -> None:
        path = self._any(tree, ("names.list",))
        if path is not None:
            path.write_bytes(path.read_bytes() + b"name %d\n" % self.random.randint(0, 9))

    def _folder(self, tree: Path) -> None:
        new = tree / self.random.choice(("manual", "handbook"))
        if (tree / "docs").is_dir() and not os.path.lexists(new):
            (tree / "docs").rename(new)

    def _link(self, tree: Path) -> None:
        link = tree / "link"
        if link.is_symlink():
            link.unlink()
            link.symlink_to(self.random.choice(("src/ui.py", "docs", "nowhere")))

    def _replace_by_folder(self, tree: Path) -> None:
        if self.random.random() < 0.5:
            path = tree / "run.sh"
            if path.is_file():
                path.unlink()
                write(path / "inner", b"inner\n")
        elif (tree / "src/deep").is_dir() and not (tree / "src/deep").is_symlink():
            shutil.rmtree(tree / "src/deep")
            (tree / "src/deep").symlink_to("../docs")

    def _any(self, tree: Path, names: tuple[str, ...]) -> Path | None:
        path = tree / self.random.choice(names)
        real = all(not (tree / each).is_symlink() for each in path.relative_to(tree).parents)
        return path if real and path.is_file() and not path.is_symlink() else None

    def truth(self, folder: Path) -> dict[tuple[str, str], Stages]:
        """Returns what `git merge` leaves unmerged, for each pair of branches that conflicts."""
        clone = folder / "clone"
        git(folder, "clone", "-q", str(self.repo), str(clone))
        commits = {}
        for number, tree in enumerate(self.trees):
            git(clone, "checkout", "-q", f"origin/topic{number}")
            copy_tree(tree, clone)
            git(clone, "add", "-A")
            git(clone, "commit", "-q", "--allow-empty", "-m", "all of it")
            commits[f"topic{number}"] = git(clone, "rev-parse", "HEAD").strip()
        found = {}
        names = list(commits)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                git(clone, "reset", "-q", "--hard")
                git(clone, "clean", "-qfdx")
                git(clone, "checkout", "-q", commits[a])
                done = subprocess.run(
                    ["git", "merge", "-q", "-m", "m", commits[b]], cwd=clone, capture_output=True
                )
                if done.returncode != 0:
                    found[a, b] = unmerged(clone)
                    for stages in found[a, b].values():
                        for stage, (mode, oid) in stages.items():
                            if mode != "160000" and b"\n>>>>>>>" in _blob(clone, oid):
                                stages[stage] = (mode, MERGED)
                    subprocess.run(["git", "merge", "--abort"], cwd=clone, capture_output=True)
        return found


def unmerged(tree: Path) -> Stages:
    """Returns what the index says of the files that are not merged."""
    done = subprocess.run(["git", "ls-files", "-u", "-z"], cwd=tree, capture_output=True)
    found: Stages = {}
    for entry in done.stdout.split(b"\0"):
        if entry:
            facts, _, name = entry.partition(b"\t")
            mode, oid, stage = facts.decode().split(" ")
            # Git puts the side behind the name of a file whose name a folder has.
            path = re.sub("~(HEAD|[0-9a-f]{40})$", "", os.fsdecode(name))
            found.setdefault(path, {})[int(stage)] = (mode, oid)
    return found


def with_merged_as(found: Stages, truth: Stages) -> Stages:
    """Returns what was found, with the mark of a merged content where the truth has it."""
    return {
        path: {
            stage: (mode, MERGED if truth.get(path, {}).get(stage, "")[-1:] == (MERGED,) else oid)
            for stage, (mode, oid) in stages.items()
        }
        for path, stages in found.items()
    }


def _blob(clone: Path, oid: str) -> bytes:
    shown = subprocess.run(["git", "cat-file", "blob", oid], cwd=clone, capture_output=True)
    return shown.stdout


def copy_tree(source: Path, target: Path) -> None:
    """Makes the files of a tree those of another one, but for what is git's."""
    for each in target.iterdir():
        if each.name != ".git":
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
    for each in source.iterdir():
        if each.name == ".git":
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.copytree(each, target / each.name, symlinks=True)
        else:
            shutil.copy2(each, target / each.name, follow_symlinks=False)


def write(path: Path, data: bytes) -> None:
    """Writes a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
