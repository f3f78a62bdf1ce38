"""Fixtures of pytest for programs that use a hive: one in a temporary repository of its own, with a
clock that moves when it is told to. In a `conftest.py`:

    from queenbee.testing import hive, hive_clock
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from queenbee.git.run import git
from queenbee.library.hive import Hive
from queenbee.store import safe_open

__all__ = ["HiveClock", "hive", "hive_clock", "make_repository"]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START_MS = 1_767_607_200_000
_USER = {"user.name": "Tester", "user.email": "tester@example.com", "commit.gpgsign": "false"}


class HiveClock:
    """A clock for `Hive.open(clock=…)`: it stands until `advance` is called."""

    def __init__(self, now_ms: int = _START_MS) -> None:
        self.now_ms: int = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, seconds: float) -> None:
        """Lets so much time pass: leases end by it."""
        self.now_ms += round(seconds * 1000)


def make_repository(folder: str | os.PathLike[str]) -> None:
    """Makes a git repository with one empty commit on `main`, by a user of its own."""
    tree = os.fspath(folder)
    safe_open.make_folder(tree)
    git("init", "--quiet", "--initial-branch=main", cwd=tree)
    for name, value in _USER.items():
        git("config", "--", name, value, cwd=tree)
    git("commit", "--quiet", "--allow-empty", "--no-verify", "--message=first", cwd=tree)


@pytest.fixture
def hive_clock() -> HiveClock:
    """The clock of `hive`."""
    return HiveClock()


@pytest.fixture
def hive(tmp_path: Path, hive_clock: HiveClock) -> Iterator[Hive]:
    """A new hive, open for the droid `tester`, in a repository below `tmp_path`. Other droids open
    the same one: `Hive.open(hive.layout.root, droid="other", clock=hive_clock)`.
    """
    make_repository(tmp_path / "repository")
    with Hive.init(tmp_path / "repository", droid="tester", env={}, clock=hive_clock) as opened:
        yield opened
