"""A worktree that works: its files are copied, and its command has run, once for its lock files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from acting import install_guard
from hives import COMMAND, Queen, QuickQueen, at_a_terminal, commit_file, git, write_lines
from live_processes import is_alive
from made_worktrees import opened

from queenbee.git.worktrees.preparing import is_prepared, prepare

pytestmark = pytest.mark.slow


@pytest.fixture
def other(repo: Path) -> Path:
    """Where the worktree of the droid `ui` is made."""
    return repo.parent / "repo-ui"


@pytest.fixture
def sets(quick: QuickQueen) -> Callable[..., None]:
    """Sets a setting of `[worktree]`."""

    def set_(name: str, *values: str) -> None:
        assert quick("config", "set", f"worktree.{name}", *values).code == 0

    return set_


def waits(until: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 30
    while not until():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


class TestAWorktreeThatIsAdded:
    def test_has_its_files_and_has_run_its_command(
        self, repo: Path, other: Path, quick: QuickQueen, sets: Callable[..., None]
    ) -> None:
        commit_file(repo, ".gitignore", ".env*\nlocal/\n")
        commit_file(repo, ".worktreeinclude", "# those of other tools\n/local\n")
        (repo / ".env").write_text("1")
        (repo / "local").mkdir()
        (repo / "local" / "key").write_text("2")
        sets("copy", ".env*")
        sets("setup", "cat .env local/key > local/seen")
        done = quick("worktree", "add", "ui")
        assert done.code == 0, done
        assert (other / "local" / "seen").read_text() == "12"
        assert "copied .env, local/key" in done.err
        assert "setting up" in done.err
        assert git(other, "status", "--porcelain") == ""

    def test_is_not_set_up_again_until_a_lock_file_or_the_command_changes(
        self, repo: Path, other: Path, sets: Callable[..., None]
    ) -> None:
        commit_file(repo, ".gitignore", "runs\n")
        commit_file(repo, "package-lock.json", "{}")
        git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
        sets("setup", "echo x >> runs")

        def runs() -> int:
            layout = opened(other, None).layout
            prepare(layout, str(other), env=os.environ, tell=print)
            assert is_prepared(layout, str(other))
            return len((other / "runs").read_text().splitlines())

        assert [runs(), runs()] == [1, 1]
        (other / "package-lock.json").write_text("{ }")
        assert not is_prepared(opened(other, None).layout, str(other))
        assert [runs(), runs()] == [2, 2]
        (other / "uv.lock").write_text("x")
        assert [runs(), runs()] == [3, 3]
        sets("setup", "echo y >> runs")
        assert [runs(), runs()] == [4, 4]
        sets("copy", ".env")
        assert [runs(), runs()] == [4, 4]
        sets("stamp", "other.lock")
        assert [runs(), runs()] == [5, 5]
        (other / "uv.lock").write_text("y")
        assert [runs(), runs()] == [5, 5]
        (other / "other.lock").write_text("y")
        assert [runs(), runs()] == [6, 6]

    def test_is_told_of_with_the_next_issue_where_another_lock_file_came_in(
        self, repo: Path, beads: Path, other: Path, sets: Callable[..., None], quick: QuickQueen
    ) -> None:
        rows = ({"id": f"q-{n}", "title": "do", "status": "open"} for n in (1, 2))
        write_lines(beads / "issues.jsonl", *rows)
        sets("setup", "true")
        assert quick("worktree", "add", "ui").code == 0
        assert not quick("next", "--json", as_="ui", cwd=other).json["needs_setup"]
        assert quick("complete", "q-1", as_="ui", cwd=other).code == 0
        commit_file(repo, "uv.lock", "x")
        said = quick("next", as_="ui", cwd=other).out
        assert "the set-up has not run for the lock files that are here" in said
        assert "queen worktree setup" in said
        assert quick("next", "--json", as_="ui", cwd=other).json["needs_setup"]
        assert quick("worktree", "setup", cwd=other).code == 0
        assert not quick("next", "--json", as_="ui", cwd=other).json["needs_setup"]

    def test_of_a_tree_without_settings_nothing_is_left_to_do(self, repo: Path) -> None:
        layout = opened(repo).layout
        assert is_prepared(layout, str(repo))
        prepare(layout, str(repo), env=os.environ, tell=print)
        assert not [*(repo / ".git").glob("queenbee-setup*")]

    def test_gets_no_tokens_and_no_environment_of_another_tree(
        self, other: Path, sets: Callable[..., None], quick: QuickQueen
    ) -> None:
        sets("setup", "env > seen")
        given = {
            "GH_TOKEN": "a", "SSH_AUTH_SOCK": "b", "NODE_OPTIONS": "c", "VIRTUAL_ENV": "d",
            "GIT_INDEX_FILE": "e", "QUEEN_DROID": "f", "NPM_TOKEN": "kept",
        }  # fmt: skip
        given.pop("GIT_INDEX_FILE")  # git itself would use it here
        assert quick("worktree", "add", "ui", env=given).code == 0
        seen = dict(line.split("=", 1) for line in (other / "seen").read_text().splitlines())
        assert not {*given} - {"NPM_TOKEN"} & {*seen}
        assert seen["NPM_TOKEN"] == "kept"


class TestAFailure:
    def test_leaves_the_worktree_and_says_what_to_do(
        self, repo: Path, other: Path, queen: Queen, sets: Callable[..., None]
    ) -> None:
        sets("setup", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done; exit 3")
        done = queen("worktree", "add", "ui")
        assert done.code == 8
        assert f"{other} was made, but is not ready: the set-up of {other} failed" in done.err
        assert "status 3" in done.err
        assert "  line 3\n" in done.err
        assert "line 2\n" not in done.err
        assert f"cd {other} && queen worktree setup" in done.err
        log = repo / ".git" / "queenbee" / "setup" / "repo-ui.log"
        assert str(log) in done.err
        assert log.read_text().startswith("line 1\n")
        refused = queen("worktree", "setup", "--json", cwd=other)
        assert (refused.code, refused.error["code"]) == (8, "setup_failed")
        assert refused.error["output"].endswith("line 12")
        sets("setup", "true")
        assert queen("worktree", "setup", cwd=other).code == 0

    def test_of_time_ends_all_that_it_started(
        self, repo: Path, other: Path, queen: Queen, sets: Callable[..., None]
    ) -> None:
        sets("setup", "sleep 600 & echo $! > pid; wait")
        sets("setup_timeout", "1s")
        done = queen("worktree", "add", "ui")
        assert done.code == 8
        assert "timed out after 1s" in done.err
        assert not is_alive(int((other / "pid").read_text()))

    def test_a_log_is_bounded(self, repo: Path, queen: Queen, sets: Callable[..., None]) -> None:
        sets("setup", "yes x | head -c 5000000")
        assert queen("worktree", "add", "ui").code == 0
        assert (repo / ".git/queenbee/setup/repo-ui.log").stat().st_size < 1_100_000


class TestAKill:
    def test_in_a_copy_leaves_whole_files_and_nothing_to_commit(
        self, repo: Path, other: Path, queen: Queen, sets: Callable[..., None]
    ) -> None:
        commit_file(repo, ".gitignore", "data/\n")
        (repo / "data").mkdir()
        for number in range(600):
            (repo / "data" / f"{number}").write_bytes(b"x" * 100_000)
        git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
        sets("copy", "data")
        for least in (1, 150, 300):
            started = subprocess.Popen([*COMMAND, "worktree", "setup"], cwd=other)
            waits(lambda least=least: len(list((other).glob("data/*"))) >= least)  # type: ignore[misc]
            started.kill()
            started.wait()
            sizes = {path.stat().st_size for path in (other / "data").iterdir()}
            assert sizes == {100_000}
            assert git(other, "status", "--porcelain") == ""
        assert queen("worktree", "setup", cwd=other).code == 0
        assert len([*(other / "data").iterdir()]) == 600
        assert not (other / ".queenbee-copying").exists()

    def test_in_the_command_has_the_next_call_end_it_and_begin_anew(
        self, other: Path, repo: Path, queen: Queen, sets: Callable[..., None]
    ) -> None:
        git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
        sets("setup", "echo $$ >> pids; test -e go || sleep 600")
        started = subprocess.Popen([*COMMAND, "worktree", "setup"], cwd=other)
        waits(lambda: (other / "pids").exists() and (other / "pids").read_text())
        started.kill()
        started.wait()
        first = int((other / "pids").read_text().split()[0])
        assert is_alive(first)
        assert not is_prepared(opened(other, None).layout, str(other))
        (other / "go").touch()
        assert queen("worktree", "setup", cwd=other).code == 0
        assert not is_alive(first)
        assert is_prepared(opened(other, None).layout, str(other))

    def test_with_a_new_command_leaves_no_old_stamp(
        self, other: Path, repo: Path, queen: Queen, sets: Callable[..., None]
    ) -> None:
        git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
        sets("setup", "true")
        assert queen("worktree", "setup", cwd=other).code == 0
        sets("setup", "touch begun; sleep 600")
        started = subprocess.Popen([*COMMAND, "worktree", "setup"], cwd=other)
        waits((other / "begun").exists)
        started.kill()
        started.wait()
        sets("setup", "true")
        assert not is_prepared(opened(other, None).layout, str(other))
        assert queen("worktree", "setup", cwd=other).code == 0

    def test_ctrl_c_ends_the_command(
        self, other: Path, repo: Path, sets: Callable[..., None]
    ) -> None:
        git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
        sets("setup", "echo $$ > pid; sleep 600")
        started = subprocess.Popen([*COMMAND, "worktree", "setup"], cwd=other)
        waits(lambda: (other / "pid").exists() and (other / "pid").read_text())
        started.send_signal(signal.SIGINT)
        assert started.wait() == 130
        assert not is_alive(int((other / "pid").read_text()))

    def test_two_at_once_run_it_once(
        self, other: Path, repo: Path, sets: Callable[..., None]
    ) -> None:
        git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
        sets("setup", "echo x >> runs; sleep 0.5")
        code = (
            "import os; from queenbee import Hive; "
            "from queenbee.git.worktrees.preparing import prepare; "
            f"prepare(Hive.open({str(other)!r}, env={{}}).layout, {str(other)!r}, "
            "env=os.environ, tell=print)"
        )
        runs = [subprocess.Popen([COMMAND[0], "-c", code]) for _ in range(3)]
        assert [each.wait() for each in runs] == [0, 0, 0]
        assert (other / "runs").read_text() == "x\n"


class TestACommandThatCameWithAClone:
    @pytest.fixture
    def clone(self, repo: Path, asking: Path) -> Queen:
        (repo / ".beads" / "queen.toml").write_text('[worktree]\nsetup = "touch ../ran"\n')
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", "settings")
        return Queen(repo)

    def ran(self, clone: Queen) -> bool:
        return (clone.cwd.parent / "ran").exists()

    def test_is_refused_and_nothing_is_made(self, clone: Queen, other: Path) -> None:
        done = clone("worktree", "add", "ui", "--json")
        assert (done.code, done.error["code"]) == (5, "untrusted")
        assert done.error["commands"] == [
            {"kind": "setup", "from": "worktree.setup", "text": "touch ../ran", "more": []}
        ]
        assert not other.exists()
        git(clone.cwd, "worktree", "add", "-q", str(other), "-b", "ui")
        assert clone("worktree", "setup", cwd=other).code == 5
        assert not self.ran(clone)

    @pytest.mark.thorough
    def test_runs_after_a_person_has_seen_it_and_asks_again_if_it_changes(
        self, clone: Queen
    ) -> None:
        status, shown = at_a_terminal(clone, "y\n", "worktree", "add", "ui")
        assert status == 0, shown
        assert "setup of worktree.setup, in .beads/queen.toml" in shown
        assert "    touch ../ran\n" in shown
        assert self.ran(clone)
        assert clone("worktree", "add", "api").code == 0
        settings = clone.cwd / ".beads" / "queen.toml"
        settings.write_text(settings.read_text().replace("ran", "run"))
        assert clone("worktree", "add", "web").code == 5

    def test_is_not_seen_by_an_agent(self, clone: Queen) -> None:
        agent = {"CLAUDECODE": "1"}
        for text in ("touch ../ran", "touch ../ran "):
            clone("config", "set", "worktree.setup", text, env=agent)
            assert clone("config", "trust", "--yes", env=agent).code == 2
            assert clone("worktree", "add", "ui", env=agent).code == 5
        assert not self.ran(clone)

    def test_is_among_what_a_person_is_shown(self, clone: Queen) -> None:
        done = clone("config", "trust", "--yes", "--json")
        assert [each["kind"] for each in done.json["trusted"]] == ["setup"]
        assert clone("worktree", "add", "ui").code == 0
        assert self.ran(clone)

    def test_gives_way_to_the_one_of_this_machine(self, clone: Queen, other: Path) -> None:
        git(clone.cwd, "config", "queenbee.setup", "touch 'a;b' # mine")
        assert clone("worktree", "add", "ui").code == 0
        assert (other / "a;b").exists()
        assert not self.ran(clone)

    def test_no_variable_sets_that_one(self, clone: Queen) -> None:
        git(clone.cwd, "config", "queenbee.setup", "true")
        set_ = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "queenbee.setup",
            "GIT_CONFIG_VALUE_0": "touch ../ran",
        }
        assert clone("worktree", "add", "ui", env=set_).code == 0
        assert not self.ran(clone)


class TestHooksThatGitIgnores:
    """husky 9 has git run hooks from `.husky/_`, which is in no commit."""

    @pytest.fixture
    def husky(self, repo: Path) -> Path:
        folder = repo / ".husky" / "_"
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*")
        for hook in ("pre-commit", "prepare-commit-msg", "pre-applypatch", "pre-push"):
            (folder / hook).write_text('#!/bin/sh\nsh "${0%/_/*}/${0##*/}" "$@"\n')
            (folder / hook).chmod(0o755)
        git(repo, "config", "core.hooksPath", ".husky/_")
        install_guard(repo)
        git(repo, "add", "--all", "--", ":!.beads")
        git(repo, "commit", "-qm", "hooks")
        return repo

    def test_run_in_a_worktree_that_was_added(self, husky: Path, other: Path, queen: Queen) -> None:
        done = queen("worktree", "add", "ui")
        assert done.code == 0
        assert "no git hook" not in done.err
        assert queen("guard", "status", cwd=other).code == 0
        assert git(other, "status", "--porcelain") == ""
        opened(husky, "api").reservations.reserve(["held.txt"])
        (other / "held.txt").write_text("x")
        git(other, "add", "held.txt")
        tried = subprocess.run(["git", "commit", "-qm", "x"], cwd=other, capture_output=True)
        assert tried.returncode == 1
        assert b"queenbee guard: commit refused" in tried.stderr + tried.stdout

    def test_are_said_not_to_run_where_they_are_missing(
        self, husky: Path, other: Path, queen: Queen
    ) -> None:
        git(husky, "worktree", "add", "-q", str(other), "-b", "ui")
        status = queen("guard", "status", cwd=other)
        assert status.code == 1
        assert "not installed here: git finds nothing that it can run" in status.out
        assert "queen worktree setup" in status.out
        assert not is_prepared(opened(other, None).layout, str(other))
        assert queen("worktree", "setup", cwd=other).code == 0
        assert queen("guard", "status", cwd=other).code == 0
        (other / ".husky" / "_" / "pre-push").chmod(0o644)
        states = queen("guard", "status", "--json", cwd=other).json["hooks"]
        assert [each["state"] for each in states].count("not run") == 1


@pytest.mark.parametrize("path", ["/usr/hooks", "~/hooks", "../hooks", ".", ""])
def test_hooks_outside_of_the_tree_are_nothing_to_copy(repo: Path, other: Path, path: str) -> None:
    git(repo, "config", "core.hooksPath", path)
    git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
    assert is_prepared(opened(other, None).layout, str(other))


def test_a_dry_run_shows_all_and_does_nothing(
    repo: Path, other: Path, queen: Queen, sets: Callable[..., None]
) -> None:
    commit_file(repo, ".gitignore", ".env*\n")
    (repo / ".env").write_text("1")
    (repo / ".env.link").symlink_to("/etc/passwd")
    git(repo, "worktree", "add", "-q", str(other), "-b", "ui")
    sets("copy", ".env*")
    sets("setup", "touch ran")
    place = repo / ".git" / "worktrees" / "repo-ui"
    before = {each.name for each in place.iterdir()}
    done = queen("worktree", "setup", "--dry-run", cwd=other)
    assert "would copy .env\n" in done.out
    assert "would not copy: .env.link is a link" in done.out
    assert "would run: touch ran" in done.out
    shown = queen("worktree", "setup", "--dry-run", "--json", cwd=other).json
    assert (shown["runs"], shown["copies"], shown["variables"]) == (True, [".env"], {})
    assert sorted(each.name for each in other.iterdir()) == [".git", ".gitignore", "README.md"]
    assert {each.name for each in place.iterdir()} == before
    assert json.dumps(shown)


@pytest.mark.parametrize("gone", ["setting", "original", "worktree"])
def test_what_was_copied_does_not_land_whatever_becomes_of_the_original(
    repo: Path, other: Path, quick: QuickQueen, sets: Callable[..., None], gone: str
) -> None:
    commit_file(repo, ".gitignore", "local.toml\n")
    (repo / "local.toml").write_text("password\n")
    sets("copy", "local.toml")
    assert quick("worktree", "add", "ui").code == 0
    if gone == "setting":
        quick("config", "unset", "worktree.copy")
    else:
        (repo / "local.toml").unlink()
    (other / ".gitignore").write_text("")
    if gone == "worktree":
        git(other, "add", "--all")
        git(other, "commit", "-qm", "with it")
        assert quick("worktree", "remove", "ui", "--force").code == 0
        assert quick("worktree", "add", "api").code == 0
        other = repo.with_name("repo-api")
        git(other, "merge", "-q", "ui")
    done = quick("land", "-m", "x", "--unchecked", as_=other.name[len("repo-") :], cwd=other)
    assert done.code == 5 and "does not track it: local.toml" in done.err, done


@pytest.mark.parametrize("by", ["queen", "git"])
def test_what_was_copied_does_not_land_in_a_file_that_git_has(
    repo: Path, other: Path, quick: QuickQueen, sets: Callable[..., None], by: str
) -> None:
    commit_file(repo, ".gitignore", "local.toml\n")
    commit_file(repo, "t.txt", "to be replaced\n")
    (repo / "local.toml").write_text("the password of this machine\n")
    sets("copy", "local.toml")
    assert quick("worktree", "add", "ui").code == 0
    (other / "t.txt").write_text("the password of this machine\n")
    if by == "git":
        git(other, "commit", "-qam", "with it")
    before = git(other, "rev-parse", "HEAD")
    done = quick("land", "-m", "x", "--unchecked", as_="ui", cwd=other)
    assert done.code == 5 and "does not track it: t.txt" in done.err, done
    assert git(other, "rev-parse", "HEAD") == before


@pytest.mark.parametrize("by", ["queen", "git"])
def test_what_was_copied_does_not_land_under_another_name(
    repo: Path, other: Path, quick: QuickQueen, sets: Callable[..., None], by: str
) -> None:
    commit_file(repo, ".gitignore", "local.toml\n")
    (repo / "local.toml").write_text("the password of this machine\n")
    sets("copy", "local.toml")
    assert quick("worktree", "add", "ui").code == 0
    (other / "local.toml").rename(other / "conf.toml")
    (other / "new.toml").write_text("the password of that machine\n")  # As long.
    if by == "git":
        git(other, "add", "--all")
        git(other, "commit", "-qm", "with it")
    done = quick("land", "-m", "x", "--unchecked", as_="ui", cwd=other)
    assert done.code == 5 and "does not track it: conf.toml" in done.err, done
    git(other, "reset", "-q", "main")
    (other / "conf.toml").unlink()
    assert quick("land", "-m", "x", "--unchecked", as_="ui", cwd=other).code == 0
