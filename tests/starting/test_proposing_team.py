"""`queen start` where work lands by pull request: agents propose, mend what comes back, and end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hives import git
from scripted_host import SLUG, ScriptedHost, put_gh
from teams import WORKS, Team

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
