"""Commands that came by a clone or a sync, and a team that is started: nothing runs unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hives import Queen, at_a_terminal, git
from teams import ONE, WORKS, Sprints, Team

pytestmark = pytest.mark.slow


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


@pytest.mark.thorough
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


def test_a_sprint_bead_waits_for_consent_and_is_worked_on_after_it(
    eve: Queen, team: Team, tmp_path: Path
) -> None:
    (team.repo / "plan.md").write_text(ONE)
    sprints = Sprints(team)
    assert team.queen("plan", "import", "plan.md", as_="lead").code == 0
    (row,) = sprints.beads()
    row["dod"] = {"verifiers": [{"name": "ok", "command": f"touch {tmp_path}/pwned"}]}
    with (team.repo / ".beads" / "issues.jsonl").open("a") as file:
        file.write(json.dumps(row | {"updated_at": "2096-01-01T00:00:00Z"}) + "\n")
    ran = team.start("--agent", sprints.agent(), "--size", "1")
    assert f"{row['id']} is on hold: its checks wait for a person: queen config trust" in ran.out
    assert not list(team.bin.glob("agent.develop.*"))
    assert not (tmp_path / "pwned").exists()
    assert team.queen("config", "trust", "--yes").code == 0
    ran = team.start("--agent", sprints.agent(), "--size", "1")
    assert (ran.code, (tmp_path / "pwned").exists()) == (0, True), ran


def test_a_check_of_a_clone_stops_a_start_that_nobody_watches(eve: Queen, team: Team) -> None:
    team.queen("config", "trust", "--forget")
    ran = team.start("--agent", team.agent(WORKS), "--json")
    assert (ran.code, ran.error["code"]) == (5, "untrusted")
    assert [each["kind"] for each in ran.error["commands"]] == ["check"]


@pytest.mark.thorough
def test_a_check_that_was_set_here_is_not_asked_for(team: Team) -> None:
    assert team.queen("issue", "new", "Add a field", "--id", "x-1", as_="lead").code == 0
    assert team.start("--agent", team.agent(WORKS), "--size", "1").code == 0
    assert sorted(team.done()) == ["x-1"]


CHECK = '[land]\ncheck = "{}"\n[sync]\nledgers="branch"\n'
COUNTS = 'echo >> "$0.runs.$QUEEN_ISSUE"\n'


def changes_check(team: Team, check: str) -> str:
    """Returns what has an agent do as if somebody else committed another check meanwhile."""
    (team.bin / "queen.toml").write_text(CHECK.format(check))
    return (
        f"[ -e {team.bin}/done ] || {{ touch {team.bin}/done; cd {team.repo}\n"
        f"cp {team.bin}/queen.toml .beads/queen.toml\n"
        'git commit -qm "another check" -- .beads/queen.toml; cd "$OLDPWD"; }\n'
    )


def issues(team: Team, count: int) -> None:
    for number in range(1, count + 1):
        made = team.queen("issue", "new", f"issue {number}", "--id", f"x-{number}", as_="lead")
        assert made.code == 0, made


def runs(team: Team, issue_id: str) -> int:
    path = team.bin / f"agent.runs.{issue_id}"
    return len(path.read_text()) if path.exists() else 0


class TestACheckThatChangesDuringTheRun:
    def test_ends_the_team_and_what_waits_lands_next_without_an_agent(
        self, eve: Queen, team: Team
    ) -> None:
        issues(team, 2)
        agent = team.agent(COUNTS + changes_check(team, "true; true") + WORKS)
        ran = team.start("ui", "--json", "--agent", agent)
        assert (ran.code, ran.json["code"]) == (1, "waits"), ran
        said = {each["code"]: each["text"] for each in ran.json["reasons"]}
        assert "queen config trust; then queen start lands it" in said["waits"]
        assert "after queen config trust, queen start ui --agent" in said["kept"]
        assert (team.done(), runs(team, "x-1"), runs(team, "x-2")) == ({}, 1, 0)
        assert team.queen("config", "trust", "--yes").code == 0
        ran = team.start("ui", "--agent", agent)
        assert ran.code == 0, ran
        assert team.done() == {"x-1": ["ui"], "x-2": ["ui"]}
        assert (runs(team, "x-1"), runs(team, "x-2")) == (1, 1)
        assert "takes x-1" not in ran.out

    def test_leaves_what_somebody_added_since_to_an_agent(self, eve: Queen, team: Team) -> None:
        issues(team, 1)
        agent = team.agent(COUNTS + changes_check(team, "true; true") + WORKS)
        assert team.start("ui", "--agent", agent).code == 1
        (team.repo.parent / "vic-ui" / "mine.txt").write_text("mine\n")
        assert team.queen("config", "trust", "--yes").code == 0
        assert team.start("ui", "--agent", agent).code == 0
        assert runs(team, "x-1") == 2

    def test_is_shown_to_a_person_who_lets_it_run(self, eve: Queen, team: Team) -> None:
        issues(team, 2)
        agent = team.agent(COUNTS + changes_check(team, "true; true") + WORKS)
        status, shown = at_a_terminal(team.queen, "y\n", "start", "ui", "--agent", agent)
        assert status == 0, shown
        assert shown.count("Let it run") == 1
        assert "    true; true\n" in shown
        assert sorted(team.done()) == ["x-1", "x-2"]
        assert (runs(team, "x-1"), runs(team, "x-2")) == (1, 1)

    def test_that_a_person_does_not_want_ends_the_team(self, eve: Queen, team: Team) -> None:
        issues(team, 3)
        agent = team.agent(COUNTS + changes_check(team, "true; true") + WORKS)
        status, shown = at_a_terminal(team.queen, "n\n", "start", "ui", "api", "--agent", agent)
        assert status == 1, shown
        assert shown.count("Let it run") == 1
        assert "you did not agree to the check" in shown
        assert (team.done(), runs(team, "x-3")) == ({}, 0)

    def test_is_said_once_for_all_issues(self, eve: Queen, team: Team) -> None:
        issues(team, 2)
        meets = f'touch "{team.bin}/$QUEEN_ISSUE"\n' + "".join(
            f'until [ -e "{team.bin}/x-{each}" ]; do sleep 0.1; done\n' for each in (1, 2)
        )
        agent = team.agent(meets + changes_check(team, "true; true") + WORKS)
        ran = team.start("ui", "api", "--agent", agent)
        assert ran.code == 1, ran
        end = ran.out[ran.out.index("0 issues in") :]
        assert end.count("nobody on this machine has seen") == 1
        assert "x-1, x-2 wait to land: " in end or "x-2, x-1 wait to land: " in end


def test_an_agent_does_not_get_with_force_what_it_could_not_land(eve: Queen, team: Team) -> None:
    plant(eve, team, "true")
    assert team.queen("issue", "new", "Another", "--id", "x-2", as_="lead").code == 0
    tries = f"queen claim x-1 --force --json 2> {team.bin}/refused\n"
    ran = team.start("ui", "--agent", team.agent(tries + WORKS))
    assert sorted(team.done()) == ["x-2"], ran
    refused = json.loads((team.bin / "refused").read_text().splitlines()[-1])["error"]
    assert refused["code"] == "untrusted"
    assert "--force" not in refused["hint"]


def test_work_put_on_a_branch_until_its_checks_are_seen_lands_next_without_an_agent(
    eve: Queen, team: Team, tmp_path: Path
) -> None:
    issues(team, 2)
    rows = tmp_path / "rows.py"
    rows.write_text(
        "import json, pathlib, subprocess\n"
        f"path = pathlib.Path({str(team.repo / '.beads' / 'issues.jsonl')!r})\n"
        "found = [json.loads(each) for each in path.read_text().splitlines()]\n"
        "for each in found:\n"
        "    if each['id'] == 'x-1':\n"
        "        each['dod'] = {'verifiers': [{'name': 'ok', 'command': 'true; true'}]}\n"
        "path.write_text(''.join(json.dumps(each) + '\\n' for each in found))\n"
    )
    arrives = f'[ "$QUEEN_ISSUE" != x-1 ] || {{ queen issue export; python3 {rows}; }}\n'
    agent = team.agent(COUNTS + arrives + WORKS)
    ran = team.start("ui", "--json", "--agent", agent)
    assert (ran.code, ran.json["code"]) == (1, "waits"), ran
    assert [each["code"] for each in ran.json["reasons"]] == ["waits"]
    assert team.done() == {"x-2": ["ui"]}
    assert team.queen("config", "trust", "--yes").code == 0
    given_back = team.hive().assignments.find(issue_id="x-1", status="released")
    assert given_back[-1].reason.startswith("ui has worked on it; unfinished in ")
    ran = team.start("ui", "--agent", agent)
    assert ran.code == 0, ran
    assert (sorted(team.done()), runs(team, "x-1")) == (["x-1", "x-2"], 1)
