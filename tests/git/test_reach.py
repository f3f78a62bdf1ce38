"""What is left out of a comparison of worktrees could not conflict: git's own merge says so."""

from __future__ import annotations

import random
import shutil
from itertools import combinations
from pathlib import Path

import pytest
from hives import git

from queenbee.errors import ExternalFailure
from queenbee.git.collisions.reach import Reach
from queenbee.git.run import git as run_git
from queenbee.git.run import user_git

FIRST = ("a", "b/x", "b/y", "b/z", "c/d/e", "c/d/f")
NEW = ("b/new", "b/q/r", "c/d/g", "n", "c/h", "a/b", "b")
MOVED = ("m1", "b/m2", "c/m3", "z/m4")
BRANCHES = ("main", "s0", "s1", "s2", "s3", "s4")


def write(path: Path, text: str) -> None:
    """Writes a file, unless a folder or a file is in its way."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError:
        return


def step(repo: Path, rng: random.Random, number: int) -> None:
    """Does something on one of the branches, and commits it."""
    branch, how = rng.choice(BRANCHES), rng.random()
    git(repo, "checkout", "-q", "-f", branch)
    git(repo, "clean", "-qfd")
    path = repo / rng.choice(git(repo, "ls-files").split() or ["a"])
    if how < 0.35 and path.is_file():
        lines = path.read_text().split("\n")
        lines.insert(rng.randrange(len(lines)), f"{branch} {number}")
        path.write_text("\n".join(lines))
    elif how < 0.5:
        write(repo / rng.choice(NEW), f"{branch} {number}\n" * 8)
    elif how < 0.6:
        path.unlink(missing_ok=True)
    elif how < 0.75 and path.is_file():
        write(repo / rng.choice(MOVED), path.read_text())
        path.unlink()
    elif how < 0.85:
        folder, to = repo / rng.choice(("b", "c", "c/d")), repo / rng.choice(("B", "C", "bb/cc"))
        if folder.is_dir() and not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(folder, to)
    else:
        user_git("merge", "-q", "--no-edit", "-Xours", rng.choice(BRANCHES), cwd=str(repo))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", str(number))


@pytest.mark.some(3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_pairs_that_are_left_out_merge(repo: Path, seed: int) -> None:
    rng = random.Random(seed)
    for path in FIRST:
        write(repo / path, "".join(f"{path} {number}\n" for number in range(20)))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "first")
    for branch in BRANCHES[1:]:
        git(repo, "branch", branch)
    for number in range(16):
        step(repo, rng, number)
    heads = [*dict.fromkeys(git(repo, "rev-parse", *BRANCHES).split())]
    reach = Reach(heads, lambda *words, **how: run_git(*words, cwd=str(repo), **how))
    pairs = [*combinations(heads, 2)]
    left_out = [pair for pair in pairs if not reach.meet(*pair)]
    assert 0 < len(left_out) < len(pairs)
    for pair in left_out:
        status, out, _ = user_git("merge-tree", "--write-tree", *pair, cwd=str(repo))
        assert status == 0, out


def test_without_a_common_history_all_are_compared(repo: Path) -> None:
    def fails(*_: str, **__: object) -> bytes:
        raise ExternalFailure("none", program="git")

    assert Reach(["a" * 40, "b" * 40], fails).meet("a" * 40, "b" * 40)
