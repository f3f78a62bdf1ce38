"""A commit that takes a ledger and leaves its new segment behind is told of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, git

SEGMENT = ".beads/archive/queen_messages.1.jsonl"


@pytest.fixture
def rotated(repo: Path, quick: QuickQueen) -> Path:
    """A hive whose first message is committed, and was rotated after that."""
    quick("init")
    quick("msg", "send", "reviewer", "hello", as_="ui")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    quick("hive", "rotate", "--older-than", "0s")
    return repo


def found(repo: Path) -> list[tuple[str, str | None]]:
    told = QuickQueen(repo)("doctor", "--json").json
    return [(each["file"], each["hint"]) for each in told if each["code"] == "left_out"]


def test_before_the_commit_nothing_is_wrong(rotated: Path) -> None:
    assert found(rotated) == []


@pytest.mark.parametrize("committed", [False, True])
def test_a_ledger_that_is_added_alone_leaves_its_segment_out(
    rotated: Path, quick: QuickQueen, committed: bool
) -> None:
    git(rotated, "add", ".beads/queen_messages.jsonl")
    if committed:
        git(rotated, "commit", "-qm", "half of it")
    path = str(rotated / SEGMENT)
    assert found(rotated) == [(path, f"git add {path}")]
    told = quick("doctor", "--json")
    assert told.code == 1
    assert [each["code"] for each in told.json if each["severity"] == "error"] == ["left_out"]
    git(rotated, "add", ".beads")
    assert found(rotated) == []


def test_the_guard_tells_of_it_and_lets_the_commit_pass(rotated: Path, quick: QuickQueen) -> None:
    git(rotated, "add", ".beads/queen_messages.jsonl")
    told = quick("guard", "check")
    assert told.code == 0
    assert "queen_messages.1.jsonl: git does not have this segment" in told.err
    assert "try: git add" in told.err
    git(rotated, "add", ".beads")
    assert quick("guard", "check").err == ""


def test_a_commit_asks_the_guard_for_it(rotated: Path, queen: Queen) -> None:
    queen("guard", "install")
    git(rotated, "add", ".beads/queen_messages.jsonl")
    told = subprocess.run(
        ["git", "commit", "-m", "half"], cwd=rotated / ".beads", capture_output=True, text=True
    )
    assert told.returncode == 0
    assert "queen_messages.1.jsonl: git does not have this segment" in told.stderr


@pytest.mark.parametrize("rule", ["archive/", "*.1.jsonl"])
def test_a_segment_that_git_ignores_is_told_at_once(rotated: Path, rule: str) -> None:
    (rotated / ".gitignore").write_text(rule + "\n")
    [(path, hint)] = found(rotated)
    assert path == str(rotated / SEGMENT)
    assert hint is not None
    assert "check-ignore" in hint


def test_a_segment_whose_lines_the_ledger_has_again_is_not_missed(rotated: Path) -> None:
    git(rotated, "checkout", "-q", "--", ".beads/queen_messages.jsonl")
    assert found(rotated) == []


def test_a_hive_that_is_not_in_git_is_left_alone(rotated: Path) -> None:
    git(rotated, "rm", "-rq", "--cached", ".beads")
    (rotated / ".gitignore").write_text(".beads/\n")
    assert found(rotated) == []


def test_outside_git_there_is_nothing_to_leave_out(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    assert found(tmp_path) == []
