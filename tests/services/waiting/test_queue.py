"""The queue as services see it: who comes first, for whom a request has to wait, and circles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hives import Clock, snapshot
from waiters import waits

from queenbee import Hive
from queenbee.core.queue import Want
from queenbee.errors import Held

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]
SRC = Want(["src/**"])


def test_a_newcomer_is_refused_what_somebody_waits_for(hive: Hive, reviewer: Hive) -> None:
    with reviewer.queue.register(SRC, 60):
        with pytest.raises(Held, match="reviewer has waited for src") as refusal:
            hive.reservations.reserve(["src/a.py"])
        assert hive.reservations.reserve(["docs/**"])
    assert refusal.value.details["place"] == 2
    assert [each["droid"] for each in refusal.value.details["ahead"]] == ["reviewer"]
    assert refusal.value.details["holders"] == []
    assert hive.reservations.reserve(["src/a.py"])


def test_two_readers_do_not_hold_each_other_up(hive: Hive, reviewer: Hive) -> None:
    with waits(reviewer, "src/**", exclusive=False):
        assert hive.reservations.reserve(["src/a.py"], exclusive=False)
        with pytest.raises(Held):
            hive.reservations.reserve(["src/b.py"])


def test_a_droid_does_not_hold_itself_up(hive: Hive) -> None:
    with hive.queue.register(SRC, 60):
        assert hive.reservations.reserve(["src/a.py"])


def test_who_has_it_already_may_extend_it(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/*.py"])
    with reviewer.queue.register(SRC, 60):
        assert hive.reservations.reserve(["src/*.py"], ttl_s=9000)
        assert hive.reservations.reserve(["src/a.py"])  # A file of its own.
        with pytest.raises(Held):
            hive.reservations.reserve(["src/a.js"])


def test_a_takeover_passes_the_queue(hive: Hive, reviewer: Hive) -> None:
    with reviewer.queue.register(SRC, 60):
        assert hive.reservations.reserve(["src/a.py"], force=True, reason="production is down")


def test_a_waiter_past_its_time_is_passed_over(hive: Hive, reviewer: Hive, clock: Clock) -> None:
    with reviewer.queue.register(SRC, 60):
        clock.advance(65)
        assert len(hive.queue.everything()) == 1
        clock.advance(1)
        assert hive.queue.everything() == []
        assert hive.reservations.reserve(["src/a.py"])


def test_a_refusal_without_a_wait_takes_no_place(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/a.py"])
    with pytest.raises(Held):
        reviewer.reservations.reserve(["src/a.py"])
    assert hive.queue.everything() == []


def test_the_place_counts_those_who_want_the_same(hive: Hive, open_as: Opener) -> None:
    hive.reservations.reserve(["src/a.py"])
    with (
        open_as("birch").queue.register(SRC, 60),
        waits(open_as("oak"), "docs/**"),
        waits(open_as("fir"), "src/a.py"),
        pytest.raises(Held) as refusal,
    ):
        open_as("elm").reservations.reserve(["src/a.py"])
    assert refusal.value.message.endswith(
        "held by ui-engineer, 2h left; 3rd in line after birch, fir"
    )


def test_waiting_for_each_other_is_refused(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    reviewer.reservations.reserve(["b.py"])
    with waits(reviewer, "a.py"):
        with pytest.raises(Held) as refusal:
            hive.reservations.reserve(["b.py"], timeout_s=60)
        assert len(hive.queue.everything()) == 1
    assert refusal.value.details["circle"] == ["ui-engineer", "reviewer"]
    assert (
        "waiting would never end, because reviewer waits for a.py, which ui-engineer holds"
        in refusal.value.message
    )
    assert "queen reserve release" in str(refusal.value.hint)


def test_an_issue_that_somebody_has_can_close_a_circle(hive: Hive, reviewer: Hive) -> None:
    hive.assignments.claim("qb-1")
    reviewer.reservations.reserve(["a.py"])
    with waits(reviewer, issue_id="qb-1"), pytest.raises(Held) as refusal:
        hive.reservations.reserve(["a.py"], timeout_s=60)
    assert refusal.value.details["circle"] == ["ui-engineer", "reviewer"]


def test_asking_a_hive_in_which_nobody_waits_writes_nothing(hive: Hive, repo) -> None:
    hive.reservations.reserve(["a.py"])
    before = snapshot(repo / ".git")
    assert hive.queue.everything() == []
    assert snapshot(repo / ".git") == before
