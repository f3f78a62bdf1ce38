"""Plans in any form: which headings are the sprints, what each says, and the own form."""

from __future__ import annotations

import pytest
from extent import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stamps import parse_ms

from queenbee.documents.markdown import parse_blocks
from queenbee.documents.plans.convert import convert_plan
from queenbee.documents.plans.headings import read_unit
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.plan_import import InvalidPlan, import_plan
from queenbee.documents.plans.rows import PlanSetting
from queenbee.errors import InvalidInput

SETTING = PlanSetting("plans/a.md", "/home/you/app", "app", "bd", "planner")
NOW = parse_ms("2026-02-07T10:00:00Z")

SPEC_KIT = """\
# Tasks: Photo albums

## Format: `[ID] [P?] [Story] Description`

## Phase 1: Setup (Shared Infrastructure)

- [ ] T001 Create project structure
- [x] T002 [P] Configure linting

## Phase 2: Foundational

**\u26a0\ufe0f CRITICAL**: no story before this

- [ ] T003 Set up the schema

## Phase 3: User Story 1 - Albums (Priority: P1) \U0001f3af MVP

### Tests for User Story 1

- [ ] T004 [P] [US1] Contract test

### Implementation for User Story 1

- [ ] T005 [US1] Create the model

## Dependencies & Execution Order

- Setup: first
"""

FORMS = {
    "spec-kit": (SPEC_KIT, "## Phase", ["1.1", "2.1", "3.1"]),
    "sprints of one number": ("## Sprint 1: A\n## Sprint 2: B\n", "Sprint", ["1.1", "1.2"]),
    "sprints in unnumbered parts": (
        "# P\n## Back\n### Sprint 1: A\n## Front\n### Sprint 2: B\n", "Sprint", ["1.1", "2.2"],
    ),
    "tasks in phases": (
        "## Phase 1\n### Task 1.1: A\n### Task 1.2: B\n## Phase 2\n### Task 2.1: C\n",
        "### Task", ["1.1", "1.2", "2.1"],
    ),
    "tasks that count anew": (
        "## Phase 1\n### Step 1\n### Step 2\n## Phase 2\n### Step 1\n", "### Step",
        ["1.1", "1.2", "2.1"],
    ),
    "a phase without tasks of its own": (
        "## Phase 1\n### Task 1\n### Task 2\n## Phase 2: B\n- b\n",
        "### Task", ["1.1", "1.2", "2.1"],
    ),
    "milestones": ("## Milestone 1: A\n## Milestone 2: B\n", "## Milestone", ["1.1", "1.2"]),
    "letters": ("## Phase A: A\n## Phase B: B\n", "## Phase", ["1.1", "2.1"]),
    "numbers alone": ("# P\n## 1. A\n## 2. B\n## 3) C\n", "## 1", ["1.1", "1.2", "1.3"]),
    "numbers below numbers": (
        "## 1. A\n### 1.1 B\n### 1.2 C\n## 2. D\n### 2.1 E\n", "### 1", ["1.1", "1.2", "2.1"],
    ),
    "user stories": ("## User Story 1 - A\n## User Story 2 - B\n", "## Story", ["1.1", "1.2"]),
    "another language": ("## Étape 1: A\n## Étape 2: B\n", "## Étape", ["1.1", "1.2"]),
    "boxes": ("# P\n## Why\nso\n## Back\n- [ ] a\n## Front\n- [x] b\n", "## [ ]", ["1.1", "1.2"]),
    "weeks counted in Korean": (
        "## \u2705 2주차 (7/21~7/27) \u2014 A\n## 3주차 \u2014 B\n", "## 주차", ["1.2", "1.3"],
    ),
    "phases counted in Chinese": (
        "## 一、架构\n## 二、开发\n### 阶段一\uff1aA\n### 阶段二\uff08Day 1\uff09\uff1aB\n",
        "### 阶段", ["2.1", "2.2"],
    ),
    "ordinals": ("## 第一阶段\uff1aA\n## 第二阶段\uff1aB\n", "## 阶段", ["1.1", "1.2"]),
    "phases with numbers of their sections": (
        "## 1. Goal\n## 3. Work\n### 3.1 Phase 1: A\n### 3.2 Phase 2: B\n### 3.3 Costs\n",
        "### Phase", ["1.1", "2.1"],
    ),
    "numbers below other headings": (
        "## Phase 1: A\n## Phase 2: B\n## Core\n### 1. A\n### 2. B\n", "## Phase",
        ["1.1", "2.1"],
    ),
    "a phase divided": (
        "## Phase 3a: A\n## Phase 3b: B\n## Phase 4: C\n", "## Phase", ["3a.1", "3b.1", "4.1"],
    ),
    "brackets": ("## [SPRINT 0] A\n## [SPRINT 1] B\n", "Sprint", ["1.0", "1.1"]),
    "sprints in one of several sections": (
        "# Section 1\n- a\n# Section 2\n## Sprint 1: A\n# Section 3\n- b\n", "Sprint", ["2.1"],
    ),
    "phases below numbers": (
        "## 1. Goal\n## 2. Steps\n### Phase 1: A\n### Phase 2: B\n## 3. Risks\n",
        "### Phase", ["1.1", "2.1"],
    ),
    "the same number twice": ("## Sprint 1: A\n## Sprint 1: B\n", "Sprint", ["1.1", "1.2"]),
}  # fmt: skip


