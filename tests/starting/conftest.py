"""What the tests of `queen start` stand on."""

from __future__ import annotations

from pathlib import Path

import pytest
from teams import Team


@pytest.fixture
def team(repo: Path, tmp_path: Path) -> Team:
    return Team(repo, tmp_path)
