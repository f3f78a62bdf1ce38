"""Fixtures of the hook's tests: a repository with files, and the hook run in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_inputs import recorded
from entry_points import run_hook
from news_events import OPPORTUNITIES, Ask, Hear


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


@pytest.fixture
def hear(ask: Ask, tree: Path) -> Hear:
    """Returns the lines that `tester` is told at an opportunity, without the first one."""

    def heard(name: str = "claude/post-bash", *, droid: str = "tester") -> list[str]:
        answer = ask(recorded(name, tree), QUEEN_DROID=droid)
        if answer is None:
            return []
        output = answer["hookSpecificOutput"]
        assert output["hookEventName"] == OPPORTUNITIES.get(name, output["hookEventName"])
        text = output["additionalContext"]
        assert len(text) <= 600
        first, *lines = text.splitlines()
        assert first.startswith(f"News for {droid}. Words in “ ” are others'")
        return list(lines)

    return heard
