"""The last step of a landing fails: nothing is left of it in the main worktree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import small_disks
from hives import Queen, QuickQueen, commit_file, git, write_lines

from queenbee.git.landing import commands

Fault = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEEN_LAND_ATTACHED", "1")
    monkeypatch.setattr(commands, "PATIENCE_S", 0.2)  # A lock here has nobody who ends it.


@pytest.fixture
def tracked(repo: Path, beads: Path, quick: QuickQueen) -> Path:
    """A repository that has its records in git, with an issue."""
    write_lines(beads / "issues.jsonl", {"id": "q-1", "title": "x", "status": "open"})
    quick("init")
    quick("config", "set", "land.check", "true")
    quick("msg", "send", "ui", "hello", "--new", as_="boss")
    for name in ("old", "f"):
        commit_file(repo, name, f"{name}\n")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    return repo


@pytest.fixture
def tree(tracked: Path, tmp_path: Path, quick: QuickQueen) -> Path:
    return work(tracked, tmp_path / "ui", quick)


def work(repo: Path, tree: Path, quick: QuickQueen) -> Path:
    """A worktree that adds, changes and removes a file, with its issue."""
    git(repo, "worktree", "add", "-q", str(tree), "-b", "ui")
    git(tree, "rm", "-q", "old")
    (tree / "f").write_text("changed\n")
    commit_file(tree, "new/f", "new\n")
    git(tree, "commit", "-qam", "work")
    assert quick("claim", "q-1", as_="ui", cwd=tree).code == 0
    return tree


def state(repo: Path) -> tuple[str, ...]:
    """Returns the commit of the main worktree, what is staged, and what differs in its files."""
    paths = (path for path in sorted(repo.rglob("*")) if path.is_file())
    files = "".join(
        f"{path} {path.read_bytes()!r}\n"
        for path in paths
        if not {".git", ".beads"} & {*path.relative_to(repo).parts}
    )
    return (
        git(repo, "rev-parse", "HEAD"),
        git(repo, "ls-files", "--stage"),
        git(repo, "status", "--porcelain", "--", ":!.beads"),
        files,
    )


def locked(repo: Path) -> Path:
    path = repo / ".git" / "refs" / "heads" / "main.lock"
    path.touch()
    return path


def head_locked(repo: Path) -> Path:
    path = repo / ".git" / "HEAD.lock"
    path.touch()
    return path


def index_locked(repo: Path) -> Path:
    path = repo / ".git" / "index.lock"
    path.touch()
    return path


def refusing(state: str) -> Fault:
    def made(repo: Path) -> Path:
        hook = repo / ".git" / "hooks" / "reference-transaction"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(
            f"#!/bin/sh\ngrep -q refs/heads/main && [ $1 = {state} ] && echo no >&2 && exit 1\n"
            "exit 0\n"
        )
        hook.chmod(0o755)
        return hook

    return made


def merging(repo: Path) -> None:
    git(repo, "switch", "-q", "-c", "other", "HEAD~1")
    commit_file(repo, "m", "m\n")
    git(repo, "switch", "-q", "main")
    git(repo, "merge", "-q", "--no-commit", "other")


def picking(repo: Path) -> None:
    git(repo, "switch", "-q", "-c", "other", "HEAD~1")
    commit_file(repo, "f", "theirs\n")
    git(repo, "switch", "-q", "main")
    commit_file(repo, "f", "mine\n")
    subprocess.run(["git", "cherry-pick", "other"], cwd=repo, capture_output=True)


def in_the_way(repo: Path) -> None:
    (repo / "new").mkdir()
    (repo / "new" / "f").write_text("mine\n")


def edited(repo: Path) -> None:
    (repo / "f").write_text("mine\n")


FAULTS: dict[str, Fault] = {
    "a lock of the reference": locked,
    "a lock of HEAD": head_locked,
    "a lock of the index": index_locked,
    "a hook that refuses": refusing("prepared"),
    "a merge": merging,
    "a cherry-pick": picking,
    "a file in the way": in_the_way,
    "an edited file": edited,
}


BEFOREHAND = ("a lock of the reference", "a lock of HEAD", "a hook that refuses")


@pytest.mark.parametrize("fault", [FAULTS[each] for each in BEFOREHAND], ids=BEFOREHAND)
def test_what_keeps_the_branch_is_found_before_a_file_changes(
    quick: QuickQueen, tracked: Path, tree: Path, fault: Fault
) -> None:
    fault(tracked)
    paths = [path for path in tracked.iterdir() if path.is_file()]
    before = {path: os.stat(path).st_ino for path in paths}
    done = quick("land", "--json", as_="ui", cwd=tree)
    assert (done.code, done.error["code"], done.error["files"]) == (5, "main_blocked", []), done
    assert {path: os.stat(path).st_ino for path in paths} == before
    if fault in (locked, head_locked):
        lock = fault(tracked)
        assert done.error["hint"] == f"if no git command runs there: rm {lock}"
    else:
        assert ": no " in done.error["message"]


@pytest.mark.some(2)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_leaves_nothing(quick: QuickQueen, tracked: Path, tree: Path, fault: Fault) -> None:
    left = fault(tracked)
    before = state(tracked)
    done = quick("land", "--json", as_="ui", cwd=tree)
    assert (done.code, state(tracked)) == (5, before), done
    assert [each["status"] for each in quick("issue", "assignments", "--json").json] == ["active"]
    if isinstance(left, Path):
        left.unlink()
        assert quick("land", as_="ui", cwd=tree).code == 0
        assert git(tracked, "status", "--porcelain") == ""
        assert (tracked / "f").read_text() == "changed\n"


def test_a_hook_that_refuses_late_leaves_nothing(
    quick: QuickQueen, tracked: Path, tree: Path, tmp_path: Path
) -> None:
    """It lets git try, and refuses when the files are there."""
    before = state(tracked)
    hook = tracked / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    log = tmp_path / "log"
    hook.write_text(
        f"#!/bin/sh\ngrep -q refs/heads/main && [ $1 = prepared ] || exit 0\necho >> {log}\n"
        f"[ $(wc -l < {log}) = 1 ]\n"
    )
    hook.chmod(0o755)
    done = quick("land", "--json", as_="ui", cwd=tree)
    assert (done.code, state(tracked)) == (5, before), done
    assert len(log.read_text()) == 2
    hook.unlink()
    assert quick("land", as_="ui", cwd=tree).code == 0
    assert git(tracked, "status", "--porcelain") == ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes, where this process may make one."""
    with small_disks.mounted(tmp_path / "small", "4m") as place:
        yield place


