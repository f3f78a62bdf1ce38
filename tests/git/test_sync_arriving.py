"""A new clone of a large hive: what came is rotated at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hives import git
from sync_worlds import BRANCH, World

from queenbee import Hive
from queenbee.git.remote import branch_carrier
from queenbee.git.remote.sync_state import Notes
from queenbee.git.remote.syncing import sync, take_in
from queenbee.services import archiving as services_rotation
from queenbee.store.files import Appender
from queenbee.store.memory import rotation
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.intake import Intake

KIND = "assignments"
COUNT = 300
DAY_MS = 86_400_000
ROTATE = 'rotate_at = "32KiB"\n'


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Ada's hive has segments on the branch; every tenth record is open. Bob has nothing."""
    monkeypatch.setattr(branch_carrier, "SEGMENT_BYTES", 2**13)
    made = World(tmp_path)
    made.clone("ada")
    fill(made.hive("ada"), COUNT)
    sync(made.hive("ada"))
    assert int(made.git("ls-tree", "-r", "--name-only", BRANCH).count("archive/")) >= 5
    for name in made.clocks:
        made.clocks[name].now_ms += 2 * DAY_MS
    new(made, "bob")
    return made


def fill(hive: Hive, count: int, begin: int = 0) -> None:
    with hive.transaction() as tx:
        for number in range(begin, begin + count):
            status = "active" if number % 10 == 0 else "released"
            fields = {"issue_id": f"shop-{number}", "droid": "ada", "status": status}
            tx.create(KIND, {**fields, "updated_at": tx.now})


def new(world: World, name: str) -> Hive:
    world.clone(name, off_s=2 * DAY_MS / 1000)
    world.settings(name, ROTATE)
    return world.hive(name)


def archive(world: World, name: str) -> dict[str, list[dict[str, object]]]:
    folder = world.folder / name / ".beads" / "archive"
    names = sorted(folder.iterdir()) if folder.exists() else []
    return {each.name: [json.loads(x) for x in each.read_text().splitlines()] for each in names}


def ledger(world: World, name: str) -> list[str]:
    path = world.folder / name / ".beads" / f"queen_{KIND}.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def issues(hive: Hive) -> list[str]:
    return sorted(each.issue_id for each in hive.assignments.find(status="all"))


def whole(world: World, name: str) -> list[str]:
    """Returns every line in the files of a clone, in order."""
    segments = [json.dumps(row) for rows in archive(world, name).values() for row in rows]
    return sorted([*segments, *(json.dumps(json.loads(line)) for line in ledger(world, name))])


