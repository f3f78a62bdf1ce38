"""Phases, the list of open issues, and the graph."""

from __future__ import annotations

from typing import Any

from bead_files import PLAN
from hives import write_lines

from queenbee.core.beads import Issue
from queenbee.core.readiness import standings
from queenbee.report import caps
from queenbee.report.gathering import gather
from queenbee.report.plan_section import graph, open_issues, phases
from queenbee.report.values import GateLine


def found(*rows: dict[str, Any], holders: dict[str, str] | None = None) -> Any:
    issues = {row["id"]: Issue(row) for row in rows}
    return standings(issues, holders=holders or {}, now_ms=0, held_back={})


def row(issue_id: str, *needs: str, status: str = "open", **more: Any) -> dict[str, Any]:
    return {"id": issue_id, "title": issue_id, "status": status, "dependencies": [*needs], **more}


def in_phase(issue_id: str, phase: str, plan: str = "plans/shop.md", **more: Any) -> dict[str, Any]:
    return row(issue_id, metadata={"phase": phase, "plan_file": plan}, **more)


class TestPhases:
    def test_phases_come_in_the_order_of_their_numbers(self):
        given = found(in_phase("a", "10"), in_phase("b", "2", status="closed"), in_phase("c", "2"))
        assert [
            (each.name, each.counts["done"], each.counts["total"]) for each in phases(given, [])
        ] == [
            ("Phase 2 of shop", 1, 2),
            ("Phase 10 of shop", 0, 1),
        ]

    def test_a_phase_has_the_gates_of_its_plan_and_number(self):
        gates = [
            GateLine("shop", "phase_1", "passed", []),
            GateLine("shop", "phase_2", "failed", []),
            GateLine("other", "1", "failed", []),
        ]
        (phase,) = phases(found(in_phase("a", "1")), gates)
        assert phase.gates == gates[:1]

    def test_an_epic_is_the_name_of_its_children(self):
        child = {"issue_id": "b", "depends_on_id": "a", "type": "parent-child"}
        given = found(row("a", title="Checkout"), row("b", dependencies=[child]), row("c"))
        assert [(each.name, each.counts["total"]) for each in phases(given, [])] == [
            ("a: Checkout", 1),
            ("Without a phase", 1),
        ]

    def test_without_phases_all_issues_are_one_line(self):
        assert [each.name for each in phases(found(row("a")), [])] == ["All issues"]

    def test_odd_metadata_is_no_phase(self):
        odd = found(
            row("a", metadata={"phase": ["1"], "plan_file": 7}),
            row("b", metadata="x"),
            row("c", metadata={"phase": "9" * 5_000}),
        )
        assert [each.counts["total"] for each in phases(odd, [])] == [3]

    def test_an_imported_plan_is_reported_by_phase(self, quick, hive, repo):
        (repo / "accounts.md").write_text(PLAN)
        assert quick("plan", "import", "accounts.md", as_="ui").code == 0
        names = [each.name for each in gather(hive, with_git=False).phases]
        assert names and all(each.startswith("Phase ") for each in names)


def test_open_issues_are_those_at_work_first_and_then_the_most_urgent():
    given = found(
        row("low", priority=4),
        row("waits", "low", priority=0),
        row("high", priority=1),
        row("mine"),
        row("over", status="closed"),
        holders={"mine": "ui"},
    )
    assert [each.issue_id for each in open_issues(given)] == ["mine", "high", "low", "waits"]


class TestGraph:
    def test_it_has_the_issues_that_wait_and_those_they_wait_for(self):
        drawn = graph(found(row("a"), row("b", "a", "a", "b", "gone"), row("c")))
        assert dict(drawn.needs) == {"a": [], "b": ["a"]}
        assert (drawn.alone, drawn.left_out) == (1, 0)

    def test_if_there_are_too_many_the_finished_ones_go_first(self):
        many = [row(f"d{n}", f"d{n - 1}", status="closed") for n in range(1, caps.NODES + 9)]
        drawn = graph(found(row("d0", status="closed"), *many, row("last", many[-1]["id"])))
        assert set(drawn.nodes) == {"last", many[-1]["id"]}
        assert drawn.left_out == len(many)

    def test_if_there_are_still_too_many_there_is_no_graph(self):
        many = [row(f"d{n}", f"d{n - 1}") for n in range(1, caps.NODES + 9)]
        drawn = graph(found(row("d0"), *many))
        assert drawn.nodes == {}
        assert drawn.left_out == len(many) + 1
        assert {each.issue_id for each in drawn.waiting} == {each["id"] for each in many}

    def test_a_graph_with_many_long_edges_is_too_large_too(self):
        chain = [row(f"d{n}", f"d{n - 1}") for n in range(1, 60)]
        ends = [row(f"e{n}", "d0", "d59") for n in range(40)]
        assert graph(found(row("d0"), *chain)).nodes
        assert graph(found(row("d0"), *chain, *ends)).nodes == {}


def test_two_issues_that_wait_for_each_other_can_be_reported(hive, repo, quick):
    write_lines(repo / ".beads" / "issues.jsonl", row("a", "b"), row("b", "a"))
    assert set(gather(hive, with_git=False).graph.nodes) == {"a", "b"}
    assert "<svg" in quick("report").out
