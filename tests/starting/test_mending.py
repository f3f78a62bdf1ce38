"""Agents that leave their worktree as nobody could work in it: `queen start` mends it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hives import git
from teams import LIMIT_S, WORKS, Team

from queenbee.store.droids import roster

pytestmark = pytest.mark.slow

COMMITS = """if [ ! -e "$0.once" ]; then
touch "$0.once"; echo half > half; git add -A; git commit -qm half; fi
"""
GIT_DIR = '"$(git rev-parse --git-dir)"'
SPOILS = {
    "a detached HEAD": f"git checkout -q --detach; {COMMITS}",
    "another branch": f"git checkout -q -b other; {COMMITS}",
    "an open rebase": f"{COMMITS}GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -i HEAD~1\n",
    "its branch removed": f"git checkout -q --detach; git branch -qD ui; {COMMITS}",
    "no .git": f"{COMMITS}rm -rf .git\n",
    "another .git": f"{COMMITS}rm .git; git init -q .\n",
    ".git of the main worktree": f'{COMMITS}echo "gitdir: ../repo/.git" > .git\n',
    "no git directory": f"{COMMITS}rm -rf {GIT_DIR}\n",
    "no worktree": f"{COMMITS}cd ..; rm -rf repo-ui\n",
    "no worktree, no branch": f"git checkout -q --detach; {COMMITS}cd ..; rm -rf repo-ui\n",
    "an empty lock": f"{COMMITS}touch {GIT_DIR}/index.lock\n",
    "a whole lock": f"{COMMITS}cp {GIT_DIR}/index {GIT_DIR}/index.lock; sleep 4\n",
}


@pytest.mark.parametrize("spoils", SPOILS.values(), ids=SPOILS)
def test_an_agents_bad_day_is_no_other_issues(team: Team, spoils: str) -> None:
    team.issues(2)
    of_one = f'if [ "$QUEEN_ISSUE" = x-1 ]; then\n{spoils}exit 3; fi\n'
    ran = team.start("ui", "--agent", team.agent(of_one + WORKS))
    assert ran.code == 1, ran
    assert team.done() == {"x-2": ["ui"]}, ran
    assert team.content("x-2") == "x-2 by ui\n"
    assert len(team.hive().assignments.find(issue_id="x-1", status="released")) == 1
    assert "x-1 is still" not in ran.out
    # All that was committed is on a branch, and the worktree is in order.
    kept = git(team.repo, "log", "--branches", "--not", "main", "--format=%s")
    assert "half" in kept.split()
    tree = team.repo.parent / "repo-ui"
    assert git(tree, "branch", "--show-current").strip() == "ui"
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize("how", ["gone", "no .git", "pruned", "another branch"])
def test_the_next_run_mends_what_a_killed_one_left(team: Team, how: str) -> None:
    team.issues(1)
    once = team.bin / "once"
    first = f"[ -e {once} ] || {{ echo half > half; git add -A; git commit -qm half; touch {once}; "
    agent = team.agent(f"{first} sleep 1000; }}\n{WORKS}")
    running = team.begun("ui", "--agent", agent)
    team.wait(once.exists)
    running.kill()
    running.communicate(timeout=LIMIT_S)
    (entry,) = roster.everybody(team.hive().layout)
    os.kill(int(entry.process.split(" ")[1]), signal.SIGUSR1)
    team.wait(lambda: not team.running())
    spoil(team.repo, team.repo.parent / "repo-ui", how)
    ran = team.start("ui", "--agent", agent)
    assert ran.code == 0, ran
    assert team.done() == {"x-1": ["ui"]}
    assert (team.repo / "half").read_text() == "half\n"


def spoil(repo: Path, tree: Path, how: str) -> None:
    if how in ("gone", "pruned"):
        shutil.rmtree(tree)
    if how == "pruned":
        git(repo, "worktree", "prune")
    elif how == "no .git":
        (tree / ".git").unlink()
    elif how == "another branch":
        git(tree, "checkout", "-qb", "other")


def test_a_git_at_work_keeps_its_lock(team: Team) -> None:
    team.issues(1)
    assert team.queen("worktree", "add", "ui").code == 0
    tree = team.repo.parent / "repo-ui"
    (tree / "mine").write_text("mine\n")
    git(tree, "add", "--all")
    gate = team.bin / "gate"
    editor = team.program("editor", f'until [ -e {gate} ]; do sleep 0.1; done; echo it > "$1"\n')
    env = {**os.environ, "GIT_EDITOR": editor}
    with subprocess.Popen(["git", "commit", "-a"], cwd=tree, env=env) as commit:
        lock = Path(git(tree, "rev-parse", "--git-dir").strip()) / "index.lock"
        team.wait(lock.exists)
        os.utime(lock, (1, 1))
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert lock.exists()
        gate.touch()
        assert commit.wait(LIMIT_S) == 0
    assert ran.code != 0
    assert "git is at work in" in ran.out + ran.err
