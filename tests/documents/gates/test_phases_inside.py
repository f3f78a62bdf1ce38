"""Which gates hold an issue back: the parts inside."""

from __future__ import annotations

from typing import Any

import pytest

from queenbee.documents.gates.gate_files import BrokenFile
from queenbee.documents.gates.phases import (
    GateState,
    PhaseGates,
    declared_gates,
    phase_number,
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
