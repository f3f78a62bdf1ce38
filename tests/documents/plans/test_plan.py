"""Plans: what is read from Markdown, and what is told of what nearly was."""

from __future__ import annotations

from pathlib import Path

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.documents.findings import Finding
from queenbee.documents.plans.plan import Plan, Sprint, parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.plan_graph import plan_dependencies
from queenbee.documents.plans.source_text import read_markdown
from queenbee.documents.plans.sprint_fields import AgentRef
from queenbee.errors import NotFound, Unreadable

FIXTURES = Path(__file__).parents[1] / "fixtures" / "plans"

SPRINT = "## Phase 1\n### Sprint 1.1: Setup\n"


def sprints(text: str) -> list[str]:
    return [sprint.number for sprint in parse_plan(text).sprints]


def only(text: str) -> Sprint:
    (sprint,) = parse_plan(text).sprints
    return sprint


def under_sprint(body: str) -> Sprint:
    return only(f"{SPRINT}\n{body}\n")


def errors(plan: Plan) -> list[Finding]:
    return [finding for finding in check_plan(plan) if finding.severity == "error"]


class TestWholePlan:
    @pytest.fixture
    def plan(self) -> Plan:
        return parse_plan((FIXTURES / "app.md").read_text())

    def test_has_no_errors(self, plan: Plan) -> None:
        assert errors(plan) == []

    def test_a_sprint_has_its_section_as_it_stands(self, plan: Plan) -> None:
        lines = (FIXTURES / "app.md").read_text().split("\n")
        assert plan.sprints[0].text.split("\n") == lines[10:34]
        assert plan.sprints[0].phase_text == "## Phase 1: Foundation"
        assert plan.sprints[0].boxes == (1, 1)

    def test_a_deeper_heading_is_a_part_of_it(self, plan: Plan) -> None:
        assert plan.sprints[2].text.endswith("#### Tasks\n\n1. Build the page\n2. Wire it up")
        assert plan.sprints[2].team == "frontend"


HEADINGS = {
    "plain": "### Sprint 1.2: Auth",
    "no space after the colon": "### Sprint 1.2:Auth",
    "two spaces": "### Sprint  1.2:  Auth",
    "closing hashes": "### Sprint 1.2: Auth ###",
    "indented by three": "   ### Sprint 1.2: Auth",
    "a colon in the title": "### Sprint 1.2: Auth: login",
    "carriage return": "### Sprint 1.2: Auth\r",
    "tab after the hashes": "###\tSprint 1.2: Auth",
    "track and letter": "### Sprint 3ab.2b: Auth",
    "under an open paragraph": "text\n### Sprint 1.2: Auth",
}

OTHER_FORMS = {
    "dash for the colon": "### Sprint 1.2 - Auth",
    "en dash": "### Sprint 1.2 \u2013 Auth",
    "em dash without spaces": "### Sprint 1.2\u2014Auth",
    "no colon": "### Sprint 1.2 Auth",
    "space before the colon": "### Sprint 1.2 : Auth",
    "lower case": "### sprint 1.2: Auth",
    "capitals": "### SPRINT 1.2: Auth",
    "no space before the number": "### Sprint1.2: Auth",
    "number sign": "### Sprint #1.2: Auth",
    "bold": "### **Sprint 1.2: Auth**",
    "bold number": "### Sprint **1.2**: Auth",
    "rocket": "### \U0001f680 Sprint 1.2: Auth",
    "level two": "## Sprint 1.2: Auth",
    "level four": "#### Sprint 1.2: Auth",
    "underlined": "Sprint 1.2: Auth\n---",
    "whole number": "## Sprint 2: Auth",
    "whole number in a phase": "## PHASE 1\n### Sprint 2 \u2014 Auth",
    "phase in another form": "### Phase 1 - Core\n#### Sprint 1.2: Auth",
    "a task in a phase": "## Phase 1: Core\n### Task 1.2: Auth\n### Task 1.3: B",
    "weeks": "## Week 2: Auth\n## Week 3: B",
    "ranges of weeks": "## Week 2-4: Auth\n## Week 5: B",
}

NEAR_MISSES = {
    "missing dot": "### Sprint 12: Auth",
    "dash for the dot": "### Sprint 1-2: Auth",
    "two dots": "### Sprint 1.2.3: Auth",
    "no space after the hashes": "###Sprint 1.2: Auth",
    "seven hashes": "####### Sprint 1.2: Auth",
    "word before": "### The Sprint 1.2: Auth",
}

