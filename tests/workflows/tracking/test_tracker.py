"""`queen issue`: rows in Beads' own format, or a call of the program that owns the file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from acting import answer
from hives import Clock, QuickQueen, exported, git, records, snapshot, write_lines
from stamps import format_ms
from trackers import NewIssue, Tracker

from queenbee import Hive
from queenbee.errors import (
    Conflict,
    ExternalFailure,
    InvalidInput,
    NotFound,
    Taken,
    Unreadable,
    Untrusted,
)
from queenbee.git import landed
from queenbee.store.trust import Proposal, Trust

FOREIGN = {
    "id": "qb-1",
    "title": "Button",
    "status": "open",
    "priority": 1,
    "external_ref": "gh-9",
    "created_at": "2024-12-01T00:00:00.123456789+01:00",
    "updated_at": "2024-12-02T00:00:00Z",
    "big": 12345678901234567890123,
}


@pytest.fixture
def file(beads: Path) -> Path:
    path = beads / "issues.jsonl"
    write_lines(path, FOREIGN, {"id": "qb-2", "title": "Form", "status": "open"})
    return path


def current(file: Path, issue_id: str) -> dict[str, object]:
    return {row["id"]: row for row in exported(file)}[issue_id]


class TestWithoutAnOwner:
    def test_an_issue_whose_row_cannot_be_read_names_the_command_that_says_why(
        self, hive: Hive, file: Path
    ) -> None:
        file.write_text(f'{file.read_text()}{{"id":"qb-9","priority":1e400}}\n')
        with pytest.raises(Unreadable, match=r"row of qb-9 in .* cannot be read") as refusal:
            Tracker(hive).edit("qb-9", title="Mended")
        assert refusal.value.hint == "queen doctor"

    def test_an_issue_is_added_in_the_form_of_beads(self, hive: Hive, file: Path) -> None:
        made = Tracker(hive).new(
            NewIssue(
                "Search",
                description="A field.",
                priority=0,
                labels=["ui"],
                estimate=30,
                depends_on=["qb-1"],
                parent="qb-2",
            )
        )
        row = exported(file)[-1]
        assert made == row["id"]
        assert made.startswith("qb-")
        assert (row["title"], row["status"], row["priority"]) == ("Search", "open", 0)
        assert (row["labels"], row["estimated_minutes"]) == (["ui"], 30)
        needs = [(one["depends_on_id"], one["type"]) for one in row["dependencies"]]
        assert needs == [("qb-1", "blocks"), ("qb-2", "parent-child")]

    def test_a_person_needs_no_name_to_describe_work(
        self, quick: QuickQueen, hive: Hive, file: Path
    ) -> None:
        assert quick("issue", "new", "Search", "--id", "sea-1").out == "sea-1\n"
        assert quick("issue", "edit", "sea-1", "--priority", "1").code == 0
        (row,) = (each for each in exported(file) if each["id"] == "sea-1")
        assert (row["created_by"], row["priority"]) == ("human", 1)
        assert quick("claim", "sea-1").code == 2

    def test_the_first_issue_needs_no_file(self, hive: Hive, beads: Path) -> None:
        made = Tracker(hive).new(NewIssue("Search"))
        assert [row["id"] for row in exported(beads / "issues.jsonl")] == [made]
        assert [each.id for each in hive.issues.ready()] == [made]

    def test_two_issues_of_one_title_have_two_ids(self, hive: Hive) -> None:
        assert Tracker(hive).new(NewIssue("Search")) != Tracker(hive).new(NewIssue("Search"))

    def test_others_rows_keep_every_field_and_their_order(self, hive: Hive, file: Path) -> None:
        before = file.read_bytes().splitlines()
        Tracker(hive).edit("qb-1", title="Big button")
        row = exported(file)[0]
        assert file.read_bytes().splitlines()[1:] == before[1:]
        assert list(row) == list(FOREIGN)
        assert {**row, "updated_at": 0} == {**FOREIGN, "title": "Big button", "updated_at": 0}

    def test_a_reference_that_another_issue_has_is_left_out(self, hive: Hive, file: Path) -> None:
        hive.issues.rows()
        with hive.transaction() as tx:
            hive.issues.put(tx, {"id": "qb-2", "title": "Form", "external_ref": "gh-9"})
            hive.issues.put(tx, {**FOREIGN, "title": "B"})
        assert [row.get("external_ref") for row in exported(file)] == ["gh-9", None]

    def test_closing_and_opening_again_is_what_beads_writes(self, hive: Hive, file: Path) -> None:
        assert Tracker(hive).close("qb-1", reason="not needed").done
        row = current(file, "qb-1")
        assert (row["status"], row["close_reason"]) == ("closed", "not needed")
        assert not Tracker(hive).reopen("qb-1").done
        again = current(file, "qb-1")
        assert again["status"] == "open"
        assert not {"closed_at", "close_reason"} & set(again)

    def test_an_issue_that_gets_another_status_is_not_closed_any_more(
        self, hive: Hive, file: Path
    ) -> None:
        Tracker(hive).close("qb-1", reason="done")
        Tracker(hive).edit("qb-1", status="in_progress")
        assert not {"closed_at", "close_reason"} & {*current(file, "qb-1")}

    def test_repeating_changes_nothing(self, hive: Hive, file: Path, beads: Path) -> None:
        Tracker(hive).close("qb-1")
        Tracker(hive).depend("qb-2", ["qb-1"])
        before = snapshot(beads)
        Tracker(hive).close("qb-1")
        Tracker(hive).reopen("qb-2")
        assert snapshot(beads) == before

    def test_what_was_completed_here_can_be_opened_again_by_a_clock_set_back(
        self, hive: Hive, file: Path, clock: Clock
    ) -> None:
        hive.assignments.claim("qb-1")
        hive.assignments.complete("qb-1")
        clock.advance(-60)
        assert not Tracker(hive).reopen("qb-1").done

    def test_editing_what_was_completed_here_does_not_open_it(
        self, hive: Hive, file: Path, clock: Clock
    ) -> None:
        hive.assignments.claim("qb-1")
        hive.assignments.complete("qb-1")
        clock.advance(60)
        assert Tracker(hive).edit("qb-1", title="Big button").done
        assert current(file, "qb-1")["status"] == "closed"

    def test_a_deleted_issue_is_a_tombstone(self, hive: Hive, file: Path) -> None:
        gone = Tracker(hive).delete("qb-1", reason="twice")
        row = current(file, "qb-1")
        assert gone.status == row["status"] == "tombstone"
        assert (row["deleted_by"], row["delete_reason"]) == ("ui-engineer", "twice")
        assert (row["original_type"], row["title"]) == ("task", "Button")
        before = file.read_bytes()
        Tracker(hive).delete("qb-1")
        assert file.read_bytes() == before
        assert list(hive.issues.ids()) == ["qb-2"]

    def test_what_a_droid_works_on_is_not_deleted(
        self, hive: Hive, reviewer: Hive, file: Path
    ) -> None:
        hive.assignments.claim("qb-1")
        with pytest.raises(Taken) as no:
            Tracker(reviewer).delete("qb-1")
        assert no.value.hint == "queen issue delete qb-1 --force"

    def test_what_a_droid_works_on_is_not_closed(
        self, hive: Hive, reviewer: Hive, file: Path
    ) -> None:
        hive.assignments.claim("qb-1")
        with pytest.raises(Taken, match="qb-1 is assigned to ui-engineer") as mine:
            Tracker(hive).close("qb-1")
        assert mine.value.hint == "queen complete qb-1"
        with pytest.raises(Taken) as theirs:
            Tracker(reviewer).close("qb-1")
        assert theirs.value.hint == "queen issue close qb-1 --force"
        assert Tracker(reviewer).close("qb-1", anyway=True).done

    def test_an_issue_waits_for_others_and_no_longer(self, hive: Hive, file: Path) -> None:
        issue = Tracker(hive).depend("qb-2", ["qb-1"])
        assert hive.issues.blockers(issue) == ["qb-1"]
        issue = Tracker(hive).depend("qb-2", ["qb-1"], remove=True)
        assert hive.issues.blockers(issue) == []

    def test_issues_do_not_wait_for_one_another(self, hive: Hive, file: Path, beads: Path) -> None:
        Tracker(hive).depend("qb-2", ["qb-1"])
        before = snapshot(beads)
        with pytest.raises(Conflict, match="qb-1 cannot wait for qb-2"):
            Tracker(hive).depend("qb-1", ["qb-2"])
        with pytest.raises(Conflict, match="qb-1 cannot wait for itself"):
            Tracker(hive).depend("qb-1", ["qb-1"])
        assert snapshot(beads) == before

    @pytest.mark.parametrize(
        ("changes", "refusal", "text"),
        [
            ({"priority": 5}, InvalidInput, "5 is not a priority"),
            ({"title": "  "}, InvalidInput, "needs a title"),
            ({"status": "closed"}, InvalidInput, "'closed' is not a status to set"),
            ({}, InvalidInput, "nothing to change"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, hive: Hive, file: Path, beads: Path, changes: dict[str, object], refusal, text: str
    ) -> None:
        before = snapshot(beads)
        with pytest.raises(refusal, match=text):
            Tracker(hive).edit("qb-1", **changes)
        assert snapshot(beads) == before

    def test_unknown_and_taken_ids_are_refused(self, hive: Hive, file: Path) -> None:
        with pytest.raises(NotFound, match="qb-9"):
            Tracker(hive).new(NewIssue("x", depends_on=["qb-9"]))
        with pytest.raises(Conflict, match="there is an issue qb-1 already"):
            Tracker(hive).new(NewIssue("x", issue_id="qb-1"))

    def test_completing_closes_the_row(self, hive: Hive, file: Path) -> None:
        hive.assignments.claim("qb-1")
        answer(hive, "complete", "qb-1", "--reason", "merged")
        row = current(file, "qb-1")
        assert (row["status"], row["close_reason"]) == ("closed", "merged")

    def test_completing_does_not_where_the_setting_is_off(
        self, repo: Path, file: Path, beads: Path
    ) -> None:
        (beads / "queen.toml").write_text("close_on_complete = false\n")
        hive = Hive.open(repo, droid="ui", env={})
        hive.assignments.claim("qb-1")
        before = file.read_bytes()
        answer(hive, "complete", "qb-1")
        assert file.read_bytes() == before
        assert hive.issues.get("qb-1").done


PROGRAM = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["CALLS"], "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
if os.environ.get("FAILS"):
    sys.exit("the database is locked")
if "import" in sys.argv:
    with open(sys.argv[-1]) as file, open(os.environ["CALLS"] + ".rows", "a") as rows:
        rows.write(file.read())
print("qb-new")
"""


