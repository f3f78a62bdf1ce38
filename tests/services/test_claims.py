"""Claims that mean something: what is refused, with which next step, and whose turn it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from acting import answer
from hives import Clock, QuickQueen, snapshot, write_lines
from waiters import waits

from queenbee import Hive
from queenbee.errors import Busy, IssueClosed, NotReady, Taken

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


@pytest.fixture
def tracker(beads: Path) -> Path:
    path = beads / "issues.jsonl"
    write_lines(
        path,
        {"id": "qb-1", "status": "open"},
        {"id": "qb-2", "status": "open", "dependencies": ["qb-1"]},
        {"id": "qb-3", "status": "in_progress", "assignee": "api"},
        {"id": "qb-4", "status": "open", "defer_until": "2099-01-01T00:00:00Z"},
        {"id": "qb-5", "status": "open", "pinned": True},
        {"id": "qb-6", "status": "open", "ephemeral": True},
        {"id": "qb-7", "status": "closed"},
    )
    return path


@pytest.mark.parametrize(
    ("issue_id", "refusal", "text"),
    [
        ("qb-2", NotReady, r"qb-2 waits for qb-1 \(nobody has it\)"),
        ("qb-3", Taken, "the tracker gives qb-3 to api"),
        ("qb-4", NotReady, "qb-4 cannot be started: it is deferred until 2099"),
        ("qb-5", NotReady, "qb-5 cannot be started: it is pinned"),
        ("qb-6", NotReady, "qb-6 cannot be started: it is ephemeral"),
    ],
)
def test_what_cannot_be_started_is_refused_but_for_anyway(
    hive: Hive,
    beads: Path,
    tracker: Path,
    issue_id: str,
    refusal: type[Exception],
    text: str,
) -> None:
    before = snapshot(beads)
    with pytest.raises(refusal, match=text) as refused:
        hive.assignments.claim(issue_id)
    assert f"queen claim {issue_id} --force" in refused.value.hint  # type: ignore[attr-defined]
    with pytest.raises(refusal, match=text):
        hive.assignments.assign(issue_id, "reviewer")
    assert snapshot(beads) == before
    assert hive.assignments.claim(issue_id, anyway=True).status == "active"


def test_a_closed_issue_is_refused_anyway_too(hive: Hive, tracker: Path) -> None:
    for anyway in (False, True):
        with pytest.raises(IssueClosed, match="qb-7 is closed"):
            hive.assignments.claim("qb-7", anyway=anyway)


def test_reservations_and_messages_know_the_same_ids(quick: QuickQueen, tracker: Path) -> None:
    quick.env["QUEEN_DROID"] = "ui"
    for words in (
        ("reserve", "src/x.py", "--issue", "qb-77"),
        ("msg", "send", "reviewer", "hello", "--issue", "qb-77"),
        ("issue", "assign", "qb-77", "reviewer"),
    ):
        refused = quick(*words)
        assert (refused.code, refused.out) == (4, "")
        assert "qb-77" in refused.err


class TestInLine:
    def test_the_first_to_wait_gets_the_issue_and_a_newcomer_does_not(
        self, open_as: Opener, hive: Hive, reviewer: Hive, tracker: Path
    ) -> None:
        hive.assignments.claim("qb-1")
        with waits(reviewer, issue_id="qb-1"):
            hive.assignments.release("qb-1")
            with pytest.raises(Taken, match="nobody has qb-1, but reviewer has waited for it"):
                open_as("docs").assignments.claim("qb-1")
            assert reviewer.assignments.claim("qb-1", timeout_s=5).droid == "reviewer"

    def test_next_leaves_an_issue_to_whoever_waits_for_it(
        self, open_as: Opener, hive: Hive, reviewer: Hive, tracker: Path
    ) -> None:
        hive.assignments.claim("qb-1")
        with waits(reviewer, issue_id="qb-1"):
            hive.assignments.release("qb-1")
            assert answer(open_as("docs"), "next")["state"] != "yours"

    def test_next_leaves_the_first_issue_to_whoever_waits_longer(
        self, open_as: Opener, reviewer: Hive, tracker: Path
    ) -> None:
        write_lines(tracker, {"id": "qb-8", "status": "open"})
        with waits(reviewer, any_issue=True):
            taken = answer(open_as("docs"), "next")
            assert (taken["state"], taken["assignment"]["issue_id"]) == ("yours", "qb-8")
            assert answer(open_as("tester"), "next")["state"] != "yours"

    def test_waiting_ends_when_the_holder_lets_go(
        self, open_as: Opener, hive: Hive, tracker: Path
    ) -> None:
        hive.assignments.claim("qb-1")
        later = threading.Timer(0.2, lambda: open_as("ui-engineer").assignments.release("qb-1"))
        later.start()
        assert open_as("docs").assignments.claim("qb-1", timeout_s=30).droid == "docs"
        later.join()

    def test_waiting_ends_when_it_is_completed_by_another(
        self, open_as: Opener, hive: Hive, tracker: Path
    ) -> None:
        hive.assignments.claim("qb-1")
        later = threading.Timer(0.2, lambda: open_as("ui-engineer").assignments.complete("qb-1"))
        later.start()
        with pytest.raises(IssueClosed):
            open_as("docs").assignments.claim("qb-1", timeout_s=30)
        later.join()

    def test_waiting_times_out(self, open_as: Opener, hive: Hive, tracker: Path) -> None:
        hive.assignments.claim("qb-1")
        with pytest.raises(Busy, match="timed out"):
            open_as("docs").assignments.claim("qb-1", timeout_s=0.1)


def test_a_quiet_holder_of_an_issue_can_be_nudged_and_relieved(
    open_as: Opener, hive: Hive, reviewer: Hive, tracker: Path, clock: Clock
) -> None:
    hive.assignments.claim("qb-1")
    clock.advance(16 * 60)
    with pytest.raises(Taken) as refused:
        reviewer.assignments.claim("qb-1")
    assert refused.value.hint == "ask whether it is still there: queen msg nudge ui-engineer"
    reviewer.nudges.nudge("ui-engineer")
    clock.advance(61)
    with pytest.raises(Taken) as refused:
        reviewer.assignments.claim("qb-1")
    assert "queen issue assign qb-1 reviewer --force" in str(refused.value.hint)
    moved = reviewer.assignments.assign("qb-1", "reviewer", reassign=True)
    assert (moved.droid, moved.previous_droid) == ("reviewer", "ui-engineer")


def test_waiting_for_a_blocked_issue_ends_when_the_tracker_closes_its_blocker(
    open_as: Opener, tracker: Path
) -> None:
    row = {"id": "qb-1", "status": "closed", "updated_at": "2024-12-14T11:00:00Z"}
    later = threading.Timer(0.3, lambda: write_lines(tracker, row))
    later.start()
    assert open_as("docs").assignments.claim("qb-2", timeout_s=30).droid == "docs"
    later.join()


def test_droids_do_not_wait_for_one_another(
    open_as: Opener, hive: Hive, reviewer: Hive, tracker: Path
) -> None:
    write_lines(tracker, {"id": "qb-8", "status": "open"})
    hive.assignments.claim("qb-1")
    reviewer.assignments.claim("qb-8")
    with waits(reviewer, issue_id="qb-1"):
        with pytest.raises(Taken, match="waiting for qb-8 would never end") as refused:
            hive.assignments.claim("qb-8", timeout_s=30)
        assert refused.value.details["circle"] == ["ui-engineer", "reviewer"]
        # Somebody who has nothing that reviewer waits for may wait.
        with pytest.raises(Busy):
            open_as("docs").assignments.claim("qb-8", timeout_s=0.1)
