"""The fixtures for programs that use a hive."""

from __future__ import annotations

import pytest

from queenbee import Hive
from queenbee.testing import HiveClock
from queenbee.testing import hive as _hive
from queenbee.testing import hive_clock as _hive_clock

own_hive, hive_clock = _hive, _hive_clock


@pytest.fixture
def hive(own_hive: Hive) -> Hive:
    return own_hive


def test_a_hive_is_there_with_a_clock_that_moves(hive: Hive, hive_clock: HiveClock) -> None:
    assert hive.actor == "tester"
    hive.reservations.reserve(["a"], ttl_s=60)
    assert hive.worktrees.list()[0].branch == "main"
    with Hive.open(hive.layout.root, droid="other", clock=hive_clock) as other:
        assert other.reservations.check(["a"])[0].status == "held"
        hive_clock.advance(61)
        assert other.reservations.check(["a"])[0].status == "free"
