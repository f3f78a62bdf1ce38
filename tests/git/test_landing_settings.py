"""What one droid writes into the settings stops nobody: landing merges them by key, and refuses
what could not be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git

from queenbee.store.settings import load

SETTINGS = ".beads/queen.toml"
FIRST = '# ours\nttl = "1h"\n\n\n\n\n\n\n# end\n'


@pytest.fixture
def trees(repo: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two worktrees, begun at the same commit."""
    commit_file(repo, SETTINGS, FIRST)
    for name in ("one", "two"):
        git(repo, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
    return tmp_path / "one", tmp_path / "two"


def land(quick: QuickQueen, tree: Path) -> int:
    return quick("land", "--check", "true", as_=tree.name, cwd=tree).code


def test_a_table_that_two_add_in_two_places_lands_as_one(
    quick: QuickQueen, repo: Path, trees: tuple[Path, Path]
) -> None:
    one, two = trees
    commit_file(one, SETTINGS, FIRST.replace("\n\n\n\n", '\n\n[land]\nunion = ["A.md"]\n\n\n', 1))
    commit_file(two, SETTINGS, f'{FIRST}[land]\ncheck_timeout = "1m"\n')
    assert [land(quick, one), land(quick, two)] == [0, 0]
    found = load(str(repo / ".beads"), {})
    assert (found.land_union, found.land_check_timeout_s) == (("A.md",), 60)
    assert git(repo, "status", "--porcelain", "--", SETTINGS) == ""
    assert (two / SETTINGS).read_text() == (repo / SETTINGS).read_text()
    parents = git(repo, "log", "-1", "--merges", "--format=%P").split()
    assert len(parents) == 2


def test_different_keys_on_the_same_line_are_no_conflict(
    quick: QuickQueen, repo: Path, trees: tuple[Path, Path]
) -> None:
    one, two = trees
    commit_file(one, SETTINGS, f'{FIRST}[land]\ncheck = "true"\n')
    commit_file(two, SETTINGS, f'{FIRST}[land]\nunion = ["A.md"]\n')
    assert [land(quick, one), land(quick, two)] == [0, 0]
    found = load(str(repo / ".beads"), {})
    assert (found.land_union, found.land_check) == (("A.md",), "true")


def test_one_key_that_both_set_is_a_conflict_of_theirs(
    quick: QuickQueen, repo: Path, trees: tuple[Path, Path]
) -> None:
    one, two = trees
    for tree, value in ((one, "true"), (two, "exit 0")):
        commit_file(tree, SETTINGS, f'{FIRST}[land]\ncheck = "{value}"\n')
    assert land(quick, one) == 0
    ran = quick("land", "--check", "true", as_="two", cwd=two)
    assert (ran.code, f"conflict: {SETTINGS}" in ran.err) == (5, True)


@pytest.mark.parametrize(
    "path", [SETTINGS, ".beads/queen_messages.jsonl/x", ".beads/issues.jsonl/x"]
)
def test_what_nobody_could_read_does_not_land(
    quick: QuickQueen, repo: Path, trees: tuple[Path, Path], path: str
) -> None:
    tree = trees[0]
    before = git(repo, "rev-parse", "main")
    (tree / path).parent.mkdir(exist_ok=True)
    commit_file(tree, path, "[land]\n[land]\n")
    ran = quick("land", "--check", "true", as_="one", cwd=tree)
    assert (ran.code, "nothing was landed" in ran.err) == (5, True), ran
    assert git(repo, "rev-parse", "main") == before


def test_what_mends_the_settings_lands(
    quick: QuickQueen, repo: Path, trees: tuple[Path, Path]
) -> None:
    for _ in range(2):
        assert quick("msg", "send", "two", "hi", as_="one").code == 0
    commit_file(repo, SETTINGS, "[land]\n[land]\n")
    tree = trees[0]
    git(tree, "merge", "-q", "main")
    commit_file(tree, "other.txt", "x")
    assert land(quick, tree) == 0  # It does not touch them.
    commit_file(tree, SETTINGS, FIRST)
    assert land(quick, tree) == 0
    assert load(str(repo / ".beads"), {}).ttl_s == 3600