PROSE = [
    "# Sprint 3 plan",
    "# Phase 2 in review",
    "## Sprint planning",
    "## Sprints",
    "#### Sprint 1.1 in review",
    "## Phases 1 to 3",
    "### Phase summary",
    "### 1.2 Overview",
    "### What 1.2 means: a guess",
    "## 1.2: Overview",
    "## Sprinting 1.2: no",
    "#hashtag sprint 12",
]


class TestHeadings:
    @pytest.mark.parametrize("name", HEADINGS)
    def test_is_a_sprint(self, name: str) -> None:
        plan = parse_plan(HEADINGS[name])

        assert len(plan.sprints) == 1
        assert plan.findings == ()
        assert plan.sprints[0].title.startswith("Auth")

    @pytest.mark.parametrize("name", OTHER_FORMS)
    def test_is_a_sprint_in_another_form(self, name: str) -> None:
        plan = parse_plan(OTHER_FORMS[name])

        whole = {"weeks": "1.2", "ranges of weeks": "1.1"}.get(name, "1.2")
        assert (plan.sprints[0].number, plan.sprints[0].title) == (whole, "Auth")
        assert errors(plan) == []

    @pytest.mark.parametrize("name", NEAR_MISSES)
    def test_a_near_miss_among_whole_numbers_is_an_error_with_its_line(self, name: str) -> None:
        plan = parse_plan(f"### Sprint 1.1: A\n## Notes\n{NEAR_MISSES[name]}\n")

        assert sprints(f"### Sprint 1.1: A\n## Notes\n{NEAR_MISSES[name]}\n") == ["1.1"]
        (finding,) = plan.findings
        assert (finding.severity, finding.line) == ("error", 3)
        assert finding.hint is not None
        assert finding.hint.startswith("write it as ### Sprint 1.")

    def test_a_number_below_a_sprint_is_told_with_the_line_that_makes_it_one(self) -> None:
        plan = parse_plan("## Phase 1\n### Sprint 1.1: A\n#### Sprint 2 \u2014 Payments\n- pay\n")

        (finding,) = plan.findings
        assert (finding.line, finding.severity) == (3, "warning")
        assert finding.message == "'#### Sprint 2 \u2014 Payments' is read as a part of sprint 1.1"
        assert finding.hint == "write it as ### Sprint 1.2: Payments"

    def test_a_heading_that_html_swallows_is_an_error_with_its_line(self) -> None:
        plan = parse_plan(f"{SPRINT}<details>\n</details>\n### Sprint 1.2: Lost\n")

        assert [(found.line, found.severity) for found in plan.findings] == [(5, "error")]

    @pytest.mark.parametrize("text", PROSE)
    def test_prose_is_left_in_peace(self, text: str) -> None:
        assert parse_plan(f"### Sprint 1.1: A\n{text}").findings == ()

    def test_an_underlined_phase_is_a_phase(self) -> None:
        plan = parse_plan("Phase 1: Setup\n--------------\n### Sprint 1.1: A\n")

        assert plan.phases[0].number == "1"
        assert plan.sprints[0].phase == "1"

    @pytest.mark.parametrize(
        "fence",
        [
            "```\n{}\n```",
            "~~~markdown\n{}\n~~~",
            "    {}",
            "<!--\n{}\n-->",
            "<pre>\n{}\n</pre>",
            "````\n```\n{}\n````",
        ],
    )
    def test_code_and_comments_contain_no_headings(self, fence: str) -> None:
        text = fence.format("### Sprint 9.9: Not this")

        plan = parse_plan(f"{SPRINT}\n{text}\n\n### Sprint 1.2: This\n")

        assert [sprint.number for sprint in plan.sprints] == ["1.1", "1.2"]
        assert plan.findings == ()

    def test_a_fence_that_never_closes_over_sprints_is_an_error(self) -> None:
        plan = parse_plan(f"{SPRINT}\n```\n### Sprint 1.2: Lost\n")

        assert [(found.line, found.severity) for found in plan.findings] == [(4, "error")]

    def test_a_fence_that_never_closes_over_prose_is_a_warning(self) -> None:
        plan = parse_plan(f"{SPRINT}\n~~~\ntext")

        assert [(found.line, found.severity) for found in plan.findings] == [(4, "warning")]

    def test_lines_are_counted_as_markdown_does(self) -> None:
        plan = parse_plan("a\x0bb\x0cc\u2028d\r\n\r\n### Sprint 1.1: A\r\rx\n### Sprint 12: B")

        assert plan.sprints[0].line == 3
        assert plan.findings[0].line == 6

    def test_a_byte_order_mark_hides_no_heading(self) -> None:
        assert sprints("\ufeff### Sprint 1.1: A") == ["1.1"]


