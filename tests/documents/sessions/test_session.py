"""Team sessions: every step of the document's algorithm, in its order and its words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from session_folders import (
    ALL,
    FIXTURES,
    GONE,
    ONE,
    Change,
    build,
    edited,
    errors,
    example_session,
    in_analysis,
    in_file,
    in_session,
    in_spec,
    lacking,
    role_named,
    role_spec,
    task_analysis,
    team_session,
    warnings,
    without,
)

from queenbee.documents.sessions.folder import File, SessionFolder
from queenbee.documents.sessions.roles import role_spec_findings
from queenbee.documents.sessions.session import session_findings, validate_session

ORIGINAL = "Re-run team-coordinate with original task"
RESUME = "Re-run team-coordinate with resume"
MANUAL_FIX = "Manual fix or re-run team-coordinate"
INSPECTION = "Manual inspection or re-run team-coordinate"

SESSION = "team-session.json"
ANALYSIS = "task-analysis.json"
TESTER = "role-specs/tester.md"
PHASES = b"## Phase 2\n## Phase 3\n## Phase 4\n"

FILES: dict[str, tuple[Change, str, str]] = {
    "no team-session": (without(SESSION), "team-session.json missing", ORIGINAL),
    "no task-analysis": (without(ANALYSIS), "task-analysis.json missing", RESUME),
    "torn team-session": (in_file(SESSION, b'{"a": '), "team-session.json corrupt", INSPECTION),
    "torn task-analysis": (in_file(ANALYSIS, b"{"), "task-analysis.json corrupt", INSPECTION),
    "a list": (in_file(SESSION, b"[]"), "team-session.json corrupt", INSPECTION),
    "empty": (in_file(SESSION, b""), "team-session.json corrupt", INSPECTION),
    "no UTF-8": (in_file(SESSION, b'{"a": "\xff"}'), "team-session.json corrupt", INSPECTION),
    "deep": (in_file(SESSION, b"[" * 90_000), "team-session.json corrupt", INSPECTION),
    "huge": (in_file(SESSION, b" " * 10_000_000), "team-session.json corrupt", INSPECTION),
}
IN_SESSION: dict[str, tuple[dict[str, object], str]] = {
    "no session_id": ({"session_id": GONE}, "session_id (string) is missing"),
    "empty session_id": ({"session_id": ""}, "session_id (string) is missing"),
    "session_id is a number": ({"session_id": 7}, "session_id must be a string"),
    "session_id is null": ({"session_id": None}, "session_id (string) is missing"),
    "no task_description": ({"task_description": GONE}, "task_description (string) is missing"),
    "no status": ({"status": GONE}, "status (string) is missing"),
    "another status": ({"status": "running"}, "status must be active, paused or completed"),
    "status of the template": ({"status": "active | paused | completed"}, "status must be active"),
    "no team_name": ({"team_name": GONE}, "team_name (string) is missing"),
    "no roles": ({"roles": GONE}, "roles (array) is missing"),
    "roles empty": ({"roles": []}, "roles is empty"),
    "roles are an object": ({"roles": {"tester": {}}}, "roles must be an array"),
    "a role is text": ({"roles": [*ALL, "x"]}, "roles[3] must be an object"),
    "a role without a name": ({"roles": [*ALL, {**ONE, "name": ""}]}, "roles[3].name (string)"),
    "a role without a prefix": ({"roles": [*ALL[1:], lacking("prefix")]}, "roles[2].prefix"),
    "a role without a role_spec": ({"roles": [*ALL[1:], lacking("role_spec")]}, "roles[2].role_s"),
}
IN_ANALYSIS: dict[str, tuple[dict[str, object], str]] = {
    "no capabilities": ({"capabilities": GONE}, "capabilities (array) is missing"),
    "capabilities are an object": ({"capabilities": {}}, "capabilities must be an array"),
    "no dependency_graph": ({"dependency_graph": GONE}, "dependency_graph (object) is missing"),
    "dependency_graph is text": ({"dependency_graph": "a"}, "dependency_graph must be an object"),
    "no roles in the analysis": ({"roles": GONE}, "roles (array) is missing"),
    "empty roles in the analysis": ({"roles": []}, "roles is empty"),
}
ROLE_NAMES = {
    "above the folder": ("../team-session", ": the name leaves the folder"),
    "at the root": ("/etc/passwd", ": the name leaves the folder"),
    "in a folder": ("a/tester", ": the name leaves the folder"),
    "behind a backslash": ("..\\tester", ": the name leaves the folder"),
    "with a NUL": ("tester\0", ": the name leaves the folder"),
    "of dots": ("..", ": the name leaves the folder"),
    "of a blank": (" ", ": the name is empty"),
    "too long for a file": ("x" * 300, ": the name is too long for a file"),
    "of another case": ("Tester", ""),
}
MESSAGE_TYPES = "message_types:\n  success: tester_complete\n  error: error\n"
FRONT_MATTER = {
    "no front matter": ("---\n", "", "frontmatter"),
    "front matter after an empty line": ("---\nrole", "\n---\nrole", "frontmatter"),
    "front matter without an end": ("error: error\n---", "error: error", "frontmatter"),
    "front matter is no YAML": ("role: tester", "role: [tester", "frontmatter"),
    "a key twice": ("role: tester", "role: tester\nrole: x", "frontmatter"),
    "an object of Python": ("role: tester", "role: !!python/object:os.x {}", "frontmatter"),
    "no role": ("role: tester\n", "", "required section: role (string) is missing"),
    "role is a number": ("role: tester", "role: 7", "required section: role must be a string"),
    "no prefix": ("prefix: TESTER\n", "", "required section: prefix (string) is missing"),
    "no inner_loop": ("inner_loop: false\n", "", "required section: inner_loop (boolean)"),
    "inner_loop of the template": ("false", "<true|false>", "required section: inner_loop must be"),
    "inner_loop is yes": ("false", "yes", "required section: inner_loop must be a boolean"),
    "inner_loop is 0": ("false", "0", "required section: inner_loop must be a boolean"),
    "message_types is text": (MESSAGE_TYPES, "message_types: all\n", "required section: message_t"),
    "no message_types": (MESSAGE_TYPES, "", "required section: message_types (object) is missing"),
}
NOT_PHASE_2 = {
    "no Phase 2": "## Context",
    "Phase 20": "## Phase 20: Work",
    "Phase 2.5": "## Phase 2.5: Work",
    "Phase 2a": "## Phase 2a: Work",
    "Phase 2-4": "## Phase 2-4: Work",
    "Phase 2 at level three": "### Phase 2: Work",
    "Phase 2 in a fence": "```\n## Phase 2: Work\n```",
    "Phase 2 in a comment": "<!--\n## Phase 2: Work\n-->",
    "Phase 2 in a quotation": "> ## Phase 2: Work",
    "Phase 2 in small letters": "## phase 2: work",
}
ODD_SPECS = {
    "front matter is a list": (b"---\n- role\n---\n" + PHASES, "frontmatter"),
    "front matter is empty": (b"---\n---\n" + PHASES, "frontmatter"),
    "role-spec is no UTF-8": (b"---\n\xff\n", "required section: not UTF-8"),
    "role-spec is huge": (b"x" * 10_000_000, "required section: is larger than"),
}


def invalid() -> dict[str, tuple[Change, str, str]]:
    """Returns what makes a session invalid, with the error's first words and its recovery."""
    spec = f"Invalid role-spec: {TESTER} missing "
    cases = {
        name: (change, f"Invalid session: {words}", hint)
        for name, (change, words, hint) in FILES.items()
    }
    for file, table in ((SESSION, IN_SESSION), (ANALYSIS, IN_ANALYSIS)):
        words = f"Invalid session: {file} missing, corrupt, or missing required fields: "
        make = team_session if file == SESSION else task_analysis
        for name, (fields, fault) in table.items():
            cases[name] = (edited(file, make, fields), words + fault, INSPECTION)
    for name, (role, fault) in ROLE_NAMES.items():
        words = f"Role-spec file not found: role-specs/{role}.md{fault}"
        cases[f"a role {name}"] = (role_named(role), words, RESUME)
    cases["a role without a file"] = (
        without(TESTER),
        f"Role-spec file not found: {TESTER}",
        RESUME,
    )
    for name, (old, new, fault) in FRONT_MATTER.items():
        cases[name] = (in_spec(old, new), spec + fault, MANUAL_FIX)
    for name, (data, fault) in ODD_SPECS.items():
        cases[name] = (in_file(TESTER, data), spec + fault, MANUAL_FIX)
    for name, heading in NOT_PHASE_2.items():
        change = in_spec("## Phase 2: Work", heading)
        cases[name] = (change, "Invalid role-spec: missing Phase 2", MANUAL_FIX)
    for number in (3, 4):
        change = in_spec(f"## Phase {number}: Work", "## Context")
        words = f"Invalid role-spec: missing Phase {number}"
        cases[f"no Phase {number}"] = (change, words, MANUAL_FIX)
    return cases


