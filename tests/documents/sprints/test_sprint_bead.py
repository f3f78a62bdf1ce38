"""Sprint beads: the document's examples, and a table of what is and is not valid."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from queenbee.core.timestamps import instant_ms
from queenbee.documents.agents import list_agents
from queenbee.documents.findings import MAX_FINDINGS, Finding
from queenbee.documents.sprints import reports
from queenbee.documents.sprints.numbers import branch_fault, is_absolute
from queenbee.documents.sprints.reports import DEFAULT_SCHEMA, report_findings
from queenbee.documents.sprints.sprint_bead import (
    SCHEMA_PATH,
    check_bead,
    field_findings,
    part_findings,
    sprint_schema,
)
from queenbee.errors import MissingPackage
from queenbee.workflows.validation import Rules, validate_data

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sprint"
EXAMPLES = ("work-bead.json", "merge-bead.json")


def example(name: str = "work-bead.json") -> dict[str, Any]:
    return json.loads((FIXTURES / name).read_text())


def complete() -> dict[str, Any]:
    """Returns the document's work bead with the fields that its example lacks."""
    bead = example()
    bead["metadata"] |= {"team_name": "sprint-1.2-auth", "agent_type": "dev"}
    for agent in bead["metadata"]["qa_agents"]:
        agent["agent_type"] = "qa"
    return bead


def changed(path: str, value: object) -> dict[str, Any]:
    """Returns the complete bead with one field set; the path is as findings write it."""
    bead = complete()
    *parents, last = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", path)]
    target: Any = bead
    for step in parents:
        target = target[step]
    if value is GONE:
        del target[last]
    else:
        target[last] = value
    return bead


class Gone:
    def __repr__(self) -> str:
        return "GONE"


GONE = Gone()


def errors(bead: object, **options: Any) -> list[str]:
    return [found.path for found in check_bead(bead, **options) if found.severity == "error"]


def warnings(bead: object, **options: Any) -> list[str]:
    return [found.path for found in check_bead(bead, **options) if found.severity == "warning"]


class TestExamples:
    @pytest.mark.parametrize("name", EXAMPLES)
    def test_what_the_document_requires_and_its_examples_lack_is_a_warning(self, name: str) -> None:
        lacking = {re.sub(r"\[\d+\]", "", path) for path in warnings(example(name))}

        assert lacking == {
            "metadata.team_name",
            "metadata.agent_type",
            "metadata.qa_agents.agent_type",
        }

    def test_both_say_how_the_other_takes_it(self) -> None:
        hints = [check_bead(example(), strict=strict)[-1].hint for strict in (False, True)]

        assert hints == [
            "add it; with --strict this is an error",
            "add it; without --strict this is a warning, since the source's own examples lack it",
        ]

    def test_the_output_schema_of_the_qa_agent_template_is_valid(self) -> None:
        agent = jsonc("qa-agent.jsonc")
        agent |= {"agent_path": "claude", "model": "haiku", "agent_type": "qa"}

        assert check_bead(changed("metadata.qa_agents", [agent])) == []

    @pytest.mark.parametrize("status", ["completed", "failed", "timeout"])
    def test_the_dev_execution_template_is_valid_with_each_status(self, status: str) -> None:
        assert (
            part_findings("DevExecution", jsonc("dev-execution.jsonc") | {"status": status}) == []
        )

    @pytest.mark.parametrize("status", ["pass", "fail", "stop"])
    def test_the_qa_execution_template_is_valid_with_each_status(self, status: str) -> None:
        execution = jsonc("qa-execution.jsonc") | {"status": status}

        assert part_findings("QAExecution", execution) == []

    def test_the_scrum_result_template_is_valid_with_values(self) -> None:
        text = re.sub(r"\s+//.*", "", (FIXTURES / "scrum-result.jsonc").read_text())
        for word, value in (("boolean", "true"), ("int", "1"), ("pass|fail|stop", "pass")):
            text = text.replace(word, value)
        result = json.loads(text)

        assert part_findings("ScrumResult", result) == []


def jsonc(name: str) -> dict[str, Any]:
    return json.loads(re.sub(r"\s+//.*", "", (FIXTURES / name).read_text()))


