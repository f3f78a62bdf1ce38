"""Sprints are read with their marks, or named in a finding with their line: none is lost."""

from __future__ import annotations

import pytest
from extent import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stamps import parse_ms

from queenbee.documents.plans.marks import read_marks, read_status
from queenbee.documents.plans.plan import Plan, parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.plan_import import import_plan
from queenbee.documents.plans.rows import PlanSetting
from queenbee.documents.sprints.sprint_bead import check_bead

NOW = parse_ms("2026-02-07T10:00:00Z")
SETTING = PlanSetting("plans/a.md", "/home/you/app", "app", "bd", "planner")

MARKED = {
    "ticked box": ("### [x] Sprint 1.2: Login", "done"),
    "empty box": ("### [ ] Sprint 1.2: Login", None),
    "check mark": ("### ✅ Sprint 1.2: Login", "done"),
    "check mark in color": ("### ✔️ Sprint 1.2: Login", "done"),
    "shortcode": ("### :white_check_mark: Sprint 1.2: Login", "done"),
    "check mark behind": ("### Sprint 1.2: Login ✅", "done"),
    "DONE before": ("### DONE: Sprint 1.2: Login", "done"),
    "DONE in brackets": ("### [DONE] Sprint 1.2: Login", "done"),
    "DONE behind": ("### Sprint 1.2: Login (DONE)", "done"),
    "completed, with a date": ("### Sprint 1.2: Login (COMPLETED 2026-02-01)", "done"),
    "dash and capitals": ("### Sprint 1.2: Login — COMPLETED", "done"),
    "dash and a word": ("### Sprint 1.2: Login - complete", "done"),
    "dash, a word and an issue": ("### Sprint 1.2: Login — done — #10", "done"),
    "dash, a word and a remark": ("### Sprint 1.2: Login — DONE (code, docs)", "done"),
    "struck through and done": ("### ~~Sprint 1.2: Login~~ ✅ COMPLETE", "done"),
    "done and struck through": ("### ✅ ~~Sprint 1.2: Login~~", "done"),
    "struck through": ("### ~~Sprint 1.2: Login~~", "skipped"),
    "struck through, with a remark": ("### ~~Sprint 1.2: Login~~ — merged into 1.3", "skipped"),
    "title struck through": ("### Sprint 1.2: ~~Login~~", "skipped"),
    "skipped": ("### Sprint 1.2: Login (SKIPPED)", "skipped"),
    "skipped, with a reason": ("### Sprint 1.2: Login (skipped, nobody needs it)", "skipped"),
    "skipped and struck through": ("### ~~Sprint 1.2: Login (Skipped)~~", "skipped"),
    "skipped outranks a check mark": ("### ✅ Sprint 1.2: Login (CANCELLED)", "skipped"),
}

NO_MARK = [
    "### Sprint 1.2: Login (complete rewrite)",
    "### Sprint 1.2: Get it done",
    "### Sprint 1.2: Show ✅ in the list",
    "### Sprint 1.2: ~~Login~~ Sign-in",
    "### Sprint 1.2: Login (parallel)",
    "### Sprint 1.2: Removed features",
    "### Sprint 1.2: Feature flags - removed",
]