class TestWithAnOwner:
    @pytest.fixture
    def calls(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """What `bd` and `br` were called with."""
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("bd", "br"):
            (folder / name).write_text(PROGRAM)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
        return tmp_path / "calls"

    @pytest.mark.parametrize("mark", ["beads.db", "metadata.json", "config.yaml", "dolt"])
    def test_it_is_called(self, hive: Hive, beads: Path, file: Path, calls: Path, mark) -> None:
        (beads / mark).mkdir() if mark == "dolt" else (beads / mark).touch()
        before = file.read_bytes()
        Tracker(hive).close("qb-1", reason="not\nneeded")
        Tracker(hive).edit("qb-1", title="; rm -rf /", priority=1)
        Tracker(hive).depend("qb-2", ["qb-1"])
        assert Tracker(hive).new(NewIssue("--help", labels=["a", "b"])) == "qb-new"
        assert file.read_bytes() == before
        made = [json.loads(line) for line in calls.read_text().splitlines()]
        made = [each for each in made if "export" not in each]
        actor = "--actor=ui-engineer"
        assert made[:3] == [
            ["bd", actor, "close", "--reason=not needed", "--", "qb-1"],
            ["bd", actor, "update", "--title=; rm -rf /", "--priority=1", "--", "qb-1"],
            ["bd", actor, "dep", "add", "--type=blocks", "--", "qb-2", "qb-1"],
        ]
        assert made[3][-2:] == ["--", "--help"]

    def test_br_is_called_where_only_br_is_installed(
        self, hive: Hive, beads: Path, file: Path, calls: Path
    ) -> None:
        (beads / "beads.db").touch()
        (calls.parent / "bin" / "bd").unlink()
        Tracker(hive).close("qb-1")
        assert ["br", "--actor=ui-engineer", "close", "--", "qb-1"] in [
            json.loads(line) for line in calls.read_text().splitlines()
        ]

    def test_where_neither_is_installed_the_refusal_says_what_to_call(
        self, hive: Hive, beads: Path, file: Path, calls: Path
    ) -> None:
        (beads / "beads.db").touch()
        for name in ("bd", "br"):
            (calls.parent / "bin" / name).unlink()
        with pytest.raises(ExternalFailure, match="belongs to bd, which is not installed") as no:
            Tracker(hive).close("qb-1")
        assert no.value.hint == "where it is installed: bd close -- qb-1"

    def test_a_program_of_the_repository_is_not_run(
        self, hive: Hive, repo: Path, beads: Path, file: Path, calls: Path, monkeypatch
    ) -> None:
        (beads / "beads.db").touch()
        for name in ("bd", "br"):
            (calls.parent / "bin" / name).rename(repo / name)
        monkeypatch.setenv("PATH", f"{repo}:/usr/bin:/bin")
        with pytest.raises(ExternalFailure, match="not installed"):
            Tracker(hive).close("qb-1")
        assert not calls.exists()

    def test_whole_rows_are_handed_to_it(
        self, hive: Hive, beads: Path, file: Path, calls: Path
    ) -> None:
        (beads / "beads.db").touch()
        before = file.read_bytes()
        listed = '[{"number": 9, "title": "Known"}, {"number": 10, "title": "Ten"}]'
        found = answer(hive, "issue", "import", "-", stdin=listed)
        assert [each["action"] for each in found["changes"]] == ["update", "add"]
        assert file.read_bytes() == before
        known, ten = records(Path(f"{calls}.rows"))
        assert (known["id"], known["title"], known["big"]) == ("qb-1", "Known", FOREIGN["big"])
        assert (ten["title"], ten["external_ref"]) == ("Ten", "gh-10")
        assert known["updated_at"] > format_ms(hive.now_ms())
        assert known["updated_at"].endswith(".000Z")
        name = json.loads(calls.read_text())
        assert name[:4] == ["bd", "--actor=ui-engineer", "import", "-i"]
        assert not Path(name[4]).exists()

    def test_rows_that_it_did_not_take_are_kept_for_the_command_in_the_hint(
        self, hive: Hive, beads: Path, file: Path, calls: Path, monkeypatch
    ) -> None:
        (beads / "beads.db").touch()
        monkeypatch.setenv("FAILS", "1")
        with pytest.raises(ExternalFailure, match="the database is locked") as no:
            answer(hive, "issue", "import", "-", stdin='[{"number": 10, "title": "Ten"}]')
        assert no.value.hint is not None
        (row,) = records(Path(no.value.hint.split()[-1]))
        assert row["title"] == "Ten"

    def test_that_keeps_no_metadata_whole_rows_are_refused(
        self, hive: Hive, beads: Path, file: Path, calls: Path
    ) -> None:
        (beads / "config.yaml").touch()
        (calls.parent / "bin" / "bd").unlink()
        before = file.read_bytes()
        with pytest.raises(InvalidInput, match="belongs to br, which keeps no metadata") as no:
            answer(hive, "issue", "import", "-", stdin='[{"number": 10, "title": "Ten"}]')
        assert no.value.hint == "add the issues by hand: br create -- Ten"
        assert file.read_bytes() == before
        assert not calls.exists()

    def test_an_issue_is_deleted_by_it(
        self, hive: Hive, beads: Path, file: Path, calls: Path
    ) -> None:
        (beads / "beads.db").touch()
        Tracker(hive).delete("qb-1")
        assert json.loads(calls.read_text())[2:] == ["delete", "--force", "--", "qb-1"]

    def test_labels_are_changed_by_it(
        self, hive: Hive, beads: Path, file: Path, calls: Path
    ) -> None:
        (beads / "beads.db").touch()
        Tracker(hive).edit("qb-1", add_labels=["ui"], remove_labels=["api"])
        asked = ["update", "--add-label=ui", "--remove-label=api", "--", "qb-1"]
        assert json.loads(calls.read_text())[2:] == asked

    @pytest.mark.parametrize(
        "name",
        [
            "hooks/on_close",
            "config.yaml",
            "config.local.yaml",
            ".env",
            "metadata.json",
            "config.json",
            "routes.jsonl",
        ],
    )
    def test_what_it_would_run_of_the_tree_is_seen_by_a_person_first(
        self, asking: Path, hive: Hive, beads: Path, file: Path, calls: Path, name: str
    ) -> None:
        (beads / "beads.db").touch()
        hook = beads / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nevil\n" if "on_" in name else "x: {hooks: {on_close: evil}}\n")
        hook.chmod(0o755)
        with pytest.raises(Untrusted, match=f"hook .*evil.* of .beads/{name}") as no:
            Tracker(hive).close("qb-1")
        assert no.value.hint == "a person looks at it: queen config trust; then: bd close -- qb-1"
        hive.assignments.claim("qb-1")
        (note,) = answer(hive, "complete", "qb-1")["notes"]
        assert "still open in the tracker: it waits for a person" in note
        assert "queen config trust; then: bd close" in note
        (seen,) = hive.documents.unseen_commands()
        assert seen.text == hook.read_text()
        assert not calls.exists()

        Trust(hive.layout).add([seen])
        Tracker(hive).close("qb-2")
        hook.write_text(hook.read_text() + "# changed\n")
        with pytest.raises(Untrusted):
            Tracker(hive).close("qb-2")
        assert len(calls.read_text().splitlines()) == 1

    @pytest.mark.parametrize(
        ("name", "said"), [("hooks/on_close", b"touch: x\n"), ("config.yaml", b"a: \xff\n")]
    )
    def test_a_yes_is_to_these_bytes_in_this_file(
        self, asking: Path, hive: Hive, beads: Path, file: Path, calls: Path, name: str, said: bytes
    ) -> None:
        (beads / "beads.db").touch()
        agreed = said.decode(errors="backslashreplace")
        (beads / "config.yaml").write_text(agreed)
        Trust(hive.layout).add(hive.documents.unseen_commands())
        Tracker(hive).close("qb-1")
        (beads / "hooks").mkdir()
        (beads / name).write_bytes(said)
        (beads / name).chmod(0o755)
        with pytest.raises(Untrusted):
            Tracker(hive).close("qb-2")
        assert len(calls.read_text().splitlines()) == 1

    def test_a_hook_that_is_swapped_while_the_question_waits_is_asked_for_too(
        self, asking: Path, hive: Hive, beads: Path, file: Path, calls: Path
    ) -> None:
        (beads / "beads.db").touch()
        hook, shown = beads / "hooks" / "on_close", list[str]()
        hook.parent.mkdir()
        hook.write_text("echo good")
        hook.chmod(0o755)

        def ask(unseen: Sequence[Proposal]) -> bool:
            shown.extend(each.text for each in unseen)
            hook.write_text("echo bad")
            return True

        hive.asks_person = ask
        hive.issues.close("qb-1")
        assert shown == ["echo good", "echo bad"]
        assert len(calls.read_text().splitlines()) == 1

    @pytest.mark.parametrize(
        "said",
        [
            b"{z: '#', hooks: {on_close: evil}}\n",
            b"# settings\rhooks: {on_close: evil}\r",
            b"# settings\xc2\x85hooks: {on_close: evil}\n",
            "HOO\u212as: {on_close: evil}\n".encode(),
            b'"\\x68ooks": {on_close: evil}\n',
            b"!!binary aG9va3M=: {on_close: evil}\n",
            "hooks: {on_close: evil}\n".encode("utf-16"),
            b"issue-prefix: qb\ndolt:\n  auto-push: true\n",
            b"sync.remote: git+https://example.org/evil\n",
        ],
    )
    def test_however_its_settings_name_a_hook_or_a_remote(
        self, asking: Path, hive: Hive, beads: Path, file: Path, calls: Path, said: bytes
    ) -> None:
        (beads / "config.yaml").write_bytes(said)
        with pytest.raises(Untrusted):
            Tracker(hive).close("qb-1")
        (beads / "config.yaml").write_text("# no-db: false\nissue-prefix: 'qb'  # é\n")
        Tracker(hive).close("qb-1")
        assert len(calls.read_text().splitlines()) == 1

    @pytest.mark.parametrize(
        "said",
        [
            '{"dolt_mode": "server"}',
            '{"dolt_server_host": "evil.example"}',
            '{"database": "dolt", "Dolt_Data_Dir": "/elsewhere"}',
            '{"database": "../elsewhere/beads.db"}',
            '{"database": ".."}',
        ],
    )
    def test_settings_in_json_that_lead_elsewhere_are_seen_first_and_those_of_init_are_not(
        self, asking: Path, hive: Hive, beads: Path, file: Path, calls: Path, said: str
    ) -> None:
        (beads / "metadata.json").write_text(said)
        with pytest.raises(Untrusted, match=r"of \.beads/metadata\.json"):
            Tracker(hive).close("qb-1")
        (beads / "metadata.json").write_text(
            '{\n  "database": "dolt", "jsonl_export": "issues.jsonl",\n  "backend": "dolt",'
            '"dolt_mode": "embedded", "dolt_database": "qb", "project_id": "1-2"\n}\n'
        )
        assert hive.documents.unseen_commands() == []

    @pytest.mark.parametrize("name", ["config.yaml", "redirect", "hooks/on_close"])
    def test_what_is_above_its_hive_in_the_repository_is_seen_too(
        self, asking: Path, hive: Hive, repo: Path, beads: Path, calls: Path, name: str
    ) -> None:
        (beads / name).parent.mkdir(exist_ok=True)
        (beads / name).write_text("evil")
        (beads / name).chmod(0o755)
        inner = repo / "web" / ".beads"
        inner.mkdir(parents=True)
        (inner / "config.yaml").touch()
        write_lines(inner / "issues.jsonl", FOREIGN)
        web = Hive.open(repo / "web", droid="ui", env={})
        with pytest.raises(Untrusted, match=rf"evil.* of \.\./\.beads/{name}"):
            Tracker(web).close("qb-1")
        assert not calls.exists()

    def test_it_takes_the_hive_that_was_looked_at(
        self, hive: Hive, beads: Path, file: Path, calls: Path, monkeypatch
    ) -> None:
        (beads / "beads.db").touch()
        monkeypatch.setenv("BEADS_DB", "/elsewhere/beads.db")
        bd = calls.parent / "bin" / "bd"
        bd.write_text('#!/bin/sh\necho "$BEADS_DIR:$BEADS_DB" >> "$CALLS"\n')
        Tracker(hive).close("qb-1")
        assert calls.read_text() == f"{beads}:\n"

    @pytest.mark.parametrize(
        ("leads", "why"),
        [("a/hive", "a/hive is not called .beads"), ("a/.beads", "there is .*a/.beads/redirect")],
    )
    def test_a_hive_that_it_might_not_take_has_it_not_called(
        self, repo: Path, beads: Path, calls: Path, leads: str, why: str
    ) -> None:
        (repo / leads).mkdir(parents=True)
        write_lines(repo / leads / "issues.jsonl", FOREIGN)
        (repo / leads / "config.yaml").touch()
        (repo / "a/.beads").mkdir(exist_ok=True)
        (repo / "a/.beads" / "redirect").write_text("../x/.beads\n")
        (beads / "redirect").write_text(f"{leads}\n")
        with pytest.raises(ExternalFailure, match=why):
            Tracker(Hive.open(repo, droid="ui", env={})).close("qb-1")
        assert not calls.exists()

    @pytest.mark.parametrize("name", ["hooks/on_close", "config.yaml"])
    def test_a_folder_in_place_of_what_it_would_run_is_nothing(
        self, asking: Path, hive: Hive, beads: Path, file: Path, calls: Path, name: str
    ) -> None:
        (beads / "beads.db").touch()
        (beads / name).mkdir(parents=True)
        Tracker(hive).close("qb-1")
        assert len(calls.read_text().splitlines()) == 1

    @pytest.mark.parametrize("what", ["hooks", "hooks/on_close"])
    def test_a_link_in_place_of_a_hook_is_refused(
        self, asking: Path, hive: Hive, repo: Path, beads: Path, file: Path, calls: Path, what: str
    ) -> None:
        (beads / "beads.db").touch()
        (repo / "theirs").mkdir()
        (repo / "theirs" / "on_close").write_text("#!/bin/sh\n")
        (repo / "theirs" / "on_close").chmod(0o755)
        (beads / what).parent.mkdir(exist_ok=True)
        (beads / what).symlink_to(repo / "theirs" / what.removeprefix("hooks").strip("/"))
        with pytest.raises(Unreadable):
            Tracker(hive).close("qb-1")
        assert not calls.exists()

    def test_it_gets_no_tokens(
        self, hive: Hive, beads: Path, file: Path, calls: Path, monkeypatch
    ) -> None:
        (beads / "beads.db").touch()
        monkeypatch.setenv("GH_TOKEN", "secret")
        bd = calls.parent / "bin" / "bd"
        bd.write_text('#!/bin/sh\necho "token: $GH_TOKEN" >> "$CALLS"\n')
        Tracker(hive).close("qb-1")
        assert calls.read_text() == "token: \n"

    def test_completing_closes_by_it_and_a_failure_undoes_nothing(
        self, hive: Hive, beads: Path, file: Path, calls: Path, monkeypatch
    ) -> None:
        (beads / "beads.db").touch()
        hive.assignments.claim("qb-1")
        assert "notes" not in answer(hive, "complete", "qb-1", "--reason", "merged")
        assert json.loads(calls.read_text())[2] == "close"
        monkeypatch.setenv("FAILS", "1")
        hive.assignments.claim("qb-2")
        done = answer(hive, "complete", "qb-2")
        assert done["status"] == "completed"
        (note,) = done["notes"]
        assert "qb-2 is completed, but still open in the tracker" in note
        assert "the database is locked" in note
        assert hive.issues.get("qb-2").done


class TestTheCommand:
    def test_ends_with_the_records_committed_and_nothing_else(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        quick.env["QUEEN_DROID"] = "ui"
        issue = quick("issue", "new", "Only").out.strip()
        quick("next")
        (repo / ".beads" / ".env").write_text("x\n")
        ended = quick("complete", issue, "--next")
        assert (ended.code, ended.out.splitlines()[-1]) == (
            0,
            "Everything is done: 1 of 1 issues. You can stop.",
        )
        assert git(repo, "log", "-1", "--format=%s").strip() == "records"
        assert ".jsonl" not in git(repo, "status", "--porcelain", "--", ".beads")
        assert ".env" not in git(repo, "log", "--name-only")
        assert "not committed" not in quick("next").out

    def test_ends_without_a_commit_while_somebody_has_something_staged(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        quick.env["QUEEN_DROID"] = "ui"
        issue = quick("issue", "new", "Only").out.strip()
        quick("next")
        (repo / "own.txt").write_text("x\n")
        git(repo, "add", "own.txt")
        ended = quick("complete", issue, "--next")
        assert ended.code == 0
        assert "the records are not committed: something is staged in" in ended.err
        assert git(repo, "diff", "--cached", "--name-only") == "own.txt\n"

    def test_looks_again_at_what_is_staged_for_a_moment(
        self, quick: QuickQueen, repo: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        quick.env["QUEEN_DROID"] = "ui"
        issue = quick("issue", "new", "Only").out.strip()
        quick("next")
        (repo / "own.txt").write_text("x\n")
        git(repo, "add", "own.txt")
        # As a landing does that moves the branch, and then the files.
        monkeypatch.setattr(landed.time, "sleep", lambda _: git(repo, "reset", "-q"))
        ended = quick("complete", issue, "--next")
        assert "not committed" not in ended.err
        assert git(repo, "log", "-1", "--format=%s").strip() == "records"

    def test_that_waits_for_the_end_commits_the_records_too(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        quick.env["QUEEN_DROID"] = "ui"
        issue = quick("issue", "new", "Only").out.strip()
        quick("next")
        quick("complete", issue)
        assert "not committed" in quick("next").out
        waited = quick("next", "--wait", "5s").out
        assert waited == "Everything is done: 1 of 1 issues. You can stop.\n"
        assert git(repo, "status", "--porcelain", "--", ".beads") == ""

    def test_ends_with_the_way_to_commit_the_records_where_that_is_for_people(
        self, quick: QuickQueen, repo: Path
    ) -> None:
        quick.env["QUEEN_DROID"] = "ui"
        quick("config", "set", "land.records", "false")
        issue = quick("issue", "new", "Only").out.strip()
        quick("next")
        (repo / "own.txt").write_text("x\n")
        git(repo, "add", "own.txt")
        ended = quick("complete", issue, "--next").out.splitlines()[-1]
        before, _, command = ended.partition(": ")
        assert before == "The hive's records are not committed"
        assert quick("next", "--json").json["uncommitted_records"] == str(repo / ".beads")
        subprocess.run(command, shell=True, check=True, capture_output=True)
        assert "not committed" not in quick("next").out
        assert quick("next", "--json").json["uncommitted_records"] is None
        # What somebody staged is not part of it.
        assert git(repo, "diff", "--cached", "--name-only") == "own.txt\n"

    @pytest.mark.parametrize("command", ["close", "delete", "reopen"])
    def test_refuses_before_the_first_issue_is_changed(
        self, quick: QuickQueen, file: Path, command: str
    ) -> None:
        before = file.read_bytes()
        refused = quick("issue", command, "qb-1", "qb-7", "--json", as_="ui")
        assert refused.error["code"] == "not_found"
        assert file.read_bytes() == before

    @pytest.mark.parametrize("command", ["close", "delete"])
    def test_refuses_before_the_first_issue_if_one_is_assigned(
        self, quick: QuickQueen, file: Path, command: str
    ) -> None:
        quick("claim", "qb-2", as_="reviewer")
        before = file.read_bytes()
        refused = quick("issue", command, "qb-1", "qb-2", "--json", as_="ui")
        assert refused.error["code"] == "taken"
        assert file.read_bytes() == before
        assert quick("issue", command, "qb-1", "qb-2", "--anyway", as_="ui").code == 0

    def test_says_that_an_issue_is_deleted(self, quick: QuickQueen, file: Path) -> None:
        for _ in range(2):
            assert quick("issue", "delete", "qb-1", as_="ui").out == "qb-1 is deleted: Button\n"
        refused = quick("issue", "new", "Again", "--id", "qb-1", as_="ui")
        assert "there was an issue qb-1 already" in refused.err
        assert "queen issue new Again" in refused.err
        refused = quick("claim", "qb-1", as_="ui")
        assert refused.code == 4
        assert "to have it again: queen issue reopen qb-1" in refused.err

    def test_adds_labels_and_takes_them_away(self, quick: QuickQueen, file: Path) -> None:
        labels = ("--label", "a", "--label", "b", "--label", "a")
        assert quick("issue", "edit", "qb-1", *labels, as_="ui").code == 0
        assert current(file, "qb-1")["labels"] == [*FOREIGN.get("labels", []), "a", "b"]
        quick("issue", "edit", "qb-1", "--label", "c", "--remove-label", "b", as_="ui")
        assert current(file, "qb-1")["labels"] == [*FOREIGN.get("labels", []), "a", "c"]

    def test_exports_what_is_imported_as_it_was(self, quick: QuickQueen, file: Path) -> None:
        title, text = "=HYPERLINK(1)", "\x1b[1mbold\rTwo"
        quick("issue", "new", title, "--description", text, "--id", "qb-9", as_="ui")
        shown = quick("issue", "list", "--format", "csv")
        listed = shown.out
        assert "queen: a table has no big (1), " in shown.err
        assert text in listed
        assert f"'{title}" in listed
        again = quick("issue", "import", "-", "--json", stdin=listed, as_="ui").json
        assert {each["id"]: each["action"] for each in again["changes"]}["qb-9"] == "keep"

    def test_goes_from_an_empty_repository_to_done(self, quick: QuickQueen, repo: Path) -> None:
        quick.env["QUEEN_DROID"] = "ui"
        assert quick("next").code == 1
        first = quick("issue", "new", "First").out.strip()
        second = quick("issue", "new", "Second", "--depends-on", first).out.strip()
        assert quick("next", "--json").json["issue_id"] == first
        done = quick("complete", first, "--next", "--json", "--reason", "merged").json
        assert done["unblocked"] == [second]
        assert done["next"]["issue_id"] == second
        shown = quick("complete", second, "--next")
        lines = shown.out.splitlines()
        assert lines[:2] == [
            f"{second} was completed by ui",
            "Everything is done: 2 of 2 issues. You can stop.",
        ]
        ended = quick("next")
        assert (ended.code, ended.out.splitlines()) == (0, lines[1:])
        assert quick("issues").out == "2 of 2 done\n"
        assert quick("issue", "reopen", first).code == 0
        assert quick("issues").out.endswith("1 of 2 done, 1 ready\n")
