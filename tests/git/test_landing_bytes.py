"""The check reads the very bytes that land, whatever this clone has git take for them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import QuickQueen, Ran, commit_file, git

SETTINGS = ".beads/queen.toml"
IS_GOOD = "grep -qx good code.txt"


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A linked worktree of a repository whose check wants `code.txt` to be good."""
    commit_file(repo, "code.txt", "good\n")
    commit_file(repo, SETTINGS, f"[land]\ncheck = '{IS_GOOD}'\n")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", *more, as_="ui", cwd=tree)


def code_on_main(repo: Path) -> str:
    return git(repo, "--no-replace-objects", "show", "main:code.txt")


def name(tree: Path, revision: str) -> str:
    return git(tree, "--no-replace-objects", "rev-parse", revision).strip()


class TestReplaced:
    @pytest.mark.parametrize("what", ["{}", "{}^{{tree}}", "{}:code.txt"])
    def test_no_commit_tree_or_file_stands_for_another(
        self, quick: QuickQueen, repo: Path, tree: Path, what: str
    ) -> None:
        good = name(tree, "HEAD")
        commit_file(tree, "code.txt", "bad\n")
        bad = name(tree, "HEAD")
        git(tree, "replace", name(tree, what.format(bad)), name(tree, what.format(good)))
        (tree / "code.txt").unlink()
        git(tree, "checkout", "-q", "-f", "HEAD", "--", "code.txt")
        assert (tree / "code.txt").read_text() == "good\n"
        assert landing(quick, tree).code != 0
        assert code_on_main(repo) == "good\n"

    def test_a_file_that_was_checked_out_so_is_read_though_git_takes_it_for_unchanged(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        good = name(tree, "HEAD:code.txt")
        commit_file(tree, "code.txt", "bad\n")
        bad = name(tree, "HEAD:code.txt")
        git(tree, "replace", bad, good)
        (tree / "code.txt").unlink()
        git(tree, "checkout", "-q", "-f", "HEAD", "--", "code.txt")
        git(tree, "replace", "-d", bad)
        index = Path(git(tree, "rev-parse", "--absolute-git-dir").strip(), "index")
        os.utime(index, (time.time() + 5, time.time() + 5))  # Git need not look again.
        assert git(tree, "status", "--porcelain", "--untracked-files=no") == ""
        assert (landing(quick, tree).code, code_on_main(repo)) == (1, "good\n")

    def test_the_checks_of_an_issue_read_what_lands(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(repo, SETTINGS, "")
        git(tree, "merge", "-q", "main")
        put_bead(repo, ralph_bead("gt-1", IS_GOOD))
        assert quick("claim", "gt-1", as_="ui", cwd=tree).code == 0
        good = name(tree, "HEAD:code.txt")
        commit_file(tree, "code.txt", "bad\n")
        git(tree, "replace", name(tree, "HEAD:code.txt"), good)
        (tree / "code.txt").unlink()
        git(tree, "checkout", "-q", "-f", "HEAD", "--", "code.txt")
        index = Path(git(tree, "rev-parse", "--absolute-git-dir").strip(), "index")
        os.utime(index, (time.time() + 5, time.time() + 5))
        done = landing(quick, tree)
        assert (done.code, code_on_main(repo)) == (1, "good\n"), done

    def test_no_older_settings_stand_for_those_of_main(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(repo, SETTINGS, "[land]\ncheck = 'true'\n")
        older = name(repo, f"main:{SETTINGS}")
        commit_file(repo, SETTINGS, f"[land]\ncheck = '{IS_GOOD}'\n")
        git(tree, "merge", "-q", "main")
        git(tree, "replace", name(repo, f"main:{SETTINGS}"), older)
        commit_file(tree, "code.txt", "bad\n")
        assert (landing(quick, tree).code, code_on_main(repo)) == (1, "good\n")

    def test_no_graft_says_that_the_work_of_others_is_in_the_branch(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(tree, "more.txt", "x\n")
        commit_file(repo, "theirs.txt", "x\n")
        parents = [name(tree, each) for each in ("HEAD", "HEAD~1", "main")]
        grafts = repo / ".git" / "info" / "grafts"
        grafts.parent.mkdir(exist_ok=True)
        grafts.write_text(" ".join(parents))
        done = landing(quick, tree)
        assert (done.code, "deprecated" in done.out + done.err) == (0, False)
        grafts.unlink()
        assert "theirs.txt" in git(repo, "ls-tree", "--name-only", "main").split()


class TestTheFilesOfTheCheck:
    def test_are_all_there(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        commit_file(tree, "test_more.txt", "x\n")
        git(tree, "update-index", "--skip-worktree", "test_more.txt")
        (tree / "test_more.txt").unlink()
        git(tree, "sparse-checkout", "set", "--no-cone", "/*", "!test_more.txt")
        assert landing(quick, tree, "--check", "test -e test_more.txt").code == 0

    def test_may_be_links_and_have_other_line_ends_or_a_filter(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        git(repo, "config", "filter.up.clean", "tr A-Z a-z")
        git(repo, "config", "filter.up.smudge", "tr a-z A-Z")
        (tree / ".gitattributes").write_text("*.bat text eol=crlf\n*.up filter=up\n")
        (tree / "a.bat").write_bytes(b"one\r\n")
        (tree / "a.up").write_text("ONE\n")
        (tree / "a.link").symlink_to("nowhere")
        git(tree, "add", "--all")
        git(tree, "commit", "-qm", "kinds of files")
        assert git(tree, "show", "HEAD:a.bat", "HEAD:a.up") == "one\none\n"
        assert landing(quick, tree).code == 0
