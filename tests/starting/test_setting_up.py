"""The worktrees of a team are set up before its agents begin, and again when lock files change."""

from __future__ import annotations

import time

import pytest
from hives import commit_file, git
from live_processes import is_alive
from teams import WORKS, Team

pytestmark = pytest.mark.slow


def test_an_agent_begins_in_a_worktree_that_works(team: Team) -> None:
    commit_file(team.repo, ".gitignore", ".env\nready\nslots\n")
    (team.repo / ".env").write_text("1")
    assert team.queen("config", "set", "worktree.copy", ".env").code == 0
    team.set("worktree.setup", "cp .env ready")
    team.set("land.check", "test -f ready && test -f .env")
    team.issues(2)
    agent = f'test -f ready || exit 3\necho "$QUEEN_SLOT $QUEEN_PORT $QUEEN_ROOT" > slots\n{WORKS}'
    ran = team.start("ui", "api", "--agent", team.agent(agent))
    assert ran.code == 0, ran
    assert {*team.done()} == {"x-1", "x-2"}
    seen = {
        path.read_text().strip()
        for name in ("ui", "api")
        if (path := team.repo.parent / f"repo-{name}" / "slots").exists()
    }
    assert seen <= {f"1 3020 {team.repo}", f"2 3040 {team.repo}"}
    assert seen


def test_a_failure_ends_the_team_before_it_begins(team: Team) -> None:
    team.set("worktree.setup", "echo no network; exit 7")
    team.issues(1)
    ran = team.start("ui", "api", "--agent", team.agent(WORKS))
    assert ran.code == 8, ran
    assert "the set-up of" in ran.err
    assert "status 7, after “no network”" in ran.err
    assert "queen worktree setup" in ran.err
    assert not team.hive().assignments.find()
    assert not (team.repo.parent / "repo-api").exists()


def test_a_command_that_nobody_has_seen_begins_no_team(team: Team, asking: object) -> None:
    settings = team.repo / ".beads" / "queen.toml"
    git(team.repo, "config", "--unset", "queenbee.trust")
    team.set("land.check", "true")
    settings.write_text(settings.read_text() + '\n[worktree]\nsetup = "touch ../ran"\n')
    team.issues(1)
    ran = team.start("ui", "--agent", team.agent(WORKS))
    assert ran.code == 5, ran
    assert "worktree.setup" in ran.err
    assert not (team.repo.parent / "repo-ui").exists()
    assert not (team.repo.parent / "ran").exists()


def test_it_is_done_again_when_an_issue_begins_with_another_lock_file(team: Team) -> None:
    commit_file(team.repo, ".gitignore", "installed\n")
    commit_file(team.repo, "uv.lock", "one\n")
    team.set("worktree.setup", "cp uv.lock installed")
    team.set("land.check", "cmp uv.lock installed")
    team.issues(2)
    # The first issue changes the lock file, and does not install it.
    first = 'if [ "$QUEEN_ISSUE" = x-1 ]; then echo two > uv.lock; fi\n'
    agent = f"cmp uv.lock installed || exit 3\n{first}{WORKS}"
    ran = team.start("ui", "--agent", team.agent(agent))
    assert ran.code == 0, ran
    assert team.content("x-2") == "x-2 by ui\n"
    log = (team.repo / ".git" / "queenbee-private" / "team" / "ui.log").read_text()
    assert "setting up" in log


def test_if_that_fails_the_agent_ends_and_says_why(team: Team) -> None:
    commit_file(team.repo, "uv.lock", "one\n")
    team.set("worktree.setup", "grep one uv.lock")
    team.issues(2)
    first = 'if [ "$QUEEN_ISSUE" = x-1 ]; then echo two > uv.lock; fi\n'
    ran = team.start("ui", "--agent", team.agent(first + WORKS))
    assert ran.code == 1, ran
    assert team.content("x-1") == ""  # Its landing cannot be set up either.
    [*_, why] = [each for each in ran.out.splitlines() if "its worktree cannot be set up" in each]
    assert "“grep one uv.lock”: status 1" in why


@pytest.mark.thorough
def test_a_killed_start_goes_on_after_the_set_up(team: Team) -> None:
    commit_file(team.repo, ".gitignore", "begun\ngo\n")
    team.set("worktree.setup", "echo $$ >> begun; test -e ../go || sleep 600")
    team.issues(1)
    begun = team.begun("ui", "--agent", team.agent(WORKS))
    tree = team.repo.parent / "repo-ui"
    with begun:
        while not (tree / "begun").exists() or not (tree / "begun").read_text():
            assert begun.poll() is None
            time.sleep(0.01)
        begun.kill()
    first = int((tree / "begun").read_text())
    assert is_alive(first)
    (team.repo.parent / "go").touch()
    ran = team.start("ui", "--agent", team.agent(WORKS))
    assert ran.code == 0, ran
    assert not is_alive(first)
