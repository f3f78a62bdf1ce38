"""Which gates hold an issue back: by the numbers of its plan's phases, or because it says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bead_files import PLAN, ids_by_sprint, put_bead, ralph_bead
from hives import QuickQueen, write_lines

from queenbee.documents.gates.gate import new_gate
from queenbee.documents.gates.gate_files import BrokenFile
from queenbee.documents.gates.phases import (
    GateState,
    PhaseGates,
    declared_gates,
    phase_number,
    plan_workflow,
    precedes,
)


class TestPhaseNumbers:
    @pytest.mark.parametrize(
        ("phase_id", "number"),
        [
            ("1", (1, "")),
            ("3a", (3, "a")),
            ("3ab", (3, "ab")),
            ("07", (7, "")),
            ("0", (0, "")),
            ("phase_1", (1, "")),
            ("phase-1", (1, "")),
            ("phase1", (1, "")),
            ("phase_1_create_calculator", (1, "")),
            ("phase_3a_ui", (3, "a")),
            ("1_foundation", (1, "")),
            ("phase_1\n", None),
            ("phase", None),
            ("", None),
            ("a1", None),
            ("1.2", None),
            ("1A", None),
            ("1" * 5_000, None),
        ],
    )
    def test_are_read_from_ids_as_the_document_writes_them(
        self, phase_id: str, number: tuple[int, str] | None
    ) -> None:
        assert phase_number(phase_id) == number

    @pytest.mark.parametrize(
        ("phase", "other", "before"),
        [
            ("1", "2", True),
            ("2", "10", True),
            ("1", "3a", True),
            ("3", "3a", True),
            ("3a", "3ab", True),
            ("3b", "4", True),
            ("1", "1", False),
            ("2", "1", False),
            ("3a", "3b", False),
            ("3b", "3a", False),
            ("3a", "3", False),
            ("3a", "3a", False),
        ],
    )
    def test_put_phases_in_order_and_tracks_beside_each_other(
        self, phase: str, other: str, before: bool
    ) -> None:
        one, two = phase_number(phase), phase_number(other)
        assert one is not None and two is not None
        assert precedes(one, two) is before


@pytest.mark.parametrize(
    ("plan", "workflow"),
    [("plans/accounts.md", "accounts"), ("accounts.md", "accounts"), ("a.b.md", "a.b"), ("x", "x")],
)
def test_the_workflow_of_a_plan_is_its_name(plan: str, workflow: str) -> None:
    assert plan_workflow(plan) == workflow


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("wf/p", [("wf", "p")]),
        (["wf/p", "wf/q"], [("wf", "p"), ("wf", "q")]),
        ("wf/p/q", [("wf", "p/q")]),
        (None, []),
        ("wf", []),
        ("/p", []),
        ("wf/", []),
        ([None, 5, []], []),
        ({}, []),
    ],
)
def test_gates_are_declared_as_workflow_and_phase(
    value: object, named: list[tuple[str, str]]
) -> None:
    assert declared_gates(value) == named


class TestTheBook:
    BOOK = PhaseGates(
        [
            GateState("accounts", "phase_1", "passed", passed=True),
            GateState("accounts", "3a", "failed", passed=False),
            GateState("other", "1", "failed", passed=False),
            GateState("twice", "1", "passed", passed=True),
            GateState("twice", "1", "passed", passed=True),
        ],
        broken=[
            BrokenFile("gates/phase_accounts_2.json", "torn"),
            BrokenFile("gates/validation.json", "torn"),
            BrokenFile("gates/phase_q4_2_1.json", "torn", frozenset([("q4_2", "1")])),
            BrokenFile("gates/q4-copy.json", "conflict", frozenset([("q4", "3")])),
        ],
    )

    @pytest.mark.parametrize(
        ("metadata", "closed"),
        [
            ({"plan_file": "plans/accounts.md", "phase": "1"}, []),
            ({"plan_file": "plans/accounts.md", "phase": "2"}, []),
            ({"plan_file": "plans/accounts.md", "phase": "3b"}, ["accounts/2 unreadable"]),
            (
                {"plan_file": "plans/accounts.md", "phase": "4"},
                ["accounts/2 unreadable", "accounts/3a failed"],
            ),
            ({"plan_file": "plans/nothing.md", "phase": "4"}, []),
            (
                {"plan_file": "plans/nothing.md", "workflow_id": "other", "phase": "4"},
                ["other/1 failed"],
            ),
            ({"plan_file": "plans/accounts.md"}, []),
            ({"plan_file": 5, "phase": "4"}, []),
            ({"plan_file": "plans/accounts.md", "phase": ["4"]}, []),
            ({"phase_gate": "accounts/phase_1"}, []),
            ({"phase_gate": "accounts/3a"}, ["accounts/3a failed"]),
            ({"phase_gate": "accounts/9"}, ["accounts/9 missing"]),
            (
                {"phase_gate": ["accounts/2", "other/1"]},
                ["accounts/2 unreadable", "other/1 failed"],
            ),
            ({"phase_gate": "twice/1"}, ["twice/1 unreadable"]),
            ({"plan_file": "q4.md", "phase": "3"}, []),
            ({"plan_file": "q4.md", "phase": "4"}, ["q4/3 unreadable"]),
            ({"plan_file": "q4_2.md", "phase": "2"}, ["q4_2/1 unreadable"]),
            (None, []),
            ([], []),
        ],
    )
    def test_says_which_gates_are_before_an_issue(self, metadata: Any, closed: list[str]) -> None:
        found = self.BOOK.before({"metadata": metadata})
        assert [
            f"{gate.workflow_id}/{gate.phase_id} {gate.status}" for gate in found if not gate.passed
        ] == closed


class TestReady:
    @pytest.fixture
    def planned(self, quick: QuickQueen, repo: Path) -> QuickQueen:
        (repo / "accounts.md").write_text(PLAN)
        quick.env["QUEEN_DROID"] = "ui"
        quick("plan", "import", "accounts.md")
        (first,) = ready(quick)
        quick("claim", first)
        quick("complete", first)
        return quick

    def test_leaves_out_what_is_behind_a_gate_until_it_has_passed(
        self, planned: QuickQueen, repo: Path
    ) -> None:
        assert len(ready(planned)) == 2
        gate = ("--plan", "accounts.md", "--phase", "1")
        planned("gate", "new", *gate)
        assert ready(planned) == []
        planned("gate", "add-rule", *gate, "--exists", "made")
        planned("gate", "run", *gate)
        assert ready(planned) == []
        waits = {one["waits"] for one in planned("bead", "list", "--json").json}
        assert waits == {None, "gate accounts/1 has not passed: it is failed"}
        (repo / "made").touch()
        assert planned("gate", "run", *gate).code == 0
        assert len(ready(planned)) == 2

    def test_leaves_out_what_is_behind_a_gate_that_nobody_can_read(
        self, planned: QuickQueen, repo: Path
    ) -> None:
        planned("gate", "new", "--plan", "accounts.md", "--phase", "1")
        path = repo / ".claude/state/validation/phase_accounts_1.json"
        for text in ("{", "[]", "{}", ""):
            path.write_text(text)
            assert ready(planned) == [], text
        path.unlink()
        assert len(ready(planned)) == 2

    def test_a_gate_does_not_hold_back_its_own_phase(self, planned: QuickQueen) -> None:
        planned("gate", "new", "--plan", "accounts.md", "--phase", "2")
        assert len(ready(planned)) == 2

    def test_the_documents_phase_ids_work(self, planned: QuickQueen) -> None:
        planned("gate", "new", "-w", "accounts", "-p", "phase_1_foundation")
        assert ready(planned) == []

    def test_show_names_the_gate(self, planned: QuickQueen, beads: Path) -> None:
        planned("gate", "new", "--plan", "accounts.md", "--phase", "1")
        bead_id = ids_by_sprint(beads / "issues.jsonl")["2.1a"]
        told = planned("show", bead_id, "--json").json["bead"]
        assert [(one["phase_id"], one["status"]) for one in told["gates"]] == [("1", "pending")]
        assert "gate accounts/1: pending" in planned("show", bead_id).out

    def test_any_issue_can_name_a_gate(self, quick: QuickQueen, repo: Path, beads: Path) -> None:
        row = {"id": "qb-1", "title": "x", "status": "open", "priority": 2}
        write_lines(beads / "issues.jsonl", {**row, "metadata": {"phase_gate": "wf/p"}})
        put_bead(repo, ralph_bead("gt-1", "true", phase_gate="wf/p"))
        assert ready(quick) == []
        quick("gate", "new", "-w", "wf", "-p", "p")
        quick("gate", "add-rule", "-w", "wf", "-p", "p", "--test", "true")
        assert ready(quick) == []
        quick("gate", "run", "-w", "wf", "-p", "p")
        assert ready(quick) == ["gt-1", "qb-1"]

    def test_a_ralph_bead_behind_a_gate_is_blocked_in_the_loop_too(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "true", phase_gate="wf/p"))
        done = quick("bead", "run", "gt-1", "--agent-cmd", "true", "--json", as_="ui")
        assert (done.code, done.json["status"]) == (1, "blocked")
        assert done.json["message"] == "wf/p is a gate that has not passed: missing"
        assert json.loads(path.read_text())["status"] == "blocked"
        assert quick("claim", "gt-1", as_="ui").code == 5
        quick("claim", "gt-1", "--anyway", as_="ui")
        assert quick("complete", "gt-1", as_="ui").code == 5


def test_a_gate_that_claims_to_have_passed_and_did_not_is_not_believed(
    quick: QuickQueen, repo: Path
) -> None:
    folder = repo / ".claude" / "state" / "validation"
    folder.mkdir(parents=True)
    gate = new_gate(workflow_id="wf", phase_id="p", phase_name="P", now_ms=0)
    gate["status"]["current_status"] = "passed"
    (folder / "any-name.json").write_text(json.dumps(gate))
    put_bead(repo, ralph_bead("gt-1", "true", phase_gate="wf/p"))
    assert ready(quick) == []


def ready(quick: QuickQueen) -> list[str]:
    return [one["id"] for one in quick("issue", "ready", "--json").json]
