"""Teams on two machines share one plan: each issue is done once, by one of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import postgres_server
import pytest
from hives import git
from sync_worlds import World
from teams import LIMIT_S, WORKS, Team

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_two_machines_of_one_database_do_each_issue_once(
    server: postgres_server.Server, tmp_path: Path
) -> None:
    world = World(tmp_path)
    trees = [world.clone("ada"), world.clone("bob")]
    postgres_server.use(trees[0] / ".beads", server)
    shutil.copy(trees[0] / ".beads" / "queen.toml", trees[1] / ".beads")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    teams = [Team(tree, tmp_path / name) for tree, name in zip(trees, ("one", "two"), strict=True)]
    issues = teams[0].issues(6)
    git(trees[1], "add", "--all")
    git(trees[1], "commit", "-qm", "begin")
    running = [
        team.begun(who, "--agent", team.agent("sleep 0.5\n" + WORKS), "--until-done")
        for team, who in zip(teams, ("ui", "api"), strict=True)
    ]
    outs = [each.communicate(timeout=LIMIT_S)[0] for each in running]
    assert [each.returncode for each in running] == [0, 0], outs
    done = teams[0].done()
    assert sorted(done) == issues
    assert {who for each in done.values() for who in each} == {"ui", "api"}
    for team, who in zip(teams, ("ui", "api"), strict=True):
        landed = git(team.repo, "ls-tree", "-r", "--name-only", "HEAD").split()
        assert {each for each in issues if done[each] == [who]} == {
            each.removesuffix(".txt") for each in landed if each.startswith("x-")
        }
