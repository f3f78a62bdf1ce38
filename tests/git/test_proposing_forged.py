"""A record may name any branch, commit and pull request: what was not pushed from here, for this
issue and to the branch that was agreed to, is not merged, removed, written to or checked out.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git, write_lines
from proposed import ask_again, follow, forge, forge_review, land, state
from scripted_host import ScriptedHost


def test_the_pull_request_of_a_person_is_not_merged(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    quick("config", "set", "land.merge", "auto")
    host.approvals, host.required = 0, []
    land(quick, tree)
    forge(host, tree, "q-1", "release")
    follow(quick, tree)
    assert [each["state"] for each in host.pulls.values()] == ["OPEN", "OPEN"]
    assert "#2 could be merged" in quick("status", as_="ui", cwd=tree).out


@pytest.mark.parametrize("method", ["MERGE", "SQUASH"])
def test_the_branch_of_a_person_is_not_removed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, method: str
) -> None:
    land(quick, tree)
    number = forge(host, tree, "q-1", "release")
    tip = host.tip("release")
    host.merge(number, method)
    follow(quick, tree)
    assert state(quick, "q-1") == "done"
    assert host.tip("release") == tip


def test_nothing_is_pushed_to_the_branch_of_a_person(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    forge(host, tree, "q-1", "release", head=host.tip("ui-q-1"))
    tip = host.tip("release")
    land(quick, tree, "b")
    assert host.tip("release") == tip
    assert host.git("show", "ui-q-1:b") == "x"


@pytest.mark.parametrize(
    ("issue_id", "branch"), [("release", "release"), ("q-1", "fix/q-1"), ("main", "main")]
)
def test_nothing_is_pushed_to_a_branch_that_is_called_after_its_issue(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path, issue_id: str, branch: str
) -> None:
    quick("release", "q-1", as_="ui", cwd=tree)
    write_lines(repo / ".beads" / "issues.jsonl", {"id": issue_id, "title": "T", "status": "open"})
    quick("claim", issue_id, as_="ui", cwd=tree)
    host.repo.joinpath("unprotected").touch()
    land(quick, tree)
    if branch != "main":
        host.git("branch", branch, "main")
    tip = host.tip(branch)
    forge_review(tree, issue_id, branch=branch)
    land(quick, tree, "b")
    assert host.tip(branch) == tip
    assert host.git("show", f"ui-{issue_id}:b") == "x"


def test_a_branch_that_is_called_like_the_target_is_not_pushed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    """Also where the host would take it, such as from whoever may pass its rules."""
    quick("release", "q-1", as_="ui", cwd=tree)
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "main", "title": "T", "status": "open"})
    quick("claim", "main", as_="ui", cwd=tree)
    git(repo, "switch", "-qc", "elsewhere")
    git(repo, "branch", "-D", "main")
    git(tree, "branch", "-m", "ui", "main")
    host.repo.joinpath("unprotected").touch()
    tip = host.tip("main")
    refused = land(quick, tree)
    assert (refused.code, "is the target" in refused.err) == (5, True), refused
    assert host.tip("main") == tip


def test_another_issue_of_ours_does_not_replace_what_one_proposes(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    quick("next", as_="ui", cwd=tree)
    tip = host.tip("ui-q-1")
    forge_review(tree, "q-3", branch="ui-q-1", head=tip, number=1)
    (tree / "b").write_text("x\n")
    quick("land", "q-3", "-m", "add b", as_="ui", cwd=tree)
    assert host.tip("ui-q-1") == tip
    assert host.git("show", "ui-q-3:b") == "x"


def test_a_pull_request_for_another_branch_is_not_merged(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    quick("config", "set", "land.merge", "auto")
    land(quick, tree)
    host.git("branch", "production", "main")
    host.pulls[2] = {**host.pull("ui-q-1"), "base": "production"}
    forge_review(tree, "q-1", number=2)
    host.approvals, host.required = 0, []
    follow(quick, tree)
    assert [each["state"] for each in host.pulls.values()] == ["OPEN", "OPEN"]


@pytest.mark.parametrize("asks", ["", "changes"])
def test_a_commit_of_a_person_is_not_checked_out(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path, asks: str
) -> None:
    git(repo, "switch", "-qc", "wip")
    commit_file(repo, "migrate.sql", "half done")
    git(repo, "switch", "-q", "main")
    before = git(tree, "rev-parse", "HEAD")
    forge_review(tree, "q-1", head=git(repo, "rev-parse", "wip").strip(), asks=asks)
    quick("next", as_="ui", cwd=tree)
    assert git(tree, "rev-parse", "HEAD") == before
    (tree / "a").write_text("x\n")
    quick("land", "q-1", "-m", "add a", as_="ui", cwd=tree)
    assert "migrate.sql" not in host.git("ls-tree", "--name-only", "ui-q-1")


def test_commits_that_only_a_record_calls_proposed_stay_on_their_branch(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    assert "q-3" in quick("next", as_="ui", cwd=tree).out
    commit_file(tree, "work.txt", "a day of work")
    head = git(tree, "rev-parse", "HEAD").strip()
    forge_review(tree, "q-3", head=head)
    forge_review(tree, "q-1", asks="changes")
    quick("next", as_="ui", cwd=tree)
    assert git(tree, "rev-parse", "HEAD").strip() == head


def test_what_a_record_says_does_not_drop_work_from_a_landing(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    (tree / "a").write_text("x\n")
    git(tree, "add", "a")
    git(tree, "commit", "-qm", "add a")
    quick("claim", "q-3", as_="ui", cwd=tree)
    forge_review(tree, "q-3", head=git(tree, "rev-parse", "HEAD").strip())
    landed = quick("land", "q-1", as_="ui", cwd=tree)
    assert "rebase" not in landed.err, landed
    assert host.git("show", "ui-q-1:a") == "x"


def test_no_host_is_asked_where_nobody_here_has_agreed(
    asking: Path, quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    """Its client would send it the token of whoever types a command."""
    land(quick, tree)
    shutil.rmtree(asking)
    host.merge(1)
    for words in (("next",), ("status", "--sync"), ("show", "q-1")):
        ask_again(tree)
        quick(*words, as_="ui", cwd=tree)
    assert state(quick, "q-1") == "active"
    assert quick("config", "trust", "--yes", as_="human").code == 0
    follow(quick, tree)
    assert state(quick, "q-1") == "done"


@pytest.fixture
def pushed(quick: QuickQueen, host: ScriptedHost, tree: Path) -> list[str]:
    """Two commits that were pushed from `tree` for one issue, the latest last."""
    found = []
    for name in ("a", "b"):
        assert land(quick, tree, name).code == 10
        found.append(host.tip("ui-q-1"))
    return found


def test_an_older_commit_of_ours_in_a_record_takes_nothing_back(
    quick: QuickQueen, host: ScriptedHost, tree: Path, pushed: list[str]
) -> None:
    assert "q-1" not in quick("next", as_="ui", cwd=tree).out
    forge_review(tree, "q-1", head=pushed[0], asks="failing")
    assert "q-1 is still yours" in quick("next", as_="ui", cwd=tree).out
    assert git(tree, "rev-parse", "HEAD").strip() == pushed[1]
    assert land(quick, tree, "c").code == 10
    assert host.git("ls-tree", "--name-only", "ui-q-1").split() == ["README.md", "a", "b", "c"]


def test_what_a_push_replaces_and_lacks_is_kept(
    quick: QuickQueen, host: ScriptedHost, tree: Path, pushed: list[str]
) -> None:
    forge_review(tree, "q-1", head=pushed[0])
    git(tree, "reset", "-q", "--hard", pushed[0])
    done = land(quick, tree, "c")
    assert "kept on unfinished/ui-q-1" in done.out, done
    assert host.git("ls-tree", "--name-only", "ui-q-1").split() == ["README.md", "a", "c"]
    assert git(tree, "rev-parse", "unfinished/ui-q-1").strip() == pushed[1]


def test_a_push_replaces_no_commit_but_the_last_one(
    quick: QuickQueen, host: ScriptedHost, tree: Path, pushed: list[str]
) -> None:
    host.git("update-ref", "refs/heads/ui-q-1", pushed[0])
    forge_review(tree, "q-1", head="0" * 40)
    git(tree, "reset", "-q", "--hard", "origin/main")
    refused = land(quick, tree, "c", "--json")
    assert (refused.code, refused.error["code"]) == (5, "foreign_commits"), refused
    assert host.tip("ui-q-1") == pushed[0]


def test_what_the_remote_did_not_take_is_not_what_was_pushed_last(
    quick: QuickQueen, host: ScriptedHost, tree: Path, pushed: list[str]
) -> None:
    hook = host.repo / "hooks" / "update"
    before = hook.read_text()
    hook.write_text("#!/bin/sh\nexit 1\n")
    assert land(quick, tree, "c").code == 5
    hook.write_text(before)
    git(tree, "reset", "-q", "--hard", pushed[1])
    forge_review(tree, "q-1", asks="failing")
    quick("next", as_="ui", cwd=tree)
    assert git(tree, "rev-parse", "HEAD").strip() == pushed[1]


def test_what_another_is_said_to_have_merged_moves_no_worktree(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    commit_file(tree, "work.txt", "a day of work")
    head = git(tree, "rev-parse", "HEAD").strip()
    quick("claim", "q-3", as_="mallory", cwd=repo)
    number = forge(host, tree, "q-3", "b", head=head)
    host.pulls[number] |= {"head": head, "state": "MERGED", "merged": host.base("other", "x\n")}
    quick("next", as_="ui", cwd=tree)
    quick("next", as_="ui", cwd=tree)
    assert state(quick, "q-3") == "done"
    assert git(tree, "rev-parse", "HEAD").strip() == head