INVALID = invalid()


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The document's example of a valid session, on disk."""
    return example_session(tmp_path)


class TestDocument:
    @pytest.mark.slow
    def test_the_texts_are_those_of_the_documents_algorithm(self, tmp_path: Path) -> None:
        algorithm = (FIXTURES / "validation-algorithm.txt").read_text()
        algorithm += (FIXTURES / "role-spec-algorithm.txt").read_text()
        texts = set(re.findall(r'ERROR: "([^"]+)"', algorithm))
        told = [
            text.replace("<path>", str(tmp_path / "none"))
            .replace("<role.name>", "tester")
            .replace("<role>", "tester")
            for text in texts
        ]
        raised = errors(None) + errors(tmp_path / "none")
        for name, (change, _, _) in INVALID.items():
            folder = tmp_path / name.replace("/", "-")
            build(folder)
            change(folder)
            raised += errors(folder)
        for missing in ("role-specs", "specs"):
            folder = tmp_path / f"without {missing}"
            build(folder)
            for spec in (folder / "role-specs").iterdir():
                spec.unlink()
            if missing == "role-specs":
                (folder / "role-specs").rmdir()
            raised += errors(folder)

        assert len(told) == 13
        for text in told:
            assert any(message.startswith(text) for message in raised), text

    def test_the_role_spec_template_lacks_only_a_real_boolean(self) -> None:
        file = File((FIXTURES / "role-spec.md").read_bytes())

        (finding,) = role_spec_findings("<name>", file, prefix="<PREFIX>")

        assert "inner_loop must be a boolean" in finding.message

    def test_the_team_session_template_lacks_only_a_real_status_and_its_role(self) -> None:
        folder = SessionFolder(
            "x",
            team_session=File((FIXTURES / "team-session.json").read_bytes()),
            task_analysis=File((FIXTURES / "task-analysis.json").read_bytes()),
            role_specs={"<role-name>": File((FIXTURES / "role-spec.md").read_bytes())},
        )

        wrong = [found for found in session_findings(folder) if found.severity == "error"]

        assert [re.sub(r".*: ", "", found.message)[:20] for found in wrong] == [
            "status must be activ",
            "inner_loop must be a",
        ]


