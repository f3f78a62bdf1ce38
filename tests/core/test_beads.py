"""How rows of the tracker's `issues.jsonl` are read, as both of its writers leave them."""

from __future__ import annotations

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from stamps import parse_ms

from queenbee.core.beads import read_rows
from queenbee.core.readiness import (
    blockers_of,
    missing_blockers,
    open_standings,
    standings,
    startable,
)

NOW_MS = parse_ms("2024-12-14T12:00:00Z")


def all_blockers(issues):
    """Returns what each blocked issue waits for."""
    found = open_standings(issues, holders={}, now_ms=NOW_MS, held_back={}, everything=True)
    return {key: each.waits_for for key, each in found.items() if each.waits_for}


def row(identifier, **fields):
    return {
        "id": identifier,
        "status": "open",
        "priority": 2,
        "created_at": "2024-12-01T00:00:00Z",
        "updated_at": "2024-12-01T00:00:00Z",
        **fields,
    }


def needs(target, kind="blocks", **more):
    return {"depends_on_id": target, "type": kind, **more}


def ready_ids(*rows, actor="ui", holders=None, held_back=None):
    found = standings(
        read_rows(rows), holders=holders or {}, now_ms=NOW_MS, held_back=held_back or {}
    )
    return [issue.id for issue in startable(found.values(), actor)]


class TestRows:
    def test_without_an_id_are_not_issues(self):
        assert read_rows([{"_type": "memory", "key": "k"}, {"id": ""}, {"id": 7}]) == {}

    @pytest.mark.parametrize("identifier", ["my-long-prefix-a1b2.3", "bd_x-1", "a.b-c.d_e-9.10.11"])
    def test_keep_ids_with_hyphens_underscores_and_dots(self, identifier):
        assert list(read_rows([row(identifier)])) == [identifier]

    def test_with_one_id_are_read_as_the_newest_update(self):
        older = row("qb-1", title="old", updated_at="2024-12-01T00:00:00.000000001Z")
        newer = row("qb-1", title="new", updated_at="2024-12-01T01:00:01.123456789+01:00")
        assert read_rows([newer, older])["qb-1"].title == "new"
        assert read_rows([older, newer])["qb-1"].title == "new"

    def test_are_shown_alike_in_whatever_order_and_form_a_program_wrote_them(self):
        one = {"title": "x", "id": "qb-1", "assignee": None, "status": "open"}
        other = {"id": "qb-1", "status": "open", "priority": 2, "title": "x"}
        shown = [list(read_rows([each])["qb-1"].to_dict().items()) for each in (one, other)]
        assert shown[0] == shown[1]
        assert [name for name, _ in shown[0]] == ["id", "title", "status", "priority"]

    @given(st.permutations(range(4)))
    @settings(max_examples=examples(24))
    def test_with_one_id_are_read_alike_in_any_order(self, order):
        rows = [
            row("qb-1", title=f"{day}", updated_at=f"2024-12-0{day + 1}T00:00:00Z") for day in order
        ]
        assert read_rows(rows)["qb-1"].title == "3"

    @pytest.mark.parametrize("statuses", [("open", "closed"), ("closed", "open")])
    def test_with_one_id_and_one_time_are_read_as_the_later_line(self, statuses):
        first, second = (row("qb-1", status=status) for status in statuses)
        assert read_rows([first, second])["qb-1"].status == second["status"]

    def test_without_any_time_are_read_as_the_latest_one(self):
        rows = [{"id": "qb-1", "title": "b"}, {"id": "qb-1", "title": "a"}]
        assert read_rows(rows)["qb-1"].title == "a"

    def test_of_a_deleted_issue_are_tombstones(self):
        grave = row("qb-1", status="tombstone", deleted_at="2024-12-03T00:00:00Z")
        issue = read_rows([row("qb-1"), {**grave, "updated_at": "2024-12-03T00:00:00Z"}])["qb-1"]
        assert issue.done

    @pytest.mark.parametrize("status", ["hooked", "pinned", "deferred", "in review"])
    def test_with_a_status_of_their_own_keep_it_and_are_not_ready(self, status):
        assert read_rows([row("qb-1", status=status)])["qb-1"].status == status
        assert ready_ids(row("qb-1", status=status)) == []

    def test_show_every_field_that_the_tracker_wrote(self):
        shown = read_rows([row("qb-1", external_ref="gh-9", labels=["a"])])["qb-1"].to_dict()
        assert (shown["external_ref"], shown["labels"]) == ("gh-9", ["a"])


