"""A main worktree whose git directory is elsewhere: it is known or asked for, and never guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git


def separate(repo: Path, elsewhere: Path) -> Path:
    git(repo, "init", "-q", f"--separate-git-dir={elsewhere}")
    return repo


def linked(repo: Path, elsewhere: Path) -> Path:
    (repo / ".git").rename(elsewhere)
    (repo / ".git").symlink_to(elsewhere)
    return repo


def submodule(repo: Path, elsewhere: Path) -> Path:
    around = elsewhere.parent / "super"
    git(repo.parent, "init", "-q", str(around))
    allowed = ("-c", "protocol.file.allow=always")
    git(around, *allowed, "submodule", "--quiet", "add", str(repo), "lib")
    return around / "lib"


WAYS = [
    (separate, "store.git"),
    (separate, "store/.git"),
    (linked, "store/.git"),
    (linked, "store.nosync"),
    (submodule, "unused"),
]


NAMES = [f"{way.__name__}-{name}" for way, name in WAYS]
unsaid = pytest.mark.parametrize("main", WAYS[:-1], ids=NAMES[:-1], indirect=True)
"""Those of which git does not say where they are."""


@pytest.fixture(params=WAYS, ids=NAMES)
def main(request: pytest.FixtureRequest, repo: Path, tmp_path: Path) -> Path:
    way: Callable[[Path, Path], Path] = request.param[0]
    elsewhere = tmp_path / request.param[1]
    elsewhere.parent.mkdir(exist_ok=True)
    commit_file(repo, ".beads/queen.toml", "[land]\ncheck = 'true'\n")
    return way(repo, elsewhere)


@pytest.fixture
def lost(main: Path) -> Path:
    """A worktree that plain git made, where no command of ours ever ran in the main one."""
    tree = main.parent / "api"
    git(main, "worktree", "add", "-q", str(tree), "-b", "api")
    return tree


def test_follows_a_landing(quick: QuickQueen, main: Path) -> None:
    tree = Path(quick("worktree", "add", "api", "--json", cwd=main).json["path"])
    commit_file(tree, "landed.txt", "x\n")
    done = quick("land", "--check", "true", as_="api", cwd=tree)
    assert done.code == 0, done
    assert (main / "landed.txt").read_text() == "x\n"
    assert git(main, "status", "--porcelain", "--", "landed.txt") == ""
    commit_file(main, "mine.txt", "mine\n")
    assert git(main, "show", "HEAD:landed.txt") == "x\n"
    where = quick("hive", "where", "--json", as_="api", cwd=tree).json
    assert where["beads_dir"] == str(main / ".beads")
    assert quick("worktree", "remove", "api", cwd=main).code == 0


@unsaid
def test_that_nobody_knows_is_asked_for_before_anything_moves(
    quick: QuickQueen, main: Path, lost: Path
) -> None:
    commit_file(lost, "landed.txt", "x\n")
    before = git(main, "rev-parse", "main")
    for words in (
        ("land", "--check", "true"),
        ("worktree", "add", "ui"),
        ("worktree", "setup"),
        ("init",),
    ):
        done = quick(*words, as_="api", cwd=lost)
        assert (done.code, "does not say where the main worktree of" in done.err) == (5, True), done
        assert "queen init" in done.err
    assert git(main, "rev-parse", "main") == before
    assert git(main, "status", "--porcelain") == ""
    assert not (main.parent / "ui").exists()
    assert quick("init", cwd=main).code == 0
    assert quick("land", "--check", "true", as_="api", cwd=lost).code == 0
    assert (main / "landed.txt").exists()


@unsaid
def test_that_was_moved_is_asked_for_again(quick: QuickQueen, main: Path, lost: Path) -> None:
    quick("init", cwd=main)
    moved = main.rename(main.parent / "moved")
    commit_file(lost, "landed.txt", "x\n")
    done = quick("land", "--check", "true", as_="api", cwd=lost)
    assert (done.code, "does not say where the main worktree of" in done.err) == (5, True), done
    quick("init", cwd=moved)
    assert quick("land", "--check", "true", as_="api", cwd=lost).code == 0
    assert (moved / "landed.txt").exists()


def test_is_not_where_settings_say_that_lead_elsewhere(
    quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "api"), "-b", "api")
    commit_file(tmp_path / "api", ".beads/queen.toml", "")
    precious = tmp_path / "precious"
    precious.mkdir()
    git(repo, "config", "core.worktree", str(precious))
    done = quick("land", "--check", "true", as_="api", cwd=tmp_path / "api")
    assert (done.code, "does not say where the main worktree of" in done.err) == (5, True), done
    assert [*precious.iterdir()] == []


def test_that_is_new_and_empty_is_one(quick: QuickQueen, tmp_path: Path) -> None:
    new = tmp_path / "new"
    git(tmp_path, "init", "-q", str(new))
    git(new, "commit", "-q", "--allow-empty", "-m", "begin")
    git(new, "worktree", "add", "-q", str(tmp_path / "api"), "-b", "api")
    where = quick("hive", "where", "--json", cwd=tmp_path / "api")
    assert str(new / ".beads") in where.err + where.out


def test_a_note_goes_with_the_reason_for_it(quick: QuickQueen, repo: Path, tmp_path: Path) -> None:
    separate(repo, tmp_path / "store.git")
    quick("init", cwd=repo)
    assert (tmp_path / "store.git" / "queenbee-main").read_text() == f"{repo}\n"
    (repo / ".git").unlink()
    (tmp_path / "store.git").rename(repo / ".git")
    quick("init", cwd=repo)
    assert not (repo / ".git" / "queenbee-main").exists()
