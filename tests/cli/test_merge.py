"""Two clones that worked apart, brought together by git: one state, and nobody is left untold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import Clock, QuickQueen, git

pytestmark = pytest.mark.slow

VIEWS = (
    ("msg", "thread", "qb-1"),
    ("msg", "inbox", "--for", "reviewer"),
    ("issue", "assignments", "--status", "all"),
    ("reserve", "list", "--all"),
    ("reserve", "conflicts"),
)


@pytest.fixture
def clones(quick: QuickQueen, frozen: Clock, repo: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of one repository, in which one droid each was at work at the same time."""
    quick("init")
    quick("msg", "send", "reviewer", "before", "--issue", "qb-1", as_="queen")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for clone, droid in ((ours, "ui-engineer"), (theirs, "api-engineer")):
        git(tmp_path, "clone", "-q", str(repo), str(clone))
        frozen.advance(60)
        quick("claim", "--new", "qb-1", as_=droid, cwd=clone)
        quick("reserve", "src/**", "--issue", "qb-1", as_=droid, cwd=clone)
        quick("msg", "send", "reviewer", droid, "--issue", "qb-1", as_=droid, cwd=clone)
        git(clone, "add", "-A")
        git(clone, "commit", "-qm", droid)
    git(ours, "pull", "-q", "--no-rebase", "--no-edit", str(theirs), "main")
    git(theirs, "pull", "-q", "--no-rebase", "--no-edit", str(ours), "main")
    return ours, theirs


@pytest.mark.some(2)
@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_both_clones_show_the_same_byte_for_byte(
    quick: QuickQueen, clones: tuple[Path, Path], view: tuple[str, ...]
) -> None:
    first, second = (quick("--json", *view, cwd=clone) for clone in clones)
    assert (first.code, first.out, first.err) == (second.code, second.out, second.err)
    assert first.json


def test_nothing_that_either_clone_wrote_is_lost(
    quick: QuickQueen, clones: tuple[Path, Path]
) -> None:
    for clone in clones:
        thread = quick("msg", "thread", "qb-1", "--json", cwd=clone).json
        assert [m["body"] for m in thread] == ["before", "ui-engineer", "api-engineer"]


def test_the_older_grant_wins_everywhere_and_the_other_is_listed(
    quick: QuickQueen, clones: tuple[Path, Path]
) -> None:
    for clone in clones:
        [standing] = quick("issue", "assignments", "--json", cwd=clone).json
        assert standing["droid"] == "ui-engineer"
        found = quick("reserve", "conflicts", "--json", cwd=clone)
        assert found.code == 1
        assert [(each["stands"]["droid"], each["superseded"]["droid"]) for each in found.json] == [
            ("ui-engineer", "api-engineer")
        ] * 2
        assert quick("reserve", "check", "src/a.py", as_="ui-engineer", cwd=clone).code == 0
        assert quick("reserve", "check", "src/a.py", as_="api-engineer", cwd=clone).code == 1


def test_a_superseded_grant_is_not_shown_as_active(
    quick: QuickQueen, clones: tuple[Path, Path]
) -> None:
    for view in (
        ("issue", "assignments", "--status", "all"),
        ("reserve", "list", "--all"),
        ("show", "qb-1"),
    ):
        shown = quick(*view, cwd=clones[0]).out.splitlines()
        lost = [line for line in shown if line.startswith(("qb-1 ", "src/**")) and "api-" in line]
        assert lost
        assert all("superseded" in line for line in lost)


def test_the_droid_that_lost_is_notified_once(quick: QuickQueen, clones: tuple[Path, Path]) -> None:
    told = quick("msg", "sent", as_="api-engineer", cwd=clones[1])
    assert told.err.count("a merge brought in ") == 2
    assert quick("msg", "sent", as_="api-engineer", cwd=clones[1]).err == ""


def test_nobody_has_the_issue_once_the_older_grant_ends(
    quick: QuickQueen, frozen: Clock, clones: tuple[Path, Path]
) -> None:
    frozen.advance(60)
    quick("release", "qb-1", as_="ui-engineer", cwd=clones[0])
    assert quick("issue", "assignments", "--json", cwd=clones[0]).json == []
    assert quick("claim", "--new", "qb-1", as_="reviewer", cwd=clones[0]).code == 0


def test_the_droid_that_lost_gives_everything_back_in_one_release(
    quick: QuickQueen, clones: tuple[Path, Path], tmp_path: Path
) -> None:
    _, theirs = clones
    assert quick("release", "qb-1", as_="api-engineer", cwd=theirs).code == 0
    assert quick("reserve", "conflicts", cwd=theirs).code == 0
    assert quick("doctor", cwd=theirs).code == 0
    git(theirs, "add", "-A")
    git(theirs, "commit", "-qm", "released")
    git(tmp_path, "clone", "-q", str(theirs), str(tmp_path / "fresh"))
    assert quick("reserve", "conflicts", cwd=tmp_path / "fresh").code == 0
    [standing] = quick("reserve", "list", "--json", cwd=theirs).json
    assert standing["droid"] == "ui-engineer"
