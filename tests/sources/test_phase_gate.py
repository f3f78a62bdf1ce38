"""Phase Validation State Schema Documentation"""

from __future__ import annotations

import copy
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bead_files import FIXTURES
from hives import QuickQueen

from queenbee import Hive
from queenbee.documents.findings import errors_in
from queenbee.documents.gates.gate import gate_schema, is_valid_transition, validate_gate
from queenbee.documents.gates.judgement import judge

FOLDER = Path(".claude") / "state" / "validation"
NAMES = ("-w", "wf", "-p", "one")


def example(name: str) -> Any:
    return json.loads((FIXTURES / "gates" / f"{name}.json").read_text())


def whole() -> dict[str, Any]:
    """Returns the gate that the examples of the four sections make together."""
    parts = [example(f"section-{name}") for name in ("metadata", "rules", "results", "status")]
    gate: dict[str, Any] = {"schema_version": "1.0"}
    for part in parts:
        gate |= part
    return gate


def errors(gate: object) -> list[str]:
    return [each.path for each in errors_in(validate_gate(gate))]


@pytest.fixture
def gate(quick: QuickQueen, repo: Path) -> QuickQueen:
    """The command, in a repository with a gate that has no rules."""
    quick.env = {"QUEEN_DROID": "lead"}
    assert quick("gate", "new", *NAMES).code == 0
    return quick


