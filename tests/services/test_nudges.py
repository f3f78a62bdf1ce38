"""A droid that has gone quiet: seen, nudged, and relieved if it does not answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, records, write_settings
from waiters import waits

from queenbee import Hive
from queenbee.errors import Busy, Conflict, Held, InvalidInput, NotFound

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]
QUIET_S = 15 * 60


@pytest.fixture
def stalled(hive: Hive, clock: Clock) -> Hive:
    """A hive whose actor holds two files, and has been quiet for long enough."""
    hive.reservations.reserve(["a.py", "b.py"])
    clock.advance(QUIET_S)
    return hive


# Signs of life


def test_a_droid_is_seen_when_it_writes(hive: Hive, clock: Clock) -> None:
    assert hive.droids.seen_ms("ui-engineer") is None
    hive.reservations.reserve(["a.py"])
    written_ms = clock.now_ms
    clock.advance(60)
    assert hive.droids.seen_ms("ui-engineer") == written_ms


def test_a_droid_that_only_reads_is_seen_too(hive: Hive, reviewer: Hive, clock: Clock) -> None:
    hive.reservations.reserve(["a.py"])
    clock.advance(QUIET_S)
    assert reviewer.droids.is_quiet("ui-engineer")
    hive.note_presence()
    assert reviewer.droids.seen_ms("ui-engineer") == clock.now_ms
    assert not reviewer.droids.is_quiet("ui-engineer")


def test_a_droid_of_another_machine_is_seen_by_its_lines(
    stalled: Hive, reviewer: Hive, clock: Clock
) -> None:
    stalled.messages.send("reviewer", "on my way")
    os.unlink(os.path.join(stalled.layout.presence_dir, "ui-engineer"))
    assert reviewer.droids.seen_ms("ui-engineer") == clock.now_ms


def test_a_droid_that_waits_is_not_quiet(stalled: Hive, reviewer: Hive, clock: Clock) -> None:
    with waits(stalled, "c.py", wait_s=9999):
        assert not reviewer.droids.is_quiet("ui-engineer")
    assert reviewer.droids.is_quiet("ui-engineer")


def test_losing_a_lease_is_no_sign_of_life(stalled: Hive, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["a.py"], force=True, reason="production is down")
    assert reviewer.droids.is_quiet("ui-engineer")


def test_a_presence_is_noted_in_no_folder_that_a_link_leads_to(
    hive: Hive, tmp_path: Path, clock: Clock
) -> None:
    hive.reservations.reserve(["a.py"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = Path(hive.layout.presence_dir)
    (folder / "ui-engineer").unlink()
    folder.rmdir()
    folder.symlink_to(elsewhere)
    hive.note_presence()
    assert list(elsewhere.iterdir()) == []


# Nudging


def test_a_refusal_by_a_quiet_holder_offers_a_nudge(stalled: Hive, reviewer: Hive) -> None:
    with pytest.raises(Held, match="ui-engineer was last seen 15m ago") as refusal:
        reviewer.reservations.reserve(["a.py"])
    assert refusal.value.hint == "ask whether it is still there: queen msg nudge ui-engineer"
    assert refusal.value.details["holders"][0]["last_seen_at"] == "2024-12-14T10:30:00.000Z"


def test_a_wait_that_times_out_offers_it_too(stalled: Hive, reviewer: Hive) -> None:
    with pytest.raises(Busy) as refusal:
        reviewer.reservations.reserve(["a.py"], timeout_s=0.01)
    assert "queen msg nudge ui-engineer" in str(refusal.value.hint)


def test_an_active_holder_is_not_to_be_nudged(hive: Hive, reviewer: Hive, clock: Clock) -> None:
    hive.reservations.reserve(["a.py"])
    clock.advance(QUIET_S - 1)
    with pytest.raises(Held) as refusal:
        reviewer.reservations.reserve(["a.py"])
    assert "nudge" not in str(refusal.value.hint)
    with pytest.raises(Conflict, match="was last seen 14m 59s ago, and counts as quiet after 15m"):
        reviewer.nudges.nudge("ui-engineer")


def test_the_quiet_time_is_a_setting(
    hive: Hive, reviewer: Hive, clock: Clock, beads: Path, open_as: Opener
) -> None:
    hive.reservations.reserve(["a.py"])
    write_settings(beads, 'quiet_after = "1m"\n')
    clock.advance(60)
    assert open_as("reviewer").nudges.nudge("ui-engineer")


def test_a_name_that_nobody_bears_cannot_be_nudged(hive: Hive) -> None:
    with pytest.raises(NotFound, match="nobody called oak has acted"):
        hive.nudges.nudge("oak")


def test_a_nudge_asks_once_until_it_is_answered(
    stalled: Hive, reviewer: Hive, clock: Clock, open_as: Opener
) -> None:
    asked = reviewer.nudges.nudge("ui-engineer")
    assert (asked.fields["nudge"], asked.importance) == (True, "high")
    assert "You have a.py, b.py." in asked.body
    clock.advance(30)
    assert open_as("oak").nudges.nudge("ui-engineer") == asked
    assert [each.id for each in stalled.messages.inbox()] == [asked.id]


# Taking over


def test_an_unanswered_minute_lets_anybody_take_over(
    stalled: Hive, reviewer: Hive, clock: Clock, beads: Path
) -> None:
    asked = reviewer.nudges.nudge("ui-engineer")
    clock.advance(59)
    assert reviewer.nudges.may_take_over("ui-engineer") is None
    with pytest.raises(InvalidInput, match="a takeover needs a reason") as refusal:
        reviewer.reservations.reserve(["a.py"], force=True)
    assert "has 1m to answer" in str(refusal.value.hint)
    clock.advance(1)
    with pytest.raises(Held) as held:
        reviewer.reservations.reserve(["a.py"])
    assert held.value.hint == (
        "ui-engineer did not answer a nudge; take over: queen reserve a.py --force"
    )
    [mine] = reviewer.reservations.reserve(["a.py"], force=True)
    assert mine.reason is None
    ended = next(r for r in records(beads / "queen_reservations.jsonl") if "released_by" in r)
    assert (ended["released_by"], ended["release_reason"]) == (
        "reviewer",
        "no sign of life from ui-engineer for 16m, and no answer to reviewer's nudge " + asked.id,
    )
    assert any("took over a.py: no sign of life" in m.body for m in stalled.messages.inbox())
    assert reviewer.reservations.reserve(["b.py"], force=True)  # Still no sign of life.


def test_a_nudge_is_no_news_once_nothing_of_what_it_is_about_is_left(
    stalled: Hive, reviewer: Hive, clock: Clock
) -> None:
    def unread() -> list[str]:
        stalled.messages.drop_merged()
        return [each.id for each in stalled.messages.inbox(unread=True)]

    asked = reviewer.nudges.nudge("ui-engineer")
    assert unread() == [asked.id]
    clock.advance(60)
    reviewer.reservations.reserve(["a.py"], force=True)
    assert asked.id in unread()
    reviewer.reservations.reserve(["b.py"], force=True)
    stalled.reservations.reserve(["c.py"])
    assert asked.id not in unread()


@pytest.mark.parametrize("answer", ["note_presence", "write", "edit"])
def test_an_answer_keeps_what_it_has(
    stalled: Hive, reviewer: Hive, clock: Clock, answer: str
) -> None:
    reviewer.nudges.nudge("ui-engineer")
    clock.advance(59)
    if answer == "note_presence":
        stalled.note_presence()
    elif answer == "write":
        stalled.messages.send("reviewer", "here")
    else:
        stalled.reservations.renew(everything=True)
    clock.advance(60)
    assert reviewer.nudges.may_take_over("ui-engineer") is None
    with pytest.raises(InvalidInput):
        reviewer.reservations.reserve(["a.py"], force=True)
    clock.advance(QUIET_S)  # Quiet again: the old nudge has been answered.
    assert reviewer.nudges.may_take_over("ui-engineer") is None


def test_the_others_in_the_way_keep_theirs(
    stalled: Hive, reviewer: Hive, clock: Clock, open_as: Opener
) -> None:
    oak = open_as("oak")
    reviewer.nudges.nudge("ui-engineer")
    clock.advance(60)
    oak.reservations.reserve(["c.py"])
    with pytest.raises(InvalidInput):
        reviewer.reservations.reserve(["*.py"], force=True)
    assert [lease.droid for lease in oak.reservations.find(droid="oak")] == ["oak"]


def test_force_without_a_reason_where_nothing_is_in_the_way_is_refused(reviewer: Hive) -> None:
    with pytest.raises(InvalidInput, match="a takeover needs a reason"):
        reviewer.reservations.reserve(["a.py"], force=True)


# Taking over an issue


def test_an_issue_is_taken_over_once(
    hive: Hive, reviewer: Hive, open_as: Opener, clock: Clock
) -> None:
    held = hive.assignments.claim("qb-1")
    clock.advance(QUIET_S)
    assert reviewer.assignments.relieve(held, "") is None
    reviewer.nudges.nudge("ui-engineer")
    clock.advance(60)
    given = reviewer.assignments.relieve(held, "unfinished in ../fern")
    assert given is not None and given.droid == "reviewer"
    assert "no answer to reviewer's nudge" in str(given.reason)
    assert str(given.reason).endswith("; unfinished in ../fern")
    assert open_as("tester").assignments.relieve(held, "") is None


def test_whoever_has_an_issue_is_quiet_sooner_while_somebody_waits_for_one(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    hive.assignments.claim("qb-1")
    clock.advance(3 * 60)
    assert not reviewer.droids.is_quiet("ui-engineer")
    with waits(reviewer, any_issue=True, wait_s=9999):
        assert reviewer.droids.is_quiet("ui-engineer")
        assert reviewer.droids.waiting_for("ui-engineer") == ["reviewer"]
    with waits(reviewer, "a.py", wait_s=9999):
        assert not reviewer.droids.is_quiet("ui-engineer")


def test_a_nudge_names_the_command_that_takes_over_what_it_has(hive: Hive, reviewer: Hive) -> None:
    hive.assignments.claim("qb-1")
    hive.reservations.reserve(["a.py"])
    assert reviewer.nudges.take_overs("ui-engineer") == [
        "queen issue assign qb-1 reviewer --force",
        "queen reserve a.py --force",
    ]
