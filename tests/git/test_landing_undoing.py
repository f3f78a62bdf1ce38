"""A branch that takes back what others landed: it is stopped once, before the main branch moves."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, add_submodule, commit_file, git, write_lines

from queenbee.git.landing import arrivals

Trees = Callable[[str], Path]


@pytest.fixture
def trees(repo: Path, beads: Path, tmp_path: Path) -> Trees:
    """Makes linked worktrees, each on a branch of its name; `code.py` is on the main branch."""
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    commit_file(repo, "code.py", "old\n")

    def made(name: str) -> Path:
        git(repo, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
        return tmp_path / name

    return made


@pytest.fixture
def stale(trees: Trees, quick: QuickQueen) -> Path:
    """A worktree whose files are older than the commit that its branch was put on by hand."""
    stale, other = trees("ui"), trees("api")
    quick("claim", "qb-1", as_="api", cwd=other)
    (other / "new.py").write_text("new\n")
    commit_file(other, "code.py", "better\n")
    git(other, "add", "new.py")
    git(other, "commit", "-q", "-m", "more")
    assert landed(quick, other).code == 0
    git(stale, "reset", "-q", "--soft", "main")
    commit_file(stale, "own.py", "mine\n")
    assert git(stale, "diff", "--name-only", "main").split() == ["code.py", "new.py", "own.py"]
    return stale


def landed(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", "--check", "true", *more, as_=tree.name, cwd=tree)


def on_main(repo: Path, path: str) -> str:
    return git(repo, "show", f"main:{path}")


def test_it_is_told_what_it_takes_back_and_of_whom(
    quick: QuickQueen, repo: Path, stale: Path
) -> None:
    tip = git(repo, "rev-parse", "main")
    refused = landed(quick, stale)
    assert refused.code == 5
    assert git(repo, "rev-parse", "main") == tip
    said = "nothing was landed: this branch takes back what others landed: "
    assert f"{said}qb-1 by api ({tip[:10]}): code.py, new.py\n" in refused.err
    assert "If it is meant: queen land again" in refused.err


def test_the_command_that_it_suggests_keeps_what_others_landed(
    quick: QuickQueen, repo: Path, stale: Path
) -> None:
    suggested = re.search(r"(git checkout .+?);", landed(quick, stale).err)
    assert suggested is not None
    git(stale, *shlex.split(suggested[1])[1:])
    assert landed(quick, stale, "-m", "Keep the rest").code == 0
    kept = [on_main(repo, each) for each in ("code.py", "new.py", "own.py")]
    assert kept == ["better\n", "new\n", "mine\n"]


def test_the_command_that_it_suggests_moves_a_submodule_too(
    quick: QuickQueen,
    repo: Path,
    trees: Trees,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    library = tmp_path / "library"
    add_submodule(repo, library, "lib")
    git(repo, "commit", "-qm", "a submodule")
    commit_file(library, "more.py")
    tree = trees("ui")
    git(tree, "submodule", "--quiet", "update", "--init")
    git(tree / "lib", "fetch", "-q")
    git(repo / "lib", "pull", "-q")
    git(repo, "commit", "-qam", "move it")
    commit_file(tree, "own.py", "mine\n")
    assert landed(quick, tree).code == 0
    refused = landed(quick, tree, "-m", "All that there is")
    suggested = re.search(r"(git checkout .+?);", refused.err)
    assert (refused.code, suggested is not None) == (5, True), refused
    assert suggested is not None
    subprocess.run(["sh", "-ec", suggested[1]], cwd=tree, check=True)
    assert git(tree / "lib", "rev-parse", "HEAD") == git(library, "rev-parse", "HEAD")
    (tree / "own.py").write_text("again\n")
    assert landed(quick, tree, "-m", "Keep the rest").code == 0
    assert git(library, "rev-parse", "HEAD").strip() in git(repo, "ls-tree", "main", "lib")


def test_it_is_stopped_once(quick: QuickQueen, repo: Path, stale: Path) -> None:
    assert [landed(quick, stale).code for _ in range(2)] == [5, 0]
    assert on_main(repo, "code.py") == "old\n"
    commit_file(repo, "code.py", "better\n")
    git(stale, "merge", "-q", "main")
    commit_file(stale, "code.py", "old\n")
    assert landed(quick, stale).code == 5


def test_a_revert_passes(quick: QuickQueen, repo: Path, trees: Trees) -> None:
    tree = trees("ui")
    commit_file(repo, "code.py", "better\n")
    commit_file(repo, "other.py", "new\n")
    git(tree, "merge", "-q", "main")
    git(tree, "revert", "--no-edit", "HEAD~1")
    assert landed(quick, tree).code == 0
    assert on_main(repo, "code.py") == "old\n"


def test_a_revert_of_a_commit_in_a_landing_passes_and_of_another_does_not(
    quick: QuickQueen, repo: Path, trees: Trees
) -> None:
    one, two, other = trees("ui"), trees("boss"), trees("api")
    commit_file(other, "code.py", "better\n")
    commit_file(repo, "moved.py", "x\n")
    assert landed(quick, other).code == 0
    commit = git(other, "rev-parse", "HEAD^2").strip()
    for tree, named in (one, commit), (two, "HEAD~1"):
        git(tree, "merge", "-q", "main")
        (tree / "code.py").write_text("old\n")
        full = git(tree, "rev-parse", named).strip()
        git(tree, "commit", "-qam", f"Not yet\n\nThis reverts commit {full}.")
    assert landed(quick, two).code == 5
    assert landed(quick, one).code == 0


def test_a_branch_that_says_to_revert_the_first_commit_of_all_is_not_stopped_for_ever(
    quick: QuickQueen, repo: Path, trees: Trees
) -> None:
    git(repo, "config", "core.logAllRefUpdates", "false")
    tree = trees("ui")
    shutil.rmtree(repo / ".git" / "worktrees" / "ui" / "logs", ignore_errors=True)
    first = git(repo, "rev-list", "--max-parents=0", "main").strip()
    path, *_ = git(repo, "ls-tree", "--name-only", first).split()
    git(tree, "rm", "-q", path)
    git(tree, "commit", "-qm", f"Without it\n\nThis reverts commit {first}.")
    assert landed(quick, tree).code == 0


def test_one_file_among_hundreds_is_noticed(quick: QuickQueen, repo: Path, trees: Trees) -> None:
    tree = trees("ui")
    commit_file(repo, "code.py", "better\n")
    git(tree, "merge", "-q", "main")
    for number in range(201):
        (tree / f"a{number}.txt").write_text("x\n")
    (tree / "code.py").write_text("old\n")
    assert landed(quick, tree, "-m", "Much").code == 5
    assert landed(quick, tree).code == 0


def test_so_many_files_are_named_at_once_as_one_may_paste(
    quick: QuickQueen, repo: Path, trees: Trees
) -> None:
    tree = trees("ui")
    for number in range(202):
        (repo / f"n{number}.txt").write_text("x\n")
    git(repo, "add", "n*.txt")
    git(repo, "commit", "-qm", "much")
    git(tree, "reset", "-q", "--soft", "main")
    commit_file(tree, "own.py", "mine\n")
    for left in (2, 0):
        refused = landed(quick, tree)
        suggested = re.search(r"(git checkout .+?);", refused.err)
        assert (refused.code, suggested is not None) == (5, True)
        git(tree, *shlex.split(str(suggested and suggested[1]))[1:])
        git(tree, "commit", "-qam", "back")
        assert len(git(tree, "diff", "--name-only", "main").split()) == left + 1
    assert landed(quick, tree).code == 0


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["own", "renamed", "other lines"])
def test_other_work_is_not_stopped(quick: QuickQueen, repo: Path, trees: Trees, how: str) -> None:
    """One's own landing, a file under another name, and a file that nobody had like this."""
    tree = trees("ui")
    quick("claim", "qb-1", as_="ui", cwd=tree)
    commit_file(tree, "new.py", "one\ntwo\nthree\n")
    assert landed(quick, tree).code == 0
    if how == "own":
        git(tree, "rm", "-q", "new.py")
    else:
        commit_file(repo, "late.py", "one\ntwo\nthree\nfour\nfive\n")
        git(tree, "merge", "-q", "main")
        git(tree, "mv", "late.py", "moved.py")
        (tree / "moved.py").write_text("one\ntwo\nthree\nfour\n5\n")
        if how == "other lines":
            git(tree, "mv", "moved.py", "late.py")
    git(tree, "commit", "-qam", "y")
    assert landed(quick, tree).code == 0


