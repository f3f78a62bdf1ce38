"""What `queen init` proposes for new worktrees: to a person, and to everybody else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hives import Queen, at_a_terminal, git

pytestmark = pytest.mark.slow


@pytest.fixture
def queen(repo: Path, asking: Path) -> Queen:
    """The command in a repository with a lock file."""
    (repo / "package-lock.json").write_text("{}")
    return Queen(repo)


def setting(queen: Queen) -> str:
    return str(queen("config", "get", "worktree.setup").out)


def test_nothing_is_set_without_a_person(queen: Queen) -> None:
    done = queen("init", "--json")
    assert done.json["to_set_setup"] == "queen config set worktree.setup 'npm ci'"
    assert "queen config set worktree.setup 'npm ci'" in queen("init").out
    assert setting(queen) == "\n"


def test_a_person_is_asked_and_has_then_seen_it(queen: Queen) -> None:
    status, shown = at_a_terminal(queen, "-\ntrue\n", "init")
    assert status == 0, shown
    assert "by package-lock.json? (-: none) [npm ci]" in shown
    assert setting(queen) == "true\n"
    assert queen("worktree", "add", "ui").code == 0
    assert queen("init", "--json").json["to_set_setup"] == ""


def test_what_worktrees_lack_and_a_hook_that_judges_messages_are_named(
    queen: Queen, repo: Path
) -> None:
    for name, text in {".gitignore": ".env\n", ".env": "A=1\n", ".husky/commit-msg": ""}.items():
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "config", "core.hooksPath", ".husky/_")
    said = queen("init").err
    assert "worktrees lack it; if tests need it: queen config set worktree.copy .env" in said
    assert "queen config set land.message 'chore({id}): land {title}'" in said
    assert queen("config", "set", "worktree.copy", ".env").code == 0
    assert queen("config", "set", "land.message", "chore: {title}").code == 0
    assert queen("init").err == ""


def test_a_hive_that_git_ignores_is_named(queen: Queen, repo: Path) -> None:
    (repo / ".gitignore").write_text(".*\n")
    assert "git ignores .beads/queen.toml, so clones get no settings" in queen("init").err


def test_a_person_may_want_none(queen: Queen) -> None:
    status, shown = at_a_terminal(queen, "-\n-\n", "init")
    assert status == 0, shown
    assert "(-: none, then nothing lands, unless with --unchecked; to check nothing: true)" in shown
    assert re.search(r"queen config set land.check COMMAND +so that nothing lands untested", shown)
    assert setting(queen) == "\n"


def test_a_person_who_says_no_to_an_undo_is_told_that_nothing_was_taken_back(queen: Queen) -> None:
    assert queen("init", "--check", "true").code == 0
    assert queen("issue", "new", "First", "--id", "s-1", as_="human").code == 0
    status, shown = at_a_terminal(queen, "n\n", "undo", "--as", "human")
    assert (status, shown.endswith("nothing was taken back\n")) == (1, True), shown
    assert queen("show", "s-1").code == 0


def test_a_person_without_a_name_gets_the_line_to_type(queen: Queen) -> None:
    assert queen("init", "--check", "true").code == 0
    _, shown = at_a_terminal(queen, "", "msg", "inbox", "--unread")
    assert "  try: queen msg inbox --unread --as human; " in shown
    assert "--as human;" not in queen("msg", "inbox").err
    _, shown = at_a_terminal(queen, "", "msg", "send", "human", "May", "I?")
    assert shown.endswith("  try: queen msg send human 'May I?' --as human\n")


def test_what_stands_for_a_command_is_none(queen: Queen) -> None:
    refused = queen("init", "--check", "COMMAND")
    assert (refused.code, "COMMAND stands for a command" in refused.err) == (2, True)
    assert queen("config", "set", "worktree.setup", "COMMAND").code == 2
