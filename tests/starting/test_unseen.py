"""Commands that came by a clone or a sync, and a team that is started: nothing runs unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hives import Queen, at_a_terminal, git
from sync_worlds import World
from teams import WORKS, Team

pytestmark = pytest.mark.slow


@pytest.fixture
def eve(tmp_path: Path, asking: Path) -> Queen:
    """Another machine, which pushes a repository with a check, and issues."""
    world = World(tmp_path)
    tree = world.clone("eve")
    (tree / ".beads" / "queen.toml").write_text(
        '[land]\ncheck = "true"\n[sync]\nledgers="branch"\n'
    )
    (tree / "README").touch()
    (tree / ".gitignore").write_text(".beads/*\n!.beads/queen.toml\n")
    git(tree, "add", ".gitignore", "README", ".beads/queen.toml")
    git(tree, "commit", "-qm", "begin")
    git(tree, "push", "-q", "origin", "HEAD:main")
    return Queen(tree)


@pytest.fixture
def team(eve: Queen, tmp_path: Path) -> Team:
    """This machine, which has cloned it."""
    git(tmp_path, "clone", "-q", "-b", "main", str(tmp_path / "remote.git"), str(tmp_path / "vic"))
    return Team(tmp_path / "vic", tmp_path)


def plant(eve: Queen, team: Team, command: str) -> None:
    """Has an issue arrive by sync whose checks run a command."""
    made = eve("issue", "new", "Add a search field", "--id", "x-1", as_="eve")
    assert made.code == 0, made
    assert eve("issue", "export").code == 0
    path = eve.cwd / ".beads" / "issues.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["dod"] = {"verifiers": [{"name": "ok", "command": command}]}
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for queen in (eve, team.queen):
        done = queen("sync", as_="eve")
        assert done.code == 0, done


def test_a_verifier_that_arrives_by_sync_does_not_run(
    eve: Queen, team: Team, tmp_path: Path
) -> None:
    plant(eve, team, f"touch {tmp_path}/pwned")
    ran = team.start("--agent", team.agent(WORKS), "--size", "1")
    assert not (tmp_path / "pwned").exists()
    assert team.done() == {}
    (row,) = team.queen("issues", "--json").json
    assert row["because"] == "its checks wait for a person: queen config trust"
    assert ran.code == 1
    assert "x-1 is on hold: its checks wait for a person: queen config trust" in ran.out
    assert team.queen("config", "trust", "--yes").code == 0
    assert team.start("--agent", team.agent(WORKS), "--size", "1").code == 0
    assert (tmp_path / "pwned").exists()


def test_a_person_who_starts_a_team_is_asked_once_for_everything(
    eve: Queen, team: Team, tmp_path: Path
) -> None:
    plant(eve, team, f"touch {tmp_path}/seen")
    team.queen("config", "trust", "--forget")
    words = ("start", "--agent", team.agent(WORKS), "--size", "1")
    status, shown = at_a_terminal(team.queen, "y\n", *words)
    assert status == 0, shown
    assert shown.count("Let it run") == 1
    assert f"touch {tmp_path}/seen" in shown
    assert (tmp_path / "seen").exists()


def test_what_a_person_does_not_want_to_run_waits_and_the_rest_goes_on(
    eve: Queen, team: Team, tmp_path: Path
) -> None:
    plant(eve, team, f"touch {tmp_path}/unwanted")
    assert team.queen("issue", "new", "Another", "--id", "x-2", as_="lead").code == 0
    words = ("start", "--agent", team.agent(WORKS), "--size", "1")
    status, shown = at_a_terminal(team.queen, "n\n", *words)
    assert status == 1, shown
    assert sorted(team.done()) == ["x-2"]
    assert not (tmp_path / "unwanted").exists()


def test_a_check_of_a_clone_stops_a_start_that_nobody_watches(eve: Queen, team: Team) -> None:
    team.queen("config", "trust", "--forget")
    ran = team.start("--agent", team.agent(WORKS), "--json")
    assert (ran.code, ran.error["code"]) == (5, "untrusted")
    assert [each["kind"] for each in ran.error["commands"]] == ["check"]


def test_a_check_that_was_set_here_is_not_asked_for(team: Team) -> None:
    assert team.queen("issue", "new", "Add a field", "--id", "x-1", as_="lead").code == 0
    assert team.start("--agent", team.agent(WORKS), "--size", "1").code == 0
    assert sorted(team.done()) == ["x-1"]
