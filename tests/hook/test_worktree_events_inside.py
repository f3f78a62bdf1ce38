"""Worktrees that Claude Code makes and removes: the parts inside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agent_inputs import recorded
from hives import git

from queenbee import Hive
from queenbee.git.ownership import adopt
from queenbee.git.worktrees.worktree_making import add


def ran(event: bytes, cwd: Path) -> tuple[int, str, str]:
    """Runs the hook as its process; returns status, output and errors."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "queenbee.hook.main"], cwd=cwd, input=event,
        capture_output=True,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def removed(repo: Path, tree: Path, **changes: object) -> tuple[int, str, str]:
    return ran(recorded("claude/worktree-remove", repo, worktree_path=str(tree), **changes), repo)


def test_one_that_a_person_handed_over_is_left_alone(repo: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    git(repo, "worktree", "add", "-q", str(own), "-b", "own")
    hive = Hive.open(repo, droid="lead", env={})
    adopt(hive.layout, "own")
    assert removed(repo, own)[0] == 1
    add(hive, "own")
    assert removed(repo, own)[0] == 1
    assert own.exists()
