"""Stale leases: live ones whose droid shows no sign of life."""

from __future__ import annotations

import pytest
from hives import Clock

from queenbee import Hive

pytestmark = pytest.mark.both_engines(thorough=True)


def patterns_of(leases):
    return [lease.pattern for lease in leases]


@pytest.fixture
def held(hive: Hive) -> Hive:
    """A hive in which the actor holds src/** for two hours."""
    hive.reservations.reserve(["src/**"], ttl_s=7200)
    return hive


def test_a_lease_is_fresh_until_half_of_its_time(held: Hive, clock: Clock) -> None:
    clock.advance(3599)
    assert held.reservations.stale() == []


def test_a_lease_is_stale_after_half_of_its_time_without_a_sign(held: Hive, clock: Clock) -> None:
    clock.advance(3600)
    assert patterns_of(held.reservations.stale()) == ["src/**"]


def test_a_lease_that_has_ended_is_not_stale(held: Hive, clock: Clock) -> None:
    clock.advance(7200)
    assert held.reservations.stale() == []


def test_a_message_is_a_sign_of_life(held: Hive, clock: Clock) -> None:
    clock.advance(3000)
    held.messages.send("queen", "still at it")
    clock.advance(3000)
    assert held.reservations.stale() == []


def test_a_renewal_is_a_sign_of_life(held: Hive, clock: Clock) -> None:
    clock.advance(3000)
    held.reservations.renew(everything=True)
    clock.advance(3000)
    assert held.reservations.stale() == []


def test_somebody_elses_sign_does_not_count(held: Hive, reviewer: Hive, clock: Clock) -> None:
    clock.advance(3600)
    reviewer.messages.send("queen", "hello")
    assert patterns_of(held.reservations.stale()) == ["src/**"]


def test_a_stale_lease_says_when_its_droid_was_last_seen(held: Hive, clock: Clock) -> None:
    [lease] = held.reservations.find()
    clock.advance(3600)
    [stale] = held.reservations.stale()
    assert stale.fields["last_seen_at"] == lease.created_at
