"""`queen worktree`: made whole or not at all, found again after a kill, removed when all landed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from acting import answer, install_guard
from hives import Queen, QuickQueen, commit_file, git, write_lines
from made_worktrees import STOPPING, add, assert_whole, opened, remove

from queenbee import Hive
from queenbee.errors import (
    Conflict,
    ExternalFailure,
    InvalidInput,
    NotFound,
    QueenError,
    Taken,
)
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


def places(hive: Hive) -> list[SimpleNamespace]:
    """Returns what `queen worktree list` lists."""
    return [SimpleNamespace(**each) for each in answer(hive, "worktree", "list")]


def trees(repo: Path) -> list[str]:
    lines = git(repo, "worktree", "list", "--porcelain").splitlines()
    return [Path(each.split(" ", 1)[1]).name for each in lines if each.startswith("worktree ")]


def branches(repo: Path) -> list[str]:
    return git(repo, "branch", "--format=%(refname:short)").split()


def test_it_has_a_branch_a_name_and_an_issue(tree: Path) -> None:
    made = add(opened(tree), "ui", issue_id="qb-1")
    path = assert_whole(tree, "ui")
    assert (made.path, made.branch, made.droid) == (str(path), "ui", "ui")
    assert made.assignment is not None
    assert (made.assignment.droid, made.assignment.worktree) == ("ui", "repo-ui")
    assert git(path, "rev-parse", "HEAD") == git(tree, "rev-parse", "main")


def test_it_is_found_again_as_a_killed_landing_leaves_it(tree: Path) -> None:
    made = add(opened(tree), "ui")
    git(Path(made.path), "checkout", "-q", "--detach")
    assert add(opened(tree), "ui").path == made.path


def test_from_a_linked_worktree_it_is_made_beside_the_main_one(tree: Path) -> None:
    add(opened(tree), "ui")
    add(opened(tree.parent / "repo-ui", None), "api")
    assert_whole(tree, "api")


def test_the_guard_of_the_main_worktree_holds_there(tree: Path) -> None:
    assert not add(opened(tree), "ui").guarded
    install_guard(tree)
    assert add(opened(tree), "api").guarded


def test_a_refused_claim_leaves_nothing(tree: Path) -> None:
    opened(tree, "api").assignments.claim("qb-1")
    with pytest.raises(Taken):
        add(opened(tree), "ui", issue_id="qb-1")
    assert (trees(tree), branches(tree)) == (["repo"], ["main"])
    assert not (tree.parent / "repo-ui").exists()
    add(opened(tree), "ui")
    assert_whole(tree, "ui")


def test_if_git_fails_the_claim_is_given_back(tree: Path) -> None:
    hook = tree / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\n! grep -q " HEAD$"\n')
    hook.chmod(0o755)
    with pytest.raises(ExternalFailure):
        add(opened(tree), "ui", issue_id="qb-1")
    hook.unlink()
    assert (trees(tree), branches(tree)) == (["repo"], ["main"])
    assert opened(tree).assignments.active("qb-1") is None
    assert not (tree.parent / "repo-ui").exists()


def test_what_git_refuses_has_a_way_out(tree: Path) -> None:
    git(tree, "branch", "feature/one")
    with pytest.raises(ExternalFailure, match="feature/one") as refused:
        add(opened(tree), "feature")
    assert "choose another name" in str(refused.value.hint)
    hook = tree / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\necho no install >&2; exit 1\n")
    hook.chmod(0o755)
    with pytest.raises(ExternalFailure, match="no install") as refused:
        add(opened(tree), "ui")
    assert str(refused.value.hint).endswith("go on without it: queen worktree add ui")
    add(opened(tree), "ui")
    assert_whole(tree, "ui")


def test_a_repository_that_git_cannot_read_is_not_one_without_commits(tree: Path) -> None:
    git(tree, "config", "core.repositoryFormatVersion", "1")
    git(tree, "config", "extensions.fromTheFuture", "true")
    with pytest.raises(ExternalFailure, match=r"(?i)extension.*fromTheFuture"):
        add(opened(tree), "ui")


def test_what_is_there_already_is_left_alone(tree: Path) -> None:
    folder = tree.parent / "repo-ui"
    folder.mkdir()
    (folder / "mine").write_text("x")
    with pytest.raises(Conflict, match="exists already"):
        add(opened(tree), "ui", issue_id="qb-1")
    git(tree, "branch", "api")
    with pytest.raises(Conflict, match="branch api, which QueenBee did not make"):
        add(opened(tree), "api", issue_id="qb-1")
    assert (folder / "mine").read_text() == "x"
    assert opened(tree).assignments.active("qb-1") is None


def test_it_is_made_again_on_its_branch_after_its_folder_was_deleted(tree: Path) -> None:
    path = Path(add(opened(tree), "ui").path)
    commit_file(path, "new.txt", "x\n")
    shutil.rmtree(path)
    assert add(opened(tree), "ui").path == str(path)
    assert (assert_whole(tree, "ui") / "new.txt").exists()


def test_the_note_of_a_branch_goes_with_it(tree: Path) -> None:
    add(opened(tree), "ui")
    git(tree, "worktree", "remove", str(tree.parent / "repo-ui"))
    git(tree, "branch", "-D", "ui")
    git(tree, "branch", "ui")
    with pytest.raises(Conflict, match="did not make"):
        add(opened(tree), "ui")


def test_a_branch_that_exists_is_adopted_with_its_commits(tree: Path) -> None:
    git(tree, "branch", "api")
    made = add(opened(tree), "api", branch="api")
    assert (made.branch, made.droid) == ("api", "api")
    with pytest.raises(Conflict, match="branch api already, in "):
        add(opened(tree), "ui", branch="api")


@pytest.mark.parametrize("name", ["a..b", "x.lock", "end.", "-d", "a/b"])
def test_a_name_must_fit_a_droid_and_a_branch(tree: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        add(opened(tree), name)
    assert trees(tree) == ["repo"]


STOP = f"""{STOPPING}
    from queenbee import Hive
    from queenbee.git import ownership
    from queenbee.git.worktrees import worktree_making as making

    making.write_document = stopping(making.write_document)
    making.as_the_user = stopping(making.as_the_user)
    ownership.write_document = stopping(ownership.write_document)
    ownership.as_the_user = stopping(ownership.as_the_user)
    making.unlock = stopping(making.unlock)
    making._Making.end = stopping(making._Making.end)
    hive = Hive.open(droid="lead")
    from queenbee.services.assignments import Assignments
    Assignments.claim = stopping(Assignments.claim)
    making.add(hive, "ui", issue_id="qb-1")
    print(step)
