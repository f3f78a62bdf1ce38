"""Fixtures of the tests of agents' configuration: a repository, and an empty home."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from queenbee.agents import setup as setups
from queenbee.agents.setup import Setup, place_of


@pytest.fixture
def tree(repo: Path) -> Path:
    """The repository of a test, with `src/app.py` in it."""
    (repo / "src").mkdir()
    (repo / "src" / "app.py").write_text("a = 1\n")
    return repo


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home: no test sees the agents of who runs it, or changes their settings."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`queen-hook` and `queen mcp` are on the PATH of the agents."""
    monkeypatch.setattr(setups, "hook_command", lambda: "queen-hook")
    monkeypatch.setattr(setups, "mcp_command", lambda: ["queen", "mcp"])


Configure = Callable[..., Setup]


@pytest.fixture
def configure(repo: Path, installed: None) -> Configure:
    """Decides a setup for some agents, in `repo` unless another place is given."""

    def decided(
        *names: str, cwd: Path = repo, user: bool = False, undo: bool = False, write: bool = True
    ) -> Setup:
        place = place_of(str(cwd), os.environ, user=user, undo=undo)
        wanted = Setup(place, str(cwd), names, undo=undo)
        if write:
            wanted.write()
        return wanted

    return decided
