"""A name is never silently another's, and a slip makes neither a droid nor an issue."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git, write_lines


@pytest.fixture
def tree(quick: QuickQueen, repo: Path) -> Path:
    """The worktree of `api`, with a commit, in a hive that has issues."""
    rows = [{"id": f"e-{n}", "title": f"t{n}", "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    made = quick("worktree", "add", "api", "--json", as_="boss").json
    commit_file(Path(made["path"]), "new.txt", "x\n")
    return Path(made["path"])


LEFTOVER = {"QUEEN_DROID": "ui"}


@pytest.mark.parametrize(
    "command",
    [("next",), ("claim", "e-1"), ("land", "--unchecked"), ("complete", "e-1"), ("reserve", "x")],
)
def test_a_name_that_is_left_over_takes_and_ends_nothing(
    quick: QuickQueen, repo: Path, tree: Path, command: tuple[str, ...]
) -> None:
    assert quick("claim", "e-1", "--as", "ui").code == 0
    before = git(repo, "rev-parse", "main")
    refused = quick(*command, cwd=tree, env=LEFTOVER)
    assert refused.code == 2
    assert "QUEEN_DROID says that you are ui, but this worktree is api's" in refused.err
    assert "unset QUEEN_DROID, to be api; or add --as ui" in refused.err
    assert git(repo, "rev-parse", "main") == before
    assert [each["droid"] for each in quick("issue", "assignments", "--json").json] == ["ui"]
    assert quick("reserve", "list", "--json").json == []


def test_either_way_out_works(quick: QuickQueen, tree: Path) -> None:
    assert "e-1 is yours" in quick("next", "--as", "ui", cwd=tree, env=LEFTOVER).out
    assert "e-2 is yours" in quick("next", cwd=tree).out
    assert quick("next", cwd=tree, env={"QUEEN_DROID": "api"}).code == 0


def test_reading_and_talking_go_on(quick: QuickQueen, tree: Path) -> None:
    assert quick("status", cwd=tree, env=LEFTOVER).code == 0
    assert quick("msg", "send", "api", "hi", cwd=tree, env=LEFTOVER).code == 0


def test_a_tree_that_several_share_has_no_name_of_its_own(quick: QuickQueen, repo: Path) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "e-1", "title": "x", "status": "open"})
    assert quick("hive", "whoami", "--set", "ann").code == 0
    assert quick("next", env=LEFTOVER).code == 0


@pytest.mark.parametrize("name", ["you", "me", "I", "all", "everyone", "Nobody"])
def test_what_means_another_to_each_reader_is_no_name(quick: QuickQueen, name: str) -> None:
    for command in (
        ("status", "--as", name), ("hive", "whoami", "--set", name), ("worktree", "add", name),
        ("issue", "assign", "e-1", name, "--new"),
    ):  # fmt: skip
        refused = quick(*command, env={} if "--as" in command else {"QUEEN_DROID": "ann"})
        assert (refused.code, "cannot be the name of a droid" in refused.err) == (2, True), refused
        assert "try: choose a name" in refused.err


def test_an_issue_goes_to_a_droid_that_is_known_unless_told_otherwise(
    quick: QuickQueen, tree: Path
) -> None:
    assert quick("status", as_="bob").code == 0
    refused = quick("issue", "assign", "e-1", "bbo", as_="boss")
    assert (refused.code, "did you mean 'bob'?" in refused.err, "--new" in refused.err) == (
        4,
        True,
        True,
    )
    assert quick("issue", "assign", "e-1", "bbo", "--new", as_="boss").code == 0


@pytest.mark.parametrize("command", [("claim", "fix-it"), ("worktree", "add", "api", "fix-it")])
def test_an_issue_that_nobody_described_is_taken_only_when_told(
    quick: QuickQueen, repo: Path, command: tuple[str, ...]
) -> None:
    refused = quick(*command, as_="api")
    assert refused.code == 4
    assert "queen issue new TITLE --id fix-it" in refused.err
    assert quick("issue", "assignments", "--json").json == []
    assert not (repo.parent / "repo-api").exists()
    assert quick(*command, "--new", as_="api").code == 0
    if command[0] == "claim":
        assert quick("release", "fix-it", as_="api").code == 0
        assert quick("claim", "fix-it", as_="ui").code == 0
    (repo / ".beads" / "queen.toml").write_text('issues = "off"\n')
    assert quick("claim", "other", as_="ui").code == 0