class TestFields:
    @pytest.mark.parametrize(
        "line",
        [
            "**Branch:** `main/x`",
            "**Branch**: `main/x`",
            "**Branch** : main/x",
            "**branch:** main/x",
            "**BRANCH:** `main/x` (after 1.1 merged)",
            "**Branch:** main/x (after 1.1 merged)",
            "- **Branch:** `main/x`",
            "* **Branch**: main/x",
            "1. **Branch:** `main/x`",
        ],
    )
    def test_a_field_is_read_however_it_is_written(self, line: str) -> None:
        assert under_sprint(line).branch == "main/x"

    def test_a_branch_with_a_space_is_not_cut_to_a_good_one(self) -> None:
        plan = parse_plan(f"{SPRINT}**Branch:** feat/auth api\n")

        assert [finding.path for finding in errors(plan)] == ["sprints[1.1].branch"]

    @pytest.mark.parametrize(
        ("text", "agents"),
        [
            ("- `a` (sonnet)", [("a", "sonnet", None)]),
            ("- a", [("a", None, None)]),
            ("- `a` (Haiku): look twice", [("a", "haiku", "look twice")]),
            ("- `a` - (see below) twice", [("a", None, "(see below) twice")]),
            ("- `a` (opus) — look\n  at it", [("a", "opus", "look\nat it")]),
            ("- `.claude/agents/a.md`", [(".claude/agents/a.md", None, None)]),
        ],
    )
    def test_agents_are_read(self, text: str, agents: list[tuple[str, str, str]]) -> None:
        found = under_sprint(f"**QA Agents:**\n{text}").qa_agents

        assert [(agent.name, agent.model, agent.prompt) for agent in found] == agents

    @pytest.mark.parametrize(
        "text",
        [
            "- `a` (gpt)",
            "- two words",
            "- (sonnet)",
            "- `a-b` (sonnet) [lead]",
            "- `a-b` / `c`",
            "- `a-b` Run it - twice",
            "- **a-b**",
        ],
    )
    def test_a_non_agent_is_an_error_with_its_line(self, text: str) -> None:
        plan = parse_plan(f"{SPRINT}**Dev Agents:**\n{text}\n")

        assert [(found.path, found.line) for found in errors(plan)] == [
            ("sprints[1.1].dev_agents", 3)
        ]

    @pytest.mark.parametrize(
        ("text", "needs"),
        [
            ("1.2a, 1.2b", ("1.2a", "1.2b")),
            ("`1.2a`", ("1.2a",)),
            ("Sprint 1.2a", ("1.2a",)),
            ("bd-a1b2c3, beads-ralph-lt4", ("bd-a1b2c3", "beads-ralph-lt4")),
            ("None", ()),
            ("-", ()),
            ("1.2, 1.2", ("1.2",)),
            ("1.1 and 1.2a", ("1.1", "1.2a")),
            ("1.1, 1.2a and 1.2b.", ("1.1", "1.2a", "1.2b")),
            ("1.1; 1.2a", ("1.1", "1.2a")),
            ("1.1 & bd-x1", ("1.1", "bd-x1")),
            ("Sprints 1.1 and 1.2a", ("1.1", "1.2a")),
            ("Sprint 1.2a: Two", ("1.2a",)),
            ("Sprint 1.2a: Login, and more", ("1.2a",)),
            ("Sprint 1.2a - Two", ("1.2a",)),
            ("Sprint 1.1: One, Sprint 1.2a: Two", ("1.1", "1.2a")),
            ("1.1 (merged, and tested)", ("1.1",)),
            ("**1.1**, *1.2a*", ("1.1", "1.2a")),
            ("[Sprint 1.1](#sprint-11), [1.2a](#two)", ("1.1", "1.2a")),
            ("1.1 \u2705", ("1.1",)),
            ("None (first sprint)", ()),
            ("None - it comes first.", ()),
            ("N/A", ()),
        ],
    )
    def test_what_a_sprint_depends_on_is_read(self, text: str, needs: tuple[str, ...]) -> None:
        assert under_sprint(f"**Dependencies:** {text}").depends_on == needs

    @pytest.mark.parametrize(
        "text",
        [
            "1.2A",
            "1.2.3",
            "Sprint 1.2a Two",
            "1.1 or 1.2a",
        ],
    )
    def test_a_dependency_that_is_not_plain_is_an_error(self, text: str) -> None:
        (error,) = errors(
            parse_plan(f"### Sprint 1.1: A\n### Sprint 1.3: B\n**Requires:** {text}\n")
        )

        assert (error.path, error.line) == ("sprints[1.3].depends_on", 3)
        assert error.message.startswith("nothing waits for ")
        assert error.hint is not None
        assert error.hint.startswith("write it as **Depends On:** 1.1, 1.2a")

    @pytest.mark.parametrize(
        "text", ["a database", "???", "everything in 1.1", "the data of Sprint 1.1"]
    )
    def test_another_condition_is_a_warning(self, text: str) -> None:
        plan = parse_plan(f"### Sprint 1.1: A\n### Sprint 1.3: B\n**Requires:** 1.1, {text}\n")

        assert plan.sprints[1].depends_on == ("1.1",)
        assert [each.severity for each in plan.findings] == ["warning"]

    @pytest.mark.parametrize(
        ("text", "needs"),
        [
            ("Sprint 2", ("2.2",)),
            ("Task 1", ("2.1",)),
            ("Phase 1", ("1.1",)),
            ("1.1", ("1.1",)),
            ("Sprints 1-2", ("2.1", "2.2")),
            ("1.1 to 2.1", ("1.1", "2.1")),
        ],
    )
    def test_a_number_means_the_sprint_of_its_phase(self, text: str, needs: tuple[str]) -> None:
        phases = "## Phase 1\n### Sprint 1\n## Phase 2\n### Sprint 1\n### Sprint 2\n"
        plan = parse_plan(f"{phases}### Sprint 3\n**Depends on:** {text}\n")

        assert plan.sprints[3].depends_on == needs

    @pytest.mark.parametrize(
        "name", ["Requires", "Blocked By", "Depends On", "Depends", "Dependencies", "Waits For"]
    )
    def test_dependencies_have_several_names(self, name: str) -> None:
        assert under_sprint(f"**{name}:** 1.2a").depends_on == ("1.2a",)

    @pytest.mark.parametrize(("text", "priority"), [("0", 0), ("P4", 4), ("p1", 1), ("High", 1)])
    def test_a_priority_is_read(self, text: str, priority: int) -> None:
        assert under_sprint(f"**Priority:** {text}").priority == priority

    def test_a_priority_that_is_none_is_a_warning(self) -> None:
        (finding,) = parse_plan(f"{SPRINT}**Priority:** soon\n").findings

        assert (finding.path, finding.severity) == ("sprints[1.1].priority", "warning")

    def test_a_field_of_one_word_given_twice_is_an_error(self) -> None:
        plan = parse_plan(f"{SPRINT}**Branch:** a\n\n**Branch:** b\n")

        assert [found.path for found in errors(plan)] == ["sprints[1.1].branch"]

    def test_a_misspelt_field_is_a_warning_with_the_right_name(self) -> None:
        plan = parse_plan(f"{SPRINT}**Acceptance Critera:**\n- x\n")

        (finding,) = plan.findings
        assert finding.hint == "did you mean **Acceptance Criteria:**?"

    def test_the_head_of_a_table_names_none(self) -> None:
        assert parse_plan(f"{SPRINT}| Agent | File | Lines |\n|---|---|---|\n").findings == ()

    def test_fields_made_a_heading_by_dashes_are_an_error(self) -> None:
        plan = parse_plan(f"{SPRINT}**Branch:** a\n---\n")

        assert [found.line for found in errors(plan)] == [3]

    def test_bold_items_of_a_list_stay_items(self) -> None:
        sprint = under_sprint("**Acceptance Criteria:**\n- **Coverage:** 80%\n- fast")

        assert sprint.acceptance == ("**Coverage:** 80%", "fast")

    @pytest.mark.parametrize(
        "fields",
        [
            "**Dev Agents:** `a` (sonnet)",
            "**QA Agents:** `a` (sonnet) - Run pytest",
            "**Depends On:** 1.1",
            "- **QA Agents:**\n  - `a`",
        ],
    )
    def test_an_item_below_the_value_of_a_field_is_none_of_it(self, fields: str) -> None:
        sprint = under_sprint(f"{fields}\n- Setup\n")

        assert len(sprint.dev_agents + sprint.qa_agents + sprint.depends_on) == 1

    def test_more_agents_may_follow_the_first_in_backticks(self) -> None:
        sprint = under_sprint("**QA Agents:** `a`\n- `b` (opus)\n- Setup\n")

        assert [agent.name for agent in sprint.qa_agents] == ["a", "b"]

    @pytest.mark.parametrize("indent", ["", "  "])
    def test_a_field_right_below_a_list_item_is_a_field(self, indent: str) -> None:
        sprint = under_sprint(
            f"- build server\n- build client\n{indent}**Depends On:** 1.2a\n"
            f"{indent}**Branch:** x\n- test"
        )

        assert (sprint.depends_on, sprint.branch) == (("1.2a",), "x")

    def test_a_field_with_a_list_right_below_a_list_item_is_a_field(self) -> None:
        sprint = under_sprint("- build\n**QA Agents:**\n- `qa` (haiku)\n- `qa2`")

        assert [agent.name for agent in sprint.qa_agents] == ["qa", "qa2"]

    def test_a_field_in_a_list_below_an_item_is_a_field(self) -> None:
        assert under_sprint("- build\n  - **Depends On:** 1.2a\n- test").depends_on == ("1.2a",)

    def test_prompts_that_the_plan_names_are_the_prompts(self) -> None:
        sprint = under_sprint("**Prompts:**\n- Build it\n- Test it\n\n- a")

        assert sprint.prompts == ("Build it", "Test it", "a")

    def test_its_line_is_its_own(self) -> None:
        (error,) = errors(parse_plan(f"{SPRINT}- build\n**Requires:** 1.9Z\n"))

        assert error.line == 4


