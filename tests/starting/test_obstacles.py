"""`queen start` with work that cannot land for a reason of its surroundings, one for each code: it
waits in its worktree, costs no attempt, and can land once that is out of the way.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hives import Ran, git
from sync_worlds import World
from teams import COUNTS, LIMIT_S, WORKS, Team, runs, waits

pytestmark = pytest.mark.slow


def lands_now(team: Team) -> None:
    """Shows that the work has stayed in its worktree, and lands from there."""
    ran = team.queen("land", "x-1", "-m", "done", as_="ui", cwd=Path(f"{team.repo}-ui"))
    assert (ran.code, team.content("x-1")) == (0, "x-1 by ui\n"), ran
    assert runs(team) == 1


@pytest.mark.parametrize("attached", [False, True])
def test_while_somebody_else_lands_from_the_same_worktree(team: Team, attached: bool) -> None:
    """It is one landing; only one that stays in its process keeps others from that."""
    go, checking = team.bin / "go", team.bin / "checking"
    team.issues(1)
    waiting = f"[ -e {go} ] || {{ touch {checking}; until [ -e {go} ]; do sleep 0.1; done; }}"
    team.set("land.check", team.program("check", waiting))
    git(team.repo, "commit", "-qam", "a check")
    gate, begun = team.bin / "gate", team.bin / "begun"
    ready = (
        f"git add -A; git commit -qm mine; touch {begun}; until [ -e {gate} ]; do sleep 0.1; done"
    )
    running = team.begun("ui", "--json", "--agent", team.agent(COUNTS + WORKS + ready))
    team.wait(begun.exists)
    if attached:
        team.queen.env["QUEEN_LAND_ATTACHED"] = "1"
    person = team.queen.start("land", "x-1", as_="ui", cwd=Path(f"{team.repo}-ui"))
    team.wait(checking.exists)
    gate.touch()
    if not attached:
        time.sleep(1)
        go.touch()
    out, err = running.communicate(timeout=LIMIT_S)
    if attached:
        said = waits(Ran(running.returncode, out, err))
        assert "x-1 waits to land: another queen land is at work in" in said
        go.touch()
    person.communicate(timeout=LIMIT_S)
    assert (running.returncode, person.returncode, runs(team)) == (int(attached), 0, 1)
    assert team.done() == {"x-1": ["ui"]}


FULL = """
import errno
opens = os.open
def open_(path, flags, *mode, dir_fd=None):
    folder = os.readlink(f"/proc/self/fd/{{dir_fd}}") if dir_fd is not None else ""
    if flags & os.O_CREAT and "/queenbee-private/landing" in folder and os.path.exists({full!r}):
        raise OSError(errno.ENOSPC, "No space left on device", path)
    return opens(path, flags, *mode, dir_fd=dir_fd)
os.open = open_
"""
"""While a file is there, the folder of those who wait to land is on a full disk."""


@pytest.mark.linux
def test_unwritable_while_the_disk_is_full(team: Team) -> None:
    team.issues(1)
    full = team.bin / "full"
    with (team.bin / "sitecustomize.py").open("a") as file:
        file.write(FULL.format(full=str(full)))
    ran = team.start("ui", "--json", "--agent", team.agent(COUNTS + f"touch {full}\n" + WORKS))
    said = waits(ran)
    assert "x-1 waits to land: " in said
    assert "No space left on device" in said
    full.unlink()
    lands_now(team)


@pytest.mark.parametrize("begins_again", [False, True])
def test_unreachable_while_the_remote_that_confirms_is_away(
    tmp_path: Path, begins_again: bool
) -> None:
    world = World(tmp_path)
    ada = world.clone("ada")
    git(ada, "symbolic-ref", "HEAD", "refs/heads/main")
    (ada / ".gitignore").write_text(".beads/*\n!.beads/queen.toml\n")
    world.settings("ada", '[sync]\nledgers = "branch"\nconfirm = "remote"\n')
    team = Team(ada, tmp_path)
    made = team.queen("issue", "new", "issue 1", "--id", "x-1", as_="lead")
    assert made.code == 0, made
    git(ada, "add", "--all")
    git(ada, "commit", "-qm", "begin")
    git(ada, "push", "-q", "origin", "main")
    away = tmp_path / "away.git"
    leaves = f"mv {world.bare} {away}\n"
    if begins_again:
        leaves = f'[ "$QUEEN_ATTEMPT" != 1 ] || {{ {leaves.strip()}; exit 3; }}\n'
    ran = team.start("ui", "--json", "--agent", team.agent(leaves + COUNTS + WORKS))
    assert "x-1 waits to land: " in (said := waits(ran))
    assert "remote" in said
    world.heal()
    lands_now(team)


@pytest.fixture
def unseen(asking: Path, repo: Path, tmp_path: Path) -> Team:
    """A team on a machine that asks for each command."""
    return Team(repo, tmp_path)


def test_untrusted_until_a_person_has_seen_the_new_check(unseen: Team) -> None:
    team = unseen
    team.issues(1)
    settings = team.repo / ".beads" / "queen.toml"
    assert 'check = "true"' in settings.read_text()
    changes = f'sed -i \'s/check = "true"/check = "true # new"/\' {settings}\n'
    changes += f"git -C {team.repo} commit -qm 'another check' .beads/queen.toml\n"
    ran = team.start("ui", "--json", "--agent", team.agent(COUNTS + changes + WORKS))
    assert "queen config trust" in waits(ran)
    assert team.content("x-1") == ""
    assert team.queen("config", "trust", "--yes").code == 0
    lands_now(team)


def test_untrusted_checks_of_one_issue_wait_while_others_land(unseen: Team) -> None:
    team = unseen
    team.issues(2)
    assert team.queen("issue", "export").code == 0
    tracker = team.repo / ".beads" / "issues.jsonl"
    rows = [json.loads(line) for line in tracker.read_text().splitlines()]
    rows[0]["dod"] = {"verifiers": [{"name": "ok", "command": "test -e x-1.txt"}]}
    tracker.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    git(team.repo, "add", ".beads/issues.jsonl")
    git(team.repo, "commit", "-qam", "checks")
    assert team.queen("config", "trust", "--yes").code == 0
    changes = f"sed -i 's/test -e x-1/test -s x-1/' {tracker}\n"
    changes += f"git -C {team.repo} commit -qm 'other checks' .beads/issues.jsonl\n"
    agent = team.agent(f'if [ "$QUEEN_ISSUE" = x-1 ]; then\n{COUNTS}{changes}fi\n{WORKS}')
    ran = team.start("ui", "--json", "--agent", agent)
    assert (ran.code, ran.json["left"], team.done()) == (1, ["x-1"], {"x-2": ["ui"]}), ran
    said = " ".join(each["text"] for each in ran.json["reasons"])
    assert "queen config trust" in said
    assert git(team.repo, "show", "unfinished/x-1-ui:x-1.txt") == "x-1 by ui\n"
    assert runs(team) == 1
