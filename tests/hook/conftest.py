"""Fixtures of the hook's tests: a repository with files, and the hook run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from entry_points import run_hook

Ask = Callable[..., dict[str, Any] | None]


@pytest.fixture(autouse=True)
def _no_agent_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the agent that may run it."""
    for name in ("QUEEN_HOOK", "QUEEN_GUARD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tree(repo: Path) -> Path:
    """The repository of a test, with `src/app.py` in it."""
    (repo / "src").mkdir()
    (repo / "src" / "app.py").write_text("a = 1\n")
    return repo


@pytest.fixture
def ask(tree: Path) -> Ask:
    """Hands an event to the hook, as the agent's process would, with a clean environment."""

    def asked(data: bytes, **env: str) -> dict[str, Any] | None:
        return run_hook(data, {"QUEEN_DURABILITY": "buffered", **env}, str(tree))

    return asked
