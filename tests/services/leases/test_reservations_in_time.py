"""Reservations: how a lease ends, is extended, renewed, released."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, cloned, environment, records, snapshot, write_lines

from queenbee import Hive, Reservation
from queenbee.errors import Held, InvalidInput, NotFound, NotYours

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]
DAY_S = 86_400


def ledger(beads: Path) -> Path:
    return beads / "queen_reservations.jsonl"


def patterns(hive: Hive) -> list[str]:
    return [lease.pattern for lease in hive.reservations.find()]


# Time


def test_a_lease_ends_at_its_time_without_a_line_being_written(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock
) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=60)
    before = snapshot(beads)
    clock.advance(59.999)
    with pytest.raises(Held):
        reviewer.reservations.reserve(["a.py"])
    clock.advance(0.001)
    assert patterns(hive) == []
    assert [lease.status for lease in hive.reservations.find(ended=True)] == ["expired"]
    assert snapshot(beads) == before
    assert reviewer.reservations.reserve(["a.py"])


@pytest.mark.only_files  # It copies files.
def test_a_clock_set_back_does_not_make_a_new_lease_lose_to_the_old_one(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock, tmp_path: Path
) -> None:
    hive.reservations.reserve(["a.py"])
    clock.advance(600)
    hive.reservations.release(["a.py"])
    clock.advance(-500)
    [lease] = reviewer.reservations.reserve(["*.py"])
    # Where the lines came by git, each grant is judged by what the records say of its time.
    clone = Hive.open(cloned(beads, tmp_path / "clone"), env={}, clock=clock)
    assert clone.reservations.find() == [lease]
    assert clone.reservations.conflicts() == []


def test_a_lease_without_a_readable_end_has_ended(hive: Hive, beads: Path) -> None:
    row = {"id": "qr-x", "created_at": "2024-12-14T10:00:00Z", "pattern": "**", "droid": "x"}
    write_lines(ledger(beads), {**row, "status": "active", "expires_at": "soon"})
    assert hive.reservations.reserve(["a.py"])


# Extending


def test_reserving_again_extends_the_same_lease(hive: Hive, beads: Path, clock: Clock) -> None:
    [first] = hive.reservations.reserve(["a.py"], ttl_s=600)
    clock.advance(60)
    [again] = hive.reservations.reserve(["a.py"], ttl_s=600)
    assert (again.id, again.rev) == (first.id, 2)
    assert again.expires_at == "2024-12-14T10:41:00.000Z"
    assert len(records(ledger(beads))) == 2


@pytest.mark.parametrize("verb", ["reserve", "renew"])
def test_asking_for_less_never_shortens_a_lease(hive: Hive, verb: str) -> None:
    [first] = hive.reservations.reserve(["a.py"], ttl_s=7200)
    [again] = getattr(hive.reservations, verb)(["a.py"], ttl_s=60)
    assert again.expires_at == first.expires_at


def test_reserving_again_as_shared_keeps_it_exclusive(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    [again] = hive.reservations.reserve(["a.py"], exclusive=False)
    assert again.exclusive
    with pytest.raises(Held):
        reviewer.reservations.reserve(["a.py"], exclusive=False)


def test_a_shared_lease_becomes_exclusive_only_where_nobody_else_has_one(
    hive: Hive, open_beside: Opener
) -> None:
    reviewer = open_beside("reviewer")
    hive.reservations.reserve(["a.py"], exclusive=False)
    reviewer.reservations.reserve(["a.py"], exclusive=False)
    with pytest.raises(Held):
        hive.reservations.reserve(["a.py"])
    reviewer.reservations.release(["a.py"])
    (lease,) = hive.reservations.reserve(["a.py"])
    assert lease.exclusive
    assert hive.reservations.find() == [lease]


def test_a_shared_lease_that_became_exclusive_does_not_lose_to_one_that_had_ended(
    hive: Hive, open_beside: Opener, clock: Clock, beads: Path
) -> None:
    """Others shared the file before: after a merge, theirs must not win over what came later."""
    reviewer = open_beside("reviewer")
    reviewer.reservations.reserve(["a.py"], exclusive=False)
    clock.advance(1)
    hive.reservations.reserve(["a.py"], exclusive=False)
    clock.advance(1)
    reviewer.reservations.release(["a.py"])
    clock.advance(1)
    (lease,) = hive.reservations.reserve(["a.py"])
    # A line from elsewhere makes everybody judge all grants anew.
    row = records(beads / "queen_reservations.jsonl")[0]
    write_lines(beads / "queen_reservations.jsonl", {**row, "id": "qr-other", "pattern": "b.py"})
    assert lease in hive.reservations.find()
    with pytest.raises(Held):
        reviewer.reservations.reserve(["a.py"])


def test_a_shared_lease_that_becomes_exclusive_keeps_its_end_issue_and_reason(
    hive: Hive, clock: Clock
) -> None:
    [first] = hive.reservations.reserve(
        ["a.py"], exclusive=False, ttl_s=7200, issue_id="qb-1", reason="tidy"
    )
    clock.advance(10)
    [second] = hive.reservations.reserve(["a.py"], ttl_s=60)
    assert (second.expires_at, second.issue_id, second.reason) == (
        first.expires_at,
        "qb-1",
        "tidy",
    )


def test_extending_keeps_issue_and_reason_unless_new_ones_are_given(hive: Hive) -> None:
    hive.reservations.reserve(["a.py"], issue_id="qb-1", reason="first")
    [kept] = hive.reservations.reserve(["a.py"])
    assert (kept.issue_id, kept.reason) == ("qb-1", "first")
    [changed] = hive.reservations.reserve(["a.py"], issue_id="qb-2", reason="second")
    assert (changed.issue_id, changed.reason) == ("qb-2", "second")


def test_renewing_all_extends_everything_that_one_holds(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    hive.reservations.reserve(["a.py", "b.py"], ttl_s=600)
    reviewer.reservations.reserve(["c.py"], ttl_s=600)
    clock.advance(60)
    renewed = hive.reservations.renew(everything=True, ttl_s=1200)
    assert {each.pattern: each.expires_at for each in renewed} == {
        "a.py": "2024-12-14T10:51:00.000Z",
        "b.py": "2024-12-14T10:51:00.000Z",
    }


def test_an_expired_lease_cannot_be_renewed(hive: Hive, beads: Path, clock: Clock) -> None:
    [lease] = hive.reservations.reserve(["a.py"], ttl_s=60)
    clock.advance(60)
    before = snapshot(beads)
    for attempt in (
        lambda: hive.reservations.renew(["a.py"]),
        lambda: hive.reservations.renew(ids=[lease.id]),
        lambda: hive.reservations.renew(everything=True),
        lambda: hive.reservations.release(["a.py"]),
    ):
        with pytest.raises(NotFound, match="holds no"):
            attempt()
    assert snapshot(beads) == before


def test_an_expired_lease_is_reserved_anew_under_a_new_id(hive: Hive, clock: Clock) -> None:
    [old] = hive.reservations.reserve(["a.py"], ttl_s=60)
    clock.advance(60)
    [new] = hive.reservations.reserve(["a.py"], ttl_s=60)
    assert (new.rev, new.id != old.id) == (1, True)


# Releasing


def test_releasing_writes_the_whole_record_with_the_time(
    hive: Hive, beads: Path, clock: Clock
) -> None:
    hive.reservations.reserve(["a.py"], issue_id="qb-42")
    clock.advance(60)
    hive.reservations.release(["a.py"])
    first, second = records(ledger(beads))
    released = {"status": "released", "released_at": "2024-12-14T10:31:00.000Z"}
    assert second == {**first, **released, "rev": 2}


def released(hive: Hive, *names: str, **more: object) -> set[str]:
    done: list[Reservation] = hive.reservations.release(names, **more)  # type: ignore[arg-type]
    return {lease.pattern for lease in done}


def test_leases_are_released_by_pattern_by_id_or_all(hive: Hive) -> None:
    leases = hive.reservations.reserve(["a.py", "b/**", "c.py", "d.py"])
    assert released(hive, "./a.py", "b/") == {"a.py", "b/**"}
    assert released(hive, ids=[leases[2].id]) == {"c.py"}
    assert released(hive, everything=True) == {"d.py"}
    assert patterns(hive) == []


@pytest.mark.parametrize("verb", ["release", "renew"])
def test_what_one_does_not_hold_is_an_error_never_a_silent_zero(
    hive: Hive, beads: Path, verb: str
) -> None:
    for arguments in ({"patterns": ["a.py"]}, {"ids": ["qr-nowhere"]}, {"everything": True}):
        with pytest.raises(NotFound, match="ui-engineer holds no") as refusal:
            getattr(hive.reservations, verb)(**arguments)
        assert "queen reserve list" in str(refusal.value.hint)
    with pytest.raises(InvalidInput, match="no reservations given"):
        getattr(hive.reservations, verb)()
    assert snapshot(beads) == {}


@pytest.mark.parametrize("verb", ["release", "renew"])
@pytest.mark.parametrize("who", ["reviewer", "queen", "human"])
def test_another_droids_lease_cannot_be_released_or_renewed(
    hive: Hive, open_as: Opener, beads: Path, verb: str, who: str
) -> None:
    [lease] = hive.reservations.reserve(["a.py"])
    before = snapshot(beads)
    for arguments in ({"patterns": ["a.py"]}, {"ids": [lease.id]}):
        with pytest.raises(NotYours, match=f"reserved by ui-engineer, not by {who}") as refusal:
            getattr(open_as(who).reservations, verb)(**arguments)
        assert refusal.value.owner == "ui-engineer"
    assert snapshot(beads) == before


@pytest.mark.parametrize("verb", ["release", "renew"])
def test_several_are_released_or_renewed_together_or_not_at_all(
    hive: Hive, beads: Path, verb: str
) -> None:
    hive.reservations.reserve(["a.py"])
    before = snapshot(beads)
    with pytest.raises(NotFound):
        getattr(hive.reservations, verb)(["a.py", "never.py"])
    assert snapshot(beads) == before


def test_a_name_means_what_it_means_here_before_it_means_what_the_listing_shows(
    repo: Path, clock: Clock
) -> None:
    (repo / "src").mkdir()
    here = Hive.open(repo / "src", droid="ui-engineer", env=environment(), clock=clock)
    here.reservations.reserve(["x.py", "../x.py"])
    assert released(here, "x.py") == {"src/x.py"}
    assert released(here, "x.py") == {"x.py"}