class TestANewClone:
    def test_has_what_is_closed_in_segments_and_the_rest_in_the_ledger(self, world: World) -> None:
        done = take_in(world.hive("bob"))
        assert done.taken == COUNT
        moved = [row["status"] for rows in archive(world, "bob").values() for row in rows]
        assert moved == ["released"] * (COUNT * 9 // 10)
        kept = [json.loads(line)["status"] for line in ledger(world, "bob")]
        assert kept == ["active"] * (COUNT // 10)
        assert issues(world.hive("bob")) == issues(world.hive("ada"))

    def test_sends_nothing_of_it_back(self, world: World) -> None:
        before = world.git("rev-parse", BRANCH)
        sync(world.hive("bob"))
        sync(world.hive("bob"))
        assert world.git("rev-parse", BRANCH) == before

    def test_sends_what_is_written_next_and_only_that(self, world: World) -> None:
        take_in(world.hive("bob"))
        fill(world.hive("bob"), 3, begin=1000)
        assert sync(world.hive("bob")).sent == 3
        assert sync(world.hive("ada")).taken == 3

    def test_updates_an_archived_record(self, world: World) -> None:
        hive = world.hive("bob")
        take_in(hive)
        row = next(row for rows in archive(world, "bob").values() for row in rows)
        with hive.transaction() as tx:
            tx.update(KIND, str(row["id"]), {"reason": "seen"})
        assert sync(hive).sent == 1
        sync(world.hive("ada"))
        found = world.hive("ada").assignments.find(status="all")
        assert "seen" in {each.reason for each in found}

    def test_leaves_nothing_behind(self, world: World) -> None:
        take_in(world.hive("bob"))
        rests = [*(world.folder / "bob").rglob("*.tmp"), *(world.folder / "bob").rglob("*.intent")]
        assert rests == []

    def test_has_segments_also_if_it_is_too_large_to_rotate_after_a_write(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(services_rotation, "MOST_BYTES", 1)
        take_in(world.hive("bob"))
        assert archive(world, "bob")
        assert issues(world.hive("bob")) == issues(world.hive("ada"))

    def test_has_it_all_in_the_ledger_if_rotation_is_off(self, world: World) -> None:
        world.settings("bob", 'rotate_at = "off"\n')
        take_in(world.hive("bob"))
        assert archive(world, "bob") == {}
        assert len(ledger(world, "bob")) == COUNT


class TestWhatIsHereAlready:
    def test_counts_as_before(self, world: World) -> None:
        fill(world.hive("bob"), 1, begin=5000)
        sync(world.hive("bob"))
        assert len(whole(world, "bob")) == COUNT + 1
        assert len(issues(world.hive("bob"))) == COUNT + 1
        assert len({row["id"] for row in world.lines()}) == COUNT + 1


class TestWhatOthersWrote:
    def poison(self, world: World, *lines: bytes) -> None:
        """Puts lines into the first segment on the branch, as anybody who may push can."""
        name = f"archive/queen_{KIND}.1.jsonl"
        path = world.folder / "evil"
        git(world.folder, "clone", "-q", "-b", BRANCH, f"file://{world.bare}", str(path))
        with (path / name).open("ab") as file:
            file.writelines(line + b"\n" for line in lines)
        git(path, "-c", "user.name=e", "-c", "user.email=e@e", "commit", "-qam", "queenbee: 9")
        git(path, "push", "-q")

    def test_only_usable_lines_are_taken(self, world: World) -> None:
        deep = b'{"id":"x","rev":1,"a":' + b"[" * 2000 + b"]" * 2000 + b"}"
        long = b'{"id":"y","rev":1,"a":"' + b"a" * 2**20 + b'"}'
        bad = [b"<<<<<<< HEAD", b"\x00\xff", b"[]", b"{}", b'{"id":1}', deep, long, b""]
        self.poison(world, *bad)
        assert take_in(world.hive("bob")).taken == COUNT
        assert len(whole(world, "bob")) == COUNT
        assert issues(world.hive("bob")) == issues(world.hive("ada"))

    def test_lines_without_a_revision_stay_in_the_ledger_in_their_order(self, world: World) -> None:
        row = {"id": "z", "issue_id": "old", "droid": "eve", "created_at": "2020-01-01T00:00:00Z"}
        rows = [{**row, "status": status} for status in ("active", "completed", "released")]
        self.poison(world, *(json.dumps(each).encode() for each in rows))
        take_in(world.hive("bob"))
        kept = [json.loads(line) for line in ledger(world, "bob")]
        assert [each["status"] for each in kept if each["id"] == "z"] == [
            each["status"] for each in rows
        ]

    def test_a_line_that_comes_twice_is_archived_once(self, world: World) -> None:
        name = f"{BRANCH}:archive/queen_{KIND}.1.jsonl"
        self.poison(world, *world.git("cat-file", "blob", name).encode().splitlines()[:20])
        take_in(world.hive("bob"))
        assert len(set(whole(world, "bob"))) == COUNT
        assert issues(world.hive("bob")) == issues(world.hive("ada"))

    def test_a_link_in_place_of_the_archive_is_not_followed(self, world: World) -> None:
        outside = world.folder / "outside"
        outside.mkdir()
        (world.folder / "bob" / ".beads" / "archive").symlink_to(outside)
        with pytest.raises(Exception, match="archive"):
            take_in(world.hive("bob"))
        assert list(outside.iterdir()) == []


STEPS = {
    "before the ledger": (Appender, "append", 0),
    "before the memory has it": (Intake, "record", 0),
    "after the ledger": (FilesMemory, "_forget_old_journals", 0),
    "before the first segment": (rotation, "create_document", 0),
    "after the first segment": (rotation, "create_document", 1),
    "before the archive is noted": (rotation, "_note", 0),
    "before the exchange is noted": (Notes, "write", 0),
}


class TestKilled:
    @pytest.mark.some(2)
    @pytest.mark.parametrize("step", STEPS)
    def test_at_any_step_the_next_exchange_has_it_all(
        self, world: World, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rotation, "SEGMENT_BYTES", 2**14)
        kill_at(world, step)
        hive = world.hive("bob")
        fill(hive, 2, begin=9000)
        sync(hive)
        sync(hive)
        sync(world.hive("ada"))
        assert len(issues(hive)) == COUNT + 2
        assert issues(world.hive("ada")) == issues(hive)
        assert len(set(whole(world, "bob"))) == COUNT + 2


def kill_at(world: World, step: str) -> None:
    """Takes the hive over in a process that ends at a step, with all that it holds."""
    where, name, count = STEPS[step]
    pid = os.fork()
    if pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
        return
    calls = 0
    real = getattr(where, name)

    def dies(*arguments: object, **more: object) -> object:
        nonlocal calls
        if calls == count:
            os._exit(9)
        calls += 1
        return real(*arguments, **more)

    try:
        setattr(where, name, dies)
        take_in(world.hive("bob"))
    finally:
        os._exit(1)
