"""Machines whose clocks differ: what lost to an older grant never stands again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import START_MS, Clock, write_lines
from stamps import format_ms

from queenbee import Hive

pytestmark = pytest.mark.both_engines(thorough=True)

HOUR_S = 3600
AHEAD = format_ms(START_MS + HOUR_S * 1000)
"""Now, on a machine whose clock is an hour ahead."""


@pytest.fixture
def merged(hive: Hive, beads: Path) -> Hive:
    """A hive in which a pull brought a claim and a lease that lose to the actor's own."""
    hive.assignments.claim("qb-1")
    hive.reservations.reserve(["src/**"])
    write_lines(
        beads / "queen_assignments.jsonl",
        {"id": "qa-2", "created_at": AHEAD, "issue_id": "qb-1", "droid": "api", "rev": 1},
    )
    lease = {"id": "qr-2", "created_at": AHEAD, "pattern": "src/api.py", "droid": "api", "rev": 1}
    expires = format_ms(START_MS + 3 * HOUR_S * 1000)
    write_lines(beads / "queen_reservations.jsonl", {**lease, "expires_at": expires})
    return hive


def standing(hive: Hive) -> list[str]:
    found = [*hive.assignments.find(), *hive.reservations.find()]
    return [each.droid for each in found]


def test_the_older_grants_stand(merged: Hive) -> None:
    assert standing(merged) == ["ui-engineer", "ui-engineer"]


@pytest.mark.parametrize("how", ["complete", "release"])
def test_an_assignment_that_ends_by_a_clock_behind_does_not_free_what_lost_to_it(
    merged: Hive, clock: Clock, how: str
) -> None:
    clock.advance(60)
    getattr(merged.assignments, how)("qb-1")
    assert merged.assignments.find() == []
    [mine, theirs] = merged.assignments.find(status="all")
    assert theirs.superseded_by == mine.id


def test_a_lease_that_ends_by_a_clock_behind_does_not_free_what_lost_to_it(
    merged: Hive, clock: Clock
) -> None:
    clock.advance(60)
    merged.reservations.release(["src/**"])
    assert merged.reservations.find() == []
    [mine, theirs] = merged.reservations.find(ended=True)
    assert theirs.superseded_by == mine.id


def test_nor_does_one_that_is_taken_over(merged: Hive, reviewer: Hive, clock: Clock) -> None:
    clock.advance(60)
    reviewer.reservations.reserve(["src/**"], force=True, reason="it is urgent")
    assert [each.droid for each in reviewer.reservations.find()] == ["reviewer"]


def test_nor_does_an_assignment_that_is_moved(merged: Hive, clock: Clock) -> None:
    clock.advance(60)
    merged.assignments.assign("qb-1", "reviewer", reassign=True)
    assert [each.droid for each in merged.assignments.find()] == ["reviewer"]


def test_later_grants_count_too(merged: Hive, reviewer: Hive, clock: Clock) -> None:
    clock.advance(60)
    merged.reservations.release(everything=True)
    merged.assignments.release("qb-1")
    reviewer.assignments.claim("qb-1")
    reviewer.reservations.reserve(["src/api.py"])
    assert standing(reviewer) == ["reviewer", "reviewer"]


def test_a_grant_from_a_clock_ahead_can_end_and_others_follow(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    line = {"id": "qa-2", "created_at": AHEAD, "issue_id": "qb-1", "droid": "ui-engineer", "rev": 1}
    write_lines(beads / "queen_assignments.jsonl", line)
    hive.assignments.release("qb-1")
    [ended] = hive.assignments.find(status="all")
    assert ended.updated_at == format_ms(START_MS)
    reviewer.assignments.claim("qb-1")
    assert [each.superseded_by for each in hive.assignments.find(status="all")] == [None, None]


@pytest.mark.parametrize("text", ["T{}Z", " {}-23:00", "t{}+14:00"])
def test_ends_in_the_future_are_found_however_they_are_written(
    hive: Hive, beads: Path, text: str
) -> None:
    zone = {"Z": 0, "-23:00": -23, "+14:00": 14}[text.partition("}")[2]]
    local = format_ms(START_MS + (25 + zone) * HOUR_S * 1000)
    end = local[:10] + text.format(local[11:19])
    ended = {"created_at": format_ms(START_MS), "droid": "api", "rev": 1}
    write_lines(
        beads / "queen_assignments.jsonl",
        {**ended, "id": "qa-2", "issue_id": "qb-1", "status": "completed", "updated_at": end},
    )
    write_lines(
        beads / "queen_reservations.jsonl",
        {**ended, "id": "qr-2", "pattern": "src/a", "status": "released", "expires_at": end},
    )
    assert [each.id for each in hive.assignments.absurd()] == ["qa-2"]
    assert [each.id for each in hive.reservations.absurd()[1]] == ["qr-2"]
