"""Git in an agent's shell, and edits outside of its own worktree: others' work is safe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import OTHER_SESSION, edit_of, recorded, shaped
from hives import QuickQueen, git
from news_events import Ask

from queenbee.hook import shell_commands


def runs(command: str, tree: Path, **changes: object) -> bytes:
    """Returns Claude Code's input before it runs a command."""
    given = {"tool_name": "Bash", "tool_input": {"command": command}, **changes}
    return recorded("claude/pre-edit", tree, **given)


def refusal(answer: dict[str, Any] | None) -> str:
    """Returns why an agent is refused something; empty if it is not."""
    return (answer or {}).get("hookSpecificOutput", {}).get("permissionDecisionReason", "")


@pytest.fixture
def edited(tree: Path, ask: Ask) -> Path:
    """A tree in which another session has edited a file."""
    (tree / "own.py").touch()
    (tree / "src" / "more").mkdir()
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "begin")
    assert ask(edit_of(tree / "src" / "app.py", tree, session_id=OTHER_SESSION)) is None
    return tree


@pytest.mark.parametrize(
    "command",
    [
        "git stash",
        "git stash push -u",
        "git stash -u && ls",
        "git checkout -b topic",
        "git checkout .",
        "git switch topic",
        "git restore .",
        "git reset --hard HEAD~1",
        "git clean -fdx",
        "git add -A && git commit -m x",
        "git add .",
        "cd src/more && git -C .. stash",
        "A=1 git -c a.b=c stash\nls",
        "ls; (git stash)",
        "git checkout -- '*.py'",
        "git restore ':(glob)**'",
        "git add ':(top)'",
        "git add ..",
        "git reset --har",
        "git add --al",
        "git clean --forc",
        "git restore --sta --work .",
    ],
)
def test_what_touches_the_whole_tree_is_refused_while_others_edit_there(
    edited: Path, ask: Ask, command: str
) -> None:
    said = refusal(ask(runs(command, edited)))
    assert "touches all of this working tree, and others have work here" in said
    assert "src/app.py (claude-7c9e6679)" in said
    assert "queen worktree add NAME" in said
    assert refusal(ask(runs(command, edited, session_id=OTHER_SESSION))) == ""


@pytest.mark.parametrize(
    "before",
    [
        "env", "env -i A=1", "sudo", "sudo -u me", "/usr/bin/time -p", "command", "nice -n 5",
        "timeout -k 1 5m", "!", "{", "if true; then", "A=1 nohup",
    ],
)  # fmt: skip
def test_so_is_it_behind_what_runs_it(edited: Path, ask: Ask, before: str) -> None:
    assert "touches all of this working tree" in refusal(ask(runs(f"{before} git stash", edited)))
    assert ask(runs(f"{before} ls git stash", edited)) is None


@pytest.mark.parametrize(
    "command",
    [
        "git stash # it's mine",
        "# it's mine\ngit stash",
        "echo it\\'s mine; git stash",
        "cat > a <<EOF\nit's\nEOF\ngit stash; echo 'it'",
        "git commit -F - <<'END' && git stash\nDon't\nEND",
        "git stash; echo 'it",
        "git stash 'it",
    ],
)
def test_so_is_it_whatever_an_apostrophe_is_in(edited: Path, ask: Ask, command: str) -> None:
    assert "touches all of this working tree" in refusal(ask(runs(command, edited)))


