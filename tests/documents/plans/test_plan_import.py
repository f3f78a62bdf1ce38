"""A plan becomes beads: new ones, changed ones, and nothing the second time."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.core.beads import read_rows
from queenbee.core.timestamps import instant_ms, parse_ms
from queenbee.documents import reconcile
from queenbee.documents.findings import errors_in
from queenbee.documents.issue_rows import (
    RowImport,
    blocked_by,
    render_differences,
)
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_graph import plan_dependencies
from queenbee.documents.plans.plan_import import InvalidPlan, import_plan
from queenbee.documents.plans.rows import PlanSetting
from queenbee.documents.plans.source_text import annotate_plan
from queenbee.documents.reconcile import fresh_id, hashed_id, merge_dependencies
from queenbee.documents.sprints.executions import record_dev_execution
from queenbee.documents.sprints.sprint_bead import check_bead
from queenbee.store.codec import encode

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOW = parse_ms("2026-02-07T10:00:00Z")
LATER = NOW + 60_000
SETTING = PlanSetting(
    plan_file="plans/feature-auth.md",
    repository="/Users/dev/projects/my-app",
    rig="my-app",
    prefix="bd",
    actor="planner",
)
APP = (FIXTURES / "plans" / "app.md").read_text()
MAILER = {"id": "bd-mailer", "title": "Mail server", "status": "open", "issue_type": "task"}

SMALL = """\
## Phase 1: Core
### Sprint 1.1: Setup
- do it
### Sprint 1.2a: Backend
- do it
### Sprint 1.2b: Frontend
- do it
### Sprint 1.3: Integration
- do it
"""


def imported(
    text: str = SMALL, rows: list[dict[str, Any]] | None = None, **options: Any
) -> RowImport:
    options = {"setting": SETTING, "now_ms": NOW} | options
    return import_plan(parse_plan(text), rows or [], **options)


def rows_of(found: RowImport) -> list[dict[str, Any]]:
    """Returns the rows as a reader of the file would find them."""
    return [json.loads(encode(row)) for row in found.rows]


def by_sprint(found: RowImport) -> dict[str, dict[str, Any]]:
    return {change.key: change.row for change in found.changes}


def kinds(found: RowImport) -> list[str]:
    return [change.kind for change in found.changes]


class TestFirstImport:
    def test_beads_are_as_old_as_their_place_in_the_plan(self) -> None:
        rows = imported().rows

        assert [row["metadata"]["sprint"] for row in rows] == ["1.1", "1.2a", "1.2b", "1.3"]
        assert sorted(rows, key=lambda row: str(row["created_at"])) == rows
        assert len({row["created_at"] for row in rows}) == len(rows)

    def test_a_bead_has_its_section_as_it_stands_behind_what_its_phase_says(self) -> None:
        phase, section = "## Phase 1: P\n**Goal:** all", "### Sprint 1.1: A\n1. [x] one\n   - two"
        text = f"# T\n{phase}\n\n{section}\n\n### Notes\nnever\n"
        row = by_sprint(imported(text))["1.1"]

        assert row["metadata"]["dev_prompts"] == [section]
        assert row["description"] == f"{phase}\n\n### Notes\nnever\n\n{section}"

    def test_prompts_that_a_plan_names_are_the_prompts(self) -> None:
        section = "### Sprint 1.1: A\n**Prompts:**\n- Build it\n- Test it"
        row = by_sprint(imported(section))["1.1"]

        assert row["metadata"]["dev_prompts"] == ["Build it", "Test it"]
        assert row["description"] == section

    def test_an_annotation_changes_no_bead(self) -> None:
        text = "## Phase 1\n### Sprint 1.1: A\n- a\n"
        rows = imported(text).rows
        assert imported(annotate_plan(text, {"1.1": rows[0]["id"]}), rows).rows == []

    def test_the_findings_of_the_check_come_with_it(self) -> None:
        found = imported("### Sprint 1.1: A\n- a\n- **Sprint 1.2: B**\n")

        assert [each.line for each in found.findings if "a part of" in each.message] == [3]

    def test_a_sprint_may_depend_on_a_bead_of_another_plan(self) -> None:
        found = imported(APP, [MAILER])

        assert blocked_by(by_sprint(found)["3b.1"]) == [
            found.ids["1.3"],
            found.ids["1.2a"],
            "bd-mailer",
        ]


class TestSecondImport:
    def test_survives_that_beads_leaves_out_empty_fields(self) -> None:
        rows = [
            {key: value for key, value in row.items() if value not in ([], "", None)}
            for row in rows_of(imported())
        ]

        assert imported(rows=rows, now_ms=LATER).rows == []

    def test_an_update_wins_although_the_clock_went_back(self) -> None:
        rows = rows_of(imported())
        again = imported(SMALL.replace("Setup", "Base"), rows, now_ms=NOW - 3_600_000)

        issues = read_rows([*rows_of(again), *rows])

        assert issues[again.ids["1.1"]].title == "Base"

    def test_a_bead_with_finer_stamps_is_still_passed(self) -> None:
        rows = rows_of(imported())
        rows[0]["updated_at"] = "2026-02-07T10:00:00.000999999Z"

        (row, *_) = rows_of(imported(SMALL.replace("Setup", "Base"), rows))

        assert instant_ms(row["updated_at"]) == NOW + 1

    def test_a_sprint_that_went_is_an_orphan_and_nothing_waits_for_it(self) -> None:
        first = imported()
        less = SMALL.replace("### Sprint 1.2b: Frontend\n- do it\n", "")

        again = imported(less, rows_of(first), now_ms=LATER)

        assert again.orphans == (first.ids["1.2b"],)
        assert blocked_by(by_sprint(again)["1.3"]) == [again.ids["1.2a"]]

    def test_what_happened_since_is_kept(self) -> None:
        first = rows_of(imported())
        execution = json.loads((FIXTURES / "sprint" / "completed-bead.json").read_text())[
            "metadata"
        ]
        worked = record_dev_execution(
            first[0], execution["dev_agent_executions"][0], now_ms=NOW + 1
        )
        worked |= {"status": "in_progress", "comments": [{"text": "hi"}], "wisp": True}
        worked["labels"].append("urgent")
        worked["metadata"] |= {"docker_image": "x", "max_retry_attempts": 5}

        text = annotate_plan(SMALL, {"1.1": first[0]["id"]}).replace("Setup", "Base")
        again = imported(text, [worked, *first[1:]], now_ms=LATER)
        row = by_sprint(again)["1.1"]

        assert row["status"] == "in_progress"
        assert row["comments"] == [{"text": "hi"}]
        assert row["wisp"] is True
        assert "urgent" in row["labels"]
        assert row["metadata"]["docker_image"] == "x"
        assert row["metadata"]["max_retry_attempts"] == 5
        assert row["metadata"]["attempt_count"] == 1
        assert row["metadata"]["dev_agent_executions"] == worked["metadata"]["dev_agent_executions"]

    def test_a_branch_that_the_plan_does_not_state_stays_when_the_title_changes(self) -> None:
        rows = rows_of(imported())

        again = imported(SMALL.replace("Backend", "Server"), rows, now_ms=LATER)

        assert by_sprint(again)["1.2a"]["metadata"]["branch"] == "sprint/1-2a-backend"
        assert "sprint/1-2a-backend" in by_sprint(again)["1.3"]["metadata"]["branches_to_merge"]

    def test_a_branch_that_the_plan_states_counts_and_reaches_the_merge(self) -> None:
        rows = rows_of(imported())
        stated = SMALL.replace("Backend\n", "Backend\n**Branch:** `api`\n\n")

        again = imported(stated, rows, now_ms=LATER)

        assert by_sprint(again)["1.2a"]["metadata"]["branch"] == "api"
        assert "api" in by_sprint(again)["1.3"]["metadata"]["branches_to_merge"]

    def test_what_was_chosen_in_the_bead_stays_where_the_plan_is_silent(self) -> None:
        rows = rows_of(imported())
        rows[0]["metadata"] |= {"team_name": "core", "dev_agent_path": ".claude/agents/x"}
        rows[0]["metadata"]["qa_agents"][0]["output_schema"]["properties"]["seconds"] = {}

        assert imported(rows=rows, now_ms=LATER).rows == []

    def test_an_agents_output_schema_survives_a_new_prompt(self) -> None:
        text = SMALL.replace(
            "Setup\n", "Setup\n**QA Agents:**\n- `qa` (haiku) - once\n\n**Tasks:**\n"
        )
        rows = rows_of(imported(text))
        rows[0]["metadata"]["qa_agents"][0]["output_schema"]["properties"]["seconds"] = {}

        again = imported(text.replace("once", "twice"), rows, now_ms=LATER)
        (agent,) = by_sprint(again)["1.1"]["metadata"]["qa_agents"]

        assert agent["prompt"] == "twice"
        assert "seconds" in agent["output_schema"]["properties"]

    def test_a_sprint_that_stops_joining_is_no_longer_a_merge_bead(self) -> None:
        rows = rows_of(imported())
        alone = SMALL.replace("### Sprint 1.2b: Frontend\n- do it\n", "")

        row = by_sprint(imported(alone, rows, now_ms=LATER))["1.3"]

        assert row["issue_type"] == "beads-ralph-work"
        assert "merge" not in row["labels"]
        assert row["metadata"]["branches_to_merge"] is None
        assert check_bead(row, strict=True) == []

    def test_dependencies_of_somebody_elses_stay(self) -> None:
        rows = rows_of(imported())
        others = [
            {"issue_id": rows[0]["id"], "depends_on_id": "bd-epic", "type": "parent-child"},
            {"issue_id": rows[0]["id"], "depends_on_id": "bd-out", "type": "blocks"},
            "bd-plain",
        ]
        rows[0]["dependencies"] = others

        assert imported(rows=rows, now_ms=LATER).rows == []

    def test_dependencies_written_as_ids_count(self) -> None:
        rows = rows_of(imported())
        for row in rows:
            row["dependencies"] = blocked_by(row)

        assert imported(rows=rows, now_ms=LATER).rows == []

    def test_metadata_that_the_plan_states_is_checked_and_kept(self) -> None:
        fields = (
            "**Agent Type:** docs\n**Max Retry Attempts:** 5\n**Dev Model:** `opus`\n\n- do it\n"
        )
        stated = SMALL.replace("### Sprint 1.1: Setup\n", f"### Sprint 1.1: Setup\n{fields}")
        rows = imported(stated).rows
        metadata = rows[0]["metadata"]
        assert (metadata["agent_type"], metadata["max_retry_attempts"]) == ("docs", 5)
        assert metadata["dev_model"] == "opus"
        assert imported(SMALL, rows).rows[0]["metadata"]["max_retry_attempts"] == 5
        wrong = stated.replace("docs", "cook").replace("5\n", "0\n")
        found = errors_in(parse_plan(wrong).findings)
        assert [each.path for each in found] == [
            "sprints[1.1].agent_type", "sprints[1.1].max_retry_attempts",
        ]  # fmt: skip

    def test_a_second_plan_with_the_same_numbers_has_its_own_beads(self) -> None:
        first = imported()
        other = replace(SETTING, plan_file="plans/other.md")

        second = imported(rows=rows_of(first), setting=other)

        assert not set(first.ids.values()) & set(second.ids.values())
        assert set(kinds(second)) == {"add"}

    def test_a_deleted_bead_is_made_anew_under_another_id(self) -> None:
        first = imported()
        rows = rows_of(first)
        rows[0]["status"] = "tombstone"

        again = imported(rows=rows, now_ms=LATER)

        assert kinds(again)[0] == "add"
        assert again.ids["1.1"] != first.ids["1.1"]

    def test_of_two_beads_of_one_sprint_the_older_is_kept(self) -> None:
        rows = rows_of(imported())
        twin = copy.deepcopy(rows[0]) | {"id": "bd-twin", "created_at": "2026-02-08T10:00:00Z"}

        assert imported(rows=[twin, *rows], now_ms=LATER).ids["1.1"] == rows[0]["id"]

    def test_old_revisions_of_a_row_do_not_count(self) -> None:
        rows = rows_of(imported())
        newer = rows_of(imported(SMALL.replace("Setup", "Base"), rows, now_ms=LATER))

        again = imported(SMALL.replace("Setup", "Base"), [*newer, *rows], now_ms=LATER + 1)

        assert again.rows == []

    @pytest.mark.parametrize(
        "row",
        [{}, {"id": 3}, {"id": "bd-x", "metadata": "text"}, {"id": "bd-y", "dependencies": 3}],
    )
    def test_rows_of_any_shape_are_passed_over(self, row: dict[str, Any]) -> None:
        assert kinds(imported(rows=[row])) == ["add"] * 4


sprint = st.builds(
    lambda number, title, body: (
        f"### Sprint {number}: {title}\n{body.format(number.replace('.', '-'))}\n"
    ),
    st.from_regex(r"[12][ab]?\.[1-3][ab]?", fullmatch=True),
    st.sampled_from(["Setup", "Auth API", "Élan", "x"]),
    st.sampled_from(
        ["", "- task", "**Branch:** b/{}", "**Priority:** 0", "**Dev Agents:** `a` (opus)"]
    ),
)
sections = st.lists(sprint, min_size=1, max_size=8, unique_by=lambda text: text.split(":")[0])


class TestLaws:
    @pytest.mark.slow
    @settings(max_examples=examples(150))
    @given(sections)
    def test_the_same_plan_again_changes_nothing(self, parts: list[str]) -> None:
        first = rows_of(imported("".join(parts)))

        assert imported("".join(parts), first, now_ms=LATER).rows == []

    @pytest.mark.slow
    @settings(max_examples=examples(150))
    @given(sections, sections)
    def test_from_any_plan_to_any_other_and_again_nothing(
        self, before: list[str], after: list[str]
    ) -> None:
        rows = rows_of(imported("".join(before)))

        changed = imported("".join(after), rows, now_ms=LATER)

        rows += rows_of(changed)
        assert imported("".join(after), rows, now_ms=LATER + 1).rows == []
        assert len(set(changed.ids.values())) == len(after)
        for sprint, needs in plan_dependencies(parse_plan("".join(after))).items():
            waits_for = blocked_by(by_sprint(changed)[sprint])
            assert set(waits_for) == {changed.ids[need] for need in needs}

    @pytest.mark.slow
    @settings(max_examples=examples(100))
    @given(sections)
    def test_every_bead_is_valid(self, parts: list[str]) -> None:
        for row in rows_of(imported("".join(parts))):
            assert check_bead(row, strict=True) == []

    @pytest.mark.slow
    @settings(max_examples=examples(50))
    @given(sections)
    def test_two_clones_make_the_same_beads(self, parts: list[str]) -> None:
        here, there = imported("".join(parts)), imported("".join(parts), now_ms=LATER)

        assert here.ids == there.ids


class TestRefusals:
    def test_a_bead_that_does_not_exist_cannot_be_waited_for(self) -> None:
        with pytest.raises(InvalidPlan, match="depends on bd-mailer, which does not exist"):
            imported(APP)

    def test_a_cycle_through_other_issues_is_refused(self) -> None:
        first = imported()
        text = SMALL.replace("Setup\n", "Setup\n**Depends on:** bd-mailer\n\n")
        mailer = MAILER | {"dependencies": [first.ids["1.3"]]}

        with pytest.raises(InvalidPlan, match="a cycle: bd-"):
            imported(text, [mailer, *rows_of(first)], now_ms=LATER)

    def test_a_cycle_among_other_issues_is_not_the_plans(self) -> None:
        rows = [{"id": "x-1", "dependencies": ["x-2"]}, {"id": "x-2", "dependencies": ["x-1"]}]

        assert kinds(imported(rows=rows)) == ["add"] * 4


class TestIds:
    def test_an_id_that_is_taken_is_passed_over(self) -> None:
        taken = {f"bd-{hashed_id('s', attempt)}" for attempt in range(3)}

        assert fresh_id("bd", "s", taken, hashed_id) == f"bd-{hashed_id('s', 3)}"

    def test_sprints_of_one_plan_do_not_collide(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reconcile, "hashed_id", lambda _seed, attempt: str(attempt))
        found = imported()

        assert list(found.ids.values()) == ["bd-0", "bd-1", "bd-2", "bd-3"]


class TestDependencies:
    def test_only_blocks_orders_work(self) -> None:
        row = {
            "dependencies": [
                "bd-a",
                {"depends_on_id": "bd-b", "type": "blocks"},
                {"depends_on_id": "bd-c", "type": "related"},
                {"depends_on_id": "bd-d", "type": "parent-child"},
                {"id": "bd-e", "dependency_type": "blocks"},
                {"depends_on_id": 3},
                None,
            ]
        }

        assert blocked_by(row) == ["bd-a", "bd-b", "bd-e"]

    def test_an_entry_that_is_already_right_keeps_its_time(self) -> None:
        entry = {"issue_id": "a", "depends_on_id": "b", "type": "blocks", "created_at": "then"}

        merged = merge_dependencies(
            {"id": "a", "dependencies": [entry]},
            [("b", "blocks")],
            {"a", "b"},
            now="now",
            actor="me",
        )

        assert merged == [entry]


class TestDifference:
    def test_is_shown_line_by_line(self) -> None:
        first = imported()
        changed = SMALL.replace("Setup", "Base").replace("### Sprint 1.2b: Frontend\n- do it\n", "")
        changed += "### Sprint 1.4: Ship\n- do it\n"

        lines = render_differences(imported(changed, rows_of(first), now_ms=LATER)).splitlines()

        assert lines[0] == f"~ {first.ids['1.1']}  1.1  Base"
        assert '    title: "Setup" → "Base"' in lines
        assert f"= {first.ids['1.2a']}  1.2a  Backend" in lines
        assert any(line.startswith("+ bd-") and line.endswith("  1.4  Ship") for line in lines)
        assert lines[-1].startswith(f"? {first.ids['1.2b']}  is no longer")

    def test_escape_sequences_do_not_reach_the_terminal(self) -> None:
        assert "\x1b" not in render_differences(imported("### Sprint 1.1: a\x1b[2Jb\n- x\n"))
