"""`queen doctor` tells of worktrees in which an agent does not ask the hive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from acting import install_guard
from hives import QuickQueen, commit_file, git

Configure = Callable[..., object]

AGENTS = ("claude", "codex", "gemini", "cursor", "opencode", "copilot", "qwen", "kilo")


@pytest.fixture
def linked(quick: QuickQueen, repo: Path, tmp_path: Path) -> Path:
    """A linked worktree of a repository with a sound hive."""
    quick("init")
    commit_file(repo, "a.txt", "a")
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    return tmp_path / "linked"


def told(quick: QuickQueen) -> list[tuple[str, str]]:
    found = quick("doctor", "--json").json
    return [(each["file"], each["hint"]) for each in found if each["code"] == "unprotected"]


def test_a_repository_without_any_agent_lacks_nothing(quick: QuickQueen, linked: Path) -> None:
    assert told(quick) == []


@pytest.mark.some(3)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_worktree_without_the_committed_files_is_named(
    agent: str, quick: QuickQueen, repo: Path, linked: Path, configure: Configure
) -> None:
    configure(agent)
    ((file, hint),) = told(quick)
    assert file.startswith(str(linked))
    assert hint.endswith(f"queen setup {agent} --user")
    assert quick("doctor").code == 0

    git(repo, "add", ".")
    git(repo, "commit", "-q", "--no-verify", "-m", "agents")
    git(linked, "merge", "-q", "main")
    assert told(quick) == []


def test_a_users_settings_protect_every_worktree(
    quick: QuickQueen, linked: Path, configure: Configure
) -> None:
    configure("gemini")
    configure("gemini", user=True)
    assert told(quick) == []


def test_a_worktree_made_later_has_what_was_committed(
    quick: QuickQueen, repo: Path, tmp_path: Path, configure: Configure
) -> None:
    configure("claude", "cursor")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "--no-verify", "-m", "agents")
    git(repo, "worktree", "add", "-q", str(tmp_path / "later"))
    assert told(quick) == []


def test_a_worktree_with_hooks_of_its_own_is_named(
    quick: QuickQueen, repo: Path, linked: Path
) -> None:
    install_guard(repo)
    assert told(quick) == []
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(linked, "config", "--worktree", "core.hooksPath", ".own")
    assert told(quick) == [(str(linked), "there: queen guard install")]


def test_broken_settings_do_not_stop_the_doctor(
    quick: QuickQueen, repo: Path, linked: Path, configure: Configure
) -> None:
    configure("claude")
    (linked / ".claude").mkdir()
    (linked / ".claude" / "settings.json").write_text("{oops")
    assert [file for file, _ in told(quick)] == [str(linked / ".claude" / "settings.json")]
