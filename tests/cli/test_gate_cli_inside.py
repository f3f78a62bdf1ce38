"""`queen gate`: the parts inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, snapshot

GATE = ("--workflow", "wf", "--phase", "p1")

FILE = ".claude/state/validation/phase_wf_p1.json"


@pytest.fixture
def gate(quick: QuickQueen, repo: Path) -> Path:
    """The file of a gate without rules."""
    assert quick("gate", "new", *GATE, "--name", "First").code == 0
    return repo / FILE


def add(quick: QuickQueen, *words: str) -> dict[str, Any]:
    done = quick("gate", "add-rule", *GATE, *words, "--json")
    assert done.code == 0, done
    rule: dict[str, Any] = done.json["rules"][-1]
    return rule


class TestHook:
    def test_a_gate_that_has_passed_does_not_block(self, quick: QuickQueen, gate: Path) -> None:
        add(quick, "--test", "true")
        quick("gate", "run", *GATE)
        done = quick("gate", "hook", *GATE, stdin='{"hook_event_name": "Stop"}')
        assert (done.code, done.out, done.err) == (0, "", "")

    def test_a_gate_that_has_not_passed_blocks_with_its_reason(
        self, quick: QuickQueen, gate: Path
    ) -> None:
        add(quick, "--exists", "made.txt")
        done = quick("gate", "hook", *GATE)
        assert (done.code, done.out) == (2, "")
        assert done.err == "queen: phase p1 of wf has not passed: made.txt exists: not run\n"

    @pytest.mark.parametrize("content", [None, "{", "[]"])
    def test_a_gate_that_cannot_be_read_blocks(
        self, quick: QuickQueen, repo: Path, content: str | None
    ) -> None:
        if content is not None:
            (repo / FILE).parent.mkdir(parents=True)
            (repo / FILE).write_text(content)
        assert quick("gate", "hook", *GATE).code == 2
        allowed = quick("gate", "hook", *GATE, "--allow-missing").code
        assert allowed == (0 if content is None else 2)

    def test_without_a_hive_it_blocks_unless_allowed(
        self, quick: QuickQueen, tmp_path: Path
    ) -> None:
        done = quick("gate", "hook", *GATE, cwd=tmp_path)
        assert done.code == 2
        assert "there is no hive here" in done.err
        assert quick("gate", "hook", *GATE, "--allow-missing", cwd=tmp_path).code == 0

    def test_a_call_that_names_no_gate_blocks_as_well(self, quick: QuickQueen) -> None:
        for options in (("--plan", "no.md", "--workflow", "wf_1"), ()):
            done = quick("gate", "hook", *options, "--phase", "1", "--allow-missing")
            assert done.code == 2, options
            assert "has not passed" in done.err

    def test_a_bug_of_queenbee_blocks(
        self, quick: QuickQueen, gate: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from queenbee.documents.gates import gate_files as gate_store

        monkeypatch.setattr(gate_store, "check_gate", lambda *_, **__: 1 / 0)
        done = quick("gate", "hook", *GATE)
        assert done.code == 2
        assert "ZeroDivisionError" in done.err

    def test_the_hook_writes_nothing(self, quick: QuickQueen, gate: Path, repo: Path) -> None:
        add(quick, "--exists", "made.txt")
        before = snapshot(repo / ".beads", repo / ".claude")
        quick("gate", "hook", *GATE)
        quick("gate", "check", *GATE)
        assert snapshot(repo / ".beads", repo / ".claude") == before
