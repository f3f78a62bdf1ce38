"""What people are asked to review, and what a droid says itself about its pull request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead, sprint_row
from hives import QuickQueen, write_lines
from proposed import follow, forge, land, state
from scripted_host import SLUG, ScriptedHost


def test_reviewers_and_labels_are_asked_for_once_and_a_stranger_stops_nothing(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    quick("config", "set", "land.reviewers", "ann", "stranger", "me/web", cwd=repo)
    quick("config", "set", "land.labels", "by agents", cwd=repo)
    host.strangers = {"stranger"}
    done = land(quick, tree)
    assert (done.code, "#1 goes without stranger" in done.out) == (10, True), done
    asked = {"reviewers": ["ann"], "team_reviewers": ["web"], "labels": ["by agents"]}
    assert host.pulls[1]["asked"] == asked
    host.pulls[1]["asked"] = {}
    assert land(quick, tree, "b").code == 10
    assert host.pulls[1]["asked"] == {}


def test_the_body_has_the_template_of_the_repository(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    (tree / ".github").mkdir()
    (tree / ".github" / "PULL_REQUEST_TEMPLATE.md").write_text("## What\n\n- [ ] tested\n")
    land(quick, tree, "a", "--reason", "it was missing")
    body = host.pulls[1]["body"]
    assert body == "it was missing\n\n## What\n\n- [ ] tested\n\nQueen-Issue: q-1\n"


def test_a_droid_answers_in_a_thread_that_it_was_told_of(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.review(1, "CHANGES_REQUESTED", "One thing")
    host.comment(1, "Why not round?", "a", 1)
    assert "queen review reply T1.0 TEXT" in follow(quick, tree).out
    answered = quick("review", "reply", "T1.0", "$(id) is `fine`", as_="ui", cwd=tree)
    assert answered.code == 0, answered
    said = host.pulls[1]["threads"][0]["comments"]["nodes"]
    assert [each["body"] for each in said] == ["Why not round?", "$(id) is `fine`"]
    assert quick("review", "reply", "T9.9", "x", as_="ui", cwd=tree).code == 4
    assert quick("--as", "api", "review", "reply", "T1.0", "x", cwd=tree).code == 4


def test_what_was_withdrawn_is_closed_stays_its_droids_and_is_proposed_anew(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    withdrawn = quick("review", "withdraw", "--json", as_="ui", cwd=tree)
    assert withdrawn.json == {"issue_ids": ["q-1"]}
    assert host.pulls[1]["state"] == "CLOSED"
    goes_on = follow(quick, tree)
    assert ("q-1 is still yours" in goes_on.out, "was closed" in goes_on.out) == (True, False)
    assert quick("msg", "inbox", "--unread", "--json", as_="ui", cwd=tree).json == []
    assert land(quick, tree, "b").code == 10
    assert [each["state"] for each in host.pulls.values()] == ["CLOSED", "OPEN"]


def test_the_pull_request_of_a_person_is_neither_answered_nor_closed(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    quick("next", as_="ui", cwd=tree)
    number = forge(host, tree, "q-1", "theirs")
    host.comment(number, "mine", "a", 1)
    assert quick("review", "withdraw", "q-1", as_="ui", cwd=tree).code == 2
    assert quick("review", "reply", f"T{number}.0", "x", as_="ui", cwd=tree).code == 4
    assert host.pulls[number]["state"] == "OPEN"
    assert len(host.pulls[number]["threads"][0]["comments"]["nodes"]) == 1


@pytest.mark.slow
def test_a_ralph_bead_is_completed_in_its_file_once_it_is_merged_and_not_before(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    put_bead(repo, ralph_bead("gt-1", "true"))

    def status() -> str:
        shown = quick("bead", "show", "gt-1", "--json").json
        (path,) = (repo / ".beads").rglob("gt-1.json")
        return f"{json.loads(path.read_text()).get('status')} {shown['status']}"

    quick("claim", "gt-1", as_="ui", cwd=tree)
    quick("release", "q-1", as_="ui", cwd=tree)
    assert land(quick, tree, "a", "gt-1").code == 10
    assert "completed" not in status()
    host.merge(1)
    follow(quick, tree)
    assert status() == "completed closed"


def test_a_sprint_bead_names_its_pull_request(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    row = sprint_row("bd-1", qa_agents=[])
    write_lines(repo / ".beads" / "issues.jsonl", row)
    quick("claim", "bd-1", as_="ui", cwd=tree)
    quick("release", "q-1", as_="ui", cwd=tree)
    assert land(quick, tree, "a", "bd-1").code == 10
    (now,) = (each for each in quick("issues", "--all", "--json").json if each["id"] == "bd-1")
    url = f"https://github.com/{SLUG}/pull/1"
    assert now["external_ref"] == url
    assert (now["metadata"]["pr_url"], now["metadata"]["pr_number"]) == (url, 1)


def test_a_report_names_the_pull_request_of_an_issue(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.check(1, "FAILURE")
    follow(quick, tree)
    assert "`#1 failing`" in quick("report", "--format=md", "-o", "-").out


def test_what_is_merged_cannot_be_withdrawn(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    host.merge(1)
    assert quick("review", "withdraw", as_="ui", cwd=tree).code == 5
    follow(quick, tree)
    assert state(quick, "q-1") == "done"