class TestCheck:
    def test_what_is_left_to_defaults_is_one_warning_for_the_plan(self) -> None:
        plan = parse_plan("".join(f"### Sprint 1.{n}: A\n- a\n" for n in range(1, 13)))

        (told,) = [each for each in check_plan(plan) if "defaults" in each.message]
        listed = f"{', '.join(f'1.{n}' for n in range(1, 11))} and 2 more"
        assert told.message == f"defaults are used for dev agents ({listed}), QA agents ({listed})"
        assert (told.severity, told.line) == ("warning", 1)

    def test_a_sprint_whose_tasks_are_all_ticked_is_done_unless_its_status_says_more(self) -> None:
        for tasks, mark in [
            ("- [x] one\n  - [x] two\n", "done"),
            ("- [x] one\n- [ ] two\n", None),
            ("Status: In review\n- [x] one\n", None),
            ("- one\n", None),
        ]:
            (sprint,) = parse_plan(f"{SPRINT}{tasks}").sprints
            assert sprint.mark == mark, tasks
        assert (
            parse_plan(f"{SPRINT}- [x] one\n").sprints[0].why == "its tasks, which are all ticked"
        )

    def test_a_sprint_under_no_phase_is_a_warning(self) -> None:
        findings = check_plan(parse_plan("## Phase 1\n## Notes\n### Sprint 1.1: A\n"))

        assert any("is not under a phase heading" in found.message for found in findings)
        assert {found.severity for found in findings} == {"warning"}

    @pytest.mark.parametrize("again", ["1.1", "1.01", "01.1"])
    def test_a_sprint_twice_is_an_error(self, again: str) -> None:
        plan = parse_plan(f"### Sprint 1.1: A\n### Sprint {again}: B\n")

        assert [(found.line, found.path) for found in errors(plan)] == [(2, f"sprints[{again}]")]

    def test_a_phase_twice_is_an_error(self) -> None:
        plan = parse_plan("## Phase 1\n### Sprint 1.1: A\n## Phase 1\n### Sprint 1.2: B\n")

        assert [found.path for found in errors(plan)] == ["phases[1]"]

    def test_a_number_with_and_without_letters_is_a_warning(self) -> None:
        findings = check_plan(parse_plan("### Sprint 1.2: A\n### Sprint 1.2a: B\n"))

        assert any("runs in parallel" in found.message for found in findings)

    def test_a_cycle_is_an_error_that_names_it(self) -> None:
        plan = parse_plan(f"{SPRINT}**Depends on:** 1.3\n### Sprint 1.2: B\n### Sprint 1.3: C\n")

        (finding,) = errors(plan)
        assert finding.message == "a cycle: 1.1 waits for 1.3 waits for 1.2 waits for 1.1"

    def test_a_sprint_that_waits_for_itself_is_a_cycle(self) -> None:
        (finding,) = errors(parse_plan(f"{SPRINT}**Depends on:** 1.1\n"))

        assert finding.message == "a cycle: 1.1 waits for 1.1"

    def test_a_prefix_that_makes_no_branch_asks_for_another(self) -> None:
        found = check_plan(parse_plan(SPRINT), branch_prefix="release/1.2")

        (finding,) = [each for each in found if each.severity == "error"]
        assert finding.hint == "--branch-prefix, or name one: **Branch:** `name`"

    def test_a_source_branch_with_a_dot_is_good(self) -> None:
        assert errors(parse_plan(f"{SPRINT}**Source Branch:** release/1.2\n")) == []

    @pytest.mark.parametrize("source", ["main", "sprint", "master", "develop"])
    def test_no_default_branch_is_one_that_git_cannot_have(self, source: str) -> None:
        plan = parse_plan(f"{SPRINT}### Sprint 1.2: B\n**Source Branch:** {source}\n")

        told = check_plan(plan, source_branch=source)

        assert [each for each in told if "git cannot" in each.message] == []

    def test_a_text_that_is_too_long_for_all_sprints_of_a_phase_is_an_error(self) -> None:
        text = f"## Phase 1\n{'x' * 9_000}\n" + "### Sprint 1.{}: A\n- a\n" * 1_000
        plan = parse_plan(text.replace("{}", "1", 1).format(*range(2, 1_001)))

        assert [each.path for each in errors(plan)] == ["phases[1]"]

    def test_two_sprints_with_one_branch_are_an_error_that_names_both(self) -> None:
        plan = parse_plan(f"{SPRINT}**Branch:** x\n### Sprint 1.2: B\n**Branch:** x\n")

        (error,) = errors(plan)
        assert (error.path, error.line) == ("sprints[1.2].branch", 4)
        assert error.message == "has the branch x, which sprint 1.1 has too"

    def test_two_sprints_with_one_worktree_are_an_error(self) -> None:
        plan = parse_plan(f"{SPRINT}**Worktree:** ../w\n### Sprint 1.2: B\n**Worktree:** ../w/\n")

        assert [error.path for error in errors(plan)] == ["sprints[1.2].worktree"]

    def test_a_team_may_work_on_one_branch_sprint_after_sprint(self) -> None:
        both = "**Branch:** x\n**Team:** auth\n"

        assert errors(parse_plan(f"{SPRINT}{both}### Sprint 1.2: B\n{both}")) == []
        parallel = f"### Sprint 1.1a: A\n{both}### Sprint 1.1b: B\n{both}"
        assert len(errors(parse_plan(parallel))) == 1

    def test_branches_that_git_cannot_have_together_are_one_warning(self) -> None:
        plan = parse_plan(f"{SPRINT}### Sprint 1.2: B\n- x\n")
        found = check_plan(plan, branch_prefix="main")

        told = [each for each in found if "git cannot" in each.message]
        assert [(each.severity, each.line) for each in told] == [("warning", 2)]
        assert "main/1-1-setup beside the branch main, and 1 more" in told[0].message
        assert told[0].hint == "use other names, such as **Branch:** `sprint/1-1-setup`"

    def test_a_title_that_beads_refuses_is_an_error(self) -> None:
        assert errors(parse_plan(f"### Sprint 1.1: {'x' * 501}\n"))

    def test_sprints_have_no_limit_but_how_often_they_wait_for_each_other(self) -> None:
        in_a_row = "".join(f"### Sprint 1.{number}: A\n- a\n" for number in range(1, 3_001))
        assert errors(parse_plan(in_a_row)) == []

        letters = [
            a + b for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"
        ]
        wide = "".join(f"### Sprint 1.{n}{each}: A\n" for n in (1, 2) for each in letters)
        assert any(
            "wait for each other 456,976 times" in each.message for each in errors(parse_plan(wide))
        )

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ("**Abh\u00e4ngig von:** 1.2b", True),
            ("**Voraussetzung:** 1.1", False),
            ("**Goal:** 1.2b is replaced", False),
            ("**Version:** 1.5", False),
        ],
    )
    def test_a_label_whose_value_is_sprints_is_told_unless_it_waits_for_them(
        self, line: str, told: bool
    ) -> None:
        text = "### Sprint 1.1: A\n### Sprint 1.2a: B\n{}\n### Sprint 1.2b: C\n"
        plan = parse_plan(text.format(line))

        assert [each.severity for each in plan.findings] == (["warning"] if told else [])

    def test_findings_come_in_the_order_of_the_lines(self) -> None:
        plan = parse_plan("### Sprint 2.1: A\n### Sprint 12: B\n### Sprint 2.1: C\n")

        lines = [found.line for found in check_plan(plan)]

        assert lines == sorted(lines)  # type: ignore[type-var]