LOST = {
    "number of a list": "### 3. Sprint 1.2: Login",
    "shortcode of an emoji": "### :rocket: Sprint 1.2: Login",
    "anchor": '### <a id="login"></a>Sprint 1.2: Login',
    "WIP": "### WIP Sprint 1.2: Login",
    "WIP with a colon": "### WIP: Sprint 1.2: Login",
    "emoji": "### 🚀 Sprint 1.2: Login",
    "phase and sprint": "## Phase 1 / Sprint 1.2: Login",
    "phase with a sprint for a title": "## Phase 2: Sprint 1.2: Login",
    "bold": "### **Sprint 1.2: Login**",
    "bold in a list": "- **Sprint 1.2: Login**",
    "bold number in a list": "- **Sprint 1.2:** Login",
    "no space, in a list": "- ###Sprint 1.2: Login",
    "no space, below a list item": "- one\n###Sprint 1.2: Login",
    "heading in a list": "- ### Sprint 1.2: Login",
    "heading in a quotation": "> ### Sprint 1.2: Login",
    "plain in a list": "- [ ] Sprint 1.2: Login",
    "nested list": "- Phase one\n  - Sprint 1.2: Login",
    "table": "| sprint | days |\n|---|---|\n| Sprint 1.2: Login | 3 |",
    "full-width colon": "### Sprint 1.2：Login",
    "ticked, with a dash": "### [x] Sprint 1.2 - Login",
    "struck through, with a dash": "### ~~Sprint 1.2 - Login~~",
    "indented": "words\n     ### Sprint 1.2: Login",
    "HTML heading": "<h3>Sprint 1.2: Login</h3>",
    "summary of a fold": "<details>\n<summary>Sprint 1.2: Login</summary>\n</details>",
    "half struck": "### ~~Sprint 1.2~~: Login",
    "other words before": "### Login flow, Sprint 1.2: Login",
    "Chinese word": "### 冲刺 1.2: Login",
    "German word": "### Aufgabe 1.2: Login",
    "Russian word": "### 🏃 Спринт 1.2 — Login",
    "no word": "### 1.2: Login",
    "no word, with a dash": "### 1.2 - Login",
    "plain line": "Sprint 1.2: Login",
    "plain line in a paragraph": "some text\nSprint 1.2: Login",
    "italics": "*Sprint 1.2: Login*",
    "strike around the heading": "~~### Sprint 1.2: Login",
    "full-width letters": "### \uff33\uff50\uff52\uff49\uff4e\uff54 1.2: Login",
    "full-width digits": "### Sprint \uff11.\uff12: Login",
    "full-width hash": "\uff03\uff03\uff03 Sprint 1.2: Login",
    "byte order mark in the middle": "\ufeff### Sprint 1.2: Login",
    "link": "### [Sprint 1.2: Login](#login)",
    "link around the number": "### [Sprint 1.2](#login): Login",
    "full stop for the colon": "### Sprint 1.2. Login",
    "bracket for the colon": "### Sprint 1.2) Login",
    "check mark before the colon": "### Sprint 1.2 \u2705: Login",
    "cell of an HTML table": "<table><tr><td>Sprint 1.2: Login</td></tr></table>",
    "level four": "#### Sprint 1.2: Login",
    "setext": "Sprint 1.2: Login\n=====",
}


def plan_with(lines: str) -> Plan:
    return parse_plan(f"## Phase 1: Core\n\n### Sprint 1.1: Setup\n\n- set up\n\n{lines}\n\ntext\n")


