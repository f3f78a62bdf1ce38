"""The one module that opens files: the parts inside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queenbee.errors import Unreadable
from queenbee.store import safe_open


def test_a_folder_that_was_walked_to_is_known_until_it_is_another(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    path = str(folder / "file")
    safe_open.write(path, b"first")
    (tmp_path / "one").rename(tmp_path / "moved")
    folder.mkdir(parents=True)
    safe_open.write(path, b"second")
    assert (tmp_path / "moved" / "two" / "file").read_bytes() == b"first"
    assert safe_open.read(path) == b"second"


def test_a_folder_that_becomes_a_link_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    path = str(folder / "file")
    safe_open.write(path, b"first")
    (tmp_path / "one").rename(tmp_path / "moved")
    (tmp_path / "one").symlink_to(tmp_path / "moved" / ".." / "elsewhere")
    (tmp_path / "elsewhere" / "two").mkdir(parents=True)
    with pytest.raises(Unreadable, match="one is a symbolic link"):
        safe_open.write(path, b"second")
    assert os.listdir(tmp_path / "elsewhere" / "two") == []


def test_what_is_no_folder_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        safe_open.read(str(tmp_path / "file" / "below"))


class TestAPathThatAUserNames:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        tree = tmp_path / "tree"
        (tree / ".git" / "hooks").mkdir(parents=True)
        (tree / "docs").mkdir()
        (tmp_path / "outside").mkdir()
        return tree

    def test_is_followed_within_the_tree(self, tree: Path) -> None:
        (tree / "linked").symlink_to("docs")
        named = safe_open.resolved(str(tree / "linked" / "plan.md"))
        assert named == str(tree / "docs" / "plan.md")

    def test_is_followed_where_the_tree_itself_is_linked(self, tree: Path) -> None:
        (tree.parent / "home").symlink_to(tree)
        named = safe_open.resolved(str(tree.parent / "home" / "docs" / "plan.md"))
        assert named == str(tree / "docs" / "plan.md")

    @pytest.mark.parametrize("target", ["../outside", ".git/hooks", ".beads", ".BEADS"])
    def test_does_not_leave_the_tree_or_enter_the_folder_of_git_or_a_hive(
        self, tree: Path, target: str
    ) -> None:
        (tree / ".beads").mkdir()
        (tree / "linked").symlink_to(target)
        with pytest.raises(Unreadable, match="leads through a symbolic link"):
            safe_open.resolved(str(tree / "linked" / "pre-commit"))
