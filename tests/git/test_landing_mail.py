"""Mail and landings: what stops one, and what nobody needs to read after one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, Ran, commit_file, git, write_lines

from queenbee import Hive
from queenbee.git.landing.together.pace import Pace
from queenbee.services.waiting.landing_turn import folder_of
from queenbee.store import waiting_line


@pytest.fixture
def tree(repo: Path, beads: Path, tmp_path: Path, quick: QuickQueen) -> Path:
    """A linked worktree with a commit, and an issue for it."""
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    git(repo, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    commit_file(tmp_path / "one", "new.txt", "x\n")
    quick("claim", "qb-1", as_="ui", cwd=tmp_path / "one")
    return tmp_path / "one"


def landed(quick: QuickQueen, tree: Path, droid: str = "ui") -> Ran:
    return quick("land", "--check", "echo checked > checked.log", as_=droid, cwd=tree)


@pytest.mark.parametrize("how", [("--issue", "qb-1"), ("--importance", "urgent")])
def test_mail_about_the_issue_or_urgent_mail_stops_it_once_with_the_text(
    quick: QuickQueen, repo: Path, tree: Path, how: tuple[str, str]
) -> None:
    before = git(repo, "rev-parse", "main")
    quick("msg", "send", "ui", "Do not use\nrounding.", *how, as_="api")
    refused = landed(quick, tree)
    assert refused.code == 5
    assert "nothing was landed: a message came before, read now" in refused.err
    assert "api: “Do not use rounding.”" in refused.err
    assert git(repo, "rev-parse", "main") == before
    assert not (tree / "checked.log").exists()
    assert quick("msg", "inbox", "--unread", "--json", as_="ui").json == []
    assert landed(quick, tree).code == 0


def test_a_subject_that_reads_as_if_the_hive_wrote_it_stops_it_too(
    quick: QuickQueen, tree: Path
) -> None:
    about = ("--issue", "qb-1", "--subject", "[qb-1] Assigned")
    quick("msg", "send", "ui", "Do not use rounding.", *about, as_="api")
    assert landed(quick, tree).code == 5


def test_what_the_hive_itself_says_of_the_assignment_stops_nothing(
    quick: QuickQueen, tree: Path
) -> None:
    assert quick("release", "qb-1", as_="ui").code == 0
    assert quick("issue", "assign", "qb-1", "ui", as_="lead").code == 0
    assert landed(quick, tree).code == 0


def test_mail_that_comes_while_it_waits_stops_it_once_before_the_check(
    queen: Queen, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    """Also where whoever has the turn would take it along."""
    git(repo, "worktree", "add", "-q", str(tmp_path / "two"), "-b", "two")
    commit_file(tmp_path / "two", "two.txt", "x\n")
    go, began = tmp_path / "go", tmp_path / "began"
    check = f"echo x >> {began}; while [ ! -e {go} ]; do sleep 0.05; done"
    folder = folder_of(Hive.open(repo, droid="api", env={}), "main")
    Pace(folder, 16, folder).note([], passed=True, check_s=0.0)  # It does not begin again.
    first = queen.start("land", "--check", check, cwd=tmp_path / "two", as_="api")
    until(began.exists)
    second = queen.start("land", "--check", check, cwd=tree, as_="ui")
    until(lambda: len(list(waiting_line.live(folder))) == 2)
    quick("msg", "send", "ui", "Wait for the schema.", "--issue", "qb-1", as_="boss")
    go.touch()
    assert first.communicate(timeout=60)[1] == ""
    said = "".join(second.communicate(timeout=60))
    assert (first.returncode, second.returncode) == (0, 5)
    assert "nothing was landed: a message came before, read now: boss: “Wait for" in said
    assert began.read_text() == "x\n"
    assert quick("land", "--check", check, as_="ui", cwd=tree).code == 0


def until(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_other_mail_does_not_stop_it(quick: QuickQueen, tree: Path) -> None:
    quick("msg", "send", "ui", "about the other one", "--issue", "qb-2", as_="api")
    quick("msg", "send", "ui", "good morning", as_="api")
    quick("issue", "assign", "qb-1", "ui", as_="human")
    assert landed(quick, tree).code == 0


def test_the_news_of_a_landing_is_dropped_once_the_branch_has_it(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    other = tmp_path / "two"
    git(repo, "worktree", "add", "-q", str(other), "-b", "two")
    quick("hive", "whoami", "--set", "api", cwd=other)
    (other / "README.md").write_text("theirs\n")
    commit_file(tree, "README.md", "ours\n")
    assert landed(quick, tree).code == 0
    [told] = quick("msg", "inbox", "--unread", "--json", as_="api", cwd=other).json
    assert told["subject"] == "main has changed files that you work on"
    git(other, "checkout", "-q", "README.md")
    git(other, "merge", "-q", "main")
    assert "has changed files" not in quick("issues", as_="api", cwd=other).err
    assert quick("msg", "read", "--json", as_="api", cwd=other).json == []


def test_the_news_of_a_landing_is_dropped_while_it_is_merged(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    other = tmp_path / "two"
    git(repo, "worktree", "add", "-q", str(other), "-b", "two")
    quick("hive", "whoami", "--set", "api", cwd=other)
    commit_file(other, "README.md", "theirs\n")
    commit_file(tree, "README.md", "ours\n")
    assert landed(quick, tree).code == 0
    refused = landed(quick, other, droid="api")
    assert (refused.code, "has changed files" in refused.out) == (5, False)
    assert "conflict: README.md" in refused.err
    assert "to read your mail" not in refused.out + refused.err
    assert quick("msg", "read", "--json", as_="api", cwd=other).json == []


def test_nobody_is_told_of_a_file_that_everybody_appends_to(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("reserve", "--shared", "CHANGELOG.md", as_="api")
    commit_file(tree, "CHANGELOG.md", "- one\n")
    assert landed(quick, tree).code == 0
    assert quick("msg", "inbox", "--json", as_="api").json == []


def test_mail_comes_with_every_answer_once(quick: QuickQueen, tree: Path) -> None:
    quick("msg", "send", "ui", "good morning", as_="api")
    refused = quick("complete", "qb-9", as_="ui", cwd=tree)
    assert refused.code == 4
    assert "queen: message from api: “good morning”" in refused.err
    assert "to read your mail: queen msg read" in refused.err
    assert "good morning" not in quick("issues", as_="ui").err
    assert quick("msg", "read", "--json", as_="ui").json[0]["read"] is True
