"""`queen session`: the folder of a team on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hives import QuickQueen, exported, snapshot
from session_folders import (
    ALL,
    build,
    example_session,
    in_analysis,
    in_session,
    in_spec,
    role_named,
    without,
)


@pytest.fixture
def folder(repo: Path) -> Path:
    path = repo / ".workflow" / "TC-auth"
    build(path)
    return path


@pytest.fixture
def tracker(beads: Path) -> Path:
    return beads / "issues.jsonl"


class TestValidate:
    def test_the_documents_example_is_valid(self, quick: QuickQueen, tmp_path: Path) -> None:
        path = example_session(tmp_path)
        done = quick("session", "validate", f"--session={path}", cwd=tmp_path)
        assert (done.code, done.out) == (0, f"valid: {path}\n")

    def test_every_problem_is_shown_with_its_recovery_step(
        self, quick: QuickQueen, folder: Path
    ) -> None:
        without("task-analysis.json")(folder)
        in_spec("## Phase 2:", "## Phase 20:")(folder)
        done = quick("session", "validate", f"--session={folder}", "--json")
        assert done.code == 1
        told = [(one["message"], one["hint"]) for one in done.json["findings"]]
        assert told == [
            (
                "Invalid session: task-analysis.json missing",
                "Re-run team-coordinate with resume",
            ),
            (
                "Invalid role-spec: missing Phase 2 in role-specs/tester.md",
                "Manual fix or re-run team-coordinate",
            ),
        ]
        shown = quick("session", "validate", f"--session={folder}").out
        assert "error   Invalid session: task-analysis.json missing\n" in shown

    def test_a_warning_names_its_file_and_line(self, quick: QuickQueen, folder: Path) -> None:
        in_spec("prefix: TESTER", "prefix: QA")(folder)
        shown = quick("session", "validate", f"--session={folder}")
        assert shown.code == 0
        assert "warning role-specs/tester.md#prefix: prefix is 'QA', the session says" in shown.out

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ((), "Session required. Usage: --session=<path-to-TC-folder>"),
            (("--session=",), "Session required. Usage: --session=<path-to-TC-folder>"),
            (("--session=nope",), "Session directory not found: nope"),
        ],
    )
    def test_a_missing_session_is_reported_in_the_words_of_the_document(
        self, quick: QuickQueen, options: tuple[str, ...], said: str
    ) -> None:
        done = quick("session", "validate", *options, "--json")
        assert done.code == 1
        assert [one["message"] for one in done.json["findings"]] == [said]

    @pytest.mark.parametrize("name", ["../../etc/passwd", "..", "a/b", "a\\b"])
    def test_a_role_whose_name_leaves_the_folder_is_refused(
        self, quick: QuickQueen, folder: Path, name: str
    ) -> None:
        role_named(name)(folder)
        done = quick("session", "validate", f"--session={folder}")
        assert done.code == 1
        assert "the name leaves the folder" in done.out

    def test_a_yaml_alias_bomb_is_a_finding(self, quick: QuickQueen, folder: Path) -> None:
        bomb = "a: &a [x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n"
            for n in range(9)
        )
        in_spec("role: tester", f"role: tester\n{bomb}")(folder)
        done = quick("session", "validate", f"--session={folder}")
        assert done.code == 1
        assert "missing frontmatter" in done.out


class TestStatusAndImport:
    def test_tasks_become_beads_of_one_team_in_their_order(
        self, quick: QuickQueen, folder: Path, tracker: Path
    ) -> None:
        done = quick("session", "import", f"--session={folder}", "--json", as_="lead")
        assert [one["key"] for one in done.json["changes"]] == [
            "RESEARCH-001",
            "DEV-001",
            "TEST-001",
        ]
        rows = exported(tracker)
        assert {row["metadata"]["session_path"] for row in rows} == {".workflow/TC-auth"}
        (team,) = quick("bead", "ready", "--json").json
        assert team["team"] == "auth"
        assert [one["title"].partition(" ")[0] for one in team["beads"]] == ["RESEARCH-001"]
        again = quick("session", "import", f"--session={folder}", "--json", as_="lead")
        assert {one["action"] for one in again.json["changes"]} == {"keep"}
        assert len(exported(tracker)) == 3

    def test_goal_role_and_capability_of_a_task_are_kept(
        self, quick: QuickQueen, folder: Path, tracker: Path
    ) -> None:
        """In the shape that team-coordinate writes: the graph has only the order."""
        role = {"name": "researcher", "prefix": "RESEARCH", "role_spec": "role-specs/researcher.md"}
        in_session(roles=[role, *ALL[1:]])(folder)
        in_analysis(
            capabilities=[
                {
                    "name": "exploring",
                    "tasks": [{"id": "FIND-001", "description": "Find the seams"}],
                },
                {"name": "developer", "tasks": ["DEV-001"]},
            ],
            dependency_graph={
                "RESEARCH-001": [],
                "FIND-001": {"role": "researcher", "depends_on": []},
                "DEV-001": ["FIND-001"],
                "TEST-001": {"goal": "No test is red", "role": "tester"},
            },
        )(folder)
        quick("session", "import", str(folder), as_="lead")
        rows = {row["metadata"]["session_task"]: row for row in exported(tracker)}
        assert {
            name: tuple(row["metadata"][key] for key in ("goal", "role", "capability"))
            for name, row in rows.items()
        } == {
            "RESEARCH-001": (None, "researcher", None),
            "FIND-001": ("Find the seams", "researcher", "exploring"),
            "DEV-001": (None, "developer", "developer"),
            "TEST-001": ("No test is red", "tester", None),
        }
        assert rows["FIND-001"]["title"] == "FIND-001 (researcher): Find the seams"
        assert rows["FIND-001"]["description"].startswith("Find the seams\n\nAdd authentication\n")
        assert "\nCapability: exploring" in rows["FIND-001"]["description"]
        again = quick("session", "import", str(folder), "--json", as_="lead")
        assert {one["action"] for one in again.json["changes"]} == {"keep"}

    @pytest.mark.parametrize("command", ["validate", "status", "import"])
    def test_the_folder_is_an_argument_or_an_option(
        self, quick: QuickQueen, folder: Path, command: str
    ) -> None:
        argument = quick("session", command, str(folder), as_="lead")
        assert argument.code == 0
        option = quick("session", command, "--session", str(folder), as_="lead")
        if command != "import":
            assert argument.out == option.out
        both = quick("session", command, str(folder), f"--session={folder}", as_="lead")
        assert both.code == 2
        assert "not both" in both.err
        if command != "validate":
            neither = quick("session", command, as_="lead")
            assert neither.code == 2
            assert "try: give PATH, or --session=PATH" in neither.err

    def test_status_shows_what_the_session_and_its_beads_say(
        self, quick: QuickQueen, folder: Path
    ) -> None:
        def states() -> dict[str, str]:
            told = quick("session", "status", f"--session={folder}", "--json").json
            return {one["task"]: one["state"] for one in told["tasks"]}

        assert states() == {
            "RESEARCH-001": "ready", "DEV-001": "waiting", "TEST-001": "waiting",
        }  # fmt: skip
        done = quick("session", "import", f"--session={folder}", "--json", as_="lead")
        research, develop, _ = [one["id"] for one in done.json["changes"]]
        quick("claim", research, as_="ui")
        assert states()["RESEARCH-001"] == "active"
        assert quick("complete", research, as_="ui").code == 0
        assert states() == {
            "RESEARCH-001": "completed", "DEV-001": "ready", "TEST-001": "waiting",
        }  # fmt: skip
        assert [one["id"] for one in quick("issue", "ready", "--json").json] == [develop]

    def test_status_counts_tasks_that_only_the_beads_call_completed(
        self, quick: QuickQueen, folder: Path
    ) -> None:
        done = quick("session", "import", f"--session={folder}", "--json", as_="lead")
        research = done.json["changes"][0]["id"]
        quick("claim", research, as_="lead")
        quick("complete", research, as_="lead")
        told = quick("session", "status", f"--session={folder}", "--json").json
        assert told["completed_by_beads"] == ["RESEARCH-001"]
        assert told["tasks"][0]["bead"] == research
        shown = quick("session", "status", f"--session={folder}").out
        assert f"completed  {research}  [researcher]" in shown
        assert "1 completed only in the beads; team-session.json does not say so" in shown
        in_session(completed_tasks=["RESEARCH-001"])(folder)
        assert "only in the beads" not in quick("session", "status", f"--session={folder}").out

    def test_an_invalid_session_is_used_with_a_warning(
        self, quick: QuickQueen, folder: Path
    ) -> None:
        without("role-specs/tester.md")(folder)
        for command in ("status", "import"):
            done = quick("session", command, f"--session={folder}", as_="lead")
            assert done.code == 0
            assert f"not valid: queen session validate --session {folder}" in done.err

    def test_a_task_that_the_session_calls_completed_is_closed(
        self, quick: QuickQueen, folder: Path, tracker: Path
    ) -> None:
        quick("session", "import", f"--session={folder}", as_="lead")
        in_session(completed_tasks=["RESEARCH-001"])(folder)
        done = quick("session", "import", f"--session={folder}", "--json", as_="lead")
        assert [one["action"] for one in done.json["changes"]] == ["update", "keep", "keep"]
        assert [row["status"] for row in exported(tracker)] == ["closed", "open", "open"]

    def test_a_dry_run_writes_nothing(self, quick: QuickQueen, folder: Path, beads: Path) -> None:
        before = snapshot(beads)
        done = quick("session", "import", f"--session={folder}", "--dry-run")
        assert "3 would be added" in done.out
        assert snapshot(beads) == before

    def test_status_needs_no_hive(self, quick: QuickQueen, tmp_path: Path) -> None:
        path = example_session(tmp_path)
        done = quick("session", "status", f"--session={path}", cwd=tmp_path)
        assert (done.code, "0 of 3 tasks completed" in done.out) == (0, True)

    @pytest.mark.parametrize("command", ["status", "import"])
    def test_a_session_that_cannot_be_read_is_refused(
        self, quick: QuickQueen, folder: Path, command: str
    ) -> None:
        (folder / "team-session.json").write_text("{")
        refused = quick("session", command, f"--session={folder}", "--json", as_="lead")
        assert (refused.code, refused.error["code"]) == (7, "unreadable")
        assert refused.error["hint"] == f"queen session validate --session {folder}"
        refused = quick("session", command, "--session=nope", "--json", as_="lead")
        assert (refused.code, refused.error["code"]) == (4, "not_found")

    def test_a_graph_with_a_cycle_is_not_imported(
        self, quick: QuickQueen, folder: Path, beads: Path
    ) -> None:
        path = folder / "task-analysis.json"
        analysis = json.loads(path.read_text())
        analysis["dependency_graph"] = {"A": {"depends_on": ["B"]}, "B": {"depends_on": ["A"]}}
        path.write_text(json.dumps(analysis))
        before = snapshot(beads)
        refused = quick("session", "import", f"--session={folder}", "--json", as_="lead")
        assert (refused.code, refused.error["code"]) == (2, "invalid_graph")
        assert snapshot(beads) == before


class TestNew:
    def test_a_new_session_is_valid_and_can_be_imported(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        made = quick("session", "new", "Add login", "--role", "dev", "--role", "qa", "--json")
        path = made.json["session"]
        assert quick("session", "validate", f"--session={path}").code == 0
        done = quick("session", "import", f"--session={path}", "--json", as_="lead")
        assert [one["key"] for one in done.json["changes"]] == ["DEV-001", "QA-001"]

    def test_an_existing_session_is_not_overwritten(self, quick: QuickQueen, repo: Path) -> None:
        made = quick("session", "new", "Add login", "--dir", "work", "--json").json["session"]
        assert made.startswith("work/TC-add-login-")
        before = snapshot(repo / "work")
        assert quick("session", "new", "Add login", "--dir", "work").code == 5
        assert snapshot(repo / "work") == before

    @pytest.mark.parametrize("words", [("",), ("x", "--role", "../x"), ("x", "--role", "")])
    def test_invalid_arguments_make_no_session(
        self, quick: QuickQueen, repo: Path, words: tuple[str, ...]
    ) -> None:
        assert quick("session", "new", *words).code == 2
        assert [path.name for path in repo.glob("TC-*")] == []
