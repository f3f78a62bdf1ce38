"""What a branch changes of the check is shown, and waits for a person where that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import Queen, QuickQueen, Ran, commit_file, git

SETTINGS = ".beads/queen.toml"


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A linked worktree of a repository whose check is a file of it."""
    commit_file(repo, "run-tests", "exit 0\n")
    commit_file(repo, SETTINGS, "[land]\ncheck = 'sh run-tests'\n")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", *more, as_="ui", cwd=tree)


class TestWhatGitDoesNotHave:
    """A file that only one worktree has takes no check away, nor that of others."""

    def begin(self, repo: Path, tree: Path, check: str, **files: str) -> None:
        commit_file(repo, SETTINGS, f"[land]\ncheck = '{check}'\n")
        for path, text in files.items():
            commit_file(repo, path.replace("_", "."), text)
        git(tree, "merge", "-q", "main")

    def ignored(self, tree: Path, path: str, text: str) -> None:
        """Makes a file of which `git status` says nothing."""
        exclude = Path(git(tree, "rev-parse", "--git-path", "info/exclude").strip())
        exclude.parent.mkdir(exist_ok=True)
        with (tree / exclude).open("a") as file:
            file.write(f"/{path}\n")
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)

    @pytest.mark.parametrize(
        ("check", "path"),
        [
            ("make -s test", "GNUmakefile"),
            ("cd . && make -s test", "makefile"),
            ("python3 -m chk", "chk/__init__.py"),
            ("python3 -m chk", "chk/__main__.py"),
            ("python3 -m unittest chk", "chk/__init__.py"),
            ("python3 -m unittest chk", "unittest/__main__.py"),
            ("pytest", "conftest.py"),
            ("tox", "pyproject.toml"),
        ],
    )
    def test_is_not_read_in_place_of_what_it_has(
        self, quick: QuickQueen, repo: Path, tree: Path, check: str, path: str
    ) -> None:
        self.begin(repo, tree, check, Makefile="test:\n\tfalse\n", chk_py="1 / 0\n", tox_ini="")
        self.ignored(tree, path, "test:\n\ttrue\n" if "make" in path.lower() else "")
        commit_file(tree, "code.txt", "bad\n")
        assert git(tree, "status", "--porcelain") == ""
        done = landing(quick, tree)
        assert (done.code, f"what git does not have: {path}" in done.err) == (5, True)

    def test_nor_what_the_branch_only_stopped_tracking(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        git(tree, "merge", "-q", "main")
        git(tree, "rm", "-q", "--cached", "run-tests")
        git(tree, "commit", "-qm", "not tracked")
        done = landing(quick, tree)
        assert (done.code, "what git does not have: run-tests" in done.err) == (5, True)

    @pytest.mark.parametrize(
        ("check", "path"),
        [
            ("make -s test", "makefile.local"),
            ("sh ./local", "local"),
            (".venv/bin/check", ".venv/bin/check"),
            ("npm -v >/dev/null 2>&1; true", ".npmrc"),
        ],
    )
    def test_is_read_where_there_is_nothing_else(
        self, quick: QuickQueen, repo: Path, tree: Path, check: str, path: str
    ) -> None:
        self.begin(repo, tree, check, Makefile="test:\n\t@true\n", package_json="{}")
        self.ignored(tree, path, "#!/bin/sh\n")
        (tree / path).chmod(0o755)
        commit_file(tree, "code.txt", "good\n")
        assert landing(quick, tree).code == 0

    @pytest.mark.parametrize(
        ("check", "makefile", "path"),
        [
            ("make -s test", "test:\n\tfalse\n", "test"),
            ("make -s test", "test: code.txt\n\tfalse\n", "test/x"),
            ("make -s", "# x\nA := 1\n.PHONY: x\n\ntest:\n\tfalse\n", "test"),
            ("cd . && nice make -j 2 A=1 test", "all:\n\ntest lint:\n\tfalse\n", "test"),
            ('sh -c "make -sC. test"', "include more.mk\n", "test"),
        ],
    )
    def test_is_not_taken_for_made(
        self, quick: QuickQueen, repo: Path, tree: Path, check: str, makefile: str, path: str
    ) -> None:
        self.begin(repo, tree, check, Makefile=makefile, more_mk="test:\n\tfalse\n")
        self.ignored(tree, path, "")
        commit_file(tree, "code.txt", "bad\n")
        done = landing(quick, tree)
        assert (done.code, "what git does not have: test" in done.err) == (5, True), done
        assert f"{'rm -r' if '/' in path else 'rm'} {tree}/test" in done.err

    @pytest.mark.parametrize(
        "makefile",
        [
            ".PHONY: lint \\\n  test\ntest:\n\t@true\n",
            "PHONY = test\n.PHONY: $(PHONY)\ntest:\n\t@true\n",
            "test: code.txt\n\tcp code.txt $@\n",
            "test: code.txt\n\tcat code.txt > test\n",
            "test:\n\tmkdir -p test\n",
            "%:\n\t@true\n",
        ],
    )
    def test_is_made_where_the_rule_says_so(
        self, quick: QuickQueen, repo: Path, tree: Path, makefile: str
    ) -> None:
        self.begin(repo, tree, "make -s test", Makefile=makefile)
        self.ignored(tree, "test", "")
        commit_file(tree, "code.txt", "good\n")
        assert landing(quick, tree).code == 0

    def test_judges_no_branch_of_another(
        self, quick: QuickQueen, queen: Queen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        self.begin(repo, tree, "sleep 2; make -s test", Makefile="test:\n\ttest ! -e bad.txt\n")
        other = tmp_path / "api"
        git(repo, "worktree", "add", "-q", str(other), "-b", "api")
        self.ignored(tree, "GNUmakefile", "test:\n\ttrue\n")
        commit_file(tree, "code.txt", "x\n")
        commit_file(other, "bad.txt", "x\n")
        first = queen.start("land", as_="ui", cwd=tree)
        assert quick("land", as_="api", cwd=other).code == 1
        first.communicate(timeout=60)
        assert first.returncode == 5
