"""Notices: a droid is told once, beside the answer to whatever it asked, that a lease ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, QuickQueen, environment, write_lines
from waiters import waits

from queenbee import Hive

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


def test_there_is_no_notice_if_nothing_ended(hive: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    assert hive.notes() == []


def test_an_expired_lease_gives_one_notice(hive: Hive, clock: Clock) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    clock.advance(120)
    assert hive.notes() == [
        "your lease on a.py expired 1m ago; nobody holds it now",
    ]
    assert hive.notes() == []


def test_a_notice_appears_in_one_process_only(hive: Hive, open_as: Opener, clock: Clock) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    clock.advance(60)
    assert len(hive.notes()) == 1
    assert open_as("ui-engineer").notes() == []


def test_a_notice_names_who_holds_it_now(hive: Hive, reviewer: Hive, clock: Clock) -> None:
    hive.reservations.reserve(["src/a.py"], ttl_s=60)
    clock.advance(60)
    reviewer.reservations.reserve(["src/**"])
    assert hive.notes() == ["your lease on src/a.py expired 0s ago; held now by reviewer (src/**)"]


def test_a_notice_about_a_takeover_says_who_and_why(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    reviewer.reservations.reserve(["a.py"], force=True, reason="production is down")
    [note] = hive.notes()
    assert "a.py was taken over by reviewer (production is down)" in note
    again = "reserve what you still need: queen reserve a.py --wait 5m"
    assert note.endswith(f"held now by reviewer (a.py); {again}")
    assert hive.notes() == []


def test_reassigned_work_gives_a_notice_about_its_leases(hive: Hive, reviewer: Hive) -> None:
    hive.assignments.claim("qb-42")
    hive.reservations.reserve(["a.py"], issue_id="qb-42")
    reviewer.assignments.assign("qb-42", "tester", reassign=True)
    claim, note = hive.notes()
    assert claim == "qb-42 is no longer yours: given to somebody else by reviewer"
    assert "your lease on a.py was taken over by reviewer (qb-42 was given to tester)" in note


def test_ending_your_own_lease_gives_no_notice(hive: Hive) -> None:
    hive.assignments.claim("qb-42")
    hive.reservations.reserve(["a.py"], issue_id="qb-42")
    hive.reservations.reserve(["b.py"])
    hive.reservations.release(["b.py"])
    hive.assignments.complete("qb-42")
    assert hive.notes() == []


def test_the_end_of_somebody_elses_lease_gives_no_notice(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    clock.advance(60)
    assert reviewer.notes() == []


def test_an_end_that_is_a_day_old_is_history(hive: Hive, clock: Clock) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    clock.advance(60 + 24 * 3600)
    assert hive.notes() == []


def test_many_ended_leases_give_few_lines(hive: Hive, clock: Clock) -> None:
    hive.reservations.reserve([f"{number}.py" for number in range(9)], ttl_s=60)
    clock.advance(60)
    notes = hive.notes()
    assert len(notes) == 6
    assert notes[-1] == "and 4 more leases of yours ended; see: queen reserve list --all"
    assert hive.notes() == []


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("2024-12-14T11:31:00+01:00", True),
        ("2024-12-14T10:31:00.000000000Z", True),
        ("2024-12-14T10:31:00Z", True),
        ("2024-12-14T12:31:00+01:00", False),
        ("2024-12-13T10:31:00+01:00", False),
    ],
)
def test_an_end_in_another_timestamp_format_gives_a_notice(
    hive: Hive, beads: Path, clock: Clock, ends: str, told: bool
) -> None:
    row = {"id": "qr-go", "created_at": "2024-12-13T10:00:00Z", "pattern": "a.py"}
    line = {**row, "droid": "ui-engineer", "status": "active", "expires_at": ends}
    write_lines(beads / "queen_reservations.jsonl", line)
    clock.advance(120)
    assert bool(hive.notes()) is told


def test_without_an_actor_there_are_no_notices(hive: Hive, repo: Path, clock: Clock) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    clock.advance(60)
    assert Hive.open(repo, env=environment(), clock=clock).notes() == []


def test_a_notice_that_cannot_be_remembered_is_repeated(hive: Hive, clock: Clock) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    Path(hive.layout.state_dir, "told").write_text("a file where a folder should be")
    clock.advance(60)
    assert len(hive.notes()) == 1
    assert len(hive.notes()) == 1


def test_a_superseded_grant_gives_one_notice(hive: Hive, beads: Path, clock: Clock) -> None:
    hive.assignments.claim("qb-42")
    row = {"id": "qa-theirs", "created_at": "2024-12-14T10:00:00Z", "issue_id": "qb-42"}
    write_lines(beads / "queen_assignments.jsonl", {**row, "droid": "reviewer", "status": "active"})
    [note] = hive.notes()
    assert note.startswith("a merge brought in reviewer's older grant of qb-42: yours (qa-")
    assert hive.notes() == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("msg", "inbox"), 0),
        (("reserve", "check", "x"), 0),
        (("claim", "no id"), 2),
        (("show", "qb-7"), 4),
    ],
)
def test_a_command_prints_notices_with_answers_and_errors(
    quick: QuickQueen, frozen: Clock, arguments: tuple[str, ...], code: int
) -> None:
    quick("reserve", "README.md", "--ttl", "60s", as_="ui-engineer")
    frozen.advance(120)
    told = quick(*arguments, as_="ui-engineer")
    assert told.code == code
    assert "queen: your lease on README.md expired 1m ago" in told.err
    assert "your lease" not in quick(*arguments, as_="ui-engineer").err


@pytest.mark.parametrize("arguments", [("msg", "inbox"), ("claim", "no id")])
def test_under_json_notices_and_refusal_are_one_document_on_standard_error(
    quick: QuickQueen, frozen: Clock, arguments: tuple[str, ...]
) -> None:
    quick("reserve", "README.md", "--ttl", "60s", as_="ui-engineer")
    frozen.advance(120)
    told = quick("--json", *arguments, as_="ui-engineer")
    document = json.loads(told.err)
    assert document["notices"] == ["your lease on README.md expired 1m ago; nobody holds it now"]
    assert ("error" in document) == (told.code != 0)


def test_a_holder_is_told_once_that_somebody_waits(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/a.py", "docs/**"])
    hive.assignments.claim("qb-1")
    with (
        waits(reviewer, "src/**"),
        waits(reviewer, issue_id="qb-1"),
    ):
        assert hive.notes() == [
            "reviewer waits for src/**; if you are done: queen reserve release src/a.py",
            "reviewer waits for qb-1, which you have",
        ]
        assert reviewer.notes() == []
    with waits(reviewer, "src/a.py"):  # It tries again.
        assert hive.notes() == []


def test_a_holder_is_not_told_of_those_who_want_something_else(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/a.py"])
    with waits(reviewer, "docs/**"):
        assert hive.notes() == []
