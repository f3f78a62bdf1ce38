"""`queen start` with a check that the main branch itself fails: nobody is blamed for it."""

from __future__ import annotations

import pytest
from hives import commit_file, git
from teams import WORKS, Team

pytestmark = pytest.mark.slow
COUNTS = 'echo >> "$0.runs"\n'


@pytest.fixture
def breaks(team: Team) -> str:
    """What an agent does that makes the main branch red, past `queen land`."""
    team.set("land.check", "test ! -f bad || { echo bad is there; exit 1; }")
    team.issues(6)
    main = f"git -C {team.repo}"
    return (
        f"test -f {team.repo}/bad || "
        f"{{ touch {team.repo}/bad; {main} add bad; {main} commit -qm bad -- bad; }}\n"
    )


def runs(team: Team) -> int:
    return len((team.bin / "agent.runs").read_text())


def test_ends_the_team_with_that_sentence(team: Team, breaks: str) -> None:
    ran = team.start("ui", "api", "--json", "--agent", team.agent(COUNTS + breaks + WORKS))
    assert (ran.code, ran.json["code"]) == (3, "target_fails"), ran
    commit = git(team.repo, "log", "-1", "--format=%h", "--abbrev=7", "--", "bad").strip()
    assert f"the check fails on main itself ({commit}), not because of" in ran.json["why"]
    assert runs(team) <= 2
    assert {each["code"] for each in ran.json["reasons"]} == {"waits", "kept"}
    git(team.repo, "rm", "-q", "bad")
    git(team.repo, "commit", "-qm", "mended")
    ran = team.start("ui", "api", "--json", "--agent", team.agent(COUNTS + WORKS))
    assert (ran.code, ran.json["left"]) == (0, []), ran
    assert runs(team) <= 8


def test_with_until_done_it_goes_on_once_somebody_has_mended_it(team: Team, breaks: str) -> None:
    agent = team.agent(
        COUNTS + f'[ -e "$0.broken" ] || {{ touch "$0.broken"; {breaks} }}\n' + WORKS
    )
    running = team.begun("ui", "--json", "--until-done", "--agent", agent)
    team.wait(lambda: team.queen("status", as_="lead").out.count("waits to land"))
    git(team.repo, "rm", "-q", "bad")
    git(team.repo, "commit", "-qm", "mended")
    out, err = running.communicate(timeout=120)
    assert (running.returncode, runs(team)) == (0, 6), (out, err)


def test_a_branch_of_the_team_that_mends_it_lands(team: Team) -> None:
    team.set("land.check", "test ! -f bad")
    team.issues(1)
    commit_file(team.repo, "bad")
    ran = team.start("ui", "--agent", team.agent(f"git rm -q bad\n{WORKS}"))
    assert (ran.code, (team.repo / "bad").exists()) == (0, False), ran
