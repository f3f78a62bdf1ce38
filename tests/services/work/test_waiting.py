"""`queen issue wait`: for issues, ready work, free files and mail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, QuickQueen, write_lines
from waiters import waits

from queenbee import Hive
from queenbee.cli import progress
from queenbee.errors import Busy, InvalidInput, NotFound
from queenbee.services.work import Wanted, take_next, wait

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


@pytest.fixture(autouse=True)
def _tracked(beads: Path) -> None:
    write_lines(
        beads / "issues.jsonl",
        {"id": "qb-1", "title": "first", "status": "open"},
        {"id": "qb-2", "title": "then", "status": "open", "dependencies": ["qb-1"]},
    )


def soon(act: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.2, act)
    timer.start()
    return timer


def test_for_several_issues_ends_when_all_are_done(open_as: Opener, reviewer: Hive) -> None:
    for each in ("qb-1", "qb-2"):
        reviewer.assignments.claim(each)
        reviewer.assignments.complete(each)
    assert wait(open_as("ui"), Wanted(issues=["qb-1", "qb-2"]), timeout_s=0) == {
        "issues": ["qb-1", "qb-2"]
    }


def test_for_an_issue_ends_when_it_is_completed(open_as: Opener, reviewer: Hive) -> None:
    reviewer.assignments.claim("qb-1")
    timer = soon(lambda: open_as("reviewer").assignments.complete("qb-1"))
    assert wait(open_as("ui"), Wanted(issues=["qb-1"]), timeout_s=30) == {"issues": ["qb-1"]}
    timer.join()


def test_for_a_free_pattern_ends_when_it_is_released(open_as: Opener, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["src/**"])
    timer = soon(lambda: open_as("reviewer").reservations.release(["src/**"]))
    assert wait(open_as("ui"), Wanted(free=["src/a.py"]), timeout_s=30) == {"free": ["src/a.py"]}
    timer.join()


def test_for_mail_ends_when_there_is_some(open_as: Opener) -> None:
    open_as("ui").messages.send("reviewer", "hello")
    timer = soon(lambda: open_as("reviewer").messages.send("ui", "hello"))
    (mail,) = wait(open_as("ui"), Wanted(mail=True), timeout_s=30).values()
    assert [each.body for each in mail] == ["hello"]  # type: ignore[attr-defined]
    timer.join()


def test_for_ready_work_ends_when_all_is_done(open_as: Opener, hive: Hive) -> None:
    assert [each.id for each in wait(hive, Wanted(ready=True), timeout_s=0)["ready"]] == ["qb-1"]  # type: ignore[attr-defined]
    for each in ("qb-1", "qb-2"):
        hive.assignments.claim(each)
        hive.assignments.complete(each)
    assert wait(open_as("ui"), Wanted(ready=True), timeout_s=0) == {"ready": []}


def test_ends_at_the_timeout_and_says_what_is_missing(hive: Hive, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["src/**"])
    wanted = Wanted(issues=["qb-1"], free=["src/a.py"], mail=True)
    with pytest.raises(Busy, match="not done: qb-1; held by reviewer; no unread messages"):
        wait(hive, wanted, timeout_s=0.05)


def test_for_nothing_or_for_an_unknown_issue_is_refused(hive: Hive) -> None:
    with pytest.raises(InvalidInput, match="nothing to wait for"):
        Wanted()
    with pytest.raises(NotFound, match="qb-9"):
        wait(hive, Wanted(issues=["qb-9"]), timeout_s=0)


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


class Enough(Exception):
    """Raised by a caller that no longer wants to wait."""


def enough_at(calls: int) -> Callable[[float], None]:
    """Returns an `on_progress` that ends the wait when it is called for the nth time."""
    waited: list[float] = []

    def on_progress(waited_s: float) -> None:
        waited.append(waited_s)
        assert waited == sorted(waited)
        if len(waited) == calls:
            raise Enough

    return on_progress


def test_a_wait_that_its_caller_ends_is_over(open_as: Opener) -> None:
    with pytest.raises(Enough):
        wait(open_as("ui"), Wanted(mail=True), timeout_s=60, on_progress=enough_at(3))


def test_whoever_stops_waiting_for_an_issue_leaves_the_line(
    open_as: Opener, reviewer: Hive
) -> None:
    for each in ("qb-1", "qb-2"):
        reviewer.assignments.claim(each, anyway=True)
    seen: list[int] = []

    def on_progress(waited_s: float) -> None:
        seen.append(len(reviewer.queue.everything()))
        if len(seen) == 2:
            raise Enough

    with pytest.raises(Enough):
        take_next(open_as("ui"), wait_s=60, on_progress=on_progress)
    assert seen == [1, 1]
    assert reviewer.queue.everything() == []


@pytest.mark.slow
def test_whoever_waits_for_an_issue_is_told_again_who_has_which(
    quick: QuickQueen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0)
    quick("claim", "qb-1", as_="api")
    waited = quick("next", "--wait", "1s", as_="ui")
    assert waited.code == 6
    assert "queen: waiting for an issue, 0s so far: api has qb-1\n" in waited.err
    assert "so far" not in quick("next", "--wait", "1s", "--json", as_="ui").err