LINES = [
    *("## Phase 1", "### Sprint 1.1: A", "### Sprint 1.2 - B", "**Branch:** x", "- a", "  - b"),
    *("**Tasks:**", "---", "===", "```", "> q", "    code", "<!-- beads-ralph: x -->", "", "1. x"),
    *("- **Dev Agents:** `a` (opus)", "**", "#", "[a]: b", "\t", "~~~"),
]
MARKDOWN = st.lists(st.sampled_from(LINES) | st.text(max_size=12), max_size=20).map("\n".join)


class TestOrder:
    def test_numbers_order_nothing_if_each_sprint_of_a_foreign_plan_says_what_it_needs(
        self,
    ) -> None:
        tasks = "## Phase 1\n### Task 1: A\n**Depends on:** Task 3\n### Task 2: B\n{}"
        tasks += "### Task 3: C\n**Depends on:** none\n"

        stated = plan_dependencies(parse_plan(tasks.format("**Depends on:** none\n")))
        assert stated == {"1.1": ("1.3",), "1.2": (), "1.3": ()}
        assert plan_dependencies(parse_plan(tasks.format("")))["1.3"] == ("1.2",)
        own = tasks.format("**Depends on:** none\n").replace("Task ", "Sprint 1.")
        assert plan_dependencies(parse_plan(own))["1.3"] == ("1.2",)


