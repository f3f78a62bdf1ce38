"""Running git: none of the programs that a repository's config names is run."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hives import commit_file, git

from queenbee import Hive
from queenbee.errors import ExternalFailure
from queenbee.git import changes, hooks, left_out, run
from queenbee.git.collisions.comparing import compare
from queenbee.git.objects import Objects, TooLarge
from queenbee.services.care import doctor


def ask_everything(repo: Path) -> None:
    """Makes each call of git that QueenBee makes."""
    (repo / ".beads" / "x").touch()
    for path in (repo / "two", *(repo / ".beads").glob("*.jsonl")):
        os.utime(path)  # Git must read the content to say whether it changed.
    changes.staged(str(repo))
    changes.in_range(str(repo), "HEAD~2..HEAD")
    head = git(repo, "rev-parse", "HEAD").strip()
    update = f"refs/heads/x {head} refs/heads/x {'0' * 40}\n".encode()
    changes.pushed(str(repo), "origin", changes.updates_of({}, io.BytesIO(update)))
    missing = f"refs/heads/x {head} refs/heads/x {'1' * 40}\n".encode()
    changes.pushed(str(repo), "origin", changes.updates_of({}, io.BytesIO(missing)))
    hooks.states(hooks.HookFolder(str(repo)))
    with Hive.open(repo, droid="ui", env={}) as hive:
        left_out.left_out(hive)
        doctor.examine(hive)
        compare(hive.layout)


def test_no_program_of_the_config_is_run(repo: Path, marks: Path) -> None:
    ask_everything(repo)
    assert sorted(os.listdir(marks)) == []


def test_git_itself_would_run_some_of_them(repo: Path, marks: Path) -> None:
    ask_everything(repo)
    subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True)
    found = {name.partition("-")[2] for name in os.listdir(marks)}
    assert {"core.fsmonitor", "filter.evil.clean"} <= found


class TestARepositoryOfAnotherUser:
    @pytest.fixture(autouse=True)
    def _of_another_user(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    def test_is_refused_in_one_plain_sentence(self, repo: Path) -> None:
        for ask in (changes.staged, hooks.HookFolder):
            with pytest.raises(ExternalFailure, match="belongs to another user") as refused:
                ask(str(repo))  # type: ignore[operator]
            assert "\n" not in refused.value.message
            assert refused.value.hint == (
                f"if you trust it: git config --global --add safe.directory {repo}"
            )


class TestObjects:
    def test_are_read_by_one_git_that_ends_with_the_block(self, repo: Path) -> None:
        commit_file(repo, "a.txt", "one\n")
        with Objects(str(repo)) as objects:
            head = objects.read("HEAD")
            assert head is not None
            assert head[:2] == (git(repo, "rev-parse", "HEAD").strip(), "commit")
            assert objects.read("HEAD:a.txt") == (
                git(repo, "rev-parse", "HEAD:a.txt").strip(),
                "blob",
                b"one\n",
            )
            process = objects._git
            commit_file(repo, "b.txt", "two\n")
            assert (objects.read("HEAD:b.txt") or ("", "", b""))[2] == b"two\n"
            assert objects._git is process
        assert process is not None
        assert process.returncode is not None

    def test_that_are_not_there_are_none(self, repo: Path) -> None:
        commit_file(repo, "a.txt", "")
        with Objects(str(repo)) as objects:
            assert objects.read("refs/heads/none^{commit}") is None
            assert objects.read("0" * 40) is None
            assert objects.read("HEAD:a.txt") is not None

    @pytest.mark.parametrize("end", ["\nHEAD", "\0", "\r"])
    def test_are_not_asked_for_by_a_name_that_git_reads_as_another(
        self, repo: Path, end: str
    ) -> None:
        commit_file(repo, "a.txt", "one\n")
        with Objects(str(repo)) as objects:
            assert objects.read(f"HEAD:a.txt{end}") is None
            assert (objects.read("HEAD") or ("", ""))[1] == "commit"

    def test_that_are_too_large_are_not_read(self, repo: Path) -> None:
        commit_file(repo, "a.txt", "x" * 100_000)
        with Objects(str(repo)) as objects:
            with pytest.raises(TooLarge) as error:
                objects.read("HEAD:a.txt", 99_999)
            assert error.value.size_bytes == 100_000
            assert (objects.read("HEAD:a.txt", 100_000) or ("", "", b""))[2] == b"x" * 100_000

    def test_a_git_that_ends_is_an_error(self, tmp_path: Path) -> None:
        with Objects(str(tmp_path)) as objects, pytest.raises(ExternalFailure):
            objects.read("HEAD")


@pytest.mark.linux
@pytest.mark.slow
class TestAGitThatOnlyReads:
    """It is waited for as long as it, or what it started, does something."""

    @pytest.mark.timeout(60)
    def test_is_ended_if_it_sleeps(self, repo: Path) -> None:
        with pytest.raises(run.TooSlow, match="it waits for a file"):
            run.git("-c", "alias.x=!sleep 300", "x", cwd=str(repo))

    def test_may_wait_for_another(self, repo: Path) -> None:
        works = "!end=$(($(date +%s) + 5)); while test $(date +%s) -lt $end; do :; done; echo x"
        assert run.git("-c", f"alias.x={works}", "x", cwd=str(repo)) == b"x\n"


class TestNetwork:
    """A git that talks to a remote is waited for as long as it says something."""

    @staticmethod
    def _git(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
        made = folder / "bin" / "git"
        made.parent.mkdir()
        made.write_text(f"#!/bin/sh\n{script}\n")
        made.chmod(0o755)
        monkeypatch.setenv("PATH", f"{made.parent}{os.pathsep}{os.environ['PATH']}")

    def test_goes_on_while_it_says_something(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        says = (
            "for each in 1 2 3 4 5 6 7 8; do printf 'at %s\\r' $each >&2; sleep 0.2; done; echo ok"
        )
        self._git(tmp_path, monkeypatch, says)
        assert run.network("push", cwd=str(tmp_path), timeout_s=1) == (0, "ok\n", "")

    def test_ends_what_says_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._git(tmp_path, monkeypatch, "echo one >&2; exec sleep 60")
        status, _, said = run.network("push", cwd=str(tmp_path), timeout_s=0.2)
        assert (status, said) == (run.TIMED_OUT, "no answer within 0.2 s")

    def test_ends_what_talks_for_ever(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._git(tmp_path, monkeypatch, "while :; do echo more >&2; sleep 0.05; done")
        status, _, said = run.network("push", cwd=str(tmp_path), timeout_s=60, most_s=0.3)
        assert (status, said) == (run.TIMED_OUT, "no answer within 0.3 s")
        monkeypatch.setattr(run, "_LONGEST", 2)
        assert run.network("push", cwd=str(tmp_path), timeout_s=0.2)[0] == run.TIMED_OUT

    def test_passes_on_a_question_that_is_longer_than_a_pipe(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._git(tmp_path, monkeypatch, "sleep 0.1; exec cat")
        asked = b"0123456789abcdef\n" * 20_000
        status, out, _ = run.network("fetch", cwd=str(tmp_path), timeout_s=5, stdin=asked)
        assert (status, out.encode()) == (0, asked)

    @pytest.mark.parametrize(
        ("said", "wait_s"),
        [
            (b"", 0),
            (b"Counting objects: 3, done.\n", 0),
            (b"Writing objects: 100% (3/3), 225 bytes | 225.00 KiB/s, done.\n", 0),
            (b"Writing objects:  45% (9/20), 1.00 MiB | 80.00 KiB/s\r", 64),
            (b"1.00 MiB | 80.00 KiB/s\rWriting objects:  50% (1/2), 32.00 KiB | 8 KiB/s\r", 2),
            (b"Writing objects:  45% (9/20), 7.00 GiB | 80.00 KiB/s\r", 256),
            (b"remote: huge, many MiB | 1\r", 0),
        ],
    )
    def test_what_is_in_buffers_may_still_be_on_the_way(self, said: bytes, wait_s: float) -> None:
        assert run._on_the_way_s(said) == wait_s

    def test_its_progress_is_no_message(self) -> None:
        said = b"Writing objects:  50%\rWriting objects: 100% (3/3), done.\nerror: no\nfatal: so\n"
        assert run.without_progress(said) == "error: no\nfatal: so\n"


def test_a_look_into_a_submodule_runs_no_hook_of_its_settings(repo: Path, tmp_path: Path) -> None:
    inner = repo / "sub"
    git(repo, "init", "-q", "sub")
    commit_file(inner, "a.txt", "a\n")
    git(repo, "add", "sub")
    hook = tmp_path / "hooks" / "post-index-change"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    git(inner, "config", "core.hooksPath", str(hook.parent))
    os.utime(inner / "a.txt", (1, 1))
    run.as_the_user("add", "-A", cwd=str(repo))
    assert not (tmp_path / "ran").exists()


def test_a_git_that_fails_once_is_asked_again_for_ancestors(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, once = tmp_path / "bin" / "git", tmp_path / "once"
    failing.parent.mkdir()
    failing.write_text(
        f"#!/bin/sh\n[ -e {once} ] || {{ touch {once}; exit 128; }}\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    failing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{failing.parent}{os.pathsep}{os.environ['PATH']}")
    assert run.is_ancestor("HEAD", "HEAD", cwd=str(repo))
    assert once.exists()
    assert not run.is_ancestor("0" * 40, "HEAD", cwd=str(repo))
