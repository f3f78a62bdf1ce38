"""A worktree whose folder is not where git looks for it: moved by `mv`, removed, or on a disk that
is away. Nothing that only its git directory has is lost.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git
from made_worktrees import add, opened

from queenbee.errors import Conflict


@pytest.fixture
def tree(repo: Path) -> Path:
    """The main worktree of a repository with a file."""
    commit_file(repo, "file.txt", "1\n")
    return repo


@pytest.fixture
def path(tree: Path) -> Path:
    """A worktree that was made for ui."""
    return Path(add(opened(tree), "ui").path)


def stage(path: Path, text: str = "a day of work\n") -> None:
    """Stages a file that is nowhere else."""
    (path / "staged.txt").write_text(text)
    git(path, "add", "staged.txt")
    (path / "staged.txt").unlink()


def git_dir_of(path: Path) -> str:
    return os.path.realpath(path / git(path, "rev-parse", "--git-dir").strip())


def rebasing(path: Path) -> None:
    commit_file(path, "one.txt", "1\n")
    git(path, "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")


def conflicting(path: Path) -> None:
    for number in ("2", "3"):
        (path / "file.txt").write_text(f"{number}\n")
        git(path, "stash") if number == "2" else git(path, "commit", "-qam", "3")
    with pytest.raises(AssertionError):
        git(path, "stash", "pop")


class TestMovedByHand:
    """Git still knows it in the old place, and its `.git` still leads to its git directory."""

    def test_what_was_staged_is_kept_on_a_branch(
        self, quick: QuickQueen, tree: Path, path: Path
    ) -> None:
        stage(path)
        path.rename(path.parent / "moved")
        made = quick("worktree", "add", "ui", "--json", cwd=tree)
        assert made.json["kept"] == "unfinished/repo-ui"
        assert "what only it had is kept: git log unfinished/repo-ui" in made.err
        assert git(tree, "show", "unfinished/repo-ui:staged.txt") == "a day of work\n"
        assert not (path / "staged.txt").exists()

    def test_it_goes_on_with_its_own_index_and_moves_no_branch_of_another(
        self, tree: Path, path: Path
    ) -> None:
        stage(path)
        moved = path.rename(path.parent / "moved")
        assert add(opened(tree), "ui").path == str(path)
        assert git_dir_of(moved) != git_dir_of(path)
        assert git(moved, "diff", "--cached", "--name-only") == "staged.txt\n"
        before = git(tree, "rev-parse", "ui")
        git(moved, "commit", "-qm", "on no branch")
        assert git(tree, "rev-parse", "ui") == before
        git(tree, "worktree", "repair", str(moved))
        assert f"worktree {moved}\n" in git(tree, "worktree", "list", "--porcelain")
        # It is a person's now.
        assert not list((tree / ".git" / "worktrees" / path.name).glob("queenbee-*"))

    def test_also_the_second_time_nothing_leads_to_the_new_one(
        self, tree: Path, path: Path
    ) -> None:
        moved = []
        for number in range(3):
            stage(path, f"{number}\n")
            moved.append(path.rename(path.parent / f"moved-{number}"))
            add(opened(tree), "ui")
        assert len({*map(git_dir_of, [path, *moved])}) == 4
        kept = git(tree, "for-each-ref", "--format=%(refname)", "refs/heads/unfinished").split()
        assert sorted(git(tree, "show", f"{each}:staged.txt") for each in kept) == [
            f"{number}\n" for number in range(3)
        ]

    @pytest.mark.parametrize("how", ["rebase", "other", "conflicts", "locked"])
    def test_what_is_under_way_in_it_is_refused_by_name(
        self, tree: Path, path: Path, how: str
    ) -> None:
        if how == "rebase":
            rebasing(path)
            said = "git rebase is under way"
        elif how == "other":
            git(path, "switch", "-q", "-c", "mine")
            said = "it has the branch mine"
        elif how == "conflicts":
            conflicting(path)
            said = "what is staged in it has conflicts"
        else:
            git(tree, "worktree", "lock", str(path))
            said = "git has locked it"
        stage(path)
        moved = path.rename(path.parent / "moved")
        before = git(moved, "status", "--porcelain=v2", "--branch")
        with pytest.raises(Conflict, match=said) as refused:
            add(opened(tree), "ui")
        assert "worktree repair NEW_PATH" in str(refused.value.hint)
        assert "git worktree list" in str(refused.value.hint)
        assert git(moved, "status", "--porcelain=v2", "--branch") == before
        git(tree, "worktree", "repair", str(moved))  # As the hint says.
        assert f"worktree {moved}\n" in git(tree, "worktree", "list", "--porcelain")

    def test_where_the_folder_around_it_was_moved_none_is_made(
        self, quick: QuickQueen, tree: Path
    ) -> None:
        made, around = opened(tree), tree.parent / "trees"
        path = around / "ui"
        assert quick("worktree", "add", "ui", f"--path={path}", cwd=tree).code == 0
        stage(path)
        around.rename(tree.parent / "elsewhere")
        with pytest.raises(Conflict, match=r"trees is not, either") as refused:
            add(made, "ui")
        assert not around.exists()
        git(tree, "worktree", "repair", str(tree.parent / "elsewhere" / "ui"))
        assert add(made, "ui").path == str(tree.parent / "elsewhere" / "ui")
        assert "worktree repair NEW_PATH" in str(refused.value.hint)

    def test_no_second_one_is_made_at_another_place(
        self, quick: QuickQueen, tree: Path, path: Path
    ) -> None:
        path.rename(path.parent / "moved")
        refused = quick("worktree", "add", "ui", "--path", "../other", cwd=tree)
        assert refused.code == 5
        assert "is not there, and it has the branch ui" in refused.err
        assert not (path.parent / "other").exists()


class TestRemoved:
    def test_commits_on_no_branch_are_kept_with_what_was_staged(
        self, tree: Path, path: Path
    ) -> None:
        git(path, "checkout", "-q", "--detach")
        commit_file(path, "new.txt", "x\n")
        stage(path)
        shutil.rmtree(path)
        add(opened(tree), "ui")
        assert git(tree, "show", "unfinished/repo-ui:staged.txt") == "a day of work\n"
        assert git(tree, "show", "unfinished/repo-ui~1:new.txt") == "x\n"

    def test_commits_on_no_branch_alone_are_kept(self, tree: Path, path: Path) -> None:
        git(path, "checkout", "-q", "--detach")
        commit_file(path, "new.txt", "x\n")
        shutil.rmtree(path)
        add(opened(tree), "ui")
        assert git(tree, "show", "unfinished/repo-ui:new.txt") == "x\n"

    def test_commits_to_which_a_reference_of_its_own_leads_are_kept(
        self, tree: Path, path: Path
    ) -> None:
        commit_file(path, "new.txt", "x\n")
        git(path, "update-ref", "refs/worktree/mine", "HEAD")
        git(path, "reset", "-q", "--hard", "HEAD~1")
        shutil.rmtree(path)
        add(opened(tree), "ui")
        assert git(tree, "show", "unfinished/repo-ui:new.txt") == "x\n"

    def test_without_anything_of_its_own_it_leaves_no_branch(self, tree: Path, path: Path) -> None:
        shutil.rmtree(path)
        add(opened(tree), "ui")
        assert git(tree, "branch", "--list", "unfinished/*") == ""


class TestOfSomebodyElse:
    """Git takes it for gone: its folder may be on a disk that is away."""

    def test_it_stays_where_another_worktree_is_made_again(self, tree: Path, path: Path) -> None:
        person = tree.parent / "person"
        git(tree, "worktree", "add", "-q", "-b", "person", str(person))
        stage(person)
        away = person.rename(tree.parent / "away")
        shutil.rmtree(path)
        path.mkdir()
        add(opened(tree), "ui")
        assert git(away, "diff", "--cached", "--name-only") == "staged.txt\n"
        assert git(away, "branch", "--show-current") == "person\n"

    def test_it_keeps_its_place(self, tree: Path) -> None:
        path = tree.parent / "repo-ui"
        git(tree, "worktree", "add", "-q", "-b", "person", str(path))
        stage(path)
        away = path.rename(tree.parent / "away")
        with pytest.raises(Conflict, match="is not there, and QueenBee did not make it"):
            add(opened(tree), "ui")
        assert git(away, "diff", "--cached", "--name-only") == "staged.txt\n"
        assert git(tree, "branch", "--list", "ui") == ""


class TestMovedByGit:
    """What proves that it was made for its droid is in its git directory, and goes along."""

    def test_it_is_its_droids_in_the_new_place(self, tree: Path, path: Path) -> None:
        git(tree, "worktree", "move", str(path), str(path.parent / "elsewhere"))
        assert add(opened(tree), "ui").path == str(path.parent / "elsewhere")
        assert not path.exists()

    def test_none_is_made_in_the_old_place(self, quick: QuickQueen, tree: Path, path: Path) -> None:
        new = path.parent / "elsewhere"
        git(tree, "worktree", "move", str(path), str(new))
        refused = quick("worktree", "add", "ui", "--path", str(path), cwd=tree)
        assert refused.code == 5
        assert f"the worktree of ui is now {new}" in refused.err
