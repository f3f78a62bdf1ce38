"""Small issues about one file: offered together, claimed together, and landed at once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bead_files import put_bead, ralph_bead
from hives import QuickQueen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.errors import Unwritable
from queenbee.git.landing import landed_issue
from queenbee.workflows.completing import Completion


@pytest.fixture
def tree(repo: Path, beads: Path, quick: QuickQueen, tmp_path: Path) -> Path:
    """A worktree of a repository with seven issues, five of which are about a.py."""
    write_lines(
        beads / "issues.jsonl",
        *(
            {"id": f"q-{each}", "title": f"Issue {each}", "description": f"In {path}.py."}
            for each, path in enumerate("aaaaabb", 1)
        ),
    )
    quick("init")
    quick("config", "set", "land.check", "true")
    for each in "ab":
        commit_file(repo, f"{each}.py", "x = 1\n")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


@pytest.fixture
def then(beads: Path, tree: Path) -> None:
    """An eighth issue, which waits for the sixth."""
    row = {"id": "q-8", "title": "Then", "description": "In b.py.", "dependencies": ["q-6"]}
    with (beads / "issues.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def offered(out: str) -> list[str]:
    """Returns the issues that `queen next` says it holds, in order."""
    return re.findall(r"(q-\d) \(", "".join(re.findall("^held for you.*", out, re.MULTILINE)))


def test_what_several_issues_say_alike_is_printed_once(quick: QuickQueen, beads: Path) -> None:
    """Short sentences, and those of another line, are no boilerplate."""
    rule = "Each change gets a test and a line in the list of changes."
    rows = [
        {
            "id": f"q-{n}",
            "title": f"Do {n}",
            "description": f"Do {n} in a.py. Go.\n{rule} Go on {n}.",
        }
        for n in (1, 2, 3)
    ]
    write_lines(beads / "issues.jsonl", *rows)
    out = quick("next", "--take", as_="ui").out
    assert out.count(rule) == 1
    for n in (1, 2, 3):
        assert f"Do {n} in a.py. Go.\n" in out
        assert f"Go on {n}.\n" in out
    assert out.count("    (the rest as above)\n") == 2
    assert quick("show", "q-2", as_="ui").out.count(rule) == 1


def test_of_others_with_several_issues_the_first_is_named(quick: QuickQueen, tree: Path) -> None:
    quick("claim", "q-1", "q-2", "q-3", as_="api", cwd=tree)
    out = quick("next", as_="ui", cwd=tree).out
    assert "api: q-1 Issue 1 and 2 more" in out
    assert "q-2 Issue 2; q-3" in quick("status", as_="ui", cwd=tree).out


def closed(repo: Path) -> list[str]:
    issues = Hive.open(repo).issues.tracked().values()
    return sorted(each.id for each in issues if each.status == "closed")


def test_next_offers_ready_issues_about_the_same_file_and_one_landing_ends_them(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    begun = quick("next", as_="ui", cwd=tree)
    assert offered(begun.out) == ["q-2", "q-3", "q-4", "q-5"]
    claimed = quick("claim", "q-2", "q-3", as_="ui", cwd=tree)
    assert "    In a.py." in claimed.out
    command = "queen land q-1 q-2 q-3 -m 'WHAT YOU DID' --next"
    assert f"when all of it is done: {command}\n" in claimed.out
    assert f"when all of it is done: {command}\n" in quick("next", as_="ui", cwd=tree).out
    (tree / "a.py").write_text("x = 3\n")
    refused = quick("land", "-m", "three", as_="ui", cwd=tree)
    assert (refused.code, "queen land q-1 q-2 q-3 -m 'WHAT YOU DID'\n" in refused.err) == (2, True)
    assert "land q-1 q-2 q-3 --next\n" in quick("land", "--next", as_="ui", cwd=tree).err
    landed = quick("land", "q-1", "q-2", "q-3", "-m", "three", "--json", as_="ui", cwd=tree)
    document = json.loads(landed.out)
    assert [each["issue_id"] for each in document["also"]] == ["q-2", "q-3"]
    assert closed(repo) == ["q-1", "q-2", "q-3"]


@pytest.mark.usefixtures("then")
def test_whoever_has_what_an_issue_waits_for_may_have_it_too(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("claim", "q-6", as_="ui", cwd=tree)
    assert quick("claim", "q-8", as_="api").code == 5
    claimed = quick("claim", "q-8", as_="ui", cwd=tree)
    assert "queen land q-6 q-8 -m" in claimed.out
    (tree / "b.py").write_text("x = 3\n")
    assert quick("land", "q-6", "q-8", "-m", "both", as_="ui", cwd=tree).code == 0
    assert closed(repo) == ["q-6", "q-8"]


@pytest.mark.usefixtures("then")
def test_what_waits_for_the_issue_is_offered_with_it(quick: QuickQueen, tree: Path) -> None:
    quick("claim", "q-1", as_="api")
    begun = quick("next", as_="ui", cwd=tree)
    assert "q-6 is yours" in begun.out
    assert offered(begun.out) == ["q-8", "q-7"]


def test_an_equal_share_is_offered_so_that_it_gets_smaller_towards_the_end(
    quick: QuickQueen, tree: Path
) -> None:
    quick("claim", "q-6", as_="api")
    quick("claim", "q-7", as_="db")
    begun = quick("next", as_="ui", cwd=tree)
    assert "q-1 is yours" in begun.out
    assert offered(begun.out) == ["q-2"]  # Four more are ready, for three.
    (tree / "a.py").write_text("x = 3\n")
    assert offered(quick("land", "-m", "one", "--next", as_="ui", cwd=tree).out) == ["q-3"]
    (tree / "a.py").write_text("x = 4\n")
    following = quick("land", "-m", "two", "--next", as_="ui", cwd=tree)
    assert ("q-3 is yours" in following.out, offered(following.out)) == (True, [])


@pytest.mark.parametrize("more", [[], ["--next"]])
def test_the_command_after_a_failed_check_asks_for_the_same(
    quick: QuickQueen, tree: Path, more: list[str]
) -> None:
    quick("claim", "q-1", "q-2", as_="ui", cwd=tree)
    (tree / "a.py").write_text("x = 3\n")
    asked = ("land", "q-1", "q-2", "-m", "x", "--check", "false", *more)
    refused = quick(*asked, as_="ui", cwd=tree)
    again = " ".join(["queen land q-1 q-2 -m 'WHAT YOU DID'", *more])
    assert f"{again}, when it is mended" in refused.out


def test_nothing_lands_if_one_of_several_is_anothers(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("claim", "q-2", as_="api")
    claimed = quick("claim", "q-1", "q-2", "q-3", as_="ui", cwd=tree)
    assert (claimed.code, "not claimed: q-2 is assigned to api" in claimed.err) == (0, True)
    assert quick("claim", "q-2", "q-2", as_="ui", cwd=tree).code == 5
    (tree / "a.py").write_text("x = 3\n")
    assert quick("land", "q-1", "q-2", "-m", "two", as_="ui", cwd=tree).code == 5
    assert closed(repo) == []
    assert git(tree, "status", "--porcelain") == " M a.py\n"


def test_what_was_asked_for_several_is_kept_over_a_conflict(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("claim", "q-1", "q-2", as_="ui", cwd=tree)
    commit_file(repo, "a.py", "x = 2\n")
    (tree / "a.py").write_text("x = 3\n")
    assert quick("land", "q-1", "q-2", "-m", "two", as_="ui", cwd=tree).code == 5
    (tree / "a.py").write_text("x = 3\n")
    git(tree, "add", "a.py")
    assert quick("land", "--continue", as_="ui", cwd=tree).code == 0
    assert closed(repo) == ["q-1", "q-2"]


@pytest.mark.parametrize("then", ["same", "left", "none"])
def test_after_a_failure_between_two_completions_the_next_landing_makes_the_others(
    quick: QuickQueen, repo: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    quick("claim", "q-1", "q-2", "q-3", as_="ui", cwd=tree)
    (tree / "a.py").write_text("x = 3\n")
    real = landed_issue.complete

    def complete(hive: Hive, issue_id: str, **more: Any) -> Completion:
        if issue_id == "q-2":
            raise Unwritable("the disk is full")
        return real(hive, issue_id, **more)

    with monkeypatch.context() as patch:
        patch.setattr(landed_issue, "complete", complete)
        failed = quick("land", "q-1", "q-2", "q-3", "-m", "three", as_="ui", cwd=tree)
    assert "landed on main; run queen land again" in failed.out
    assert closed(repo) == ["q-1"]
    named = {"same": ["q-1", "q-2", "q-3"], "left": ["q-2", "q-3"], "none": []}[then]
    again = quick("land", *named, "-m", "three", as_="ui", cwd=tree)
    if then == "none":
        again = quick("land", "q-2", "q-3", as_="ui", cwd=tree)
    assert again.code == 0
    assert re.search(r"q-3 w\S+ completed by ui\n", again.out)
    assert closed(repo) == ["q-1", "q-2", "q-3"]
    assert quick("land", "q-1", as_="ui", cwd=tree).code == 4  # It is done, and so was that.


def test_mail_about_a_further_issue_stops_a_landing_once(quick: QuickQueen, tree: Path) -> None:
    quick("claim", "q-1", "q-2", as_="ui", cwd=tree)
    quick("msg", "send", "ui", "Not yet", "--issue", "q-2", as_="api")
    (tree / "a.py").write_text("x = 3\n")
    command = ("land", "q-1", "q-2", "-m", "two")
    refused = quick(*command, as_="ui", cwd=tree)
    assert (refused.code, "Not yet" in refused.err) == (5, True)
    assert quick(*command, as_="ui", cwd=tree).code == 0


def test_nothing_lands_if_the_checks_of_a_further_issue_fail(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    put_bead(repo, ralph_bead("q-2", "false"))
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a bead")
    quick("claim", "q-1", "q-2", as_="ui", cwd=tree)
    (tree / "a.py").write_text("x = 3\n")
    failed = quick("land", "q-1", "q-2", "-m", "two", as_="ui", cwd=tree)
    assert (failed.code, "the checks of q-2 failed" in failed.out) == (1, True)
    assert "try: queen land q-1 q-2 -m" in failed.out
    assert (closed(repo), git(repo, "show", "main:a.py")) == ([], "x = 1\n")


def test_an_issue_that_is_named_twice_is_one(quick: QuickQueen, tree: Path) -> None:
    claimed = quick("claim", "q-1", "q-1", "q-2", as_="ui", cwd=tree)
    assert claimed.out.count("q-1 is assigned to ui") == 1
    (tree / "a.py").write_text("x = 3\n")
    landed = quick("land", "q-1", "q-2", "q-1", "q-2", "-m", "two", "--json", as_="ui", cwd=tree)
    assert [each["issue_id"] for each in json.loads(landed.out)["also"]] == ["q-2"]


def test_what_cannot_be_claimed_is_said_beside_what_was(quick: QuickQueen, tree: Path) -> None:
    claimed = quick("claim", "q-1", "q-0", "q-2", "--new", as_="ui", cwd=tree)
    assert (claimed.code, claimed.out.count("is assigned to ui")) == (0, 2)
    assert "not claimed: there is no issue 'q-0'" in claimed.err


def test_no_id_of_an_issue_is_read_as_an_option_of_a_command_to_paste(
    quick: QuickQueen, beads: Path, tree: Path
) -> None:
    row = {"id": "--unchecked", "title": "x", "description": "In a.py."}
    write_lines(beads / "issues.jsonl", row, {**row, "id": "q-1"})
    claimed = quick("claim", "--force", "--", "q-1", "--unchecked", as_="ui", cwd=tree)
    command = "queen land -m 'WHAT YOU DID' --next -- q-1 --unchecked\n"
    assert f"when all of it is done: {command}" in claimed.out


def test_what_nobody_could_complete_is_not_given(
    quick: QuickQueen, beads: Path, tree: Path
) -> None:
    row = {"title": "x", "description": "In a.py.", "priority": 0}
    ids = ("two words", "x" * 129, "\u202ered", "q-1")
    write_lines(beads / "issues.jsonl", *({**row, "id": each} for each in ids))
    begun = quick("next", as_="ui", cwd=tree)
    assert ("q-1 is yours" in begun.out, "two words" in begun.out) == (True, False)
    assert quick("issues", "--json").out.count('"because":"its id is not one word"') == 3
