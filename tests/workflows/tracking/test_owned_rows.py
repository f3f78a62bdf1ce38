"""Issues that `bd` keeps in Dolt, or `br` in SQLite: read through it, claimed and closed in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import fake_beads
import pytest
from hives import QuickQueen, write_lines

from queenbee import Hive
from queenbee.errors import ExternalFailure, Taken
from queenbee.services.hive import Services
from queenbee.services.work.taking import Begin
from queenbee.workflows.owning import owner

BOTH = pytest.mark.parametrize("bd", ["bd", "br"], indirect=True)
BR = pytest.mark.parametrize("bd", ["br"], indirect=True)


STANDING = {"state", "holder", "waits_for", "because"}


@pytest.fixture
def bd(
    request: pytest.FixtureRequest, beads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A `bd`, or `br`, with two issues, the second after the first; no `issues.jsonl` of `bd`."""
    name = getattr(request, "param", "bd")
    fake_beads.install(tmp_path / "bin", name)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("BD_CALLS", str(tmp_path / "calls"))
    (tmp_path / "calls").touch()
    (beads / "issues.jsonl").unlink(missing_ok=True)
    needs = [{"issue_id": "app-2", "depends_on_id": "app-1", "type": "blocks"}]
    fake_beads.fill(beads, {"id": "app-1", "title": "One"},
                    {"id": "app-2", "title": "Two", "dependencies": needs}, name=name)  # fmt: skip
    return beads


def calls(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]


def change(beads: Path, issue_id: str, **fields: Any) -> None:
    """Changes an issue as somebody else's `bd` would."""
    found = fake_beads.rows(beads)
    found[issue_id].update(fields)
    name = "br" if (beads / "beads.db").exists() else "bd"
    fake_beads.fill(beads, *found.values(), name=name)