class TestMarks:
    @pytest.mark.parametrize("name", MARKED)
    def test_say_that_a_sprint_is_done_or_skipped(self, name: str) -> None:
        heading, mark = MARKED[name]
        plan = plan_with(heading)

        (sprint,) = plan.skipped if mark == "skipped" else plan.sprints[1:]
        assert (sprint.number, sprint.title, sprint.mark) == ("1.2", "Login", mark)
        assert plan.left_out == ()

    @pytest.mark.parametrize("heading", NO_MARK)
    def test_are_not_seen_in_titles(self, heading: str) -> None:
        sprint = plan_with(heading).sprints[1]

        assert (sprint.mark, f"### Sprint 1.2: {sprint.title}") == (None, heading)

    def test_a_skipped_sprint_is_named_and_nothing_waits_for_it(self) -> None:
        text = "### Sprint 1.1: A\n- a\n### ~~Sprint 1.2: B~~\n- b\n### Sprint 1.3: C\n- c\n"
        found = import_plan(parse_plan(text), [], setting=SETTING, now_ms=NOW)

        assert list(found.ids) == ["1.1", "1.3"]
        (note,) = [each for each in found.findings if "skipped" in each.message]
        assert (note.line, note.severity) == (3, "warning")
        (need,) = found.changes[1].row["dependencies"]
        assert need["depends_on_id"] == found.ids["1.1"]

    def test_to_depend_on_a_skipped_sprint_is_an_error(self) -> None:
        text = "### ~~Sprint 1.1: A~~\n### Sprint 1.2: B\n**Depends On:** 1.1\n"

        (error,) = [each for each in check_plan(parse_plan(text)) if each.severity == "error"]

        assert error.message == "depends on sprint 1.1, which is skipped"

    def test_a_done_sprint_is_imported_closed(self) -> None:
        text = "### ✅ Sprint 1.1: A\n- a\n### Sprint 1.2: B\n- b\n"
        found = import_plan(parse_plan(text), [], setting=SETTING, now_ms=NOW)
        first, second = (change.row for change in found.changes)

        assert (first["status"], second["status"]) == ("closed", "open")
        assert check_bead(first, strict=True) == []
        again = import_plan(parse_plan(text), found.rows, setting=SETTING, now_ms=NOW + 9)
        assert again.rows == []

    def test_marked_later_it_closes_a_bead_that_nobody_began(self) -> None:
        text = "### Sprint 1.1: A\n- a\n"
        rows = import_plan(parse_plan(text), [], setting=SETTING, now_ms=NOW).rows
        done = parse_plan(text.replace("A\n", "A ✅\n", 1))

        (change,) = import_plan(done, rows, setting=SETTING, now_ms=NOW + 9).changes
        assert change.row["status"] == "closed"

        rows[0]["status"] = "in_progress"
        found = import_plan(done, rows, setting=SETTING, now_ms=NOW + 9)
        assert found.changes[0].row["status"] == "in_progress"
        assert any("is not closed (in_progress)" in each.message for each in found.findings)

    @pytest.mark.parametrize(
        ("value", "mark"),
        [
            ("✅ **COMPLETED** (PR #4 merged)", "done"),
            ("Completed 2026-02-08", "done"),
            ("Skipped - not needed", "skipped"),
            ("In Review", None),
            ("Completed design, code is missing", None),
            ("Not done", None),
        ],
    )
    def test_a_status_field_counts_if_it_is_plain(self, value: str, mark: str | None) -> None:
        assert read_status(value) == mark
        plan = plan_with(f"### Sprint 1.2: Login\n\n**Status**: {value}\n\n- log in")
        (sprint,) = [each for each in (*plan.sprints, *plan.skipped) if each.number == "1.2"]
        assert sprint.mark == mark
        assert value in sprint.text

    @pytest.mark.parametrize(
        "line",
        [
            "Status: COMPLETED",
            "**Status:** [x] Done",
            "**Status: COMPLETED**",
            "| **Status** | \u2705 Done |",
            "> **Status:** done",
            "#### Status: Done",
        ],
    )
    def test_a_status_is_read_wherever_it_is_a_field(self, line: str) -> None:
        plan = parse_plan(f"### Sprint 1.1: A\n{line}\n\n- a\n")
        assert (plan.sprints[0].mark, plan.sprints[0].why) == ("done", "its status in line 2")

    @pytest.mark.parametrize(
        "line", ["**Status:** In progress", "Status: pending", "| status | string |"]
    )
    def test_a_status_that_leaves_a_sprint_open_is_not(self, line: str) -> None:
        plan = parse_plan(f"### Sprint 1.1: A\n{line}\n\n- a\n")
        assert (plan.sprints[0].mark, plan.findings) == (None, ())

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("## Phase 1: A\n### Sprint 1.1: A ✅", "its heading in line 2"),
            ("## Phase 1: A ✅\n### Sprint 1.1: A", "its phase in line 1"),
            ("## Phase 1: A\n### Sprint 1.1: A\n**Status:** Done", "its status in line 3"),
            (
                "## Phase 1: A\n### Sprint 1.1: A\n## Log\n### Sprint 1.1: A ✅",
                "the record in line 4",
            ),
            ("## Phase 1: A\n**Status:** Done\n### Sprint 1.1: A", "its phase in line 1"),
            ("## Phase 1: A\n### Sprint 1.1: A", ""),
        ],
    )
    def test_a_sprint_says_which_line_gives_its_state(self, text: str, why: str) -> None:
        (sprint,) = parse_plan(text).sprints
        assert (sprint.why, sprint.mark) == (why, "done" if why else None)

    @pytest.mark.parametrize(
        "line",
        ["**Status:** In progress", "**Done when:** it runs", "- ✅ Tests"],
    )
    def test_other_lines_name_no_status(self, line: str) -> None:
        assert parse_plan(f"### Sprint 1.1: A\n{line}\n").findings == ()

    def test_those_of_a_phase_count_for_its_sprints(self) -> None:
        text = "## ✅ Phase 1: A\n### Sprint 1.1: A\n## ~~Phase 2: B~~\n### Sprint 2.1: B\n"
        plan = parse_plan(text)

        assert [(each.number, each.mark) for each in plan.sprints] == [("1.1", "done")]
        assert [each.number for each in plan.skipped] == ["2.1"]
        assert [each.line for each in plan.findings] == [1, 3, 4]

    def test_a_log_of_what_is_done_is_no_second_sprint(self) -> None:
        text = "## Phase 1\n### Sprint 1.1: A\n- a\n## Completion Log\n### ✅ Sprint 1.1: A\n- x\n"
        plan = parse_plan(text)

        assert [(each.number, each.mark, each.line) for each in plan.sprints] == [
            ("1.1", "done", 2)
        ]
        assert [(each.line, each.severity) for each in plan.findings] == [(5, "warning")]
        assert all(each.severity == "warning" for each in check_plan(plan))

    def test_without_a_mark_a_second_heading_is_an_error(self) -> None:
        text = "## Phase 1\n### Sprint 1.1: A\n## Log\n### Sprint 1.1: A\n"

        assert any(each.severity == "error" for each in check_plan(parse_plan(text)))

    @pytest.mark.parametrize(
        "text", ["~~" * 50_000, "✅" * 50_000, "(done) " * 20_000, "[x] " * 20_000]
    )
    def test_hostile_headings_end(self, text: str) -> None:
        assert read_marks(text)[0]
        parse_plan(f"### {text}Sprint 1.2: A\n### Sprint 1.3: {text}\n")


