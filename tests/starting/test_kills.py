"""`queen start`, killed at any moment: nothing is lost or done twice, and no process stays."""

from __future__ import annotations

import random
import signal
import time

import pytest
from hives import git
from live_processes import is_alive
from teams import LIMIT_S, Team

pytestmark = pytest.mark.slow

AGENT = """\
echo $$ >> "$0.pids"
sleep 0.2; echo "$QUEEN_DROID" >> "$FILE"; sleep 0.2
"""
"""Notes its process, and works on a file of its issue."""


@pytest.mark.linux
@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(12))
def test_at_random_points_loses_nothing_and_leaves_no_process(team: Team, seed: int) -> None:
    chance, issues = random.Random(seed), team.issues(3)
    agent, pids = team.agent(AGENT), team.bin / "agent.pids"
    for _ in range(3):
        running = team.begun("--agent", agent, "--size", "2")
        time.sleep(chance.uniform(0.2, 5.0))
        running.send_signal(signal.SIGKILL)
        running.communicate(timeout=LIMIT_S)
    ran = team.start("--agent", agent, "--size", "2")
    assert ran.code == 0, ran
    assert sorted(team.done()) == issues
    assert all(len(each) == 1 for each in team.done().values())
    assert all(team.content(each).strip() for each in issues)
    assert git(team.repo, "status", "--porcelain", "--untracked-files=no", "--", ":!.beads") == ""
    began = [int(each) for each in pids.read_text().split()]
    team.wait(lambda: not any(map(is_alive, began)))
    assert team.running() == []
