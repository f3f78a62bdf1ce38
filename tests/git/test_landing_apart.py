"""A landing is merged and checked in a checkout of its own: nobody's worktree has a say in it."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from acting import install_guard
from bead_files import put_bead, ralph_bead
from hives import Queen, QuickQueen, Ran, commit_file, git

from queenbee.git.proposing.standing import BEHIND

SETTINGS = ".beads/queen.toml"


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


def checkout(repo: Path) -> Path:
    return repo.with_name(f"{repo.name}-landing-main")


def checked_by(repo: Path, command: str) -> None:
    commit_file(repo, SETTINGS, f"[land]\ncheck = '{command}'\n")


def ignored(tree: Path, path: str, text: str = "") -> None:
    """Makes a file of which `git status` says nothing."""
    exclude = Path(git(tree, "rev-parse", "--git-path", "info/exclude").strip())
    with (tree / exclude).open("a") as file:
        file.write(f"/{path.split('/')[0]}\n")
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", *more, as_="ui", cwd=tree)


def is_on_main(repo: Path, path: str) -> bool:
    return path in git(repo, "ls-tree", "-r", "--name-only", "main").split()


class TestWhatOnlyOneWorktreeHas:
    """Whatever a program reads unasked, a check does not find it: it is not there."""

    @pytest.mark.some(1)
    @pytest.mark.parametrize(
        ("path", "text"),
        [
            ("tox.ini", "[pytest]\naddopts = --co\n"),
            ("setup.cfg", "[tool:pytest]\naddopts = --co\n"),
        ],
    )
    @pytest.mark.parametrize("in_main", [False, True])
    def test_has_no_settings_for_pytest(
        self, quick: QuickQueen, repo: Path, tree: Path, path: str, text: str, in_main: bool
    ) -> None:
        checked_by(repo, "python3 -m pytest -q -p no:cacheprovider")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "test_it.py", "def test_it():\n    assert False\n")
        ignored(repo if in_main else tree, path, text)
        assert landing(quick, tree).code in (1, 3)  # Main itself may fail.
        assert not is_on_main(repo, "test_it.py")

    @pytest.mark.some(2)
    @pytest.mark.parametrize(
        ("check", "path"),
        [
            ("make -s test", "GNUmakefile"),
            ("python3 -m chk", "chk/__init__.py"),
            ("python3 -m chk", "chk/__main__.py"),
            ("python3 chk.py", "json.py"),
        ],
    )
    def test_is_not_read_in_place_of_what_git_has(
        self, quick: QuickQueen, repo: Path, tree: Path, check: str, path: str
    ) -> None:
        commit_file(repo, "Makefile", "test:\n\tfalse\n")
        commit_file(repo, "chk.py", "import json, sys\nsys.exit(hasattr(json, 'dumps'))\n")
        checked_by(repo, check)
        git(tree, "merge", "-q", "main")
        commit_file(tree, "a", "x\n")
        ignored(tree, path, "test:\n\ttrue\n" if path == "GNUmakefile" else "")
        assert landing(quick, tree).code in (1, 3)  # Main itself may fail.

    def test_judges_no_branch_of_another(
        self, quick: QuickQueen, queen: Queen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        commit_file(repo, "Makefile", "test:\n\ttest ! -e bad\n")
        checked_by(repo, "sleep 1; make -s test")
        git(tree, "merge", "-q", "main")
        other = tmp_path / "api"
        git(repo, "worktree", "add", "-q", str(other), "-b", "api")
        ignored(tree, "GNUmakefile", "test:\n\ttrue\n")
        commit_file(tree, "a", "x\n")
        commit_file(other, "bad", "x\n")
        first = queen.start("land", as_="ui", cwd=tree)
        assert quick("land", as_="api", cwd=other).code == 1
        first.communicate(timeout=60)
        assert (first.returncode, is_on_main(repo, "bad")) == (0, False)

    @pytest.mark.some(1)
    @pytest.mark.parametrize(
        "text",
        [
            'test:\n\t@echo "running $@" && test ! -e bad\n',
            "NAME = test\n$(NAME):\n\ttest ! -e bad\n",
            "all: test\n%:\n\ttest ! -e bad\n",
        ],
    )
    def test_is_not_taken_for_made(
        self, quick: QuickQueen, repo: Path, tree: Path, text: str
    ) -> None:
        commit_file(repo, "Makefile", text)
        checked_by(repo, "make test")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "bad", "x\n")
        ignored(tree, "test")
        assert landing(quick, tree).code == 1
        (tree / "test").unlink()
        git(tree, "rm", "-q", "bad")
        commit_file(tree, "good", "x\n")
        assert landing(quick, tree).code == 0

    def test_is_no_compiled_code_behind_a_link(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(repo, "pkg/code.py", "good = True\n")
        (repo / "pkg" / "__pycache__").symlink_to("../made")
        git(repo, "add", "--force", "pkg/__pycache__")
        git(repo, "commit", "-qm", "a link")
        good = 'python3 -c "import sys; from pkg.code import good; sys.exit(not good)"'
        checked_by(repo, good)
        git(tree, "merge", "-q", "main")
        ignored(tree, "made/x")
        cache = importlib.util.cache_from_source(str(tree / "pkg" / "code.py"))
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(tree / "pkg" / "code.py"), cfile=cache, invalidation_mode=mode)
        assert list((tree / "made").glob("code.*"))
        (tree / "pkg" / "code.py").write_text("good = None\n")
        git(tree, "commit", "-qam", "bad")
        assert landing(quick, tree).code == 1

    def test_is_named_where_the_check_fails_without_it(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        checked_by(repo, "test -e .env")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "a", "x\n")
        ignored(tree, ".env")
        done = landing(quick, tree)
        assert (done.code, str(checkout(repo)) in done.err, ".env" in done.err) == (3, True, True)


class TestWhatACheckLeaves:
    def test_stays_if_git_ignores_it(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        commit_file(tree, ".gitignore", "made\n")
        assert landing(quick, tree, "--check", "touch made").code == 0
        commit_file(tree, "a", "x\n")
        assert landing(quick, tree, "--check", "test -e made").code == 0

    def test_is_gone_if_git_does_not(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        commit_file(tree, "a", "x\n")
        assert landing(quick, tree, "--check", "mkdir made; touch made/it").code == 0
        commit_file(tree, "b", "x\n")
        assert landing(quick, tree, "--check", "test ! -e made").code == 0

    @pytest.mark.parametrize(
        "hides",
        [
            "git update-index --assume-unchanged a; echo y > a",
            "git update-index --skip-worktree a; echo y > a",
            "touch -r a ../was; echo y > a; touch -r ../was a; git config core.trustctime false",
        ],
    )
    def test_is_put_right_whatever_git_remembers(
        self, quick: QuickQueen, repo: Path, tree: Path, hides: str
    ) -> None:
        commit_file(tree, "a", "x\n")
        assert landing(quick, tree, "--check", f"{hides}; false").code == 1
        commit_file(tree, "b", "x\n")
        assert landing(quick, tree, "--check", "grep -qx x a").code == 0

    @pytest.mark.parametrize("by", ["the target", "the branch", "the branch alone"])
    def test_that_python_compiled_is_not_taken_for_another_commits(
        self, quick: QuickQueen, repo: Path, tree: Path, by: str
    ) -> None:
        """Python compares times in seconds, and sizes."""
        commit_file(repo, ".gitignore", "__pycache__\n")
        # Both files get one time, as they do where a check takes no second.
        good = 'touch -d 2020-01-01 code.py; python3 -c "import code_of, sys; sys.exit(code_of.n)"'
        commit_file(repo, "code_of.py", "n = 0\n")
        good = good.replace("code.py", "code_of.py")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "a", "x\n")
        assert landing(quick, tree, "--check", good).code == 0
        assert (checkout(repo) / "__pycache__").is_dir()
        git(tree, "merge", "-q", "main")
        commit_file(repo if by == "the target" else tree, "code_of.py", "n = 1\n")
        commit_file(tree if by == "the branch alone" else repo, "b", "x\n")
        commit_file(tree, "c", "x\n")
        assert landing(quick, tree, "--check", good).code == 1


class TestTheCheckout:
    def test_is_in_no_list(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        commit_file(tree, "a", "x\n")
        assert landing(quick, tree, "--unchecked").code == 0
        assert checkout(repo).is_dir()
        for said in (("worktree", "list"), ("doctor",), ("worktree", "collisions"), ("status",)):
            assert "landing-main" not in quick(*said, as_="ui", cwd=tree).out

    @pytest.mark.some(2)
    @pytest.mark.parametrize(
        "breaks",
        [
            lambda path: shutil.rmtree(path),
            lambda path: (path / ".git").unlink(),
            lambda path: (path / ".git").write_text("gitdir: /nowhere\n"),
            lambda path: git(path, "worktree", "unlock", str(path)),
            lambda path: (path / "a").write_text("other\n"),
            lambda path: git(path, "switch", "-q", "-c", "theirs"),
        ],
        ids=["gone", "no git", "elsewhere", "of somebody", "changed", "on a branch"],
    )
    def test_is_put_right_or_made_anew(
        self, quick: QuickQueen, repo: Path, tree: Path, breaks: Callable[[Path], object]
    ) -> None:
        commit_file(tree, "a", "x\n")
        assert landing(quick, tree, "--check", "grep -qx x a").code == 0
        breaks(checkout(repo))
        commit_file(tree, "b", "x\n")
        assert landing(quick, tree, "--check", "grep -qx x a").code == 0
        assert is_on_main(repo, "b")

    def test_takes_nothing_from_somebody_who_was_there_first(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        checkout(repo).mkdir()
        (checkout(repo) / "own").write_text("x\n")
        commit_file(tree, "a", "x\n")
        assert landing(quick, tree, "--check", "true").code == 0
        assert (checkout(repo) / "own").read_text() == "x\n"

    def test_knows_who_lands_in_its_hooks(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        install_guard(repo)
        commit_file(tree, "a", "x\n")
        commit_file(repo, "b", "x\n")
        quick("reserve", "a", as_="ui", cwd=tree)
        assert landing(quick, tree, "--check", "true").code == 0


class TestTheSetUp:
    """The checkout is set up as any worktree."""

    def test_runs_there_once_and_the_check_finds_what_it_made(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        (repo / ".gitignore").write_text("made\n.env\n")
        (repo / ".env").write_text("x\n")
        setup = f"echo $QUEEN_SLOT >> {tmp_path}/ran; touch made; echo junk >> README.md"
        text = f"[worktree]\nsetup = '{setup}'\ncopy = ['.env']\n"
        (repo / SETTINGS).write_text(text)
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", "set up")
        git(tree, "merge", "-q", "main")
        commit_file(tree, "a", "x\n")
        check = 'test -e made && test -e .env && test "$QUEEN_WORKTREE" = "$PWD"'
        done = landing(quick, tree, "--check", check)
        assert done.code == 0, done
        commit_file(tree, "b", "x\n")
        assert landing(quick, tree, "--check", check).code == 0
        assert len((tmp_path / "ran").read_text().splitlines()) == 1
        assert "junk" not in git(repo, "show", "main:README.md")

    def test_that_fails_lands_nothing_and_says_so_once(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        setup = f"echo x >> {tmp_path}/ran; echo no network; exit 3"
        (repo / SETTINGS).write_text(f"[worktree]\nsetup = '{setup}'\n")
        commit_file(tree, "a", "x\n")
        done = landing(quick, tree, "--check", "true")
        assert (done.code, "no network" in done.out + done.err) == (8, True), done
        assert (tmp_path / "ran").read_text() == "x\n"
        assert not is_on_main(repo, "a")

    def test_that_fails_is_tried_again_on_what_was_merged(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(tree, "a", "x\n")
        commit_file(repo, SETTINGS, "[worktree]\nsetup = 'test -e mended'\n")
        commit_file(repo, "mended", "x\n")
        assert landing(quick, tree, "--check", "true").code == 0
        assert is_on_main(repo, "a")


def test_a_check_of_an_issue_that_leaves_other_files_has_not_passed(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    put_bead(repo, ralph_bead("gt-1", "echo x >> README.md"))
    assert quick("claim", "gt-1", as_="ui", cwd=tree).code == 0
    commit_file(tree, "a", "x\n")
    done = landing(quick, tree)
    assert ("README.md" in done.err, is_on_main(repo, "a")) == (True, False), done


def test_the_worktree_is_not_touched_while_it_is_checked(
    queen: Queen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    commit_file(tree, "a", "x\n")
    commit_file(repo, "b", "x\n")
    before = {each.name: each.stat().st_ino for each in tree.iterdir()}
    check = f"touch {tmp_path}/on; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    started = queen.start("land", "--check", check, cwd=tree, as_="ui")
    until_s = time.monotonic() + 60
    while not (tmp_path / "on").exists() and time.monotonic() < until_s:
        time.sleep(0.02)
    now = {each.name: each.stat().st_ino for each in tree.iterdir()}
    assert (now, git(tree, "branch", "--show-current").strip()) == (before, "ui")
    (tmp_path / "go").touch()
    started.communicate(timeout=60)
    assert started.returncode == 0
    assert (tree / "b").exists()


def test_what_is_committed_while_the_check_runs_stays_for_the_next_landing(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    commit_file(tree, "a", "x\n")
    commit_file(repo, "b", "x\n")
    more = f"cd {tree} && touch later && git add later && git commit -qm later"
    assert landing(quick, tree, "--check", f"({more})").code == 0
    assert (is_on_main(repo, "a"), is_on_main(repo, "later")) == (True, False)
    assert git(tree, "log", "-1", "--format=%s").strip() == "later"
    assert not (tree / "b").exists()
    assert landing(quick, tree, "--check", "true").code == 0
    assert is_on_main(repo, "later")


@pytest.mark.parametrize("strategy", ["merge", "rebase", "squash"])
@pytest.mark.parametrize("why", ["busy", "went on", "went on there"])
def test_what_a_worktree_did_not_follow_lands_once(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str, why: str
) -> None:
    """Its next landing first puts what it has since upon what has landed."""
    quick("config", "set", "land.strategy", strategy)
    commit_file(repo, "CHANGELOG.md", "# Changes\n\nend\n")
    git(tree, "merge", "-q", "main")
    commit_file(tree, "CHANGELOG.md", "# Changes\n\n- one\nend\n")
    commit_file(repo, "CHANGELOG.md", "# Changes\n\n- other\nend\n")
    lock = Path(git(tree, "rev-parse", "--absolute-git-dir").strip(), "index.lock")
    own = "cd {} && {}echo x > later && git add . && git commit -qm later"
    there = "sed -i 's/^- one/- one\\n- two/' CHANGELOG.md && " if why == "went on there" else ""
    check = f"touch {lock}" if why == "busy" else own.format(tree, there)
    done = landing(quick, tree, "--check", f"({check})")
    assert (done.code, "- one" in git(repo, "show", "main:CHANGELOG.md")) == (0, True), done
    if why == "busy":
        assert "stays as it was" in done.out
        lock.unlink()
        commit_file(tree, "later", "x\n")
        if strategy != "merge":
            lock.touch()
            assert landing(quick, tree, "--check", "true").code == 5
            lock.unlink()
    text = git(repo, "show", "main:CHANGELOG.md")
    commit_file(repo, "CHANGELOG.md", text.replace("- one\n", "- top\n- one\n"))
    assert landing(quick, tree, "--check", "true").code == 0
    lines = git(repo, "show", "main:CHANGELOG.md").splitlines()
    entries = {"- one", "- other", "- top", *(["- two"] if there else [])}
    assert {*lines} == {"", "# Changes", *entries, "end"}
    assert len(lines) == len({*lines})
    assert is_on_main(repo, "later")
    if strategy != "merge":
        assert git(repo, "log", "--format=%s", "main", "--", "later").count("\n") == 1
    assert git(tree, "rev-parse", "HEAD") == git(repo, "rev-parse", "main")


def test_what_a_worktree_did_not_follow_lands_once_also_where_git_fails_meanwhile(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick("config", "set", "land.strategy", "squash")
    commit_file(tree, "first", "x\n")
    head = git(tree, "rev-parse", "HEAD").strip()
    assert landing(quick, tree, "--check", "true").code == 0
    landed = git(tree, "rev-parse", "HEAD").strip()
    git(tree, "reset", "-q", "--hard", head)  # As if it had not followed.
    note = Path(git(tree, "rev-parse", "--absolute-git-dir").strip(), BEHIND)
    note.write_text(json.dumps({"commit": landed, "head": head}))
    commit_file(tree, "later", "x\n")
    failing = tmp_path / "bin" / "git"
    failing.parent.mkdir()
    failing.write_text(
        '#!/bin/sh\ncase "$*" in *--is-ancestor*) echo "fatal: no space" >&2; exit 128 ;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    failing.chmod(0o755)
    with monkeypatch.context() as broken:
        broken.setenv("PATH", f"{failing.parent}{os.pathsep}{os.environ['PATH']}")
        assert landing(quick, tree, "--check", "true").code == 5
    assert landing(quick, tree, "--check", "true").code == 0
    said = git(repo, "log", "--format=%s%n%b", "main").splitlines()
    assert [sum(name in each for each in said) for name in ("add first", "add later")] == [1, 1]


@pytest.mark.parametrize("strategy", ["rebase", "squash"])
def test_a_conflict_of_what_follows_with_what_came_in_is_left_to_the_next_landing(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str
) -> None:
    quick("config", "set", "land.strategy", strategy)
    text = "".join(f"{number}\n" for number in range(9))
    commit_file(repo, "a", text)
    git(tree, "merge", "-q", "main")
    commit_file(tree, "a", text.replace("1", "one"))
    commit_file(repo, "a", text.replace("7", "seven"))
    later = f"cd {tree} && sed -i s/7/VII/ a && git commit -qam later"
    done = landing(quick, tree, "--check", f"({later})")
    assert (done.code, "stays as it was" in done.out) == (0, True), done
    assert git(tree, "status", "--porcelain") == ""
    conflict = landing(quick, tree, "--check", "true")
    assert (conflict.code, "<<<<<<< " in (tree / "a").read_text()) == (5, True), conflict
    assert "queen land --continue" in conflict.err
    assert landing(quick, tree, "--abort").code == 0
    assert git(tree, "log", "-1", "--format=%s").strip() == "later"
    assert landing(quick, tree, "--check", "true").code == 5
    resolved = text.replace("1", "one").replace("7", "VII")
    (tree / "a").write_text(resolved)
    git(tree, "add", "a")
    assert landing(quick, tree, "--check", "true", "--continue").code == 0
    assert git(repo, "show", "main:a") == resolved
