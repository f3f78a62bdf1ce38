"""A request to end that comes while checks run: nothing stays, and what happened is recorded."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest
from bead_files import put_bead, ralph_bead
from hives import COMMAND, Queen, QuickQueen, records
from live_processes import is_alive

pytestmark = pytest.mark.slow

BEGIN = "echo $$ > 1.pid; sleep 600 & echo $! > 2.pid; echo yes > begun; "
COOPERATIVE = BEGIN + "wait"
STUBBORN = f"trap '' TERM HUP INT; {BEGIN} while :; do echo again; done"
GATE = ("-w", "wf", "-p", "p1")
WORDS = {
    "verify": ("bead", "verify", "gt-1"),
    "complete": ("complete", "gt-1"),
    "run": ("bead", "run", "gt-1", "--agent-cmd", "true"),
    "run-agent": ("bead", "run", "gt-1", "--agent-cmd", COOPERATIVE),
    "gate": ("gate", "run", *GATE),
}


@pytest.fixture
def place(quick: QuickQueen, repo: Path) -> Path:
    """A claimed bead and a gate whose check says when it has begun, and then waits."""
    os.mkfifo(repo / "begun")
    put_bead(repo, ralph_bead("gt-1", COOPERATIVE, "touch later"))
    quick("claim", "gt-1", as_="ui")
    quick("gate", "new", *GATE)
    quick("gate", "add-rule", *GATE, "--test", COOPERATIVE)
    return repo


def assert_nothing_runs(repo: Path) -> None:
    started = [int((repo / name).read_text()) for name in ("1.pid", "2.pid")]
    assert [pid for pid in started if is_alive(pid)] == []
    assert not (repo / "later").exists()


def last_run(beads: Path) -> dict[str, Any]:
    return records(beads / "queen_verifications.jsonl")[-1]


def ended(process: subprocess.Popen[str]) -> int:
    """Returns the exit status, once the process has ended without a traceback."""
    _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    return process.returncode


@pytest.mark.some(4)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_the_group_ends_and_the_attempt_is_recorded(
    queen: Queen, place: Path, beads: Path, words: tuple[str, ...], name: str
) -> None:
    process = queen.start(*words, as_="ui")
    # Opening waits until the check has opened the other end: it runs by then.
    assert (place / "begun").read_text() == "yes\n"
    process.send_signal(signal.Signals[name])
    assert ended(process) == 130
    assert_nothing_runs(place)
    assert last_run(beads)["verdict"] == "interrupted"
    assert "interrupted" in [one["status"] for one in last_run(beads)["results"]]
    assert (beads / "active" / "gt-1.json").exists()
    assert queen("gate", "check", *GATE).code == 1
    assert [one["issue_id"] for one in queen("issue", "assignments", "--json").json] == ["gt-1"]


def test_the_bead_goes_on_with_its_next_attempt(queen: Queen, place: Path, beads: Path) -> None:
    process = queen.start("bead", "run", "gt-1", "--agent-cmd", "true", as_="ui")
    assert (place / "begun").read_text() == "yes\n"
    process.terminate()
    assert ended(process) == 130
    path = beads / "active" / "gt-1.json"
    left = json.loads(path.read_text())
    assert (left["status"], left["ralph_meta"]["attempt_count"]) == ("in_progress", 1)
    path.write_text(json.dumps({**left, "dod": ralph_bead("gt-1", "true")["dod"]}))
    done = queen("bead", "run", "gt-1", "--agent-cmd", "true", "--json", as_="ui")
    assert (done.json["status"], done.json["attempts"]) == ("completed", 2)


@pytest.mark.thorough
def test_a_check_that_ignores_every_signal_is_killed(
    queen: Queen, place: Path, repo: Path, beads: Path
) -> None:
    put_bead(repo, ralph_bead("gt-1", STUBBORN, "touch later"))
    process = queen.start("complete", "gt-1", as_="ui")
    assert (place / "begun").read_text() == "yes\n"
    # As `timeout` does: to the process, and to its group at once.
    for _ in range(3):
        process.terminate()
    assert ended(process) == 130
    assert_nothing_runs(place)
    assert last_run(beads)["verdict"] == "interrupted"


def test_the_checks_that_a_check_runs_end_with_it(queen: Queen, place: Path, beads: Path) -> None:
    inner = " ".join(f"'{word}'" for word in (*COMMAND, "bead", "verify", "gt-1"))
    process = queen.start("bead", "run", "gt-1", "--agent-cmd", f"{inner}; exit 1", as_="ui")
    assert (place / "begun").read_text() == "yes\n"
    process.terminate()
    assert ended(process) == 130
    assert_nothing_runs(place)
    kept = records(beads / "queen_verifications.jsonl")
    assert [one["verdict"] for one in kept] == ["interrupted", "interrupted"]


def test_closing_the_terminal_ends_the_check(queen: Queen, place: Path, beads: Path) -> None:
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [*COMMAND, "bead", "verify", "gt-1"],
        cwd=place,
        env=queen.environment("ui", None),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    assert (place / "begun").read_text() == "yes\n"
    os.close(ours)
    assert process.wait(timeout=30) == 130
    assert_nothing_runs(place)
    assert last_run(beads)["verdict"] == "interrupted"


def test_nohup_protects_a_check_from_a_hangup(queen: Queen, repo: Path, beads: Path) -> None:
    put_bead(repo, ralph_bead("gt-1", "kill -HUP $PPID"))
    done = subprocess.run(
        ["nohup", *COMMAND, "bead", "verify", "gt-1"],
        cwd=repo,
        env=queen.environment("ui", None),
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, last_run(beads)["verdict"]) == (0, "passed")
