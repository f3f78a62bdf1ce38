"""What the tests of `queen start` stand on."""

from __future__ import annotations

from pathlib import Path

import pytest
from teams import Sprints, Team


@pytest.fixture
def team(repo: Path, tmp_path: Path) -> Team:
    return Team(repo, tmp_path)


@pytest.fixture
def sprints(team: Team) -> Sprints:
    return Sprints(team)
