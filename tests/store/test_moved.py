"""A repository that is moved, replaced or deleted while a hive is open in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import git

from queenbee import Hive
from queenbee.cli.exits import UNREADABLE, exit_code
from queenbee.errors import QueenError, Unreadable
from queenbee.store import safe_open
from queenbee.store.droids import identity
from queenbee.workflows.locks import documents_lock


def moved(repo: Path) -> None:
    repo.rename(repo.with_name("elsewhere"))


def deleted(repo: Path) -> None:
    shutil.rmtree(repo)


def without_git(repo: Path) -> None:
    shutil.rmtree(repo / ".git")


def replaced(repo: Path) -> None:
    repo.rename(repo.with_name("elsewhere"))
    git(repo.parent, "clone", "-q", "elsewhere", repo.name)


def with_another_git(repo: Path) -> None:
    (repo / ".git").rename(repo.parent / "old")
    git(repo, "init", "-q")


WAYS = [moved, deleted, without_git, replaced, with_another_git]
USES: dict[str, Callable[[Hive], object]] = {
    "a write": lambda hive: hive.messages.send("api", "again"),
    "a read": lambda hive: hive.messages.sent(),
    "a name": lambda hive: identity.remember(hive.layout, "api"),
    "a document": lambda hive: documents_lock(hive)().__enter__(),
}


def names(repo: Path) -> set[str]:
    return {str(path) for path in repo.parent.rglob("*")}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("use", USES)
def test_is_refused_and_nothing_is_made(
    repo: Path, hive: Hive, way: Callable[[Path], None], use: str
) -> None:
    hive.messages.send("api", "hello")
    way(repo)
    before = names(repo)
    with pytest.raises(QueenError, match="while the hive was open") as refused:
        USES[use](hive)
    assert exit_code(refused.value) == UNREADABLE
    assert names(repo) == before


def test_outside_git_the_folder_of_the_hive_is_known(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".beads").mkdir()
    hive = Hive.open(home, droid="ui", env={})
    hive.messages.send("api", "hello")
    moved(home)
    with pytest.raises(Unreadable, match="while the hive was open"):
        hive.messages.send("api", "again")
    assert not home.exists()


def test_what_git_does_to_the_tree_is_no_move(repo: Path, hive: Hive) -> None:
    hive.messages.send("api", "hello")
    shutil.rmtree(repo / ".beads")  # As a checkout of a branch without a hive does.
    hive.messages.send("api", "again")
    assert [each.body for each in hive.messages.sent()] == ["again", "hello"]


def _as_if_it_had_looked_before(hive: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive.layout, "refuse_if_moved", lambda: None)


@pytest.mark.parametrize("way", [way for way in WAYS if way is not moved], ids=lambda x: x.__name__)
def test_a_move_between_the_look_and_the_write_makes_nothing(
    repo: Path, hive: Hive, way: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hive.messages.send("api", "hello")
    way(repo)
    before = names(repo)
    _as_if_it_had_looked_before(hive, monkeypatch)
    with pytest.raises(Unreadable):
        safe_open.make_folder(os.path.join(hive.layout.state_dir, "told"))
    with pytest.raises(Unreadable):
        hive.messages.send("api", "again")
    assert names(repo) == before