class TestUnit:
    @pytest.mark.parametrize("name", FORMS)
    def test_is_found_with_its_numbers_and_can_be_used(self, name: str) -> None:
        text, unit, numbers = FORMS[name]
        plan = parse_plan(text)

        assert str(plan.unit) == unit
        assert [sprint.number for sprint in plan.sprints] == numbers
        assert [each for each in check_plan(plan) if each.severity == "error"] == []

    def test_is_chosen_by_who_reads(self) -> None:
        text = "## Sprint 1\n### Task 1: A\n### Task 2: B\n### Notes\n## Sprint 2\n"
        for said, titles in [
            (None, ["Sprint 1", "Sprint 2"]),
            ("Task", ["A", "B"]),
            ("## Sprint", ["Sprint 1", "Sprint 2"]),
            ("###", ["A", "B", "Notes"]),
        ]:
            plan = parse_plan(text, read_unit(said) if said else None)
            assert [sprint.title for sprint in plan.sprints] == titles

    def test_other_headings_with_numbers_are_said(self) -> None:
        plan = parse_plan("## 1. A\n## 2. B\n### Step 1\n### Step 2\n" + "## 3. C\n" * 3)

        assert (str(plan.unit), plan.other_units) == ("## 1", {"### Step": 2})

    @pytest.mark.parametrize("said", ["", "12", "####### x", "## Sprint 1.2: A"])
    def test_that_names_no_headings_is_refused(self, said: str) -> None:
        with pytest.raises(InvalidInput, match="names no headings"):
            read_unit(said)

    def test_what_is_in_no_sprint_is_said_with_its_open_tasks(self) -> None:
        (why, order) = parse_plan(SPEC_KIT).parts

        assert (why.heading.first, order.heading.text) == (2, "Dependencies & Execution Order")
        text = "### Sprint 1.1: A\n## Later\n### More\n- [ ] b\n- [x] c\n"
        (later,) = parse_plan(text).parts
        assert (later.heading.place, later.boxes) == ("## Later", (1, 1))

    def test_a_document_without_any_is_an_error_with_a_way_on(self) -> None:
        (error,) = check_plan(parse_plan("# Notes\n\n- buy milk\n"))

        assert error.hint is not None and "queen plan convert --unit list" in error.hint


LINES = st.sampled_from(
    [
        *("# Plan", "## Phase 1: A", "## Phase 2", "### Sprint 1.1: A", "### Sprint 1.2b - B"),
        *(
            "## Sprint 1",
            "## Sprint 2: B",
            "#### Sprint 7: X",
            "### Task 1: T",
            "### Task 2",
            "##### x",
        ),
        *("## Notes", "### Notes", "- [ ] a", "  - [x] b", "1. one", "**Branch:** x", "text", ""),
        *("```", "    code", "> q", "---", "| a | b |", "<!-- c -->", "**Depends On:** 1.1", "\ta"),
        *(
            "## \u2705 Phase 3: C",
            "### ~~Sprint 1.3: Gone~~",
            "\u00e9t\u00e9 \U0001f680",
            "### A ###",
        ),
    ]
) | st.text("ab #*-`>|\t", max_size=8)
PLANS = st.lists(LINES, max_size=25).map("\n".join)


class TestPhases:
    def test_a_second_one_of_a_number_without_sprints_is_about_the_first(self) -> None:
        text = "## Phase 1\n### Sprint 1: A\n## Phase 2\n### Sprint 2: B\n## Notes\n"
        plan = parse_plan(f"{text}## Phase 1: check list\n- [ ] a\n")

        assert [sprint.number for sprint in plan.sprints] == ["1.1", "2.2"]
        assert plan.parts[-1].heading.place == "## Phase 1: check list"

    def test_one_with_parts_and_no_sprint_is_a_sprint(self) -> None:
        plan = parse_plan("## Phase 1\n### M1.1: A\n### M1.2: B\n## Phase 2: C\n### Fix it\nso\n")

        assert [sprint.number for sprint in plan.sprints] == ["1.1", "1.2", "2.1"]


