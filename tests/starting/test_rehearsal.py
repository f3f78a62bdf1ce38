"""Before the first agent begins, `queen start` tries whether work can land."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from hives import Ran, commit_file, git
from live_processes import is_alive
from teams import WORKS, Team

pytestmark = pytest.mark.slow


def starts(team: Team, *more: str) -> Ran:
    agent = team.agent('echo >> "$0.runs"\n' + WORKS)
    return team.start("ui", "--json", *more, "--agent", agent, tries=True)


def runs(team: Team) -> int:
    path = team.bin / "agent.runs"
    return len(path.read_text()) if path.exists() else 0


def refused(team: Team, step: str) -> str:
    """Returns why a team did not begin, of which nothing is left."""
    ran = starts(team)
    assert (ran.code, ran.error["code"], ran.error["step"]) == (3, "target_fails", step), ran
    assert (ran.error["target"], runs(team)) == ("main", 0)
    assert ran.error["commit"] == git(team.repo, "rev-parse", "main").strip()
    assert not (team.repo.parent / "repo-ui").exists()
    assert {*branches(team)} <= {"main", "unfinished/left-by-check"}
    assert git(team.repo, "status", "--porcelain", "--", ":!.beads") == ""
    assert "--no-trial" in ran.error["hint"]
    return str(ran.error["message"])


def branches(team: Team) -> list[str]:
    return git(team.repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def hook(team: Team, name: str, text: str) -> Path:
    path = team.repo / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def counting(team: Team, check: str = "true") -> Path:
    log = team.bin / "checks"
    log.touch()
    team.set("land.check", f"echo >> {log}; {check}")
    return log


def test_a_check_that_fails_on_the_main_branch_begins_no_team(team: Team) -> None:
    counting(team, "echo no main; exit 3")
    team.issues(1)
    assert "the check fails on main itself" in (said := refused(team, "check"))
    assert said.endswith("after “no main”")
    assert "queen config set land.check COMMAND" in starts(team).error["hint"]
    ran = starts(team, "--no-trial", "--max-failures", "1")
    assert runs(team) >= 1, ran


def test_what_has_passed_is_not_tried_again(team: Team) -> None:
    log = counting(team)
    team.issues(1)
    assert starts(team).code == 0
    assert len(log.read_text()) == 2  # Main, and what landed.
    assert "trying whether" in starts(team).err
    assert team.queen("msg", "send", "ui", "hello", as_="lead").code == 0
    git(team.repo, "add", ".beads")
    git(team.repo, "commit", "-qm", "records")
    assert "trying whether" not in starts(team).err
    assert len(log.read_text()) == 2  # What landed has passed; records alone came since.
    commit_file(team.repo, "more")
    starts(team)
    assert len(log.read_text()) == 3


@pytest.mark.thorough
def test_a_check_that_has_failed_is_tried_again(team: Team) -> None:
    broken = team.bin / "broken"
    broken.touch()
    counting(team, f"test ! -e {broken}")
    team.issues(1)
    refused(team, "check")
    broken.unlink()
    assert starts(team).code == 0


def test_a_check_that_changes_files_begins_no_team(team: Team) -> None:
    team.set("land.check", "echo x >> README.md")
    team.issues(1)
    assert "the check changes what git has of main: README.md" in refused(team, "check")


def test_a_set_up_that_fails_begins_no_team(team: Team) -> None:
    log = team.bin / "setups"
    team.set("worktree.setup", f"echo >> {log}; echo no network; exit 7")
    team.issues(1)
    assert "status 7, after “no network”" in refused(team, "setup")
    assert len(log.read_text()) == 1


TICKET = 'git symbolic-ref --short HEAD | grep -q "AB-[0-9]" || { echo a ticket, please; exit 1; }'


def test_a_hook_that_wants_another_branch_begins_no_team(team: Team) -> None:
    team.issues(1)
    hook(team, "prepare-commit-msg", TICKET)
    said = refused(team, "hooks")
    assert "an empty commit on a branch ui is refused: a ticket, please" in said


def test_a_git_that_does_not_know_who_commits_is_told(team: Team) -> None:
    team.issues(1)
    team.queen.env |= {"GIT_AUTHOR_NAME": "", "GIT_COMMITTER_NAME": ""}
    ran = team.start("ui", "--agent", team.agent(WORKS), tries=True)
    assert (ran.code, "fatal: empty ident name" in ran.err) == (3, True), ran
    assert ran.err.endswith("  try: git config user.name NAME && git config user.email EMAIL\n")


@pytest.mark.thorough
def test_a_pattern_for_branches_satisfies_it(team: Team) -> None:
    team.set("team.branch", "feat/AB-12-{droid}")
    team.issues(1)
    hook(team, "prepare-commit-msg", TICKET)
    ran = starts(team)
    assert (ran.code, team.content("x-1")) == (0, "x-1 by ui\n"), ran
    assert branches(team) == ["feat/AB-12-ui", "main"]
    assert (team.repo.parent / "repo-ui").exists()
    team.queen("issue", "new", "more", "--id", "x-2", as_="lead")
    ran = starts(team)  # In the worktree that it has.
    assert (ran.code, team.content("x-2")) == (0, "x-2 by ui\n"), ran


def test_a_worktree_keeps_its_branch_when_the_pattern_changes(team: Team) -> None:
    team.issues(1)
    assert team.queen("worktree", "add", "ui").code == 0
    team.set("team.branch", "agents/{droid}")
    git(team.repo, "commit", "-qam", "a pattern")
    assert team.queen("worktree", "add", "ui").code == 0
    assert starts(team).code == 0
    assert branches(team) == ["main", "ui"]
    assert team.queen("worktree", "add", "api").code == 0
    assert branches(team) == ["agents/api", "main", "ui"]


@pytest.mark.thorough
def test_a_hook_for_messages_that_lets_merges_pass_is_no_reason(team: Team) -> None:
    team.set("land.message", "chore: {title}")
    team.issues(1)
    hook(team, "commit-msg", 'grep -Eq "^(Merge branch|(feat|chore): )" "$1"')
    assert starts(team).code == 0


def test_a_hook_that_refuses_to_move_main_begins_no_team(team: Team) -> None:
    team.issues(1)
    refuses = "grep -q refs/heads/main && [ $1 = prepared ] && { echo never; exit 1; }; exit 0"
    hook(team, "reference-transaction", refuses)
    assert "never" in refused(team, "move")


def test_it_works_in_a_bare_repository(team: Team, tmp_path: Path) -> None:
    team.issues(1)
    git(tmp_path, "clone", "-q", "--bare", str(team.repo), str(tmp_path / "bare.git"))
    git(tmp_path / "bare.git", "config", "queenbee.trust", "all")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "own"), "-b", "own")
    agent = team.agent(WORKS)
    ran = team.queen("start", "api", "--agent", agent, as_="lead", cwd=tmp_path / "own")
    assert ran.code == 0, ran
    assert git(tmp_path / "bare.git", "show", "main:x-1.txt") == "x-1 by api\n"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pre-commit", "echo x >> made; git add made"),
        ("post-commit", '[ "$AGAIN" ] || AGAIN=1 git commit -q --amend --allow-empty -m other'),
        ("post-commit", '[ "$AGAIN" ] || AGAIN=1 git commit -q --allow-empty -m more'),
    ],
)
def test_whatever_hooks_commit_nothing_is_left_of_it(team: Team, name: str, text: str) -> None:
    team.issues(1)
    hook(team, name, f'case "$PWD" in *-landing-main) ;; *) exit 0 ;; esac\n{text}')
    ran = starts(team)
    assert (ran.code, runs(team)) == (0, 1), ran
    assert branches(team) == ["main", "ui"]


@pytest.mark.parametrize(("name", "more"), [("pre-commit", []), ("post-commit", ["--no-trial"])])
def test_what_a_killed_one_left_is_removed(team: Team, name: str, more: list[str]) -> None:
    team.issues(1)
    killing = hook(team, name, "kill -9 $(ps -o ppid= -p $PPID) $PPID")
    assert starts(team).code == -signal.SIGKILL
    assert "ui" in branches(team)
    killing.unlink()
    assert starts(team, *more).code == 0
    assert team.content("x-1") == "x-1 by ui\n"
    assert {*branches(team)} <= {"main", "ui"}


def test_a_branch_of_somebody_is_not_touched(team: Team) -> None:
    team.issues(1)
    git(team.repo, "branch", "ui")
    commit = git(team.repo, "rev-parse", "ui")
    ran = starts(team)
    assert (ran.code, ran.error["code"]) == (5, "conflict"), ran
    assert git(team.repo, "rev-parse", "ui") == commit
    assert branches(team) == ["main", "ui"]


def test_ctrl_c_ends_it_with_all_that_it_started(team: Team) -> None:
    pid = team.bin / "pid"
    team.set("land.check", f"sleep 600 & echo $! > {pid}.new; mv {pid}.new {pid}; wait")
    team.issues(1)
    running = team.begun("ui", "--agent", team.agent(WORKS), tries=True)
    team.wait(pid.exists)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    until_s = time.monotonic() + 10
    while is_alive(int(pid.read_text())) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not is_alive(int(pid.read_text()))
    assert not (team.repo.parent / "repo-ui").exists()


def test_it_takes_no_longer_than_a_check_may(team: Team) -> None:
    team.set("land.check_timeout", "1s")
    team.set("land.check", "sleep 600")
    team.issues(1)
    assert "timed out after 1s" in refused(team, "check")


@pytest.mark.parametrize(
    "pattern",
    ["agents", "{issue}/{droid}", "-{droid}", "a b/{droid}", "{droid}.lock", "unfinished/{droid}",
     "refs/{droid}", "a..{droid}", "/{droid}", "{droid}/", "x/.{droid}", "{droid}@{0}", "{droid"],
)  # fmt: skip
def test_a_pattern_that_makes_no_branch_is_refused(team: Team, pattern: str) -> None:
    assert team.queen("config", "set", "--", "team.branch", pattern).code == 2


def test_a_name_that_makes_no_branch_is_refused(team: Team) -> None:
    team.issues(1)
    team.set("team.branch", "agents/{droid}")
    ran = team.queen("worktree", "add", "a..b")
    assert (ran.code, "cannot be the name of a branch" in ran.err) == (2, True), ran
    assert not os.path.exists(f"{team.repo}-a..b")


def test_a_team_lands_on_a_remote_and_finds_first_whether_it_may(team: Team) -> None:
    hub = team.repo.parent / "hub"
    team.set("land.target", "origin/main")
    counting(team)
    team.issues(2)
    git(team.repo, "clone", "-q", "--bare", str(team.repo), str(hub))
    git(team.repo, "remote", "add", "origin", str(hub))
    git(team.repo, "fetch", "-q", "origin")
    pre_push = hook(team, "pre-push", "echo not now; exit 1")
    ran = starts(team)
    assert (ran.code, ran.error["code"], ran.error["step"]) == (3, "target_fails", "move"), ran
    assert ("not now" in ran.error["message"], runs(team)) == (True, 0)
    pre_push.unlink()
    ran = starts(team)
    assert ran.code == 0, ran
    landed = git(hub, "log", "--format=%H", "main").split()
    assert len(landed) >= 3
    assert git(team.repo, "rev-parse", "main").strip() == landed[0], ran.err