class TestAnyText:
    @pytest.mark.slow
    @settings(max_examples=examples(200))
    @given(st.text(max_size=200) | MARKDOWN)
    def test_never_makes_it_raise(self, text: str) -> None:
        check_plan(parse_plan(text), agents=frozenset())

    @pytest.mark.slow
    @settings(max_examples=examples(150))
    @given(MARKDOWN)
    def test_every_finding_names_a_line_of_the_text(self, text: str) -> None:
        lines = text.count("\n") + text.count("\r") + 1

        for finding in check_plan(parse_plan(text)):
            assert finding.line is not None
            assert 1 <= finding.line <= lines

    @pytest.mark.parametrize(
        "text",
        [
            ">" * 50_000 + " ### Sprint 1.1: A",
            "- " * 50_000 + "### Sprint 1.1: A",
            "### Sprint 1.1: A\n" + "**" * 20_000,
            "### Sprint 1.1: A\n**Dev Agents:** " + "`a` (" * 10_000,
            "### " + "Sprint " * 20_000,
            "### Sprint " + "1." * 20_000 + ": A",
            "```" * 20_000,
            f"### Sprint 1.1: A\n\u2705{'_' * 20_000}-\ndone{'*' * 20_000}-\n",
            f"### Sprint 1.1: A\n- {'sprint 1.9 ' * 20_000}\ndepends on{'|' * 20_000}\n",
            f"### Sprint 1.1: A\n**Dev Agents:**\n- a{' ' * 200_000}x y)",
            f"### Sprint 1.1: A\n**Branch:** a{' ' * 200_000}(x",
            "### Sprint 1.1: A\n- **Tasks:**\n" + "".join(f"{'  ' * n}- a\n" for n in range(300)),
        ],
        ids=[
            "quotes",
            "lists",
            "stars",
            "parentheses",
            "words",
            "dots",
            "fences",
            "states",
            "names",
            "gap",
            "bracket",
            "indents",
        ],
    )
    def test_hostile_text_ends(self, text: str) -> None:
        check_plan(parse_plan(text))


