"""What the tests of `queen start` stand on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import Queen, git
from sync_worlds import World
from teams import Sprints, Team


@pytest.fixture
def team(repo: Path, tmp_path: Path) -> Team:
    return Team(repo, tmp_path)


@pytest.fixture
def sprints(team: Team) -> Sprints:
    return Sprints(team)


@pytest.fixture
def eve(tmp_path: Path, asking: Path) -> Queen:
    """Another machine, which pushes a repository with a check, and issues."""
    world = World(tmp_path)
    tree = world.clone("eve")
    (tree / ".beads" / "queen.toml").write_text(
        '[land]\ncheck = "true"\n[sync]\nledgers="branch"\n'
    )
    (tree / "README").touch()
    (tree / ".gitignore").write_text(".beads/*\n!.beads/queen.toml\n")
    git(tree, "add", ".gitignore", "README", ".beads/queen.toml")
    git(tree, "commit", "-qm", "begin")
    git(tree, "push", "-q", "origin", "HEAD:main")
    return Queen(tree)