VALID: dict[str, tuple[str, object]] = {
    "phase and sprint of a track": ("metadata", {"phase": "3a", "sprint": "3a.2b"}),
    "phase of two digits": ("metadata", {"phase": "12", "sprint": "12.5c"}),
    "track under a track": ("metadata", {"phase": "3ab", "sprint": "3ab.1"}),
    "branch of the document": ("metadata.branch", "develop/3a-2b-api"),
    "branch without a slash": ("metadata.branch", "feature_1"),
    "source branch with a dot": ("metadata.source_branch", "release/1.2"),
    "windows worktree": ("metadata.worktree_path", "C:\\work\\app-worktrees\\main"),
    "default agent": ("metadata.dev_agent_path", "claude"),
    "opus": ("metadata.dev_model", "opus"),
    "dependency as an object of beads": (
        "dependencies",
        [{"issue_id": "bd-a1b2c3", "depends_on_id": "bd-x", "type": "blocks"}],
    ),
    "dependencies of both kinds": ("dependencies", ["bd-x", {"depends_on_id": "bd-y"}]),
    "dependency of a kind that orders nothing": (
        "dependencies",
        [{"depends_on_id": "bd-x", "type": "related"}],
    ),
    "no dependencies key": ("dependencies", GONE),
    "dependencies null as Go writes them": ("dependencies", None),
    "status in_progress": ("status", "in_progress"),
    "status blocked": ("status", "blocked"),
    "no priority": ("priority", GONE),
    "priority 0": ("priority", 0),
    "no description": ("description", GONE),
    "seven digits of a second": ("created_at", "2026-02-07T10:00:00.1234567Z"),
    "offset instead of Z": ("created_at", "2026-02-08T23:31:26.401814-08:00"),
    "comments of any shape": ("comments", [{"id": 1, "text": "x"}, "note"]),
    "unknown key at the top": ("wisp_type", "x"),
    "unknown key in the metadata": ("metadata.docker_image", {"deep": [1]}),
    "unknown key in a qa agent": ("metadata.qa_agents[0].timeout", 3),
    "histories null as Go writes them": ("metadata.dev_agent_executions", None),
    "no retry fields": ("metadata.max_retry_attempts", GONE),
    "retry fields null": ("metadata", {"max_retry_attempts": None, "attempt_count": None}),
    "enum of statuses in another order": (
        "metadata.qa_agents[0].output_schema.properties.status.enum",
        ["stop", "pass", "fail"],
    ),
    "input schema": ("metadata.qa_agents[0].input_schema", {"type": "object"}),
    "agent type docs": ("metadata.agent_type", "docs"),
    "qa agent type lint": ("metadata.qa_agents[0].agent_type", "lint"),
    "prompts of several lines": ("metadata.dev_prompts", ["one\ntwo"]),
    "title beyond ASCII": ("title", "Prüfung ✓"),
}