class TestFiles:
    def test_a_name_with_a_nul_is_not_found(self) -> None:
        with pytest.raises(NotFound):
            read_markdown("a\0b")

    def test_a_file_that_is_not_utf_8_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "a.md").write_bytes(b"### Sprint 1.1: \xff")

        with pytest.raises(Unreadable, match=r"not UTF-8 \(byte 16\)"):
            read_markdown(str(tmp_path / "a.md"))


class TestDependenciesInOtherForms:
    @pytest.mark.parametrize(
        "line",
        [
            "Depends on: 1.1",
            "*Depends On:* 1.1",
            "__Depends On:__ Sprint 1.1",
            "- depends on: `1.1`",
            "- build client\n  Blocked by: 1.1",
            "**Branch:** x\nDepends on: 1.1",
            "**Depends-On:** 1.1",
            "**Depends On (soft):** 1.1",
            "**Depends on sprint:** 1.1",
            "**Prerequisites:** Sprint 1.1",
            "> **Depends On:** 1.1",
            "| **Depends On:** | 1.1 |",
            "| Depends on | 1.1 |",
            "**Depends on** Sprint 1.1",
            "#### Depends On: 1.1",
        ],
    )
    def test_are_read(self, line: str) -> None:
        """Without one, the sprint would be planned as if it waited for nothing."""
        plan = parse_plan(f"{SPRINT}- a\n### Sprint 1.2: B\n{line}\n")

        assert (plan.sprints[1].depends_on, plan.findings) == (("1.1",), ())

    @pytest.mark.parametrize(
        "line",
        [
            "Needs: 1.5 GB",
            "After 1.1, we rest",
            "> a",
        ],
    )
    def test_other_lines_are_none(self, line: str) -> None:
        plan = parse_plan(f"{SPRINT}- a\n### Sprint 1.2: B\n{line}\n")

        assert (plan.sprints[1].depends_on, plan.findings) == ((), ())


