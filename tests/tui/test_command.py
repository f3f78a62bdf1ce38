"""`queen watch` as a command: where it runs, and in a real terminal."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hives import COMMAND, Queen, QuickQueen, at_a_terminal, write_lines

from queenbee.cli.commands import watch

EXTRAS = [
    ((), "textual", "watch"),
    (("--web",), "uvicorn", "web"),
    (("--web",), "starlette", "web"),
]


@pytest.mark.parametrize(("words", "package", "extra"), EXTRAS)
def test_without_the_extra_the_command_says_which(
    quick: QuickQueen,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    package: str,
    extra: str,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(watch, "find_spec", lambda name: None if name == package else find(name))
    done = quick("watch", *words, "--json")
    assert done.code == 2  # --json is refused before.
    done = quick("watch", *words)
    assert done.code == 8
    assert f"needs the Python package {package} " in done.err
    assert f"pip install 'queenbee-hive[{extra}]'" in done.err


def test_where_nothing_can_be_drawn_it_names_what_can_be_read(quick: QuickQueen) -> None:
    done = quick("watch")
    assert done.code == 2
    assert "needs a terminal" in done.err
    assert "queen status" in done.err
    assert "queen status --json" in quick("watch", "--json").err
    assert "queen watch --web --port 80" in quick("watch", "--port", "80").err


def test_a_terminal_that_says_it_is_dumb_is_none(queen: Queen) -> None:
    queen("init")
    assert "and TERM=dumb says there is none" in at_a_terminal(queen, "", "watch")[1]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux to drive by keys")
def test_a_session_in_tmux_is_driven_by_keys(
    quick: QuickQueen, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick("init")
    write_lines(
        repo / ".beads" / "issues.jsonl",
        {"id": "qb-1", "title": "Paint the [red]door[/red]", "status": "open"},
    )
    quick("claim", "qb-1", as_="ui")

    def tmux(*words: str) -> str:
        whole = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null", *words]
        return subprocess.run(whole, capture_output=True, text=True, check=True).stdout

    def shows(text: str) -> None:
        end_s = time.monotonic() + 60
        while text not in (seen := tmux("capture-pane", "-p")):
            assert time.monotonic() < end_s, seen
            time.sleep(0.1)

    # A shell may have exported the width that its terminal had then.
    monkeypatch.setenv("COLUMNS", "80")
    # The shell says how it ended: tmux itself may learn it late, or never.
    watching = shlex.join([*COMMAND, "watch"])
    start = f"{watching}; echo ended with $?; sleep 60"
    tmux("new-session", "-d", "-x", "80", "-y", "24", "-c", str(repo), start)
    try:
        shows("● active")
        shows("human  ")  # A person without a name acts as human.
        tmux("send-keys", "2")
        tmux("send-keys", "Enter")
        shows("esc back")
        shows("Paint the [red]door[/red]")
        tmux("send-keys", "q")
        shows("/ filter")
        quick("msg", "send", "human", "Which red?", as_="ui")
        tmux("send-keys", "4")
        shows("Which red?")
        tmux("resize-window", "-x", "150", "-y", "45")
        shows("8 Checks and gates")
        tmux("send-keys", "q")
        shows("ended with 0")
    finally:
        tmux("kill-server")
