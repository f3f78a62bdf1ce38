"""`queen worktree`: the parts inside."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hives import commit_file, git, write_lines
from made_worktrees import add, assert_whole, opened, remove

from queenbee.errors import Conflict, NotFound
from queenbee.git import unfinished
from queenbee.git.ownership import adopt, branch_note
from queenbee.git.worktrees import worktree_making
from queenbee.git.worktrees.worktree_care import abandon


@pytest.fixture
def tree(repo: Path) -> Path:
    """The repository with two issues and a file."""
    write_lines(
        repo / ".beads" / "issues.jsonl",
        {"id": "qb-1", "title": "one", "status": "open"},
        {"id": "qb-2", "title": "two", "status": "open"},
    )
    for number in range(30):
        (repo / f"file{number}.txt").write_text(f"{number}\n" * 100)
    git(repo, "add", "--all", "--", ":!.beads")
    git(repo, "commit", "-qm", "files")
    return repo


def test_a_worktree_with_the_name_of_a_droid_is_no_proof(tree: Path) -> None:
    path = tree.parent / "repo-ui"
    git(tree, "worktree", "add", "-q", "-b", "ui", str(path))
    (tree / ".git" / "worktrees" / "repo-ui" / "queenbee-droid").write_text("ui\n")
    commit_file(path, "mine.txt", "x\n")
    with pytest.raises(Conflict, match="did not make; it has one commit") as refusal:
        add(opened(tree), "ui")
    assert refusal.value.details["worktree"] == str(path)
    assert str(refusal.value.hint).endswith("queen worktree add ui --adopt ui")
    adopt(opened(tree).layout, "ui")
    assert add(opened(tree), "ui").path == str(path)


def test_a_branch_that_is_named_by_hand_is_worked_on_but_not_taken_over(tree: Path) -> None:
    git(tree, "branch", "mine")
    add(opened(tree), "ui", branch="mine")
    assert branch_note(opened(tree).layout, "mine") is None


def test_a_branch_is_not_taken_over_from_the_main_worktree(tree: Path) -> None:
    with pytest.raises(Conflict, match="where work lands"):
        adopt(opened(tree).layout, "main")
    with pytest.raises(NotFound, match="no branch gone"):
        adopt(opened(tree).layout, "gone")


@pytest.mark.some(2)
@pytest.mark.parametrize("how", ["branch", "folder", "pointer", "files", "locked"])
def test_a_git_that_was_killed_is_cleared_away(
    tree: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktree_making, "_PATIENCE_S", 0)
    path, base = tree.parent / "repo-ui", git(tree, "rev-parse", "main").strip()
    note = tree / ".git" / "queenbee-private" / "making" / "ui.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"path": str(path), "base": base}))
    git(tree, "branch", "ui", f"{base}^{{commit}}")
    git_dir = tree / ".git" / "worktrees" / "repo-ui"
    if how != "branch":
        git(tree, "worktree", "add", "-q", str(path), "ui")
        (git_dir / "locked").write_text("queen worktree add is at work\n")
    if how in ("folder", "pointer", "files"):
        (git_dir / "index").unlink()
        for file in path.glob("file[12]*.txt"):
            file.unlink()
    if how in ("folder", "pointer"):
        for file in path.glob("[!.]*"):
            file.unlink()
    if how == "folder":
        (path / ".git").unlink()
    add(opened(tree), "ui")
    assert_whole(tree, "ui")


def test_it_refuses_a_repository_in_it_with_what_is_not_committed(tree: Path) -> None:
    commit_file(tree, ".gitignore", "vendor/\n")
    path = Path(add(opened(tree), "ui").path)
    own = path / "vendor" / "x"
    git(tree, "clone", "-q", str(tree), str(own))
    (own / "typed.txt").write_text("typed\n")
    for leave in (lambda: remove(opened(tree), "ui"), lambda: abandon(opened(tree), str(path))):
        with pytest.raises(Conflict, match=r"what is not committed: .*vendor/x"):
            leave()
    (own / "typed.txt").unlink()
    remove(opened(tree), "ui")
    assert not path.exists()


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_it_refuses_changes_that_git_was_told_not_to_see(tree: Path, flag: str) -> None:
    commit_file(tree, "local.cfg", "theirs\n")
    path = Path(add(opened(tree), "ui").path)
    git(path, "update-index", flag, "local.cfg")
    (path / "local.cfg").write_text("mine\n")
    with pytest.raises(Conflict, match=r"told not to look at changes in .*local\.cfg") as refusal:
        remove(opened(tree), "ui")
    assert "update-index --no-skip-worktree local.cfg" in str(refusal.value.hint)
    assert abandon(opened(tree), str(path)).kept == "unfinished/repo-ui"
    assert git(tree, "show", "unfinished/repo-ui:local.cfg") == "mine\n"


def test_one_that_its_agent_leaves_keeps_what_is_not_committed(tree: Path) -> None:
    path = Path(add(opened(tree), "ui").path)
    (path / "typed.txt").write_text("typed\n")
    assert abandon(opened(tree), str(path)).kept == "unfinished/repo-ui"
    assert not path.exists()
    assert git(tree, "show", "unfinished/repo-ui:typed.txt") == "typed\n"


def test_it_keeps_changes_outside_of_a_sparse_checkout(tree: Path) -> None:
    path = Path(add(opened(tree), "ui").path)
    git(path, "sparse-checkout", "set", "--no-cone", "/*", "!file1.txt")
    (path / "file1.txt").write_text("mine\n")
    with pytest.raises(Conflict, match=r"not committed in .*file1\.txt") as refusal:
        remove(opened(tree), "ui")
    assert "queen worktree remove repo-ui --force keeps them" in str(refusal.value.hint)
    assert remove(opened(tree), "ui", force=True).kept == "unfinished/repo-ui"
    assert git(tree, "show", "unfinished/repo-ui:file1.txt") == "mine\n"


def test_it_refuses_a_change_that_no_time_shows(tree: Path) -> None:
    path = Path(add(opened(tree), "ui").path)
    for name, value in (("checkStat", "minimal"), ("trustctime", "false")):
        git(tree, "config", f"core.{name}", value)
    text = (path / "file1.txt").read_text()
    os.utime(path / "file1.txt", ns=(10**18, 10**18))
    git(path, "update-index", "--refresh")
    (path / "file1.txt").write_text(text.replace("1", "2"))
    os.utime(path / "file1.txt", ns=(10**18, 10**18))
    assert git(path, "status", "--porcelain") == ""
    with pytest.raises(Conflict, match=r"not committed in .*file1\.txt"):
        remove(opened(tree), "ui")


def test_what_git_does_not_keep_as_it_is_stays(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason: here, the commit is one without the change."""
    path = Path(add(opened(tree), "ui").path)
    (path / "file1.txt").write_text("mine\n")
    head = git(path, "rev-parse", "HEAD").strip()
    monkeypatch.setattr(unfinished, "commit_of_all", lambda *_, **__: head)
    with pytest.raises(Conflict, match=r"git does not keep what is in .*file1\.txt"):
        remove(opened(tree), "ui", force=True)
    assert (path / "file1.txt").read_text() == "mine\n"


def test_the_way_to_a_repository_with_commits_that_no_remote_has_can_be_pasted(tree: Path) -> None:
    path = Path(add(opened(tree), "ui").path)
    git(tree, "init", "-q", str(path / "own"))
    git(path / "own", "commit", "-q", "--allow-empty", "-m", "only here")
    with pytest.raises(Conflict, match="commits that no remote has") as refusal:
        abandon(opened(tree), str(path))
    said = subprocess.run(shlex.split(str(refusal.value.hint)), capture_output=True, check=True)
    assert b"only here" in said.stdout
