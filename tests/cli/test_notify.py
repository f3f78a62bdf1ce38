"""`queen msg notify`: a person is called when something wants them, once, and not too often."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hives import Queen, QuickQueen, snapshot

EVIL = "$(touch ran) `touch ran` \x1b[31m<b>“\n; touch ran"
NOTE = """
import json, os, sys
event = {key: each for key, each in os.environ.items() if key.startswith("QUEEN_EVENT")}
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([event, json.load(sys.stdin)]) + "\\n")
"""


@pytest.fixture
def noting(tmp_path: Path) -> tuple[str, Path]:
    """A command for --run that notes what it was given, and where it notes that."""
    script, notes = tmp_path / "note it.py", tmp_path / "notes"
    script.write_text(NOTE)
    return f"{sys.executable} '{script}' '{notes}'", notes


def noted(notes: Path) -> list[Any]:
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def once(quick: QuickQueen, *arguments: str, as_: str | None = None) -> list[str]:
    """Returns what is told now, without the time."""
    ran = quick("msg", "notify", "--once", *arguments, as_=as_)
    assert ran.code == 0, ran
    return [line[7:] for line in ran.out.splitlines()]


# What wants a person


def test_messages_to_human_and_to_you_are_told_once(quick: QuickQueen, beads: Path) -> None:
    assert once(quick) == []
    quick("msg", "send", "human", "Which tax?", "--ack", as_="amber")
    quick("msg", "send", "human", "Totals are in", as_="amber")
    quick("msg", "send", "ann", "Hello Ann", "--new", as_="amber")
    assert sorted(once(quick)) == [
        "amber wants your answer: “Which tax?”",
        "amber wrote to you: “Totals are in”",
    ]
    assert once(quick) == []
    assert "amber wrote to you: “Hello Ann”" in once(quick, as_="ann")


def test_commands_from_elsewhere_are_told_once(asking: Path, quick: QuickQueen, repo: Path) -> None:
    assert quick("init").code == 0
    for check in ("true", "id"):
        (repo / ".beads" / "queen.toml").write_text(f'[land]\ntarget = "main"\ncheck = "{check}"\n')
        [told] = once(quick)
        assert told == "commands wait for you to look at them, 1 in all: queen config trust"
        assert once(quick) == []
    assert quick("config", "trust", "--yes").code == 0
    assert once(quick) == []


def test_a_gate_that_failed_is_told_for_each_run(quick: QuickQueen, repo: Path) -> None:
    phase = ("-w", "wf_1", "-p", "phase_1")
    assert quick("init").code == 0
    quick("gate", "new", *phase, "--name", "G", as_="amber")
    quick("gate", "add-rule", *phase, "--exists", "report.md", as_="amber")
    assert once(quick) == []
    for _ in range(2):
        quick("gate", "run", *phase, as_="amber")
        [told] = once(quick)
        assert told.startswith("gate wf_1/phase_1 failed: “report.md exists: failed:")
        assert once(quick) == []
    (repo / "report.md").write_text("x")
    assert quick("gate", "run", *phase, as_="amber").code == 0
    assert once(quick) == []


def test_it_reads_no_mail_and_is_no_sign_of_life(
    quick: QuickQueen, beads: Path, repo: Path
) -> None:
    quick("msg", "send", "human", "hello", as_="amber")
    records = snapshot(beads)
    assert once(quick, as_="ann") == ["amber wrote to you: “hello”"]
    assert snapshot(beads) == records
    assert not (repo / ".git" / "queenbee" / "droids" / "ann").exists()
    assert len(quick("msg", "inbox", "--unread", "--json", as_="human").json) == 1


# How


def test_a_command_gets_the_event_and_never_a_shell(
    quick: QuickQueen, beads: Path, repo: Path, noting: tuple[str, Path]
) -> None:
    command, notes = noting
    quick("msg", "send", "human", "x", "--subject", EVIL, as_="amber")
    once(quick, "--run", command)
    [[env, event]] = noted(notes)
    assert event["event"] == env["QUEEN_EVENT"] == "message"
    assert event["droid"] == env["QUEEN_EVENT_DROID"] == "amber"
    assert event["hive"] == env["QUEEN_EVENT_HIVE"] == str(repo)
    assert event["about"].startswith("qm-")
    assert event["text"] == env["QUEEN_EVENT_TEXT"]
    assert "$(touch ran)" in event["text"] and event["text"].isprintable()
    assert not (repo / "ran").exists()
    assert "QUEEN_DROID" not in env


@pytest.mark.parametrize("command", ["", "no-such-command-here x", "'unbalanced"])
def test_a_command_that_cannot_run_is_refused_at_once(
    quick: QuickQueen, beads: Path, command: str
) -> None:
    ran = quick("msg", "notify", "--once", "--run", command)
    assert (ran.code, ran.out) == (2, "")
    assert "--run" in ran.err


def test_json_lists_what_was_told(quick: QuickQueen, beads: Path) -> None:
    quick("msg", "send", "human", "hello", as_="amber")
    [event] = quick("msg", "notify", "--once", "--json").json
    assert {key: event[key] for key in ("event", "droid", "text")} == {
        "event": "message",
        "droid": "amber",
        "text": "amber wrote to you: “hello”",
    }


# Watching


@pytest.mark.slow
def test_it_tells_while_others_write_until_it_is_stopped(
    queen: Queen, quick: QuickQueen, beads: Path, repo: Path, noting: tuple[str, Path]
) -> None:
    command, notes = noting
    watching = queen.start("msg", "notify", "--run", command)
    assert watching.stdout is not None
    try:
        quick("msg", "send", "human", "one", as_="amber")
        assert "“one”" in watching.stdout.readline()
        quick("msg", "send", "human", "two", as_="amber")
        assert "“two”" in watching.stdout.readline()
        phase = ("-w", "wf_1", "-p", "phase_1")
        quick("gate", "new", *phase, "--name", "G", as_="amber")
        quick("gate", "add-rule", *phase, "--exists", "report.md", as_="amber")
        quick("gate", "run", *phase, as_="amber")
        assert "gate wf_1/phase_1 failed" in watching.stdout.readline()
        # The line comes first, and then the command.
        deadline_s = time.monotonic() + 60
        while len(noted(notes)) < 3 and time.monotonic() < deadline_s:
            time.sleep(0.05)
    finally:
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate(timeout=60)
    assert (watching.returncode, out) == (130, "")
    assert "interrupted" in err and "Traceback" not in err
    assert [event["event"] for _, event in noted(notes)] == ["message", "message", "gate"]
