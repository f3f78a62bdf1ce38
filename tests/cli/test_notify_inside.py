"""`queen msg notify`: the parts inside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hives import Clock, QuickQueen, write_lines
from stamps import format_ms

from queenbee import Hive
from queenbee.cli import calling
from queenbee.core.queue import Want as Wish
from queenbee.services.telling import announcing, people
from queenbee.services.telling.announcing import MOST, PER_S
from queenbee.services.telling.people import STUCK_S, Want
from queenbee.services.waiting.landing_turn import Lander
from queenbee.workflows.people import wants


def once(quick: QuickQueen, *arguments: str, as_: str | None = None) -> list[str]:
    """Returns what is told now, without the time."""
    ran = quick("msg", "notify", "--once", *arguments, as_=as_)
    assert ran.code == 0, ran
    return [line[7:] for line in ran.out.splitlines()]


def test_who_waits_for_what_a_person_has_is_told(
    quick: QuickQueen, beads: Path, open_as: Callable[[str], Hive]
) -> None:
    assert quick("reserve", "src/", as_="human").code == 0
    with open_as("birch").queue.register(Wish(["src/**"]), 10**9):
        assert once(quick) == ["birch waits for src/**, which you have"]
        assert once(quick) == []
    with open_as("birch").queue.register(Wish(["docs/**"]), 10**9):
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
