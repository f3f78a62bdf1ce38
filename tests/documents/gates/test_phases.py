"""Which gates hold an issue back: by the numbers of its plan's phases, or because it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bead_files import PLAN, ids_by_sprint, put_bead, ralph_bead
from hives import QuickQueen, write_lines


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


def ready(quick: QuickQueen) -> list[str]:
    return [one["id"] for one in quick("issue", "ready", "--json").json]