class TestReading:
    def test_the_program_is_asked_once_until_its_database_changes(
        self, quick: QuickQueen, bd: Path, tmp_path: Path
    ) -> None:
        for _ in range(3):
            assert "app-1" in quick("issues", as_="ui").out
        assert calls(tmp_path) == [["--readonly", "export", "--all"]]
        change(bd, "app-1", status="closed")
        assert [each["id"] for each in quick("issue", "ready", "--json").json] == ["app-2"]
        assert len(calls(tmp_path)) == 2

    def test_an_old_export_beside_it_does_not_count(self, quick: QuickQueen, bd: Path) -> None:
        write_lines(bd / "issues.jsonl", {"id": "app-9", "title": "Old", "status": "open"})
        assert {each["id"] for each in quick("issues", "--json").json} == {"app-1", "app-2"}

    def test_memories_of_the_program_are_not_kept(self, hive: Hive, bd: Path) -> None:
        assert {*hive.issues.all()} == {"app-1", "app-2"}
        assert b"private" not in Path(hive.rows_path()).read_bytes()
        assert hive.issues.unusable_lines == []

    def test_an_older_version_is_asked_in_its_words(
        self, quick: QuickQueen, bd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BD_OLD", "1")
        assert len(quick("issues", "--json").json) == 2
        assert calls(tmp_path)[-1] == ["export"]

    def test_nothing_is_asked_by_the_edit_hook_or_in_a_turn_at_writing(
        self, hive: Hive, bd: Path, tmp_path: Path
    ) -> None:
        with hive.transaction():
            hive.issues.all()
        Services.open(bd.parent, droid="ui-engineer").issues.all()
        assert calls(tmp_path) == []

    @pytest.mark.parametrize("trouble", ["BD_FAILS", "BD_HALF", "PATH", "clone"])
    def test_what_cannot_be_asked_is_said_and_nobody_takes_an_issue_by_it(
        self,
        quick: QuickQueen,
        bd: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        trouble: str,
    ) -> None:
        assert quick("issues", as_="ui").err == ""
        change(bd, "app-1", title="Changed")
        if trouble == "clone":
            (bd / "embeddeddolt").rename(bd / "elsewhere")
        else:
            value = {"BD_FAILS": "export", "BD_HALF": "1", "PATH": "/usr/bin:/bin"}[trouble]
            monkeypatch.setenv(trouble, value)
        for command in (["issues"], ["issue", "ready"], ["show", "app-1"]):
            shown = quick(*command, as_="ui")
            assert "One" in shown.out
            assert "these rows are bd's" in shown.err
        for command in (["next"], ["claim", "app-1"]):
            refused = quick(*command, as_="ui")
            assert refused.code == 8
            assert "the issues are bd's, which cannot be asked" in refused.err
        if trouble == "clone":
            assert len(calls(tmp_path)) == 1
        assert "owner_not_asked" in [each["code"] for each in quick("doctor", "--json").json]

    def test_a_program_that_hangs_is_given_up(
        self, quick: QuickQueen, bd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(owner, "_TIMEOUT_S", 0.3)
        monkeypatch.setenv("BD_SLEEPS", "20")
        refused = quick("issues", as_="ui")
        assert (refused.code, "timed out after 0.3 s" in refused.err) == (8, True)
        again = quick("issues", as_="ui")
        assert "did not answer in time a moment ago" in again.err
        assert len(calls(tmp_path)) <= 1

    def test_where_nothing_is_known_that_is_no_empty_list(
        self, quick: QuickQueen, bd: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        assert "bd, which is not installed here" in quick("status", as_="ui").err
        shown = quick("issues", as_="ui")
        assert (shown.code, shown.out) == (8, "")
        assert "bd, which is not installed here" in shown.err

    def test_doctor_says_where_the_rows_are_from(self, quick: QuickQueen, bd: Path) -> None:
        found = {each["code"]: each for each in quick("doctor", "--json").json}
        assert found["owned_elsewhere"]["severity"] == "note"


class TestOwnStatuses:
    @pytest.fixture(autouse=True)
    def rows(self, bd: Path) -> None:
        change(bd, "app-1", status="shipped", description='of {"status": "qa"}')

    def test_one_that_means_done_is_shown_as_it_is_and_keeps_nobody_waiting(
        self, quick: QuickQueen, bd: Path
    ) -> None:
        assert [each["id"] for each in quick("issue", "ready", "--json").json] == ["app-2"]
        assert "shipped" in quick("show", "app-1").out
        (shown,) = quick("issues", "--status", "shipped", "--json").json
        assert (shown["id"], shown["state"]) == ("app-1", "done")
        assert quick("issue", "list", "--status", "shipped", "--format", "json").json == [
            {name: value for name, value in shown.items() if name not in STANDING}
        ]

    def test_any_other_one_is_on_hold(self, quick: QuickQueen, bd: Path) -> None:
        assert quick("issue", "edit", "app-1", "--status", "qa", as_="ui").code == 0
        assert fake_beads.rows(bd)["app-1"]["status"] == "qa"
        assert quick("issue", "edit", "app-1", "--status", "closed", as_="ui").code == 2
        assert quick("issue", "ready", "--json").json == []
        assert "its status is qa" in quick("issues").out

    def test_only_the_own_status_counts(self, quick: QuickQueen, bd: Path) -> None:
        change(bd, "app-1", status="qa", metadata={"status": "shipped"})
        assert quick("issue", "ready", "--json").json == []

    def test_an_older_version_knows_none(
        self, quick: QuickQueen, bd: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BD_OLD", "1")
        assert quick("issue", "ready", "--json").json == []
        assert "its status is shipped" in quick("issues").out


@BR
class TestOfBr:
    def test_the_file_is_read_and_nobody_is_asked(
        self, quick: QuickQueen, bd: Path, tmp_path: Path
    ) -> None:
        os.utime(bd / "beads.db", ns=(0, 0))
        assert {each["id"] for each in quick("issues", "--json").json} == {"app-1", "app-2"}
        assert calls(tmp_path) == []

    def test_a_database_that_is_not_written_to_the_file_is_once(
        self, quick: QuickQueen, bd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BR_NO_FLUSH", "1")
        change(bd, "app-1", status="closed")
        for _ in range(2):
            assert [each["id"] for each in quick("issue", "ready", "--json").json] == ["app-2"]
        assert calls(tmp_path) == [["sync", "--flush-only"]]
        assert quick("next", "--json", as_="ui-engineer").json["issue_id"] == "app-2"
        assert fake_beads.rows(bd)["app-2"]["assignee"] == "ui-engineer"

    def test_one_that_cannot_be_written_is_said_and_nobody_takes_an_issue_by_it(
        self, quick: QuickQueen, bd: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BR_NO_FLUSH", "1")
        monkeypatch.setenv("BD_FAILS", "sync")
        change(bd, "app-1", title="Changed")
        shown = quick("issues", as_="ui")
        assert ("One" in shown.out, "these rows are br's" in shown.err) == (True, True)
        refused = quick("claim", "app-1", as_="ui")
        assert (refused.code, "br's, which cannot be asked" in refused.err) == (8, True)

    def test_its_history_shows_it_where_both_are_installed(
        self, quick: QuickQueen, bd: Path, tmp_path: Path
    ) -> None:
        fake_beads.install(tmp_path / "bin", "bd")
        quick("claim", "app-1", as_="ui-engineer")
        assert fake_beads.rows(bd)["app-1"]["assignee"] == "ui-engineer"

    def test_without_its_database_a_claim_is_the_hives(
        self, quick: QuickQueen, bd: Path, tmp_path: Path
    ) -> None:
        (bd / "beads.db").unlink()
        assert quick("claim", "app-1", as_="ui-engineer").code == 0
        assert calls(tmp_path) == []

    def test_a_new_issue_is_made_in_its_words(self, quick: QuickQueen, bd: Path) -> None:
        assert (
            quick("issue", "new", "Three", "--acceptance", "it runs", as_="ui").out == "app-new\n"
        )
        assert fake_beads.rows(bd)["app-new"]["acceptance_criteria"] == "it runs"
        refused = quick("issue", "new", "Four", "--id", "app-4", as_="ui")
        assert (refused.code, "br gives issues their ids itself" in refused.err) == (2, True)


class TestWriting:
    @BOTH
    def test_a_claim_is_made_in_it_and_given_back(
        self, quick: QuickQueen, bd: Path, tmp_path: Path
    ) -> None:
        assert quick("next", "--json", as_="ui-engineer").json["issue_id"] == "app-1"
        row = fake_beads.rows(bd)["app-1"]
        assert (row["assignee"], row["status"]) == ("ui-engineer", "in_progress")
        assert ["--actor=ui-engineer", "update", "--claim", "--", "app-1"] in calls(tmp_path)
        quick("release", "app-1", as_="ui-engineer")
        row = fake_beads.rows(bd)["app-1"]
        assert (row["assignee"], row["status"]) == ("", "open")

    @BOTH
    def test_an_issue_is_handed_on_in_it(self, quick: QuickQueen, bd: Path) -> None:
        quick("claim", "app-1", as_="ui-engineer")
        quick("issue", "assign", "app-1", "reviewer", "--force", as_="ui-engineer")
        assert fake_beads.rows(bd)["app-1"]["assignee"] == "reviewer"

    @BOTH
    def test_an_issue_that_waits_is_taken_by_force(self, quick: QuickQueen, bd: Path) -> None:
        assert quick("claim", "app-2", "--force", as_="ui-engineer").code == 0
        assert fake_beads.rows(bd)["app-2"]["assignee"] == "ui-engineer"

    def test_an_issue_that_somebody_has_there_is_taken(self, hive: Hive, bd: Path) -> None:
        hive.issues.all()
        copy = Path(hive.rows_path())
        before = copy.read_bytes()
        change(bd, "app-1", assignee="eve", status="in_progress")
        hive.owned._copy.put(before, hive.owned._copy.mark(), hive.now_ms())
        with pytest.raises(Taken, match="app-1 is eve's in bd"):
            hive.assignments.claim("app-1")
        assert hive.assignments.find(status="all") == []
        assert fake_beads.rows(bd)["app-1"]["assignee"] == "eve"

    def test_next_goes_on_with_another_issue(self, hive: Hive, bd: Path) -> None:
        change(bd, "app-2", dependencies=[])
        hive.issues.all()
        before = Path(hive.rows_path()).read_bytes()
        change(bd, "app-1", assignee="eve", status="in_progress")
        hive.owned._copy.put(before, hive.owned._copy.mark(), hive.now_ms())
        taken = hive.next()
        assert isinstance(taken, Begin)
        assert taken.assignment.issue_id == "app-2"
        assert [each.issue_id for each in hive.assignments.find(status="all")] == ["app-2"]

    @BOTH
    def test_a_claim_that_it_does_not_make_does_not_remain(
        self, hive: Hive, bd: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BD_FAILS", "update")
        with pytest.raises(ExternalFailure, match=r"app-1 was not claimed: .*is locked"):
            hive.assignments.claim("app-1")
        assert hive.assignments.active("app-1") is None
        monkeypatch.delenv("BD_FAILS")
        assert hive.assignments.claim("app-1").droid == "ui-engineer"

    @BOTH
    def test_what_is_made_closed_and_completed_is_seen_at_once(
        self, quick: QuickQueen, bd: Path
    ) -> None:
        assert quick("issue", "new", "Three", as_="ui-engineer").out == "app-new\n"
        assert quick("show", "app-new", as_="ui-engineer").code == 0
        shown = quick("issue", "close", "app-new", "--reason", "no", as_="ui-engineer")
        assert "app-new is closed" in shown.out
        quick("claim", "app-1", as_="ui-engineer")
        done = quick("complete", "app-1", "--json", as_="ui-engineer").json
        assert done["unblocked"] == ["app-2"]
        assert fake_beads.rows(bd)["app-1"]["status"] == "closed"

    @BOTH
    def test_two_agents_work_off_ten_issues(self, quick: QuickQueen, bd: Path) -> None:
        name = "br" if (bd / "beads.db").exists() else "bd"
        ten = ({"id": f"app-{n}", "title": f"N{n}"} for n in range(10))
        fake_beads.fill(bd, *ten, name=name)
        taken: list[str] = []
        for turn in range(10):
            droid = ("ui-engineer", "reviewer")[turn % 2]
            issue_id = quick("next", "--json", as_=droid).json["issue_id"]
            taken.append(issue_id)
            row = fake_beads.rows(bd)[issue_id]
            assert (row["assignee"], row["status"]) == (droid, "in_progress")
            assert quick("complete", issue_id, as_=droid).code == 0
            assert fake_beads.rows(bd)[issue_id]["status"] == "closed"
        assert len({*taken}) == 10
        assert quick("next", as_="reviewer").out.startswith("Everything is done")


def test_the_fake_is_as_strict_as_the_program(bd: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "bd"
    assert os.access(program, os.X_OK)
    assert os.system(f"cd {bd.parent} && {program} --actor=a update --claim -- app-1") == 0
    assert os.system(f"cd {bd.parent} && {program} --actor=b update --claim -- app-1 2>&1") != 0
    assert os.system(f"cd {bd.parent} && {program} close -- app-2 2>&1") != 0
