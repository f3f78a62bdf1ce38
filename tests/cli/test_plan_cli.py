"""`queen plan`: a Markdown plan on the command line, from check to beads."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from bead_files import FIXTURES, PLAN, ids_by_sprint, sprint_row
from hives import Queen, QuickQueen, commit_file, exported, git, snapshot, write_lines


@pytest.fixture
def plan(repo: Path) -> Path:
    path = repo / "plans" / "accounts.md"
    path.parent.mkdir()
    path.write_text(PLAN)
    return path


@pytest.fixture
def tracker(beads: Path) -> Path:
    return beads / "issues.jsonl"


class TestCheck:
    def test_a_plan_without_errors_is_valid(self, quick: QuickQueen, plan: Path) -> None:
        done = quick("plan", "check", str(plan), "--json")
        assert done.code == 0
        (checked,) = done.json
        assert checked["valid"] is True
        assert checked["sprints"] == ["1.1", "2.1a", "2.1b"]
        assert checked["phases"] == ["1", "2"]

    @pytest.mark.parametrize(
        ("old", "new", "line", "said"),
        [
            ("### Sprint 1.1: Setup", "###Sprint 1.1: Setup", 5, "is in no sprint"),
            ("### Sprint 2.1b: Page", "### Sprint 21b: Page", 21, "is in no sprint"),
            ("### Sprint 2.1b: Page", "### Sprint 2.1a: Page", 21, "is already defined in line 14"),
            ("### Sprint 2.1b: Page", "### Sprint 3.1: Page", 21, "belongs to phase 3"),
            ("- Build the page", "- Build it\n\n**Depends On:** 9.9", 21, "is not in this plan"),
        ],
    )  # fmt: skip
    def test_each_problem_is_shown_with_its_line(
        self, quick: QuickQueen, plan: Path, old: str, new: str, line: int, said: str
    ) -> None:
        assert old in PLAN
        plan.write_text(PLAN.replace(old, new))
        done = quick("plan", "check", str(plan), "--json")
        assert done.code == 1
        errors = [one for one in done.json[0]["findings"] if one["severity"] == "error"]
        assert [(one["line"], said in one["message"]) for one in errors][:1] == [(line, True)]
        assert f"{plan}:{line}:" in quick("plan", "check", str(plan)).out

    def test_agents_that_do_not_exist_are_reported(
        self, quick: QuickQueen, plan: Path, repo: Path
    ) -> None:
        plan.write_text(PLAN.replace("`claude`", "`backend-dev`", 1))
        assert quick("plan", "check", str(plan)).code == 0
        (repo / ".claude" / "agents").mkdir(parents=True)
        done = quick("plan", "check", str(plan))
        assert done.code == 1
        assert "Agent path '.claude/agents/backend-dev' does not exist" in done.out

    def test_a_plan_with_an_unknown_agent_is_not_imported(
        self, quick: QuickQueen, plan: Path, repo: Path, beads: Path
    ) -> None:
        plan.write_text(PLAN.replace("`claude`", "`backend-dev`", 1))
        agents = repo / "agents"
        agents.mkdir()
        before = snapshot(beads)
        command = ("plan", "import", str(plan), "--agents-dir", str(agents), "--json")
        refused = quick(*command, as_="planner")
        assert (refused.code, refused.error["code"]) == (2, "invalid_plan")
        assert "Agent path '.claude/agents/backend-dev' does not exist" in refused.error["message"]
        assert snapshot(beads) == before
        (agents / "backend-dev.md").write_text("# Backend\n")
        assert quick(*command, as_="planner").code == 0

    def test_a_plan_needs_no_hive(self, quick: QuickQueen, tmp_path: Path) -> None:
        (tmp_path / "plan.md").write_text(PLAN)
        assert quick("plan", "check", "plan.md", cwd=tmp_path).code == 0

    @pytest.mark.parametrize(("name", "code"), [("gone.md", 4), (".", 7), ("\0", 4)])
    def test_a_plan_that_is_not_a_file_is_refused(
        self, quick: QuickQueen, name: str, code: int
    ) -> None:
        for command in ("check", "graph", "import", "annotate"):
            assert quick("plan", command, name, as_="planner").code == code, command

    def test_several_plans_are_checked_at_once(self, quick: QuickQueen, plan: Path) -> None:
        bad = plan.with_name("bad.md")
        bad.write_text("# Sprints\n")
        done = quick("plan", "check", str(plan), str(bad), "--json")
        assert done.code == 1
        assert [(one["source"], one["valid"]) for one in done.json] == [
            (str(plan), True),
            (str(bad), False),
        ]
        assert f"not valid: {bad}" in quick("plan", "check", str(plan), str(bad)).out

    def test_a_plan_can_come_from_standard_input(self, quick: QuickQueen) -> None:
        done = quick("plan", "check", "-", stdin=PLAN)
        assert (done.code, "valid: standard input, 2 phases" in done.out) == (0, True)

    def test_valid_does_not_hide_what_looks_like_a_sprint(
        self, quick: QuickQueen, plan: Path
    ) -> None:
        plan.write_text(f"{PLAN}\n- **Sprint 2.2: Lost**\n")
        line = PLAN.count("\n") + 2
        done = quick("plan", "check", str(plan))
        assert done.code == 0
        assert done.out.endswith(f"left out: what looks like a sprint in line {line}\n")
        assert quick("plan", "check", str(plan), "--json").json[0]["left_out"] == [line]

    @pytest.mark.parametrize("line", ["- **Sprint 2.2: Lost**", "**Depends On:** luck"])
    def test_with_strict_a_plan_with_a_line_that_is_not_read_is_not_valid(
        self, quick: QuickQueen, plan: Path, line: str
    ) -> None:
        assert quick("plan", "check", str(plan), "--strict").code == 0
        plan.write_text(f"{PLAN}\n{line}\n")
        assert quick("plan", "check", str(plan)).code == 0

        done = quick("plan", "check", str(plan), "--strict")

        assert (done.code, f"not valid: {plan}" in done.out) == (1, True)

    def test_shows_for_each_sprint_whether_it_is_done_and_by_which_line(
        self, quick: QuickQueen, plan: Path
    ) -> None:
        plan.write_text(PLAN.replace("2.1a: API", "2.1a: API ✅"))
        done = quick("plan", "check", str(plan))
        line = plan.read_text().split("\n").index("### Sprint 2.1a: API ✅") + 1
        assert done.out.endswith(f"done: 2.1a, by its heading in line {line}\nopen: 1.1, 2.1b\n")

    def test_a_plan_that_cannot_be_read_does_not_hide_the_others(
        self, quick: QuickQueen, plan: Path
    ) -> None:
        done = quick("plan", "check", str(plan), "none.md", str(plan))
        assert done.code == 4
        assert done.out.count(f"\nvalid: {plan}") + done.out.startswith("valid:") == 2
        assert "not valid: none.md" in done.out

        values = quick("plan", "check", str(plan), "none.md", "--json").json
        assert [value["valid"] for value in values] == [True, False]


class TestGraph:
    def test_the_graph_shows_what_waits_for_what(self, quick: QuickQueen, plan: Path) -> None:
        shown = quick("plan", "graph", str(plan))
        assert "2.1a  API    after 1.1" in shown.out
        told = quick("plan", "graph", str(plan), "--json").json
        assert told["dependencies"] == {"1.1": [], "2.1a": ["1.1"], "2.1b": ["1.1"]}

    def test_the_graph_warns_that_sprints_may_be_missing(
        self, quick: QuickQueen, plan: Path
    ) -> None:
        assert quick("plan", "graph", str(plan)).err == ""
        plan.write_text(PLAN.replace("### Sprint 1.1: Setup", "###Sprint 1.1: Setup"))
        shown = quick("plan", "graph", str(plan))
        assert (shown.code, f"queen plan check {plan}" in shown.err) == (0, True)

    @pytest.mark.parametrize(("form", "begins"), [("mermaid", "flowchart LR"), ("dot", "digraph")])
    def test_the_graph_has_other_formats(
        self, quick: QuickQueen, plan: Path, form: str, begins: str
    ) -> None:
        assert quick("plan", "graph", str(plan), "--format", form).out.startswith(begins)


class TestImport:
    def test_import_makes_a_valid_bead_of_each_sprint(
        self, quick: QuickQueen, plan: Path, tracker: Path
    ) -> None:
        done = quick("plan", "import", str(plan), "--json", as_="planner")
        assert done.code == 0
        assert [one["action"] for one in done.json["changes"]] == ["add"] * 3
        ids = ids_by_sprint(tracker)
        assert [one["id"] for one in quick("issue", "ready", "--json").json] == [ids["1.1"]]
        assert quick("bead", "validate", str(tracker), "--strict").code == 0
        assert quick("claim", ids["1.1"], as_="ui").code == 0

    def test_import_prints_the_findings_of_check(self, quick: QuickQueen, plan: Path) -> None:
        plan.write_text(f"{PLAN}\n- **Sprint 2.2: Lost**\n")
        line = PLAN.count("\n") + 2
        shown = quick("plan", "import", str(plan), "--dry-run")
        assert (
            f"warning {plan}:{line}: '- **Sprint 2.2: Lost**' is read as a part of sprint 2.1b\n"
            "        try: write it as ### Sprint 2.2: Lost\n" in shown.out
        )
        told = quick("plan", "import", str(plan), "--dry-run", "--json").json
        assert line in [one["line"] for one in told["findings"]]

    def test_a_refused_import_prints_every_error(self, quick: QuickQueen, plan: Path) -> None:
        text = PLAN.replace("- Build the page", "- Build the page\n**Depends On:** 1.1 and 2.1Z")
        plan.write_text(text.replace("### Sprint 1.1: Setup", "###Sprint 1.1: Setup"))
        refused = quick("plan", "import", str(plan), as_="planner")
        assert refused.code == 2
        assert "'###Sprint 1.1: Setup' is in no sprint" in refused.out
        assert "nothing waits for '2.1Z'" in refused.out

    def test_a_hint_is_printed_once_and_a_sprint_told_once(
        self, quick: QuickQueen, plan: Path
    ) -> None:
        needs = "**Depends On:** the data, the design"
        plan.write_text(f"## Phase 1\n### Sprint 1.1: A\n{needs}\n### Sprint 1.2: B\n{needs}\n")
        shown = quick("plan", "check", str(plan)).out
        assert shown.count("nothing waits for 'the data', 'the design', which") == 2
        assert shown.count("try: write it as **Depends On:**") == 1

    def test_a_dry_run_shows_the_difference_and_writes_nothing(
        self, quick: QuickQueen, plan: Path, beads: Path
    ) -> None:
        before = snapshot(beads)
        done = quick("plan", "import", str(plan), "--dry-run")
        assert done.code == 0
        assert "3 would be added, 0 updated, 0 kept" in done.out
        assert snapshot(beads) == before

    def test_a_long_import_says_how_many_lines_it_left_out(
        self, quick: QuickQueen, plan: Path
    ) -> None:
        sprints = "".join(f"### Sprint 1.{n}: Part {n}\n\n- do it\n\n" for n in range(1, 103))
        plan.write_text(f"# Plan\n\n## Phase 1: All\n\n{sprints}")
        told = quick("plan", "import", str(plan), "--dry-run", as_="planner").out
        assert told.count("\n+ ") >= 101 and "more lines" not in told
        done = quick("plan", "import", str(plan), as_="planner").out
        assert done.endswith("\n… 2 more lines\n102 added, 0 updated, 0 kept\n"), done

    def test_importing_again_updates_only_changed_sprints(
        self, quick: QuickQueen, plan: Path, tracker: Path
    ) -> None:
        quick("plan", "import", str(plan), as_="planner")
        exported(tracker)
        before = tracker.read_bytes()
        assert quick("plan", "import", str(plan), as_="planner").code == 0
        exported(tracker)
        assert tracker.read_bytes() == before
        plan.write_text(PLAN.replace("Sprint 1.1: Setup", "Sprint 1.1: Groundwork"))
        done = quick("plan", "import", str(plan), "--json", as_="planner")
        assert [one["action"] for one in done.json["changes"]] == ["update", "keep", "keep"]
        changed = {one["path"]: one["new"] for one in done.json["changes"][0]["differences"]}
        assert changed["title"] == "Groundwork"
        assert exported(tracker)[0]["title"] == "Groundwork"
        assert tracker.read_bytes().splitlines()[1:] == before.splitlines()[1:]

    def test_an_import_keeps_the_rows_of_others_and_completes_a_torn_line(
        self, quick: QuickQueen, plan: Path, tracker: Path
    ) -> None:
        foreign = b'{"id":"qb-1","title":"foreign","weird":[1,2]}\r\n<<<<<<< HEAD\n{"id":"torn'
        tracker.write_bytes(foreign)
        assert quick("plan", "import", str(plan), as_="planner").code == 0
        assert quick("issue", "export").code == 0
        data = tracker.read_bytes()
        assert data.startswith(foreign + b"\n")
        rows = [json.loads(line) for line in data[len(foreign) + 1 :].splitlines()]
        assert [row["id"].partition("-")[0] for row in rows] == ["qb"] * 3

    def test_new_ids_have_the_most_common_prefix_or_the_given_one(
        self, quick: QuickQueen, plan: Path, tracker: Path
    ) -> None:
        write_lines(tracker, {"id": "my-app-a1.2"}, {"id": "my-app-b2"}, {"id": "qb-1"})
        done = quick("plan", "import", str(plan), "--json", "--dry-run")
        assert {one["id"].rpartition("-")[0] for one in done.json["changes"]} == {"my-app"}
        done = quick("plan", "import", str(plan), "--json", "--dry-run", "--prefix", "zz")
        assert {one["id"].rpartition("-")[0] for one in done.json["changes"]} == {"zz"}
        refused = quick("plan", "import", str(plan), "--dry-run", "--prefix", "1 x")
        assert refused.code == 2

    def test_a_plan_with_errors_is_not_imported(
        self, quick: QuickQueen, plan: Path, beads: Path
    ) -> None:
        plan.write_text(PLAN.replace("### Sprint 1.1: Setup", "###Sprint 1.1: Setup"))
        before = snapshot(beads)
        refused = quick("plan", "import", str(plan), "--json", as_="planner")
        assert (refused.code, refused.error["code"]) == (2, "invalid_plan")
        errors = [one for one in refused.error["findings"] if one["severity"] == "error"]
        assert [one["line"] for one in errors] == [5]
        assert snapshot(beads) == before

    def test_a_plan_outside_the_repository_is_refused(
        self, quick: QuickQueen, tmp_path: Path
    ) -> None:
        (tmp_path / "plan.md").write_text(PLAN)
        refused = quick("plan", "import", str(tmp_path / "plan.md"), as_="planner")
        assert refused.code == 2

    def test_a_person_imports_without_a_name(
        self, quick: QuickQueen, plan: Path, tracker: Path
    ) -> None:
        assert quick("plan", "import", str(plan)).code == 0
        assert {row["created_by"] for row in exported(tracker)} == {"human"}

    def test_two_clones_make_the_same_beads(
        self, quick: QuickQueen, plan: Path, repo: Path, tmp_path: Path, tracker: Path
    ) -> None:
        git(repo, "add", "plans")
        git(repo, "commit", "-qm", "plan")
        clone = tmp_path / "clone"
        git(tmp_path, "clone", "-q", str(repo), str(clone))
        (clone / ".beads").mkdir()
        quick("plan", "import", str(plan), as_="planner")
        quick("plan", "import", "plans/accounts.md", as_="other", cwd=clone)
        assert ids_by_sprint(tracker) == ids_by_sprint(clone / ".beads" / "issues.jsonl")

    def test_a_linked_worktree_imports_into_the_one_hive(
        self, quick: QuickQueen, repo: Path, tmp_path: Path, tracker: Path
    ) -> None:
        commit_file(repo, "plans/accounts.md", PLAN)
        tree = tmp_path / "feature"
        git(repo, "worktree", "add", "-q", str(tree))
        assert quick("plan", "import", "plans/accounts.md", as_="planner", cwd=tree).code == 0
        rows = exported(tracker)
        assert {row["metadata"]["plan_file"] for row in rows} == {"plans/accounts.md"}
        assert all(row["metadata"]["worktree_path"].startswith(f"{tmp_path}/repo-worktrees/")
                   for row in rows)  # fmt: skip

    def test_imports_at_the_same_time_make_each_bead_once(
        self, queen: Queen, plan: Path, tracker: Path
    ) -> None:
        threads = [
            threading.Thread(target=queen, args=("plan", "import", str(plan)), kwargs={"as_": who})
            for who in ("a", "b", "c", "d")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(exported(tracker)) == 3


class TestAnnotate:
    def test_annotate_writes_each_id_under_its_heading_once(
        self, quick: QuickQueen, plan: Path, tracker: Path
    ) -> None:
        quick("plan", "import", str(plan), as_="planner")
        assert quick("plan", "annotate", str(plan), "--dry-run", "--json").json["changed"] is True
        assert plan.read_text() == PLAN
        done = quick("plan", "annotate", str(plan), "--json")
        assert done.json["beads"] == ids_by_sprint(tracker)
        for sprint, identifier in done.json["beads"].items():
            below = plan.read_text().partition(f"### Sprint {sprint}:")[2].splitlines()[1]
            assert below == f"<!-- beads-ralph: {identifier} -->"
        before = plan.read_bytes()
        assert quick("plan", "annotate", str(plan), "--json").json["changed"] is False
        assert plan.read_bytes() == before
        assert quick("plan", "import", str(plan), "--json", as_="planner").json["changes"][0][
            "action"
        ] == "keep"  # fmt: skip

    def test_a_sprint_without_a_heading_is_reported(self, quick: QuickQueen, plan: Path) -> None:
        quick("plan", "import", str(plan), as_="planner")
        plan.write_text(PLAN.replace("### Sprint 1.1: Setup", "###Sprint 1.1: Setup"))
        done = quick("plan", "annotate", str(plan), "--json").json
        assert list(done["beads"]) == ["2.1a", "2.1b"]
        assert list(done["without_heading"]) == ["1.1"]
        assert "has no heading in the plan" in quick("plan", "annotate", str(plan)).out

    def test_a_plan_that_was_not_imported_cannot_be_annotated(
        self, quick: QuickQueen, plan: Path, tracker: Path
    ) -> None:
        refused = quick("plan", "annotate", str(plan), "--json")
        assert (refused.code, refused.error["hint"]) == (4, f"queen plan import {plan}")
        assert plan.read_text() == PLAN


def test_a_plan_with_every_field_can_be_imported_and_run(
    quick: QuickQueen, repo: Path, tracker: Path
) -> None:
    path = repo / "app.md"
    path.write_text((FIXTURES / "plans" / "app.md").read_text())
    write_lines(tracker, {"id": "bd-mailer", "title": "Mailer", "status": "open", "priority": 2})
    assert quick("plan", "check", "app.md").code == 0
    assert quick("plan", "import", "app.md", as_="planner").code == 0
    assert quick("issue", "export").code == 0
    strict = ("bead", "validate", ".beads/issues.jsonl", "--strict")
    assert "cannot be looked for, because there is no .claude/agents" in quick(*strict).out
    assert quick("bead", "validate", ".beads/issues.jsonl").code == 0
    agents = repo / ".claude" / "agents"
    agents.mkdir(parents=True)
    for name in ("backend-dev", "qa-unit-tests", "qa-security-scan"):
        (agents / f"{name}.md").write_text(f"# {name}\n")
    assert quick(*strict).code == 0
    assert quick("plan", "annotate", "app.md").code == 0
    found = quick("doctor", "--json").json
    assert [one for one in found if one["code"] != "attributes"] == []


def test_the_acceptance_criteria_of_a_bead_are_shown(
    quick: QuickQueen, plan: Path, tracker: Path
) -> None:
    plan.write_text(
        PLAN.replace("- Create the project", "- Create it\n\n**Acceptance Criteria:**\n- It runs")
    )
    quick("plan", "import", str(plan), as_="planner")
    bead = ids_by_sprint(tracker)["1.1"]
    for words in (("show",), ("bead", "show")):
        shown = quick(*words, bead).out
        assert "    - Create it\n\n    **Acceptance Criteria:**\n    - It runs\n" in shown


def test_the_hint_names_the_file_in_which_checks_are_looked_for(
    quick: QuickQueen, repo: Path, tmp_path: Path, tracker: Path
) -> None:
    commit_file(repo, "plans/accounts.md", PLAN)
    quick("plan", "import", "plans/accounts.md", as_="planner")
    tree = tmp_path / "feature"
    git(repo, "worktree", "add", "-q", str(tree))
    bead = ids_by_sprint(tracker)["1.1"]
    for words in (("bead", "verify", bead), ("bead", "run", bead, "--agent-cmd", "true")):
        refused = quick(*words, "--json", as_="ui", cwd=tree)
        assert refused.code == 2
        assert f" to {repo}/.beads/active/{bead}.json;" in refused.error["hint"]


def test_no_ready_issue_and_no_issue_are_reported_differently(
    quick: QuickQueen, beads: Path
) -> None:
    assert quick("issue", "ready").out == "No issues are ready.\n"
    assert quick("issues").out == "No issues.\n"


def test_beads_of_other_tools_break_no_command(
    quick: QuickQueen, plan: Path, tracker: Path
) -> None:
    write_lines(
        tracker,
        {"id": "x-1", "status": "open", "metadata": {"sprint": 5, "plan_file": ["x"]}},
        {"id": "x-2", "status": "open", "issue_type": "beads-ralph-work", "metadata": []},
        {"id": "x-3", "status": "open", "metadata": {"session_task": {}, "phase_gate": [[]]}},
        {**sprint_row("x-4"), "title": None},
        {
            **sprint_row("x-5"),
            "metadata": {
                "dev_agent_executions": [{"attempt": 1, "status": []}],
                "qa_agent_executions": [{"attempt": 1, "status": [], "agent_path": {}}],
                "qa_agents": [{"agent_path": []}, 5],
                "phase": {"a": 1},
                "plan_file": "a\0b",
            },
        },
    )
    for words in (
        ("issue", "ready",), ("bead", "list"), ("bead", "ready"), ("doctor",), ("issues",),
        ("plan", "import", str(plan), "--dry-run"), ("plan", "annotate", str(plan)),
        *(("show", f"x-{n}") for n in range(1, 6)),
        *(("bead", "show", f"x-{n}") for n in range(1, 6)),
        *(("bead", "verify", f"x-{n}") for n in range(1, 6)),
        ("bead", "validate", str(tracker)),
    ):  # fmt: skip
        assert quick(*words).code in (0, 1, 2, 4), words
