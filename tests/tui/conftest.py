"""A team with something for every list of the board."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from boards import Open, busy_team
from hives import Clock, QuickQueen

from queenbee import Hive


@pytest.fixture
def team(
    repo: Path, quick: QuickQueen, frozen: Clock, open_as: Open, open_beside: Open
) -> Iterator[Hive]:
    """The hive of a team at work, open for `human`."""
    with busy_team(repo, quick, frozen, open_as, open_beside) as hive:
        yield hive