class TestLostSprints:
    @pytest.mark.parametrize("name", LOST)
    def test_are_read_or_told_with_their_line_and_the_right_form(self, name: str) -> None:
        lines = LOST[name]
        plan = plan_with(lines)
        wanted = 7 + next(
            n for n, line in enumerate(lines.split("\n")) if "1.2" in line or "\uff11" in line
        )

        if name == "struck through, with a dash":
            assert [sprint.title for sprint in plan.skipped] == ["Login"]
            return
        if [sprint.number for sprint in plan.sprints] == ["1.1", "1.2"]:
            assert (plan.sprints[1].title, plan.findings) == ("Login", ())
            return
        assert plan.left_out == (wanted,)
        (finding,) = plan.findings
        assert finding.line == wanted
        assert finding.hint is not None
        assert finding.hint.startswith("write it as ### Sprint 1.2: ")

    @pytest.mark.parametrize(
        "line",
        ["- **Sprint 1.1: Setup** takes a day", "#### Sprint 1.1 Summary", "| Sprint 1.1 | 3 |"],
    )
    def test_a_mention_of_a_sprint_that_the_plan_has_is_none(self, line: str) -> None:
        assert plan_with(line).findings == ()

    @pytest.mark.parametrize(
        "line",
        [
            "### Two sprints at once (Sprint 1.1)",
            "### Backlog (after Sprint 4)",
            "### Stage one (2 weeks, Sprint 1-2)",
            "## Looking back at Sprint 1.1",
            "Sprint 1.1: see above",
            "| Sprint | Days |\n|---|---|\n| 1.1 | 3 |",
            "Sprint 1.2 - 1.4 are for later",
            "- [x] Phase 1 planning complete",
            "- [x] Sprint 1.1 report written",
        ],
    )
    def test_prose_about_sprints_is_none(self, line: str) -> None:
        assert plan_with(line).findings == ()

    @pytest.mark.parametrize("opening", ["<!-- not yet", "<pre>", "<style>", "<?php", "<![CDATA["])
    def test_html_that_is_never_closed_hides_none(self, opening: str) -> None:
        plan = plan_with(f"{opening}\n### Sprint 1.2: Login")

        (error,) = plan.findings
        assert (error.line, error.severity) == (7, "error")
        assert "never closed" in error.message

    @pytest.mark.parametrize("html", ["<!-- a\n-->", "<!-->", "<pre>\n</pre>", "<!doctype html>"])
    def test_html_that_is_closed_is_no_finding(self, html: str) -> None:
        assert plan_with(html).findings == ()

    @pytest.mark.parametrize(
        "fence", ["```\n{}\n```", "<!--\n{}\n-->", "- x\n\n  ```\n  {}\n  ```\n", "text\n\n    {}"]
    )
    def test_code_and_comments_are_not_searched(self, fence: str) -> None:
        assert plan_with(fence.format("- **Sprint 1.2: Login**")).findings == ()

    @pytest.mark.parametrize(
        "line",
        ["### Mini-Sprint 1.2: X", "### S1.2: X", "### Fix Sprint 2: X", "#### Sprint 2 - X"],
    )
    def test_are_told_under_other_names(self, line: str) -> None:
        plan = plan_with(line)

        assert (plan.left_out, [each.line for each in plan.findings]) == ((7,), [7])

    def test_front_matter_is_no_heading(self) -> None:
        text = "---\ntitle: Plan\nsprint: 1.2\nSprint 1.3: x\n---\n\n### Sprint 1.1: A\n- a\n"
        plan = parse_plan(text)

        assert [(each.number, each.line) for each in plan.sprints] == [("1.1", 7)]
        assert plan.findings == ()

    def test_rules_around_sprints_are_no_front_matter(self) -> None:
        plan = parse_plan("---\n## Phase 1\n### Sprint 1.1: A\n---\n")

        assert [each.number for each in plan.sprints] == ["1.1"]


