"""A ledger that git ignores never reaches a clone: the doctor says so, and agrees with git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from diagnoses import examine
from hives import Queen

from queenbee import Hive


def ignored(hive: Hive) -> list[tuple[str, str]]:
    """Returns the ledgers that the doctor notes as ignored, each with what it says."""
    return [
        (Path(each.file).name, each.message)
        for each in examine(hive)
        if (each.code, each.severity) == ("ignored", "note")
    ]


def git_ignores(repo: Path, path: str) -> bool:
    done = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=repo)
    return done.returncode == 0


LEDGER = ".beads/queen_messages.jsonl"


@pytest.mark.parametrize(
    "files",
    [
        {".gitignore": ".beads/\n"},
        {".gitignore": "*.jsonl\n"},
        {".gitignore": ".beads/*\n!.beads/queen_*.jsonl\n"},
        {".gitignore": "*.jsonl\n", ".beads/.gitignore": "!queen_*.jsonl\n"},
        {".gitignore": ".beads/\n!.beads/queen_messages.jsonl\n"},
        {".gitignore": "/.beads\n", ".beads/.gitignore": "!queen_*.jsonl\n"},
        {".beads/.gitignore": "queen_*\n"},
        {".git/info/exclude": ".beads/queen_*\n", ".gitignore": "!queen_messages.jsonl\n"},
        {".git/info/exclude": "queen_messages.jsonl\n"},
        {".gitignore": "# .beads/\n\nsrc/\nqueen_messages.jsonl/\n"},
        {".gitignore": b"\xff\n*.log\n"},
    ],
)
def test_the_doctor_says_what_git_says(
    hive: Hive, repo: Path, files: dict[str, str | bytes]
) -> None:
    hive.messages.send("reviewer", "hello")
    for name, text in files.items():
        (repo / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    found = [name for name, _ in ignored(hive)]
    assert found == (["queen_messages.jsonl"] if git_ignores(repo, LEDGER) else [])


def test_a_ledger_that_was_added_by_force_reaches_clones(hive: Hive, repo: Path) -> None:
    hive.messages.send("reviewer", "hello")
    (repo / ".gitignore").write_text("*.jsonl\n")
    assert [name for name, _ in ignored(hive)] == ["queen_messages.jsonl"]
    subprocess.run(["git", "add", "--force", LEDGER], cwd=repo, check=True)
    assert ignored(hive) == []


def test_a_note_does_not_fail_the_doctor(hive: Hive, repo: Path, queen: Queen) -> None:
    queen("init")
    hive.messages.send("reviewer", "hello")
    (repo / ".gitignore").write_text("*.jsonl\n")
    assert queen("doctor").code == 0


def test_outside_git_nothing_is_ignored(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    (tmp_path / ".gitignore").write_text("*\n")
    hive = Hive.open(tmp_path, droid="ui", env={"QUEEN_DURABILITY": "buffered"})
    hive.messages.send("reviewer", "hello")
    assert ignored(hive) == []