class TestAnAbsentPriority:
    def test_means_two(self):
        rows = [{"id": "qb-1"}, row("qb-2", priority=1)]
        assert read_rows(rows)["qb-1"].priority == 2

    @pytest.mark.parametrize("others", [[], [2], [1, 2, 3], [0, 2], [0], [None, 2]])
    def test_means_two_whatever_the_other_rows_say(self, others):
        rows = [row(f"qb-{n}", priority=each) for n, each in enumerate(others, 2)]
        issue = read_rows([{"id": "qb-1"}, *rows])["qb-1"]
        assert (issue.priority, issue.to_dict()["priority"]) == (2, 2)

    @pytest.mark.parametrize("priority", ["1", True, 1.5, [1]])
    def test_is_what_something_else_than_an_integer_is(self, priority):
        assert read_rows([row("qb-1", priority=priority)])["qb-1"].priority == 2


class TestDependencies:
    @pytest.mark.parametrize(
        "written",
        [
            [{"issue_id": "qb-1", "depends_on_id": "qb-2", "type": "blocks", "created_by": "x"}],
            [{"depends_on_id": "qb-2"}],
            [{"id": "qb-2", "dependency_type": "blocks"}],
            ["qb-2"],
        ],
        ids=["an object", "an object without a type", "as shown by list", "a plain id"],
    )
    def test_are_read_in_every_form(self, written):
        rows = [row("qb-1", dependencies=written), row("qb-2")]
        assert blockers_of(read_rows(rows)["qb-1"], read_rows(rows)) == ["qb-2"]

    @pytest.mark.parametrize(
        "written", [None, "qb-2", 7, {}, [None, 7, "", {}, {"type": "blocks"}]]
    )
    def test_that_are_absent_or_unusable_are_none(self, written):
        assert read_rows([row("qb-1", dependencies=written)])["qb-1"].dependencies == []

    def test_of_another_issue_are_not_its_own(self):
        stray = {"issue_id": "qb-9", "depends_on_id": "qb-2", "type": "blocks"}
        assert read_rows([row("qb-1", dependencies=[stray])])["qb-1"].dependencies == []

    @pytest.mark.parametrize("kind", ["blocks", "conditional-blocks"])
    @pytest.mark.parametrize("status", ["open", "in_progress", "hooked"])
    def test_that_block_do_so_while_the_other_issue_is_not_closed(self, kind, status):
        rows = [row("qb-1", dependencies=[needs("qb-2", kind)]), row("qb-2", status=status)]
        assert set(all_blockers(read_rows(rows))) == {"qb-1"}

    def test_on_a_pinned_issue_do_not_block(self):
        rows = [row("qb-1", dependencies=[needs("qb-2")]), row("qb-2", status="pinned")]
        assert all_blockers(read_rows(rows)) == {}

    @pytest.mark.parametrize(
        ("reason", "blocks"),
        [
            ("tests FAILED", False),
            ("won't fix", False),
            ("unblocked the pipeline", True),
            ("no errors found", True),
            ("", True),
            (None, True),
        ],
    )
    def test_that_are_conditional_wait_for_a_failure(self, reason, blocks):
        rows = [
            row("qb-1", dependencies=[needs("qb-2", "conditional-blocks")]),
            row("qb-2", status="closed", close_reason=reason),
        ]
        assert ("qb-1" in all_blockers(read_rows(rows))) == blocks

    def test_that_wait_for_children_do_so_until_all_are_closed(self):
        rows = [
            row("join", dependencies=[needs("fan", "waits-for")]),
            row("fan", status="closed"),
            row("one", status="closed", dependencies=[needs("fan", "parent-child")]),
            row("two", dependencies=[needs("fan", "parent-child")]),
        ]
        assert all_blockers(read_rows(rows)) == {"join": ["two"]}
        rows[-1]["status"] = "closed"
        assert all_blockers(read_rows(rows)) == {}

    @pytest.mark.parametrize("metadata", [{"gate": "any-children"}, '{"gate": "any-children"}'])
    def test_that_wait_for_any_child_do_so_until_one_is_closed(self, metadata):
        rows = [
            row("join", dependencies=[needs("fan", "waits-for", metadata=metadata)]),
            row("fan"),
            row("one", dependencies=[needs("fan", "parent-child")]),
            row("two", dependencies=[needs("fan", "parent-child")]),
        ]
        assert all_blockers(read_rows(rows)) == {"join": ["one", "two"]}
        rows[-1]["status"] = "closed"
        assert all_blockers(read_rows(rows)) == {}

    @pytest.mark.parametrize("status", ["closed", "tombstone"])
    def test_on_done_issues_do_not_block(self, status):
        rows = [row("qb-1", dependencies=[needs("qb-2")]), row("qb-2", status=status)]
        assert set(all_blockers(read_rows(rows))) == set()

    @pytest.mark.parametrize("kind", ["related", "discovered-from", "parent-child"])
    def test_of_other_types_do_not_block(self, kind):
        rows = [row("qb-1", dependencies=[needs("qb-2", kind)]), row("qb-2")]
        assert set(all_blockers(read_rows(rows))) == set()

    def test_block_the_children_of_a_blocked_parent_at_any_depth(self):
        rows = [
            row("epic", dependencies=[needs("first")]),
            row("child", dependencies=[needs("epic", "parent-child")]),
            row("grandchild", dependencies=[needs("child", "parent-child")]),
            row("first"),
        ]
        assert set(all_blockers(read_rows(rows))) == {"epic", "child", "grandchild"}

    def test_in_a_circle_end(self):
        rows = [
            row("a", dependencies=[needs("b", "parent-child"), needs("b")]),
            row("b", dependencies=[needs("a", "parent-child")]),
        ]
        assert set(all_blockers(read_rows(rows))) == {"a", "b"}

    def test_on_a_missing_issue_do_not_block_and_are_reported(self):
        issues = read_rows([row("qb-1", dependencies=[needs("gone")])])
        assert set(all_blockers(issues)) == set()
        assert missing_blockers(issues) == [("qb-1", "gone")]

    def test_of_a_closed_issue_are_not_reported(self):
        issues = read_rows([row("qb-1", status="closed", dependencies=[needs("gone")])])
        assert missing_blockers(issues) == []


