"""No file that git ignores changes what a check says: no module, no compiled code, no settings."""

from __future__ import annotations

import importlib.util
import os
import py_compile
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, Ran, commit_file, git

SETTINGS = ".beads/queen.toml"
IS_GOOD = "python3 -B -m tests.run"
RUNS = "import json, sys\nfrom pkg.code import good\nsys.exit(not (good and json.dumps))\n"


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A linked worktree of a repository with a package, and a check that imports it."""
    commit_file(repo, SETTINGS, f"[land]\ncheck = '{IS_GOOD}'\n")
    commit_file(repo, "pkg/__init__.py", "")
    commit_file(repo, "pkg/code.py", "good = True\n")
    commit_file(repo, "tests/run.py", RUNS)
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


def ignored(tree: Path, path: str, text: str = "") -> None:
    """Makes a file of which `git status` says nothing."""
    exclude = Path(git(tree, "rev-parse", "--git-path", "info/exclude").strip())
    exclude.parent.mkdir(exist_ok=True)
    with (tree / exclude).open("a") as file:
        file.write(f"/{path}\n")
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", *more, as_="ui", cwd=tree)


def compiled(tree: Path, path: str, text: str) -> Path:
    """Has Python take a text for that of a module, without looking at it."""
    source = tree / path
    git_has = source.read_text()
    source.write_text(text)
    cache = Path(importlib.util.cache_from_source(str(source)))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), cfile=str(cache), invalidation_mode=mode)
    source.write_text(git_has)
    return cache


class TestCompiledCode:
    def test_does_not_judge_for_its_module(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        commit_file(repo, ".gitignore", "__pycache__/\n")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "pkg/code.py", "good = False\n")
        cache = compiled(tree, "pkg/code.py", "good = True\n")
        assert git(tree, "status", "--porcelain") == ""
        assert landing(quick, tree).code == 1
        assert not cache.exists()

    def test_does_not_judge_the_branch_of_another(
        self, quick: QuickQueen, queen: Queen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        commit_file(repo, ".gitignore", "__pycache__/\n")
        commit_file(repo, SETTINGS, f"[land]\ncheck = 'sleep 2; {IS_GOOD}'\n")
        git(tree, "merge", "-q", "main")
        other = tmp_path / "api"
        git(repo, "worktree", "add", "-q", str(other), "-b", "api")
        commit_file(tree, "more.txt", "x\n")
        commit_file(other, "pkg/code.py", "good = False\n")
        compiled(tree, "pkg/code.py", "good = True\n")
        first = queen.start("land", as_="ui", cwd=tree)
        assert quick("land", as_="api", cwd=other).code == 1
        first.communicate(timeout=60)
        assert first.returncode == 0

    def test_behind_a_link_is_left_where_it_is(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        commit_file(repo, ".gitignore", "__pycache__\n")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "pkg/code.py", "good = False\n")
        cache = compiled(tree, "pkg/code.py", "good = True\n")
        os.rename(cache.parent, tmp_path / "elsewhere")
        cache.parent.symlink_to(tmp_path / "elsewhere")
        assert landing(quick, tree).code == 1
        assert (tmp_path / "elsewhere" / cache.name).exists()


class TestAModuleThatGitDoesNotHave:
    @pytest.mark.parametrize(
        "path",
        [
            "json.py",
            "json/__init__.py",
            "json.pyc",
            "tests/json.py",
            "sitecustomize.py",
            "tests/conftest.py",
            "conftest.py",
            "pytest.ini",
            "tests/__init__.py",
            "pkg/code/__init__.py",
            "pkg/code.cpython-311-x86_64-linux-gnu.so",
            "tests/pkg.py",
            "tests/installed.py",
        ],
    )
    def test_is_not_read_in_place_of_another(
        self, quick: QuickQueen, tree: Path, path: str
    ) -> None:
        ignored(tree, ".venv/lib/python3.11/site-packages/installed/__init__.py")
        ignored(tree, path)
        commit_file(tree, "code.txt", "x\n")
        assert git(tree, "status", "--porcelain") == ""
        done = landing(quick, tree)
        assert (done.code, f"what git does not have: {path}" in done.err) == (5, True), done

    @pytest.mark.parametrize(
        "path", ["pkg/_version.py", "pkg/types.py", "scratch.py", "test.py", "tests/data_pb2.py"]
    )
    def test_is_only_named_if_it_takes_no_name(
        self, quick: QuickQueen, tree: Path, path: str
    ) -> None:
        ignored(tree, path)
        commit_file(tree, "code.txt", "x\n")
        done = landing(quick, tree)
        assert (done.code, f"may read what git does not have: {path}" in done.out) == (0, True)

    @pytest.mark.parametrize(
        "path",
        [
            ".venv/lib/python3.11/site-packages/json.py",
            "node_modules/x/conftest.py",
            "build/lib/json.py",
            "site/index.py",
        ],
    )
    def test_is_nothing_to_name_where_git_has_no_module(
        self, quick: QuickQueen, tree: Path, path: str
    ) -> None:
        ignored(tree, path)
        commit_file(tree, "code.txt", "x\n")
        done = landing(quick, tree)
        assert (done.code, "what git does not have" in done.out) == (0, False), done


class TestWhatAMakefileIncludes:
    @pytest.mark.parametrize(
        ("line", "path"),
        [
            ("-include local.mk", "local.mk"),
            ("sinclude  local/*.mk # more", "local/a.mk"),
            ("-include $(wildcard local/*.mk)", "local/a.mk"),
            ("-include \\\n  none.mk local.mk", "local.mk"),
            ("include more.mk", "local.mk"),
        ],
    )
    def test_is_in_git_too(
        self, quick: QuickQueen, repo: Path, tree: Path, line: str, path: str
    ) -> None:
        done = self.landed(quick, repo, tree, line, path)
        assert (done.code, f"what git does not have: {path}" in done.err) == (5, True), done

    @pytest.mark.parametrize(
        ("line", "path"),
        [("-include .env", ".env"), ("include config.mk", "config.mk"), ("-include *.d", "a.d")],
    )
    def test_is_only_named_if_projects_cannot_do_without(
        self, quick: QuickQueen, repo: Path, tree: Path, line: str, path: str
    ) -> None:
        done = self.landed(quick, repo, tree, line, path)
        assert (done.code, f"may read what git does not have: {path}" in done.out) == (0, True)

    def landed(self, quick: QuickQueen, repo: Path, tree: Path, line: str, path: str) -> Ran:
        commit_file(repo, SETTINGS, "[land]\ncheck = 'make -s test'\n")
        commit_file(repo, "more.mk", "-include local.mk\n")
        commit_file(repo, "Makefile", f"test:\n\t@true\n\n{line}\n")
        git(tree, "merge", "-q", "main")
        ignored(tree, path)
        commit_file(tree, "code.txt", "x\n")
        return landing(quick, tree)
