"""`queen issue wait`: for issues, ready work, free files and mail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acting import answer
from hives import Clock, QuickQueen, write_lines
from waiters import waits

from queenbee import Hive
from queenbee.errors import Busy, InvalidInput, NotFound

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


@pytest.fixture(autouse=True)
def _tracked(beads: Path) -> None:
    write_lines(
        beads / "issues.jsonl",
        {"id": "qb-1", "title": "first", "status": "open"},
        {"id": "qb-2", "title": "then", "status": "open", "dependencies": ["qb-1"]},
    )


def wait_for(hive: Hive, *options: str, timeout: str = "30s") -> dict[str, Any]:
    """Returns what ended `queen issue wait`; a refusal is raised."""
    found: dict[str, Any] = answer(hive, "issue", "wait", *options, "--timeout", timeout)
    return found


def soon(act: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.2, act)
    timer.start()
    return timer


def test_for_several_issues_ends_when_all_are_done(open_as: Opener, reviewer: Hive) -> None:
    for each in ("qb-1", "qb-2"):
        reviewer.assignments.claim(each)
        reviewer.assignments.complete(each)
    assert wait_for(open_as("ui"), "qb-1", "qb-2", timeout="0s") == {"issues": ["qb-1", "qb-2"]}


def test_for_an_issue_ends_when_it_is_completed(open_as: Opener, reviewer: Hive) -> None:
    reviewer.assignments.claim("qb-1")
    timer = soon(lambda: open_as("reviewer").assignments.complete("qb-1"))
    assert wait_for(open_as("ui"), "qb-1") == {"issues": ["qb-1"]}
    timer.join()


def test_for_a_free_pattern_ends_when_it_is_released(open_as: Opener, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["src/**"])
    timer = soon(lambda: open_as("reviewer").reservations.release(["src/**"]))
    assert wait_for(open_as("ui"), "--free=src/a.py") == {"free": ["src/a.py"]}
    timer.join()


def test_for_mail_ends_when_there_is_some(open_as: Opener) -> None:
    open_as("ui").messages.send("reviewer", "hello")
    timer = soon(lambda: open_as("reviewer").messages.send("ui", "hello"))
    (mail,) = wait_for(open_as("ui"), "--mail").values()
    assert [each["body"] for each in mail] == ["hello"]
    timer.join()


def test_for_ready_work_ends_when_all_is_done(open_as: Opener, hive: Hive) -> None:
    ready = wait_for(hive, "--ready", timeout="0s")["ready"]
    assert [each["id"] for each in ready] == ["qb-1"]
    for each in ("qb-1", "qb-2"):
        hive.assignments.claim(each)
        hive.assignments.complete(each)
    assert wait_for(open_as("ui"), "--ready", timeout="0s") == {"ready": []}


def test_ends_at_the_timeout_and_says_what_is_missing(hive: Hive, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["src/**"])
    with pytest.raises(Busy, match="not done: qb-1; held by reviewer; no unread messages"):
        wait_for(hive, "qb-1", "--free=src/a.py", "--mail", timeout="0s")


def test_for_nothing_or_for_an_unknown_issue_is_refused(hive: Hive) -> None:
    with pytest.raises(InvalidInput, match="nothing to wait for"):
        wait_for(hive)
    with pytest.raises(NotFound, match="qb-9"):
        wait_for(hive, "qb-9", timeout="0s")


def test_the_command_exits_with_status_6_at_the_timeout(quick: QuickQueen) -> None:
    assert quick("issue", "wait", "qb-1", "--timeout", "0s", as_="ui").code == 6
    ready = quick("issue", "wait", "--ready", "--timeout", "0s", as_="ui")
    assert ready.code == 0
    assert "qb-1" in ready.out


def test_the_status_shows_who_waits_for_what(
    reviewer: Hive, quick: QuickQueen, frozen: Clock
) -> None:
    with (
        waits(reviewer, "src/**"),
        waits(reviewer, any_issue=True),
    ):
        shown = quick("status", as_="ui").out
        assert "reviewer waits for src/**" in shown
        assert "reviewer waits for any issue" in shown
        assert len(quick("status", "--json", as_="ui").json["queue"]) == 2
