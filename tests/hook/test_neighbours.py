"""An edit: the agent learns who else has unmerged work in the file, once for each branch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acting import remember_name
from agent_inputs import NAME, SESSION
from hives import commit_file, git

from queenbee import Hive
from queenbee.hook import neighbours

Ask = Callable[..., dict[str, Any] | None]


@pytest.fixture
def mine(repo: Path, tmp_path: Path) -> Path:
    """A worktree whose agent edits `app.py`."""
    commit_file(repo, "app.py", "".join(f"a{number} = 1\n" for number in range(9)))
    return added(repo, "mine")


def added(repo: Path, name: str, droid: str | None = None) -> Path:
    tree = repo.parent / name
    git(repo, "worktree", "add", "-q", str(tree), "-b", name)
    if droid is not None:
        remember_name(tree, droid)
    return tree


def edit(tree: Path, path: str = "app.py", **changes: object) -> bytes:
    event = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "session_id": SESSION,
        "cwd": str(tree),
        "tool_input": {"file_path": str(tree / path)},
    }
    return json.dumps(event | changes).encode()


def told(answer: dict[str, Any] | None) -> str | None:
    if answer is None:
        return None
    assert "permissionDecision" not in answer["hookSpecificOutput"]
    return str(answer["hookSpecificOutput"]["additionalContext"])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each edit asks, and has the time that it takes."""
    monkeypatch.setattr(neighbours, "_AGAIN_S", 0)
    monkeypatch.setattr(neighbours, "_BUDGET_S", 60)


@pytest.mark.usefixtures("at_once")
def test_it_is_told_once_for_each_file_and_branch(repo: Path, mine: Path, ask: Ask) -> None:
    assert ask(edit(mine)) is None
    other = added(repo, "other", "api")
    (other / "app.py").write_text("b = 1\n")
    text = told(ask(edit(mine)))
    assert text is not None
    assert text.startswith("Not merged yet: api changed app.py lines 1-9 (branch other, uncommit")
    assert "queen msg send api" in text
    assert ask(edit(mine)) is None
    third = added(repo, "third", "docs")
    (third / "app.py").write_text("c = 1\n")
    text = told(ask(edit(mine)))
    assert text is not None and "docs" in text and "api" not in text
    Hive.open(mine, droid=NAME, env={}).reservations.release(everything=True)
    text = told(ask(edit(mine, session_id="another")))
    assert text is not None and "docs" in text and "api" in text


@pytest.mark.usefixtures("at_once")
def test_codex_is_told_after_the_edit(repo: Path, mine: Path, ask: Ask) -> None:
    (added(repo, "other", "api") / "app.py").write_text("b = 1\n")
    codex = {"transcript_path": "/home/you/.codex/sessions/x.jsonl"}
    assert ask(edit(mine, **codex)) is None
    assert told(ask(edit(mine, hook_event_name="PostToolUse", **codex)))


@pytest.mark.usefixtures("at_once")
def test_a_refusal_comes_first(repo: Path, mine: Path, ask: Ask) -> None:
    other = added(repo, "other", "api")
    (other / "app.py").write_text("b = 1\n")
    Hive.open(other, droid="api", env={}).reservations.reserve(["app.py"])
    answer = ask(edit(mine))
    assert answer is not None
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.usefixtures("at_once")
def test_odd_names_and_many_of_them_stay_short_and_in_quotes(
    repo: Path, mine: Path, ask: Ask
) -> None:
    for number in range(5):
        tree = added(repo, f"other{number}")
        git(tree, "checkout", "-qb", f"run(rm)-{'x' * 90}{number}")
        (tree / "app.py").write_text("b = 1\n")
    text = told(ask(edit(mine)))
    assert (
        text is not None
        and len(text) <= 600
        and "“run(rm)-" in text
        and " more. Git merges" in text
    )


def test_what_there_was_no_time_for_is_told_at_a_later_edit(
    repo: Path, mine: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    (added(repo, "other", "api") / "app.py").write_text("b = 1\n")
    monkeypatch.setattr(neighbours, "_BUDGET_S", -1)
    assert ask(edit(mine)) is None
    monkeypatch.setattr(neighbours, "_BUDGET_S", 60)
    assert told(ask(edit(mine)))


def test_a_series_of_edits_asks_once(repo: Path, mine: Path, ask: Ask) -> None:
    other = added(repo, "other", "api")
    assert neighbours._BUDGET_S > 0
    while ask(edit(mine)) is None and not (kept := list(told_files(repo))):
        pass
    assert kept
    (other / "app.py").write_text("b = 1\n")
    written = json.loads(kept[0].read_text())
    if written[0][1][0]:  # Both others were looked at in time.
        assert ask(edit(mine)) is None


def told_files(repo: Path) -> list[Path]:
    return list((repo / ".git" / "queenbee" / "neighbours").glob("*.json"))


@pytest.mark.usefixtures("at_once")
def test_old_sessions_are_forgotten(repo: Path, mine: Path, ask: Ask) -> None:
    assert ask(edit(mine)) is None
    folder = repo / ".git" / "queenbee" / "neighbours"
    for number in range(60):
        path = folder / f"{number}.json"
        path.write_text("[]")
        os.utime(path, (1, 1))
    assert ask(edit(mine, "new.py", session_id="new")) is None
    assert len(list(folder.iterdir())) == 2


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("session", [None, "", "../../x"])
def test_a_session_without_a_usable_id_writes_nothing_elsewhere(
    repo: Path, mine: Path, ask: Ask, session: str | None
) -> None:
    (added(repo, "other", "api") / "app.py").write_text("b = 1\n")
    text = told(ask(edit(mine, session_id=session), QUEEN_DROID="ui"))
    assert (text is None) == (not session)
    assert [each.name for each in told_files(repo)] == (["x.json"] if session else [])


def test_one_worktree_has_no_neighbours(tree: Path, ask: Ask) -> None:
    assert ask(edit(tree, "src/app.py")) is None
    assert not (tree / ".git" / "queenbee" / "neighbours").exists()
