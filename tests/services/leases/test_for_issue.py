"""A reservation is for the issue that its droid has, and ends with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from acting import answer
from hives import write_lines

from queenbee import Hive


@pytest.fixture(autouse=True)
def _issues(beads: Path) -> None:
    rows = [{"id": f"qb-{n}", "title": "t", "status": "open"} for n in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)


def held(hive: Hive) -> list[str]:
    return [each.pattern for each in hive.reservations.find()]


def test_a_reservation_ends_with_the_only_issue_of_its_droid(hive: Hive) -> None:
    hive.assignments.claim("qb-1")
    [lease] = hive.reservations.reserve(["migrations/**"])
    assert lease.issue_id == "qb-1"
    done = answer(hive, "complete")
    assert held(hive) == []
    assert "still_reserved" not in done


def test_what_is_kept_stays_and_is_named_at_the_end(hive: Hive) -> None:
    hive.assignments.claim("qb-1")
    answer(hive, "reserve", "docs/**", "--keep")
    assert answer(hive, "complete")["still_reserved"] == ["docs/**"]
    assert held(hive) == ["docs/**"]


def test_of_two_issues_none_is_meant(hive: Hive) -> None:
    hive.assignments.claim("qb-1")
    hive.assignments.claim("qb-2")
    [lease] = hive.reservations.reserve(["docs/**"])
    assert lease.issue_id is None


def test_keeping_it_takes_it_out_of_the_issue(hive: Hive) -> None:
    hive.assignments.claim("qb-1")
    hive.reservations.reserve(["docs/**"])
    [lease] = hive.reservations.reserve(["docs/**"], issue_id="")
    assert lease.issue_id is None
