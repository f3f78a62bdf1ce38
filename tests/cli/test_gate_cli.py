"""`queen gate`: made, given rules, run and asked on the command line and by an agent's hook."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from bead_files import FIXTURES, PLAN
from hives import Queen, QuickQueen, git, records

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


def state(gate: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gate.read_text())
    return document


class TestNew:
    def test_a_new_gate_is_pending(self, quick: QuickQueen, gate: Path) -> None:
        document = state(gate)
        assert document["schema_version"] == "1.0"
        assert document["metadata"]["phase_name"] == "First"
        assert document["status"]["current_status"] == "pending"
        assert quick("gate", "check", *GATE).code == 1

    def test_an_existing_gate_is_not_replaced(self, quick: QuickQueen, gate: Path) -> None:
        before = gate.read_bytes()
        refused = quick("gate", "new", *GATE, "--json")
        assert (refused.code, refused.error["code"]) == (5, "conflict")
        assert gate.read_bytes() == before

    def test_a_plan_names_the_workflow_and_the_phase(self, quick: QuickQueen, repo: Path) -> None:
        (repo / "accounts.md").write_text(PLAN)
        made = quick("gate", "new", "--plan", "accounts.md", "--phase", "2", "--json").json
        assert (made["workflow_id"], made["phase_id"], made["phase_name"]) == (
            "accounts", "2", "Login",
        )  # fmt: skip
        assert quick("gate", "new", "--plan", "accounts.md", "--phase", "7").code == 4
        assert quick("gate", "new", "--plan", "gone.md", "--phase", "1").code == 4

    @pytest.mark.parametrize(
        "words",
        [
            ("--phase", "p1"),
            ("--workflow", "wf"),
            ("--workflow", "../x", "--phase", "p1"),
            ("--workflow", "wf", "--phase", "a/b"),
            ("--workflow", "wf", "--phase", ""),
            ("--workflow", "wf", "--plan", "x.md", "--phase", "1"),
        ],
    )
    def test_a_call_that_names_no_gate_is_refused(
        self, quick: QuickQueen, repo: Path, words: tuple[str, ...]
    ) -> None:
        assert quick("gate", "new", *words).code == 2
        assert not (repo / ".claude").exists()

    def test_a_gate_belongs_to_the_hive_and_not_to_the_worktree(
        self, quick: QuickQueen, repo: Path, tmp_path: Path
    ) -> None:
        git(repo, "worktree", "add", "-q", str(tmp_path / "feature"))
        assert quick("gate", "new", *GATE, cwd=tmp_path / "feature").code == 0
        assert (repo / FILE).exists()
        assert quick("gate", "status", *GATE).code == 0


class TestAddRule:
    @pytest.mark.parametrize(
        ("words", "rule_type", "config"),
        [
            (("--exists", "a.py"), "file_exists", {"file_path": "a.py"}),
            (
                ("--contains", "a.py", "--pattern", "def", "--pattern", "class"),
                "content_match",
                {"file_path": "a.py", "patterns": ["def", "class"]},
            ),
            (
                ("--test", "pytest -q", "--timeout", "5m"),
                "test_pass",
                {"test_command": "pytest -q", "timeout_seconds": 300},
            ),
            (
                ("--script", "check.sh", "--arg", "--strict"),
                "custom",
                {"script_path": "check.sh", "args": ["--strict"]},
            ),
        ],
    )
    def test_a_rule_may_be_of_each_of_the_four_types(
        self,
        quick: QuickQueen,
        gate: Path,
        words: tuple[str, ...],
        rule_type: str,
        config: dict[str, object],
    ) -> None:
        add(quick, *words)
        (rule,) = state(gate)["validation_config"]["rules"]
        assert (rule["rule_type"], rule["rule_config"], rule["severity"]) == (
            rule_type, config, "error",
        )  # fmt: skip
        assert state(gate)["status"]["total_count"] == 1

    def test_a_file_is_relative_to_where_you_are(
        self, quick: QuickQueen, gate: Path, repo: Path
    ) -> None:
        """And the rule has it from the top of the tree, where gates run."""
        inside = repo / "src" / "api"
        inside.mkdir(parents=True)
        (inside / "a.py").write_text("x")
        (inside / "ok.sh").write_text("#!/bin/sh\n")
        (inside / "ok.sh").chmod(0o755)
        (repo / "top.py").write_text("x")
        for words in (
            ("--exists", "a.py"),
            ("--contains", "../../top.py", "--pattern", "x"),
            ("--script", "./ok.sh"),
            ("--exists", str(repo / "top.py")),
            ("--exists", "../../../outside"),
        ):
            assert quick("gate", "add-rule", *GATE, *words, cwd=inside).code == 0
        config = [rule["rule_config"] for rule in state(gate)["validation_config"]["rules"]]
        assert [each.get("file_path") or each["script_path"] for each in config] == [
            "src/api/a.py", "top.py", "src/api/ok.sh", f"{repo}/top.py", f"{repo.parent}/outside",
        ]  # fmt: skip
        (repo.parent / "outside").write_text("x")
        assert quick("gate", "run", *GATE, cwd=repo / "src").code == 0

    def test_what_was_added_is_shown(self, quick: QuickQueen, gate: Path) -> None:
        done = quick("gate", "add-rule", *GATE, "--test", "pytest -q", "--timeout", "5m")
        assert done.out.startswith(
            "added rule_pytest_q_passes: sh -c pytest -q (expects exit code 0, within 300 s)\n"
        )

    def test_a_rule_is_removed(self, quick: QuickQueen, gate: Path) -> None:
        rule = add(quick, "--test", "false")
        add(quick, "--test", "true")
        assert quick("gate", "run", *GATE).code == 1
        left = quick("gate", "remove-rule", *GATE, rule["rule_id"], "--json").json
        assert [one["rule_name"] for one in left["rules"]] == ["true passes"]
        assert (left["status"], left["attempt"]) == ("pending", 2)
        assert quick("gate", "run", *GATE).code == 0
        missing = quick("gate", "remove-rule", *GATE, rule["rule_id"])
        assert missing.code == 4
        assert f"try: queen gate show {' '.join(GATE)}" in missing.err

    def test_a_rule_may_be_json_in_the_form_of_the_document(
        self, quick: QuickQueen, gate: Path
    ) -> None:
        text = (FIXTURES / "gates" / "added-rule.json").read_text()
        assert quick("gate", "add-rule", *GATE, "-", stdin=text).code == 0
        assert state(gate)["validation_config"]["rules"] == [json.loads(text)]

    def test_each_rule_gets_its_own_id(self, quick: QuickQueen, gate: Path) -> None:
        first, second = add(quick, "--exists", "a.py"), add(quick, "--exists", "a.py")
        assert (first["rule_id"], second["rule_id"]) == (
            "rule_a_py_exists", "rule_a_py_exists_2",
        )  # fmt: skip
        named = add(quick, "--exists", "b.py", "--id", "mine", "--name", "B", "--warning")
        assert (named["rule_id"], named["rule_name"], named["severity"]) == ("mine", "B", "warning")

    @pytest.mark.parametrize(
        "words",
        [
            (),
            ("--exists", "a", "--test", "b"),
            ("--exists", "a", "--pattern", "x"),
            ("--exists", "a", "--timeout", "5m"),
            ("--test", "x", "--arg", "y"),
            ("--contains", "a"),
            ("--contains", "a", "--pattern", "("),
            ("--exists", ""),
            ("{",),
            ("[]",),
            ("{}",),
            ('{"rule_type": "unknown", "rule_config": {}}',),
            ('{"rule_type": "test_pass", "rule_config": {}}',),
        ],
    )
    def test_an_invalid_rule_is_refused_and_changes_nothing(
        self, quick: QuickQueen, gate: Path, words: tuple[str, ...]
    ) -> None:
        before = gate.read_bytes()
        assert quick("gate", "add-rule", *GATE, *words).code == 2
        assert gate.read_bytes() == before

    def test_a_missing_gate_takes_no_rule(self, quick: QuickQueen) -> None:
        assert quick("gate", "add-rule", *GATE, "--exists", "a").code == 4

    @pytest.mark.slow
    def test_rules_added_at_the_same_time_are_all_kept(self, queen: Queen, gate: Path) -> None:
        threads = [
            threading.Thread(target=queen, args=("gate", "add-rule", *GATE, "--exists", f"{n}.py"))
            for n in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(state(gate)["validation_config"]["rules"]) == 6


class TestRunAndCheck:
    def test_a_gate_passes_when_its_rules_do(
        self, quick: QuickQueen, gate: Path, repo: Path, beads: Path
    ) -> None:
        add(quick, "--exists", "made.txt")
        add(quick, "--test", "echo 3 passed")
        add(quick, "--contains", "made.txt", "--pattern", "never", "--warning")
        assert quick("gate", "run", *GATE, as_="qa").code == 1
        assert quick("gate", "check", *GATE).code == 1
        (repo / "made.txt").write_text("made\n")
        done = quick("gate", "run", *GATE, "--json", as_="qa")
        assert (done.code, done.json["status"], done.json["attempt"]) == (0, "passed", 2)
        assert [one["status"] for one in done.json["rules"]] == ["passed", "passed", "failed"]
        assert quick("gate", "check", *GATE).code == 0
        kept = records(beads / "queen_verifications.jsonl")
        assert [(one["subject_id"], one["verdict"], one["droid"]) for one in kept] == [
            ("wf/p1", "failed", "qa"), ("wf/p1", "passed", "qa"),
        ]  # fmt: skip
        attempts = quick("gate", "history", *GATE, "--json").json
        assert [one["status"] for one in attempts] == ["failed", "passed"]
        assert quick("gate", "history", *GATE).code == 0

    def test_a_check_during_a_run_says_so(
        self, quick: QuickQueen, queen: Queen, gate: Path, repo: Path
    ) -> None:
        os.mkfifo(repo / "wait")
        add(quick, "--test", "true", "--id", "quick")
        add(quick, "--test", "cat wait", "--id", "slow")
        started = queen.start("gate", "run", *GATE)
        with (repo / "wait").open("w"):  # Opens when the second rule reads it.
            told = "a run goes on: 1 of 2 rules have a result"
            checked = quick("gate", "check", *GATE, "--json")
            assert (checked.code, checked.json["status"]) == (1, "in_progress")
            assert checked.json["run"] == told
            assert told in quick("gate", "check", *GATE).out
            assert told in quick("gate", "status", *GATE).out
        started.communicate(timeout=60)
        assert started.returncode == 0
        assert quick("gate", "check", *GATE, "--json").json["run"] is None

    def test_a_check_after_a_killed_run_says_so(
        self, quick: QuickQueen, queen: Queen, gate: Path
    ) -> None:
        add(quick, "--test", "true")
        add(quick, "--test", "kill -KILL $PPID")
        started = queen.start("gate", "run", *GATE)
        started.communicate(timeout=60)
        assert started.returncode == -9
        told = "its last run did not finish: 1 of 2 rules have a result"
        assert quick("gate", "check", *GATE, "--json").json["run"] == told
        assert told in quick("gate", "hook", *GATE).err

    def test_a_gate_that_has_passed_is_judged_again_on_request(
        self, quick: QuickQueen, gate: Path, repo: Path
    ) -> None:
        (repo / "a").touch()
        add(quick, "--exists", "a")
        assert quick("gate", "run", *GATE).code == 0
        (repo / "a").unlink()
        refused = quick("gate", "run", *GATE)
        assert refused.code == 5
        assert f"queen gate run {' '.join(GATE)} --force" in refused.err
        assert quick("gate", "run", *GATE, "--again").code == 1
        assert quick("gate", "check", *GATE).code == 1
        attempts = quick("gate", "history", *GATE, "--json").json
        assert [one["status"] for one in attempts] == ["passed", "failed"]

    def test_evidence_is_shown_as_a_path_that_opens_from_here(
        self, quick: QuickQueen, gate: Path, repo: Path
    ) -> None:
        add(quick, "--test", "echo said; false")
        (repo / "src").mkdir()
        quick("gate", "run", *GATE)
        for words in (("status", *GATE), ("show", *GATE)):
            shown = quick("gate", *words, cwd=repo / "src").out
            lines = [line.strip() for line in shown.splitlines()]
            (path,) = [line.split(": ", 1)[1] for line in lines if line.startswith("evidence")]
            assert path.startswith("../.beads/evidence/")
            assert "said" in (repo / "src" / path).read_text()
        (rule,) = quick("gate", "show", *GATE, "--json").json["rules"]
        assert "said" in Path(rule["evidence"]).read_text()

    def test_show_says_what_each_rule_checks(self, quick: QuickQueen, gate: Path) -> None:
        add(quick, "--test", "pytest -q", "--warning")
        assert quick("gate", "show", *GATE).out.splitlines()[2:] == [
            "rule_pytest_q_passes (warning): sh -c pytest -q (expects exit code 0, within 300 s)",
            "    not run",
        ]

    @pytest.mark.parametrize("verb", ["run", "check", "status", "show", "history"])
    def test_a_plan_that_is_not_there_is_named(self, quick: QuickQueen, verb: str) -> None:
        done = quick("gate", verb, "--plan", "missing.md", "--phase", "1")
        assert done.code in (4, 7)
        assert done.err.startswith("queen: --plan names missing.md, a file that does not exist: no")
        assert "try: give the path of the plan" in done.err

    def test_a_hint_keeps_the_hive_that_was_named(
        self, quick: QuickQueen, beads: Path, tmp_path: Path
    ) -> None:
        done = quick("gate", "check", *GATE, "--beads-dir", str(beads), cwd=tmp_path)
        assert f"try: queen --beads-dir {beads} gate new {' '.join(GATE)}\n" in done.err
        told = quick("gate", "check", *GATE, "--json", "--beads-dir", str(beads), cwd=tmp_path)
        assert told.error["hint"].startswith(f"queen --beads-dir {beads} gate new")

    def test_a_hint_keeps_the_name_that_was_given(self, quick: QuickQueen) -> None:
        quick("claim", "gt-1", "--new", "--as", "ann")
        refused = quick("claim", "gt-1", "--as", "bob")
        assert "try: queen --as bob issue ready, or ask: queen --as bob msg send ann" in refused.err

    def test_a_gate_that_has_passed_is_not_run_again(self, quick: QuickQueen, gate: Path) -> None:
        add(quick, "--test", "true")
        assert quick("gate", "run", *GATE).code == 0
        assert quick("gate", "run", *GATE).code == 5
        assert quick("gate", "add-rule", *GATE, "--exists", "a").code == 5

    def test_a_gate_without_rules_cannot_be_run(self, quick: QuickQueen, gate: Path) -> None:
        assert quick("gate", "run", *GATE).code == 2

    def test_a_dry_run_shows_the_rules_and_runs_none(
        self, quick: QuickQueen, gate: Path, repo: Path, beads: Path
    ) -> None:
        add(quick, "--test", "touch made")
        before = gate.read_bytes()
        done = quick("gate", "run", *GATE, "--dry-run")
        assert done.code == 0
        assert "sh -c touch made" in done.out
        assert not (repo / "made").exists()
        assert gate.read_bytes() == before
        assert not (beads / "queen_verifications.jsonl").exists()

    def test_how_many_results_are_kept_is_a_setting(
        self, quick: QuickQueen, gate: Path, beads: Path
    ) -> None:
        (beads / "queen.toml").write_text("gate_results = 2\n")
        add(quick, "--test", "false")
        for _ in range(4):
            quick("gate", "run", *GATE)
        assert len(state(gate)["validation_execution"]["results"]) == 2

    @pytest.mark.parametrize(
        ("content", "code"),
        [
            (None, 7),
            ("", 7),
            ("{", 7),
            ("[]", 7),
            ('{"schema_version": "2.0", "metadata": {"workflow_id": "wf", "phase_id": "p1"}}', 7),
            ('{"schema_version": "1.0", "metadata": {"workflow_id": "wf", "phase_id": "p1"}}', 7),
        ],
    )
    def test_a_gate_that_is_missing_or_corrupt_has_not_passed(
        self, quick: QuickQueen, repo: Path, content: str | None, code: int
    ) -> None:
        if content is not None:
            (repo / FILE).parent.mkdir(parents=True)
            (repo / FILE).write_text(content)
        assert quick("gate", "check", *GATE).code == code
        allowed = quick("gate", "check", *GATE, "--allow-missing").code
        assert allowed == (0 if content is None else 7)

    def test_a_status_that_contradicts_the_results_is_not_believed(
        self, quick: QuickQueen, gate: Path
    ) -> None:
        add(quick, "--test", "false")
        document = state(gate)
        document["status"]["current_status"] = "passed"
        gate.write_text(json.dumps(document))
        assert quick("gate", "check", *GATE).code == 1


class TestStatus:
    def test_status_lists_all_gates_or_those_of_a_workflow(
        self, quick: QuickQueen, gate: Path
    ) -> None:
        quick("gate", "new", "--workflow", "other", "--phase", "p1")
        listed = quick("gate", "status", "--json").json
        assert [one["workflow_id"] for one in listed] == ["other", "wf"]
        assert len(quick("gate", "status", "--workflow", "wf", "--json").json) == 1
        assert "pending" in quick("gate", "status").out

    def test_status_shows_one_gate_with_its_rules(self, quick: QuickQueen, gate: Path) -> None:
        add(quick, "--exists", "a.py")
        shown = quick("gate", "status", *GATE)
        assert "not run  error     a.py exists" in shown.out
        (told,) = quick("gate", "status", *GATE, "--json").json
        assert told["blocking"] == ["a.py exists: not run"]

    def test_a_hive_without_gates_has_an_empty_status(self, quick: QuickQueen) -> None:
        assert quick("gate", "status").out == "No gates.\n"
        assert quick("gate", "status", *GATE).code == 4
        assert quick("gate", "history", *GATE).code == 4

    @pytest.mark.parametrize("content", ["{", "[]", '{"metadata": {}}'])
    def test_a_gate_that_cannot_be_read_is_listed_among_the_others(
        self, quick: QuickQueen, gate: Path, content: str
    ) -> None:
        quick("gate", "new", "--workflow", "other", "--phase", "p1")
        gate.write_text(content)
        (gate.parent / "settings.json").write_text('{"metadata": {"made_by": "another tool"}}')
        listed = quick("gate", "status", "--json")
        assert [(one["workflow_id"], one["status"]) for one in listed.json] == [
            ("other", "pending"), (None, "unreadable"),
        ]  # fmt: skip
        assert FILE in quick("gate", "status").out
        assert len(quick("gate", "status", "-w", "wf", "--json").json) == 1
        assert quick("gate", "status", *GATE).code == 7
        assert quick("gate", "status", "-w", "other", "-p", "p1").code == 0


def test_control_characters_of_a_gate_are_harmless(quick: QuickQueen, gate: Path) -> None:
    evil = "\x1b]0;owned\x07"
    add(quick, "--test", "false", "--name", evil)
    for words in (("status",), ("status", *GATE), ("run", *GATE), ("check", *GATE),
                  ("hook", *GATE), ("history", *GATE)):  # fmt: skip
        done = quick("gate", *words)
        assert "\x1b" not in done.out + done.err, words


def test_results_of_the_sources_own_validator_are_named_as_such(
    quick: QuickQueen, repo: Path
) -> None:
    folder = repo / ".claude" / "state" / "validation"
    folder.mkdir(parents=True)
    said = {"validation_status": "PASSED", "rule_results": []}
    (folder / "phase_wf_1_validation.json").write_text(json.dumps(said))

    (gate,) = quick("gate", "status", "--json").json
    assert (gate["status"], gate["passed"]) == ("no gate", False)
    shown = quick("gate", "status").out
    assert "results of the source's own validator (PASSED), and gates nothing" in " ".join(
        shown.split()
    )