INVALID: dict[str, tuple[str, object]] = {
    "no title": ("title", GONE),
    "empty title": ("title", ""),
    "title of spaces": ("title", "  \t"),
    "title is a number": ("title", 7),
    "no status": ("status", GONE),
    "status of another tracker": ("status", "done"),
    "status in capitals": ("status", "Open"),
    "priority too high": ("priority", 5),
    "priority negative": ("priority", -1),
    "priority as text": ("priority", "1"),
    "priority true": ("priority", True),
    "priority with a fraction": ("priority", 1.5),
    "issue type of beads": ("issue_type", "task"),
    "another assignee": ("assignee", "claude"),
    "no assignee": ("assignee", GONE),
    "empty id": ("id", ""),
    "dependencies as text": ("dependencies", "bd-x"),
    "empty dependency": ("dependencies[0]", ""),
    "dependency is a number": ("dependencies[0]", 3),
    "labels as text": ("labels", "a,b"),
    "label is a number": ("labels[0]", 1),
    "created_at is no time": ("created_at", "yesterday"),
    "created_at is a number": ("created_at", 1770458400),
    "no metadata": ("metadata", GONE),
    "metadata is a list": ("metadata", []),
    "no rig": ("metadata.rig", GONE),
    "relative worktree": ("metadata.worktree_path", "../my-app-worktrees/main/1-2"),
    "worktree in a home": ("metadata.worktree_path", "~/app"),
    "worktree with a NUL": ("metadata.worktree_path", "/a\0b"),
    "branch with a dot": ("metadata.branch", "main/1.2"),
    "branch with a space": ("metadata.branch", "feat/auth api"),
    "branch with a line end": ("metadata.branch", "main/1-2\n"),
    "branch beginning with a dash": ("metadata.branch", "-force"),
    "branch ending in a slash": ("metadata.branch", "main/"),
    "branch with an empty part": ("metadata.branch", "main//x"),
    "empty branch": ("metadata.branch", ""),
    "empty source branch": ("metadata.source_branch", ""),
    "phase with a dot": ("metadata.phase", "1.2"),
    "phase beginning with a letter": ("metadata.phase", "a1"),
    "phase with a dash": ("metadata.phase", "1-2"),
    "phase in capitals": ("metadata.phase", "1A"),
    "phase with a line end": ("metadata.phase", "1\n"),
    "phase of foreign digits": ("metadata.phase", "١"),
    "phase is a number": ("metadata.phase", 1),
    "sprint without a dot": ("metadata.sprint", "1"),
    "sprint with a dash": ("metadata.sprint", "1-2"),
    "sprint with two dots": ("metadata.sprint", "1.2.3"),
    "sprint beginning with a letter": ("metadata.sprint", "a.1"),
    "sprint with a line end": ("metadata.sprint", "1.2\n"),
    "sprint of another phase": ("metadata.sprint", "2.1"),
    "sprint of a longer phase": ("metadata.sprint", "12.1"),
    "sprint of another track": ("metadata.sprint", "1a.2"),
    "empty team": ("metadata.team_name", " "),
    "no plan file": ("metadata.plan_file", GONE),
    "empty plan section": ("metadata.plan_section", ""),
    "no plan sprint": ("metadata.plan_sprint_id", GONE),
    "no dev agent": ("metadata.dev_agent_path", GONE),
    "model of another maker": ("metadata.dev_model", "gpt"),
    "model in capitals": ("metadata.dev_model", "Sonnet"),
    "no prompts": ("metadata.dev_prompts", []),
    "prompts as text": ("metadata.dev_prompts", "do it"),
    "prompt is a number": ("metadata.dev_prompts[0]", 1),
    "agent type of a qa agent": ("metadata.agent_type", "lint"),
    "no qa agents": ("metadata.qa_agents", []),
    "qa agent without a prompt": ("metadata.qa_agents[0].prompt", GONE),
    "qa agent with a bad model": ("metadata.qa_agents[1].model", "fast"),
    "qa agent of the type dev": ("metadata.qa_agents[0].agent_type", "dev"),
    "no output schema": ("metadata.qa_agents[0].output_schema", GONE),
    "output schema is true": ("metadata.qa_agents[0].output_schema", True),
    "output schema without status": (
        "metadata.qa_agents[0].output_schema.properties.status",
        GONE,
    ),
    "output schema with two statuses": (
        "metadata.qa_agents[0].output_schema.properties.status",
        {"enum": ["pass", "fail"]},
    ),
    "output schema with four statuses": (
        "metadata.qa_agents[0].output_schema.properties.status",
        {"enum": ["pass", "fail", "stop", "skip"]},
    ),
    "output schema with status as text": (
        "metadata.qa_agents[0].output_schema.properties.status",
        {"type": "string"},
    ),
    "output schema without message": (
        "metadata.qa_agents[0].output_schema.properties.message",
        GONE,
    ),
    "retries zero": ("metadata.max_retry_attempts", 0),
    "retries as text": ("metadata.max_retry_attempts", "3"),
    "attempts negative": ("metadata.attempt_count", -1),
    "pull request zero": ("metadata.pr_number", 0),
    "scrum result is text": ("metadata.scrum_result", "ok"),
}


