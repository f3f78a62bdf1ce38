"""Sessions at work: how far the tasks have come, beads for them, and a session made anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from session_folders import example_session, in_analysis, in_session, task_analysis
from stamps import parse_ms

from queenbee.documents.front_matter import read_front_matter
from queenbee.documents.issue_rows import RowImport, blocked_by
from queenbee.documents.sessions.folder import read_session_folder, write_session_folder
from queenbee.documents.sessions.session import Session, read_session, validate_session
from queenbee.documents.sessions.session_import import InvalidGraph, import_session
from queenbee.documents.sessions.skeleton import session_skeleton
from queenbee.documents.sessions.task_graph import Task, pipeline, read_tasks, render_pipeline
from queenbee.errors import InvalidInput, Unwritable
from queenbee.store.codec import encode

NOW = parse_ms("2026-02-27T10:00:00Z")
LATER = NOW + 60_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The document's example of a valid session, on disk."""
    return example_session(tmp_path)


def read(folder: Path) -> Session:
    return read_session(read_session_folder(str(folder)))


def states(session: Session) -> dict[str, str]:
    return {state.task.name: state.state for state in session.pipeline.tasks}


class TestGraph:
    @pytest.mark.parametrize(
        "graph",
        [
            {"A": {"depends_on": [], "role": "r"}, "B": {"depends_on": ["A"], "role": "r"}},
            [{"id": "A", "role": "r"}, {"id": "B", "depends_on": ["A"], "role": "r"}],
            [{"task_id": "A", "role": "r"}, {"task_id": "B", "dependencies": ["A"], "role": "r"}],
            [{"name": "A", "role": "r"}, {"name": "B", "blocked_by": "A", "role": "r"}],
            {"A": {"role": "r"}, "B": {"role": "r", "blockedBy": ["A"]}},
            {"A": {"role": "r"}, "B": {"role": "r", "dependsOn": {"A": "its tests"}}},
            {"A": {"role": "r"}, "B": {"role": "r", "depends-on": [{"task": "A"}]}},
            {"A": {"role": "r"}, "B": {"role": "r", "addBlockedBy": ["A"]}},
            {"A": {"role": "r"}, "B": {"role": "r", "deps": ["A"], "context_from": ["A"]}},
        ],
    )
    def test_is_an_object_or_a_list(self, graph: object) -> None:
        tasks, findings = read_tasks(graph, "x")

        assert tasks == [Task("A", (), "r"), Task("B", ("A",), "r")]
        assert findings == []

    def test_may_be_bare_lists_of_needs(self) -> None:
        assert read_tasks({"A": [], "B": ["A"]}, "x")[0] == [Task("A"), Task("B", ("A",))]

    @pytest.mark.parametrize(
        "entry", [{"after": ["A"]}, {"blocks": "A"}, {"depends_on": [7]}, {"depends_on": 7}]
    )
    def test_what_orders_work_and_is_not_read_is_an_error(
        self, entry: dict[str, object], folder: Path
    ) -> None:
        graph = {"A": {"role": "tester"}, "B": {"role": "tester", **entry}}
        (error,) = read_tasks(graph, "x")[1]
        assert (error.severity, error.path.startswith("x.B")) == ("error", True)

        in_analysis(dependency_graph=graph)(folder)
        assert error.message in [each.message for each in validate_session(str(folder))]
        with pytest.raises(InvalidGraph, match="dependency_graph"):
            import_session(read(folder), [], prefix="bd", actor="lead", now_ms=NOW)

    def test_has_the_goals_of_the_tasks_that_the_file_lists(self, folder: Path) -> None:
        graph = {"A": {"role": "tester"}, "B": {"role": "tester"}}
        listed = [{"id": "A", "description": "Test it"}, {"id": "B", "blockedBy": ["A"]}, "B"]
        in_analysis(dependency_graph=graph)(folder)
        in_session(tasks=listed)(folder)

        first, second = read(folder).tasks
        assert (first.goal, second.depends_on) == ("Test it", ("A",))
        in_analysis(dependency_graph={})(folder)
        in_session(tasks={"C": {"goal": "Ship"}}, pipeline={})(folder)
        assert [(task.name, task.goal) for task in read(folder).tasks] == [("C", "Ship")]

    @pytest.mark.parametrize("graph", [None, 3, "A", True])
    def test_of_another_shape_has_no_tasks(self, graph: object) -> None:
        assert read_tasks(graph, "x") == ([], [])


class TestPipeline:
    @pytest.mark.parametrize(
        "workers",
        [["DEV-001"], [{"task_id": "DEV-001", "role": "developer"}], [{"task": "DEV-001"}]],
    )
    def test_a_task_with_a_worker_is_active(self, workers: list[object], folder: Path) -> None:
        in_session(completed_tasks=["RESEARCH-001"], active_workers=workers)(folder)

        assert states(read(folder))["DEV-001"] == "active"

    def test_the_sessions_own_copy_serves_where_the_analysis_has_no_graph(
        self, folder: Path
    ) -> None:
        graph = task_analysis()["dependency_graph"]
        in_analysis(dependency_graph={})(folder)
        in_session(pipeline={"dependency_graph": graph})(folder)

        assert list(states(read(folder))) == ["RESEARCH-001", "DEV-001", "TEST-001"]

    def test_tasks_on_a_cycle_wait_and_say_for_what(self) -> None:
        found = pipeline([Task("A", ("B",)), Task("B", ("A",)), Task("C")], set(), set())

        assert [(state.task.name, state.state, state.waits_for) for state in found.tasks] == [
            ("C", "ready", ()),
            ("A", "waiting", ("B",)),
            ("B", "waiting", ("A",)),
        ]

    def test_escape_sequences_do_not_reach_the_terminal(self) -> None:
        assert "\x1b" not in render_pipeline(pipeline([Task("A\x1b[2J")], set(), set()))

    @settings(max_examples=examples(100))
    @given(
        st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 8), max_size=3)),
        st.sets(st.integers(0, 6)),
    )
    def test_a_task_is_ready_exactly_when_all_it_needs_is_completed(
        self, edges: dict[int, list[int]], done: set[int]
    ) -> None:
        tasks = [Task(str(task), tuple(map(str, needs))) for task, needs in edges.items()]
        completed = {str(task) for task in done}

        for state in pipeline(tasks, completed, set()).tasks:
            met = set(state.task.depends_on) <= completed
            assert (state.state == "ready") == (met and state.task.name not in completed)


