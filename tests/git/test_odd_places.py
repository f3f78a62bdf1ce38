"""Repositories in places, states and settings that people have: all of the way to a landing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, git


def checked(said: Ran) -> Ran:
    assert said.code == 0, said
    return said


def made(repo: Path) -> QuickQueen:
    """Makes a repository with a hive, a check and an issue."""
    repo.mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "queenbee.trust", "all")
    (repo / ".beads").mkdir()
    (repo / ".beads" / "queen.toml").write_text("[land]\ncheck = 'true'\n")
    queen = QuickQueen(repo)
    checked(queen("init"))
    checked(queen("issue", "new", "First", as_="human"))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    return queen


def added(queen: QuickQueen) -> Path:
    """Returns the worktree that it makes for `api`."""
    return Path(checked(queen("worktree", "add", "api", "--json")).json["path"])


def worked(tree: Path) -> Ran:
    """Takes the issue in a worktree and lands it."""
    api = QuickQueen(tree)
    checked(api("next", as_="api"))
    (tree / "a b.txt").write_text("new\n")
    (tree / "\nl.txt").write_text("x")
    return api("land", "-m", "the work", as_="api")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("my  shop's", ()),
        ("new\nline", ()),
        ('-x "ü$HOME', ()),
        ("shop", ("core.autocrlf", "true")),
    ],
)
def test_work_lands_from_the_first_command_to_the_last(
    tmp_path: Path, name: str, settings: tuple[str, ...]
) -> None:
    repo = tmp_path / name
    queen = made(repo)
    if settings:
        git(repo, "config", *settings)
    tree = added(queen)
    assert tree == tmp_path / f"{name}-api"
    checked(worked(tree))
    assert (repo / "a b.txt").read_text() == "new\n"
    checked(queen("worktree", "remove", "api"))
    assert not tree.exists()
    assert git(repo, "status", "--porcelain") == ""
    assert checked(queen("doctor", "--json")).json == []


def test_a_file_with_the_name_that_git_has_for_the_last_commit_is_only_a_file(
    tmp_path: Path,
) -> None:
    repo = tmp_path / "shop"
    queen = made(repo)
    for name in ("HEAD", "main", "api"):
        (repo / name).write_text("x\n")
    git(repo, "add", "HEAD", "main", "api")
    git(repo, "commit", "-qm", "names")
    checked(worked(added(queen)))
    assert (repo / "a b.txt").exists()


def test_settings_that_were_added_although_git_ignores_their_folder_stop_no_landing(
    tmp_path: Path,
) -> None:
    repo = tmp_path / "shop"
    queen = made(repo)
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "exclude").write_text(".beads\n")
    tree = added(queen)
    (tree / ".beads" / "queen_messages.jsonl").write_text("{}\n")
    checked(worked(tree))
    assert (repo / "a b.txt").exists()
    assert "queen_messages" not in git(repo, "ls-tree", "-r", "--name-only", "main")


def test_a_worktree_in_the_files_of_another_repository_is_hidden_by_the_command_that_is_named(
    tmp_path: Path,
) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    queen = made(outer / "my libs" / "shop")
    (outer / ".git" / "info" / "exclude").write_text("shop\n")
    said = checked(queen("worktree", "add", "api")).err
    command = said.partition("to hide it: ")[2]
    tree = outer / "my libs" / "shop-api"
    assert git(outer, "status", "--porcelain", "-uall") == '?? "my libs/shop-api/"\n'
    subprocess.run(command, shell=True, check=True)
    checked(worked(tree))
    assert git(outer, "status", "--porcelain", "-uall") == ""
    again = checked(queen("worktree", "add", "api")).err
    assert "to hide it" not in again


class TestABareRepository:
    @pytest.fixture
    def trunk(self, tmp_path: Path) -> Path:
        """A worktree for a person's notes beside `.bare`, the common layout."""
        made(tmp_path / "seed")
        git(tmp_path, "clone", "-q", "--bare", "seed", "shop/.bare")
        bare = tmp_path / "shop" / ".bare"
        git(bare, "config", "queenbee.trust", "all")
        (tmp_path / "shop" / ".git").write_text("gitdir: ./.bare\n")
        git(bare, "worktree", "add", "-q", "-b", "notes", "../notes", "main")
        return tmp_path / "shop" / "notes"

    def test_its_worktrees_stand_beside_each_other_and_land(self, trunk: Path) -> None:
        queen = QuickQueen(trunk)
        assert "to hide it" not in checked(queen("worktree", "add", "api")).err
        tree = added(queen)
        assert tree == trunk.parent / "api"
        checked(worked(tree))
        assert "a b.txt" in git(trunk, "ls-tree", "--name-only", "main")
        checked(queen("worktree", "remove", "api"))
        assert not tree.exists()

    def test_a_hive_that_is_not_committed_is_named_before_its_settings(self, trunk: Path) -> None:
        git(trunk, "rm", "-rqf", ".beads")
        checked(QuickQueen(trunk)("init"))
        said = QuickQueen(trunk)("config", "set", "land.check", "true", as_="human")
        assert said.code == 2
        assert f"git add {trunk / '.beads'} && git commit" in said.err


def test_a_worktree_seen_at_another_path_works_by_relative_pointers(tmp_path: Path) -> None:
    """As in a container: git writes these by `worktree.useRelativePaths`, from 2.48 on."""
    tree = added(made(tmp_path / "host" / "shop"))
    (tmp_path / "host").rename(tmp_path / "inside")
    tree = tmp_path / "inside" / tree.name
    said = QuickQueen(tree)("next", as_="api")
    assert said.code == 7
    assert "in a container, mount that at this path" in said.err
    (tree / ".git").write_text("gitdir: ../shop/.git/worktrees/shop-api\n")
    back = tmp_path / "inside" / "shop" / ".git" / "worktrees" / "shop-api" / "gitdir"
    back.write_text("../../../../shop-api/.git\n")
    checked(worked(tree))
    (tmp_path / "inside").rename(tmp_path / "host")
    assert (tmp_path / "host" / "shop" / "a b.txt").exists()
    assert git(tmp_path / "host" / "shop", "worktree", "list").count("shop-api") == 1