class TestTable:
    @pytest.mark.parametrize("name", VALID)
    def test_is_valid(self, name: str) -> None:
        path, value = VALID[name]
        bead = complete()
        if path == "metadata" and isinstance(value, dict):
            bead["metadata"] |= value
        else:
            bead = changed(path, value)

        assert errors(bead, strict=True) == []

    @pytest.mark.parametrize("name", INVALID)
    def test_is_invalid_at_that_path(self, name: str) -> None:
        path, value = INVALID[name]
        where = {
            "dependencies[0]": {"dependencies[0]", "dependencies[0].depends_on_id"},
        }.get(path, {path})

        found = errors(changed(path, value), strict=True)

        assert found
        assert set(found) <= where

    @pytest.mark.parametrize("value", [None, 3, "bead", [], [{}]])
    def test_a_non_object_is_one_error(self, value: object) -> None:
        assert errors(value) == [""]

    def test_all_findings_come_at_once(self) -> None:
        bead = complete() | {"title": "", "status": "x", "priority": 9}
        bead["metadata"] |= {"phase": "1A", "branch": "a b", "dev_prompts": []}

        assert errors(bead) == [
            "title",
            "status",
            "priority",
            "metadata.branch",
            "metadata.phase",
            "metadata.dev_prompts",
        ]


class TestRules:
    def test_a_merge_bead_names_the_branches_to_merge(self) -> None:
        bead = example("merge-bead.json")
        del bead["metadata"]["branches_to_merge"]

        assert errors(bead) == ["metadata.branches_to_merge"]

    def test_branches_to_merge_are_branches(self) -> None:
        bead = example("merge-bead.json")
        bead["metadata"]["branches_to_merge"][1] = "main/1.2b"

        assert errors(bead) == ["metadata.branches_to_merge[1]"]

    def test_branches_on_a_work_bead_are_a_warning(self) -> None:
        bead = changed("metadata.branches_to_merge", ["main/x"])

        assert warnings(bead) == ["metadata.branches_to_merge"]

    def test_a_bead_without_an_id_is_a_warning(self) -> None:
        assert warnings(changed("id", GONE)) == ["id"]

    def test_closed_without_a_time_is_a_warning(self) -> None:
        assert warnings(changed("status", "closed")) == ["closed_at"]

    def test_open_with_a_closing_time_is_a_warning(self) -> None:
        assert warnings(changed("closed_at", "2026-02-07T10:00:00Z")) == ["closed_at"]

    def test_a_title_that_beads_refuses_is_a_warning(self) -> None:
        assert warnings(changed("title", "x" * 501)) == ["title"]

    def test_more_attempts_than_allowed_are_a_warning(self) -> None:
        assert warnings(changed("metadata.attempt_count", 4)) == ["metadata.attempt_count"]

    def test_an_execution_that_ends_before_it_began_is_a_warning(self) -> None:
        execution = jsonc("dev-execution.jsonc") | {"status": "failed"}
        execution["completed_at"] = "2026-02-07T09:00:00Z"
        bead = changed("metadata.dev_agent_executions", [execution])

        assert warnings(bead) == ["metadata.dev_agent_executions[0].completed_at"]

    def test_an_execution_with_faults_has_them_told_with_its_place(self) -> None:
        bead = changed("metadata.qa_agent_executions", [{"attempt": 0, "status": "ok"}])

        assert "metadata.qa_agent_executions[0].attempt" in errors(bead)
        assert "metadata.qa_agent_executions[0].status" in errors(bead)

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "objekt"},
            {"$schema": 3},
            {"required": "status"},
            {"pattern": "("},
        ],
    )
    def test_an_output_schema_must_be_a_json_schema(self, schema: dict[str, Any]) -> None:
        path = "metadata.qa_agents[0].output_schema"
        good = example()["metadata"]["qa_agents"][0]["output_schema"]

        assert errors(changed(path, good | schema)) == [path]


