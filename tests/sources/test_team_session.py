"""Session Schema"""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen
from session_folders import (
    GONE,
    errors,
    example_session,
    findings,
    in_analysis,
    in_file,
    in_session,
    in_spec,
    role_named,
    warnings,
    without,
)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The document's example of a valid session."""
    return example_session(tmp_path)


class TestDirectoryStructure:
    """Directory Structure"""

    def test_a_new_session_has_it(self, quick: QuickQueen, repo: Path) -> None:
        quick("session", "new", "Add search", "--role", "tester", as_="lead")
        (folder,) = repo.glob("TC-add-search-*")
        names = {path.name for path in folder.iterdir()}
        assert names >= {"team-session.json", "task-analysis.json", "role-specs", "wisdom", ".msg"}

    @pytest.mark.differs(
        '"All components MUST exist"',
        "only those of its algorithm",
        'it marks the others "may be empty"',
    )
    def test_what_may_be_empty_may_be_missing(self, session: Path) -> None:
        (session / "shared-memory.json").unlink()
        assert errors(session) == []


class TestRequiredComponents:
    """Required Components"""

    def test_the_session_argument(self) -> None:
        assert errors(None) == ["Session required. Usage: --session=<path-to-TC-folder>"]

    def test_the_directory(self, tmp_path: Path) -> None:
        (message,) = errors(tmp_path / "none")
        assert message == f"Session directory not found: {tmp_path / 'none'}"

    @pytest.mark.parametrize("name", ["team-session.json", "task-analysis.json"])
    def test_the_two_files(self, session: Path, name: str) -> None:
        without(name)(session)
        assert errors(session)[0] == f"Invalid session: {name} missing"

    def test_the_role_specs(self, session: Path) -> None:
        for path in (session / "role-specs").iterdir():
            path.unlink()
        assert errors(session)[0] == "Invalid session: no role-spec files in role-specs/"

    def test_the_file_of_each_role(self, session: Path) -> None:
        without("role-specs/tester.md")(session)
        assert errors(session) == ["Role-spec file not found: role-specs/tester.md"]


class TestValidationAlgorithm:
    """Validation Algorithm"""

    @pytest.mark.differs(
        "validation stops at the first error", "it reports all errors", "one round instead of ten"
    )
    def test_every_error_is_reported_in_the_order_of_the_steps(self, session: Path) -> None:
        in_session(status="running")(session)
        without("task-analysis.json")(session)
        without("role-specs/tester.md")(session)
        found = errors(session)
        order = ["team-session.json", "task-analysis.json", "role-specs/tester.md"]
        assert [next(name for name in order if name in each) for each in found] == order

    def test_a_corrupt_file_is_named(self, session: Path) -> None:
        in_file("team-session.json", b"{")(session)
        assert errors(session)[0].startswith("Invalid session: team-session.json corrupt")


class TestRequiredFields:
    """Required Fields"""

    @pytest.mark.parametrize(
        "name", ["session_id", "task_description", "status", "team_name", "roles"]
    )
    def test_each_is_required(self, session: Path, name: str) -> None:
        in_session(**{name: GONE})(session)
        assert any(name in each for each in errors(session))

    def test_a_role_has_the_name_of_a_file(self, session: Path) -> None:
        role_named("../tester")(session)
        assert errors(session) != []


class TestOptionalFields:
    """Optional Fields"""

    def test_they_may_be_missing(self, session: Path) -> None:
        gone = ("pipeline", "active_workers", "completed_tasks", "completion_action", "created_at")
        in_session(**dict.fromkeys(gone, GONE))(session)
        assert errors(session) == []

    def test_another_type_is_a_warning(self, session: Path) -> None:
        in_session(completed_tasks="all")(session)
        assert (errors(session), len(warnings(session))) == ([], 1)


class TestTaskAnalysisJsonSchema:
    """task-analysis.json Schema"""

    @pytest.mark.parametrize("name", ["capabilities", "dependency_graph", "roles"])
    def test_each_is_required(self, session: Path, name: str) -> None:
        in_analysis(**{name: GONE})(session)
        assert any(name in each for each in errors(session))

    @pytest.mark.differs(
        "the graph is not checked", "it is, with warnings", "a cycle would wait forever"
    )
    def test_a_cycle_is_a_warning(self, session: Path) -> None:
        graph = {
            "A-1": {"depends_on": ["B-1"], "role": "tester"},
            "B-1": {"depends_on": ["A-1"], "role": "tester"},
        }
        in_analysis(dependency_graph=graph)(session)
        assert errors(session) == [] and any("cycle" in each for each in warnings(session))


class TestRequiredStructure:
    """Required Structure"""

    def test_a_role_spec_of_this_structure_is_valid(self, session: Path) -> None:
        assert errors(session) == [] and len(list((session / "role-specs").iterdir())) == 3


class TestRoleSpecStructureValidation:
    """Role-Spec Structure Validation"""

    @pytest.mark.differs(
        '"content between --- markers"',
        "a YAML mapping that can be read",
        "otherwise no field of it can be checked",
    )
    def test_front_matter_is_required(self, session: Path) -> None:
        in_file("role-specs/tester.md", b"## Phase 2\n## Phase 3\n## Phase 4\n")(session)
        assert errors(session)[0].startswith(
            "Invalid role-spec: role-specs/tester.md missing frontmatter"
        )

    @pytest.mark.parametrize("name", ["role", "prefix", "inner_loop", "message_types"])
    def test_each_of_its_fields_is_required(self, session: Path, name: str) -> None:
        in_spec(f"{name}:", f"x{name}:")(session)
        assert any(name in each for each in errors(session))

    @pytest.mark.differs(
        "`missing Phase 2` does not say where", "the file follows, and the line of a near miss", ""
    )
    @pytest.mark.parametrize("number", [2, 3, 4])
    def test_each_phase_is_required(self, session: Path, number: int) -> None:
        in_spec(f"## Phase {number}", f"## Step {number}")(session)
        (message,) = errors(session)
        assert message.startswith(f"Invalid role-spec: missing Phase {number}")
        assert "role-specs/tester.md" in message


class TestExampleValidSession:
    """Example Valid Session"""

    def test_it_is_valid(self, quick: QuickQueen, session: Path) -> None:
        done = quick("session", "validate", f"--session={session}")
        assert (done.code, done.out) == (0, f"valid: {session}\n")


class TestRecoveryFromInvalidSessions:
    """Recovery from Invalid Sessions"""

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("team-session.json", "Re-run team-coordinate with original task"),
            ("task-analysis.json", "Re-run team-coordinate with resume"),
            ("role-specs/tester.md", "Re-run team-coordinate with resume"),
        ],
    )
    def test_the_hint_is_its_step(self, session: Path, name: str, hint: str) -> None:
        without(name)(session)
        assert findings(session)[0]["hint"] == hint

    def test_corrupt_json_wants_an_inspection(self, session: Path) -> None:
        in_file("task-analysis.json", b"{")(session)
        hint = "Manual inspection or re-run team-coordinate"
        assert findings(session)[0]["hint"] == hint
