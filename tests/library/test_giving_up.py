"""A call that is given up leaves nothing: no lease, no place in the line, no landing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import commit_file, git, write_lines, write_settings

from queenbee import Hive, QueenError
from queenbee.errors import Busy, Cancelled

OpenAs = Callable[[str], Hive]
Call = Callable[[Hive, threading.Event], object]

WAITS: dict[str, Call] = {
    "reserve": lambda hive, event: hive.reservations.reserve(["a"], timeout_s=60, cancel=event),
    "claim": lambda hive, event: hive.assignments.claim("qb-1", timeout_s=60, cancel=event),
    "next": lambda hive, event: hive.next(timeout_s=60, cancel=event),
    "wait": lambda hive, event: hive.wait("qb-1", timeout_s=60, cancel=event),
    "messages": lambda hive, event: hive.messages.wait(timeout_s=60, cancel=event),
}


@pytest.fixture
def held(repo: Path, hive: Hive) -> Hive:
    """The hive of the droid that has everything."""
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    hive.assignments.claim("qb-1")
    hive.reservations.reserve(["a"])
    return hive


def begun(call: Callable[[], object]) -> tuple[threading.Thread, list[QueenError]]:
    raised: list[QueenError] = []

    def run() -> None:
        try:
            call()
        except QueenError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def wait_for(true: Callable[[], object]) -> None:
    until_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.01)


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.both_engines
def test_a_wait_that_is_given_up_leaves_nothing(name: str, held: Hive, open_as: OpenAs) -> None:
    event = threading.Event()
    with open_as("other") as other:
        thread, raised = begun(lambda: WAITS[name](other, event))
        if name in ("reserve", "claim", "next"):
            wait_for(held.queue.everything)
        event.set()
        thread.join(30)
        assert [type(each) for each in raised] == [Cancelled]
        assert held.queue.everything() == []
        held.reservations.release(["a"])
        held.assignments.release("qb-1")
        assert other.reservations.find() == []
        assert other.assignments.find() == []
        other.messages.send("ui-engineer", "the hive is as usable as before")


@pytest.mark.parametrize("name", WAITS)
def test_who_has_given_up_before_is_not_begun(name: str, held: Hive, open_as: OpenAs) -> None:
    held.reservations.release(["a"])
    held.assignments.release("qb-1")
    event = threading.Event()
    event.set()
    with open_as("other") as other, pytest.raises(Cancelled):
        WAITS[name](other, event)
    assert held.reservations.find() == []
    assert held.assignments.find() == []


def test_a_turn_that_comes_when_the_caller_has_left_is_not_taken(
    held: Hive, open_as: OpenAs
) -> None:
    class Late:
        """Set as soon as the wait is over, so that the attempt itself sees it."""

        def is_set(self) -> bool:
            return not held.reservations.find(path=str(Path(held.layout.root, "a")))

    with open_as("other") as other, pytest.raises(Cancelled):
        thread, _ = begun(lambda: (time.sleep(0.3), held.reservations.release(["a"])))
        try:
            other.reservations.reserve(["a"], timeout_s=30, cancel=Late())
        finally:
            thread.join()
    assert held.reservations.find() == []


def test_an_exception_of_who_watches_ends_the_wait(held: Hive, open_as: OpenAs) -> None:
    def stop(_: object) -> None:
        raise Busy("enough")

    with open_as("other") as other, pytest.raises(Busy, match="enough"):
        other.reservations.reserve(["a"], timeout_s=30, on_progress=stop)
    assert held.queue.everything() == []


def landing_place(repo: Path, check: str) -> Path:
    write_settings(repo / ".beads", f'[land]\ntarget = "main"\ncheck = "{check}"\n')
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "hive")
    with Hive.open(repo, droid="lead") as lead:
        place = Path(lead.worktrees.add("ui").path)
    commit_file(place, "a.txt")
    return place


@pytest.mark.slow
def test_a_landing_that_is_given_up_while_its_check_runs_lands_nothing(
    repo: Path, tmp_path: Path
) -> None:
    sign = tmp_path / "runs"
    place = landing_place(repo, f"test -e {sign} || (touch {sign}; sleep 60)")
    event = threading.Event()
    with Hive.open(place) as ui:
        thread, raised = begun(lambda: ui.land(cancel=event))
        wait_for(sign.exists)
        event.set()
        thread.join(30)
        assert [type(each) for each in raised] == [Cancelled]
        assert ui.status().landing == []
    assert not (repo / "a.txt").exists()
    with Hive.open(place) as ui:
        assert ui.land().landing.landed


@pytest.mark.slow
def test_what_has_landed_is_completed_although_it_is_given_up_then(repo: Path) -> None:
    place = landing_place(repo, "true")
    commit_file(place, "b.txt")
    slow = repo / ".git" / "slow"
    slow.write_text("#!/bin/sh\nsleep 0.5\ncat\n")
    slow.chmod(0o755)
    git(repo, "config", "filter.slow.smudge", str(slow))
    (repo / ".git" / "info" / "attributes").write_text("b.txt filter=slow\n")

    class Landed:
        """Set while git moves the target: `a.txt` is there, and `b.txt` is still to come."""

        def is_set(self) -> bool:
            return (repo / "a.txt").exists()

    with Hive.open(repo, droid="lead") as lead:
        issue = lead.issues.new("x", issue_id="qb-9")
        with Hive.open(place) as ui:
            ui.assignments.claim(issue)
            done = ui.land(cancel=Landed())
            assert done.landing.landed
        assert lead.issues.get(issue).done
