"""What git would take away without a word stays: submodules, deletions, links for folders, and
what is in folders in place of files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, commit_file, git, write_lines

FETCHES = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
WORK = {"lib.py": "x\nedited\n", "new.py": "an hour of work\n"}


@pytest.fixture
def submodule(repo: Path, beads: Path, tmp_path: Path) -> Path:
    """A submodule `libs/x` of the main worktree."""
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    git(repo, "init", "-q", str(tmp_path / "library"))
    commit_file(tmp_path / "library", "lib.py", "x\n")
    git(repo, *FETCHES, "add", str(tmp_path / "library"), "libs/x")
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "a submodule")
    return repo / "libs" / "x"


@pytest.fixture
def tree(repo: Path, submodule: Path, tmp_path: Path) -> Path:
    """A worktree `ui`, in which the submodule is not there."""
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


@pytest.fixture
def own(tree: Path) -> Path:
    """The submodule in the worktree, with a new file in it: a landing refuses changed ones."""
    git(tree, *FETCHES, "update", "--init")
    (tree / "libs" / "x" / "new.py").write_text(WORK["new.py"])
    return tree / "libs" / "x"


def work_in(folder: Path) -> Path:
    for name, text in WORK.items():
        (folder / name).write_text(text)
    return folder


def work_of(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in WORK if (folder / name).is_file()}


def replace(tree: Path, how: str = "a file") -> None:
    """Commits something in place of the submodule."""
    git(tree, "rm", "-q", "-f", "libs/x", ".gitmodules")
    shutil.rmtree(tree / "libs", ignore_errors=True)
    place = tree / "libs" if how == "a file above" else tree / "libs" / "x"
    place.parent.mkdir(exist_ok=True)
    if how == "a link":
        place.symlink_to("elsewhere")
    else:
        place.write_text("a file\n")
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "no submodule")


def landing(quick: QuickQueen, tree: Path) -> Ran:
    return quick("land", "--unchecked", as_="ui", cwd=tree)


def passing(quick: QuickQueen, tree: Path) -> Ran:
    """Returns how the next landing ends: what it takes back is shown once."""
    return done if (done := landing(quick, tree)).code == 0 else landing(quick, tree)


class TestTheMainWorktree:
    @pytest.mark.parametrize("how", ["a file", "a link", "a file above"])
    def test_keeps_a_submodule_and_all_that_is_in_it(
        self, quick: QuickQueen, repo: Path, submodule: Path, tree: Path, how: str
    ) -> None:
        replace(tree, how)
        work_in(submodule)
        before = git(repo, "rev-parse", "main")
        landing(quick, tree)  # It takes back what landed, which is asked once.
        refused = landing(quick, tree)
        assert refused.code == 5
        assert "submodules with files in them are where it has others: libs/x" in refused.err
        assert f"git -C {repo} submodule deinit libs/x" in refused.err
        assert git(repo, "rev-parse", "main") == before
        assert work_of(submodule) == WORK
        git(submodule, "stash", "-uq")
        git(repo, "submodule", "--quiet", "deinit", "libs/x")
        assert landing(quick, tree).code == 0
        assert git(repo, "status", "--porcelain", "--", "libs") == ""

    def test_has_no_submodule_any_more_where_nothing_is_in_its_place(
        self, quick: QuickQueen, submodule: Path, tree: Path
    ) -> None:
        git(tree, "rm", "-q", "-f", "libs/x", ".gitmodules")
        git(tree, "commit", "-qm", "no submodule")
        work_in(submodule)
        assert passing(quick, tree).code == 0
        assert work_of(submodule) == WORK

    @pytest.mark.parametrize("by", ["a commit", "nobody"])
    def test_keeps_the_deletion_of_a_file(
        self, quick: QuickQueen, repo: Path, tree: Path, by: str
    ) -> None:
        for name in ("f", "g"):
            commit_file(repo, name, "1\n")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "f", "1\n2\n")
        (repo / "f").unlink()
        (repo / "g").unlink()  # Nobody changes that.
        refused = landing(quick, tree)
        assert refused.code == 5
        assert "deleted, and not committed: f\n" in refused.err
        assert not (repo / "f").exists()
        if by == "nobody":
            git(repo, "restore", "f")
        else:
            git(tree, "rm", "-q", "f")
            git(tree, "commit", "-qm", "it goes here, too")
        assert passing(quick, tree).code == 0
        assert not (repo / "g").exists()

    def test_of_a_sparse_checkout_lacks_nothing(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(repo, "d/f", "1\n")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "d/f", "1\n2\n")
        git(repo, "sparse-checkout", "set", ".beads")
        assert landing(quick, tree).code == 0
        assert git(repo, "show", "main:d/f") == "1\n2\n"

    def test_gets_records_again(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        commit_file(repo, ".beads/archive/x.jsonl", "{}\n")
        git(tree, "merge", "-q", "main")
        commit_file(tree, ".beads/archive/x.jsonl", "{}\n{}\n")
        (repo / ".beads" / "archive" / "x.jsonl").unlink()
        assert landing(quick, tree).code == 0

    @pytest.mark.parametrize("puts", ["echo mine > run/mine; git add run", "mkfifo run/mine"])
    @pytest.mark.parametrize("goes", [False, True])
    def test_keeps_a_folder_in_place_of_a_file(
        self, quick: QuickQueen, repo: Path, tree: Path, puts: str, goes: bool
    ) -> None:
        if goes:
            commit_file(repo, "run", "1\n")
            git(tree, "merge", "-q", "main")
            git(tree, "rm", "-q", "run")
            git(tree, "commit", "-qm", "nothing to run")
            git(repo, "rm", "-q", "--cached", "run")
            (repo / "run").unlink()
            landing(quick, tree)  # It takes back what landed, which is asked once.
        else:
            commit_file(tree, "run", "1\n")
        subprocess.run(f"mkdir run; {puts}", shell=True, cwd=repo, check=True)
        refused = landing(quick, tree)
        assert (refused.code, "it has files: run" in refused.err) == (5, True), refused
        assert "move them away; then queen land" in refused.err
        (repo / "run" / "mine").rename(repo / "mine")
        git(repo, "rm", "-rq", "--cached", "--ignore-unmatch", "run/mine")
        assert landing(quick, tree).code == 0
        assert (repo / "mine").exists()


class TestTheWorktreeThatLands:
    def test_keeps_its_submodule_and_stays_behind(
        self, quick: QuickQueen, repo: Path, tree: Path, own: Path
    ) -> None:
        replace(repo)
        commit_file(tree, "f", "1\n")
        head = git(tree, "rev-parse", "HEAD")
        done = landing(quick, tree)
        assert (done.code, "this worktree stays as it was: submodules" in done.out) == (0, True)
        assert git(tree, "rev-parse", "HEAD") == head
        assert git(repo, "show", "main:f") == "1\n"
        assert (own / "new.py").exists()

    @pytest.mark.parametrize("strategy", ["merge", "rebase"])
    def test_keeps_its_submodule_in_a_conflict(
        self, quick: QuickQueen, repo: Path, tree: Path, own: Path, strategy: str
    ) -> None:
        quick("config", "set", "land.strategy", strategy)
        commit_file(tree, "f", "ours\n")
        commit_file(repo, "f", "theirs\n")
        replace(repo)
        refused = landing(quick, tree)
        assert refused.code == 5
        assert "where it has others: libs/x" in refused.err
        assert (own / "new.py").exists()

    def test_keeps_its_submodule_in_a_rebase_that_passes_a_commit_without_it(
        self, quick: QuickQueen, repo: Path, tree: Path, submodule: Path
    ) -> None:
        at = git(submodule, "rev-parse", "HEAD").strip()
        modules = git(tree, "show", "HEAD:.gitmodules")
        replace(tree)
        git(tree, "rm", "-q", "libs/x")
        git(tree, "update-index", "--add", "--cacheinfo", f"160000,{at},libs/x")
        (tree / "libs" / "x").mkdir(parents=True)
        commit_file(tree, ".gitmodules", modules)
        git(tree, *FETCHES, "update", "--init")
        own = tree / "libs" / "x"
        (own / "new.py").write_text(WORK["new.py"])
        commit_file(tree, "f", "ours\n")
        commit_file(repo, "f", "theirs\n")
        quick("config", "set", "land.strategy", "rebase")
        refused = landing(quick, tree)
        assert refused.code == 5
        assert "where it has others: libs/x" in refused.err
        assert (own / "new.py").exists()


class TestTheNextIssue:
    @pytest.mark.parametrize("name", [".gitattributes", "d/.gitattributes"])
    def test_does_not_wait_for_a_fifo_that_git_reads(
        self, quick: QuickQueen, repo: Path, tree: Path, name: str
    ) -> None:
        (repo / "d").mkdir()
        (tree / "d").mkdir()
        commit_file(repo, "d/f", "x\n")
        os.mkfifo(tree / name)
        taken = quick("next", as_="ui", cwd=tree)
        assert taken.code == 0, taken
        assert f"for what is no file: {name}" in " ".join(taken.out.split())

    def test_leaves_a_submodule_where_it_is(
        self, quick: QuickQueen, repo: Path, tree: Path, own: Path
    ) -> None:
        work_in(own)
        replace(repo)
        taken = quick("next", as_="ui", cwd=tree)
        assert taken.code == 0
        assert "would harm what is here: submodules" in " ".join(taken.out.split())
        assert work_of(own) == WORK

    @pytest.mark.parametrize(
        "does",
        [lambda path: path.unlink(), lambda path: _link_for(path.parent)],
        ids=["a deletion", "a link for a folder"],
    )
    def test_leaves_what_is_done_to_a_file(
        self, quick: QuickQueen, repo: Path, tree: Path, does: Callable[[Path], object]
    ) -> None:
        commit_file(repo, "d/f", "1\n")
        git(tree, "merge", "-q", "main")
        commit_file(repo, "d/f", "1\n2\n")
        does(tree / "d" / "f")
        before = git(tree, "status", "--porcelain")
        assert quick("next", as_="ui", cwd=tree).code == 0
        assert git(tree, "status", "--porcelain") == before


def _link_for(folder: Path) -> None:
    folder.rename(folder.with_name("real"))
    folder.symlink_to("real")