class TestLaws:
    @pytest.mark.slow
    @settings(max_examples=examples(400))
    @given(PLANS)
    def test_every_line_of_a_section_is_in_what_its_agent_gets_in_order(self, text: str) -> None:
        lines, plan = text.split("\n"), parse_plan(text)
        try:
            found = import_plan(plan, [], setting=SETTING, now_ms=NOW)
        except InvalidPlan:
            return
        headings = [
            each for each in parse_blocks(text) if each.kind == "heading" and not each.nested
        ]
        for sprint, change in zip(plan.sprints, found.changes, strict=True):
            own = next(each for each in headings if each.first == sprint.line - 1)
            ends = (
                each.first
                for each in headings
                if each.first > own.first and each.level <= own.level
            )
            section = lines[own.first : next(ends, len(lines))]
            wanted = [line for line in section if line.strip()]
            for said in (change.row["metadata"]["dev_prompts"][-1], change.row["description"]):
                assert [line for line in said.split("\n") if line.strip()][-len(wanted) :] == wanted

    @pytest.mark.slow
    @settings(max_examples=examples(400))
    @given(PLANS)
    def test_every_line_is_in_a_sprint_or_a_phase_or_told(self, text: str) -> None:
        plan = parse_plan(text)
        texts = [each.text for each in (*plan.sprints, *plan.skipped, *plan.phases)]
        said = {part.heading.first: part.heading.level for part in plan.parts}
        firsts = [each.line - 1 for each in (*plan.sprints, *plan.skipped, *plan.phases)]
        lines, level = text.split("\n"), 0
        blocks = [each for each in parse_blocks(text) if each.kind == "heading" and not each.nested]
        for n, block in enumerate(blocks):
            ends = (each.first for each in blocks[n + 1 :] if each.level <= block.level)
            end = next(ends, len(lines))
            level = said.get(block.first, level if block.level > level else 0)
            held = any(lines[block.first] in each.split("\n") for each in texts)
            holds = any(block.first < first < end for first in firsts)
            assert level or held or holds, lines[block.first]

    @pytest.mark.slow
    @settings(max_examples=examples(400))
    @example("### Sprint 1.1: A\n# Plan\n### Sprint 1.1: A\n## Phase 1: A")
    @given(PLANS)
    def test_the_own_form_keeps_the_sprints_and_is_a_fixed_point(self, text: str) -> None:
        before = parse_plan(text)
        try:
            converted = convert_plan(text)
        except InvalidInput:
            return
        after = parse_plan(converted)
        facts = [(one.number, one.title, one.depends_on, one.mark) for one in before.sprints]
        assert [(one.number, one.title, one.depends_on, one.mark) for one in after.sprints] == facts
        assert convert_plan(converted) == converted

    def test_the_own_form_is_seldom_refused(self) -> None:
        for text, _, numbers in FORMS.values():
            plan = parse_plan(convert_plan(text))
            assert [sprint.number for sprint in plan.sprints] == numbers
            assert plan.is_own
            assert all(sprint.phase for sprint in plan.sprints)


class TestOwnForm:
    def test_changes_only_headings(self) -> None:
        text = "# P\r\n\r\n## Sprint 1 - A\r\n### Why\r\n* x\r\n\r\n## \u2705 SPRINT 2: B\r\n"

        assert convert_plan(text).replace("\r\n", "\n") == (
            "# P\n\n## Phase 1\n\n### Sprint 1.1: A\n#### Why\n* x\n\n### \u2705 Sprint 1.2: B\n"
        )

    def test_that_would_change_a_sprint_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="without a change of its sprints"):
            convert_plan("## Sprint 1\n## \u2705 Phase 3: C\n## Sprint 1")

    def test_makes_sprints_of_the_items_of_a_list(self) -> None:
        text = "# To do\n## Back\n- [ ] one\n  - deep\n- [x] two\n## Front\n- [ ] three\n"
        plan = parse_plan(convert_plan(text, items=True))

        assert [(one.number, one.title, one.mark) for one in plan.sprints] == [
            ("1.1", "one", None),
            ("1.2", "two", "done"),
            ("2.1", "three", None),
        ]
        assert "- deep" in plan.sprints[0].text
        assert [phase.title for phase in plan.phases] == ["Back", "Front"]
