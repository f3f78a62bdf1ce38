"""Repositories in a worktree: what would land as a mere name of a commit is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git, write_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(quick: QuickQueen, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worktree of a repository with a submodule `lib`, checked out in it."""
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    source = repo.parent / "lib.git"
    git(repo.parent, "clone", "-q", "--bare", str(repo), str(source))
    rows = [{"id": f"q-{n}", "title": f"t{n}", "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    (repo / ".beads" / "queen.toml").write_text("[land]\ncheck = 'true'\n")
    git(repo, "submodule", "add", "-q", str(source), "lib")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "with a submodule")
    tree = Path(quick("worktree", "add", "ui", "q-1", "--json", as_="boss").json["path"])
    git(tree, "submodule", "update", "--init", "-q")
    return tree


def bump(lib: Path) -> str:
    """Makes a commit in the submodule; returns it."""
    commit_file(lib, "more.txt", "more\n")
    return git(lib, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize("has_commits", [True, False])
def test_an_own_repository_is_refused_by_name(
    quick: QuickQueen, tree: Path, *, has_commits: bool
) -> None:
    inner = tree / "vendor" / "x y"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "a.txt").write_text("a\n")
    if has_commits:
        git(inner, "add", "-A")
        git(inner, "commit", "-qm", "inner")
    before = git(tree, "rev-parse", "HEAD")
    refused = quick("land", "-m", "work", cwd=tree)
    assert (refused.code, "vendor/x y" in refused.err) == (5, True), refused
    assert f"cd {tree} && echo 'vendor/x y' >> .gitignore" in refused.err
    assert git(tree, "rev-parse", "HEAD") == before
    assert git(tree, "diff", "--cached", "--name-only") == ""
    (tree / ".gitignore").write_text("vendor/x y/\n")
    assert quick("land", "-m", "work", cwd=tree).code == 0
    assert (inner / "a.txt").exists()


@pytest.mark.parametrize("done", ["staged", "committed"])
def test_one_that_git_has_already_recorded_does_not_land(
    quick: QuickQueen, repo: Path, tree: Path, done: str
) -> None:
    (tree / "vendor").mkdir()
    git(tree, "clone", "-q", str(repo.parent / "lib.git"), "vendor/x")
    git(tree, "add", "-A")
    if done == "committed":
        git(tree, "commit", "-qm", "mine")
    before = git(repo, "rev-parse", "main")
    words = ["-m", "work"] if done == "staged" else []
    refused = quick("land", *words, cwd=tree)
    assert (refused.code, "vendor/x" in refused.err) == (5, True), refused
    assert git(repo, "rev-parse", "main") == before
    # What the hint says works.
    (tree / ".gitignore").write_text("vendor/x\n")
    git(tree, "rm", "-qf", "--cached", "--ignore-unmatch", "vendor/x")
    assert quick("land", "-m", "work", cwd=tree).code == 0
    assert "160000" not in git(repo, "ls-tree", "main", "vendor/")


@pytest.mark.parametrize("done", ["changed", "committed"])
def test_a_commit_of_a_submodule_that_no_remote_has_does_not_land(
    quick: QuickQueen, repo: Path, tree: Path, done: str
) -> None:
    commit = bump(tree / "lib")
    if done == "committed":
        git(tree, "commit", "-qam", "mine")
    before = git(repo, "rev-parse", "main")
    words = ["-m", "work"] if done == "changed" else []
    refused = quick("land", *words, cwd=tree)
    assert (refused.code, "no remote of the submodule has" in refused.err) == (5, True), refused
    assert "git -C lib push origin HEAD:BRANCH" in refused.err
    assert git(repo, "rev-parse", "main") == before
    git(tree / "lib", "push", "-q", "origin", "HEAD:refs/heads/work")
    assert quick("land", *words, cwd=tree).code == 0
    assert git(repo, "rev-parse", "main:lib").strip() == commit
    git(repo, "submodule", "update", "-q")


def test_a_submodule_that_is_moved_to_a_commit_that_others_have_lands(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    commit_file(repo / "lib", "theirs.txt", "x\n")
    git(repo / "lib", "push", "-q", "origin", "HEAD:refs/heads/theirs")
    git(tree / "lib", "fetch", "-q")
    git(tree / "lib", "checkout", "-q", "origin/theirs")
    assert quick("land", "-m", "newer", cwd=tree).code == 0


def test_only_uncommitted_work_in_a_submodule_is_no_commit(quick: QuickQueen, tree: Path) -> None:
    (tree / "lib" / "README.md").write_text("changed\n")
    refused = quick("land", "-m", "work", cwd=tree)
    assert (refused.code, "lib" in refused.err) == (5, True), refused
    assert "the commit was refused" not in refused.err
