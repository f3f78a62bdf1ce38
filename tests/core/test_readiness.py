"""Where each issue stands, and which to take first."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st
from stamps import parse_ms

from queenbee.core.beads import Issue, read_rows
from queenbee.core.readiness import (
    Standing,
    Waits,
    blockers_of,
    counts,
    in_order_to_take,
    missing_blockers,
    needed_for,
    standings,
)

NOW_MS = parse_ms("2024-12-14T12:00:00Z")


def found(*rows, holders=None, held_back=None) -> dict[str, Standing]:
    return standings(
        read_rows(rows), holders=holders or {}, now_ms=NOW_MS, held_back=held_back or {}
    )


def among(ids: list[str], issues: Mapping[str, Issue]) -> Mapping[str, Issue]:
    """Returns what is needed of these issues; all where any may be."""
    needed = needed_for(ids, lambda some: {each: issues[each] for each in some if each in issues})
    return issues if needed is None else needed


def row(identifier, *needs, **fields):
    dependencies = [{"depends_on_id": need, "type": "blocks"} for need in needs]
    return {"id": identifier, "status": "open", "dependencies": dependencies, **fields}


def order(*rows, **more) -> list[str]:
    reserved, contested = more.pop("reserved", ()), more.pop("contested", ())
    known = more.pop("known", ())
    ordered = in_order_to_take(
        still_open(found(*rows, **more)),
        actor="ui",
        occupied=lambda _: (reserved, contested, known),
    )
    return [issue.id for issue in ordered]


def still_open(standings_: dict[str, Standing]) -> dict[str, Standing]:
    return {key: each for key, each in standings_.items() if not each.issue.done}


class TestTheStateOfAnIssue:
    def test_is_the_first_that_is_true(self):
        states = found(
            row("done", status="closed"),
            row("active", "ready"),
            row("waits", "ready"),
            row("held", status="blocked"),
            row("ready"),
            holders={"active": "api", "done": "api"},
        )
        assert {key: each.state for key, each in states.items()} == {
            "done": "done",
            "active": "active",
            "waits": "waits",
            "held": "on_hold",
            "ready": "ready",
        }
        assert counts(states.values()) == {
            "done": 1,
            "active": 1,
            "ready": 1,
            "waits": 1,
            "on_hold": 1,
            "total": 5,
        }

    def test_says_who_the_tracker_gave_it_to(self):
        rows = row("a", status="in_progress", assignee="api"), row("b", assignee="api")
        assert [each.holder for each in found(*rows).values()] == ["api", None]

    def test_waits_for_what_a_parent_waits_for(self):
        child = {
            "id": "child",
            "status": "open",
            "dependencies": [{"depends_on_id": "epic", "type": "parent-child"}],
        }
        assert found(row("epic", "first"), row("first"), child)["child"].waits_for == ["first"]


class TestTheOrder:
    def test_is_the_priority_first(self):
        assert order(row("a", priority=2), row("b", priority=1)) == ["b", "a"]

    def test_counts_the_priority_of_what_waits(self):
        assert order(row("a", priority=1), row("b", priority=3), row("c", "b", priority=0)) == [
            "b",
            "a",
        ]

    def test_then_is_what_need_not_wait_for_a_file(self):
        rows = row("a", priority=1), row("b", priority=1), row("c", "a"), row("d")
        assert order(*rows, reserved={"a"}) == ["b", "a", "d"]

    def test_then_is_the_longest_chain_that_waits(self):
        rows = [row("wide"), row("long"), row("w1", "wide"), row("w2", "wide"), row("w3", "wide")]
        rows += [row("l1", "long"), row("l2", "l1")]
        assert order(*rows) == ["long", "wide"]

    def test_then_is_all_the_work_that_waits(self):
        rows = [row("one"), row("two"), row("o1", "one"), row("t1", "two"), row("t2", "two")]
        assert order(*rows) == ["two", "one"]

    def test_counts_estimates(self):
        rows = [row("short"), row("s1", "short", estimated_minutes=5), row("long")]
        rows += [row("l1", "long", estimated_minutes=50)]
        assert order(*rows) == ["long", "short"]

    def test_then_is_what_nobody_is_in(self):
        assert order(row("a"), row("b"), contested={"a"}) == ["b", "a"]
        chain = row("c", "a")
        assert order(row("a"), row("b"), chain, contested={"a"}) == ["a", "b"]

    def test_leaves_out_what_has_open_children(self):
        child = row("child")
        child["dependencies"] = [{"depends_on_id": "epic", "type": "parent-child"}]
        assert order(row("epic"), child) == ["child"]
        assert order(row("epic"), {**child, "status": "closed"}) == ["epic"]

    def test_leaves_out_what_others_have(self):
        assert order(row("a"), row("b"), holders={"a": "api", "b": "ui"}) == ["b"]

    def test_ends_where_issues_wait_for_one_another(self):
        assert order(row("a", "b"), row("b", "a"), row("c")) == ["c"]
        assert order(row("free"), row("a", "free", "b"), row("b", "a")) == ["free"]

    def test_what_the_actor_knows_comes_first_of_what_is_alike(self):
        rows = [row("a"), row("b"), row("c"), row("d", priority=1), row("e", "d")]
        assert order(*rows, known={"c"}) == ["d", "c", "a", "b"]
        assert order(*rows, known={"c"}, contested={"c"}) == ["d", "a", "b", "c"]

    def test_asks_only_about_those_that_it_comes_to(self):
        asked: list[str] = []

        def occupied(issues):
            asked.extend(each.id for each in issues)
            return (), (), ()

        rows = [row(f"n{number:03}") for number in range(100)]
        first = next(in_order_to_take(found(*rows), actor="ui", occupied=occupied))
        assert first.id == "n000"
        assert 0 < len(asked) < 100

    @given(st.integers(1, 90), st.integers(0, 2**32))
    def test_is_that_of_a_sort_by_all_that_counts(self, size: int, seed: int):
        chance = random.Random(seed)
        rows = [{**each, "priority": chance.randrange(3)} for each in _plan(size, chance, 0.02)]
        reserved = {each["id"] for each in rows if chance.random() < 0.3}
        contested = {each["id"] for each in rows if chance.random() < 0.3}
        standing = found(*rows)
        waits = Waits(standing)

        def key(issue: Issue) -> tuple[object, ...]:
            return (
                waits.urgency[issue.id],
                issue.id in reserved,
                -waits.chain[issue.id],
                -waits.work_behind(issue.id),
                issue.id in contested,
                issue.age,
            )

        able = [each.issue for each in standing.values() if each.takeable("ui")]
        assert order(*rows, reserved=reserved, contested=contested) == [
            each.id for each in sorted(able, key=key)
        ]

    @given(st.integers(2, 9), st.randoms(use_true_random=False))
    def test_ends_a_plan_no_later_than_half_the_orders_of_age(self, size: int, chance):
        """Two workers, one unit of work each: never worse than the order of the rows."""
        rows = _plan(size, chance)
        assert _makespan(rows, by_rule=True) <= 1.5 * _makespan(rows, by_rule=False)


def _plan(size: int, chance: random.Random, share: float = 0.3) -> list[dict[str, object]]:
    needs: dict[int, list[str]] = {number: [] for number in range(size)}
    for earlier, later in combinations(range(size), 2):
        if chance.random() < share:
            needs[later].append(f"n{earlier}")
    return [row(f"n{number}", *needs[number]) for number in range(size)]


def _makespan(rows: list[dict[str, object]], *, by_rule: bool) -> int:
    rows = [dict(each) for each in rows]
    rounds = 0
    while any(each["status"] == "open" for each in rows):
        able = found(*rows)
        ordered: list[Issue] = list(in_order_to_take(still_open(able), actor="ui"))
        if not by_rule:
            ordered.sort(key=lambda issue: issue.id)
        taken = {issue.id for issue in ordered[:2]}
        for each in rows:
            if each["id"] in taken:
                each["status"] = "closed"
        rounds += 1
    return rounds


class TestWhatDecidesWhereAnIssueStands:
    @given(st.integers(2, 12), st.integers(0, 2**32))
    @example(10, 30731)  # A blocker that is the parent, too.
    @example(12, 16909)  # Two parents that wait.
    @example(6, 3139)  # Two parents that are deferred.
    def test_is_all_that_has_to_be_known(self, size: int, seed: int):
        """Where an issue stands is the same, whatever else the tracker has."""
        chance = random.Random(seed)
        kinds = ["blocks"] * 3 + ["parent-child"] * 3 + ["conditional-blocks", "waits-for"]
        statuses = ["open"] * 4 + ["closed", "closed", "deferred", "tombstone", "pinned"]
        names = [f"n{number}" for number in range(size)]
        rows = [
            {
                "id": name,
                "status": chance.choice(statuses),
                "close_reason": chance.choice(["done", "failed"]),
                "dependencies": [
                    {"depends_on_id": chance.choice([*names, "gone"]), "type": chance.choice(kinds)}
                    for _ in range(chance.randrange(3))
                ],
            }
            for name in names
        ]
        issues = read_rows(rows)
        around = {"holders": {"n0": "api"}, "now_ms": NOW_MS, "held_back": {"n1": "a gate"}}
        all_of_them = standings(issues, **around)
        for name in names:
            one = standings(among([name], issues), **around).get(name)
            other = all_of_them.get(name)
            assert (one and one.to_dict()) == (other and other.to_dict())

    def test_is_any_row_if_it_waits_for_the_children_of_one(self):
        after = {"depends_on_id": "epic", "type": "waits-for"}
        part_of = {"depends_on_id": "epic", "type": "parent-child"}
        rows = [
            {"id": "late", "status": "open", "dependencies": [after]},
            {"id": "epic", "status": "closed"},
            {"id": "part", "status": "open", "dependencies": [part_of]},
        ]
        needed = among(["late"], read_rows(rows))
        found = standings(needed, holders={}, now_ms=NOW_MS, held_back={})
        assert found["late"].waits_for == ["part"]


def test_whoever_waits_for_the_children_of_an_issue_waits_for_those_that_are_not_done():
    waits = {"depends_on_id": "epic", "type": "waits-for"}
    child = {"depends_on_id": "epic", "type": "parent-child"}
    rows = read_rows(
        [
            row("epic"),
            {**row("a"), "dependencies": [child]},
            {**row("b", status="closed"), "dependencies": [child]},
            {**row("last"), "dependencies": [waits]},
        ]
    )
    assert blockers_of(rows["last"], rows) == ["a"]
    del rows["epic"]
    assert missing_blockers(rows) == [("last", "epic")]
