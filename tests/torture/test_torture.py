"""The long runs, for a second or two each, and what is broken on purpose, which they must catch."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from extent import quick_or

from queenbee.store.memory.database import Turn
from queenbee.store.memory.recorded import Recorded
from tests.torture import (
    converge,
    faults,
    fuzz,
    fuzz_documents,
    git_torture,
    hub_landings,
    kills,
    landings,
    linear,
    remote,
    storm,
    team,
    tracker,
)
from tests.torture.places import Broken


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    return str(tmp_path)


@pytest.mark.slow
class TestGit:
    def test_loses_nothing_that_was_acknowledged(self, folder):
        figures = git_torture.torture(folder, quick_or(3, quick=1), seed=1)
        assert figures["acknowledged"] > 0
        assert figures["lost"] == 0

    @pytest.mark.thorough
    def test_with_a_memory_that_brings_nothing_back_is_caught(self, folder):
        with pytest.raises(Broken, match=r"lost|lacks"):
            git_torture.torture(folder, 2, seed=2, broken="memory")


@pytest.mark.slow
class TestTracker:
    def test_loses_no_issue_and_no_edit_that_was_acknowledged(self, folder):
        figures = tracker.torture(folder, quick_or(20, quick=3), seed=1)
        assert figures["acknowledged"] > 0
        assert figures["lost"] == 0


@pytest.mark.slow
@pytest.mark.linux
class TestKills:
    def test_at_every_step_leave_what_was_acknowledged_whole(self, folder):
        scenes = (
            kills.AppendFromAnOpenHive,
            kills.AppendSeveral,
            kills.TwoLedgers,
            kills.Heal,
            kills.Rotate,
            kills.Init,
        )[: quick_or(6, quick=1)]
        counts = kills.at_every_step(folder, scenes=scenes, parts=(0.5,))
        assert set(counts) == {scene.__name__ for scene in scenes}
        assert min(counts.values()) > 2

    def test_at_random_leave_what_was_acknowledged_whole(self, folder):
        assert kills.at_random(folder, quick_or(6, quick=3), seed=1)["lost"] == 0

    @pytest.mark.thorough
    def test_without_a_transaction_are_caught(self, folder, monkeypatch):
        monkeypatch.setattr(Turn, "__enter__", lambda turn: turn._database.mutex.acquire())
        monkeypatch.setattr(Turn, "__exit__", lambda turn, *_: turn._database.mutex.release())
        with pytest.raises(Broken, match="of 5 patterns"):
            kills.at_every_step(folder, scenes=(kills.AppendSeveral,), parts=(0.5,))


@pytest.mark.slow
@pytest.mark.thorough
def test_a_team_under_torture_lands_everything_once(folder):
    figures = team.run(folder, issues=6, agents=4, seed=1)
    assert figures["issues"] == 6


LANDINGS = quick_or(6, quick=3)


@pytest.mark.slow
class TestLandings:
    def test_of_many_at_once_are_in_a_line_and_checked_as_they_are(self, folder):
        agents = quick_or(4, quick=3)
        figures = landings.at_once(folder, agents=agents, landings=LANDINGS, seed=1)
        assert figures["landings"] == LANDINGS
        assert 1 <= figures["steps of the target"] <= LANDINGS  # Those who wait land together.

    @pytest.mark.thorough
    def test_of_several_clones_are_in_one_line_on_their_hub(self, folder):
        figures = hub_landings.at_once(
            folder, clones=2, agents=2, landings=quick_or(4, quick=2), seed=1
        )
        assert 1 <= figures["steps of the target"] <= figures["landings"]

    @pytest.mark.some(1)
    @pytest.mark.parametrize("hub", [False, True], ids=["here", "on a hub"])
    def test_killed_at_a_call_of_git_land_once_and_leave_nothing_half_done(self, folder, hub):
        counts = landings.at_every_step(
            folder, ways=("before", "after"), every=quick_or(10, quick=40), hub=hub
        )
        assert min(counts.values()) >= quick_or(2, quick=1)


@pytest.mark.slow
class TestRaces:
    def test_grant_nothing_twice_and_refuse_nothing_that_is_free(self, folder):
        operations = quick_or(1_500, quick=250)
        figures = linear.run(folder, operations, processes=4)
        assert figures["operations"] >= operations
        assert figures["refused"] > 0
        assert figures["examples"] == []

    @pytest.mark.thorough
    def test_without_the_lock_are_caught(self, folder):
        assert linear.run(folder, 800, processes=4, broken="lock")["violations"] > 0


@pytest.mark.slow
@pytest.mark.linux
class TestEverythingAtOnce:
    def test_loses_and_doubles_nothing_and_writes_nothing_outside(self, folder):
        figures = storm.run(folder, quick_or(6, quick=3), seed=1, droids=3)
        assert figures["acknowledged"] > 0
        assert figures["moves"] + figures["links"] + figures["kills"] + figures["stops"] > quick_or(
            5, quick=1
        )

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("broken", "what"),
        [
            ("lock", "granted twice|lost|answers|index|conflict|forked children"),
            ("outside", "outside the hive"),
        ],
    )
    def test_what_is_broken_is_caught(self, folder, broken, what):
        with pytest.raises(Broken, match=what):
            storm.run(folder, 15, seed=2, droids=4, broken=broken)


class TestTheCheckerOfRaces:
    """Histories of a few notes: asked, answered, droid, operation, what, outcome, more."""

    HELD = (
        [10, 20, "ui", "reserve", "a/*", "done", {"exclusive": True}],
        [50, 60, "ui", "release", "a/*", "done", {}],
    )

    @pytest.mark.parametrize(
        ("asked", "answered", "outcome", "possible"),
        [
            (22, 40, "done", False),
            (22, 55, "done", True),
            (61, 70, "done", True),
            (5, 15, "done", False),
            (22, 40, "refused", True),
            (55, 65, "refused", True),
            (5, 15, "refused", True),
            (1, 9, "refused", False),
            (61, 70, "refused", False),
        ],
    )
    def test_knows_what_can_have_been(self, asked, answered, outcome, possible):
        note = [asked, answered, "api", "reserve", "a/x.py", outcome, {"exclusive": True}]
        assert (linear.violations([*map(list, self.HELD), note]) == []) == possible

    @pytest.mark.parametrize(("other", "possible"), [("two", True), ("one", False)])
    def test_lets_droids_share_in_two_working_trees_only(self, other, possible):
        notes = [
            [1, 2, "ui", "reserve", "a/*", "done", {"exclusive": False, "tree": "one"}],
            [3, 4, "api", "reserve", "a/*", "done", {"exclusive": False, "tree": other}],
        ]
        assert (linear.violations(notes) == []) == possible

    def test_knows_an_issue_that_two_droids_have(self):
        notes = [
            [1, 2, "ui", "claim", "qb-1", "done", {}],
            [3, 4, "api", "claim", "qb-1", "done", {}],
        ]
        assert len(linear.violations(notes)) == 1

    def test_knows_a_lease_that_ended_by_itself(self):
        notes = [self.HELD[0], [50, 60, "ui", "release", "a/*", "gone", {}]]
        assert linear.violations(list(map(list, notes))) == ["ui release a/*: gone"]


@pytest.mark.slow
class TestConvergence:
    def test_clones_that_hold_the_same_lines_say_the_same(self, folder):
        figures = converge.run(folder, histories=quick_or(2, quick=1), steps=40, seed=3)
        assert figures["superseded"] > 0

    @pytest.mark.thorough
    def test_without_judging_what_came_from_elsewhere_is_caught(self, folder, monkeypatch):
        monkeypatch.setattr(Recorded, "foreign", lambda state: "")
        with pytest.raises(Broken, match=r"is not|two droids"):
            converge.run(folder, histories=3, steps=40, seed=3)


@pytest.mark.linux
class TestFaults:
    @pytest.mark.thorough
    @pytest.mark.slow
    def test_a_full_disk_leaves_whole_writes_or_none(self, folder):
        assert had(faults.full_disk, folder)["refused"] > 0

    def test_a_power_cut_loses_nothing_that_was_acknowledged(self, folder):
        assert had(faults.power_cut, folder, cuts=2)["lost"] == 0

    def test_a_power_cut_without_syncing_is_caught(self, folder):
        with pytest.raises(Broken, match="after a power cut"):
            had(faults.power_cut, folder, cuts=2, durability="buffered")

    @pytest.mark.slow
    def test_system_calls_that_fail_leave_whole_writes_or_none(self, folder):
        calls = (("write", "ENOSPC"), ("fdatasync", "EIO"), ("openat", "EIO"), ("ftruncate", "EIO"))
        most = quick_or(4, quick=2)
        assert had(faults.injected, folder, most=most, calls=calls)["not acknowledged"] > 0


def had(act, folder, **more):
    """Returns an act's figures, or skips with the reason why it cannot be had here."""
    try:
        return act(folder, **more)
    except faults.CannotHave as reason:
        pytest.skip(str(reason))