BEFORE = ["", "🚀 ", "[x] ", "[ ] ", ":rocket: ", "WIP ", "DONE: ", "3. ", "<a id='x'></a>", "✅ "]
OPEN = ["", "**", "~~", "_", "`"]
LEAD = ["### ", "## ", "#### ", "###", "- ### ", "> ### ", "- ###", "- **", "1. **", "**", "# "]
TEXT = ["", "> ", "| ", "* ", "+ [ ] ", "<h3>", "*", "~~"]
"""Leads of lines that may be prose: without a colon, "Sprint 1.2 - 1.4 were hard" is no sprint."""
AFTER = [": T", " - T", "：T", " T", ": T (DONE)", ": T ✅", ": T (SKIPPED)", ":T", " : T"]


class TestLaws:
    @pytest.mark.slow
    @settings(max_examples=examples(500))
    @given(
        st.sampled_from([*LEAD, *TEXT, "\ufeff### ", "###\t", "   ### "]),
        st.sampled_from(BEFORE),
        st.sampled_from(OPEN),
        st.sampled_from(["Sprint", "sprint", "SPRINT", "Phase 1 / Sprint"]),
        st.sampled_from(AFTER),
        st.sampled_from(["\n", "\r\n"]),
    )
    def test_a_sprint_is_imported_or_named_with_its_line(
        self, lead: str, before: str, around: str, word: str, after: str, ending: str
    ) -> None:
        """Whatever is not imported is named in a finding with its line."""
        assume(after != " T" or lead not in ("# ", "#### ", *TEXT))  # prose: "# Sprint 3 plan"
        assume(after != " - T" or lead not in TEXT)
        assume(word.lower() == "sprint" or lead in ("### ", "## ", "#### "))
        assume(word.lower() == "sprint" or after != " T")
        assume(around != "**" or not lead.endswith("**"))
        bold = "**" if lead.endswith("**") else ""
        line = f"{lead}{before}{around}{word} 1.2{after}{around}{bold}"
        text = f"## Phase 1\n\n### Sprint 1.1: A\n\n- a\n\n{line}\n\ntext\n".replace("\n", ending)
        plan = parse_plan(text)

        imported = [each.line for each in plan.sprints]
        named = [each.line for each in plan.findings]
        assert imported[0] == 3
        assert 7 in imported or 7 in named, line
