"""Which bead belongs to which sprint, after the plan and its beads have both changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from stamps import parse_ms

from queenbee.documents.issue_rows import RowImport, blocked_by, close_row
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.plan_import import InvalidPlan, import_plan
from queenbee.documents.plans.rows import PlanSetting
from queenbee.documents.plans.source_text import annotate_plan

NOW = parse_ms("2026-02-07T10:00:00Z")
SETTING = PlanSetting("plans/a.md", "/home/you/app", "app", "bd", "planner")
PLAN = "## Phase 1\n### Sprint 1.1: Setup\n- set up\n### Sprint 1.2: Login\n- write the login\n"


def imported(text: str, rows: list[dict[str, Any]], **changes: Any) -> RowImport:
    setting = replace(SETTING, **changes)
    return import_plan(parse_plan(text), rows, setting=setting, now_ms=NOW)


def refusal(text: str, rows: list[dict[str, Any]], **changes: Any) -> InvalidPlan:
    with pytest.raises(InvalidPlan) as caught:
        imported(text, rows, **changes)
    return caught.value


def first_import(text: str = PLAN, **changes: Any) -> tuple[str, list[dict[str, Any]]]:
    """Returns the annotated plan and the rows of its beads."""
    found = imported(text, [], **changes)
    return annotate_plan(text, found.ids), list(found.rows)


def renumbered(annotated: str) -> str:
    """Returns the plan with a new sprint 1.2; the old one, with its annotation, is 1.3."""
    text = annotated.replace("### Sprint 1.2: Login", "### Sprint 1.3: Login")
    return text.replace("### Sprint 1.3", "### Sprint 1.2: Review\n- review\n### Sprint 1.3")


def done(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [close_row(row, NOW + 1) for row in rows]


def by_sprint(found: RowImport) -> dict[str, dict[str, Any]]:
    return {change.key: change.row for change in found.changes}


class TestRenumbering:
    @pytest.mark.parametrize("annotate", [True, False])
    def test_leading_zeros_make_no_other_sprint(self, annotate: bool) -> None:
        """`1.02` is `1.2`: a second bead for it would let work be done twice."""
        annotated, rows = first_import()
        rows = done(rows)
        text = (annotated if annotate else PLAN).replace("Sprint 1.2", "Sprint 1.02")

        found = imported(text, rows)

        assert [change.kind for change in found.changes] == ["keep", "update"]
        assert by_sprint(found)["1.02"]["id"] == rows[1]["id"]
        assert by_sprint(found)["1.02"]["status"] == "closed"

    def test_open_beads_follow_their_annotations(self) -> None:
        text, rows = first_import()
        found = by_sprint(imported(renumbered(text), rows))

        assert found["1.3"]["id"] == rows[1]["id"]
        assert found["1.3"]["title"] == "Login"
        assert found["1.3"]["metadata"]["plan_sprint_id"] == "1.3"
        assert found["1.2"]["id"] not in {row["id"] for row in rows}
        assert blocked_by(found["1.3"]) == [found["1.2"]["id"]]

    def test_a_finished_bead_is_never_given_to_other_work(self) -> None:
        text, rows = first_import()
        error = refusal(renumbered(text), done(rows))

        assert f"{rows[1]['id']} (closed) was made from sprint 1.2" in error.message
        assert "its annotation is under sprint 1.3" in error.message
        assert error.hint is not None
        assert "queen plan import plans/a.md --accept" in error.hint

    def test_accepted_the_finished_bead_moves_and_the_new_sprint_is_open(self) -> None:
        text, rows = first_import()
        found = by_sprint(imported(renumbered(text), done(rows), accept=True))

        assert (found["1.3"]["id"], found["1.3"]["status"]) == (rows[1]["id"], "closed")
        assert (found["1.2"]["title"], found["1.2"]["status"]) == ("Review", "open")

    @pytest.mark.parametrize(
        ("change", "state"),
        [
            ({"status": "in_progress"}, "in_progress"),
            ({"status": "blocked"}, "blocked"),
            ({"metadata": {"attempt_count": 1}}, "has run"),
            ({"metadata": {"pr_url": "https://example.com/pull/1"}}, "has run"),
            ({"metadata": {"dev_agent_executions": [{"attempt": 1}]}}, "has run"),
            ({"claimed": True}, "claimed"),
        ],
    )
    def test_so_is_a_bead_that_somebody_has_begun(self, change: dict[str, Any], state: str) -> None:
        text, rows = first_import()
        claimed = {rows[1]["id"]} if change.pop("claimed", False) else ()
        metadata = rows[1]["metadata"] | change.pop("metadata", {})
        begun = rows[1] | change | {"metadata": metadata}

        error = refusal(renumbered(text), [rows[0], begun], claimed=claimed)

        assert f"({state}) was made from sprint 1.2" in error.message

    def test_two_sprints_that_changed_places_keep_their_beads(self) -> None:
        text, rows = first_import()
        one, two = "Sprint 1.1: Setup", "Sprint 1.2: Login"
        swapped = text.replace(one, "X").replace(two, "Sprint 1.1: Login")
        swapped = swapped.replace("X", "Sprint 1.2: Setup")

        assert imported(swapped, rows).ids == {"1.1": rows[1]["id"], "1.2": rows[0]["id"]}
        assert "and 1 more" in refusal(swapped, done(rows)).message

    def test_the_number_decides_where_nothing_is_annotated(self) -> None:
        _, rows = first_import()

        assert imported(PLAN.replace("Login", "Sign-in"), rows).ids["1.2"] == rows[1]["id"]


class TestWithoutAnnotations:
    def test_a_finished_bead_does_not_become_a_sprint_with_another_title(self) -> None:
        _, rows = first_import()
        error = refusal(renumbered(PLAN), done(rows))

        assert f"{rows[1]['id']} (closed) was made from 'Login'" in error.message
        assert "sprint 1.2 is now 'Review'" in error.message
        assert error.hint is not None
        assert f"write <!-- beads-ralph: {rows[1]['id']} -->" in error.hint

    def test_the_hint_solves_it(self) -> None:
        _, rows = first_import()
        note = f"<!-- beads-ralph: {rows[1]['id']} -->\n"
        text = renumbered(PLAN).replace("1.3: Login\n", f"1.3: Login\n{note}")

        found = by_sprint(imported(text, done(rows), accept=True))

        assert (found["1.3"]["id"], found["1.2"]["status"]) == (rows[1]["id"], "open")

    def test_accepted_the_number_decides(self) -> None:
        _, rows = first_import()
        text = PLAN.replace("Login", "Sign-in")

        assert refusal(text, done(rows)).code == "invalid_plan"
        assert imported(text, done(rows), accept=True).ids["1.2"] == rows[1]["id"]

    def test_a_title_edited_in_the_tracker_is_no_contradiction(self) -> None:
        _, rows = first_import()
        edited = [{**row, "title": f"[app] {row['title']}"} for row in done(rows)]

        assert imported(PLAN, edited).ids["1.2"] == rows[1]["id"]


class TestContradictions:
    def test_one_bead_under_two_sprints_is_an_error_that_names_both(self) -> None:
        text, rows = first_import()
        copied = text + f"### Sprint 1.3: More\n<!-- beads-ralph: {rows[1]['id']} -->\n- more\n"

        (error,) = [each for each in check_plan(parse_plan(copied)) if each.severity == "error"]

        assert error.message == f"{rows[1]['id']} is annotated here and under sprint 1.2"
        assert error.line == 8
        assert refusal(copied, rows).code == "invalid_plan"

    def test_two_beads_under_one_sprint_are_an_error_that_names_both(self) -> None:
        text = "### Sprint 1.1: A\n<!-- beads-ralph: bd-a -->\n<!-- beads-ralph: bd-b -->\n- a\n"

        (error,) = [each for each in check_plan(parse_plan(text)) if each.severity == "error"]

        assert "bd-a and bd-b" in error.message

    def test_the_same_annotation_twice_under_one_sprint_is_none(self) -> None:
        text = "### Sprint 1.1: A\n<!-- beads-ralph: bd-a -->\n<!-- beads-ralph: bd-a -->\n- a\n"

        assert all(each.severity == "warning" for each in check_plan(parse_plan(text)))

    def test_a_renamed_plan_keeps_its_beads_although_it_was_renumbered(self) -> None:
        text, rows = first_import()
        found = imported(renumbered(text), rows, plan_file="plans/b.md")

        assert found.ids["1.3"] == rows[1]["id"]

    def test_an_annotation_with_an_issue_that_no_plan_made_is_an_error(self) -> None:
        text = PLAN.replace("Setup\n", "Setup\n<!-- beads-ralph: bd-9 -->\n")
        error = refusal(text, [{"id": "bd-9", "title": "other"}])

        assert "bd-9, which is not the bead of a sprint" in error.message

    def test_an_id_that_an_annotation_gives_to_another_sprint_is_not_used(self) -> None:
        text, rows = first_import()
        found = imported(renumbered(text), [])

        assert found.ids["1.2"] != rows[1]["id"]
        assert found.ids["1.1"] == rows[0]["id"]


class TestPlaces:
    """Two plans, or two sprints, must not share a branch, a worktree and a team."""

    def test_a_second_plan_with_the_same_sprints_has_its_own_places(self) -> None:
        _, rows = first_import()
        other = imported(PLAN, rows, plan_file="plans/b.md")
        mine, theirs = (
            [row["metadata"][name] for name in ("branch", "worktree_path", "team_name")]
            for row in (rows[0], other.changes[0].row)
        )

        assert mine == ["sprint/1-1-setup", "/home/you/app-worktrees/sprint/1-1-setup", TEAM]
        assert theirs[0] == "sprint/b-1-1-setup"
        assert set(mine).isdisjoint(theirs)

    def test_so_has_a_third_one_with_the_same_file_name(self) -> None:
        rows: list[dict[str, Any]] = []
        for file in ("a/plan.md", "b/plan.md", "c/plan.md"):
            rows += imported(PLAN, rows, plan_file=file).rows

        for name in ("branch", "worktree_path", "team_name"):
            assert len({row["metadata"][name] for row in rows}) == 6

    def test_they_stay_at_the_next_import(self) -> None:
        _, rows = first_import()
        rows += imported(PLAN, rows, plan_file="plans/b.md").rows

        assert imported(PLAN, rows).rows == imported(PLAN, rows, plan_file="plans/b.md").rows == []

    def test_a_stated_branch_of_another_plans_bead_is_an_error_that_names_it(self) -> None:
        text = PLAN.replace("Setup\n", "Setup\n**Branch:** x\n\n")
        _, rows = first_import(text)

        error = refusal(text, rows, plan_file="plans/b.md")

        assert (
            f"has the branch x, which {rows[0]['id']} (sprint 1.1 of plans/a.md)" in error.message
        )
        assert error.hint == "give it another **Branch:**"  # A prefix does not change this branch.

    def test_that_of_a_finished_bead_may_be_used_again(self) -> None:
        text = PLAN.replace("Setup\n", "Setup\n**Branch:** x\n\n")
        _, rows = first_import(text)

        assert imported(text, done(rows), plan_file="plans/b.md").ids

    def test_beads_that_a_merge_brought_together_are_a_warning(self) -> None:
        _, rows = first_import()
        rows += imported(PLAN, [], plan_file="plans/b.md").rows

        told = [each for each in imported(PLAN, rows).findings if "branch" in each.path]
        assert {each.severity for each in told} == {"warning"}
        assert len(told) == 2

    def test_a_moved_bead_keeps_its_branch_and_the_new_sprint_gets_another(self) -> None:
        text, rows = first_import()
        again = renumbered(text).replace("1.2: Review", "1.2: Login")
        found = by_sprint(imported(again, rows))

        assert found["1.3"]["metadata"]["branch"] == "sprint/1-2-login"
        assert found["1.2"]["metadata"]["branch"] == "sprint/a-1-2-login"


TEAM = "sprint-1.1-setup"


@pytest.mark.parametrize("annotated", [True, False])
def test_no_finished_bead_becomes_other_work(annotated: bool) -> None:
    text, rows = first_import()
    rows = done(rows)
    try:
        found = imported(renumbered(text if annotated else PLAN), rows, accept=annotated)
    except InvalidPlan:
        closed = ["Setup", "Login"]
    else:
        closed = [row["title"] for row in by_sprint(found).values() if row["status"] == "closed"]
    assert set(closed) == {"Setup", "Login"}


class TestLaws:
    @pytest.mark.slow
    @settings(max_examples=examples(200))
    @given(st.permutations(["1.1", "1.2", "1.3"]), st.sets(st.integers(0, 2)), st.booleans())
    def test_a_closed_bead_stays_with_its_heading_or_the_import_is_refused(
        self, numbers: list[str], closed: set[int], accept: bool
    ) -> None:
        plan = "".join(f"### Sprint 1.{n}: T{n}\n- t\n" for n in (1, 2, 3))
        text, rows = first_import(plan)
        now = [close_row(row, NOW + 1) if n in closed else row for n, row in enumerate(rows)]
        for n, number in enumerate(numbers, 1):
            text = text.replace(f"Sprint 1.{n}: T{n}", f"Sprint {number}: T{n}")
        moved = {n for n, number in enumerate(numbers) if number != f"1.{n + 1}"}
        if moved & closed and not accept:
            assert refusal(text, now).code == "invalid_plan"
            return
        found = imported(text, now, accept=accept)
        assert found.ids == {number: rows[n]["id"] for n, number in enumerate(numbers)}