class TestImport:
    def imported(
        self, session: Session, rows: list[dict[str, Any]] | None = None, now_ms: int = NOW
    ) -> RowImport:
        return import_session(session, rows or [], prefix="bd", actor="queen", now_ms=now_ms)

    def rows(self, found: RowImport) -> list[dict[str, Any]]:
        return [json.loads(encode(row)) for row in found.rows]

    def test_the_path_of_another_worktree_changes_nothing(self, folder: Path) -> None:
        rows = self.rows(self.imported(read(folder)))

        elsewhere = replace(read(folder), path="/elsewhere")

        assert self.imported(elsewhere, rows, LATER).rows == []

    def test_a_closed_bead_is_never_opened_again(self, folder: Path) -> None:
        rows = self.rows(self.imported(read(folder)))
        for row in rows:
            row |= {"status": "closed", "closed_at": "2026-02-27T10:00:30Z"}

        assert self.imported(read(folder), rows, LATER).rows == []

    def test_a_task_that_went_is_an_orphan(self, folder: Path) -> None:
        first = self.imported(read(folder))
        in_analysis(dependency_graph={"RESEARCH-001": {"depends_on": []}})(folder)

        again = self.imported(read(folder), self.rows(first), LATER)

        assert set(again.orphans) == {first.ids["DEV-001"], first.ids["TEST-001"]}

    def test_nothing_waits_for_a_task_that_went(self, folder: Path) -> None:
        first = self.imported(read(folder))
        graph = {"TEST-001": {"depends_on": ["DEV-001"]}, "DEV-001": {"depends_on": []}}
        in_analysis(dependency_graph=graph)(folder)

        again = self.imported(read(folder), self.rows(first), LATER)
        rows = {change.key: change.row for change in again.changes}

        assert blocked_by(rows["DEV-001"]) == []
        assert blocked_by(rows["TEST-001"]) == [again.ids["DEV-001"]]

    @pytest.mark.parametrize(
        ("graph", "message"),
        [
            ({"A": {"depends_on": ["B"]}, "B": {"depends_on": ["A"]}}, "a cycle: A waits for B"),
            ({"A": {"depends_on": ["Z"]}}, "A depends on Z, which is not a task"),
            ({}, "it has no tasks"),
        ],
    )
    def test_a_graph_that_cannot_be_worked_off_is_refused(
        self, graph: dict[str, Any], message: str, folder: Path
    ) -> None:
        in_analysis(dependency_graph=graph)(folder)

        with pytest.raises(InvalidGraph, match=message):
            self.imported(read(folder))

    def test_a_session_without_an_id_is_refused(self, folder: Path) -> None:
        with pytest.raises(InvalidGraph, match="no session_id"):
            self.imported(replace(read(folder), session_id=""))


class TestSkeleton:
    def made(self, parent: Path, task: str = "Add authentication", **options: Any) -> Path:
        skeleton = session_skeleton(task, now_ms=NOW, **options)
        path = parent / skeleton.folder
        write_session_folder(str(path), skeleton.files)
        return path

    def test_is_named_as_the_document_names_sessions(self, tmp_path: Path) -> None:
        assert self.made(tmp_path).name == "TC-add-authentication-2026-02-27"

    @pytest.mark.parametrize("role", ["true", "7", "007", "null", "No", "y", "1e3", "on", "0x1F"])
    def test_a_role_that_yaml_would_misread_is_still_valid(self, role: str, tmp_path: Path) -> None:
        assert validate_session(str(self.made(tmp_path, roles=[role]))) == []

    @pytest.mark.parametrize("task", ["日本語", "---", "a" * 500, 'a " \\ \n line', "../../x"])
    def test_any_task_makes_a_valid_session(self, task: str, tmp_path: Path) -> None:
        made = self.made(tmp_path, task)

        assert validate_session(str(made)) == []
        assert made.parent == tmp_path

    @pytest.mark.parametrize(
        "roles", [[], ["a/b"], [".."], [""], ["a b"], ["dev", "dev"], ["Dev", "dev"], ["a\n"]]
    )
    def test_roles_that_make_no_files_are_refused(self, roles: list[str]) -> None:
        with pytest.raises(InvalidInput):
            session_skeleton("task", now_ms=NOW, roles=roles)

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")

        with pytest.raises(Unwritable, match="cannot be created"):
            self.made(tmp_path / "file")

    @settings(max_examples=examples(50))
    @given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,12}", fullmatch=True))
    def test_every_role_name_reads_back_as_itself(self, role: str) -> None:
        spec = session_skeleton("task", now_ms=NOW, roles=[role]).files[f"role-specs/{role}.md"]

        fields = read_front_matter(spec.decode()).fields

        assert fields is not None
        assert fields["role"] == role
