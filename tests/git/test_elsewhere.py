"""A worktree whose `.git` leads to something else: nothing is done there, nothing of it runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git
from made_worktrees import add, opened

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(repo: Path, quick: QuickQueen) -> Path:
    """A worktree `ui` that has landed."""
    path = Path(add(opened(repo), "ui").path)
    commit_file(path, "ui.txt", "ui\n")
    assert quick("land", "--unchecked", cwd=path, as_="ui").code == 0
    return path


def test_the_branch_of_another_worktree_does_not_land(
    repo: Path, tree: Path, quick: QuickQueen
) -> None:
    git(repo, "worktree", "add", "-q", "-b", "precious", "../precious")
    precious = repo.parent / "precious"
    commit_file(precious, "draft.txt", "not ready\n")
    before = git(repo, "rev-parse", "main", "precious")
    own = (tree / ".git").read_text()
    (tree / ".git").write_text((precious / ".git").read_text())
    for words in (("land", "--unchecked"), ("land", "--unchecked", "-m", "x")):
        done = quick(*words, cwd=tree, as_="ui")
        assert done.code == 5, done
        assert f"the branch and index of another worktree, {precious}" in done.err
    assert git(repo, "rev-parse", "main", "precious") == before
    assert git(precious, "status", "--porcelain") == ""
    git(repo, "worktree", "repair")  # As the refusal says.
    assert (tree / ".git").read_text() == own
    assert "nothing to land" in quick("land", "--unchecked", cwd=tree, as_="ui").err


@pytest.mark.parametrize("linked", [False, True])
def test_nothing_of_another_repository_runs(
    repo: Path, tree: Path, quick: QuickQueen, tmp_path: Path, linked: bool
) -> None:
    other, ran = tmp_path / "other", tmp_path / "ran"
    shutil.copytree(repo / ".git", other / ".git")
    if linked:
        git(other, "worktree", "add", "-q", "-b", "own", "../own")
    leads = other / ".git" / "worktrees" / "own" if linked else other / ".git"
    program = f"sh -c 'touch {ran}; cat'"
    git(other, "config", "core.fsmonitor", program)
    git(other, "config", "filter.x.clean", program)
    (other / ".git" / "info" / "attributes").write_text("* filter=x\n")
    for name in ("reference-transaction", "post-checkout", "post-index-change", "pre-commit"):
        hook = other / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    (tree / ".git").write_text(f"gitdir: {leads}\n")
    (tree / "ui.txt").write_text("changed\n")
    assert quick("worktree", "prune").code == 0
    assert quick("worktree", "list").code == 0
    for more in ([], ["--force"]):
        refused = quick("worktree", "remove", "ui", *more)
        assert (refused.code, "is that of another repository" in refused.err) == (5, True), refused
    assert not ran.exists()
    assert (tree / "ui.txt").read_text() == "changed\n"


def test_a_folder_outside_git_has_nothing_to_land(quick: QuickQueen, tmp_path: Path) -> None:
    (folder := tmp_path / "plain").mkdir()
    assert quick("init", cwd=folder).code == 0
    for words in (("-m", "x"), ("--continue",), ("--unchecked",)):
        refused = quick("land", *words, "--json", cwd=folder, as_="ui")
        assert (refused.code, refused.error["hint"]) == (2, "git init")
        assert refused.error["message"] == "this is not a git repository"


@pytest.mark.parametrize("names_tree", [True, False])
def test_a_repository_that_only_the_environment_names_gets_in_by_a_git_file(
    quick: QuickQueen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, names_tree: bool
) -> None:
    """As for dotfiles."""
    home, bare = tmp_path / "my home", tmp_path / "my home" / ".dotfiles"
    home.mkdir()
    git(home, "init", "-q", "--bare", str(bare))
    with monkeypatch.context() as patch:
        patch.setenv("GIT_DIR", str(bare))
        if names_tree:
            patch.setenv("GIT_WORK_TREE", str(home))
        assert "only the environment" in quick("init", cwd=home).err
        commands = [["worktree", "add", "api"], ["land"], ["worktree", "collisions"]]
        said = [quick(*words, "--json", cwd=home, as_="api").error for words in commands]
    assert len({each["hint"] for each in said}) == 1
    assert str(bare) in said[0]["message"]
    subprocess.run(said[0]["hint"], shell=True, check=True, cwd="/")
    git(home, "commit", "-q", "--allow-empty", "-m", "one")
    assert quick("worktree", "add", "api", cwd=home).code == 0


def test_nobody_looks_into_one_whose_git_directory_leads_to_another_repository(
    repo: Path, tree: Path, quick: QuickQueen, tmp_path: Path
) -> None:
    """What an agent may write there: `commondir`."""
    other, ran = tmp_path / "other", tmp_path / "ran"
    shutil.copytree(repo / ".git", other)
    git(repo, f"--git-dir={other}", "config", "filter.x.clean", f"sh -c 'touch {ran}; cat'")
    (tree / ".gitattributes").write_text("* filter=x\n")
    (tree / "ui.txt").write_text("changed\n")
    own = repo / ".git" / "worktrees" / tree.name / "commondir"
    own.write_text(f"{other}\n")
    for words in (("worktree", "collisions"), (), ("reserve", "check", "x")):
        quick(*words)
    for words in (("status",), ("status", "--json"), ("worktree", "list"), ("doctor",)):
        done = quick(*words)
        assert "leads to another repository" in done.out + done.err
        assert f"echo ../.. > {own}" in done.out + done.err
    assert not ran.exists()
    own.write_text("../..\n")  # As it says.
    assert "ui" in quick("worktree", "list").out