def document(repo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((repo / FOLDER / "phase_wf_one.json").read_text())
    return found


def ran(gate: QuickQueen, repo: Path, *rule: str) -> dict[str, Any]:
    """Returns the gate after a run of it with one rule."""
    assert gate("gate", "add-rule", *NAMES, *rule).code == 0
    gate("gate", "run", *NAMES)
    return document(repo)


class TestOverview:
    """Overview"""

    def test_a_gate_is_a_file_for_each_phase(self, gate: QuickQueen, repo: Path) -> None:
        gate("gate", "new", "-w", "wf", "-p", "two")
        assert {path.name for path in (repo / FOLDER).glob("phase_*")} == {
            "phase_wf_one.json", "phase_wf_two.json",
        }  # fmt: skip


class TestHighLevelDiagram:
    """High-Level Diagram"""

    def test_a_gate_has_these_sections(self, gate: QuickQueen, repo: Path) -> None:
        assert list(document(repo)) == [
            "schema_version", "metadata", "validation_config", "validation_execution", "status",
        ]  # fmt: skip


class TestTopLevelFields:
    """Top-Level Fields"""

    @pytest.mark.parametrize("name", list(whole()))
    def test_each_is_required(self, name: str) -> None:
        assert name in errors({key: value for key, value in whole().items() if key != name})


class TestSectionMetadata:
    """Section: `metadata`"""

    def test_its_example_is_valid(self) -> None:
        assert errors(whole()) == []

    def test_a_run_says_when_it_started_and_completed(self, gate: QuickQueen, repo: Path) -> None:
        made = document(repo)["metadata"]
        assert (made["started_at"], made["completed_at"]) == (None, None)
        metadata = ran(gate, repo, "--test", "true")["metadata"]
        assert metadata["started_at"] <= metadata["completed_at"]


class TestSectionValidationConfig:
    """Section: `validation_config`"""

    def test_it_holds_the_rules(self, gate: QuickQueen, repo: Path) -> None:
        assert document(repo)["validation_config"] == {"rules": []}


class TestFieldRules:
    """Field: `rules` (array)"""

    @pytest.mark.parametrize("name", ["rule_id", "rule_type", "rule_config"])
    def test_each_field_is_required(self, name: str) -> None:
        gate = whole()
        del gate["validation_config"]["rules"][0][name]
        assert errors(gate) == [f"validation_config.rules[0].{name}"]

    def test_a_rule_without_a_severity_is_an_error(self, gate: QuickQueen, repo: Path) -> None:
        rule = {"rule_id": "r", "rule_type": "test_pass", "rule_config": {"test_command": "false"}}
        assert ran(gate, repo, json.dumps(rule))["status"]["current_status"] == "failed"


class TestSectionValidationExecution:
    """Section: `validation_execution`"""

    def test_it_holds_the_results(self, gate: QuickQueen, repo: Path) -> None:
        assert document(repo)["validation_execution"]["results"] == []


class TestFieldResults:
    """Field: `results` (array)"""

    def test_a_result_has_these_fields(self, gate: QuickQueen, repo: Path) -> None:
        (result,) = ran(gate, repo, "--test", "true")["validation_execution"]["results"]
        assert {"result_id", "rule_id", "validated_at", "status", "message", "details"} <= {*result}

    @pytest.mark.differs(
        "the results of an interrupted run are not defined",
        "`skipped`, and the gate is `in_progress`",
        "the document has no other word",
    )
    def test_a_rule_of_another_version_is_skipped(self, gate: QuickQueen, repo: Path) -> None:
        changed = document(repo)
        changed["schema_version"] = "1.1"
        changed["validation_config"]["rules"] = [
            {"rule_id": "r", "rule_type": "new_type", "rule_config": {}}
        ]
        (repo / FOLDER / "phase_wf_one.json").write_text(json.dumps(changed))
        gate("gate", "run", *NAMES)
        assert document(repo)["validation_execution"]["results"][0]["status"] == "skipped"
        assert gate("gate", "check", *NAMES).code == 1


class TestSectionStatus:
    """Section: `status`"""

    @pytest.mark.differs(
        "counters are incremented",
        "computed from each rule's latest result",
        "a crash or a second run cannot make them wrong",
    )
    def test_the_counters_count_rules(self, gate: QuickQueen, repo: Path) -> None:
        gate("gate", "add-rule", *NAMES, "--test", "false")
        status = ran(gate, repo, "--exists", ".")["status"]
        assert (status["passed_count"], status["failed_count"]) == (0, 2)
        gate("gate", "run", *NAMES)
        assert document(repo)["status"]["failed_count"] == 2


class TestFileExists:
    """1. `file_exists`"""

    def test_its_config_and_details(self, gate: QuickQueen, repo: Path) -> None:
        (repo / "a.py").write_text("x")
        found = ran(gate, repo, "--exists", "a.py")
        assert set(found["validation_config"]["rules"][0]["rule_config"]) == {
            *example("file-exists-config")
        }
        (result,) = found["validation_execution"]["results"]
        assert {*example("file-exists-details")} <= {*result["details"]}


class TestContentMatch:
    """2. `content_match`"""

    def test_its_config_and_details(self, gate: QuickQueen, repo: Path) -> None:
        (repo / "a.py").write_text("class Calculator:\n    def add(self): ...\n")
        words = ("--contains", "a.py", "--pattern", "def add\\(", "--pattern", "def subtract\\(")
        (result,) = ran(gate, repo, *words)["validation_execution"]["results"]
        details = result["details"]
        assert {*example("content-match-details")} <= {*details}
        assert (result["status"], details["matched_count"]) == ("failed", 1)
        assert details["missing_patterns"] == ["def subtract\\("]


class TestTestPass:
    """3. `test_pass`"""

    def test_its_config_and_details(self, gate: QuickQueen, repo: Path) -> None:
        command = "echo '8 passed in 1.45s'"
        (result,) = ran(gate, repo, "--test", command)["validation_execution"]["results"]
        assert {*example("test-pass-details")} - {"test_summary"} <= {*result["details"]}
        assert (result["status"], result["details"]["exit_code"]) == ("passed", 0)


class TestCustom:
    """4. `custom`"""

    def test_its_config_and_details(self, gate: QuickQueen, repo: Path) -> None:
        (repo / "v.sh").write_text("#!/bin/sh\necho $1\n")
        (repo / "v.sh").chmod(0o755)
        words = ("--script", "v.sh", "--arg", "strict")
        (result,) = ran(gate, repo, *words)["validation_execution"]["results"]
        assert {*example("custom-details")} <= {*result["details"]}
        assert result["details"]["stdout"].strip() == "strict"


class TestStatusStateTransitions:
    """Status State Transitions"""

    @pytest.mark.parametrize(
        ("old", "new"),
        [("pending", "in_progress"), ("in_progress", "passed"), ("in_progress", "failed")],
    )
    def test_it_goes_forward_and_never_back(self, old: str, new: str) -> None:
        assert is_valid_transition(old, new) and not is_valid_transition(new, old)

    @pytest.mark.differs(
        "`failed` is final",
        "a new attempt can follow, and the history keeps the old one",
        "you fix the work, and then it must be judged again",
    )
    def test_a_failed_gate_has_another_attempt(self, gate: QuickQueen, repo: Path) -> None:
        ran(gate, repo, "--exists", "made")
        (repo / "made").touch()
        assert gate("gate", "run", *NAMES).code == 0
        (old,) = document(repo)["validation_execution"]["previous_attempts"]
        assert old["status"] == "failed"

    @pytest.mark.differs(
        "`passed` is final",
        "`run --force` starts a new attempt",
        "a phase can break again after its gate has passed",
    )
    def test_a_passed_gate_runs_again_if_asked(self, gate: QuickQueen, repo: Path) -> None:
        (repo / "made").touch()
        ran(gate, repo, "--exists", "made")
        (repo / "made").unlink()
        assert gate("gate", "run", *NAMES).code != 1
        assert gate("gate", "run", *NAMES, "--again").code == 1


class TestCreatingANewValidationGate:
    """Creating a New Validation Gate"""

    def test_its_example_is_valid_and_pending(self) -> None:
        assert errors(example("new-gate")) == []
        assert judge(example("new-gate")).status == "pending"

    def test_a_new_one_has_its_shape(self, gate: QuickQueen, repo: Path) -> None:
        made, wanted = document(repo), example("new-gate")
        assert list(made["metadata"]) == list(wanted["metadata"])
        assert list(made["status"]) == list(wanted["status"])


class TestAddingValidationRules:
    """Adding Validation Rules"""

    def test_its_example_is_added_and_counted(self, gate: QuickQueen, repo: Path) -> None:
        rule = example("added-rule")
        assert gate("gate", "add-rule", *NAMES, json.dumps(rule)).code == 0
        assert document(repo)["validation_config"]["rules"] == [rule]
        assert document(repo)["status"]["total_count"] == 1


class TestRecordingValidationResults:
    """Recording Validation Results"""

    def test_a_result_is_recorded_when_its_rule_has_ended(
        self, gate: QuickQueen, repo: Path
    ) -> None:
        status = ran(gate, repo, "--test", "true")["status"]
        assert (status["passed_count"], status["failed_count"]) == (1, 0)


class TestUpdatingStatus:
    """Updating Status"""

    def test_it_is_passed_when_all_rules_pass(self, gate: QuickQueen, repo: Path) -> None:
        found = ran(gate, repo, "--test", "true")
        assert found["status"]["current_status"] == "passed"
        assert found["metadata"]["completed_at"] is not None


class TestHandlingErrors:
    """Handling Errors"""

    def test_a_failure_adds_an_error_with_its_context(self, gate: QuickQueen, repo: Path) -> None:
        (error,) = ran(gate, repo, "--exists", "none.py")["status"]["errors"]
        assert {*example("error-object")} <= {*error}
        assert {"rule_id", "rule_type", "severity", "file_path"} <= {*error["context"]}


class TestUseUuidsForIdentifiers:
    """1. Use UUIDs for Identifiers"""

    def test_a_result_has_one(self, gate: QuickQueen, repo: Path) -> None:
        (result,) = ran(gate, repo, "--test", "true")["validation_execution"]["results"]
        assert re.fullmatch(r"res_[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}", result["result_id"])


class TestAlwaysUseIso8601Timestamps:
    """2. Always Use ISO 8601 Timestamps"""

    def test_they_are_in_utc(self, gate: QuickQueen, repo: Path) -> None:
        at = document(repo)["metadata"]["created_at"]
        assert at.endswith("Z") and datetime.fromisoformat(at).utcoffset() is not None


class TestValidateSchemaBeforeWriting:
    """3. Validate Schema Before Writing"""

    def test_with_the_schema_beside_the_gates(self, gate: QuickQueen, repo: Path) -> None:
        schema = json.loads((repo / FOLDER / "validation_schema.json").read_text())
        jsonschema.validate(instance=document(repo), schema=schema)
        broken = copy.deepcopy(document(repo))
        del broken["status"]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(instance=broken, schema=schema)

    def test_on_the_command_line(self, gate: QuickQueen, repo: Path) -> None:
        path = repo / FOLDER / "phase_wf_one.json"
        assert gate("gate", "validate", str(path)).out == f"valid: {path}\n"
        done = gate("gate", "validate", "-", stdin='{"schema_version": "1.0"}')
        assert (done.code, "metadata is required" in done.out) == (1, True)


class TestAtomicFileUpdates:
    """4. Atomic File Updates"""

    @pytest.mark.differs(
        "the temporary file is in the system's temporary folder",
        "in the gate's own folder",
        "a rename between file systems is not atomic",
    )
    def test_nothing_is_left_beside_the_gate(self, gate: QuickQueen, repo: Path) -> None:
        before = (repo / FOLDER / "phase_wf_one.json").stat().st_ino
        ran(gate, repo, "--test", "true")
        assert (repo / FOLDER / "phase_wf_one.json").stat().st_ino != before
        names = {path.name for path in (repo / FOLDER).iterdir()}
        assert names == {"phase_wf_one.json", "validation_schema.json"}


class TestEnforceStatusTransitions:
    """5. Enforce Status Transitions"""

    @pytest.mark.parametrize("old", ["passed", "failed"])
    def test_nothing_follows_an_end(self, old: str) -> None:
        assert not any(is_valid_transition(old, new) for new in ("pending", "in_progress"))


class TestSeparateErrorVsWarningFailures:
    """6. Separate Error vs Warning Failures"""

    def test_a_warning_never_blocks(self, gate: QuickQueen, repo: Path) -> None:
        gate("gate", "add-rule", *NAMES, "--test", "true")
        found = ran(gate, repo, "--test", "false", "--warning")
        assert found["status"]["current_status"] == "passed"

    @pytest.mark.differs(
        "`calculate_status` passes a gate whose error rules have no results, or were skipped",
        "neither passes",
        "nobody has seen those rules pass",
    )
    def test_what_has_not_run_has_not_passed(self, gate: QuickQueen) -> None:
        gate("gate", "add-rule", *NAMES, "--test", "true")
        assert gate("gate", "check", *NAMES).code == 1


class TestLimitResultHistory:
    """7. Limit Result History"""

    def test_the_last_ten_results_of_a_rule_are_kept(
        self, hive: Hive, gate: QuickQueen, repo: Path
    ) -> None:
        assert hive.layout.settings.gate_results == 10
        gate("config", "set", "gate_results", "2")
        ran(gate, repo, "--test", "false")
        for _ in range(3):
            gate("gate", "run", *NAMES)
        execution = document(repo)["validation_execution"]
        kept = sum(len(each.get("results", ())) for each in execution["previous_attempts"])
        assert kept + len(execution["results"]) <= 4


class TestIncludeContextualErrorInformation:
    """8. Include Contextual Error Information"""

    def test_the_message_names_the_file(self, gate: QuickQueen, repo: Path) -> None:
        (error,) = ran(gate, repo, "--exists", "none.py")["status"]["errors"]
        assert error["message"] == f"File not found: {repo / 'none.py'}"


class TestSchemaEvolution:
    """Schema Evolution"""

    def test_a_later_minor_version_is_read_and_kept(self, gate: QuickQueen, repo: Path) -> None:
        changed = {**document(repo), "schema_version": "1.7", "new_field": 1}
        (repo / FOLDER / "phase_wf_one.json").write_text(json.dumps(changed))
        found = ran(gate, repo, "--test", "true")
        assert (found["schema_version"], found["new_field"]) == ("1.7", 1)

    @pytest.mark.differs(
        "a migration script for each major version",
        "another major version is refused",
        "there is none yet",
    )
    def test_another_major_version_is_refused(self) -> None:
        assert errors({**whole(), "schema_version": "2.0"}) == ["schema_version"]


class TestSampleData:
    """Sample Data"""

    def test_the_examples_of_the_sections_make_a_valid_gate(self) -> None:
        assert errors(whole()) == []
        assert judge(whole()).status == "passed"


class TestSchemaReference:
    """Schema Reference"""

    def test_the_schema_has_its_id_and_draft(self, gate: QuickQueen, repo: Path) -> None:
        schema = gate("gate", "schema", "--json").json
        assert schema == gate_schema()
        assert schema["$id"].endswith("/schemas/phase-validation-v1.json")
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert json.loads((repo / FOLDER / "validation_schema.json").read_text()) == schema