class TestAnyDocument:
    @pytest.mark.slow
    def test_is_read_or_refused(self, folder):
        figures = fuzz_documents.run(quick_or(1_500, quick=400), folder, seed=1)
        assert figures["crashes"] == 0
        assert figures["refused"] > 0


class TestAnyBytes:
    @pytest.mark.slow
    def test_in_place_of_a_ledger_are_read_without_a_crash(self, folder):
        assert fuzz.run(quick_or(4_000, quick=1_500), folder, seed=1)["crashes"] == 0

    def test_are_drawn_in_great_variety(self):
        import random

        rng = random.Random(1)
        drawn = Counter(fuzz.mutated(rng) for _ in range(500))
        assert len(drawn) > 450


class TestConfirmedGrants:
    @pytest.mark.parametrize("server", ["git", pytest.param("http", marks=pytest.mark.thorough)])
    def test_of_clones_with_wrong_clocks_exclude_each_other(self, folder, server):
        figures = remote.run(
            folder, operations=quick_or(60, quick=25), seed=1, clones=3, seconds=60, server=server
        )
        assert figures["confirmations"]

    @pytest.mark.thorough
    def test_killed_at_a_step_are_confirmed_or_ended(self, folder):
        figures = remote.at_every_step(folder, parts=(1.0,), every=40)
        assert figures["kills"] > 5
        assert figures["then held by one"]
        assert figures["then held by two"]

    @pytest.mark.thorough
    @pytest.mark.parametrize("broken", ["clock", "blind"])
    def test_judged_by_a_clock_or_before_the_remote_was_read_are_caught(self, folder, broken):
        with pytest.raises(Broken, match=r"both confirmed|held at once"):
            for seed in range(2, 8):  # Whether two meet in one history is a matter of chance.
                world = os.path.join(folder, str(seed))
                os.mkdir(world)
                remote.run(
                    world, operations=150, seed=seed, clones=2, cuts=0, kill=False, broken=broken
                )
