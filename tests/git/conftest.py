"""Fixtures of the guard's tests: real git, its hooks installed, commits that may fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from queenbee import Hive, Reservation
from queenbee.git import hooks

Git = Callable[..., "subprocess.CompletedProcess[str]"]
Hold = Callable[..., Reservation]


@pytest.fixture(autouse=True)
def _no_guard_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of who runs it."""
    for name in ("QUEEN_GUARD", "PRE_COMMIT_TO_REF", "PRE_COMMIT_FROM_REF", "GIT_EDITOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def guarded(repo: Path) -> Path:
    """The repository with the guard in its hooks."""
    hooks.install(hooks.HookFolder(str(repo)))
    return repo


@pytest.fixture
def try_git(repo: Path) -> Git:
    """Runs git, which may fail, in `repo`; `as_` names who acts."""

    def run(
        *arguments: str, cwd: Path = repo, as_: str | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        named = {"QUEEN_DROID": as_} if as_ else {}
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env={**os.environ, **named, **env},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=60,
        )

    return run


@pytest.fixture
def hold(repo: Path) -> Hold:
    """Reserves a pattern for a droid: `reviewer`, where nothing else is said."""

    def held(pattern: str, droid: str = "reviewer", cwd: Path = repo, **more: Any) -> Reservation:
        hive = Hive.open(cwd, droid=droid, env={"QUEEN_DURABILITY": "buffered"})
        return hive.reservations.reserve([pattern], **more)[0]

    return held
