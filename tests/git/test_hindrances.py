"""What keeps work from landing is known before anybody works: doctor, worktree add, start."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, commit_file, git

from queenbee.git.beforehand import hindrances

Fault = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindrances, "_LOOK_AGAIN_S", 0.0)


@pytest.fixture
def ready(quick: QuickQueen, repo: Path) -> Path:
    """A repository in which work can land, with a worktree, and commits to merge and rebase."""
    commit_file(repo, "f", "f\n")
    git(repo, "branch", "other")
    assert quick("init").code == 0
    assert quick("config", "set", "land.check", "true").code == 0
    quick("config", "unset", "land.target")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    git(repo, "worktree", "add", "-q", str(repo.parent / "ui"), "-b", "ui")
    return repo


def conflicting(*command: str) -> Fault:
    """Returns what leaves a git command unfinished in the main worktree."""

    def left(repo: Path) -> None:
        git(repo, "switch", "-q", "other")
        commit_file(repo, "f", "theirs\n")
        git(repo, "switch", "-q", "main")
        commit_file(repo, "f", "mine\n")
        subprocess.run(["git", *command], cwd=repo, capture_output=True)

    return left


def bisecting(repo: Path) -> None:
    git(repo, "bisect", "start")
    git(repo, "checkout", "-q", "--detach")


def with_target(fault: Fault, name: str = "main") -> Fault:
    def made(repo: Path) -> None:
        QuickQueen(repo)("config", "set", "land.target", name)
        git(repo, "commit", "-qam", "a target")
        fault(repo)

    return made


def elsewhere(repo: Path) -> None:
    git(repo, "switch", "-q", "-c", "mine")
    git(repo, "worktree", "add", "-q", str(repo.parent / "other"), "main")


def lock(name: str) -> Fault:
    return lambda repo: (repo / ".git" / name).touch()


def detached(repo: Path) -> None:
    git(repo, "switch", "-q", "--detach")


def hidden(repo: Path) -> None:
    git(repo, "update-index", "--skip-worktree", "f")
    (repo / "f").write_text("mine\n")


def nothing(repo: Path) -> None:
    """All is well."""


STOPS: dict[str, tuple[Fault, str, str]] = {
    "no branch": (detached, "no_target", "queen config set land.target main"),
    "a target that is gone": (with_target(nothing, "gone"), "no_target", "git branch gone"),
    "a target in a worktree": (with_target(elsewhere), "no_target", "switch -c NAME"),
    "a merge": (conflicting("merge", "other"), "main_unfinished", "merge --abort"),
    "a pick": (conflicting("cherry-pick", "other"), "main_unfinished", "cherry-pick --abort"),
    "a rebase": (conflicting("rebase", "other"), "main_unfinished", "rebase --abort"),
    "a rebase of it": (
        with_target(conflicting("rebase", "other")), "main_unfinished", "rebase --abort",
    ),
    "a revert": (conflicting("revert", "--no-edit", "HEAD~2"), "main_unfinished", "status"),
    "a bisect": (bisecting, "main_unfinished", "bisect reset"),
    "a lock of the branch": (lock("refs/heads/main.lock"), "locked", "rm "),
    "a lock of the index": (lock("index.lock"), "locked", "rm "),
    "a lock of HEAD": (lock("HEAD.lock"), "locked", "rm "),
}  # fmt: skip


def found(quick: QuickQueen) -> list[dict[str, Any]]:
    wanted = ("no_target", "main_unfinished", "locked", "main_changed")
    return [each for each in quick("doctor", "--json").json if each["code"] in wanted]


@pytest.mark.parametrize(("fault", "code", "hint"), STOPS.values(), ids=STOPS)
def test_is_named_by_all_that_begin(
    quick: QuickQueen, ready: Path, fault: Fault, code: str, hint: str
) -> None:
    assert (quick("doctor").code, found(quick)) == (0, [])
    fault(ready)
    (finding,) = found(quick)
    assert (finding["code"], finding["severity"]) == (code, "error")
    assert hint in finding["hint"]
    assert quick("doctor").code == 1
    started = quick("start", "--json", "--agent", "false", as_="lead")
    assert (started.code, started.error["code"]) == (3, "cannot_land"), started
    assert started.error["hindrances"] == [
        {"code": code, "message": finding["message"], "hint": finding["hint"]}
    ]
    assert not (ready.parent / "repo-amber").exists()
    made = quick("worktree", "add", "api")
    if made.code == 0:  # Git itself needs some of these locks.
        assert f"{finding['message']}; try: {finding['hint']}" in made.err


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "fault",
    [nothing, with_target(detached), with_target(bisecting), lambda repo: (repo / "new").touch()],
    ids=["nothing", "no branch", "a bisect", "a new file"],
)
def test_what_is_in_nobodys_way_is_not(quick: QuickQueen, ready: Path, fault: Fault) -> None:
    fault(ready)
    assert found(quick) == []


@pytest.mark.parametrize("fault", [lambda repo: (repo / "f").write_text("mine\n"), hidden])
def test_what_some_landings_would_overwrite_is_a_note(
    quick: QuickQueen, ready: Path, fault: Fault
) -> None:
    fault(ready)
    (finding,) = found(quick)
    assert (finding["code"], finding["severity"]) == ("main_changed", "note")
    assert ": f; a landing that changes it, too, waits" in finding["message"]
    assert quick("doctor").code == 0
    way = finding["hint"].partition(";")[0]
    if " stash " in way:  # As it is typed, it leaves the records alone.
        assert "after the landing: git -C" in finding["hint"]
        text = (ready / ".beads" / "queen.toml").read_text() + "# more\n"
        (ready / ".beads" / "queen.toml").write_text(text)
        subprocess.run(way, shell=True, check=True, capture_output=True)
        assert (ready / ".beads" / "queen.toml").read_text() == text
        assert found(quick) == []


def test_without_a_worktree_it_is_a_note(quick: QuickQueen, repo: Path) -> None:
    """As in a job of a code host, which checks out a commit."""
    assert quick("init").code == 0
    quick("config", "unset", "land.target")
    detached(repo)
    (finding,) = found(quick)
    assert (finding["code"], finding["severity"]) == ("no_target", "note")
    assert quick("doctor").code == 0


def test_a_repository_that_git_cannot_read_is_none_where_work_lands(
    quick: QuickQueen, ready: Path
) -> None:
    git(ready, "config", "core.repositoryFormatVersion", "1")
    git(ready, "config", "extensions.fromTheFuture", "true")
    (said,) = [each for each in quick("doctor", "--json").json if each["code"] == "git_fails"]
    assert "extension" in said["message"]
    assert (said["severity"], quick("doctor").code) == ("error", 1)
    (ready / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")  # As with a reftable.
    assert {each["code"] for each in quick("doctor", "--json").json} == {"git_fails"}


def test_a_repository_without_a_commit_is_noted_and_that_it_has_no_check(
    quick: QuickQueen, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "new")
    new = tmp_path / "new"
    assert quick("init", cwd=new).code == 0
    noted = quick("doctor", "--json", cwd=new)
    assert [(each["code"], each["severity"]) for each in noted.json] == [
        *(("no_commit", "note"), ("no_check", "note"))
    ]
    assert noted.code == 0
    subprocess.run(noted.json[0]["hint"], shell=True, cwd=new, check=True, capture_output=True)
    assert quick("doctor", "--json", cwd=new).json == []


def test_a_lock_of_a_git_at_work_is_waited_for(
    quick: QuickQueen, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hindrances, "_LOOK_AGAIN_S", 60.0)
    path = ready / ".git" / "index.lock"
    path.touch()
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda s: (path.unlink(missing_ok=True), sleep(0)))
    assert found(quick) == []


def test_a_look_takes_few_git_processes(
    quick: QuickQueen, ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queenbee.store.layout import discover

    log, folder = ready.parent / "log", ready.parent / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\necho x >> {log}\nPATH=${{PATH#*:}} exec git "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    assert hindrances.hindrances(discover(str(ready), {})) == []
    assert log.read_text().count("x") == 3


def doctor_says(quick: QuickQueen, code: str) -> dict[str, Any] | None:
    said = [each for each in quick("doctor", "--json").json if each["code"] == code]
    return said[0] if said else None


def test_a_renamed_target_is_named_by_its_new_name_first(quick: QuickQueen, ready: Path) -> None:
    quick("config", "set", "land.target", "main")
    git(ready, "branch", "-m", "main", "trunk")
    finding = doctor_says(quick, "no_target")
    assert finding is not None
    assert finding["hint"] == (
        "if it is called trunk now: queen config set land.target trunk; or git branch main"
    )


def test_a_push_that_changes_nothing_is_named(
    quick: QuickQueen, ready: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    git(ready, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(ready, "push", "-q", "-u", "origin", "main")
    assert "changes nothing" not in quick("config", "set", "land.push", "true").err
    assert doctor_says(quick, "push_unused") is None
    said = "land.push changes nothing: each landing is on origin/main at once"
    assert said in quick("config", "set", "land.target", "origin/main").err
    finding = doctor_says(quick, "push_unused")
    assert finding is not None
    assert (finding["message"], finding["hint"]) == (said, "queen config unset land.push")


def test_a_checkout_of_a_branch_on_which_nothing_lands_now_is_named(
    quick: QuickQueen, ready: Path
) -> None:
    commit_file(ready.parent / "ui", "g", "g\n")
    assert quick("land", "--as", "ui", cwd=ready.parent / "ui").code == 0
    assert doctor_says(quick, "old_checkout") is None
    quick("config", "set", "land.target", "other")
    finding = doctor_says(quick, "old_checkout")
    assert finding is not None
    path = f"{ready}-landing-main"
    assert (finding["file"], finding["hint"]) == (path, f"queen worktree remove {path}")
    assert quick("worktree", "remove", path).code == 0
    assert not Path(path).exists()