class TestAgents:
    MESSAGE = "Agent path '{}' does not exist in .claude/agents/"

    @pytest.fixture
    def agents(self, tmp_path: Path) -> frozenset[str]:
        folder = tmp_path / "agents"
        (folder / "team").mkdir(parents=True)
        for name in ("backend-dev", "qa-unit-tests", "qa-security-scan", "team/lead"):
            (folder / f"{name}.md").write_text("# agent\n")
        (folder / "notes.txt").write_text("no agent")
        (folder / "folder.md").mkdir()
        (folder / "gone.md").symlink_to("nowhere")
        (tmp_path / "secret.md").write_text("outside")
        return list_agents(str(folder))

    @pytest.mark.parametrize(
        "path",
        [
            "claude",
            ".claude/agents/backend-dev",
            ".claude/agents/backend-dev.md",
            "./.claude/agents/backend-dev",
            ".claude/agents/team/lead",
        ],
    )
    def test_is_an_agent(self, path: str, agents: frozenset[str]) -> None:
        assert errors(changed("metadata.dev_agent_path", path), agents=agents) == []

    @pytest.mark.parametrize(
        "path",
        [
            ".claude/agents/frontend-dev",
            ".claude/agents/../secret",
            ".claude/agents/../../secret.md",
            ".claude/agents/team/../../../secret",
            "/etc/passwd",
            "../agents/backend-dev",
            "backend-dev",
            ".claude/agents/",
            ".claude/agents/folder",
            ".claude/agents/gone",
            ".claude/agents/notes.txt",
            ".claude/agents/Backend-dev",
            ".claude/agents/backend-dev.md.md",
            ".claude/agents/backend-dev\0",
            "Claude",
        ],
    )
    def test_is_not_an_agent_in_the_documents_words(
        self, path: str, agents: frozenset[str]
    ) -> None:
        findings = check_bead(changed("metadata.dev_agent_path", path), agents=agents)

        assert [(found.path, found.message) for found in findings] == [
            ("metadata.dev_agent_path", self.MESSAGE.format(path))
        ]

    def test_the_agents_of_qa_are_checked_too(self, agents: frozenset[str]) -> None:
        bead = changed("metadata.qa_agents[1].agent_path", ".claude/agents/nobody")

        assert errors(bead, agents=agents) == ["metadata.qa_agents[1].agent_path"]

    def test_a_near_name_is_suggested(self, agents: frozenset[str]) -> None:
        bead = changed("metadata.dev_agent_path", ".claude/agents/backend-devs")

        (finding,) = check_bead(bead, agents=agents)

        assert finding.hint == "did you mean .claude/agents/backend-dev?"

    def test_without_a_folder_there_are_no_agents(self, tmp_path: Path) -> None:
        agents = list_agents(str(tmp_path / "none"))

        assert len(errors(complete(), agents=agents)) == 3


def read(data: bytes) -> list[Finding]:
    """Returns what is wrong with a bead as it is in a file."""
    (found,) = validate_data(data, "bead.json", Rules(kind="sprint"))
    return list(found.findings)


class TestBytes:
    def test_a_byte_order_mark_is_accepted(self) -> None:
        data = b"\xef\xbb\xbf" + json.dumps(complete()).encode()

        assert [each for each in read(data) if each.severity == "error"] == []

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"\xff\xfe\x00",
            b"not json",
            b'{"title": "a", "title": "b"}',
            b'{"priority": NaN}',
            b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
            b"[" * 100_000,
            b'{"a": 1e999}',
            b'{"title": "\x00"}',
        ],
        ids=["empty", "torn", "utf-16", "words", "twice", "nan", "deep", "deeper", "huge", "nul"],
    )
    def test_unusable_json_is_one_finding(self, data: bytes) -> None:
        (finding,) = read(data)

        assert finding.path == ""
        assert finding.severity == "error"

    def test_ten_megabytes_are_refused_unread(self) -> None:
        data = json.dumps(complete() | {"notes": "x" * 10_000_000}).encode()

        (finding,) = read(data)

        assert "a bead has at most 1,048,576" in finding.message

    def test_a_message_does_not_repeat_a_long_value(self) -> None:
        findings = check_bead(changed("status", "x" * 100_000))

        assert max(len(found.message) for found in findings) < 300

    @settings(max_examples=examples(60))
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["metadata", "qa_agents", "sprint", "phase", "output_schema", "id"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=12,
        )
    )
    def test_no_json_value_makes_it_raise(self, value: object) -> None:
        assert check_bead(value, agents=frozenset(), strict=True)


class TestSchema:
    # What JSON Schema cannot say: rules between fields, and which days a month has.
    BEYOND = frozenset(
        {"sprint of another phase", "sprint of a longer phase", "sprint of another track"}
    )

    @settings(max_examples=examples(200))
    @given(st.data())
    def test_finds_wrong_what_the_library_finds_wrong(self, data: st.DataObject) -> None:
        bead = complete() | {"updated_at": None}
        bead["metadata"] |= example("completed-bead.json")["metadata"]
        for _ in range(data.draw(st.integers(1, 3))):
            target, key = data.draw(st.sampled_from(list(members(bead))))
            if data.draw(st.booleans()):
                # A copy: later draws change it, and the examples after this one must not see that.
                target[key] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
            else:
                del target[key]
        theirs = Draft202012Validator(CHECKED, format_checker=CHECKER).iter_errors(bead)

        assert {found.path for found in field_findings(bead)} == {place(each) for each in theirs}