def test_on_a_full_disk_leaves_nothing(small_disk: Path, queen: Queen) -> None:
    repo, tree, full = small_disk / "repo", small_disk / "ui", small_disk / "full"
    repo.mkdir()
    git(repo, "init", "-q")
    commit_file(repo, "f", "f\n")
    commit_file(repo, "old", "old\n")
    # What is left is enough for git's objects, and not for the files.
    fill = f"head -c $(($(df --output=avail -B1 {small_disk} | tail -1) - 300000)) /dev/zero"
    for command in (("init",), ("config", "set", "land.check", f"{fill} > {full}; true")):
        assert queen(*command, cwd=repo).code == 0
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    git(repo, "worktree", "add", "-q", str(tree), "-b", "ui")
    git(tree, "rm", "-q", "old")
    (tree / "f").write_text("changed\n")
    commit_file(tree, "large", "x\n" * 500_000)
    git(tree, "commit", "-qam", "work")
    assert queen("issue", "new", "x", "--id", "q-1", as_="ui", cwd=tree).code == 0
    assert queen("claim", "q-1", as_="ui", cwd=tree).code == 0
    before = state(repo)
    done = queen("land", "--json", as_="ui", cwd=tree)
    assert (done.code, done.error["code"]) == (7, "unwritable"), done
    assert state(repo) == before
    full.unlink()
    assert queen("config", "set", "land.check", "true", cwd=repo).code == 0
    git(repo, "commit", "-qam", "a check that needs no room")
    done = queen("land", as_="ui", cwd=tree)
    assert (done.code, git(repo, "status", "--porcelain", "--", ":!.beads")) == (0, ""), done