def test_what_is_older_than_some_days_may_go(
    quick: QuickQueen, repo: Path, trees: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "GIT_COMMITTER_DATE", "GIT_AUTHOR_DATE":
        monkeypatch.setenv(name, "2026-01-01T00:00:00Z")
    commit_file(repo, "gone.py", "x\n")
    monkeypatch.undo()
    tree = trees("ui")
    git(tree, "rm", "-q", "gone.py")
    git(tree, "commit", "-q", "-m", "y")
    assert landed(quick, tree).code == 0


def test_only_the_branchs_own_files_are_looked_up(
    repo: Path, trees: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = trees("ui")
    commit_file(tree, "own.py", "x\n")
    asked: list[tuple[str, ...]] = []
    real = arrivals.git

    def git_(*arguments: str, cwd: str) -> bytes:
        asked.append(arguments)
        return real(*arguments, cwd=cwd)

    monkeypatch.setattr(arrivals, "git", git_)
    target = git(repo, "rev-parse", "main").strip()
    assert arrivals.undone(str(tree), target, target, {"own.py": ["0", "1"]}) == []
    assert [each[-2:] for each in asked] == [("--", "own.py")]


@pytest.mark.parametrize("how", ["reset --hard HEAD~1", "commit --amend -m other"])
def test_what_was_taken_off_the_main_branch_comes_back_only_if_it_is_meant(
    quick: QuickQueen, repo: Path, trees: Trees, how: str
) -> None:
    commit_file(repo, "secret", "key\n")
    gone = git(repo, "rev-parse", "main").strip()
    tree = trees("ui")
    (repo / "secret").write_text("none\n")
    git(repo, "add", "secret")
    git(repo, *shlex.split(how))
    commit_file(tree, "own.py", "mine\n")
    refused = landed(quick, tree)
    said = f"this branch brings back commits that were taken off main: {gone[:10]}\n"
    assert (refused.code, said in refused.err) == (5, True), refused
    assert "secret" not in git(repo, "log", "--format=%s", "main").split()
    if "amend" in how:
        assert landed(quick, tree).code == 5  # Both have another `secret`.
        git(tree, "merge", "--abort")
    suggested = re.search(r"(git rebase .+?);", refused.err)
    assert suggested is not None
    git(tree, *shlex.split(suggested[1])[1:])
    assert landed(quick, tree).code == 0
    assert gone not in git(repo, "rev-list", "main")


def test_what_was_taken_off_the_main_branch_and_is_meant_lands(
    quick: QuickQueen, repo: Path, trees: Trees
) -> None:
    tree = trees("ui")
    commit_file(tree, "own.py", "mine\n")
    assert landed(quick, tree).code == 0
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    commit_file(tree, "more.py", "mine\n")
    assert landed(quick, tree).code == 5
    assert landed(quick, tree).code == 0
    assert on_main(repo, "own.py") == "mine\n"


def test_without_a_reflog_nothing_is_known_to_be_taken_off(
    quick: QuickQueen, repo: Path, trees: Trees
) -> None:
    commit_file(repo, "secret", "key\n")
    tree = trees("ui")
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    (repo / ".git/logs/refs/heads/main").unlink()
    commit_file(tree, "own.py", "mine\n")
    assert landed(quick, tree).code == 0
