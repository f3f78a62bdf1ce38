"""Clocks that are wrong by years: a lease lasts its TTL by the present clock, whatever other lines
say, and what a wrong clock wrote can be ended, is reported, and can be repaired.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hives import START_MS, Clock, git, records, write_lines
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from queenbee import Hive
from queenbee.core.fold import MAX_REV
from queenbee.core.records import Assignment, Reservation
from queenbee.core.standing import superseded_assignments, superseded_leases
from queenbee.core.timestamps import LAST_MS, format_ms
from queenbee.errors import Conflict, Held, QueenError
from queenbee.services.care.doctor import examine, repair
from queenbee.services.writing import transaction
from queenbee.store.carriers.engine import Engine
from queenbee.workflows.tracking.tracker import Tracker

pytestmark = pytest.mark.both_engines

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FAR = "2099-01-01T00:00:00.000Z"
LAST = format_ms(LAST_MS)
ISSUE = "qb-1"


def lease(number: int, **more: Any) -> dict[str, Any]:
    fields = {"id": f"qr-{number}", "created_at": format_ms(START_MS - HOUR_MS), "rev": 1}
    held = {"pattern": "src/**", "droid": "api", "expires_at": LAST}
    return {**fields, **held, **more}


def assignment(number: int, **more: Any) -> dict[str, Any]:
    fields = {"id": f"qa-{number}", "created_at": format_ms(START_MS - HOUR_MS), "rev": 1}
    return {**fields, "issue_id": ISSUE, "droid": "api", "status": "active", **more}


def leases_of(beads: Path) -> Path:
    return beads / "queen_reservations.jsonl"


def assignments_of(beads: Path) -> Path:
    return beads / "queen_assignments.jsonl"


class TestALineOfTheLastRevisionAndDay:
    """What ends it has the same revision, no later timestamp, and a digest that may be smaller."""

    LAST: Mapping[str, Any] = {"rev": MAX_REV, "created_at": LAST, "updated_at": LAST}
    NUMBERS = range(10)

    def test_of_an_assignment_is_ended_by_whoever_releases_it(
        self, hive: Hive, beads: Path
    ) -> None:
        said = [
            assignment(n, **self.LAST, droid=hive.actor, issue_id=f"x-{n}") for n in self.NUMBERS
        ]
        write_lines(assignments_of(beads), *said)
        for number in self.NUMBERS:
            assert hive.assignments.release(f"x-{number}").status == "released"
        assert hive.assignments.find() == []

    def test_of_a_lease_is_ended_by_the_doctor(self, hive: Hive, beads: Path) -> None:
        said = [lease(n, **self.LAST, pattern=f"a{n}/**") for n in self.NUMBERS]
        write_lines(leases_of(beads), *said)
        repaired = repair(hive)
        assert [each for each in repaired if each.code == "clock" and not each.fixed] == []
        assert [each for each in examine(hive) if each.code == "clock"] == []

    def test_that_nothing_can_follow_is_said_to_stay(
        self, hive: Hive, beads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transaction, "_TRIES", 0)
        mine = {**self.LAST, "droid": hive.actor}
        write_lines(assignments_of(beads), assignment(1, **mine))
        write_lines(leases_of(beads), lease(1, **mine))
        with pytest.raises(Conflict, match="qa-1 has a line of the last revision"):
            hive.assignments.release(ISSUE)
        with pytest.raises(Conflict, match="qr-1 has a line of the last revision"):
            hive.reservations.release(everything=True)
        assert len(hive.assignments.find()) == len(hive.reservations.find()) == 1


class TestALeaseLastsItsTtl:
    @pytest.mark.parametrize("released_at", [FAR, LAST, format_ms(START_MS + HOUR_MS)])
    def test_after_one_that_was_released_in_the_future(
        self, hive: Hive, beads: Path, released_at: str
    ) -> None:
        write_lines(leases_of(beads), lease(1, status="released", released_at=released_at))
        [mine] = hive.reservations.reserve(["src/a.py"], ttl_s=60)
        assert mine.created_at == format_ms(START_MS)
        assert mine.expires_at == format_ms(START_MS + 60_000)
        assert [each.id for each in hive.reservations.find()] == [mine.id]
        assert hive.reservations.conflicts() == []

    def test_after_one_that_was_created_in_the_future(self, hive: Hive, beads: Path) -> None:
        write_lines(leases_of(beads), lease(1, created_at=FAR, droid="ui-engineer"))
        hive.reservations.release(everything=True)
        [mine] = hive.reservations.reserve(["src/**"], ttl_s=1)
        assert mine.expires_at == format_ms(START_MS + 1000)

    def test_when_its_own_droid_extends_one_that_a_wrong_clock_made_endless(
        self, hive: Hive, clock: Clock
    ) -> None:
        clock.now_ms = LAST_MS - HOUR_MS
        [first] = hive.reservations.reserve(["src/**"])
        clock.now_ms = START_MS
        assert first.expires_at == LAST
        [renewed] = hive.reservations.renew(["src/**"], ttl_s=60)
        assert renewed.expires_at == format_ms(START_MS + 60_000)

    def test_a_renewal_never_shortens_one_that_a_right_clock_granted(self, hive: Hive) -> None:
        [long] = hive.reservations.reserve(["src/**"], ttl_s=30 * 86_400)
        [renewed] = hive.reservations.renew(["src/**"], ttl_s=60)
        assert renewed.expires_at == long.expires_at


class TestTheLastYear:
    def test_leases_and_assignments_are_granted_and_ended(self, hive: Hive, clock: Clock) -> None:
        clock.now_ms = LAST_MS
        hive.assignments.claim(ISSUE)
        [held] = hive.reservations.reserve(["src/**"])
        assert held.expires_at == LAST
        hive.assignments.complete(ISSUE)
        hive.messages.send("api", "hello")
        assert hive.assignments.find() == []

    @pytest.mark.parametrize("now_ms", [2 * LAST_MS, -HOUR_MS, 2**62])
    def test_a_clock_that_no_timestamp_can_hold_ends_in_an_answer(
        self, hive: Hive, clock: Clock, now_ms: int
    ) -> None:
        clock.now_ms = now_ms
        hive.messages.send("api", "hello")
        hive.assignments.claim(ISSUE)
        hive.reservations.reserve(["src/**"])

    def test_an_assignment_created_then_is_ended_by_its_droid(
        self, hive: Hive, reviewer: Hive, beads: Path
    ) -> None:
        write_lines(assignments_of(beads), assignment(1, created_at=LAST, droid="ui-engineer"))
        hive.assignments.release(ISSUE)
        [given] = [reviewer.assignments.claim(ISSUE)]
        assert given.created_at == format_ms(START_MS)
        assert [each.droid for each in hive.assignments.find()] == ["reviewer"]
        assert [each.superseded_by for each in hive.assignments.find(status="all")] == [None, None]

    def test_after_an_assignment_ended_then_the_next_is_given_and_ended(
        self, hive: Hive, beads: Path
    ) -> None:
        row = assignment(1, status="released", updated_at=LAST)
        write_lines(assignments_of(beads), row)
        given = hive.assignments.claim(ISSUE)
        assert given.created_at == format_ms(START_MS)
        assert [each.id for each in hive.assignments.find()] == [given.id]
        hive.assignments.complete(ISSUE)
        assert hive.assignments.find() == []

    def test_a_row_of_the_tracker_from_then_is_closed(self, hive: Hive, beads: Path) -> None:
        row = {"id": ISSUE, "title": "t", "status": "open", "created_at": LAST, "updated_at": LAST}
        write_lines(beads / "issues.jsonl", row)
        hive.assignments.claim(ISSUE)
        Tracker(hive).close(ISSUE, anyway=True)
        assert hive.issues.get(ISSUE).done


class TestWhatLostStaysLost:
    """The end of the older grant is dated before the beginning of the one that lost to it."""

    def test_a_lease(self, hive: Hive, beads: Path) -> None:
        hive.reservations.reserve(["src/**"], ttl_s=30 * 86_400)
        created = format_ms(START_MS + 2 * DAY_MS)
        write_lines(leases_of(beads), lease(1, created_at=created, pattern="src/a.py"))
        [mine] = hive.reservations.release(["src/**"])
        assert mine.released_at == format_ms(START_MS)
        assert hive.reservations.find() == []
        assert mine.outranks == ("qr-1",)

    def test_an_assignment(self, hive: Hive, beads: Path) -> None:
        hive.assignments.claim(ISSUE)
        write_lines(assignments_of(beads), assignment(1, created_at=LAST))
        mine = hive.assignments.release(ISSUE)
        assert mine.updated_at == format_ms(START_MS)
        assert hive.assignments.find() == []
        assert mine.outranks == ("qa-1",)


class TestTheDoctor:
    def test_tells_of_a_lease_from_a_wrong_clock_and_ends_it(
        self, hive: Hive, reviewer: Hive, beads: Path
    ) -> None:
        write_lines(leases_of(beads), lease(1, created_at=FAR))
        with pytest.raises(Held) as refused:
            hive.reservations.reserve(["src/a.py"])
        assert refused.value.hint == "a wrong clock granted it; to end it: queen doctor --fix"
        [finding] = [each for each in examine(hive) if each.code == "clock"]
        assert finding.severity == "error"
        assert finding.hint == "queen doctor --fix"
        [fixed] = [each for each in repair(hive) if each.code == "clock"]
        assert fixed.fixed
        assert hive.reservations.reserve(["src/a.py"])
        told = hive.messages.inbox(droid="api")
        assert [each.body for each in told] == [
            "ui-engineer ended src/**: a wrong clock granted it"
        ]

    def test_tells_of_ends_in_the_future_and_repairs_them(self, hive: Hive, beads: Path) -> None:
        write_lines(leases_of(beads), lease(1, status="released", released_at=FAR))
        write_lines(assignments_of(beads), assignment(1, status="released", updated_at=FAR))
        write_lines(assignments_of(beads), assignment(2, status="completed", updated_at=LAST))
        before = records(leases_of(beads))
        assert [each.fixed for each in repair(hive) if each.code == "clock"] == [True] * 3
        assert records(leases_of(beads))[: len(before)] == before
        assert [each for each in examine(hive) if each.code == "clock"] == []
        [mine] = hive.reservations.reserve(["src/**"])
        assert "follows" not in mine.fields

    def test_repairs_nothing_that_a_clock_within_a_day_wrote(self, hive: Hive, beads: Path) -> None:
        soon = format_ms(START_MS + DAY_MS)
        write_lines(leases_of(beads), lease(1, created_at=soon, expires_at=soon))
        write_lines(assignments_of(beads), assignment(1, status="released", updated_at=soon))
        assert [each for each in examine(hive) if each.code == "clock"] == []

    def test_two_clones_that_repair_apart_write_the_same_end(
        self, hive: Hive, beads: Path, clock: Clock
    ) -> None:
        write_lines(leases_of(beads), lease(1, status="released", released_at=FAR))
        clock.advance(600)
        repair(hive)
        [repaired] = hive.reservations.find(ended=True)
        assert repaired.released_at == repaired.created_at


class TestAClockThatIsBehind:
    """A machine whose clock was reset must not take every record for one from the future."""

    @pytest.fixture
    def behind(self, hive: Hive, clock: Clock) -> Hive:
        hive.reservations.reserve(["src/**"])
        return Hive.open(hive.layout.tree, droid="reviewer")

    def aged(self, hive: Hive, at_ms: int, names: tuple[str, ...] = ()) -> None:
        for folder, _, files in os.walk(hive.layout.tree):
            for name in files:
                if not names or name in names:
                    os.utime(os.path.join(folder, name), (at_ms // 1000, at_ms // 1000))

    @pytest.mark.only_files  # The database has a clock.
    def test_the_files_say_what_the_clock_does_not(
        self, hive: Hive, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.aged(hive, START_MS + 300 * DAY_MS)
        assert Engine(hive.layout).present_ms(0) == START_MS + 300 * DAY_MS
        monkeypatch.setattr("time.time_ns", lambda: 10**18 // 10**6 * 10**6)
        real = Hive.open(hive.layout.tree, droid="ui-engineer")
        assert real.present_ms() == START_MS + 300 * DAY_MS
        codes = [each.code for each in examine(real)]
        assert "clock_behind" in codes
        assert "clock" not in codes

    def test_a_few_files_from_the_future_say_nothing(self, hive: Hive) -> None:
        hive.reservations.reserve(["src/**"])
        self.aged(hive, START_MS)
        self.aged(hive, LAST_MS // 2, ("lock", "reservations.jsonl"))
        assert Engine(hive.layout).present_ms(START_MS) == START_MS


INSTANTS = st.one_of(
    st.integers(START_MS - 3 * HOUR_MS, START_MS + 3 * HOUR_MS),
    st.sampled_from((0, START_MS, START_MS + 40 * DAY_MS, LAST_MS - 1, LAST_MS)),
)
DROIDS = ("api", "ui", "ops")
FOREIGN = st.tuples(
    st.sampled_from(DROIDS),
    INSTANTS,
    INSTANTS,
    st.sampled_from(("active", "released")),
    INSTANTS,
    st.sampled_from(("src/**", "src/a.py", "docs/**")),
    st.booleans(),
)
STEPS_TAKEN = ("reserve", "force", "renew", "release", "claim", "give back", "complete", "fix")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(DROIDS),
        INSTANTS,
        st.sampled_from(STEPS_TAKEN),
        st.sampled_from(("src/**", "src/a.py")),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def foreign_rows(drawn: list[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    leased, assigned = [], []
    for number, (droid, born, ends, status, ended, pattern, exclusive) in enumerate(drawn):
        common = {"droid": droid, "created_at": format_ms(born), "status": status}
        more = {"expires_at": format_ms(ends), "pattern": pattern, "exclusive": exclusive}
        if status == "released":
            more["released_at"] = format_ms(ended)
        leased.append(lease(number, **common, **more))
        assigned.append(assignment(number, **common, updated_at=format_ms(ended)))
    return leased, assigned


def judged(hive: Hive) -> tuple[dict[str, str], dict[str, str]]:
    """The verdicts as a fresh clone reaches them, from the records alone."""
    leased = map(Reservation, hive.state("reservations").everything())
    assigned = map(Assignment, hive.state("assignments").everything())
    return superseded_leases(leased), superseded_assignments(assigned)


def take(hive: Hive, how: str, pattern: str, *, exclusive: bool) -> Any:
    """Takes one step; returns what was granted."""
    if how == "reserve":
        return hive.reservations.reserve([pattern], exclusive=exclusive, ttl_s=60)
    if how == "force":
        return hive.reservations.reserve([pattern], force=True, reason="urgent", ttl_s=60)
    if how == "renew":
        return hive.reservations.renew(everything=True, ttl_s=60) and None
    if how == "release":
        return hive.reservations.release(everything=True) and None
    if how == "claim":
        return [hive.assignments.claim(ISSUE)]
    if how == "fix":
        return repair(hive) and None
    return getattr(hive.assignments, "release" if how == "give back" else how)(ISSUE) and None


def wild_history(drawn: list[Any], steps: list[Any]) -> None:
    """Runs a history; after each step, what was granted before is what it was."""
    clock = Clock()
    place = tempfile.mkdtemp()
    try:
        git(Path(place), "init", "-q")
        (Path(place) / ".beads").mkdir()
        hives = {name: Hive.open(place, droid=name, clock=clock) for name in DROIDS}
        leased, assigned = foreign_rows(drawn)
        beads = Path(place) / ".beads"
        write_lines(beads / "queen_reservations.jsonl", *leased)
        write_lines(beads / "queen_assignments.jsonl", *assigned)
        for droid, now_ms, how, pattern, exclusive in steps:
            clock.now_ms = now_ms
            hive = hives[droid]
            lost = [key for each in judged(hive) for key in each]
            before = hive.reservations.find(ended=True)
            known = {each.id for each in before}
            try:
                granted = take(hive, how, pattern, exclusive=exclusive) or []
            except QueenError:
                granted = []
            now = [key for each in judged(hive) for key in each]
            ended = {
                each.id for each in hive.reservations.find(ended=True) if each.status == "released"
            } | {each.id for each in hive.assignments.find(status="all") if each.status != "active"}
            # What lost once has lost for good, unless it was ended.
            assert set(lost) <= set(now) | ended
            for each in granted:
                assert each.id not in now, "a grant lost to one that had ended"
                if isinstance(each, Reservation) and each.id not in known:
                    until_ms = min(now_ms + 60_000, LAST_MS)
                    # A lease that becomes exclusive lasts no shorter than it would have shared.
                    shared = [
                        old.expires_ms
                        for old in before
                        if (old.droid, old.pattern, old.exclusive) == (droid, pattern, False)
                        and old.expires_ms < LAST_MS - 1  # Else a wrong clock granted it.
                    ]
                    assert each.expires_ms >= until_ms
                    assert each.expires_ms in (until_ms, *(shared if each.exclusive else ()))
    finally:
        shutil.rmtree(place)


WILD = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


RELEASED_LATER = ("api", START_MS - 1, LAST_MS, "released", LAST_MS, "src/**", True)
MINE = ("ui", START_MS - 1, START_MS + 2 * HOUR_MS, "active", 0, "src/**", True)
THEIRS = ("api", START_MS + HOUR_MS, LAST_MS, "active", 0, "src/a.py", True)
SHARED_LONGER = ("api", START_MS, START_MS + 61_000, "active", START_MS, "src/**", False)


@pytest.mark.slow
@WILD
@example([RELEASED_LATER], [("ui", START_MS, "reserve", "src/a.py", True)])
@example([MINE, THEIRS], [("ui", START_MS, "release", "src/**", True)])
@example([SHARED_LONGER], [("api", START_MS, "force", "src/**", True)])
@given(st.lists(FOREIGN, max_size=3), STEPS)
def test_whatever_the_clocks_say_a_grant_lasts_and_what_lost_stays_lost(
    drawn: list[Any], steps: list[Any]
) -> None:
    wild_history(drawn, steps)
