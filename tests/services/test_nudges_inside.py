"""A droid that has gone quiet: the parts inside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hives import Clock

from queenbee import Hive
from queenbee.errors import Held
from queenbee.services.leases import lease_refusals
from queenbee.store.droids import presence

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]

QUIET_S = 15 * 60


@pytest.fixture
def stalled(hive: Hive, clock: Clock) -> Hive:
    """A hive whose actor holds two files, and has been quiet for long enough."""
    hive.reservations.reserve(["a.py", "b.py"])
    clock.advance(QUIET_S)
    return hive


def test_a_sign_from_the_future_is_one_of_now(hive: Hive, clock: Clock) -> None:
    presence.note(hive.layout, "birch", clock.now_ms + 10**9)
    hive.reservations.reserve(["a.py"])
    presence.note(hive.layout, "birch", clock.now_ms + 10**9)
    assert hive.droids.seen_ms("birch") == clock.now_ms


def test_one_that_comes_in_between_keeps_its_lease(
    stalled: Hive, reviewer: Hive, clock: Clock, open_as: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewer.nudges.nudge("ui-engineer")
    clock.advance(60)
    relieved = lease_refusals.relieved

    def relieved_in_between(*arguments: object) -> dict[str, str]:
        found = relieved(*arguments)
        open_as("oak").reservations.reserve(["c.py"])
        return found

    monkeypatch.setattr(lease_refusals, "relieved", relieved_in_between)
    with pytest.raises(Held):
        reviewer.reservations.reserve(["*.py"], force=True)
