"""A hook of git moves the target on, or makes its last commit again, right after it has moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, Ran, add_hook, commit_file, git, write_lines

AMENDS = {
    "a trailer": "git commit -q --amend --no-verify -m 'said otherwise'",
    "one more file": "echo x > made && git add made && git commit -q --amend --no-edit",
    "other lines": "echo formatted > a && git commit -q --amend --no-edit a",
    "a commit of its own": "echo x > made && git add made && git commit -qm made",
}


@pytest.fixture
def tree(quick: QuickQueen, repo: Path, tmp_path: Path) -> Path:
    """A worktree with a commit, for an issue."""
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-1", "title": "t", "status": "open"})
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    quick("claim", "q-1", as_="ui", cwd=tmp_path / "ui")
    commit_file(tmp_path / "ui", "a", "x\n")
    return tmp_path / "ui"


def hook(repo: Path, what: str, name: str = "post-merge") -> None:
    """Has a hook do something; that of a merge in the main worktree alone."""
    only = f'[ "$PWD" = {repo} ] || exit 0' if name == "post-merge" else ""
    add_hook(repo, name, f"{only}\n{what}\nexit 0\n")


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", "--check", "test -e a", *more, as_="ui", cwd=tree)


@pytest.mark.parametrize("has_moved", [False, True], ids=["one commit", "a merge"])
@pytest.mark.parametrize("what", AMENDS)
def test_work_has_landed_whatever_a_hook_makes_of_its_commit(
    quick: QuickQueen, repo: Path, tree: Path, what: str, has_moved: bool
) -> None:
    if has_moved:
        commit_file(repo, "b", "x\n")
    hook(repo, AMENDS[what])
    before = git(repo, "rev-parse", "main").strip()
    done = landing(quick, tree)
    row, at = completed(quick), git(repo, "rev-parse", "main").strip()
    assert done.code == 0, done
    assert f"landed on main as {row[:10]}" in done.out
    assert git(repo, "rev-list", "--first-parent", f"{before}..main").split()[-1] == row
    assert (at == row) is (what != "a commit of its own")
    assert git(tree, "rev-parse", "HEAD").strip() == row
    assert git(tree, "status", "--porcelain") == ""


def test_a_branch_that_nobody_has_checked_out_is_moved_on(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("config", "set", "land.target", "main")
    git(repo, "switch", "-q", "--detach")
    amended = "git commit-tree -p main^ -m other main^{tree}"
    hook(
        repo,
        "grep -q refs/heads/main && [ $1 = committed ] && [ ! -e done ] || exit 0\n"
        f"touch done; git update-ref refs/heads/main $({amended})",
        "reference-transaction",
    )
    done = landing(quick, tree)
    assert done.code == 0, done
    assert completed(quick) == git(repo, "rev-parse", "main").strip()


def test_work_that_a_hook_takes_back_has_not_landed(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    before = git(repo, "rev-parse", "main")
    hook(repo, "git reset -q --hard HEAD~1")
    done = landing(quick, tree)
    assert (done.code, git(repo, "rev-parse", "main")) == (5, before), done
    assert "cannot be moved" in done.err


def test_another_commit_on_the_same_one_is_not_taken_for_it(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    before = git(repo, "rev-parse", "main").strip()
    path = repo / ".git" / "hooks" / "post-merge"
    theirs = "git reset -q --hard HEAD~1; echo x > b; git add b; git commit -qm theirs"
    hook(repo, f"rm {path}; {theirs}")
    done = landing(quick, tree)
    assert (done.code, "main was moved" in done.out) == (5, True), done
    assert "brings back commits that were taken off main" in done.err
    assert landing(quick, tree).code == 0
    assert git(repo, "rev-list", "--first-parent", "--count", f"{before}..main").strip() == "2"
    assert {"a", "b"} <= {*git(repo, "ls-tree", "--name-only", "main").split()}


def completed(quick: QuickQueen) -> str:
    """Returns the commit by which the issue was completed."""
    (row,) = quick("issue", "assignments", "--status", "completed", "--json").json
    return str(row["landed"])


def test_a_hook_amends_what_is_made_in_the_landing_checkout(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    commit_file(repo, "b", "x\n")
    (tree / "c").write_text("x\n")
    amends = '[ -n "$AGAIN" ] || AGAIN=1 git commit -q --amend --no-edit --date=@1700000000'
    hook(repo, amends, "post-commit")
    done = landing(quick, tree, "-m", "more")
    assert done.code == 0, done
    assert completed(quick) == git(repo, "rev-parse", "main").strip()