VALID: dict[str, Change] = {
    "paused": in_session(status="paused"),
    "completed": in_session(status="completed"),
    "unknown keys": in_session(extra={"a": 1}),
    "byte order mark": in_file(
        "team-session.json", b"\xef\xbb\xbf" + json.dumps(team_session()).encode()
    ),
    "no capabilities at all": in_analysis(capabilities=[]),
    "graph as a list": in_analysis(
        dependency_graph=[
            {"id": "A", "depends_on": [], "role": "tester"},
            {"task_id": "B", "depends_on": ["A"], "role": "tester"},
        ]
    ),
    "empty graph": in_analysis(dependency_graph={}),
    "optional fields left out": in_session(
        pipeline=GONE,
        active_workers=GONE,
        completed_tasks=GONE,
        completion_action=GONE,
        created_at=GONE,
    ),
    "DOS line endings": lambda session: (session / "role-specs" / "tester.md").write_bytes(
        role_spec("tester").replace("\n", "\r\n").encode()
    ),
    "role-spec with a byte order mark": in_spec("---\nrole", "\ufeff---\nrole"),
    "spaces after the markers": in_spec("---\n", "---  \n"),
    "front matter ending in dots": in_spec("error: error\n---", "error: error\n..."),
    "phase without a title": in_spec("## Phase 2: Work", "## Phase 2"),
    "phase with a dash": in_spec("## Phase 2: Work", "## Phase 2 - Work"),
    "phase with a full stop": in_spec("## Phase 2: Work", "## Phase 2. Work"),
    "phase underlined": in_spec("## Phase 2: Work", "Phase 2: Work\n-------------"),
    "phase with closing hashes": in_spec("## Phase 2: Work", "## Phase 2: Work ##"),
    "phase after a fence": in_spec("## Phase 2: Work", "```\n## x\n```\n## Phase 2: Work"),
    "phases in another order": in_spec("## Phase 4: Work", "## Phase 4: Work\n## Phase 1: x"),
    "inner_loop true": in_spec("inner_loop: false", "inner_loop: true"),
    "a few aliases": in_spec("  error: error", "  error: &e error\n  fatal: *e"),
    "no optional folder": lambda session: (session / "shared-memory.json").unlink(),
}
REMARKS: dict[str, tuple[Change, str]] = {
    "a cycle": (
        in_analysis(dependency_graph={"A": {"depends_on": ["B"]}, "B": {"depends_on": ["A"]}}),
        "a cycle: A waits for B waits for A",
    ),
    "a dangling need": (
        in_analysis(dependency_graph={"A": {"depends_on": ["Z"]}}),
        "depends on 'Z', which is not a task",
    ),
    "an unknown role": (
        in_analysis(dependency_graph={"A": {"depends_on": [], "role": "cook"}}),
        "is for the role 'cook', which the session does not have",
    ),
    "a task twice": (
        in_analysis(dependency_graph=[{"id": "A"}, {"id": "A"}]),
        "task 'A' is in the graph twice",
    ),
    "a task without a name": (
        in_analysis(dependency_graph=[{"depends_on": []}]),
        "has no task name",
    ),
    "a role-spec of nobody": (
        in_file("role-specs/cook.md", b"x"),
        "no role of the session has this role-spec",
    ),
    "a role twice": (
        in_session(roles=team_session()["roles"] + team_session()["roles"][:1]),
        "the role 'researcher' is listed twice",
    ),
    "another role in the file": (
        in_spec("role: tester", "role: taster"),
        "role is 'taster', the session says 'tester'",
    ),
    "another prefix in the file": (
        in_spec("prefix: TESTER", "prefix: TEST"),
        "prefix is 'TEST', the session says 'TESTER'",
    ),
    "a strange completion action": (
        in_session(completion_action="party"),
        "completion_action must be one of interactive, auto_archive, auto_keep",
    ),
    "pipeline is a list": (in_session(pipeline=[]), "pipeline should be an object"),
    "shared memory is torn": (
        in_file("shared-memory.json", b"{"),
        "shared-memory.json is not JSON",
    ),
}


