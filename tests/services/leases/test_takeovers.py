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
    lost = "src/ui/**, src/css/**"
    again = "queen reserve 'src/ui/**' 'src/css/**' --wait 5m"
    assert message.body == (
        "reviewer took over src/**: production is down\n"
        f"This ended all of your reservation of {lost}. Reserve again what you still need: {again}"
    )
    assert (message.importance, message.issue_id) == ("high", "qb-42")
    [message] = tester.messages.inbox()
    assert message.body.startswith("reviewer took over src/**: production is down\n")
    assert message.body.endswith(": queen reserve 'src/api/**' --wait 5m")
    assert [each.droid for each in hive.reservations.find()] == ["reviewer"]


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


def test_a_takeover_of_one_file_ends_the_whole_lease(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    hive.reservations.reserve(["src/**"])
    reviewer.reservations.reserve(["src/a.py"], force=True, reason="urgent")
    _, ended, *_ = records(beads / "queen_reservations.jsonl")
    assert (ended["status"], ended["released_by"]) == ("released", "reviewer")
    assert [each.pattern for each in reviewer.reservations.find()] == ["src/a.py"]
    statuses = hive.reservations.check(["src/a.py", "src/b.py"])
    assert [each.status for each in statuses] == ["held", "free"]


def test_the_message_has_the_command_that_reserves_again(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/**", "it's/*"])
    reviewer.reservations.reserve(["src/a.py", "it's/x"], force=True, reason="urgent")
    [message] = hive.messages.inbox()
    assert message.body == (
        "reviewer took over src/a.py, it's/x: urgent\n"
        "This ended all of your reservation of src/**, it's/*. Reserve again what you still need: "
        "queen reserve 'src/**' 'it'\\''s/*' --wait 5m"
    )


def test_the_command_asks_for_an_announcement_if_only_those_were_lost(
    hive: Hive, reviewer: Hive
) -> None:
    hive.reservations.reserve(["src/a.py"], exclusive=False)
    reviewer.reservations.reserve(["src/**"], force=True, reason="urgent")
    [message] = hive.messages.inbox()
    assert message.body.endswith(": queen reserve src/a.py --shared --wait 5m")


def test_the_holder_can_have_it_again_afterwards(hive: Hive, reviewer: Hive) -> None:
    [first] = hive.reservations.reserve(["src/**"])
    reviewer.reservations.reserve(["src/a.py"], force=True, reason="urgent")
    with pytest.raises(Held):
        hive.reservations.reserve(["src/**"])
    reviewer.reservations.release(everything=True)
    [again] = hive.reservations.reserve(["src/**"])
    assert again.id != first.id
    assert hive.reservations.check(["src/a.py"])[0].status == "mine"


def test_a_lease_from_which_an_older_version_took_files_covers_them_until_it_ends(
    hive: Hive, reviewer: Hive, open_as: Opener, beads: Path
) -> None:
    [lease] = hive.reservations.reserve(["src/**"])
    gone = [{"pattern": "src/a.py", "at": lease.created_at, "by": "reviewer", "reason": "urgent"}]
    write_lines(
        beads / "queen_reservations.jsonl", {**lease.to_dict(), "taken_over": gone, "rev": 2}
    )
    assert reviewer.reservations.check(["src/a.py"])[0].status == "held"
    with pytest.raises(Held):
        open_as("oak").reservations.reserve(["src/a.py"])
    reviewer.reservations.reserve(["src/a.py"], force=True, reason="still urgent")
    assert hive.reservations.find(droid="ui-engineer") == []


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
        ("reviewer", "src/a.py"),
    }
