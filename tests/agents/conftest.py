"""Fixtures of the tests of agents' configuration: a repository, and an empty home."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def tree(repo: Path) -> Path:
    """The repository of a test, with `src/app.py` in it."""
    (repo / "src").mkdir()
    (repo / "src" / "app.py").write_text("a = 1\n")
    return repo
