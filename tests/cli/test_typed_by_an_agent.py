"""Who may run `queen` may not thereby run anything else: what an agent types is no consent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import QuickQueen, Ran, commit_file, git

AGENT = {"CLAUDECODE": "1"}
UNTRUSTED = 5
TOUCH = "touch ran"


@pytest.fixture
def hive(quick: QuickQueen, repo: Path, asking: Path) -> Path:
    quick("config", "set", "land.check", "true")
    assert quick("msg", "send", "human", "hello", as_="bob").code == 0
    put_bead(repo, ralph_bead("gt-1"))
    return repo


def lands(quick: QuickQueen, hive: Path, **how: dict[str, str]) -> Ran:
    if not (tree := hive.with_name(f"{hive.name}-ui")).exists():
        assert quick("worktree", "add", "ui").code == 0
        commit_file(tree, "a", "x\n")
    return quick("land", "--check", TOUCH, as_="ui", cwd=tree, **how)


@pytest.mark.parametrize(
    "words",
    [
        ("msg", "notify", "--once", "--run", TOUCH),
        ("bead", "run", "gt-1", "--agent-cmd", TOUCH),
        ("start", "--agent", TOUCH, "--no-trial"),
        ("start", "--agent", f"claude,{TOUCH}", "--no-trial"),
        ("start", "--agent", "claude", "--args", "--print", "--no-trial"),
        ("start", "--agent", "claude", "--yolo", "--no-trial"),
    ],
    ids=" ".join,
)
def test_what_it_types_does_not_run(quick: QuickQueen, hive: Path, words: tuple[str, ...]) -> None:
    done = quick(*words, env=AGENT)
    assert (done.code, "no agent has started" in done.err) == (UNTRUSTED, True), done
    assert not (hive / "ran").exists()


def test_a_check_that_it_types_does_not_run(quick: QuickQueen, hive: Path) -> None:
    assert lands(quick, hive, env=AGENT).code == UNTRUSTED
    assert lands(quick, hive).code == 0


def test_it_is_not_told_to_type_one(quick: QuickQueen, hive: Path) -> None:
    assert quick("config", "unset", "land.check").code == 0
    assert quick("worktree", "add", "ui").code == 0
    tree = hive.with_name(f"{hive.name}-ui")
    commit_file(tree, "a", "x\n")
    for env, tells in ((AGENT, False), ({}, True)):
        done = quick("land", as_="ui", cwd=tree, env=env)
        assert (done.code, "queen land --check COMMAND" in done.err) == (2, tells), done


def test_a_machine_without_questions_lets_it(quick: QuickQueen, hive: Path) -> None:
    git(hive, "config", "queenbee.trust", "all")
    assert lands(quick, hive, env=AGENT).code == 0
    assert quick("msg", "notify", "--once", "--run", TOUCH, env=AGENT).code == 0
    assert (hive / "ran").exists()


@pytest.mark.parametrize("words", [("claude", "--allow"), ("claude", "--user")], ids=" ".join)
def test_it_gives_itself_no_more_leave(
    quick: QuickQueen, hive: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    done = quick("setup", *words, env={**AGENT, "HOME": str(home)})
    assert (done.code, "only a person" in done.err) == (2, True), done
    assert not [*home.iterdir()]
    assert not (hive / ".claude").exists()
    assert quick("setup", "claude", env={**AGENT, "HOME": str(home)}).code == 0


def test_a_clone_does_not_bring_it_leave(quick: QuickQueen, hive: Path, tmp_path: Path) -> None:
    assert quick("setup", "claude", "--allow").code == 0
    rules = json.loads((hive / ".claude" / "settings.json").read_text())["permissions"]["allow"]
    assert "Bash(queen:*)" in rules
    git(hive, "add", "-Af")
    git(hive, "commit", "-qm", "settings")
    git(tmp_path, "clone", "-q", str(hive), "clone")
    clone = tmp_path / "clone"
    quick("config", "set", "land.check", "true", cwd=clone)
    assert settings_waiting(quick, clone) == [".claude/settings.json"]
    assert settings_waiting(quick, hive) == []  # It was typed there.


def settings_waiting(quick: QuickQueen, where: Path) -> list[str]:
    found = quick("config", "trust", "--yes", "--json", cwd=where).json["trusted"]
    return [each["from"] for each in found if each["kind"] == "client settings"]


def test_what_was_there_before_is_still_asked_for(quick: QuickQueen, hive: Path) -> None:
    (hive / ".claude").mkdir()
    (hive / ".claude" / "settings.json").write_text('{"env": {"A": "1"}}')
    assert quick("setup", "claude", "--allow").code == 0
    assert settings_waiting(quick, hive) == [".claude/settings.json"]


def test_a_pull_does_not_sign_with_a_name(quick: QuickQueen, hive: Path) -> None:
    assert quick("worktree", "add", "ui").code == 0
    tree = hive.with_name(f"{hive.name}-ui")
    commit_file(tree, "a", "x\n")
    said = hive / ".beads" / "queen.toml"
    said.write_text('[land]\ncheck = "true"\nsignoff = true\n')
    done = quick("land", as_="ui", cwd=tree)
    assert (done.code, "land.signoff" in done.err) == (UNTRUSTED, True), done
    quick("config", "set", "land.signoff", "false")
    quick("config", "set", "land.signoff", "true")
    assert quick("land", as_="ui", cwd=tree).code == 0
