"""Ralph beads as issues of the hive, and what the doctor says of documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from acting import answer
from bead_files import PLAN, ids_by_sprint, put_bead, ralph_bead, sprint_row
from diagnoses import examine, repair
from hives import Queen, QuickQueen, git, snapshot, write_lines
from session_folders import build

from queenbee import Hive
from queenbee.documents.ralph import bead_files
from queenbee.errors import Conflict, Unwritable


@pytest.fixture
def tracker(beads: Path) -> Path:
    return beads / "issues.jsonl"


def ready(hive: Hive) -> list[str]:
    return [issue.id for issue in hive.issues.ready(actor="ui-engineer")]


class TestRalphBeadsAsIssues:
    @pytest.mark.parametrize("folder", [".ralph/beads", ".beads/active", ".beads/completed"])
    def test_are_found_in_all_three_folders(self, hive: Hive, repo: Path, folder: str) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"), folder)
        assert hive.issues.get("gt-1").fields["metadata"] == {"bead_file": f"{folder}/gt-1.json"}

    @pytest.mark.parametrize(
        ("status", "shown"),
        [
            (None, "open"),
            ("pending", "open"),
            ("in_progress", "in_progress"),
            ("completed", "closed"),
            ("failed", "failed"),
            ("blocked", "blocked"),
        ],
    )
    def test_have_the_trackers_statuses(
        self, hive: Hive, repo: Path, status: str | None, shown: str
    ) -> None:
        bead = ralph_bead("gt-1", "true")
        put_bead(repo, bead if status is None else {**bead, "status": status})
        assert hive.issues.get("gt-1").status == shown

    @pytest.mark.parametrize(
        ("more", "title", "priority", "kind"),
        [
            ({}, "do gt-1", 2, "task"),
            ({"title": "T", "priority": 0, "type": "gate"}, "T", 0, "gate"),
            ({"intent": "x" * 100, "priority": 5}, "x" * 79 + "…", 5, "task"),
            ({"intent": 5, "title": 5, "priority": "1", "type": 5}, "", 2, "task"),
            ({"priority": 1e300}, "do gt-1", 2, "task"),
            ({"priority": True}, "do gt-1", 2, "task"),
        ],
    )
    def test_are_read_whatever_they_hold(
        self, hive: Hive, repo: Path, more: dict[str, Any], title: str, priority: int, kind: str
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true", **more))
        issue = hive.issues.get("gt-1")
        assert (issue.title, issue.priority, issue.issue_type) == (title, priority, kind)

    @pytest.mark.parametrize(
        ("bead", "reason"),
        [
            (ralph_bead("gt-1", "true"), None),
            (ralph_bead("gt-1", "true", status="blocked"), None),
            (ralph_bead("gt-1", "true", depends_on=["gone"]), "gone does not exist"),
            (ralph_bead("gt-1", "true", depends_on=["qb-open"]), "qb-open is open"),
            (ralph_bead("gt-1", "true", depends_on=["qb-closed"]), None),
            (ralph_bead("gt-1", "true", depends_on=["qb-gone"]), None),
            (ralph_bead("gt-1", "true", status="blocked", depends_on=["qb-closed"]), None),
            ({"id": "gt-1", "intent": "x"}, "it is not valid: dod: is required, but missing"),
            (
                ralph_bead("gt-1", "true", dependencies=5),
                "it is not valid: dependencies: must be a list of bead ids",
            ),
        ],
    )
    def test_are_held_back_by_what_they_wait_for(
        self, hive: Hive, repo: Path, tracker: Path, bead: dict[str, Any], reason: str | None
    ) -> None:
        write_lines(
            tracker,
            {"id": "qb-open", "status": "open", "pinned": True},
            {"id": "qb-closed", "status": "closed"},
            {"id": "qb-gone", "status": "tombstone"},
        )
        put_bead(repo, bead)
        held = hive.documents.held_back(hive.issues.all())
        assert held.get("gt-1") == reason

    def test_that_failed_or_are_blocked_by_hand_are_not_ready(self, hive: Hive, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "true", status="failed"))
        put_bead(repo, ralph_bead("gt-2", "true", status="blocked"))
        put_bead(repo, ralph_bead("gt-3", "true"))
        assert ready(hive) == ["gt-3"]

    def test_hold_back_the_trackers_issues_that_wait_for_them(
        self, hive: Hive, repo: Path, tracker: Path
    ) -> None:
        row = {"id": "qb-1", "title": "x", "status": "open", "priority": 2}
        write_lines(tracker, {**row, "dependencies": ["gt-gate"]})
        path = put_bead(repo, ralph_bead("gt-gate", "true", type="gate"))
        assert ready(hive) == ["gt-gate"]
        path.write_text(json.dumps(ralph_bead("gt-gate", "true", status="completed")))
        assert ready(hive) == ["qb-1"]

    def test_are_followed_while_others_change_them(self, hive: Hive, repo: Path) -> None:
        assert ready(hive) == []
        path = put_bead(repo, ralph_bead("gt-1", "true"))
        assert ready(hive) == ["gt-1"]
        put_bead(repo, ralph_bead("gt-1", "true", status="failed"))
        assert ready(hive) == []
        path.unlink()
        assert ready(hive) == []

    def test_are_followed_beside_a_link_that_leads_nowhere(
        self, hive: Hive, repo: Path, beads: Path
    ) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "true"))
        (beads / "active" / "broken.json").symlink_to("nowhere")
        assert ready(hive) == ["gt-1"]
        path.unlink()
        assert ready(hive) == []

    def test_in_an_unreadable_folder_are_an_error(
        self, queen: Queen, repo: Path, beads: Path
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        (beads / "active").chmod(0o000)
        refused = queen("issue", "ready", "--json", unprivileged=True)
        (beads / "active").chmod(0o755)
        assert (refused.code, refused.error["code"]) == (7, "unreadable")

    def test_that_somebody_opened_again_are_offered_again(
        self, hive: Hive, repo: Path, quick: QuickQueen
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        quick("claim", "gt-1", as_="ui")
        assert quick("complete", "gt-1", as_="ui").code == 0
        assert ready(hive) == []
        (repo / ".beads/completed/gt-1.json").unlink()
        put_bead(repo, ralph_bead("gt-1", "true"))
        assert ready(hive) == ["gt-1"]

    def test_are_the_hives_and_not_the_worktrees(
        self, repo: Path, quick: QuickQueen, tmp_path: Path
    ) -> None:
        git(repo, "worktree", "add", "-q", str(tmp_path / "feature"))
        put_bead(repo, ralph_bead("gt-1", "pwd > where"))
        done = quick("bead", "verify", "gt-1", cwd=tmp_path / "feature")
        assert done.code == 0
        # What is verified is the tree that one works in.
        assert (tmp_path / "feature" / "where").read_text() == f"{tmp_path / 'feature'}\n"

    def test_of_one_that_two_files_hold_neither_is_completed(
        self, hive: Hive, repo: Path, quick: QuickQueen
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        put_bead(repo, ralph_bead("gt-1", "false"), ".ralph/beads")
        hive.assignments.claim("gt-1")
        refused = quick("complete", "gt-1", "--json", as_="ui-engineer")
        assert (refused.code, refused.error["code"]) == (5, "conflict")

    @pytest.mark.parametrize("name", ["../../../etc/passwd", "a/b", "..", "a\\b"])
    def test_whose_id_is_a_path_are_never_followed(
        self, repo: Path, quick: QuickQueen, name: str
    ) -> None:
        bead = ralph_bead(name, "touch owned")
        (repo / ".beads" / "active").mkdir()
        (repo / ".beads" / "active" / "x.json").write_text(json.dumps(bead))
        quick("claim", name, as_="ui")
        assert quick("complete", name, as_="ui").code in (2, 4)
        assert quick("bead", "verify", name, as_="ui").code in (2, 4)
        assert not (repo / "owned").exists()


def test_a_repository_without_documents_imports_nothing_of_them(repo: Path) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    program = (
        "import sys; from queenbee import Hive; hive = Hive.open('.', droid='ui'); "
        "hive.issues.ready(); hive.assignments.claim('qb-1'); "
        "print(*(name for name in sys.modules if name.startswith(('queenbee.checks.', "
        "'queenbee.documents.', 'queenbee.workflows.'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repo, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {
        "queenbee.workflows.complete_hive", "queenbee.workflows.document_answers",
        "queenbee.documents.folders",
    }  # fmt: skip


class TestAnIssueThatIsOpenWhileItsFileSaysCompleted:
    """Anybody can write that into the file, and the tracker decides."""

    def test_waits_for_a_person_to_see_what_its_checks_run(
        self, asking: Path, hive: Hive, repo: Path, tracker: Path, quick: QuickQueen
    ) -> None:
        write_lines(tracker, {"id": "gt-1", "title": "x", "status": "open"})
        put_bead(repo, {**ralph_bead("gt-1", "touch ran"), "status": "completed"})
        assert ready(hive) == []
        refused = quick("claim", "gt-1", as_="ui")
        assert refused.code == 5 and "nobody on this machine has seen" in refused.err
        asked = quick("config", "trust")
        assert asked.code == 5 and "touch ran" in asked.err
        assert "in a terminal" in asked.err and "queen config trust --yes" in asked.err
        assert quick("config", "trust", "--yes").code == 0
        assert ready(Hive.open(repo, droid="ui", env={})) == ["gt-1"]

    def test_is_on_hold_while_the_file_is_not_valid(
        self, hive: Hive, repo: Path, tracker: Path
    ) -> None:
        write_lines(tracker, {"id": "gt-1", "title": "x", "status": "open"})
        put_bead(repo, {"id": "gt-1", "status": "completed"})
        assert ready(hive) == []


class TestTheDoctor:
    @pytest.fixture(autouse=True)
    def _initialised(self, hive: Hive) -> None:
        answer(hive, "init")

    @pytest.fixture
    def found(self, hive: Hive) -> Callable[[], list[tuple[str, str]]]:
        def told() -> list[tuple[str, str]]:
            return [(each.code, each.severity) for each in examine(hive)]

        return told

    def test_finds_nothing_wrong_with_documents_in_use(self, quick: QuickQueen, repo: Path) -> None:
        (repo / "accounts.md").write_text(PLAN)
        build(repo / "TC-auth")
        put_bead(repo, ralph_bead("gt-1", "true"))
        put_bead(repo, ralph_bead("gt-2", "true"), ".ralph/beads")
        gate = ("--plan", "accounts.md", "--phase", "1")
        for words in (
            ("plan", "import", "accounts.md"), ("session", "import", "--session=TC-auth"),
            ("gate", "new", *gate), ("gate", "add-rule", *gate, "--test", "true"),
            ("gate", "run", *gate), ("bead", "verify", "gt-1"), ("claim", "gt-1"),
            ("complete", "gt-1"),
        ):  # fmt: skip
            assert quick(*words, as_="ui").code == 0
        assert examine(Hive.open(repo)) == []

    @pytest.mark.parametrize(
        ("path", "text", "code"),
        [
            (".beads/active/a.json", "{", "unreadable"),
            (".beads/active/a.json", "[]", "unreadable"),
            (".ralph/beads/a.json", '{"id": "a", "intent": "x"}', "bead"),
            (".claude/state/validation/phase_a_1.json", "{", "unreadable"),
            (".claude/state/validation/phase_a_1.json", "{}", "unreadable"),
            (".claude/state/validation/a.json", '{"metadata": {"phase_id": "p"}}', "unreadable"),
        ],
    )
    def test_finds_a_document_that_cannot_be_used(
        self,
        repo: Path,
        found: Callable[[], list[tuple[str, str]]],
        path: str,
        text: str,
        code: str,
    ) -> None:
        (repo / path).parent.mkdir(parents=True)
        (repo / path).write_text(text)
        assert set(found()) == {(code, "error")}

    def test_finds_duplicate_beads_and_gates(
        self, hive: Hive, repo: Path, quick: QuickQueen
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true"))
        put_bead(repo, ralph_bead("gt-1", "true"), ".ralph/beads")
        quick("gate", "new", "-w", "wf", "-p", "p")
        folder = repo / ".claude" / "state" / "validation"
        (folder / "other.json").write_bytes((folder / "phase_wf_p.json").read_bytes())
        assert [each.code for each in examine(hive)] == ["duplicate_bead", "duplicate_gate"]

    def test_names_the_file_of_a_bead_whose_id_is_a_path(self, hive: Hive, repo: Path) -> None:
        path = put_bead(repo, ralph_bead("gt-1", "true"))
        path.write_text(json.dumps(ralph_bead("../../x", "true")))
        (found,) = examine(hive)
        assert found.hint == f"queen bead validate {path}"

    def test_finds_a_sprint_bead_that_is_not_valid_in_the_tracker(
        self, hive: Hive, tracker: Path
    ) -> None:
        bad = sprint_row("bd-2", branch="a..b")
        closed = {**sprint_row("bd-3", branch="a..b"), "status": "closed"}
        write_lines(tracker, sprint_row("bd-1", plan_file=""), bad, closed)
        found = [each for each in examine(hive) if each.code == "bead"]
        assert [each.message.partition(":")[0] for each in found] == ["bd-1", "bd-2"]
        assert "metadata.branch" in found[1].message
        assert found[1].hint == "queen bead validate bd-2"

    def test_finds_issues_that_wait_for_one_another(self, hive: Hive, tracker: Path) -> None:
        rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2, 3)]
        write_lines(
            tracker,
            {**rows[0], "dependencies": ["qb-2"]},
            {**rows[1], "dependencies": ["qb-1"]},
            {**rows[2], "dependencies": ["qb-3"], "status": "closed"},
        )
        (found,) = [each for each in examine(hive) if each.code == "cycle"]
        assert found.message.startswith("a cycle: qb-1 waits for qb-2 waits for qb-1;")

    @pytest.mark.parametrize(
        ("annotated", "said"),
        [
            ("bd-nothere", "which does not exist"),
            ("2.1a", "which is another item's bead"),
        ],
    )
    def test_finds_an_annotation_that_names_another_bead(
        self, hive: Hive, repo: Path, tracker: Path, quick: QuickQueen, annotated: str, said: str
    ) -> None:
        plan = repo / "accounts.md"
        plan.write_text(PLAN)
        quick("plan", "import", "accounts.md", as_="ui")
        quick("plan", "annotate", "accounts.md")
        assert examine(hive) == []
        ids = ids_by_sprint(tracker)
        plan.write_text(plan.read_text().replace(ids["1.1"], ids.get(annotated, annotated), 1))
        (found,) = [each for each in examine(hive) if each.code == "annotation"]
        assert found.line == 5
        assert found.message.endswith(said)
        assert found.hint == f"queen plan annotate {plan}"
        assert quick("plan", "annotate", "accounts.md").code == 0
        assert examine(hive) == []

    def test_reports_a_bead_whose_sprint_is_gone(
        self, hive: Hive, repo: Path, tracker: Path, quick: QuickQueen
    ) -> None:
        (repo / "accounts.md").write_text(PLAN)
        quick("plan", "import", "accounts.md", as_="ui")
        (repo / "accounts.md").write_text(PLAN.partition("### Sprint 2.1b")[0])
        (found,) = examine(hive)
        assert (found.code, found.severity) == ("orphan", "note")
        assert ids_by_sprint(tracker)["2.1b"] in found.message

    def test_finds_the_plan_and_the_session_behind_beads(
        self, hive: Hive, repo: Path, quick: QuickQueen
    ) -> None:
        (repo / "accounts.md").write_text(PLAN)
        build(repo / "TC-auth")
        quick("plan", "import", "accounts.md", as_="ui")
        quick("session", "import", "--session=TC-auth", as_="ui")
        (repo / "accounts.md").write_text(PLAN + "\n### Sprint 1.1: Again\n")
        (repo / "TC-auth" / "task-analysis.json").unlink()
        found = {each.code: each for each in examine(hive)}
        assert found["plan"].severity == "error"
        assert found["session"].message.endswith("Invalid session: task-analysis.json missing")
        (repo / "accounts.md").unlink()
        for path in sorted((repo / "TC-auth").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (repo / "TC-auth").rmdir()
        assert {(each.code, each.severity) for each in examine(hive)} == {
            ("plan", "note"), ("session", "note"),
        }  # fmt: skip

    def test_finds_a_record_of_checks_that_says_nothing(self, hive: Hive, beads: Path) -> None:
        row = {"id": "qv-1", "created_at": "2024-12-14T10:00:00Z"}
        write_lines(beads / "queen_verifications.jsonl", row)
        (finding,) = examine(hive)
        assert finding.message == "qv-1: no subject_id and no verdict"

    def test_reports_three_errors_of_a_document_and_counts_the_rest(
        self, hive: Hive, repo: Path
    ) -> None:
        verifiers = [{"name": n} for n in range(5)]
        put_bead(repo, {"id": "gt-1", "intent": "x", "dod": {"verifiers": verifiers}})
        messages = [each.message for each in examine(hive)]
        assert len(messages) == 4
        assert messages[-1] == "and 2 more errors"

    def test_finishes_a_move_that_was_cut_off(
        self, hive: Hive, repo: Path, beads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put_bead(repo, ralph_bead("gt-1", "true", status="in_progress"))
        with monkeypatch.context() as patch, pytest.raises(Unwritable):
            hive.assignments.claim("gt-1")
            patch.setattr(bead_files, "_remove", Mock(side_effect=Unwritable("full")))
            answer(hive, "complete", "gt-1")
        assert [each.code for each in examine(hive)] == ["stale_copy"]
        assert [each.fixed for each in repair(hive)] == [True]
        assert not (beads / "active" / "gt-1.json").exists()
        assert json.loads((beads / "completed" / "gt-1.json").read_text())["status"] == "completed"

    def test_leaves_two_files_of_one_bead_that_no_move_left(self, hive: Hive, repo: Path) -> None:
        ours = put_bead(repo, ralph_bead("gt-1", "make test"))
        theirs = put_bead(repo, ralph_bead("gt-1", status="completed"), ".beads/completed")
        before = ours.read_bytes(), theirs.read_bytes()
        assert {(each.code, each.fixed) for each in repair(hive)} == {("duplicate_bead", False)}
        with pytest.raises(Conflict, match="in more than one file"):
            answer(hive, "complete", "gt-1")
        assert (ours.read_bytes(), theirs.read_bytes()) == before

    @pytest.mark.parametrize("how", ["absolute", "relative", "link"])
    def test_reads_no_plan_and_no_session_outside_of_the_tree(
        self, hive: Hive, repo: Path, tracker: Path, how: str
    ) -> None:
        outside = repo.parent / "private"
        outside.mkdir()
        (outside / "team-session.json").write_text("{secret")
        (outside / "plan.md").write_text(PLAN + "\n### Sprint 1.1: Again\n")
        (repo / "link").symlink_to(outside)
        at = {"absolute": str(outside), "relative": "../private", "link": "link"}[how]
        more = {"plan_file": f"{at}/plan.md", "plan_sprint_id": "1.1", "session_path": at}
        row = {"id": "qb-1", "title": "x", "status": "open", "priority": 2, "metadata": more}
        write_lines(tracker, row)
        assert {(each.code, each.severity) for each in examine(hive)} == {
            ("plan", "note"), ("session", "note"),
        }  # fmt: skip

    def test_changes_nothing_by_looking(self, hive: Hive, repo: Path, quick: QuickQueen) -> None:
        examine(hive)  # The first command notes who is there, and which settings were good.
        put_bead(repo, ralph_bead("gt-1", "true", status="in_progress"))
        put_bead(repo, ralph_bead("gt-1", "true", status="completed"), ".beads/completed")
        before = snapshot(repo)
        examine(hive)
        assert snapshot(repo) == before
        assert os.path.exists(repo / ".beads" / "active" / "gt-1.json")