class TestFieldsInAnItem:
    def test_a_list_below_a_field_ends_with_its_item(self) -> None:
        """The next item is a task; it was taken for a criterion, and no work was planned for it."""
        text = "- write\n  **Acceptance Criteria:**\n  - ok\n  - fine\n- test\n"
        sprint = only(SPRINT + text)

        assert sprint.acceptance == ("ok", "fine")

    def test_fields_in_a_list_end_with_their_items(self) -> None:
        sprint = only(f"{SPRINT}- **Acceptance Criteria:**\n  - ok\n- test\n")

        assert sprint.acceptance == ("ok",)

    def test_a_list_of_one_below_a_field_has_no_marker(self) -> None:
        text = (
            "1. write\n   **QA Agents:**\n   - `q` (haiku) - run it\n   **Branch:**\n   - `x/y`\n"
        )
        sprint = only(SPRINT + text)

        assert sprint.qa_agents == (AgentRef("q", "haiku", "run it"),)
        assert sprint.branch == "x/y"

    def test_items_after_a_field_without_a_list_of_its_own_are_its_value(self) -> None:
        sprint = only(f"{SPRINT}- write\n**Acceptance Criteria:**\n- ok\n- fine\n")

        assert sprint.acceptance == ("ok", "fine")


class TestAnnotationsThatCannotBeRead:
    @pytest.mark.parametrize(
        "line",
        [
            "<!-- beads-ralph: bd-1 --> login",
            "<!-- Beads-Ralph: bd-1 -->",
            "<!-- bead-ralph: bd-1 -->",
            "<!-- beads-ralph bd-1 -->",
            "<!-- beads-ralph: bd 1 -->",
            "<!--\nbeads-ralph: bd-1\n-->",
            "- a\n  <!-- beads-ralph: bd-1 -->",
            "> <!-- beads-ralph: bd-1 -->",
        ],
    )
    def test_are_errors_with_their_line(self, line: str) -> None:
        """Without its annotation, a finished sprint that was renumbered would be done again."""
        (error,) = parse_plan(f"{SPRINT}\n{line}\n").findings

        assert error.severity == "error"
        assert error.message.endswith("names a bead, not read")
        assert error.line == (5 if line.startswith("- a") else 4)

    @pytest.mark.parametrize(
        "line",
        [
            "<!-- beads-ralph: bd-1 -->",
            "- Write `<!-- beads-ralph: bd-1 -->` below it",
            "```\n<!-- bead-ralph: x -->\n```",
            "<!-- about beads-ralph -->",
        ],
    )
    def test_other_lines_are_none(self, line: str) -> None:
        assert parse_plan(f"{SPRINT}\n{line}\n").findings == ()


class TestSourceBranches:
    @pytest.mark.parametrize(
        "branch",
        ["-x", "--upload-pack=x", "a b", "a..b", "a~1", "a:b", "a/", "/a", "x.lock", "a@{1"],
    )
    def test_that_git_refuses_are_errors(self, branch: str) -> None:
        """An agent passes the name to git, where a dash would begin an option."""
        plan = parse_plan(f"{SPRINT}**Source Branch:** `{branch}`\n- a\n")
        for found in (check_plan(plan), check_plan(parse_plan(SPRINT), source_branch=branch)):
            (error,) = [each for each in found if each.severity == "error"]
            assert error.path == "sprints[1.1].source_branch"

    @pytest.mark.parametrize("branch", ["main", "release/1.2", "v1.2.x", "\u00e9t\u00e9", "a@b"])
    def test_of_git_are_accepted(self, branch: str) -> None:
        plan = parse_plan(f"{SPRINT}**Source Branch:** `{branch}`\n- a\n")

        assert [each for each in check_plan(plan) if each.severity == "error"] == []


class TestTooManyLines:
    @pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
    def test_are_refused_before_they_are_parsed(self, tmp_path: Path, ending: str) -> None:
        """The time and memory of parsing depend on the lines more than on the bytes."""
        path = tmp_path / "plan.md"
        path.write_bytes(f"- a{ending}".encode() * 50_000)
        assert len(read_markdown(str(path))) == 50_000 * len(f"- a{ending}")

        path.write_bytes(f"- a{ending}".encode() * 50_001)
        with pytest.raises(Unreadable, match="50,001 lines; a plan has at most 50,000"):
            read_markdown(str(path))
