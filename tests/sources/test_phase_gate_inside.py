"""Phase Validation State Schema Documentation: the parts inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bead_files import FIXTURES
from hives import QuickQueen

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
        "`run --again` starts a new attempt",
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


class TestHandlingErrors:
    """Handling Errors"""

    def test_a_failure_adds_an_error_with_its_context(self, gate: QuickQueen, repo: Path) -> None:
        (error,) = ran(gate, repo, "--exists", "none.py")["status"]["errors"]
        assert {*example("error-object")} <= {*error}
        assert {"rule_id", "rule_type", "severity", "file_path"} <= {*error["context"]}


class TestEnforceStatusTransitions:
    """5. Enforce Status Transitions"""

    @pytest.mark.parametrize("old", ["passed", "failed"])
    def test_nothing_follows_an_end(self, old: str) -> None:
        assert not any(is_valid_transition(old, new) for new in ("pending", "in_progress"))


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
