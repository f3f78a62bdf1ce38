"""Takeovers by force: recorded in the lease, told to its holder, and refused without a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, records, snapshot

from queenbee import Hive
from queenbee.errors import InvalidInput

Opener = Callable[[str], Hive]


@pytest.mark.parametrize("reason", [None, "", "  \n"])
def test_a_takeover_without_a_reason_is_refused(
    hive: Hive, reviewer: Hive, beads: Path, reason: str | None
) -> None:
    hive.reservations.reserve(["a.py"])
    before = snapshot(beads)
    with pytest.raises(InvalidInput, match="a takeover needs a reason") as refusal:
        reviewer.reservations.reserve(["a.py"], force=True, reason=reason)
    assert refusal.value.hint == "add --reason TEXT"
    assert snapshot(beads) == before


def test_a_takeover_records_who_and_why_in_the_lease(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock
) -> None:
    hive.reservations.reserve(["src/**"], issue_id="qb-42", reason="Button")
    clock.advance(60)
    [taken] = reviewer.reservations.reserve(["src/a.py"], force=True, reason="production is down")
    first, ended, begun = records(beads / "queen_reservations.jsonl")
    assert ended == {
        **first,
        "status": "released",
        "released_at": "2024-12-14T10:31:00.000Z",
        "released_by": "reviewer",
        "release_reason": "production is down",
        "rev": 2,
    }
    assert (begun["id"], begun["droid"], begun["reason"]) == (
        taken.id,
        "reviewer",
        "production is down",
    )


def test_a_takeover_tells_each_holder_once_what_it_lost_and_why(
    hive: Hive, open_as: Opener
) -> None:
    tester, reviewer = open_as("tester"), open_as("reviewer")
    hive.reservations.reserve(["src/ui/**", "src/css/**"], issue_id="qb-42")
    tester.reservations.reserve(["src/api/**"])
    reviewer.reservations.reserve(["src/**"], force=True, reason="production is down")
    [message] = hive.messages.inbox()
    assert message.body == "reviewer took over src/ui/**, src/css/**: production is down"
    assert (message.importance, message.issue_id) == ("high", "qb-42")
    assert [m.body for m in tester.messages.inbox()] == [
        "reviewer took over src/api/**: production is down"
    ]


def test_a_takeover_ends_only_the_leases_in_the_way(hive: Hive, open_as: Opener) -> None:
    reviewer = open_as("reviewer")
    hive.reservations.reserve(["src/a.py", "src/b.py"])
    open_as("tester").reservations.reserve(["src/r.py"], exclusive=False)
    reviewer.reservations.reserve(["src/r.py", "src/a.py"], exclusive=False, force=True, reason="x")
    assert {(each.droid, each.pattern) for each in reviewer.reservations.find()} == {
        ("ui-engineer", "src/b.py"),
        ("tester", "src/r.py"),
        ("reviewer", "src/r.py"),
        ("reviewer", "src/a.py"),
    }


def test_force_where_nothing_is_in_the_way_is_an_ordinary_lease(hive: Hive, beads: Path) -> None:
    hive.reservations.reserve(["a.py"], force=True, reason="just in case")
    assert len(records(beads / "queen_reservations.jsonl")) == 1
    assert not (beads / "queen_messages.jsonl").exists()


def test_a_lost_lease_cannot_be_released_or_renewed(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    reviewer.reservations.reserve(["a.py"], force=True, reason="x")
    assert hive.reservations.check(["a.py"])[0].status == "held"
    with pytest.raises(Exception, match="reserved by reviewer, not by ui-engineer"):
        hive.reservations.release(["a.py"])
