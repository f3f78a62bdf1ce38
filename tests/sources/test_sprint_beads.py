"""beads-ralph Schema Design"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bead_files import ATTEMPT, FIXTURES, JUDGEMENT, sprint_row
from hives import QuickQueen, exported, write_lines
from stamps import parse_ms

from queenbee.documents.findings import errors_in
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_graph import plan_dependencies
from queenbee.documents.plans.plan_import import import_plan
from queenbee.documents.plans.rows import PlanSetting
from queenbee.documents.plans.source_text import annotate_plan
from queenbee.documents.sprints.executions import (
    record_dev_execution,
    record_qa_execution,
    record_scrum_result,
)
from queenbee.documents.sprints.numbers import branch_name, is_phase, is_sprint, worktree_path
from queenbee.documents.sprints.sprint_bead import check_bead

NOW = parse_ms("2026-02-07T10:00:00Z")
SETTING = PlanSetting(
    plan_file="plans/feature-auth.md",
    repository="/Users/dev/projects/my-app",
    rig="my-app",
    prefix="bd",
    actor="planner",
)
PLAN = """\
## Phase 1: Core
### Sprint 1.1: Setup
- x
### Sprint 1.2a: Backend
- x
### Sprint 1.2b: Frontend
- x
### Sprint 1.3: Integration
- x
"""


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / "sprint" / f"{name}.json").read_text())
    return found


def errors(bead: object, *, strict: bool = False) -> list[str]:
    return [each.path for each in errors_in(check_bead(bead, strict=strict))]


def rows_of(text: str) -> list[dict[str, Any]]:
    return import_plan(parse_plan(text), [], setting=SETTING, now_ms=NOW).rows


def needs(text: str) -> dict[str, list[str]]:
    return {key: list(value) for key, value in plan_dependencies(parse_plan(text)).items()}


def plan_of(*sprints: str) -> str:
    return "".join(f"### Sprint {each}: T\n- x\n" for each in sprints)


@pytest.fixture
def tracker(beads: Path) -> Path:
    """A tracker with one sprint bead."""
    write_lines(beads / "issues.jsonl", sprint_row())
    return beads / "issues.jsonl"


class TestImplementation:
    """Implementation"""

    @pytest.mark.differs(
        "pydantic models that drop unknown keys",
        "a schema; unknown keys survive every change",
        "the schema is meant to grow",
    )
    def test_the_schema_is_exported_and_unknown_keys_survive(
        self, quick: QuickQueen, tracker: Path
    ) -> None:
        assert "SprintMetadata" in quick("bead", "schema", "sprint", "--json").json["$defs"]
        quick("bead", "edit", "bd-1", "--set", "metadata.docker_image=x")
        quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT))
        assert exported(tracker)[0]["metadata"]["docker_image"] == "x"


class TestCoreBeadFields:
    """Core Bead Fields (Standard)"""

    def test_a_bead_of_a_plan_has_them(self) -> None:
        row = rows_of(PLAN)[0]
        for name in ("id", "title", "description", "status", "priority", "issue_type", "labels"):
            assert name in row
        assert (row["assignee"], row["labels"]) == (
            "beads-ralph-scrum-master", ["phase-01", "sprint-1-1"],
        )  # fmt: skip

    def test_comments_are_the_history_of_dev_and_qa(self, quick: QuickQueen, tracker: Path) -> None:
        quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT))
        quick("bead", "record", "qa", "bd-1", json.dumps(JUDGEMENT))
        texts = [each["text"] for each in exported(tracker)[0]["comments"]]
        assert texts == ["attempt 1: completed", "attempt 1: pass: all pass"]

    def test_external_ref_is_the_pull_request(self, quick: QuickQueen, tracker: Path) -> None:
        url = "https://github.com/o/r/pull/7"
        quick("bead", "record", "pr", "bd-1", url)
        assert exported(tracker)[0]["external_ref"] == url


class TestWorkIdentification:
    """Work Identification"""

    @pytest.mark.parametrize(
        "name", ["rig", "worktree_path", "branch", "source_branch", "phase", "sprint"]
    )
    def test_each_is_required(self, name: str) -> None:
        row = sprint_row()
        del row["metadata"][name]
        assert f"metadata.{name}" in errors(row)

    def test_beads_are_grouped_by_team(self, quick: QuickQueen, beads: Path) -> None:
        write_lines(
            beads / "issues.jsonl",
            sprint_row("bd-1", team_name="ui"),
            sprint_row("bd-2", team_name="ui", sprint="1.3"),
            sprint_row("bd-3", team_name="api"),
        )
        teams = {
            each["team"]: [bead["id"] for bead in each["beads"]]
            for each in quick("bead", "ready", "--json").json
        }
        assert teams == {"ui": ["bd-1", "bd-2"], "api": ["bd-3"]}

    @pytest.mark.differs(
        "one session works on all beads of a team",
        "`queen start` does; `queen next` offers every ready bead",
        "who starts agents by hand decides",
    )
    def test_next_offers_every_ready_bead(self, quick: QuickQueen, beads: Path) -> None:
        rows = (sprint_row(f"bd-{n}", team_name="ui", dependencies=[]) for n in (1, 2))
        write_lines(beads / "issues.jsonl", *rows)
        taken = [quick("next", "--json", as_=droid).json for droid in ("ui", "tester")]
        assert [each["issue"]["id"] for each in taken] == ["bd-1", "bd-2"]


class TestPlanTracking:
    """Plan Tracking (Bi-directional)"""

    def test_a_bead_names_its_plan_section_and_sprint(self) -> None:
        metadata = rows_of(PLAN)[1]["metadata"]
        assert metadata["plan_file"] == "plans/feature-auth.md"
        assert metadata["plan_section"] == "## Phase 1 > ### Sprint 1.2a: Backend"
        assert metadata["plan_sprint_id"] == "1.2a"


class TestPhaseSprintNumbering:
    """Phase/Sprint Numbering"""

    @pytest.mark.parametrize(
        ("sprints", "wanted"),
        [
            (("1.1", "1.2"), {"1.2": ["1.1"]}),
            (("1.1", "1.2a", "1.2b"), {"1.2a": ["1.1"], "1.2b": ["1.1"]}),
            (("1.1", "1.2a", "1.2b", "1.3"), {"1.3": ["1.2a", "1.2b"]}),
            (("2.1", "2.2", "3a.1", "3b.1"), {"3a.1": ["2.2"], "3b.1": ["2.2"]}),
            (("3a.1", "3a.2", "3b.1", "4.1"), {"4.1": ["3a.2", "3b.1"]}),
        ],
    )
    def test_each_row_of_its_table(
        self, sprints: tuple[str, ...], wanted: dict[str, list[str]]
    ) -> None:
        found = needs(plan_of(*sprints))
        assert {key: found[key] for key in wanted} == wanted

    def test_its_example(self) -> None:
        assert needs(PLAN) == {
            "1.1": [], "1.2a": ["1.1"], "1.2b": ["1.1"], "1.3": ["1.2a", "1.2b"],
        }  # fmt: skip

    @pytest.mark.differs(
        "letters after letters (`3ab`) are not explained",
        "the track continues `3a`",
        "to join tracks, start a new phase",
    )
    def test_letters_after_letters(self) -> None:
        assert needs(plan_of("3a.1", "3b.1", "3ab.1"))["3ab.1"] == ["3a.1"]


class TestDevAgentConfiguration:
    """Dev Agent Configuration"""

    def test_the_plan_configures_it(self) -> None:
        fields = "**Dev Agents:** `backend-dev` (opus)\n**Agent Type:** docs\n\n- x"
        metadata = rows_of(PLAN.replace("- x", fields, 1))[0]["metadata"]
        assert metadata["dev_agent_path"] == ".claude/agents/backend-dev"
        assert (metadata["dev_model"], metadata["agent_type"]) == ("opus", "docs")

    @pytest.mark.parametrize(
        ("path", "valid"), [("claude", True), (".claude/agents/dev", True), ("gone", False)]
    )
    def test_its_path_must_exist(self, path: str, valid: bool) -> None:
        found = check_bead(sprint_row(dev_agent_path=path), agents={"dev"})
        assert (errors_in(found) == []) is valid


class TestQaAgentConfiguration:
    """QA Agent Configuration"""

    @pytest.mark.parametrize("name", ["agent_path", "model", "prompt", "output_schema"])
    def test_each_is_required(self, name: str) -> None:
        row = sprint_row()
        del row["metadata"]["qa_agents"][0][name]
        assert f"metadata.qa_agents[0].{name}" in errors(row)

    @pytest.mark.parametrize(
        ("status", "step"), [("pass", "finish"), ("fail", "develop"), ("stop", "give up")]
    )
    def test_each_status_leads_to_its_step(
        self, quick: QuickQueen, tracker: Path, status: str, step: str
    ) -> None:
        quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT))
        done = quick("bead", "record", "qa", "bd-1", json.dumps({**JUDGEMENT, "status": status}))
        assert f"next step: {step}" in done.out


class TestRetryLogic:
    """Retry Logic"""

    @pytest.mark.differs(
        "the schema does not limit attempts",
        "they end at `max_retry_attempts`",
        "that is what the field is for",
    )
    def test_attempts_are_counted_and_end(self, quick: QuickQueen, tracker: Path) -> None:
        quick("bead", "edit", "bd-1", "--set", "metadata.max_retry_attempts=2")
        for number in (1, 2, 3):
            entry = json.dumps({**ATTEMPT, "session_id": f"s-{number}"})
            assert (quick("bead", "record", "dev", "bd-1", entry).code == 0) is (number < 3)
        assert exported(tracker)[0]["metadata"]["attempt_count"] == 2

    def test_the_defaults_are_three_and_none(self) -> None:
        metadata = rows_of(PLAN)[0]["metadata"]
        assert (metadata["max_retry_attempts"], metadata["attempt_count"]) == (3, 0)


class TestAgentExecutionTracking:
    """Agent Execution Tracking"""

    def test_the_first_session_is_kept(self, quick: QuickQueen, tracker: Path) -> None:
        quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT))
        assert exported(tracker)[0]["metadata"]["dev_agent_session_id"] == "s-1"

    @pytest.mark.differs(
        "`scrum_master_session_id` is set by the scrum master",
        "by the `session_id` of its result, or `queen bead edit`",
        "one way to write a row",
    )
    def test_the_scrum_masters_session_is_kept(self, quick: QuickQueen, tracker: Path) -> None:
        quick("bead", "edit", "bd-1", "--set", "metadata.scrum_master_session_id=sm-1")
        assert exported(tracker)[0]["metadata"]["scrum_master_session_id"] == "sm-1"
        result = {**example("completed-bead")["metadata"]["scrum_result"], "bead_id": "bd-1"}
        entry = json.dumps({**result, "session_id": "sm-2"})
        quick("bead", "record", "result", "bd-1", entry)
        assert exported(tracker)[0]["metadata"]["scrum_master_session_id"] == "sm-2"


class TestOutputTracking:
    """Output Tracking"""

    @pytest.mark.differs(
        "`qa_results[].message` is in the schema, not in its example", "optional", ""
    )
    def test_a_result_is_recorded(self, quick: QuickQueen, tracker: Path) -> None:
        result = {**example("completed-bead")["metadata"]["scrum_result"], "bead_id": "bd-1"}
        assert "message" not in result["qa_results"][0]
        assert quick("bead", "record", "result", "bd-1", json.dumps(result)).code == 0

    def test_a_fatal_one_stops_the_loop(self, quick: QuickQueen, tracker: Path) -> None:
        result = {
            "bead_id": "bd-1", "success": False, "bead_updated": True, "attempt_count": 0,
            "fatal": True,
        }  # fmt: skip
        quick("bead", "record", "result", "bd-1", json.dumps(result))
        assert quick("bead", "ready", "--json").json == []

    def test_a_fatal_one_counts_more_than_passes(self, quick: QuickQueen, tracker: Path) -> None:
        quick("bead", "record", "dev", "bd-1", json.dumps(ATTEMPT))
        quick("bead", "record", "qa", "bd-1", json.dumps(JUDGEMENT))
        result = {
            "bead_id": "bd-1", "success": False, "bead_updated": True, "attempt_count": 1,
            "fatal": True,
        }  # fmt: skip
        done = quick("bead", "record", "result", "bd-1", json.dumps(result))
        assert "next step: give up" in done.out


class TestCompleteBeadExampleWorkBead:
    """Complete Bead Example (Work Bead)"""

    @pytest.mark.differs(
        "`team_name` and `agent_type` are required",
        "with `--strict`; else a warning",
        "the document's own examples lack them",
    )
    def test_it_is_valid(self) -> None:
        assert errors(example("work-bead")) == []
        assert "metadata.team_name" in errors(example("work-bead"), strict=True)


class TestCompleteBeadExampleMergeBead:
    """Complete Bead Example (Merge Bead)"""

    def test_it_is_valid_and_names_its_branches(self) -> None:
        bead = example("merge-bead")
        assert errors(bead) == []
        del bead["metadata"]["branches_to_merge"]
        assert errors(bead) == ["metadata.branches_to_merge"]

    def test_a_sprint_after_parallel_ones_becomes_one(self) -> None:
        row = rows_of(PLAN)[3]
        assert row["issue_type"] == "beads-ralph-merge"
        assert row["metadata"]["branches_to_merge"] == [
            each["metadata"]["branch"] for each in rows_of(PLAN)[1:3]
        ]


class TestAnnotationFormat:
    """Annotation Format"""

    def test_the_line_below_the_heading_names_the_bead(self) -> None:
        section = (FIXTURES / "plans" / "original-section.md").read_text()
        wanted = (FIXTURES / "plans" / "annotated-section.md").read_text()
        assert annotate_plan(section, {"1.2": "bd-a1b2c3"}) == wanted


class TestAnnotationAlgorithm:
    """Annotation Algorithm"""

    @pytest.mark.differs(
        "an annotation is added each time",
        "there is exactly one",
        "the plan is annotated after every import",
    )
    def test_again_changes_nothing(self) -> None:
        text = annotate_plan(PLAN, {"1.1": "bd-a1"})
        assert annotate_plan(text, {"1.1": "bd-a1"}) == text

    @pytest.mark.differs(
        "headings are found line by line",
        "by a Markdown parser",
        "an example in a code fence is not a sprint",
    )
    def test_a_code_fence_has_no_sprints(self) -> None:
        text = "```\n### Sprint 1.1: No\n```\n" + PLAN
        assert parse_plan(text).sprints[0].line == 5

    @pytest.mark.differs(
        "a malformed heading is skipped", "it is read, or an error", "a sprint would get lost"
    )
    def test_a_malformed_heading_is_read_or_an_error(self) -> None:
        assert parse_plan(PLAN + "### Sprint 1.4 - Read\n").sprints[-1].number == "1.4"
        found = parse_plan(PLAN + "###Sprint 1.4: Lost\n")
        assert [each.line for each in errors_in(found.findings)] == [10]


class TestUseCasesForBiDirectionalTracking:
    """Use Cases for Bi-directional Tracking"""

    @pytest.mark.differs("`bd show`", "`queen show`", "one command for all")
    def test_from_plan_to_bead_and_back(self, quick: QuickQueen, repo: Path, beads: Path) -> None:
        quick("init")
        (repo / "plan.md").write_text(PLAN)
        quick("plan", "import", "plan.md", as_="planner")
        quick("plan", "annotate", "plan.md", as_="planner")
        below = (repo / "plan.md").read_text().partition("### Sprint 1.1: Setup\n")[2]
        bead = re.match(r"<!-- beads-ralph: (\S+) -->", below)
        assert bead is not None
        metadata = quick("show", bead[1], "--json").json["metadata"]
        assert (metadata["plan_file"], metadata["plan_sprint_id"]) == ("plan.md", "1.1")
        assert metadata["dev_agent_session_id"] is None


class TestWorktreePathNormalization:
    """Worktree Path Normalization"""

    @pytest.mark.parametrize(
        "branch",
        ["main/1-1-project-setup", "main/3a-2b-api-validation", "develop/2-1a-auth-service"],
    )
    def test_its_examples(self, branch: str) -> None:
        found = worktree_path("/Users/dev/projects/my-app", branch)
        assert found == f"/Users/dev/projects/my-app-worktrees/{branch}"


class TestBranchNamingConvention:
    """Branch Naming Convention"""

    @pytest.mark.parametrize(
        ("sprint", "title", "branch"),
        [
            ("1.1", "Project Setup", "main/1-1-project-setup"),
            ("3a.2b", "API Validation", "main/3a-2b-api-validation"),
        ],
    )
    def test_its_examples(self, sprint: str, title: str, branch: str) -> None:
        assert branch_name("main", sprint, title) == branch

    @pytest.mark.differs(
        "the branch begins with the source branch: `main/1-1-setup`",
        "`sprint/1-1-setup`, or `--branch-prefix`",
        "git cannot have `main/1-1-setup` beside a branch `main`",
    )
    def test_the_default_branch(self) -> None:
        assert rows_of(PLAN)[0]["metadata"]["branch"] == "sprint/1-1-setup"


class TestCompletedBeadExample:
    """Completed Bead Example (With Execution Tracking)"""

    def test_its_history_can_be_recorded_step_by_step(self) -> None:
        wanted = example("completed-bead")["metadata"]
        row = example("work-bead")
        for execution in wanted["dev_agent_executions"]:
            row = record_dev_execution(row, execution, now_ms=NOW)
            for judgement in wanted["qa_agent_executions"]:
                if judgement["attempt"] == execution["attempt"]:
                    row = record_qa_execution(row, judgement, now_ms=NOW)
        row = record_scrum_result(row, wanted["scrum_result"], now_ms=NOW)
        same = {key: row["metadata"][key] for key in wanted if key.endswith("executions")}
        assert same == {key: wanted[key] for key in same}
        assert row["metadata"]["pr_number"] == 42 and errors(row) == []


class TestRequiredFieldsValidation:
    """Required Fields Validation"""

    @pytest.mark.parametrize("name", ["title", "status", "issue_type", "assignee"])
    def test_each_core_field_is_required(self, name: str) -> None:
        row = sprint_row()
        del row[name]
        assert name in errors(row)

    @pytest.mark.differs(
        "no list of required fields contains `id`",
        "a bead without one is a warning",
        "Beads cannot use such a row",
    )
    def test_an_id_is_missed(self) -> None:
        row = sprint_row()
        del row["id"]
        assert (errors(row), [each.path for each in check_bead(row)]) == ([], ["id"])

    @pytest.mark.differs(
        "validation stops at the first error", "it reports all errors", "one round instead of ten"
    )
    def test_all_errors_are_reported(self) -> None:
        assert len(errors(sprint_row(phase="x", dev_model="gpt", dev_prompts=[]))) >= 3


class TestPatternValidation:
    """Pattern Validation"""

    def test_phases(self) -> None:
        assert all(map(is_phase, ("1", "2", "3a", "3b", "12", "3ab")))
        assert not any(map(is_phase, ("1.2", "a1", "1-2", "1A")))

    @pytest.mark.differs(
        '`pattern.match` accepts `"1\\n"`', "the whole value must match", "it would name a folder"
    )
    def test_sprints(self) -> None:
        assert all(map(is_sprint, ("1.1", "3a.2", "3b.2a", "3b.2b", "12.5c")))
        assert not any(map(is_sprint, ("1", "1-2", "1.2.3", "a.1", "1.1\n")))

    @pytest.mark.parametrize("branch", ["main/1.2", "feat/auth api"])
    def test_branches(self, branch: str) -> None:
        assert "metadata.branch" in errors(sprint_row(branch=branch))
        assert errors(sprint_row(branch="develop/3a-2b-api")) == []


class TestPythonValidationScript:
    """Python Validation Script"""

    @pytest.mark.differs(
        "`scripts/validate-bead-schema.py`", "`queen bead validate`", "one command for all"
    )
    def test_the_command_validates_a_file(self, quick: QuickQueen, tmp_path: Path) -> None:
        path = tmp_path / "bead.json"
        path.write_text(json.dumps(sprint_row()))
        assert quick("bead", "validate", str(path)).code == 0
        path.write_text(json.dumps(sprint_row(phase="a1")))
        assert quick("bead", "validate", str(path)).code == 1


class TestSchemaEvolution:
    """Schema Evolution"""

    @pytest.mark.differs(
        "ids such as `bd-1-1-setup`", "`bd-a1b2c3`", "they stay when a title changes"
    )
    def test_a_new_field_survives_an_import(self) -> None:
        rows = rows_of(PLAN)
        rows[0]["metadata"]["timeout_minutes"] = 30
        text = PLAN.replace("1.1: Setup", "1.1: Set up")
        (changed,) = import_plan(parse_plan(text), rows, setting=SETTING, now_ms=NOW + 1).rows
        assert (changed["id"], changed["metadata"]["timeout_minutes"]) == (rows[0]["id"], 30)
