"""Completing what has checks: they run first, and what follows from them follows as a whole."""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from acting import answer, command
from bead_files import ATTEMPT, JUDGEMENT, PLAN, put_bead, ralph_bead, sprint_row
from hives import Clock, QuickQueen, exported, git, records, snapshot, write_lines

import queenbee
from queenbee import Hive
from queenbee.errors import Conflict, InvalidInput, NotFound, NotYours, Unreadable


@pytest.fixture
def tracker(beads: Path) -> Path:
    return beads / "issues.jsonl"


@pytest.fixture
def bead(repo: Path) -> Path:
    """A bead of ui-engineer's whose one check needs a file."""
    return put_bead(repo, ralph_bead("gt-1", "test -e made"))


def finish(
    hive: Hive, issue_id: str = "gt-1", *, unverified: bool = False, reason: str | None = None
) -> dict[str, Any]:
    """Completes an issue by command, and returns what that prints; a refusal is raised."""
    options = ["--no-verify"] if unverified else []
    options += [f"--reason={reason}"] if reason is not None else []
    done: dict[str, Any] = answer(hive, "complete", issue_id, *options)
    return done


def is_completed(done: dict[str, Any]) -> bool:
    assert done["status"] in ("active", "completed")
    return bool(done["status"] == "completed")


def verify(hive: Hive, issue_id: str) -> dict[str, Any]:
    run: dict[str, Any] = answer(hive, "bead", "verify", issue_id)
    return run


def runs(beads: Path) -> list[dict[str, Any]]:
    return records(beads / "queen_verifications.jsonl")