def test_so_is_it_while_a_file_is_changed_that_another_reserved_there(
    tree: Path, ask: Ask, quick: QuickQueen
) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "begin")
    git(tree, "worktree", "add", "-q", "-b", "other", "../other")
    other = tree.parent / "other"
    assert quick("reserve", "src/**", as_="reviewer").code == 0
    assert ask(runs("git stash", tree)) is None  # Nothing is changed.
    for place in (tree, other):
        (place / "src" / "new.py").touch()
    assert "src/** (reviewer)" in refusal(ask(runs("git stash -u", tree)))
    assert ask(runs("git stash -u", other)) is None
    assert ask(runs("git stash -u", tree), QUEEN_DROID="reviewer") is None


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -- src/app.py",
        "git restore src/app.py",
        "git checkout src/app.py",
        "git checkout HEAD src/app.py",
    ],
)
def test_what_sets_back_a_file_is_an_edit_of_it(edited: Path, ask: Ask, command: str) -> None:
    assert "reserved by claude-7c9e6679" in refusal(ask(runs(command, edited)))


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git stash list",
        "git stash pop stash@{0}",
        "git reset src/app.py",
        "git clean -fn",
        "git add own.py",
        "git restore --staged .",
        "git restore own.py",
        "git checkout -- own.py",
        "echo 'git stash'",
        "git commit -m 'git stash'",
        "git -C /nowhere stash",
        "git 'stash",
        "echo a#b 'git stash'",
        "echo a # git stash\nls",
        "cat > a <<EOF\ngit stash\nEOF\nls",
        "git reset --soft",
        "git add 'own*2.py'",
        "git",
        "cd",
        "",
    ],
)
def test_all_else_passes(edited: Path, ask: Ask, command: str) -> None:
    (edited / "own*2.py").touch()
    assert ask(runs(command, edited)) is None


def test_a_command_that_is_long_is_refused_as_a_short_one(edited: Path, ask: Ask) -> None:
    for command in ("env " * 200_000 + "git stash", "git " + "-p " * 200_000 + "stash"):
        assert "touches all" in refusal(ask(runs(command, edited)))


def test_a_tree_is_looked_at_once_however_often_git_is_called(
    edited: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    monkeypatch.setattr(shell_commands, "_of_tree", lambda folder, *_: looks.append(folder) or "")
    assert ask(runs("git add -A; cd src; git restore app.py; git add -A; cd ..;" * 9, edited))
    assert looks == [str(edited), str(edited / "src")]


def test_alone_in_a_tree_everything_passes(edited: Path, ask: Ask, quick: QuickQueen) -> None:
    git(edited, "worktree", "add", "-q", "../other")
    other = edited.parent / "other"
    assert ask(edit_of(other / "own.py", other)) is None
    assert ask(runs("git stash", other)) is None
    assert ask(shaped("claude/session-end", edited, session_id=OTHER_SESSION)) is None
    assert ask(runs("git stash", edited)) is None


@pytest.mark.parametrize(
    ("shape", "tool"),
    [
        ("codex/pre-tool-use", "Bash"),
        ("gemini/before-tool", "run_shell_command"),
        ("qwen/pre-edit", "run_shell_command"),
        ("cursor/pre-tool-use", "Shell"),
    ],
)
def test_other_agents_are_refused_in_their_own_shape(
    edited: Path, ask: Ask, shape: str, tool: str
) -> None:
    given = recorded if shape == "qwen/pre-edit" else shaped
    answer = ask(given(shape, edited, tool_name=tool, tool_input={"command": "git stash"}))
    assert "touches all of this working tree" in json.dumps(answer)
    assert "deny" in json.dumps(answer)


def test_the_stash_of_another_branch_is_not_popped_unnamed(tree: Path, ask: Ask) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "begin")
    git(tree, "worktree", "add", "-q", "-b", "other", "../other")
    (tree / "src" / "app.py").write_text("a = 2\n")
    git(tree, "stash")
    other = tree.parent / "other"
    said = refusal(ask(runs("git stash pop", other)))
    assert "the newest one is of branch main" in said
    assert "git stash list" in said
    assert ask(runs("git stash pop stash@{0}", other)) is None
    assert ask(runs("git stash pop", tree)) is None


def test_an_edit_outside_of_its_own_worktree_is_refused_with_the_path_that_was_meant(
    tree: Path, ask: Ask, quick: QuickQueen
) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "begin")
    for name in ("api", "ui"):
        assert quick("worktree", "add", name).code == 0
    own = tree.parent / f"{tree.name}-api"
    for place, whose in ((tree, "the main worktree"), (tree.parent / f"{tree.name}-ui", "of ui")):
        said = refusal(ask(edit_of(place / "src" / "app.py", own)))
        assert f"{place}/src/app.py is in " in said
        assert whose in said
        assert f"the file that you mean is {own}/src/app.py" in said
    assert ask(edit_of(own / "src" / "app.py", own)) is None
    assert refusal(ask(edit_of(own / "src" / "more.py", tree))) == ""
    assert ask(edit_of(tree / ".beads" / "notes", own)) is None