class TestTheExportedSchema:
    """`queen bead schema sprint` says what `queen bead validate` says, for any JSON Schema tool."""

    # What it cannot say, as docs/sprint-beads.md lists it.
    UNSAYABLE = re.compile(
        r"must begin with its phase|must be a whole number.*; it is a number"
        r"|must be an RFC 3339 timestamp|is not a JSON Schema|half of a surrogate pair"
        r"|is not in \.claude/agents/"  # Wherever `..` leads from there.
    )

    @settings(max_examples=examples(300))
    @given(st.data(), st.booleans())
    def test_refuses_what_the_validator_refuses_and_nothing_else(
        self, data: st.DataObject, strict: bool
    ) -> None:
        bead = complete() | {"updated_at": None}
        bead["metadata"] |= example("completed-bead.json")["metadata"]
        for _ in range(data.draw(st.integers(0, 3))):
            target, key = data.draw(st.sampled_from(list(members(bead))))
            if data.draw(st.booleans()):
                target[key] = copy.deepcopy(data.draw(st.sampled_from(ODDER)))
            else:
                del target[key]
        found = check_bead(bead, strict=strict)
        ours = [each.message for each in found if each.severity == "error"]
        library = Draft202012Validator(sprint_schema(strict=strict))

        if library.is_valid(bead):
            assert [each for each in ours if not self.UNSAYABLE.search(each)] == []
        else:
            assert ours != []

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("metadata.branch", "HEAD"),
            ("metadata.branch", "-x"),
            ("metadata.branch", "a//b"),
            ("metadata.branch", "a/"),
            ("metadata.branch", "a\n"),
            ("metadata.branches_to_merge", ["a\n"]),
            ("metadata.worktree_path", "app"),
            ("metadata.worktree_path", "/app\0"),
            ("metadata.phase", "1\n"),
            ("created_at", "yesterday"),
            ("issue_type", "beads-ralph-merge"),
        ],
    )
    def test_needs_no_validator_that_knows_our_formats(self, path: str, value: object) -> None:
        bead = changed(path, value)

        assert errors(bead) != []
        assert not Draft202012Validator(sprint_schema()).is_valid(bead)

    @pytest.mark.parametrize("name", ["team_name", "agent_type", "qa_agents[0].agent_type"])
    def test_with_strict_refuses_null_as_the_validator_does(self, name: str) -> None:
        bead = changed(f"metadata.{name}", None)

        assert errors(bead, strict=True) == [f"metadata.{name}"]
        assert not Draft202012Validator(sprint_schema(strict=True)).is_valid(bead)
        assert Draft202012Validator(sprint_schema()).is_valid(bead)

    @pytest.mark.parametrize("path", ["C:\\app", "\\\\host\\app", "/a b"])
    def test_accepts_paths_of_every_system(self, path: str) -> None:
        assert Draft202012Validator(sprint_schema()).is_valid(
            changed("metadata.worktree_path", path)
        )


def members(value: Any) -> Iterator[tuple[Any, Any]]:
    """Returns each container in a value with each of its keys."""
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, inner in reversed(pairs):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from members(inner)


ODD = [
    None, True, 0, 5, 1.5, "", " ", "x", "1.2", "sonnet", "pass", "open", "/a", "a b", "-x",
    "2026-02-07T10:00:00Z", [], [1], ["x"], {}, {"depends_on_id": "x"},
]  # fmt: skip
ODDER = [
    *ODD, "1\n", "1.2\n", "a\n", "a//b", "HEAD", "a/b", "C:\\x", "/a\0", "2026-02-30T10:00:00Z",
    "2026-02-07 10:00:00", 1.0, -1, "beads-ralph-merge", "closed", ["-x"], ["a", "b"], [[]], [{}],
    {"status": "pass"}, {"properties": {}}, {"properties": {"status": {"enum": ["pass"]}}},
    {"properties": {"status": {"enum": ["stop", "pass", "fail"]}, "message": {}}},
    {"properties": {"status": {"enum": ["stop", "pass", "pass"]}, "message": {}}},
]  # fmt: skip
CHECKED = json.loads(Path(SCHEMA_PATH).read_text())
CHECKED["$defs"]["QAAgent"]["properties"]["output_schema"] = {"type": "object"}
CHECKER = FormatChecker(formats=[])
CHECKER.checks("date-time")(lambda text: not isinstance(text, str) or bool(instant_ms(text)))
CHECKER.checks("branch")(lambda text: not isinstance(text, str) or not branch_fault(text))
CHECKER.checks("absolute-path")(lambda text: not isinstance(text, str) or is_absolute(text))


