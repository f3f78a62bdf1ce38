"""Work that is proposed as a pull request, and has landed once that is merged."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from hives import Clock, Queen, QuickQueen, git, write_lines
from proposed import ask_again, follow, forget, land, state
from scripted_host import SLUG, ScriptedHost

from queenbee import Hive
from queenbee.services.telling import open_ends
from queenbee.watch.facts import Reader
from queenbee.watch.view import timeless_panels, timely_panels


def test_work_is_proposed_and_not_landed(quick: QuickQueen, host: ScriptedHost, tree: Path) -> None:
    done = land(quick, tree)
    assert (done.code, "proposed #1, not landed" in done.out) == (10, True), done
    assert host.pulls[1]["title"] == "q-1: Title 1"
    assert "Queen-Issue: q-1" in host.pulls[1]["body"]
    assert host.tip("ui-q-1") == host.pulls[1]["head"] == git(tree, "rev-parse", "HEAD").strip()
    assert host.tip("main") != host.tip("ui-q-1")
    assert (state(quick, "q-1"), state(quick, "q-2")) == ("active", "waits")


def test_the_next_issue_begins_at_the_target(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    done = land(quick, tree, "a", "--next")
    assert (done.code, "q-3 is yours" in done.out) == (10, True), done
    assert git(tree, "rev-parse", "HEAD").strip() == host.tip("main")
    assert git(tree, "branch", "--show-current").strip() == "ui"
    assert land(quick, tree, "b").code == 10
    assert host.git("ls-tree", "--name-only", "ui-q-3").split().count("a") == 0
    assert {each["title"] for each in host.pulls.values()} == {"q-1: Title 1", "q-3: Title 3"}


def test_a_proposal_that_nobody_waited_for_was_not_refused(
    queen: Queen, quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    (tree / "a").write_text("x\n")
    assert queen("land", "-m", "add a", "--no-wait", as_="ui", cwd=tree).code == 9
    told, until_s = "", time.monotonic() + 60
    while "your landing" not in told:
        assert time.monotonic() < until_s
        told = queen("show", "q-1", as_="ui", cwd=tree).err
    assert "your landing has ended: “proposed #1, not landed" in told


@pytest.mark.some(1)
@pytest.mark.parametrize("method", ["SQUASH", "REBASE", "MERGE"])
def test_what_was_merged_has_landed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, method: str
) -> None:
    land(quick, tree)
    commit = host.merge(1, method)
    told = follow(quick, tree)
    assert "q-2 is yours" in told.out, told
    assert state(quick, "q-1") == "done"
    assert commit[:10] in quick("show", "q-1").out
    assert host.tip("ui-q-1") == ""
    assert git(tree, "rev-parse", "HEAD").strip() == host.tip("main")
    assert (tree / "a").exists()
    assert land(quick, tree, "b").code == 10
    assert host.git("log", "--format=%s", "main..ui-q-2").splitlines() == ["add b"]


def test_it_has_not_landed_before_it_is_merged(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree, "a", "--next")
    host.check(1, "SUCCESS")
    host.review(1, "APPROVED")
    follow(quick, tree)
    assert (state(quick, "q-1"), state(quick, "q-2")) == ("active", "waits")


def test_the_host_is_asked_at_most_once_a_minute(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree, "a", "--next")
    host.requests.clear()
    for _ in range(3):
        quick("next", as_="ui", cwd=tree)
    assert host.requests == []
    follow(quick, tree)
    assert len(host.requests) == 1


def test_what_is_merged_before_the_answer_is_not_proposed_again(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    """Somebody waited for just that push."""
    land(quick, tree)
    host.before = lambda: host.merge(1)
    assert land(quick, tree, "b").code == 10
    assert len(host.pulls) == 1
    follow(quick, tree)
    assert state(quick, "q-1") == "done"


def test_a_person_without_a_name_may_find_what_was_merged(
    quick: QuickQueen, repo: Path, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.check(1, "FAILURE")
    ask_again(tree)
    assert quick("status", "--sync", cwd=repo).err == ""
    assert "ci failed" in quick("next", as_="ui", cwd=tree).out
    host.merge(1)
    ask_again(tree)
    told = quick("status", "--sync", cwd=repo)
    assert "q-1 has landed" in told.err, told
    assert (state(quick, "q-1"), state(quick, "q-2")) == ("done", "ready")


def test_everybody_is_shown_what_is_in_review(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.check(1, "PENDING")
    ask_again(tree)
    shown = quick("status", "--sync", as_="ui", cwd=tree)
    assert "in review: #1 is being checked (seen" in " ".join(shown.out.split()), shown
    shown = quick("show", "q-1")
    assert f"in review: #1 https://github.com/{SLUG}/pull/1" in " ".join(shown.out.split())
    assert "in review" in quick("issues").out
    assert quick("claim", "q-3", as_="api").code == 0
    assert "(ui has it, in review: #1)" in " ".join(quick("next", as_="ui").out.split())
    seen = " ".join(quick("status", as_="api").out.split())
    assert "ui: q-1 Title 1, in review: #1 is being checked (seen" in seen
    host.check(1, "FAILURE")
    follow(quick, tree)
    assert land(quick, tree, "b").code == 10
    assert "fails a check" not in quick("status", as_="api").out, "that was the push before"


def test_a_host_that_is_away_leaves_what_was_seen_last(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.check(1, "PENDING")
    ask_again(tree)
    quick("status", "--sync", as_="ui", cwd=tree)
    host.away = True
    ask_again(tree)
    shown = quick("status", "--sync", as_="ui", cwd=tree)
    assert shown.code == 0
    assert "is being checked" in shown.out
    assert "are as they were seen last" in shown.err
    refused = land(quick, tree, "b", "--json")
    assert (refused.code, refused.error["code"]) == (6, "host_away")
    assert git(tree, "status", "--porcelain", "b").startswith("??"), "nothing was committed"
    host.away = False
    assert land(quick, tree, "b").code == 10


@pytest.mark.parametrize(
    ("token", "code", "status"), [("", "not_logged_in", 8), ("bad", "not_logged_in", 8)]
)
def test_who_is_not_logged_in_is_told_before_anything_is_pushed(
    quick: QuickQueen,
    host: ScriptedHost,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    token: str,
    code: str,
    status: int,
) -> None:
    monkeypatch.setenv("GH_TOKEN", token)
    refused = land(quick, tree, "a", "--json")
    assert (refused.code, refused.error["code"]) == (status, code), refused
    assert "gh auth login" in refused.error["hint"]
    assert (host.tip("ui-q-1"), host.pulls) == ("", {})


def test_without_gh_nothing_is_pushed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "gh" / "gh").unlink()
    if shutil.which("gh"):
        pytest.skip("this machine has a gh of its own")
    refused = land(quick, tree, "a", "--json")
    assert (refused.code, refused.error["code"]) == (8, "no_host_client")
    assert host.tip("ui-q-1") == ""


def test_a_push_that_was_killed_before_the_request_goes_on(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    """The branch is there, nobody has a record of it, and the host said nothing."""
    (tree / "a").write_text("x\n")
    host.changes = "refused"
    stopped = quick("land", "-m", "add a", "--json", as_="ui", cwd=tree)
    assert (stopped.code, stopped.error["code"]) == (6, "host_away"), stopped
    assert quick("land", as_="ui", cwd=tree).code == 10
    assert len(host.pulls) == 1
    assert land(quick, tree, "b").code == 10
    assert len(host.pulls) == 1
    assert host.tip("ui-q-1") == git(tree, "rev-parse", "HEAD").strip()


def test_an_answer_that_is_lost_opens_no_second_request(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    (tree / "a").write_text("x\n")
    host.changes = "lost"
    assert quick("land", "-m", "add a", as_="ui", cwd=tree).code == 6
    assert len(host.pulls) == 1
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, len(host.pulls)) == (10, 1), done


@pytest.mark.usefixtures("asking")
def test_nothing_is_pushed_where_nobody_here_has_agreed(
    quick: QuickQueen, repo: Path, host: ScriptedHost, tmp_path: Path
) -> None:
    git(repo, "config", "queenbee.host", f"github.com/{SLUG}")
    assert quick("worktree", "add", "ui").code == 0
    with (repo / ".beads" / "queen.toml").open("a") as file:
        file.write('[land]\ntarget = "origin/main"\nby = "pr"\n')
    tree = tmp_path / "repo-ui"
    (tree / "a").write_text("x\n")
    refused = quick("land", "-m", "a", "--check", "true", "--json", as_="ui", cwd=tree)
    assert (refused.code, refused.error["code"]) == (5, "untrusted"), refused
    assert "a pull request for main at github.com" in refused.error["commands"][0]["text"]
    assert quick("config", "set", "land.target", "origin/main").code == 0
    refused = quick("land", "-m", "a", "--check", "true", "--json", as_="ui", cwd=tree)
    assert (refused.code, refused.error["code"]) == (5, "untrusted"), refused
    assert quick("config", "trust", "--yes", as_="human").code == 0
    assert quick("land", "-m", "a", "--check", "true", as_="ui", cwd=tree).code == 10


def test_commits_of_somebody_else_are_never_overwritten(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    other = host.git("commit-tree", f"{host.tip('ui-q-1')}^{{tree}}", "-p", "ui-q-1", "-m", "mine")
    host.git("update-ref", "refs/heads/ui-q-1", other)
    refused = land(quick, tree, "b", "--json")
    assert (refused.code, refused.error["code"]) == (5, "foreign_commits"), refused
    assert host.tip("ui-q-1") == other
    git(tree, "fetch", "-q", "origin", "ui-q-1")
    git(tree, "merge", "-q", "FETCH_HEAD")
    assert quick("land", as_="ui", cwd=tree).code == 10
    assert host.git("merge-base", other, "ui-q-1") == other


def test_a_branch_of_that_name_that_is_not_ours_is_left_alone(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    host.git("update-ref", "refs/heads/ui-q-1", "main")
    refused = land(quick, tree, "a", "--json")
    assert (refused.code, refused.error["code"]) == (5, "foreign_commits"), refused
    assert (host.tip("ui-q-1"), host.pulls) == (host.tip("main"), {})


def test_the_request_of_a_fork_is_not_taken_for_ours(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    """Anybody can open one from a branch of the same name."""
    host.pulls[1] = host.pull("ui-q-1", fork="mallory/shop")
    assert land(quick, tree).code == 10
    assert (len(host.pulls), host.pulls[2]["fork"]) == (2, "")


def test_work_that_stands_on_what_is_not_merged_is_not_proposed_with_it(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    assert quick("claim", "q-3", as_="ui", cwd=tree).code == 0
    (tree / "b").write_text("x\n")
    refused = quick("land", "q-3", "-m", "b", "--json", as_="ui", cwd=tree)
    assert (refused.code, refused.error["issues"]) == (5, ["q-1"]), refused
    assert "git rebase --onto origin/main" in refused.error["hint"]
    assert len(host.pulls) == 1


def test_what_went_on_comes_back_upon_the_target_without_a_conflict(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    """A merge would conflict: the target has the same lines by another commit."""
    land(quick, tree)
    (tree / "a").write_text("y\n")
    git(tree, "commit", "-qam", "later")
    host.merge(1, "SQUASH")
    follow(quick, tree)
    assert quick("next", as_="ui", cwd=tree).code == 0
    done = quick("land", as_="ui", cwd=tree)
    assert done.code == 10, done
    assert host.git("log", "--format=%s", "main..ui-q-2").splitlines() == ["later"]
    assert host.git("show", "ui-q-2:a") == "y"


def test_hostile_titles_reach_the_host_as_text(
    quick: QuickQueen, host: ScriptedHost, tree: Path, tmp_path: Path
) -> None:
    title = f"--body-file=/etc/passwd $(touch {tmp_path}/ran) \u202e\x1b[31m"
    write_lines(
        tree.with_name("repo") / ".beads" / "issues.jsonl",
        {"id": "q-9", "title": title, "status": "open"},
    )
    assert quick("claim", "q-9", as_="ui", cwd=tree).code == 0
    assert quick("release", "q-1", as_="ui", cwd=tree).code == 0
    assert land(quick, tree).code == 10
    assert host.pulls[1]["title"].startswith("q-9: --body-file=/etc/passwd $(touch")
    assert not set(host.pulls[1]["title"]) & {"\u202e", "\x1b"}
    assert not (tmp_path / "ran").exists()


def test_a_token_reaches_neither_the_check_nor_hooks(
    quick: QuickQueen, host: ScriptedHost, tree: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    check = f"env > {seen}"
    assert land(quick, tree, "a", "--check", check).code == 10
    assert "GH_TOKEN" not in seen.read_text()


def test_nobody_completes_what_is_not_merged(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    refused = quick("complete", "q-1", "--json", as_="ui", cwd=tree)
    assert (refused.code, refused.error["code"]) == (5, "conflict"), refused
    assert state(quick, "q-1") == "active"
    assert quick("complete", "q-1", "--reason", "merged by hand", as_="human").code == 0


def test_whoever_takes_it_over_goes_on_with_what_was_proposed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    land(quick, tree)
    quick("next", as_="api")  # So that it is known.
    assert quick("issue", "assign", "q-1", "api", "--force", as_="human").code == 0
    assert "in review: #1" in quick("show", "q-1").out
    host.merge(1)
    ask_again(tree)
    quick("status", "--sync", as_="human")
    assert state(quick, "q-1") == "done"


def test_an_agent_may_stop_while_its_work_is_in_review(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    with Hive.open(tree, droid="ui", env={}) as hive:
        assert open_ends.leaves(hive) == ""


@pytest.mark.thorough
def test_a_token_that_may_not_read_checks_loses_nothing_else(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    host.denied = {"statusCheckRollup"}
    land(quick, tree)
    host.check(1, "FAILURE")
    ask_again(tree)
    shown = quick("status", "--sync", as_="ui", cwd=tree)
    assert "waits for a review" in " ".join(shown.out.split()), shown
    host.merge(1)
    follow(quick, tree)
    assert state(quick, "q-1") == "done"


@pytest.mark.thorough
def test_an_older_host_is_asked_without_what_it_does_not_know(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    host.unknown = {"isInMergeQueue"}
    land(quick, tree)
    host.check(1, "PENDING")
    ask_again(tree)
    shown = quick("status", "--sync", as_="ui", cwd=tree)
    assert "is being checked" in " ".join(shown.out.split()), shown


@pytest.mark.thorough
def test_a_host_that_limits_requests_is_left_alone_for_as_long_as_it_says(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.failures = [(429, {"Retry-After": "1800"})]
    follow(quick, tree)
    asked = len(host.requests)
    follow(quick, tree)
    assert len(host.requests) == asked
    assert (land(quick, tree, "b").code, len(host.requests)) == (6, asked)
    forget(tree)
    assert land(quick, tree, "b").code == 10


def test_no_record_is_in_what_is_proposed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    """Lines that two branches append to a ledger conflict at the host, whatever git would do."""
    land(quick, tree, "a", "--next")
    land(quick, tree, "b")
    for branch in ("ui-q-1", "ui-q-3"):
        changed = host.git("diff", "--name-only", f"main...{branch}").split()
        assert changed == ["a" if branch == "ui-q-1" else "b"]


@pytest.mark.parametrize("said", [{"fork": "mallory/shop"}, {"branch": "release"}])
def test_a_pull_request_that_is_not_of_our_branch_says_nothing_of_an_issue(
    quick: QuickQueen, host: ScriptedHost, tree: Path, said: dict[str, object]
) -> None:
    """A record that somebody else wrote may name any number."""
    land(quick, tree)
    host.merge(1)
    host.pulls[1].update(said)
    follow(quick, tree)
    assert state(quick, "q-1") == "active"
    assert host.tip("ui-q-1")


@pytest.mark.parametrize("name", ["main", "-x", ":/A", "\ud800"])
def test_a_merge_commit_that_is_none_says_nothing(
    quick: QuickQueen, host: ScriptedHost, tree: Path, name: str
) -> None:
    """Git would take it for a branch, an option or a search."""
    land(quick, tree)
    commit = host.merge(1)
    host.pulls[1]["merged"] = name
    told = follow(quick, tree)
    assert (told.code, state(quick, "q-1")) == (0, "active"), told
    host.pulls[1]["merged"] = commit
    follow(quick, tree)
    assert state(quick, "q-1") == "done"


@pytest.mark.parametrize("address", ["https://x:tokn@bitbucket.org/me/shop", "file:///me/tokn"])
def test_an_address_of_no_host_is_named_without_its_token(
    quick: QuickQueen, host: ScriptedHost, repo: Path, tree: Path, address: str
) -> None:
    git(repo, "config", "--unset", "queenbee.host")
    git(repo, "remote", "set-url", "origin", address)
    refused = land(quick, tree)
    assert (refused.code, "no code host is known" in refused.err) == (2, True), refused
    assert ("tokn" in refused.err) == address.startswith("file")


@pytest.mark.parametrize("branch", ["q-30-and-q-10", "q-3"])
def test_each_issue_has_a_branch_of_its_own_at_the_remote(
    quick: QuickQueen, host: ScriptedHost, repo: Path, tmp_path: Path, tree: Path, branch: str
) -> None:
    """Else one would have landed with the work on the other."""
    git(repo, "worktree", "add", "-q", "-b", branch, str(tmp_path / "w"), "origin/main")
    for issue_id in ("q-1", "q-3"):
        quick("claim", issue_id, as_="ui", cwd=tmp_path / "w")
        git(tmp_path / "w", "checkout", "-q", "-B", branch, "origin/main")
        assert land(quick, tmp_path / "w", issue_id, issue_id).code == 10
    branches = [each["branch"] for each in host.pulls.values()]
    assert branches == [f"{branch}-q-1", branch if branch == "q-3" else f"{branch}-q-3"]


def test_a_branch_that_proposes_another_issue_is_left_alone(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    write_lines(
        tree.with_name("repo") / ".beads" / "issues.jsonl",
        {"id": "b-1", "title": "b", "status": "open"},
        {"id": "1", "title": "one", "status": "open"},
    )
    for name, issue_id in (("a", "b-1"), ("a-b", "1")):
        assert quick("worktree", "add", name, issue_id).code == 0
        where = tree.with_name(f"repo-{name}")
        (where / name).write_text("x\n")
        assert quick("land", "-m", name, as_=name, cwd=where).code == 10
    assert [each["branch"] for each in host.pulls.values()] == ["a-b-1", "a-b-1-2"]
    assert host.git("show", "a-b-1:a") == "x"


def test_a_host_that_takes_long_to_fail_is_asked_once_a_minute(
    frozen: Clock, quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.away = True
    host.before = lambda: frozen.advance(61)
    follow(quick, tree)
    asked = len(host.requests)
    quick("next", as_="ui", cwd=tree)
    assert len(host.requests) == asked


@pytest.mark.parametrize("said", ["<html>busy</html>", "[]", '{"data": null}', '{"data": {"repo'])
def test_an_answer_that_is_none_changes_nothing_and_is_told(
    quick: QuickQueen, host: ScriptedHost, tree: Path, said: str
) -> None:
    land(quick, tree)
    host.check(1, "PENDING")
    ask_again(tree)
    quick("status", "--sync", as_="ui", cwd=tree)
    host.merge(1)
    host.garbled = said
    ask_again(tree)
    shown = quick("status", "--sync", as_="ui", cwd=tree)
    assert (shown.code, "are as they were seen last" in shown.err) == (0, True), shown
    assert "is being checked" in shown.out
    assert state(quick, "q-1") == "active"
    host.garbled = ""
    follow(quick, tree)
    assert state(quick, "q-1") == "done"


@pytest.mark.parametrize("how", ["head", "base"])
def test_a_branch_that_another_pull_request_needs_stays_at_the_remote(
    quick: QuickQueen, host: ScriptedHost, tree: Path, how: str
) -> None:
    land(quick, tree)
    tip = host.tip("ui-q-1")
    host.git("branch", "of-ann", "ui-q-1")
    said = {"branch": "of-ann", "base": "ui-q-1"} if how == "base" else {"branch": "ui-q-1"}
    host.pulls[2] = host.pull(**{"base": "release", **said})
    host.merge(1)
    follow(quick, tree)
    assert (state(quick, "q-1"), host.tip("ui-q-1")) == ("done", tip)


def test_boards_show_what_is_in_review(quick: QuickQueen, host: ScriptedHost, tree: Path) -> None:
    land(quick, tree)
    with Hive.open(tree, droid="ui", env={}) as hive:
        facts = Reader(hive).read()
    panels = {**timeless_panels(facts), **timely_panels(facts, hive.now_ms())}
    rows = {
        name: [[cell.text for cell in row.cells] for row in panels[name].rows]
        for name in ("droids", "issues")
    }
    assert "Title 1 · in review: #1" in rows["droids"][0]
    assert "ui, in review: #1" in rows["issues"][0]
