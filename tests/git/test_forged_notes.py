"""What stands in the state folder, where an agent in a sandbox may write, has nothing of a person's
moved, reverted, deleted or taken over, and no work counted as landed.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git

from queenbee._hashing import sha256
from queenbee.store.droids.liveness import described
from queenbee.store.layout import discover

STATE, PRIVATE = "queenbee", "queenbee-private"


def key(tree: Path) -> str:
    return sha256(os.fsencode(tree)).hexdigest()[:20]


def put(path: Path, said: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said) + "\n")


@pytest.fixture
def tree(repo: Path, quick: QuickQueen) -> Path:
    """The worktree of ui, in a repository in which any branch passes."""
    (repo / ".gitignore").write_text("*.ign\n")
    commit_file(repo, "file.txt", "1\n")
    assert quick("config", "set", "land.check", "true").code == 0
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "begin")
    assert quick("worktree", "add", "ui").code == 0
    return repo.parent / f"{repo.name}-ui"


def test_a_step_there_reverts_no_edit_and_deletes_no_file_of_a_person(
    repo: Path, quick: QuickQueen, tree: Path
) -> None:
    theirs = {"file.txt": "an hour of work\n", "notes.txt": "mine\n", "secret.ign": "X=1\n"}
    for name, text in theirs.items():
        (repo / name).write_text(text)
        (tree / name).write_text(text)
    git(tree, "add", "--all", "--force")
    after = git(tree, "commit-tree", git(tree, "write-tree").strip(), "-p", "HEAD", "-m", "x")
    git(tree, "reset", "-q", "--hard")
    note = repo / ".git" / STATE / "landing" / "main" / f"step-{key(repo)}"
    before = git(repo, "rev-parse", "HEAD").strip()
    put(note, {"step": "advance", "before": before, "after": after.strip(), "tree": str(repo)})
    os.utime(note, (1, 1))
    commit_file(tree, "new.txt", "x\n")
    assert quick("land", cwd=tree, as_="ui").code == 0
    assert {name: (repo / name).read_text() for name in theirs} == theirs
    assert (repo / "new.txt").exists()


@pytest.fixture
def promising(repo: Path, quick: QuickQueen, tree: Path) -> Callable[[str, str, str], None]:
    """Has the check of ui's work fail, and write a promise for that worktree into a folder."""

    def promise(folder: str, head: str, commit: str) -> None:
        note = repo / ".git" / folder / "landing" / "main" / f"promised-{key(tree)}"
        said = {"tree": str(tree), "head": head, "commit": commit, "before": "x", "checked": True}
        script = repo.parent / "promise.py"
        script.write_text(
            "import json, os\nif not os.path.exists('new.txt'): raise SystemExit(0)\n"
            f"os.makedirs({str(note.parent)!r}, exist_ok=True)\n"
            f"open({str(note)!r}, 'w').write(json.dumps({said!r}))\nraise SystemExit(1)\n"
        )
        check = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"
        git(repo, "config", "queenbee.check", check)

    return promise


@pytest.mark.parametrize("strategy", ["merge", "squash"])
@pytest.mark.parametrize("folder", [STATE, PRIVATE])
def test_a_promise_of_a_commit_without_the_work_lands_nothing(
    repo: Path,
    quick: QuickQueen,
    tree: Path,
    promising: Callable[[str, str, str], None],
    strategy: str,
    folder: str,
) -> None:
    """In git's own folder, it is one that a leader has made by mistake."""
    assert quick("config", "set", "land.strategy", strategy).code == 0
    git(repo, "commit", "-qam", "strategy")
    commit_file(tree, "new.txt", "x\n")
    head = git(tree, "rev-parse", "HEAD").strip()
    promising(folder, head, git(repo, "rev-parse", "HEAD").strip())
    for _ in range(2):
        ran = quick("land", "--json", cwd=tree, as_="ui")
        assert ran.out, ran
        assert (ran.code, ran.json["landing"]["landed"]) == (1, False), ran
    assert git(tree, "rev-parse", "HEAD").strip() == head
    assert not (repo / "new.txt").exists()


def test_a_note_there_of_a_worktree_that_is_made_takes_no_branch_over(
    repo: Path, quick: QuickQueen, tree: Path
) -> None:
    git(repo, "branch", "mine")
    git(repo, "config", "branch.mine.description", "mine")
    tip = git(repo, "rev-parse", "mine").strip()
    path = repo.parent / f"{repo.name}-mine"
    note = repo / ".git" / STATE / "making" / "mine.json"
    put(note, {"path": str(path), "base": tip, "tip": tip})
    ran = quick("worktree", "add", "mine")
    assert ran.code != 0
    assert "which QueenBee did not make" in ran.err
    assert not path.exists()
    assert git(repo, "config", "branch.mine.description") == "mine\n"


def test_a_note_there_makes_nobody_an_agent_of_a_team(
    repo: Path, quick: QuickQueen, tree: Path
) -> None:
    one = described(os.getpid())
    said = {"path": str(tree), "state": "working", "process": one, "supervisor": one}
    put(repo / ".git" / STATE / "team" / "ui.json", said)
    assert quick("status", "--json").json["started"] == []
    put(Path(discover(str(repo), {}).private_dir) / "team" / "ui.json", said)
    assert quick("status", "--json").json["started"] != []
