"""Takeovers by force: recorded in the lease, told to its holder, and refused without a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, cloned, environment, records, snapshot, write_lines

from queenbee import Hive
from queenbee.errors import Held, InvalidInput

pytestmark = pytest.mark.both_engines

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
    [taken] = reviewer.reservations.reserve(["src/*.py"], force=True, reason="production is down")
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


def test_a_takeover_ends_only_the_leases_in_the_way(
    hive: Hive, open_as: Opener, open_beside: Opener
) -> None:
    reviewer = open_as("reviewer")
    hive.reservations.reserve(["src/a.py", "src/b.py"])
    open_beside("tester").reservations.reserve(["src/r.py"], exclusive=False)
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


# File by file


def test_a_lease_taken_over_file_by_file_ends_for_those_files_only(
    hive: Hive, reviewer: Hive, open_as: Opener, clock: Clock, beads: Path
) -> None:
    hive.reservations.reserve(["src/**"])
    clock.advance(60)
    reviewer.reservations.reserve(["src/a.py", "src/b.py"], force=True, reason="urgent")
    _, changed, *_ = records(beads / "queen_reservations.jsonl")
    assert changed["status"] == "active"
    assert changed["taken_over"] == [
        {"pattern": each, "at": "2024-12-14T10:31:00.000Z", "by": "reviewer", "reason": "urgent"}
        for each in ("src/a.py", "src/b.py")
    ]
    paths = ["src/a.py", "src/b.py", "src/c.py"]
    assert [each.status for each in hive.reservations.check(paths)] == ["held", "held", "mine"]
    assert [each.status for each in reviewer.reservations.check(paths)] == ["mine", "mine", "held"]
    assert [each.droid for each in hive.reservations.find(path="src/a.py")] == ["reviewer"]
    with pytest.raises(Held) as refusal:
        open_as("oak").reservations.reserve(["src/?.py"])
    assert {each["droid"] for each in refusal.value.holders} == {"ui-engineer", "reviewer"}
    assert "src/a.py (of src/**)" in hive.messages.inbox()[0].body


def test_what_was_taken_is_free_once_the_taker_is_done(
    hive: Hive, reviewer: Hive, open_as: Opener
) -> None:
    hive.reservations.reserve(["src/{a,b,c}.py"])
    reviewer.reservations.reserve(["src/a.py", "src/b.py"], force=True, reason="urgent")
    reviewer.reservations.release(everything=True)
    oak = open_as("oak").reservations
    assert oak.reserve(["src/a.py"])
    assert oak.reserve(["src/[ab].py"])  # All that this pattern shares with the lease is gone.
    with pytest.raises(Held, match=r"at src/c\.py"):
        oak.reserve(["src/[bc].py"])


def test_the_holder_can_have_it_again_afterwards(hive: Hive, reviewer: Hive) -> None:
    [first] = hive.reservations.reserve(["src/**"])
    reviewer.reservations.reserve(["src/a.py"], force=True, reason="urgent")
    with pytest.raises(Held):
        hive.reservations.reserve(["src/**"])
    reviewer.reservations.release(everything=True)
    [again] = hive.reservations.reserve(["src/**"])
    assert again.id != first.id
    assert hive.reservations.check(["src/a.py"])[0].status == "mine"


def test_the_last_file_ends_the_lease(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/{a,b}.py"])
    for name in ("src/a.py", "src/b.py"):
        reviewer.reservations.reserve([name], force=True, reason="urgent")
    assert hive.reservations.find(droid="ui-engineer") == []


def test_a_pattern_takes_the_whole_lease(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/**"])
    reviewer.reservations.reserve(["src/a.py", "src/*.js"], force=True, reason="urgent")
    assert hive.reservations.find(droid="ui-engineer") == []


def test_an_unreadable_entry_takes_nothing_away(hive: Hive, reviewer: Hive, beads: Path) -> None:
    [lease] = hive.reservations.reserve(["src/**"])
    odd = [7, {}, {"pattern": "src/*", "at": lease.created_at}, {"pattern": "src/a.py"}]
    write_lines(
        beads / "queen_reservations.jsonl", {**lease.to_dict(), "taken_over": odd, "rev": 2}
    )
    assert reviewer.reservations.check(["src/a.py"])[0].status == "held"


def test_another_clone_agrees_on_who_has_what(
    hive: Hive, reviewer: Hive, clock: Clock, beads: Path, tmp_path: Path
) -> None:
    hive.reservations.reserve(["src/**"])
    clock.advance(60)
    reviewer.reservations.reserve(["src/a.py"], force=True, reason="urgent")
    tree = cloned(beads, tmp_path / "clone")
    other = Hive.open(tree, droid="oak", env=environment(), clock=clock)
    assert other.reservations.conflicts() == []
    assert {(each.droid, each.pattern) for each in other.reservations.find()} == {
        ("ui-engineer", "src/**"),
        ("reviewer", "src/a.py"),
    }
