"""`queen prompt`: one line for shells, tmux and agents, in which others' names can run nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, write_lines
from prompts import HOSTILE, SCRIPT, installed, line
from waiters import waits

from queenbee import Hive

SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
NOW = {"created_at": "2024-12-14T10:00:00.123456Z", "updated_at": "2024-12-14T10:00:00.123456Z"}


def has(beads: Path, *issues: str, droid: str = "amber") -> None:
    """Makes a hive in which a droid has these issues, whatever they are called."""
    write_lines(
        beads / "queen_assignments.jsonl",
        *(
            {"id": f"qa-{n}", **NOW, "issue_id": issue, "droid": droid, "status": "active"}
            for n, issue in enumerate(issues)
        ),
    )


# What it says


def test_it_names_your_issue_your_mail_and_who_waits_for_you(
    quick: QuickQueen, beads: Path, open_as: Callable[[str], Hive]
) -> None:
    assert line(quick) == "amber ▸ no issue\n"
    has(beads, "shop-3")
    assert line(quick) == "amber ▸ shop-3\n"
    for text in ("one", "two"):
        assert quick("msg", "send", "amber", text, as_="birch").code == 0
    assert line(quick) == "amber ▸ shop-3 · 2 unread\n"
    assert quick("reserve", "src/", as_="amber").code == 0
    with waits(open_as("birch"), "src/**", wait_s=10**9):
        assert line(quick) == "amber ▸ shop-3 · 2 unread · 1 waits\n"
        with waits(open_as("cedar"), issue_id="shop-3", wait_s=10**9):
            assert line(quick) == "amber ▸ shop-3 · 2 unread · 2 wait\n"
            assert line(quick, as_="birch") == "birch ▸ no issue\n"
    assert line(quick, "--ascii") == "amber > shop-3, 2 unread\n"


def test_without_a_name_it_tells_a_person_about_all(
    quick: QuickQueen, beads: Path, open_as: Callable[[str], Hive]
) -> None:
    assert line(quick, as_=None) == "hive ▸ 0 at work\n"
    has(beads, "shop-1", "shop-2")
    assert quick("msg", "send", "human", "Which tax?", as_="amber").code == 0
    with waits(open_as("birch"), issue_id="shop-1", wait_s=10**9):
        assert line(quick, as_=None) == "hive ▸ 1 at work · 1 unread · 1 waits\n"


def test_outside_a_hive_it_prints_nothing_and_exits_0(tmp_path: Path, quick: QuickQueen) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ran = quick("prompt", cwd=elsewhere)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    done = installed(elsewhere)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert quick("prompt", "--json", cwd=elsewhere).json == {"line": ""}


def test_json_has_the_parts(quick: QuickQueen, beads: Path) -> None:
    has(beads, "shop-3")
    assert json.loads(line(quick, "--json")) == {
        "droid": "amber",
        "issues": ["shop-3"],
        "unread": 0,
        "waits": 0,
        "at_work": 0,
        "line": "amber ▸ shop-3",
    }


# What others' names can do


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.parametrize("name", HOSTILE[2:5])
def test_tmux_runs_and_changes_nothing_of_a_name(
    repo: Path, beads: Path, tmp_path: Path, name: str
) -> None:
    has(beads, name)
    expected = installed(repo, "--for", "tmux", "--as", "amber").stdout.strip()
    command = f"cd {repo} && {sys.executable} {SCRIPT} prompt --for tmux --as amber"
    script = tmp_path / "line.sh"
    script.write_text(f"{command}\n")
    sockets = {**os.environ, "TMUX_TMPDIR": str(tmp_path), "LC_ALL": "C.UTF-8"}
    sockets.pop("TMUX", None)

    def tmux(server: str, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", server, "-f", "/dev/null", *arguments],
            env=sockets,
            cwd=repo,
            capture_output=True,
            text=True,
        )
        return done.stdout

    try:
        tmux("inner", "new-session", "-d", "-x", "150", "-y", "9", "sleep 60")
        tmux("inner", "set", "-g", "status-interval", "1")
        tmux("inner", "set", "-g", "status-right-length", "120")
        tmux("inner", "set", "-g", "status-right", f"#(sh {script})|")
        attach = "tmux -u -L inner attach"
        tmux("outer", "new-session", "-d", "-x", "150", "-y", "12", attach)
        deadline_s = time.monotonic() + 30
        while "amber" not in (screen := tmux("outer", "capture-pane", "-p")):
            assert time.monotonic() < deadline_s, screen
            time.sleep(0.1)
    finally:
        tmux("outer", "kill-server")
        tmux("inner", "kill-server")
    assert f"{expected}|" in screen
    assert not (repo / "ran").exists()


# Edges


def test_a_hive_that_cannot_be_read_is_an_error(quick: QuickQueen, repo: Path, beads: Path) -> None:
    (beads / "redirect").write_text("nowhere")
    done = installed(repo, QUEEN_DROID="amber")
    assert done.returncode == quick("prompt").code == 7
    assert done.stdout == "" and "redirect" in done.stderr


def test_nobody_who_reads_is_no_error(repo: Path, beads: Path) -> None:
    command = f"{sys.executable} {SCRIPT} prompt --as amber"
    done = subprocess.run(
        ["bash", "-c", f"{command} >&-; echo $?"], cwd=repo, capture_output=True, text=True
    )
    assert done.stdout == "0\n" and "Traceback" not in done.stderr


# A session of Claude Code


def asks(repo: Path, session: str = SESSION) -> str:
    """Returns what Claude Code gives its status line."""
    return json.dumps({"session_id": session, "cwd": str(repo), "model": {"id": "x"}})


def test_a_status_line_knows_the_name_of_its_session(
    quick: QuickQueen, repo: Path, tmp_path: Path, beads: Path
) -> None:
    from entry_points import run_hook

    def begin(session: str) -> None:
        event = {"hook_event_name": "SessionStart", "session_id": session, "cwd": str(repo)}
        run_hook(json.dumps(event | {"source": "startup"}).encode(), {}, str(repo))

    def shown(session: str) -> str:
        done = installed(tmp_path, "--for", "claude", stdin=asks(repo, session))
        assert done.returncode == 0
        return done.stdout

    assert shown(SESSION) == "hive ▸ 0 at work\n"  # Its hook has not run.
    begin(SESSION)
    assert shown(SESSION) == "claude-1b4e28ba ▸ no issue\n"
    assert quick("hive", "whoami", "--set", "amber").code == 0
    assert shown(SESSION) == "amber ▸ no issue\n"
    other = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
    begin(other)
    assert shown(other) == "amber-6fa459ea ▸ no issue\n"
    assert quick("prompt", "--for", "claude", stdin=asks(repo, other)).out == shown(other)


def test_a_name_that_was_given_is_that_of_the_session(repo: Path, beads: Path) -> None:
    done = installed(repo, "--for", "claude", stdin=asks(repo), QUEEN_DROID="birch")
    assert done.stdout == "birch ▸ no issue\n"


@pytest.mark.parametrize("stdin", ["", "no json", "[]", '{"cwd": 3, "session_id": []}', "[" * 9999])
def test_odd_input_names_nobody(repo: Path, beads: Path, stdin: str) -> None:
    done = installed(repo, "--for", "claude", stdin=stdin)
    assert (done.returncode, done.stdout) == (0, "hive ▸ 0 at work\n")