class TestReady:
    def test_includes_open_issues_and_begun_ones_only_if_they_say_by_whom(self):
        assert ready_ids(row("qb-1", status="open")) == ["qb-1"]
        assert ready_ids(row("qb-1", status="in_progress")) == []

    @pytest.mark.parametrize("status", ["closed", "tombstone", "blocked", "deferred"])
    def test_is_nothing_else(self, status):
        assert ready_ids(row("qb-1", status=status)) == []

    @pytest.mark.parametrize("flag", ["pinned", "ephemeral", "is_template"])
    def test_leaves_out_issues_that_are_not_work(self, flag):
        assert ready_ids(row("qb-1", **{flag: True})) == []

    def test_leaves_out_deferred_issues(self):
        assert ready_ids(row("qb-1", defer_until="2024-12-14T12:00:00.001Z")) == []
        assert ready_ids(row("qb-1", defer_until="2024-12-14T12:00:00Z")) == ["qb-1"]

    @pytest.mark.parametrize(
        "kind", ["merge-request", "gate", "molecule", "message", "agent", "role", "rig"]
    )
    def test_leaves_out_the_types_that_beads_keeps_for_itself(self, kind):
        assert ready_ids(row("qb-1", issue_type=kind)) == []

    def test_leaves_out_wisps(self):
        assert ready_ids(row("qb-wisp-1"), row("wisp-2")) == ["wisp-2"]

    def test_leaves_out_the_children_of_a_deferred_parent(self):
        rows = [
            row("epic", defer_until="2025-01-01T00:00:00Z"),
            row("child", dependencies=[needs("epic", "parent-child")]),
            row("grandchild", dependencies=[needs("child", "parent-child")]),
        ]
        assert ready_ids(*rows) == []

    def test_leaves_out_what_somebody_else_holds(self):
        assert ready_ids(row("qb-1"), holders={"qb-1": "api"}) == []
        assert ready_ids(row("qb-1"), holders={"qb-1": "ui"}) == ["qb-1"]

    def test_leaves_out_what_the_tracker_gives_to_somebody_else(self):
        assert ready_ids(row("qb-1", status="in_progress", assignee="api")) == []
        assert ready_ids(row("qb-1", status="in_progress", assignee="ui")) == ["qb-1"]

    def test_leaves_out_what_waits_for_another_issue(self):
        assert ready_ids(row("qb-1", dependencies=["qb-2"]), row("qb-2")) == ["qb-2"]

    def test_leaves_out_issues_held_back(self):
        assert ready_ids(row("qb-1"), row("qb-2"), held_back={"qb-1": "a gate"}) == ["qb-2"]

    def test_is_ordered_by_priority_then_age_then_id(self):
        rows = [
            row("c", priority=1, created_at="2024-12-02T00:00:00Z"),
            row("b", priority=1, created_at="2024-12-01T00:00:00Z"),
            row("a", priority=1, created_at="2024-12-01T00:00:00Z"),
            row("z", priority=0, created_at="2024-12-09T00:00:00Z"),
        ]
        assert ready_ids(*rows) == ["z", "a", "b", "c"]
