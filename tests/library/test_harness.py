"""The harness of docs/api.md, over files, a remote's branch and PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hives import Queen, environment, git

ROOT = Path(__file__).parents[2]
MOST_LINES = 60


HARNESS = ROOT / "docs" / "examples" / "harness.py"


def test_it_is_short() -> None:
    lines = HARNESS.read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= MOST_LINES


def outcome(repo: Path) -> str:
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", "hive")
    done = subprocess.run(
        [sys.executable, str(HARNESS)],
        cwd=repo,
        env={**os.environ, **environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.both_engines
def test_it_lands_everything(repo: Path) -> None:
    assert outcome(repo) == "6 landed, 6 heard of, 0 left\n"
    assert len(git(repo, "ls-files", "*.txt").split()) >= 6


@pytest.mark.thorough
@pytest.mark.slow
def test_it_lands_everything_where_the_records_are_on_the_branch_of_a_remote(
    repo: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(repo, "push", "-q", "-u", "origin", "HEAD")
    Queen(repo)("sync", "setup", as_="lead")
    assert outcome(repo).endswith("6 landed, 6 heard of, 0 left\n")
