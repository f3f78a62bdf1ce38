"""A file that says where Git LFS sends contents: no push obeys one that nobody here has seen."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hives import QuickQueen, add_hook, commit_file, git

UNTRUSTED = 5
ELSEWHERE = "[lfs]\n\turl = https://elsewhere.example/lfs\n"
TOKEN = "token = ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture
def tree(quick: QuickQueen, repo: Path, hub: Path, tmp_path: Path, asking: Path) -> Path:
    """A worktree of a repository whose work lands on `origin/main`."""
    quick("config", "set", "land.target", "origin/main")
    quick("config", "set", "land.check", "true")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "settings")
    git(repo, "push", "-q", "origin", "main")
    assert quick("worktree", "add", "ui", cwd=repo).code == 0
    return tmp_path / "repo-ui"


def main_of(hub: Path) -> str:
    return git(hub, "rev-parse", "main").strip()


def push_each_landing(quick: QuickQueen, repo: Path) -> None:
    """Has work land on the branch of the repository, which is pushed then."""
    quick("config", "set", "land.target", "main", cwd=repo)
    git(repo, "branch", "-q", "-u", "origin/main")
    quick("config", "set", "land.push", "true", cwd=repo)


def test_no_push_obeys_one_that_a_branch_brings(quick: QuickQueen, hub: Path, tree: Path) -> None:
    commit_file(tree, ".lfsconfig", ELSEWHERE)
    before = main_of(hub)
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "elsewhere.example" in done.err) == (UNTRUSTED, True), done
    assert main_of(hub) == before
    assert quick("config", "trust", "--yes", cwd=tree).code == 0
    assert quick("land", as_="ui", cwd=tree).code == 0
    assert main_of(hub) == git(tree, "rev-parse", "HEAD").strip()


def test_no_push_obeys_one_that_others_pushed(quick: QuickQueen, hub: Path, tree: Path) -> None:
    other = hub.with_name("other")
    git(hub, "clone", "-q", str(hub), str(other))
    commit_file(other, ".lfsconfig", ELSEWHERE)
    git(other, "push", "-q", "origin", "main")
    commit_file(tree, "a", "x\n")
    before = main_of(hub)
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "queen config trust" in done.err) == (UNTRUSTED, True), done
    assert main_of(hub) == before
    assert quick("config", "trust", "--yes").code == 0
    assert quick("land", as_="ui", cwd=tree).code == 0
    assert main_of(hub) != before


def test_what_has_landed_here_is_not_pushed_with_it(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    quick("config", "set", "land.target", "main", cwd=repo)
    commit_file(tree, ".lfsconfig", ELSEWHERE)
    assert quick("land", as_="ui", cwd=tree).code == 0  # Nothing is pushed.
    git(repo, "branch", "-q", "-u", "origin/main")
    before = main_of(hub)
    quick("config", "set", "land.push", "true", cwd=repo)
    commit_file(tree, "a", "x\n")
    assert quick("land", as_="ui", cwd=tree).code == UNTRUSTED
    assert main_of(hub) == before


def test_one_that_is_too_large_to_be_shown_is_refused(quick: QuickQueen, tree: Path) -> None:
    commit_file(tree, ".lfsconfig", ELSEWHERE + "#" * 2**16)
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "too large" in done.err) == (2, True), done


def test_a_link_says_nothing(quick: QuickQueen, tree: Path) -> None:
    commit_file(tree, "lfs.ini", ELSEWHERE)
    (tree / ".lfsconfig").symlink_to("lfs.ini")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "a link")
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "is a link" in done.err) == (2, True), done
    (tree / ".lfsconfig").unlink()
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "is a link" in done.err) == (2, True), done


def test_no_push_obeys_one_that_is_not_committed(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    push_each_landing(quick, repo)
    commit_file(tree, "a", "x\n")
    (tree / ".lfsconfig").write_text(ELSEWHERE)
    (repo / ".git" / "info" / "exclude").write_text(".lfsconfig\n")
    before = main_of(hub)
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "elsewhere.example" in done.err) == (UNTRUSTED, True), done
    assert main_of(hub) == before


def test_what_is_pushed_is_what_was_looked_at(
    quick: QuickQueen, repo: Path, hub: Path, tree: Path
) -> None:
    push_each_landing(quick, repo)
    commits = f"cd {repo} && echo >> README.md && git commit -qam wip\n"
    add_hook(repo, "pre-push", f"unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE\n{commits}")
    commit_file(tree, "a", "x\n")
    done = quick("land", as_="ui", cwd=tree)
    assert done.code == 0, done
    assert "wip" in git(repo, "log", "--format=%s", "main").split()
    assert "wip" not in git(hub, "log", "--format=%s", "main").split()
    assert "a" in git(hub, "ls-tree", "--name-only", "main").split()


def test_it_is_of_the_check(quick: QuickQueen, repo: Path, hub: Path, tree: Path) -> None:
    quick("config", "set", "land.target", "main", cwd=repo)
    commit_file(tree, ".lfsconfig", ELSEWHERE)
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "changes the check: .lfsconfig" in done.out) == (0, True), done


@pytest.mark.parametrize(
    ("text", "more", "code"),
    [(TOKEN, "", 5), ("token = none", "", 0), ("token = none", f"{TOKEN}\n", 5)],
)
def test_a_secret_is_found_in_what_lfs_has_stored(
    quick: QuickQueen, repo: Path, tree: Path, text: str, more: str, code: int
) -> None:
    oid = hashlib.sha256(text.encode()).hexdigest()
    stored = repo / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4]
    stored.mkdir(parents=True)
    (stored / oid).write_text(text)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(text)}\n"
    (tree / "a.cfg").write_text(pointer + more)
    done = quick("land", "-m", "a", as_="ui", cwd=tree)
    assert (done.code == 0, "looks like a secret" in done.err) == (code == 0, code != 0), done
