"""Waiting for a lease, at a clock of the test's own: what wakes a waiter, how often it looks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from hives import Clock, snapshot, write_lines

from queenbee import Hive
from queenbee.core.queue import Want
from queenbee.errors import Busy
from queenbee.services.leases import reservations
from queenbee.services.waiting import attempts
from queenbee.store import files
from queenbee.store.carriers import engine as where_lines_are
from queenbee.store.carriers.postgres.postgres_carrier import PostgresCarrier

pytestmark = pytest.mark.both_engines


class Patience:
    """Time as a waiter sees it: passes while it waits, and lets others act meanwhile."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.began_ms = clock.now_ms
        self.waited_s = 0.0
        self.looks = 0
        self.at_look: dict[int, Callable[[], object]] = {}

    def monotonic(self) -> float:
        return self.waited_s

    def monotonic_ns(self) -> int:
        return round(self.waited_s * 1_000_000_000)

    def wait_for_change(
        self, stamp: Callable[[], object], before: object, deadline_s: float
    ) -> bool:
        """Looks ten times a second, as the real one looks at its files."""
        while stamp() == before:
            if self.waited_s >= deadline_s:
                return False
            self.look(deadline_s - self.waited_s)
        return True

    def news(self, timeout_s: float) -> int:
        """As of a database that announces something all the time."""
        self.look(timeout_s)
        return self.looks

    def look(self, timeout_s: float) -> None:
        self.waited_s += min(0.1, timeout_s)
        self.clock.now_ms = self.began_ms + round(self.waited_s * 1000)
        self.looks += 1
        self.at_look.get(self.looks, lambda: None)()


@pytest.fixture
def patience(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Patience:
    patience = Patience(clock)
    monkeypatch.setattr(attempts, "time", patience)
    monkeypatch.setattr(files, "wait_for_change", patience.wait_for_change)
    monkeypatch.setattr(where_lines_are, "time", patience)
    monkeypatch.setattr(PostgresCarrier, "news", lambda _, timeout_s: patience.news(timeout_s))
    return patience


def test_a_free_path_is_granted_without_waiting(hive: Hive, patience: Patience) -> None:
    assert hive.reservations.reserve(["a.py"], timeout_s=60)
    assert patience.looks == 0


def test_a_release_wakes_a_waiter_at_its_next_look(
    hive: Hive, reviewer: Hive, patience: Patience
) -> None:
    hive.reservations.reserve(["a.py"])
    patience.at_look[3] = lambda: hive.reservations.release(["a.py"])
    [lease] = reviewer.reservations.reserve(["a.py"], timeout_s=60)
    assert (lease.droid, patience.looks) == ("reviewer", 3)


def test_an_expiry_wakes_a_waiter_though_nothing_is_written(
    hive: Hive, reviewer: Hive, patience: Patience
) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=2)
    assert reviewer.reservations.reserve(["a.py"], timeout_s=60)
    assert patience.waited_s == pytest.approx(2, abs=0.1)


def test_a_waiter_tries_again_only_after_a_change(
    hive: Hive, reviewer: Hive, patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive.reservations.reserve(["a.py"])
    tries = []
    grant = reservations.Reservations._grant
    monkeypatch.setattr(
        reservations.Reservations, "_grant", lambda *args: (tries.append(1), grant(*args))[1]
    )
    with pytest.raises(Busy):
        reviewer.reservations.reserve(["a.py"], timeout_s=10)
    assert len(tries) == 1


def test_an_unrelated_write_does_not_end_the_wait(
    hive: Hive, reviewer: Hive, patience: Patience
) -> None:
    hive.reservations.reserve(["a.py"])
    patience.at_look[2] = lambda: hive.reservations.reserve(["b.py"])
    patience.at_look[5] = lambda: hive.reservations.release(["a.py"])
    assert reviewer.reservations.reserve(["a.py"], timeout_s=60)
    assert patience.looks == 5


def test_a_renewal_makes_a_waiter_wait_on(hive: Hive, reviewer: Hive, patience: Patience) -> None:
    hive.reservations.reserve(["a.py"], ttl_s=1)
    renewed_s = []

    def renew() -> None:
        renewed_s.append(patience.waited_s)
        hive.reservations.renew(["a.py"], ttl_s=5)

    patience.at_look[2] = renew
    assert reviewer.reservations.reserve(["a.py"], timeout_s=60)
    assert patience.waited_s == pytest.approx(renewed_s[0] + 5, abs=0.1)


def test_a_release_by_a_foreign_program_wakes_a_waiter(
    hive: Hive, reviewer: Hive, patience: Patience, beads: Path
) -> None:
    [lease] = hive.reservations.reserve(["a.py"])
    ended = {**lease.to_dict(), "status": "released", "rev": 2}
    patience.at_look[4] = lambda: write_lines(beads / "queen_reservations.jsonl", ended)
    assert reviewer.reservations.reserve(["a.py"], timeout_s=60)
    assert patience.looks == 4


def test_a_waiter_that_times_out_sees_the_holder(
    hive: Hive, reviewer: Hive, patience: Patience, beads: Path
) -> None:
    hive.reservations.reserve(["a.py"], reason="Button")
    before = snapshot(beads)
    with pytest.raises(Busy, match="timed out after 10s") as refusal:
        reviewer.reservations.reserve(["a.py"], timeout_s=10)
    assert "held by ui-engineer (Button)" in refusal.value.message
    assert [holder["droid"] for holder in refusal.value.holders] == ["ui-engineer"]
    assert patience.waited_s == pytest.approx(10)
    assert snapshot(beads) == before


def test_a_waiter_that_times_out_sees_who_is_left_of_those_ahead(
    open_as: Callable[[str], Hive], reviewer: Hive, patience: Patience
) -> None:
    want = Want(["src/**"])
    with open_as("oak").queue.register(want, 60), ExitStack() as leaving:
        leaving.enter_context(open_as("elm").queue.register(want, 60))
        patience.at_look[2] = leaving.close
        with pytest.raises(Busy, match="oak has waited for src") as refusal:
            reviewer.reservations.reserve(["src/a.py"], timeout_s=10)
    assert [each["droid"] for each in refusal.value.details["ahead"]] == ["oak"]


def test_several_patterns_are_waited_for_together(
    hive: Hive, reviewer: Hive, patience: Patience
) -> None:
    hive.reservations.reserve(["a.py", "b.py"])
    patience.at_look[2] = lambda: hive.reservations.release(["a.py"])
    patience.at_look[3] = lambda: seen.append(reviewer.reservations.find(droid="reviewer"))
    patience.at_look[4] = lambda: hive.reservations.release(["b.py"])
    seen: list[object] = []
    leases = reviewer.reservations.reserve(["a.py", "b.py", "c.py"], timeout_s=60)
    assert len(leases) == 3
    assert seen == [[]]
