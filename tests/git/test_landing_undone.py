"""What `queen undo` says of work that has landed takes it back, as it is typed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hives import COMMAND, Queen, commit_file, git, write_lines

TITLE = "Round the 'prices' of $HOME"


@pytest.fixture
def tree(queen: Queen, repo: Path) -> Path:
    rows = [{"id": f"q-{n}", "title": TITLE, "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    commit_file(repo, "old.bin", "\0old\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "hive")
    return Path(queen("--json", "worktree", "add", "ui", "q-1", as_="boss").json["path"])


def change(tree: Path) -> None:
    (tree / "sub").mkdir(exist_ok=True)
    (tree / "sub" / "new.txt").write_text("new\n")
    (tree / "old.bin").write_bytes(b"\0new\n")
    (tree / "README.md").unlink()


def files(repo: Path) -> list[str]:
    """Returns what the main branch has beside the records."""
    listed = git(repo, "ls-tree", "-r", "main").splitlines()
    return [each for each in listed if "\t.beads/" not in each]


def typed(queen: Queen, command: str, cwd: Path) -> None:
    env = queen.environment("ui", None)
    command = f'queen() {{ {shlex.join(COMMAND)} "$@"; }}; {command}'
    ran = subprocess.run(["sh", "-ec", command], cwd=cwd, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, (command, ran)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["its worktree", "a folder", "main"])
@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
def test_the_command_takes_it_back_with_records_in_the_commit(
    queen: Queen, repo: Path, tree: Path, strategy: str, where: str
) -> None:
    queen("config", "set", "land.strategy", strategy)
    queen("config", "set", "land.check", "true")
    before = files(repo)
    change(tree)
    landed = queen("land", "-m", "Round", as_="ui", cwd=tree)
    assert landed.code == 0, landed
    assert files(repo) != before
    records = git(repo, "log", "--format=%s", "--", ".beads")
    assert len(records.splitlines()) > 1  # They have changed with what landed, and since.
    cwd = {"main": repo, "a folder": tree / "sub"}.get(where, tree)
    refused = queen("undo", as_="ui", cwd=cwd)
    assert (refused.code, "q-1 has landed, as " in refused.err) == (5, True)
    [command] = re.findall("try: (.*)", refused.err)
    typed(queen, command, cwd)
    assert files(repo) == before
    assert queen("claim", "q-1", as_="api").code == 0
