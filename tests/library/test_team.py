"""A team as a call: what `queen start` does, without a terminal."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hives import git
from teams import WORKS, Team

from queenbee import Hive
from queenbee.errors import InvalidInput, NothingLands
from queenbee.store.droids.roster import Entry

pytestmark = pytest.mark.slow


@pytest.fixture
def team(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setattr(os, "getloadavg", lambda: (0, 0, 0))
    return Team(repo, tmp_path)


@pytest.fixture
def lead(team: Team) -> Hive:
    hive = Hive.open(team.repo, droid="lead")
    hive.env = {**os.environ, **team.queen.env}
    for number in (1, 2):
        hive.issues.new(f"Issue {number}", issue_id=f"qb-{number}")
    return hive


def test_it_does_everything_and_says_how_it_ended(team: Team, lead: Hive) -> None:
    seen: set[str] = set()

    def look(entries: Sequence[Entry]) -> None:
        seen.update(each.issue_id for each in entries if each.issue_id)

    ended = lead.team("amber", "birch", agent=team.agent(WORKS), on_progress=look)
    assert ended.is_done, ended.to_dict()
    assert sum(ended.landed.values()) == 2
    assert seen == {"qb-1", "qb-2"}
    assert all(lead.issues.get(each).done for each in seen)


@pytest.mark.parametrize(("name", "code"), [("finish", "interrupted"), ("cancel", "stopped")])
def test_it_ends_when_it_is_told(name: str, code: str, team: Team, lead: Hive) -> None:
    event = threading.Event()
    agent = team.agent(WORKS + ("sleep 60\n" if name == "cancel" else ""))

    def look(entries: Sequence[Entry]) -> None:
        if any(each.process for each in entries):
            event.set()

    given: dict[str, threading.Event] = {name: event}
    ended = lead.team("amber", agent=agent, on_progress=look, **given)  # type: ignore[arg-type]
    assert ended.why.code == code
    kept = [each.issue_id for each in lead.assignments.find(droid="amber")]
    assert (len(ended.left), len(kept)) == ((1, 0) if name == "finish" else (2, 1))


def test_without_a_check_it_is_refused_before_anything_starts(team: Team, lead: Hive) -> None:
    team.set("land.check", "")
    with Hive.open(team.repo, droid="lead") as hive, pytest.raises(InvalidInput, match="no check"):
        hive.team("amber", agent=team.agent(WORKS))


def test_a_team_does_not_begin_where_nothing_can_land(team: Team) -> None:
    team.issues(1)
    git(team.repo, "switch", "-q", "--detach")
    with Hive.open(team.repo, droid="lead") as hive, pytest.raises(NothingLands):
        hive.team("amber", agent=team.agent(WORKS))
    assert not (team.repo.parent / "repo-amber").exists()
