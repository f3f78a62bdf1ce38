"""`queen sync` in a large hive reads what is new, and not everything again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sync_worlds import World

from queenbee.git.remote.notes import Notes
from queenbee.git.remote.syncing import sync
from queenbee.store.ledger.ledger import Ledger


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada has half a MiB of assignments, which are on the branch."""
    made = World(tmp_path)
    made.clone("ada")
    made.clone("bob")
    hive = made.hive("ada")
    with hive.transaction() as tx:
        for number in range(2500):
            fields = {"issue_id": f"shop-{number}", "droid": "ada", "status": "released"}
            tx.create("assignments", {**fields, "updated_at": tx.now})
    sync(hive)
    return made


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ledgers that were read from their beginning."""
    found: list[str] = []
    read_all = Ledger._read_all

    def counted(ledger: Ledger, **more: bool) -> object:
        found.append(Path(ledger.path).name)
        return read_all(ledger, **more)

    monkeypatch.setattr(Ledger, "_read_all", counted)
    return found


LARGE = "queen_assignments.jsonl"


def test_with_nothing_new_no_large_ledger_is_read_again(world: World, whole: list[str]) -> None:
    sync(world.hive("ada"))
    assert LARGE not in whole


def test_with_something_new_neither(world: World, whole: list[str]) -> None:
    hive = world.hive("ada")
    with hive.transaction() as tx:
        tx.create("assignments", {"issue_id": "shop-x", "droid": "ada", "status": "released"})
    whole.clear()
    assert sync(world.hive("ada")).sent == 1
    assert LARGE not in whole


def test_what_a_merge_brought_is_still_found(world: World) -> None:
    path = world.folder / "ada" / ".beads" / LARGE
    row = {"id": "qa-00000000000000000000000001", "rev": 1, "issue_id": "new", "droid": "eve"}
    with path.open("a") as file:
        file.write(json.dumps({**row, "status": "active"}) + "\n")
    assert sync(world.hive("ada")).sent == 1
    assert "new" in {line.get("issue_id") for line in world.lines()}


def test_what_is_put_before_the_position_is_still_found(world: World) -> None:
    path = world.folder / "ada" / ".beads" / LARGE
    row = {"id": "qa-00000000000000000000000001", "rev": 1, "issue_id": "new", "droid": "eve"}
    path.write_text(json.dumps({**row, "status": "active"}) + "\n" + path.read_text())
    assert sync(world.hive("ada")).sent == 1


def test_a_damaged_note_is_as_good_as_none(world: World) -> None:
    hive = world.hive("ada")
    note = Path(hive.layout.remote_dir) / "positions.json"
    assert "assignments" in json.loads(note.read_text())
    for text in ("", "[]", '{"assignments": 1}', '{"assignments": [[1], [2], {}]}'):
        note.write_text(text)
        assert sync(world.hive("ada")).sent == 0
    assert Notes(hive, "x").positions()
