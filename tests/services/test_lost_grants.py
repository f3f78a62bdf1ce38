"""What lost to an older grant counts for nothing, and its droid can put it away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from diagnoses import examine
from hives import Clock, write_lines

from queenbee import Hive
from queenbee.errors import NotYours

pytestmark = pytest.mark.both_engines

Open = Callable[[str], Hive]
BORN = "2024-12-14T10:45:00.000Z"


@pytest.fixture
def merged(hive: Hive, beads: Path, clock: Clock) -> Hive:
    """A hive in which a pull brought a claim and a lease of reviewer that lost to the actor's."""
    hive.assignments.claim("qb-1")
    hive.reservations.reserve(["src/**"])
    claim = {"id": "qa-2", "created_at": BORN, "issue_id": "qb-1", "droid": "reviewer", "rev": 1}
    write_lines(beads / "queen_assignments.jsonl", claim)
    lease = {"id": "qr-2", "created_at": BORN, "pattern": "src/a.py", "droid": "reviewer", "rev": 1}
    expires = "2024-12-14T12:00:00.000Z"
    write_lines(beads / "queen_reservations.jsonl", {**lease, "expires_at": expires})
    clock.advance(3600)
    return hive


def found_by_doctor(hive: Hive) -> list[str]:
    return [each.code for each in examine(hive) if each.code == "conflict"]


def test_until_then_both_are_listed(merged: Hive) -> None:
    assert [lost.id for _, lost in merged.assignments.conflicts()] == ["qa-2"]
    assert [lost.id for _, lost in merged.reservations.conflicts()] == ["qr-2"]
    assert found_by_doctor(merged) == ["conflict", "conflict"]


def test_its_droid_ends_it_and_nothing_else(merged: Hive, reviewer: Hive) -> None:
    assert reviewer.assignments.release("qb-1").id == "qa-2"
    assert [each.id for each in reviewer.reservations.release(["src/a.py"])] == ["qr-2"]
    assert found_by_doctor(merged) == []
    assert [each.droid for each in merged.assignments.find()] == ["ui-engineer"]
    assert [each.droid for each in merged.reservations.find()] == ["ui-engineer"]


def test_all_of_a_droids_leases_are_those_too(reviewer: Hive, merged: Hive) -> None:
    assert [each.id for each in reviewer.reservations.release(everything=True)] == ["qr-2"]


def test_the_holder_ends_the_grant_in_effect(merged: Hive) -> None:
    assert merged.assignments.release("qb-1").droid == "ui-engineer"


def test_a_person_can_end_a_superseded_grant_if_no_other_is_left(
    merged: Hive, open_as: Open
) -> None:
    merged.assignments.complete("qb-1")
    assert open_as("human").assignments.release("qb-1").id == "qa-2"
    assert merged.assignments.conflicts() == []


def test_it_is_not_completed(merged: Hive, reviewer: Hive) -> None:
    with pytest.raises(NotYours):
        reviewer.assignments.complete("qb-1")


def test_another_droid_does_not_end_it(merged: Hive, open_as: Open) -> None:
    with pytest.raises(NotYours):
        open_as("writer").assignments.release("qb-1")


def test_it_is_not_renewed(merged: Hive, reviewer: Hive) -> None:
    with pytest.raises(Exception, match="holds no"):
        reviewer.reservations.renew(everything=True)


@pytest.mark.parametrize("again", [1, 2_000])
def test_leases_that_arrive_one_after_the_other_are_judged_as_all_together(
    hive: Hive, beads: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, again: int
) -> None:
    """Also one that is older than those that are judged again, and that wins."""
    monkeypatch.setattr("queenbee.services.leases.live._AGAIN", again)
    arrived: list[tuple[int, str]] = []
    for minute in (40, 41, 42, 39, 43):
        arrived.append((minute, f"qr-{minute}"))
        line = {"id": f"qr-{minute}", "pattern": "src/**", "droid": f"d{minute}", "rev": 1}
        times = {"created_at": f"2024-12-14T10:{minute}:00.000Z", "expires_at": BORN}
        write_lines(beads / "queen_reservations.jsonl", {**line, **times})
        pairs = [(won.id, lost.id) for won, lost in hive.reservations.conflicts()]
        first, *others = [key for _, key in sorted(arrived)]
        assert pairs == [(first, each) for each in others]
