"""Issues travel with the records: two clones have the same tracker after `queen sync`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, records
from sync_worlds import World

from queenbee import Hive
from queenbee.git.remote.syncing import Synced, sync, take_in
from queenbee.services.care.doctor import examine, repair
from queenbee.services.care.exporting import export_issues
from queenbee.workflows.imports import import_issues
from queenbee.workflows.tracking.tracker import NewIssue, Tracker


@pytest.fixture
def two(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.clone("ada")
    world.clone("bob")
    return world


def hive(world: World, name: str) -> Hive:
    return world.hive(name)


def file(world: World, name: str) -> Path:
    return world.folder / name / ".beads" / "issues.jsonl"


def exchange(world: World, *names: str) -> list[Synced]:
    return [sync(hive(world, name)) for name in names]


def rows(world: World, name: str) -> dict[str, dict[str, Any]]:
    export_issues(hive(world, name))
    return {row["id"]: row for row in records(file(world, name))}


class TestSync:
    def test_carries_issues_both_ways_and_says_how_many(self, two: World) -> None:
        Tracker(hive(two, "ada")).new(NewIssue("One", issue_id="qb-1"))
        file(two, "bob").write_text('{"id":"bd-7","title":"By bd","status":"open"}\n')
        done = exchange(two, "ada", "bob", "ada", "ada")
        counts = [(each.issues_taken, each.issues_sent) for each in done]
        assert counts == [(0, 1), (1, 1), (1, 0), (0, 0)]
        assert rows(two, "ada") == rows(two, "bob")
        assert {*rows(two, "ada")} == {"qb-1", "bd-7"}
        assert two.hive("bob").issues.get("qb-1").title == "One"

    def test_keeps_edits_of_different_fields_and_decides_on_the_same_one(self, two: World) -> None:
        Tracker(hive(two, "ada")).new(NewIssue("One", issue_id="qb-1"))
        exchange(two, "ada", "bob")
        two.clocks["ada"].advance(10)
        two.clocks["bob"].advance(5)
        Tracker(hive(two, "ada")).edit("qb-1", title="Ada's", priority=0)
        Tracker(hive(two, "bob")).edit("qb-1", title="Bob's", description="Bob's")
        exchange(two, "ada", "bob", "ada")
        row = rows(two, "ada")["qb-1"]
        assert row == rows(two, "bob")["qb-1"]
        assert (row["title"], row["priority"], row["description"]) == ("Ada's", 0, "Bob's")

    def test_has_one_row_for_each_issue_with_what_beads_knows(self, two: World) -> None:
        Tracker(hive(two, "ada")).new(NewIssue("One", issue_id="qb-1"))
        exchange(two, "ada", "bob")
        Tracker(hive(two, "bob")).close("qb-1", reason="done")
        Tracker(hive(two, "ada")).edit("qb-1", priority=1)
        exchange(two, "bob", "ada", "bob")
        (mine,), (theirs,) = rows(two, "ada").values(), rows(two, "bob").values()
        assert mine == theirs
        assert (mine["status"], mine["close_reason"], mine["priority"]) == ("closed", "done", 1)
        assert not {"rev", "deleted"} & {*mine}

    def test_takes_what_another_program_wrote_before_it_takes_lines(self, two: World) -> None:
        Tracker(hive(two, "ada")).new(NewIssue("One", issue_id="qb-1"))
        exchange(two, "ada", "bob")
        Tracker(hive(two, "ada")).edit("qb-1", priority=0)
        later = {"title": "By hand", "updated_at": "2030-01-01T00:00:00Z"}
        file(two, "bob").write_text(json.dumps({**rows(two, "bob")["qb-1"], **later}) + "\n")
        exchange(two, "ada")
        take_in(hive(two, "bob"))
        row = rows(two, "bob")["qb-1"]
        assert (row["title"], row["priority"]) == ("By hand", 0)
        exchange(two, "bob", "ada")
        assert rows(two, "ada")["qb-1"] == row

    def test_leaves_the_tracker_of_another_program_alone(self, two: World) -> None:
        Tracker(hive(two, "ada")).new(NewIssue("One", issue_id="qb-1"))
        file(two, "bob").write_text('{"id":"bd-7","title":"By bd","status":"open"}\n')
        (file(two, "bob").parent / "metadata.json").write_text("{}")
        before = file(two, "bob").read_bytes()
        exchange(two, "ada", "bob", "ada")
        assert file(two, "bob").read_bytes() == before
        assert {*rows(two, "ada")} == {"qb-1"}

    def test_brings_a_list_that_both_imported_and_doctor_settles_it_for_both(
        self, two: World
    ) -> None:
        listed = b'[{"number": 9, "title": "Nine"}, {"number": 10, "title": "Ten"}]'
        for name in ("ada", "bob"):
            import_issues(hive(two, name), listed, prefix=name)
        exchange(two, "ada", "bob", "ada")
        assert len(hive(two, "bob").issues.ids()) == 4
        found = [each.code for each in repair(hive(two, "bob")) if each.fixed]
        assert found.count("doubled_ref") == 2
        exchange(two, "bob", "ada")
        assert rows(two, "ada") == rows(two, "bob")
        assert {one[:4] for one in hive(two, "ada").issues.ids()} == {"ada-"}
        refs = [row["external_ref"] for row in rows(two, "ada").values() if "external_ref" in row]
        assert sorted(refs) == ["gh-10", "gh-9"]

    def test_of_two_issues_with_one_id_is_told_by_sync_and_by_doctor(self, two: World) -> None:
        for name in ("ada", "bob"):
            Tracker(hive(two, name)).new(NewIssue(f"By {name}", issue_id="qb-1"))
        Tracker(hive(two, "ada")).new(NewIssue("One", issue_id="qb-2"))
        said = [sync(two.hive(name)).made_twice for name in ("ada", "bob", "ada", "bob")]
        assert said == [[], ["qb-1"], ["qb-1"], []]
        for name in ("ada", "bob"):
            found = [each for each in examine(hive(two, name)) if each.code == "made_twice"]
            assert [each.message.split(" is two")[0] for each in found] == ["qb-1"]
            assert "“By ada” by" in found[0].message and "“By bob” by" in found[0].message

    def test_carries_a_deletion(self, two: World) -> None:
        Tracker(hive(two, "ada")).new(NewIssue("One", issue_id="qb-1"))
        exchange(two, "ada", "bob")
        Tracker(hive(two, "bob")).delete("qb-1")
        exchange(two, "bob", "ada")
        assert rows(two, "ada")["qb-1"]["status"] == "tombstone"
        assert list(two.hive("ada").issues.ids()) == []


def test_the_command_says_how_many_came_and_went(two: World, quick: QuickQueen) -> None:
    Tracker(hive(two, "ada")).new(NewIssue("One"))
    exchange(two, "ada")
    Tracker(hive(two, "bob")).new(NewIssue("Two"))
    quick.cwd = two.folder / "bob"
    assert "issues: 1 came, 1 went" in quick("sync").out
