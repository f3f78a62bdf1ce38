"""The id of a working tree: the same for everybody in it, and for nobody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hives import git, without_override

from queenbee.errors import Unwritable
from queenbee.store.git_files import tree_id
from queenbee.store.git_files.tree_id import branch_of, keep_tree_id, read_tree_id
from queenbee.store.layout import Layout, discover


def layout_of(tree: Path) -> Layout:
    return discover(str(tree), {})


def linked(repo: Path, name: str) -> Path:
    tree = repo.parent / name
    git(repo, "worktree", "add", "-q", str(tree), "-b", name)
    return tree


def test_a_tree_in_which_nothing_was_announced_has_none(repo: Path) -> None:
    assert read_tree_id(layout_of(repo)) is None


def test_a_tree_keeps_the_id_that_it_was_given_first(repo: Path) -> None:
    first = keep_tree_id(layout_of(repo))
    assert keep_tree_id(layout_of(repo)) == read_tree_id(layout_of(repo)) == first
    assert os.listdir(repo / ".git").count("queenbee-tree") == 1
    assert not [name for name in os.listdir(repo / ".git") if name.endswith(".tmp")]


def test_a_folder_of_a_tree_is_in_that_tree(repo: Path) -> None:
    (repo / "src").mkdir()
    assert keep_tree_id(layout_of(repo)) == read_tree_id(layout_of(repo / "src"))


def test_each_worktree_and_each_clone_has_one_of_its_own(repo: Path) -> None:
    clone = repo.parent / "clone"
    git(repo, "clone", "-q", str(repo), str(clone))
    (clone / ".beads").mkdir()
    trees = [repo, linked(repo, "one"), linked(repo, "two"), clone]
    assert len({keep_tree_id(layout_of(each)) for each in trees}) == 4


def test_a_new_worktree_at_the_place_of_an_old_one_has_another(repo: Path) -> None:
    tree = linked(repo, "one")
    first = keep_tree_id(layout_of(tree))
    git(repo, "worktree", "remove", "--force", str(tree))
    git(repo, "worktree", "add", "-q", str(tree), "one")
    assert keep_tree_id(layout_of(tree)) != first


def test_a_new_worktree_has_not_the_id_that_the_state_kept_of_an_old_one(repo: Path) -> None:
    tree = linked(repo, "one")
    made = repo / ".git" / "worktrees" / "one" / "queenbee-tree"
    first = keep_tree_id(layout_of(tree))
    kept = Path(layout_of(tree).tree_id_paths[-1])
    kept.parent.mkdir(parents=True, exist_ok=True)
    made.rename(kept)  # As where a sandbox may not write git's folder.
    kept.touch()
    assert read_tree_id(layout_of(tree)) == first
    git(repo, "worktree", "remove", "--force", str(tree))
    git(repo, "worktree", "add", "-q", str(tree), "one")
    later = kept.stat().st_mtime + 1
    os.utime(made.with_name("commondir"), (later, later))
    assert read_tree_id(layout_of(tree)) is None
    assert keep_tree_id(layout_of(tree)) != first


def test_a_tree_that_was_moved_is_still_the_same(repo: Path) -> None:
    first = keep_tree_id(layout_of(repo))
    shutil.move(repo, repo.parent / "elsewhere")
    assert read_tree_id(layout_of(repo.parent / "elsewhere")) == first


@pytest.mark.parametrize("text", ["", "7ZZZ\n", "a" * 26, "É" * 26, "A" * 27])
def test_what_is_not_an_id_is_replaced(repo: Path, text: str) -> None:
    path = repo / ".git" / "queenbee-tree"
    path.write_text(text)
    assert read_tree_id(layout_of(repo)) is None
    fresh = keep_tree_id(layout_of(repo))
    assert path.read_text() == f"{fresh}\n"


def test_outside_git_the_id_is_in_the_state_of_the_hive(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    fresh = keep_tree_id(layout_of(tmp_path))
    assert (tmp_path / ".beads/.queenbee/trees/main").read_text() == f"{fresh}\n"


@pytest.mark.skipif(sys.platform != "linux", reason="gives up root's rights as Linux has them")
def test_where_git_is_read_only_everybody_finds_the_id_in_the_state(repo: Path) -> None:
    """A sandboxed agent may write the hive's state only; the others must see the same id."""
    git(repo, "config", "queenbee.state", "beads")
    (repo / ".git").chmod(0o555)
    code = (
        "from queenbee.store.layout import discover;"
        "from queenbee.store.git_files.tree_id import *;"
        "import os; print(keep_tree_id(discover(os.getcwd(), {})))"
    )
    try:
        made = subprocess.run(
            [sys.executable, "-c", code],
            cwd=repo,
            capture_output=True,
            text=True,
            preexec_fn=without_override,
            check=True,
        ).stdout.strip()
    finally:
        (repo / ".git").chmod(0o755)
    assert keep_tree_id(layout_of(repo)) == made
    assert not (repo / ".git" / "queenbee-tree").exists()


def test_where_nothing_can_be_written_the_error_names_the_file(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tree_id.safe_open, "replace", full)
    with pytest.raises(Unwritable, match="trees/main cannot be written") as refused:
        keep_tree_id(layout_of(repo))
    assert "No space left" in str(refused.value)


def test_the_branch_is_that_of_the_tree(repo: Path) -> None:
    tree = linked(repo, "topic/one")
    assert (branch_of(layout_of(repo)), branch_of(layout_of(tree))) == ("main", "topic/one")
    git(tree, "checkout", "-q", "--detach")
    assert branch_of(layout_of(tree)) is None


def test_a_branch_whose_name_is_not_text_has_no_name(repo: Path) -> None:
    (repo / ".git" / "HEAD").write_bytes(b"ref: refs/heads/latin\xe9\n")
    assert branch_of(layout_of(repo)) is None


def test_outside_git_there_is_no_branch(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    assert branch_of(layout_of(tmp_path)) is None