class TestARalphBead:
    def test_is_claimed_by_its_id_where_only_known_issues_are(
        self, hive: Hive, bead: Path, tracker: Path
    ) -> None:
        write_lines(tracker, {"id": "qb-1", "title": "x"})
        assert hive.assignments.claim("gt-1").issue_id == "gt-1"
        with pytest.raises(NotFound):
            hive.assignments.claim("gt-2")

    def test_stays_as_it_is_while_a_check_fails(self, hive: Hive, bead: Path, beads: Path) -> None:
        hive.assignments.claim("gt-1")
        hive.reservations.reserve(["src/**"], issue_id="gt-1")
        done = finish(hive)
        assert not is_completed(done)
        assert done["verification"]["verdict"] == "failed"
        assert bead.exists()
        assert [each.status for each in hive.assignments.find(status="all")] == ["active"]
        assert [each.pattern for each in hive.reservations.find()] == ["src/**"]
        assert hive.messages.sent() == []

    def test_that_passes_is_moved_and_its_work_ends(
        self, hive: Hive, reviewer: Hive, bead: Path, repo: Path, beads: Path
    ) -> None:
        reviewer.assignments.assign("gt-1", "ui-engineer")
        hive.reservations.reserve(["src/**"], issue_id="gt-1")
        hive.reservations.reserve(["docs/**"], issue_id="")
        (repo / "made").touch()
        done = finish(hive)
        assert is_completed(done)
        assert done["reason"] == "verified: 1 check passed"
        assert not bead.exists()
        moved = json.loads((beads / "completed" / "gt-1.json").read_text())
        assert moved["status"] == "completed"
        assert [each.pattern for each in hive.reservations.find()] == ["docs/**"]
        (told,) = reviewer.messages.inbox()
        assert (told.subject, told.body) == (
            "[gt-1] Completed", "Completed by ui-engineer: verified: 1 check passed",
        )  # fmt: skip
        with pytest.raises(Conflict, match="was completed"):
            hive.assignments.claim("gt-1")

    def test_is_only_completed_by_who_may(self, hive: Hive, reviewer: Hive, bead: Path) -> None:
        hive.assignments.claim("gt-1")
        before = bead.read_bytes()
        with pytest.raises(NotYours):
            finish(reviewer)
        with pytest.raises(NotFound, match="there is no issue"):
            finish(hive, "gt-2")
        assert bead.read_bytes() == before

    def test_that_waits_for_something_is_not_completed(self, hive: Hive, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1", "touch ran", depends_on=["gt-0"]))
        hive.assignments.claim("gt-1", anyway=True)
        with pytest.raises(Conflict, match="gt-1 is blocked: gt-0 does not exist"):
            finish(hive)
        assert not (repo / "ran").exists()

    def test_without_a_check_is_not_completed_as_verified(self, hive: Hive, repo: Path) -> None:
        put_bead(repo, ralph_bead("gt-1"))
        hive.assignments.claim("gt-1")
        with pytest.raises(InvalidInput, match="cannot be verified"):
            finish(hive)
        assert is_completed(finish(hive, unverified=True, reason="by eye"))

    def test_that_an_interrupted_completion_left_completed_can_be_ended(
        self, hive: Hive, bead: Path, repo: Path, beads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hive.assignments.claim("gt-1")
        (repo / "made").touch()

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(type(hive.assignments), "complete", killed)
            assert command(hive, "complete", "gt-1").code == 130
        assert hive.assignments.active("gt-1") is not None
        assert is_completed(finish(hive))
        assert len(runs(beads)) == 1

    def test_that_cannot_be_read_is_not_passed_over(
        self, hive: Hive, bead: Path, tracker: Path
    ) -> None:
        write_lines(tracker, {"id": "gt-1", "title": "x", "status": "open"})
        hive.assignments.claim("gt-1")
        bead.write_text("{torn")
        for act in (finish, lambda hive: verify(hive, "gt-1")):
            with pytest.raises(Unreadable, match=r"gt-1\.json is not JSON"):
                act(hive)
        assert hive.assignments.active("gt-1") is not None

    def test_that_only_says_it_is_completed_is_still_checked(
        self, hive: Hive, bead: Path, repo: Path, beads: Path, clock: Clock
    ) -> None:
        (repo / "made").touch()
        verify(hive, "gt-1")
        (repo / "made").unlink()
        clock.advance(1)
        hive.assignments.claim("gt-1")
        bead.write_text(json.dumps({**json.loads(bead.read_text()), "status": "completed"}))
        assert not is_completed(finish(hive))
        assert json.loads(bead.read_text())["status"] == "in_progress"
        assert [run["verdict"] for run in runs(beads)] == ["passed", "failed"]

    def test_needs_its_evidence_where_it_says_so(
        self, hive: Hive, repo: Path, beads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bead = ralph_bead("gt-1", "true")
        bead["dod"]["evidence_required"] = True
        put_bead(repo, bead)
        hive.assignments.claim("gt-1")
        with pytest.raises(Conflict, match="requires evidence"):
            finish(hive, unverified=True, reason="in a hurry")
        assert not (beads / "queen_verifications.jsonl").exists()
        assert is_completed(finish(hive))


class TestARowOfTheTracker:
    """With a Definition of Done of its own, in `dod` or `metadata.dod`."""

    @pytest.fixture(params=["dod", "metadata"])
    def row(self, request: pytest.FixtureRequest, tracker: Path) -> dict[str, Any]:
        """A row whose one check needs a file."""
        dod = ralph_bead("qb-1", "test -e made")["dod"]
        beside = {"dod": dod} if request.param == "dod" else {"metadata": {"dod": dod}}
        row = {"id": "qb-1", "title": "x", "status": "open", "issue_type": "task", **beside}
        write_lines(tracker, row)
        return row

    def test_is_completed_only_if_its_checks_pass(
        self, hive: Hive, row: dict[str, Any], repo: Path, beads: Path, tracker: Path
    ) -> None:
        hive.assignments.claim("qb-1")
        assert verify(hive, "qb-1")["verdict"] == "failed"
        done = finish(hive, "qb-1")
        assert not is_completed(done) and hive.assignments.active("qb-1") is not None
        assert json.loads(tracker.read_text())["status"] == "open"
        (repo / "made").touch()
        assert is_completed(finish(hive, "qb-1"))
        (closed,) = exported(tracker)
        assert {**closed, "status": "open"}.items() >= row.items() and closed["status"] == "closed"
        assert [run["verdict"] for run in runs(beads)] == ["failed", "failed", "passed"]

    def test_is_a_bead_wherever_beads_are_shown(self, hive: Hive, row: dict[str, Any]) -> None:
        view = hive.documents.about("qb-1", hive.issues.get("qb-1"))
        assert view is not None and view["kind"] == "ralph"
        assert view["checks"] == [
            "1. check 1: sh -c test -e made (expects exit code 0, within 300 s)"
        ]
        assert view["file"] == ".beads/issues.jsonl"

    @pytest.mark.parametrize("dod", ["the tests pass", {}, {"verifiers": [{"name": "nothing"}]}])
    def test_that_cannot_be_read_blocks_completion_by_name(
        self, hive: Hive, tracker: Path, dod: object
    ) -> None:
        write_lines(tracker, {"id": "qb-1", "title": "x", "status": "open", "dod": dod})
        assert hive.issues.ready() == []
        hive.assignments.claim("qb-1", anyway=True)
        for more in ({}, {"unverified": True, "reason": "by eye"}):
            with pytest.raises(InvalidInput, match="the row of qb-1 is not a valid bead: dod"):
                finish(hive, "qb-1", **more)
        assert hive.assignments.active("qb-1") is not None

    def test_waits_for_the_gate_that_it_names(self, hive: Hive, tracker: Path) -> None:
        dod = ralph_bead("qb-1", "true")["dod"]
        row = {"id": "qb-1", "title": "x", "status": "open", "dod": dod, "phase_gate": "app/1"}
        write_lines(tracker, row)
        assert hive.issues.ready() == []
        hive.assignments.claim("qb-1", anyway=True)
        with pytest.raises(Conflict, match="app/1"):
            finish(hive, "qb-1")

    def test_has_the_same_checks_as_a_file_with_its_id(
        self, hive: Hive, tracker: Path, repo: Path
    ) -> None:
        put_bead(repo, ralph_bead("qb-1", "true"))
        row = {"id": "qb-1", "title": "x", "status": "open"}
        write_lines(tracker, {**row, "dod": ralph_bead("qb-1", "false")["dod"]})
        hive.assignments.claim("qb-1")
        with pytest.raises(Conflict, match="two Definitions of Done"):
            finish(hive, "qb-1")
        write_lines(tracker, {**row, "dod": ralph_bead("qb-1", "true")["dod"]})
        assert is_completed(finish(hive, "qb-1"))

    def test_is_what_a_loop_can_run_over(self, hive: Hive, row: dict[str, Any], repo: Path) -> None:
        outcome = answer(hive, "bead", "run", "qb-1", "--agent-cmd", "touch made")
        assert (outcome["status"], outcome["attempts"]) == ("completed", 1)
        assert hive.issues.get("qb-1").done


class TestWithoutItsChecks:
    def test_a_reason_is_needed_and_nothing_happens_without(
        self, hive: Hive, bead: Path, beads: Path
    ) -> None:
        hive.assignments.claim("gt-1")
        before = snapshot(beads)
        for reason in (None, "", "  "):
            with pytest.raises(InvalidInput, match="needs a reason"):
                finish(hive, unverified=True, reason=reason)
        assert snapshot(beads) == before

    def test_the_reason_is_recorded_and_reported(
        self, hive: Hive, reviewer: Hive, bead: Path, beads: Path
    ) -> None:
        reviewer.assignments.assign("gt-1", "ui-engineer")
        done = finish(hive, unverified=True, reason="the server is down")
        assert is_completed(done)
        (kept,) = runs(beads)
        assert (kept["verdict"], kept["reason"], kept["results"], kept["droid"]) == (
            "not_verified", "the server is down", [], "ui-engineer",
        )  # fmt: skip
        assert done["reason"] == "not verified: the server is down"
        assert "not verified: the server is down" in reviewer.messages.inbox()[0].body
        assert not bead.exists()

    def test_the_reason_is_shown(self, quick: QuickQueen, bead: Path) -> None:
        quick("claim", "gt-1", as_="ui")
        quick("complete", "gt-1", "--no-verify", "--reason", "the server is down", as_="ui")
        for words in (("show", "gt-1"), ("bead", "show", "gt-1")):
            assert ": not_verified, the server is down\n" in quick(*words).out

    def test_a_reason_that_looks_like_a_credential_changes_nothing(
        self, hive: Hive, bead: Path, beads: Path
    ) -> None:
        hive.assignments.claim("gt-1")
        before = snapshot(beads)
        with pytest.raises(InvalidInput, match="hold a secret"):
            finish(hive, unverified=True, reason="AKIAIOSFODNN7EXAMPLQ")
        assert snapshot(beads) == before

    def test_an_issue_without_checks_needs_none_of_it(
        self, hive: Hive, tracker: Path, beads: Path
    ) -> None:
        write_lines(tracker, {"id": "qb-1", "title": "x", "status": "open"})
        hive.assignments.claim("qb-1")
        done = finish(hive, "qb-1", reason="done")
        assert (is_completed(done), "verification" in done, done["reason"]) == (True, False, "done")
        row = exported(tracker)[-1]
        assert (row["status"], row["close_reason"]) == ("closed", "done")
        assert not (beads / "queen_verifications.jsonl").exists()


class TestASprintBead:
    @pytest.fixture
    def quickly(self, quick: QuickQueen, tracker: Path) -> QuickQueen:
        write_lines(tracker, sprint_row())
        quick.env["QUEEN_DROID"] = "ui"
        assert quick("claim", "bd-1").code == 0
        return quick

    def record(self, quick: QuickQueen, what: str, entry: dict[str, Any]) -> None:
        assert quick("bead", "record", what, "bd-1", json.dumps(entry)).code == 0

    def test_with_nothing_recorded_has_no_checks_and_is_closed(
        self, quickly: QuickQueen, tracker: Path
    ) -> None:
        (old,) = exported(tracker)
        assert quickly("complete", "bd-1").code == 0
        (new,) = exported(tracker)
        assert (new["status"], "closed_at" in new) == ("closed", True)
        assert {**new, "status": old["status"]} == {
            **old, "closed_at": new["closed_at"], "updated_at": new["updated_at"],
        }  # fmt: skip

    def test_is_held_to_the_judgement_of_its_agents(
        self, quickly: QuickQueen, tracker: Path, beads: Path
    ) -> None:
        self.record(quickly, "dev", ATTEMPT)
        unjudged = quickly("complete", "bd-1", "--json")
        assert unjudged.code == 1
        assert unjudged.json["status"] == "active"
        (result,) = unjudged.json["verification"]["results"]
        assert (result["status"], result["reason"]) == ("skipped", "has not judged attempt 1")
        self.record(quickly, "qa", {**JUDGEMENT, "status": "fail", "message": "test_x failed"})
        failed = quickly("complete", "bd-1")
        assert failed.code == 1
        assert "test_x failed" in failed.out
        self.record(quickly, "dev", ATTEMPT)
        self.record(quickly, "qa", JUDGEMENT)
        assert quickly("bead", "verify").code == 0  # The bead that the droid has.
        done = quickly("complete", "bd-1", "--json")
        assert (done.code, done.json["reason"]) == (0, "verified: 1 check passed")
        assert [one["verdict"] for one in runs(beads)] == ["failed", "failed", "passed", "passed"]
        assert exported(tracker)[-1]["status"] == "closed"

    def test_can_be_completed_without_its_judgements_for_a_reason(
        self, quickly: QuickQueen, beads: Path
    ) -> None:
        self.record(quickly, "dev", ATTEMPT)
        assert quickly("complete", "bd-1", "--no-verify").code == 2
        assert quickly("complete", "bd-1", "--no-verify", "--reason", "agreed").code == 0
        assert [(one["verdict"], one["reason"]) for one in runs(beads)] == [
            ("not_verified", "agreed")
        ]

    def test_takes_its_checks_from_the_ralph_bead_with_its_id(
        self, quickly: QuickQueen, repo: Path, tracker: Path, beads: Path
    ) -> None:
        put_bead(repo, ralph_bead("bd-1", "test -e made"))
        assert quickly("complete", "bd-1").code == 1
        (repo / "made").touch()
        assert quickly("complete", "bd-1").code == 0
        assert exported(tracker)[-1]["status"] == "closed"
        assert (beads / "completed" / "bd-1.json").exists()

    def test_is_closed_with_its_assignment_or_not_at_all(
        self, quickly: QuickQueen, tracker: Path, beads: Path
    ) -> None:
        before = tracker.read_bytes()
        (beads / "queen_messages.jsonl").unlink(missing_ok=True)
        ledger = beads / "queen_assignments.jsonl"
        ledger.rename(beads / "aside")
        ledger.mkdir()
        assert quickly("complete", "bd-1").code == 7
        assert tracker.read_bytes() == before

    def test_lets_the_next_one_begin(self, quick: QuickQueen, repo: Path, tracker: Path) -> None:
        (repo / "accounts.md").write_text(PLAN)
        quick.env["QUEEN_DROID"] = "ui"
        quick("plan", "import", "accounts.md")
        (first,) = [one["id"] for one in quick("issue", "ready", "--json").json]
        quick("claim", first)
        quick("complete", first)
        assert len(quick("issue", "ready", "--json").json) == 2


class TestPromises:
    @pytest.mark.slow
    def test_no_program_runs_under_a_lock(self, queen: Any, repo: Path) -> None:
        # The check is itself a writer of the hive: under its lock, or that of the documents, it
        # would wait for itself until both time out.
        put_bead(repo, ralph_bead("gt-1", "queen msg send ui hello && queen bead verify gt-2"))
        put_bead(repo, ralph_bead("gt-2", "true"))
        bead = json.loads((repo / ".beads/active/gt-1.json").read_text())
        bead["dod"]["verifiers"][0]["env"] = {"QUEEN_DROID": "qa"}
        shim = repo / "bin" / "queen"
        shim.parent.mkdir()
        shim.write_text(
            f"#!/bin/sh\nexec {sys.executable} -c "
            '"from queenbee.cli.main import main; main()" "$@"\n'
        )
        shim.chmod(0o755)
        put_bead(repo, bead)
        path = f"{shim.parent}:{os.environ['PATH']}"
        # A check sees few variables: not those in which the tests say that nothing is asked.
        git(repo, "config", "queenbee.trust", "all")
        queen("claim", "gt-1", as_="ui")
        done = queen("complete", "gt-1", as_="ui", env={"PATH": path})
        assert done.code == 0, done

    def test_nothing_here_reads_messages_so_no_command_comes_from_one(self) -> None:
        package = Path(str(queenbee.__file__)).parent
        named = {
            node.attr
            for folder in ("checks", "documents", "workflows")
            for path in (package / folder).rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute)
        }
        assert "assignments" in named
        assert "messages" not in named

    def test_a_message_that_looks_like_a_bead_runs_nothing(
        self, quick: QuickQueen, repo: Path, bead: Path
    ) -> None:
        evil = json.dumps(ralph_bead("gt-1", "touch owned"))
        quick("msg", "send", "ui", evil, "--issue", "gt-1", as_="mallory")
        quick("claim", "gt-1", as_="ui")
        quick("bead", "verify", "gt-1", as_="ui")
        quick("complete", "gt-1", as_="ui")
        quick("show", "gt-1", as_="ui")
        assert not (repo / "owned").exists()

    def test_a_hive_that_cannot_be_written_refuses(
        self, queen: Any, repo: Path, bead: Path
    ) -> None:
        queen("claim", "gt-1", as_="ui")
        state = repo / ".git" / "queenbee"
        for path in (state, *state.glob("hive.sqlite3*")):
            path.chmod(0o555)
        (repo / "made").touch()
        refused = queen("complete", "gt-1", "--json", as_="ui", unprivileged=True)
        assert refused.error["code"] in ("unwritable", "store")
        assert bead.exists()