def place(error: ValidationError) -> str:
    path = error.json_path.removeprefix("$").removeprefix(".")
    if error.validator != "required":
        return path
    return f"{path}.{error.message.split(chr(39))[1]}".removeprefix(".")


class TestReports:
    SCHEMA = DEFAULT_SCHEMA | {
        "properties": DEFAULT_SCHEMA["properties"] | {"runs": {"items": {"type": "string"}}}
    }

    @pytest.mark.parametrize(
        "report",
        [
            {"status": "pass", "message": ""},
            {"status": "pass", "message": "x", "details": {}, "other": 1},
            {"status": "ok", "message": "x"},
            {"status": "fail", "message": 3, "details": []},
            {"message": "x"},
            {},
        ],
    )
    def test_the_schema_of_plans_is_judged_as_the_library_judges_it(
        self, report: dict[str, Any]
    ) -> None:
        theirs = list(Draft202012Validator(DEFAULT_SCHEMA).iter_errors(report))

        assert len(report_findings(report, DEFAULT_SCHEMA)) == len(theirs)

    def test_the_schemas_of_plans_and_of_the_examples_need_no_library(self) -> None:
        bead = complete()
        bead["metadata"]["qa_agents"][0]["output_schema"] = DEFAULT_SCHEMA
        program = (
            "import json, sys; sys.modules['jsonschema'] = None; "
            "from queenbee.documents.sprints.sprint_bead import check_bead; "
            "assert check_bead(json.load(sys.stdin)) == []"
        )

        subprocess.run(
            [sys.executable, "-c", program], input=json.dumps(bead), text=True, check=True
        )

    def test_another_schema_needs_the_library_and_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "jsonschema", None)
        schema = self.SCHEMA | {"oneOf": [{}]}

        with pytest.raises(MissingPackage) as caught:
            report_findings({"status": "pass", "message": ""}, schema)

        assert "pip install 'queenbee-hive[schemas]'" in caught.value.hint

    def test_of_a_report_with_very_many_faults_a_thousand_are_told(self) -> None:
        report = {"status": "pass", "message": "", "runs": [5] * 1_000_000}

        found = report_findings(report, self.SCHEMA)

        assert len(found) == MAX_FINDINGS + 1
        assert found[-1].message == "has more than these 1,000 problems"

    @pytest.mark.parametrize(
        "value", [10**5_000, "\ud800", [[]] * 100_000], ids=["digits", "surrogate", "long"]
    )
    def test_no_value_makes_it_raise(self, value: object) -> None:
        schema = self.SCHEMA | {"additionalProperties": {"maximum": 5, "uniqueItems": True}}

        assert isinstance(report_findings({"n": value}, schema), list)

    def test_a_schema_with_patterns_is_checked_in_its_own_process(self) -> None:
        schema = self.SCHEMA | {
            "properties": self.SCHEMA["properties"] | {"branch": {"pattern": "^[a-z]+$"}}
        }
        report = {"status": "pass", "message": 3, "branch": "A"}

        assert [(each.path, each.message) for each in report_findings(report, schema)] == [
            ("branch", "'A' does not match '^[a-z]+$'"),
            ("message", "3 is not of type 'string'"),
        ]

    def test_a_pattern_that_takes_forever_is_given_up(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reports, "LONGEST_S", 1)
        schema = self.SCHEMA | {"patternProperties": {"^(a+)+$": {}}}

        (found,) = report_findings({"a" * 60 + "b": 1}, schema)

        assert found.message == "output_schema cannot be checked: timed out after 1 s"
