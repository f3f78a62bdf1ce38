"""`queen msg notify`: a person is called when something wants them, once, and not too often."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hives import Clock, Queen, QuickQueen, snapshot, write_lines

from queenbee import Hive
from queenbee.cli import calling
from queenbee.core.queue import Want as Wish
from queenbee.core.timestamps import format_ms
from queenbee.services.telling import announcing, people
from queenbee.services.telling.announcing import MOST, PER_S
from queenbee.services.telling.people import STUCK_S, Want
from queenbee.services.waiting.landing_turn import Lander
from queenbee.workflows.people import wants

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


def test_who_waits_for_what_a_person_has_is_told(
    quick: QuickQueen, beads: Path, open_as: Callable[[str], Hive]
) -> None:
    assert quick("reserve", "src/", as_="human").code == 0
    with open_as("birch").queue.register(Wish(["src/**"]), 10**9):
        assert once(quick) == ["birch waits for src/**, which you have"]
        assert once(quick) == []
    with open_as("birch").queue.register(Wish(["docs/**"]), 10**9):
        assert once(quick) == []


def test_commands_from_elsewhere_are_told_once(asking: Path, quick: QuickQueen, repo: Path) -> None:
    assert quick("init").code == 0
    for check in ("true", "id"):
        (repo / ".beads" / "queen.toml").write_text(f'[land]\ncheck = "{check}"\n')
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


def test_a_droid_with_work_that_falls_quiet_is_told_each_time(
    open_as: Callable[..., Hive], beads: Path, clock: Clock
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    amber = open_as("amber")
    amber.assignments.claim("qb-1")
    human = open_as("human")

    def told() -> list[str]:
        return [each.key for each in wants(human)]

    assert told() == []
    clock.advance(16 * 60)
    [first] = told()
    assert first.startswith("quiet:amber:")
    assert [each.text for each in wants(human)] == [
        "amber has qb-1 and gave no sign of life for 16m"
    ]
    amber.messages.send("birch", "still here", new=True)
    assert told() == []
    clock.advance(16 * 60)
    assert told() != [first] and len(told()) == 1
    amber.assignments.release("qb-1")
    assert told() == []


def test_a_landing_that_is_stuck_is_told(
    open_as: Callable[..., Hive], monkeypatch: pytest.MonkeyPatch, beads: Path
) -> None:
    human = open_as("human")

    def told(since_s: float, state: str) -> list[str]:
        since = format_ms(human.now_ms() - round(since_s * 1000))
        landers = lambda _: [Lander("amber", "main", since, state)]  # noqa: E731
        monkeypatch.setattr(people, "landers", landers)
        return [each.text for each in wants(human)]

    assert told(STUCK_S - 1, "landing") == []
    assert told(STUCK_S, "resolving") == [
        "amber has a conflict to resolve before its work is on main, for 10m now"
    ]
    assert told(STUCK_S, "waiting") == ["amber waits before its work is on main, for 10m now"]


def test_it_reads_no_mail_and_is_no_sign_of_life(
    quick: QuickQueen, beads: Path, repo: Path
) -> None:
    quick("msg", "send", "human", "hello", as_="amber")
    records = snapshot(beads)
    assert once(quick, as_="ann") == ["amber wrote to you: “hello”"]
    assert snapshot(beads) == records
    assert not (repo / ".git" / "queenbee" / "droids" / "ann").exists()
    assert len(quick("msg", "inbox", "--unread", "--json", as_="human").json) == 1


# How often


def announcer(hive: Hive, found: list[Want], now: list[float]) -> Any:
    told: list[Want] = []
    made = announcing.Announcer(hive, lambda: list(found), told.append, clock=lambda: now[0])
    return made, told


def many(count: int, begin: int = 0) -> list[Want]:
    return [Want("message", f"qm-{n}", f"text {n}") for n in range(begin, begin + count)]


def test_at_most_five_are_told_in_a_minute_and_the_rest_is_counted(
    open_as: Callable[..., Hive], beads: Path
) -> None:
    found, now = many(12), [0.0]
    made, told = announcer(open_as("human"), found, now)
    made.look()
    assert [each.text for each in told[:-1]] == ["text 0", "text 1", "text 2", "text 3"]
    assert told[-1].text.startswith("8 more things want you")
    found += many(1, begin=50)
    now[0] = PER_S - 1
    assert made.look() == [] and made.next_look_s() == pytest.approx(1)
    now[0] = PER_S
    assert [each.text for each in made.look()] == ["text 50"]
    assert len(told) == MOST + 1


def test_a_restart_repeats_nothing_and_forgets_nothing_that_was_held_back(
    open_as: Callable[..., Hive], beads: Path
) -> None:
    found, now = many(MOST), [0.0]
    first, told = announcer(open_as("human"), found, now)
    first.look()
    found += many(1, begin=9)
    first.look()
    assert len(told) == MOST
    second, told = announcer(open_as("human"), found, now)
    second.look()
    assert [each.text for each in told] == ["text 9"]


def test_where_nothing_can_be_remembered_a_thing_is_told_once_by_each_process(
    open_as: Callable[..., Hive], beads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcing.Told, "add", lambda *_: False)
    made, told = announcer(open_as("human"), many(2), [0.0])
    made.look()
    made.look()
    assert len(told) == 2


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


def test_a_command_that_fails_is_reported_and_the_next_one_runs(
    quick: QuickQueen, beads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("one", "two"):
        quick("msg", "send", "human", text, as_="amber")
    ran = quick("msg", "notify", "--once", "--run", "sh -c 'exit 3'")
    assert ran.code == 0 and len(ran.out.splitlines()) == 2
    assert ran.err.count("sh exited with status 3") == 2
    monkeypatch.setattr(calling, "_TIMEOUT_S", 0.1)
    quick("msg", "send", "human", "three", as_="amber")
    assert "timed out" in quick("msg", "notify", "--once", "--run", "sleep 60").err


def test_the_desktop_gets_the_text_as_one_argument_without_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, args = tmp_path / "notify-send", tmp_path / "args"
    send.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {args}\n')
    send.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert calling.by_desktop("shop") is None
    monkeypatch.setenv("DISPLAY", ":0")
    call = calling.by_desktop("-shop\n")
    assert call is not None
    call(Want("message", "qm-1", "amber: “<b>$(touch ran)</b>”"))
    assert args.read_text().splitlines() == [
        "--app-name=QueenBee",
        "--",
        "QueenBee: -shop ",
        "amber: “&lt;b&gt;$(touch ran)&lt;/b&gt;”",
    ]


def test_macos_gets_the_texts_as_arguments_of_a_fixed_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(calling.sys, "platform", "darwin")
    monkeypatch.setattr(calling.shutil, "which", {"osascript": "/bin/osascript"}.get)
    ran: list[Any] = []
    monkeypatch.setattr(calling, "_run", lambda *given: ran.append(given))
    call = calling.by_desktop("shop")
    assert call is not None
    call(Want("message", "qm-1", '" & do shell script "touch ran'))
    [(command, _, _)] = ran
    assert [*command[-3:]] == ["--", "QueenBee: shop", '" & do shell script "touch ran']
    assert command[1::2][:3] == ("-e", "-e", "-e")


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