"""


def test_killed_at_any_step_the_same_call_goes_on(tree: Path) -> None:
    for step in range(1, 100):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(STOP), str(step)], cwd=tree, capture_output=True
        )
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            break
        add(opened(tree), "ui", issue_id="qb-1")
        assert_whole(tree, "ui")
        hive = opened(tree, "ui")
        assert [each.droid for each in hive.assignments.find(issue_id="qb-1")] == ["ui"]
        hive.assignments.release("qb-1")
        remove(opened(tree), "ui")
        assert (trees(tree), branches(tree)) == (["repo"], ["main"])
    assert step == 19  # Nine steps were stopped, before and after each.


def test_a_note_of_a_killed_call_deletes_nobodys_branch(tree: Path) -> None:
    path = tree.parent / "repo-ui"
    note = tree / ".git" / "queenbee-private" / "making" / "ui.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"path": str(path), "base": "0" * 40}))
    git(tree, "branch", "ui")
    with pytest.raises(Conflict):
        add(opened(tree), "ui")
    assert branches(tree) == ["main", "ui"]


def test_made_by_several_at_once_it_is_one(queen: Queen, tree: Path) -> None:
    running = [queen.start("worktree", "add", "ui", "qb-1", as_="lead") for _ in range(3)]
    for each in running:
        each.communicate(timeout=60)
    assert [each.returncode for each in running] == [0, 0, 0]
    path = assert_whole(tree, "ui")
    assert len(opened(tree).assignments.find(issue_id="qb-1")) == 1
    (path / "draft.txt").write_text("x")
    opened(tree, "api").assignments.claim("qb-2")
    with pytest.raises(Taken):
        add(opened(tree), "ui", issue_id="qb-2")
    assert (path / "draft.txt").exists()


def test_a_tag_with_the_full_name_of_a_branch_is_none(tree: Path) -> None:
    git(tree, "update-ref", "refs/tags/refs/heads/ui", "HEAD")
    assert add(opened(tree), "ui").branch == "ui"
    assert "ui" in branches(tree)


def test_a_branch_that_is_handed_over_and_not_used_is_named(quick: QuickQueen, repo: Path) -> None:
    git(repo, "branch", "mine")
    made = quick("worktree", "add", "ui", "--adopt", "mine")
    assert "mine is handed over, and ui works on ui" in made.err, made


# Removing


def test_it_is_removed_with_its_branch_and_leases_when_all_has_landed(tree: Path) -> None:
    add(opened(tree), "ui")
    path = tree.parent / "repo-ui"
    commit_file(path, "new.txt", "x\n")
    git(tree, "merge", "-q", "ui")
    Hive.open(path, env={}).reservations.reserve(["new.txt"], session="s")
    removed = remove(opened(tree), "ui")
    assert (removed.keeps_branch, removed.released) == (False, ["new.txt"])
    assert (trees(tree), branches(tree)) == (["repo"], ["main"])
    assert not opened(tree).reservations.find()


@pytest.mark.parametrize("name", ["release", "given", "api"])
def test_no_branch_goes_with_it_but_the_one_that_was_made_for_it(tree: Path, name: str) -> None:
    if name != "api":
        git(tree, "branch", name)
    path = Path(add(opened(tree), "ui", branch="given" if name == "given" else None).path)
    if name == "api":
        git(tree, "worktree", "remove", add(opened(tree), "api").path)
    git(path, "switch", "-q", name)
    assert remove(opened(tree), "ui").keeps_branch
    assert {*branches(tree)} >= {"main", name}


@pytest.mark.parametrize("is_merged", [False, True])
def test_its_branch_stays_that_was_pushed_and_did_not_land(
    tree: Path, tmp_path: Path, is_merged: bool
) -> None:
    git(tree, "init", "-q", "--bare", str(tmp_path / "there.git"))
    git(tree, "remote", "add", "there", str(tmp_path / "there.git"))
    path = Path(add(opened(tree), "ui").path)
    commit_file(path, "new.txt", "x\n")
    git(path, "push", "-q", "--set-upstream", "there", "ui")
    if is_merged:
        git(tree, "merge", "-q", "ui")
    assert remove(opened(tree), "ui", force=True).keeps_branch == (not is_merged)
    assert ("ui" in branches(tree)) == (not is_merged)


def test_what_its_droid_reserved_by_hand_ends_with_it(tree: Path) -> None:
    add(opened(tree), "ui")
    Hive.open(tree.parent / "repo-ui", env={}).reservations.reserve(["src/**"])
    opened(tree).reservations.reserve(["docs/**"])
    assert remove(opened(tree), "ui").released == ["src/**"]
    assert [each.pattern for each in opened(tree).reservations.find()] == ["docs/**"]


def test_what_its_droid_reserved_stays_while_it_has_another_worktree(tree: Path) -> None:
    add(opened(tree), "ui")
    add(opened(tree), "api")
    (tree / ".git" / "worktrees" / "repo-api" / "queenbee-droid").write_text("ui\n")
    Hive.open(tree.parent / "repo-ui", env={}).reservations.reserve(["src/**"])
    assert remove(opened(tree), "repo-api").released == []
    assert [each.pattern for each in opened(tree).reservations.find()] == ["src/**"]


def test_it_refuses_while_its_droid_has_an_issue(tree: Path) -> None:
    add(opened(tree), "ui", issue_id="qb-1")
    for force in (False, True):
        with pytest.raises(Conflict, match="works on qb-1") as refusal:
            remove(opened(tree), "ui", force=force)
        assert refusal.value.hint == "queen release qb-1 --as ui"
    assert_whole(tree, "ui")


def test_it_refuses_what_would_be_lost_and_force_keeps_the_branch(tree: Path) -> None:
    add(opened(tree), "ui")
    path = tree.parent / "repo-ui"
    commit_file(path, "new.txt", "x\n")
    with pytest.raises(Conflict, match="one commit"):
        remove(opened(tree), "ui")
    (path / "draft.txt").write_text("x")
    with pytest.raises(Conflict, match=r"draft\.txt"):
        remove(opened(tree), "ui")
    assert (path / "draft.txt").exists()
    removed = remove(opened(tree), "ui", force=True)
    assert (removed.keeps_branch, removed.kept) == (True, "unfinished/repo-ui")
    assert branches(tree) == ["main", "ui", "unfinished/repo-ui"]
    assert git(tree, "show", "unfinished/repo-ui:draft.txt") == "x"


def test_it_refuses_commits_on_no_branch_and_force_keeps_them(tree: Path) -> None:
    path = Path(add(opened(tree), "ui").path)
    git(path, "checkout", "-q", "--detach")
    commit_file(path, "new.txt", "x\n")
    git(path, "rm", "-q", "new.txt")
    git(path, "commit", "-qm", "in the history alone")
    with pytest.raises(Conflict, match="on no branch"):
        remove(opened(tree), "ui")
    removed = remove(opened(tree), str(path), force=True)
    assert removed.kept == "unfinished/repo-ui"
    assert git(tree, "show", "unfinished/repo-ui~1:new.txt") == "x\n"


def test_it_refuses_a_repository_in_it_with_commits_of_its_own(tree: Path) -> None:
    commit_file(tree, ".gitignore", "vendor/\n")
    path = Path(add(opened(tree), "ui").path)
    own = path / "vendor" / "x"
    own.mkdir(parents=True)
    git(own, "init", "-q")
    commit_file(own, "a.txt", "x\n")
    with pytest.raises(Conflict, match=r"commits that no remote has: .*vendor/x"):
        remove(opened(tree), "ui")
    git(tree, "clone", "-q", "--bare", str(own), str(tree.parent / "remote"))
    git(own, "remote", "add", "origin", str(tree.parent / "remote"))
    git(own, "fetch", "-q", "origin")
    remove(opened(tree), "ui")
    assert not path.exists()


@pytest.mark.parametrize("where", ["vendor/x", "a worktree of it"])
def test_it_refuses_a_repository_in_it_with_a_rebase_under_way(tree: Path, where: str) -> None:
    commit_file(tree, ".gitignore", "vendor/\n")
    git(tree, "init", "-q", "--bare", str(tree.parent / "remote"))
    git(tree, "push", "-q", str(tree.parent / "remote"), "main")
    own = Path(add(opened(tree), "ui").path) / "vendor" / "x"
    git(tree, "clone", "-q", "--branch=main", str(tree.parent / "remote"), str(own))
    if where != "vendor/x":
        git(own, "worktree", "add", "-q", "--detach", str(tree.parent / "other"))
    at = own if where == "vendor/x" else tree.parent / "other"
    git(at, "checkout", "-q", "--detach")
    commit_file(at, "mine.txt", "x\n")
    git(at, "-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "origin/main")
    with pytest.raises(Conflict, match=r"under way in a repository in .*vendor/x") as refused:
        remove(opened(tree), "ui")
    assert refused.value.details["files"] == [str(own)]
    git(at, "rebase", "--abort")
    with pytest.raises(Conflict, match="commits that no remote has"):
        remove(opened(tree), "ui")


@pytest.mark.parametrize("of", ["this repository", "another one", "one that is away"])
def test_a_worktree_in_it_stays_somebodys(tree: Path, of: str) -> None:
    commit_file(tree, ".gitignore", "mine/\n.env\n")
    path = Path(add(opened(tree), "ui").path)
    other = tree
    if of != "this repository":
        other = tree.parent / "other"
        git(tree, "clone", "-q", str(tree), str(other))
    inner = path / "mine" / "fix"
    git(other, "worktree", "add", "-q", str(inner))
    (inner / ".env").write_text("secret\n")
    away = other.rename(other.with_name("away")) if of == "one that is away" else None
    for force in (False, True):
        with pytest.raises(Conflict, match=r"another worktree in .*mine/fix"):
            remove(opened(tree), "ui", force=force)
    with pytest.raises(Conflict, match="mine/fix"):
        abandon(opened(tree), str(path))
    assert (inner / ".env").read_text() == "secret\n"
    if away is not None:
        away.rename(other)
    git(other, "worktree", "move", str(inner), str(tree.parent / "fix"))
    remove(opened(tree), "ui")
    assert (tree.parent / "fix" / ".env").exists()


def test_it_refuses_a_bare_repository_with_commits_of_its_own(tree: Path) -> None:
    commit_file(tree, ".gitignore", "vendor/\n")
    path = Path(add(opened(tree), "ui").path)
    git(tree, "init", "-q", "--bare", str(path / "vendor" / "x.git"))
    git(tree, "push", "-q", str(path / "vendor" / "x.git"), "main")
    with pytest.raises(Conflict, match=r"commits that no remote has: .*vendor/x\.git"):
        remove(opened(tree), "ui")


def test_it_names_what_git_ignored_there(quick: QuickQueen, tree: Path) -> None:
    commit_file(tree, ".gitignore", ".env\nbuild/\n")
    path = Path(add(opened(tree), "ui").path)
    (path / "build").mkdir()
    (path / "build" / "x").write_text("x\n")
    (path / ".env").write_text("x\n")
    said = quick("worktree", "remove", "ui", cwd=tree).out
    assert "gone with it, ignored by git: .env, build/" in said


def test_it_refuses_a_git_command_that_is_under_way(tree: Path) -> None:
    path = Path(add(opened(tree), "ui").path)
    git(path, "bisect", "start")
    with pytest.raises(Conflict, match="git bisect is under way"):
        remove(opened(tree), "ui")


def test_what_landed_squashed_may_go_but_the_branch_stays(tree: Path) -> None:
    add(opened(tree), "ui")
    commit_file(tree.parent / "repo-ui", "new.txt", "x\n")
    git(tree, "merge", "-q", "--squash", "ui")
    git(tree, "commit", "-qm", "squashed")
    assert remove(opened(tree), "ui").keeps_branch
    assert trees(tree) == ["repo"]


def test_neither_the_main_worktree_nor_the_present_one_is_removed(tree: Path) -> None:
    add(opened(tree), "ui")
    with pytest.raises(Conflict, match="main worktree"):
        remove(opened(tree), "repo")
    with pytest.raises(Conflict, match="you are in"):
        remove(opened(tree.parent / "repo-ui", None), "ui")
    with pytest.raises(NotFound):
        remove(opened(tree), "nobody")


def test_a_lock_of_git_is_respected(tree: Path) -> None:
    add(opened(tree), "ui")
    git(tree, "worktree", "lock", str(tree.parent / "repo-ui"))
    for force in (False, True):
        with pytest.raises(ExternalFailure, match="locked"):
            remove(opened(tree), "ui", force=force)


# All of them


def test_the_list_says_whose_they_are_and_what_has_not_landed(tree: Path) -> None:
    add(opened(tree), "ui", issue_id="qb-1")
    path = tree.parent / "repo-ui"
    commit_file(path, "new.txt", "x\n")
    (path / "draft.txt").write_text("x")
    git(tree, "worktree", "add", "-q", "--detach", str(tree.parent / "loose"))
    found = {each.name: each for each in places(opened(path, None))}
    assert list(found) == ["repo", "loose", "repo-ui"]
    ui = found["repo-ui"]
    assert (ui.droid, ui.branch, ui.issue_id) == ("ui", "ui", "qb-1")
    assert (ui.unlanded, ui.changed) == (1, ["draft.txt"])
    assert ui.last_seen_at is not None
    assert (found["loose"].branch, found["loose"].droid) == (None, None)
    assert found["repo"].changed == []  # The hive's own files do not count.


def test_an_issue_that_its_droid_completed_is_not_listed(tree: Path) -> None:
    add(opened(tree), "ui", issue_id="qb-1")
    opened(tree, "ui").assignments.complete("qb-1")
    assert [each.issue_id for each in places(opened(tree))] == [None, None]


def test_the_commands(quick: QuickQueen, tree: Path) -> None:
    made = quick("worktree", "add", "ui", "1", as_="lead")
    path = tree.parent / "repo-ui"
    assert made.code == 0
    assert made.out.splitlines() == [
        f"ui works in {path}, on branch ui",
        "qb-1 is assigned to ui",
        f"begin there: cd {path} && queen next",
    ]
    assert "queen guard install" in made.err
    listed = quick("worktree", "list").out
    assert "repo-ui" in listed and "qb-1" in listed
    assert quick("worktree", "list", "--json").json[1]["droid"] == "ui"
    refused = quick("worktree", "remove", "ui")
    assert (refused.code, "queen release qb-1 --as ui" in refused.err) == (5, True)
    assert quick("release", "qb-1", as_="ui").code == 0
    assert quick("worktree", "remove", "ui").out == f"removed {path}\n"
    assert not os.path.exists(path)


def test_a_branch_that_leads_elsewhere_is_neither_used_nor_removed(tree: Path) -> None:
    hive = opened(tree)
    made = add(hive, "ui")
    git(tree, "branch", "person")
    git(tree, "symbolic-ref", "refs/heads/ui", "refs/heads/person")
    with pytest.raises(QueenError, match="is a symbolic reference to person"):
        remove(hive, "ui")
    removed = remove(hive, "ui", force=True)
    assert removed.keeps_branch
    assert "person" in branches(tree)
    for words in (["add", "ui"], ["add", "ui", "--adopt", "ui"]):
        with pytest.raises(QueenError, match="is a symbolic reference"):
            answer(hive, "worktree", *words)
    assert not Path(made.path).exists()


def test_the_branch_on_which_work_lands_stays_with_its_worktree_gone(tree: Path) -> None:
    add(opened(tree), "trunk")
    (tree / ".beads" / "queen.toml").write_text('[land]\ntarget = "trunk"\n')
    removed = remove(opened(tree), "trunk")
    assert removed.keeps_branch
    assert "trunk" in branches(tree)


@pytest.mark.linux
def test_a_file_that_differs_by_case_alone_is_one_where_the_disk_says_so(tree: Path) -> None:
    hive = opened(tree)
    made = add(hive, "ui")
    git(tree, "config", "core.ignorecase", "true")
    (Path(made.path) / "FILE1.txt").write_text("a day of work\n")
    with pytest.raises(Conflict, match="not committed in"):
        remove(hive, "ui")
    removed = remove(hive, "ui", force=True)
    assert git(tree, "show", f"{removed.kept}:FILE1.txt") == "a day of work\n"
    assert git(tree, "show", f"{removed.kept}:file1.txt") != "a day of work\n"