class TestTable:
    @pytest.mark.parametrize("name", INVALID)
    def test_is_one_error_in_the_documents_words_with_its_recovery(
        self, name: str, session: Path
    ) -> None:
        change, message, hint = INVALID[name]
        change(session)

        found = [each for each in validate_session(str(session)) if each.severity == "error"]

        assert [each.message[: len(message)] for each in found] == [message]
        assert found[0].hint == hint

    @pytest.mark.parametrize("name", VALID)
    def test_is_valid(self, name: str, session: Path) -> None:
        VALID[name](session)

        assert validate_session(str(session)) == []


class TestAllAtOnce:
    def test_a_folder_with_nothing_in_it_has_three_problems(self, tmp_path: Path) -> None:
        assert errors(tmp_path) == [
            "Invalid session: team-session.json missing",
            "Invalid session: task-analysis.json missing",
            "Invalid session: role-specs/ directory missing",
        ]

    def test_an_empty_role_specs_folder_has_its_own_message(self, session: Path) -> None:
        for spec in (session / "role-specs").iterdir():
            spec.rename(spec.with_suffix(".txt"))

        assert errors(session)[0] == "Invalid session: no role-spec files in role-specs/"

    def test_role_specs_are_checked_although_the_session_cannot_be_read(
        self, session: Path
    ) -> None:
        without("team-session.json")(session)
        in_spec("## Phase 4: Work", "## x")(session)

        assert errors(session) == [
            "Invalid session: team-session.json missing",
            "Invalid role-spec: missing Phase 4 in role-specs/tester.md",
        ]

    def test_the_line_of_a_phase_at_another_level_is_reported(self, session: Path) -> None:
        in_spec("## Phase 2: Work", "# Phase 2: Work")(session)

        (finding,) = validate_session(str(session))

        assert finding.message.endswith("; it has # Phase 2: Work")
        assert finding.line == 12


class TestRemarks:
    @pytest.mark.parametrize("name", REMARKS)
    def test_what_the_document_does_not_check_is_a_warning(self, name: str, session: Path) -> None:
        change, message = REMARKS[name]
        change(session)

        assert errors(session) == []
        assert [each[: len(message)] for each in warnings(session)] == [message]

    def test_a_role_spec_elsewhere_is_a_warning(self, session: Path) -> None:
        roles = team_session()["roles"]
        roles[0]["role_spec"] = "../../etc/passwd"
        in_session(roles=roles)(session)

        assert errors(session) == []
        assert "but role-specs/researcher.md is read" in warnings(session)[0]
