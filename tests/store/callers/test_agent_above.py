"""An agent that takes its environment away and types at a terminal is still known as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hives import BELOW_CLIENT, Queen, at_a_terminal

from queenbee.store.callers.agent_above import _of_ps, is_client

AGENTS = {
    "claude of npm": ("claude", ["claude"]),
    "claude of an SDK": (
        "node",
        ["node", "/x/node_modules/@anthropic-ai/claude-code/cli.js", "-p"],
    ),
    "claude, installed": ("claude", ["/home/a/.local/bin/claude", "--resume"]),
    "gemini": ("MainThread", ["node", "--no-warnings=x", "/usr/local/bin/gemini"]),
    "codex": ("codex", ["/x/node_modules/@openai/codex/vendor/codex/codex", "exec"]),
    "copilot": ("node", ["/usr/bin/node", "/x/node_modules/@github/copilot/index.js"]),
    "cursor-agent": ("node", ["/home/a/.local/share/cursor-agent/versions/1/node", "index.js"]),
    "aider": ("python3.12", ["/usr/bin/python3.12", "/home/a/.local/bin/aider"]),
    "aider, as a module": ("python3", ["python3", "-m", "aider"]),
    "opencode": ("opencode", ["opencode"]),
    "a script of somebody's": ("sh", ["/bin/sh", "./claude"]),
    "the minder of a team": (
        "python",
        ["python", "-I", "-S", "/x/queenbee/starting/processes/minder.py", "7", "log"],
    ),
}
ASKS = "nobody on this machine has seen"
PEOPLE = {
    "VS Code": ("code", ["/usr/share/code/code", "--type=zygote"]),
    "its terminals": ("node", ["/usr/share/code/code", "bootstrap-fork", "--type=ptyHost"]),
    "Cursor": ("cursor", ["/opt/cursor/cursor", "/home/a/claude"]),
    "Cursor over ssh": ("node", ["/home/a/.cursor-server/bin/node", "server-main.js"]),
    "Windsurf": ("windsurf", ["/opt/windsurf"]),
    "an extension": ("node", ["node", "/home/a/.vscode/extensions/anthropic.claude-code/x.js"]),
    "a login shell": ("bash", ["-bash"]),
    "a folder of that name": ("zsh", ["/bin/zsh", "-c", "cd /home/a/claude"]),
    "an argument": ("vim", ["vim", "claude"]),
    "a text": ("python3", ["python3", "-c", "claude", "gemini"]),
    "tmux": ("tmux: server", ["tmux", "new", "-s", "codex"]),
    "no command line": ("kthreadd", [""]),
    "none at all": ("x", []),
}


@pytest.mark.parametrize(("name", "argv"), AGENTS.values(), ids=AGENTS)
def test_a_client_is_known_by_its_program_script_or_package(name: str, argv: list[str]) -> None:
    assert is_client(name, argv)


@pytest.mark.parametrize(("name", "argv"), PEOPLE.values(), ids=PEOPLE)
def test_an_editor_and_a_shell_are_none(name: str, argv: list[str]) -> None:
    assert not is_client(name, argv)


def test_without_proc_ps_says_the_same() -> None:
    parent, _, argv = _of_ps()[os.getpid()]
    assert parent == os.getppid() and "python" in argv[0]


@pytest.fixture
def queen(repo: Path, asking: Path) -> Queen:
    """The command in a repository whose set-up came with it, and a worktree."""
    assert Queen(repo)("worktree", "add", "ui").code == 0
    (repo / ".beads" / "queen.toml").write_text('[worktree]\nsetup = "true"\n')
    return Queen(repo)


def is_unseen(queen: Queen) -> bool:
    """Returns whether nobody has agreed to what the settings run."""
    ran = queen("worktree", "setup", "--json", cwd=queen.cwd.parent / "repo-ui")
    return ran.code == 5 and ran.error["code"] == "untrusted"


def below(name: str, folder: Path) -> list[str]:
    """Returns a program of this name, which runs what it is given without its environment."""
    program = folder / name
    keep = " ".join(
        f'{each}="${each}"' for each in ("PATH", "PYTHONPATH", "XDG_STATE_HOME", "HOME")
    )
    program.write_text(f'#!/bin/sh\nenv -i {keep} GIT_CONFIG_GLOBAL=/dev/null "$@"\nexit $?\n')
    program.chmod(0o755)
    return [str(program)]


@pytest.mark.slow
class TestAtATerminal:
    def test_an_agent_that_took_its_environment_away_trusts_nothing(
        self, queen: Queen, tmp_path: Path
    ) -> None:
        status, shown = at_a_terminal(queen, "y\n", "config", "trust", by=below("claude", tmp_path))
        assert (status, ASKS in shown) == (2, False), shown
        assert is_unseen(queen)

    @pytest.mark.skipif(BELOW_CLIENT, reason="an agent runs these tests")
    def test_a_person_in_the_terminal_of_an_editor_is_asked(
        self, queen: Queen, tmp_path: Path
    ) -> None:
        status, shown = at_a_terminal(queen, "y\n", "config", "trust", by=below("cursor", tmp_path))
        assert status == 0, shown

    def test_what_such_an_agent_sets_does_not_count_as_seen(
        self, queen: Queen, tmp_path: Path
    ) -> None:
        set_ = ("config", "set", "worktree.setup", "touch ../ran")
        assert at_a_terminal(queen, "", *set_, by=below("codex", tmp_path))[0] == 0
        assert is_unseen(queen)

    def test_it_takes_over_no_branch(self, queen: Queen, tmp_path: Path) -> None:
        arguments = ("start", "--adopt", "main", "--agent", "claude")
        status, shown = at_a_terminal(queen, "", *arguments, by=below("gemini", tmp_path))
        assert status == 2 and "only a person hands over a branch" in shown
