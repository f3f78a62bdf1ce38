"""`queen start` where work lands by pull request: agents propose, mend what comes back, and end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from crowds import WAITS, Crowd, judge
from hives import git
from scripted_host import SLUG, ScriptedHost, put_gh
from teams import COUNTS, WORKS, Team, runs, waits

pytestmark = pytest.mark.slow


@pytest.fixture
def host(team: Team, tmp_path: Path) -> Iterator[ScriptedHost]:
    hub = tmp_path / "hub"
    git(team.repo, "clone", "-q", "--bare", str(team.repo), str(hub))
    git(team.repo, "remote", "add", "origin", str(hub))
    git(team.repo, "fetch", "-q", "origin")
    git(team.repo, "config", "queenbee.host", f"github.com/{SLUG}")
    found = ScriptedHost(hub, tmp_path / "h")
    setenv, path = team.queen.env.__setitem__, team.queen.env["PATH"]
    put_gh(tmp_path / "gh", tmp_path / "h", setenv, path=path)
    team.set("land.target", "origin/main")
    team.set("land.by", "pr")
    yield found
    found.stop()


class People(threading.Thread):
    """Review and merge what is proposed; the first one has to be mended once."""

    def __init__(self, host: ScriptedHost, note: Path) -> None:
        super().__init__(daemon=True)
        self.host, self.note, self.failed_at, self.is_over = host, note, "", False

    def run(self) -> None:
        while not self.is_over:
            with self.host.lock, suppress(OSError):
                for number, pull in [*self.host.pulls.items()]:
                    self.look(number, pull)
                self.note.unlink(missing_ok=True)  # As if a minute had passed.
            time.sleep(0.3)

    def look(self, number: int, pull: dict[str, object]) -> None:
        head = self.host.tip(str(pull["branch"]))
        if pull["state"] != "OPEN":
            return
        if number == 1 and self.failed_at in ("", head):
            if not self.failed_at:
                self.failed_at = head
                self.host.check(1, "FAILURE", log="the host fails")
            return
        self.host.merge(number, "SQUASH")


@pytest.mark.thorough
def test_a_team_proposes_mends_and_ends_when_all_is_landed(team: Team, host: ScriptedHost) -> None:
    issues = team.issues(3)
    note = Path(team.hive().layout.state_dir, "code-host.json")
    people = People(host, note)
    people.start()
    try:
        ran = team.start("--agent", team.agent(WORKS), "--size", "2")
    finally:
        people.is_over = True
    assert ran.code == 0, ran
    assert sorted(team.done()) == issues
    assert people.failed_at
    assert {each["state"] for each in host.pulls.values()} == {"MERGED"}
    assert len(host.pulls) == 3
    landed = host.git("ls-tree", "-r", "--name-only", "main").split()
    assert {f"{each}.txt" for each in issues} <= {*landed}


def test_until_proposed_a_team_ends_before_anything_is_merged(
    team: Team, host: ScriptedHost
) -> None:
    team.issues(1)
    ran = team.start("--agent", team.agent(WORKS), "--size", "1", "--until-proposed")
    assert ran.code == 10, ran
    assert team.done() == {}
    assert "x-1 is proposed by #1, which is not merged yet" in ran.out
    assert {each["state"] for each in host.pulls.values()} == {"OPEN"}
    Path(team.hive().layout.state_dir, "code-host.json").unlink()  # As if a minute had passed.
    again = team.start("--agent", team.agent(WORKS), "--size", "1", "--until-proposed")
    assert again.code == 10, again
    assert "x-1 is proposed by #1, which waits for a review or a rule of the host" in again.out


def test_who_is_not_logged_in_is_told_before_an_agent_begins(
    team: Team, host: ScriptedHost
) -> None:
    team.issues(1)
    token, team.queen.env["GH_TOKEN"] = team.queen.env["GH_TOKEN"], ""
    words = ("ui", "--json", "--agent", team.agent(COUNTS + WORKS))
    refused = team.start(*words, tries=True)
    assert (refused.code, refused.error["code"]) == (8, "not_logged_in"), refused
    assert not (team.bin / "agent.runs").exists()
    assert "gh is not logged in" in waits(team.start(*words))
    assert runs(team) == 1
    team.queen.env["GH_TOKEN"] = token
    host.away = True
    refused = team.start(*words, tries=True)
    assert (refused.code, refused.error["hint"]) == (6, "queen start, later"), refused


def test_a_team_waits_for_a_host_that_is_away(team: Team, host: ScriptedHost) -> None:
    team.issues(1)
    host.away = True
    ran = team.start("ui", "--agent", team.agent(COUNTS + WORKS), "--max-minutes", "0.2")
    assert (ran.code, runs(team)) == (1, 1), ran
    assert "x-1 waits to land: github.com does not answer" in ran.out
    assert "before everything was done: --max-minutes" in ran.out


SOON = """
import sys
if "start" in sys.orig_argv:
    from queenbee.starting import obstacles
    obstacles._TRY_AGAIN_S = 0.5
"""


@pytest.mark.parametrize("is_away", [False, True])
def test_a_team_waits_for_its_pull_requests(team: Team, host: ScriptedHost, is_away: bool) -> None:
    issues = team.issues(1)
    if is_away:  # When the first one comes.
        with (team.bin / "sitecustomize.py").open("a") as file:
            file.write(SOON)
        host.changes = "refused"
    running = team.begun("--agent", team.agent(WORKS), "--size", "1")
    note = Path(team.hive().layout.state_dir, "code-host.json")
    team.wait(lambda: host.pulls)
    asked = len(host.requests)

    def has_looked(often: int) -> bool:
        note.unlink(missing_ok=True)  # As if a minute had passed.
        return running.poll() is not None or len(host.requests) > asked + often

    team.wait(lambda: has_looked(4))  # Oftener than a team that is stuck.
    assert running.poll() is None
    host.merge(1)
    team.wait(lambda: has_looked(1000))
    out, _ = running.communicate()
    assert running.returncode == 0, out
    assert sorted(team.done()) == issues


MENDS = """
if [ "$QUEEN_ISSUE" = x-2 ] && [ ! -e "$0.died" ]; then : > "$0.died"; kill -9 $$; fi
git diff --name-only --diff-filter=U | while read name; do
    sed -i '/^[<=>|]\\{7\\}/d' "$name"; git add "$name"
done
echo "$QUEEN_ISSUE by $QUEEN_DROID" >> "$FILE"
"""


@pytest.mark.thorough
@pytest.mark.parametrize("has_queue", [False, True], ids=["auto", "queue"])
def test_a_team_on_a_bad_day_lands_all_once_and_is_told_once(
    team: Team, host: ScriptedHost, *, has_queue: bool
) -> None:
    host.queue = has_queue
    for name, value in (("merge", "auto"), ("method", "squash")):
        team.set(f"land.{name}", value)
    team.issues(6)
    for later, first in WAITS:
        assert team.queen("issue", "dep", later, first, as_="lead").code == 0
    crowd = Crowd(host, Path(team.hive().layout.state_dir))
    running = team.begun("--agent", team.agent(MENDS), "--size", "3", "--max-minutes", "8")
    crowd.start()
    try:
        out, _ = running.communicate(timeout=540)
    finally:
        crowd.is_over = True
        running.kill()
    assert running.returncode == 0, out
    assert (team.bin / "agent.died").exists()
    judge(team.hive(), crowd, out)
