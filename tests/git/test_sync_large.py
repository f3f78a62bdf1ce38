"""`queen sync` in a large hive compares and sends what is new, and not everything again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sync_worlds import BRANCH, World

from queenbee import Hive
from queenbee.errors import Unreadable
from queenbee.git.remote import syncing
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.branch_carrier import BranchCarrier
from queenbee.git.remote.confirmed_grants import confirmed
from queenbee.git.remote.syncing import sync
from queenbee.store.memory import recorded
from queenbee.store.memory.recorded import Recorded


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


LARGE = "queen_assignments.jsonl"


def test_what_comes_piecemeal_comes_whole_and_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "_SOME_BYTES", 1)
    monkeypatch.setattr(recorded, "_PAGE", 7)
    after = BranchCarrier.after

    def twice(carrier: BranchCarrier, position: str | None) -> Iterator[tuple[str, list[bytes]]]:
        for kind, lines in after(carrier, position):
            yield from ((kind, lines[:1000]), (kind, lines[500:]), ("messages", []))

    monkeypatch.setattr(BranchCarrier, "after", twice)
    bob = world.hive("bob")
    done = sync(bob)
    assert (done.taken, done.sent) == (2500, 0)
    assert len((world.folder / "bob" / ".beads" / LARGE).read_bytes().splitlines()) == 2500
    assert len(bob.state("assignments").everything()) == 2500
    assert sync(bob).sent == 0


def test_what_fails_amid_a_long_history_leaves_nothing_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncing, "_SOME_BYTES", 1)
    after = BranchCarrier.after

    def fails(carrier: BranchCarrier, position: str | None) -> Iterator[tuple[str, list[bytes]]]:
        yield from after(carrier, position)
        raise Unreadable("no hive is that large")

    monkeypatch.setattr(BranchCarrier, "after", fails)
    with pytest.raises(Unreadable):
        sync(world.hive("bob"))
    assert (world.folder / "bob" / ".beads" / LARGE).read_bytes() == b""
    monkeypatch.setattr(BranchCarrier, "after", after)
    assert sync(world.hive("bob")).taken == 2500


def test_what_a_merge_brought_is_found(world: World) -> None:
    path = world.folder / "ada" / ".beads" / LARGE
    row = {"id": "qa-00000000000000000000000001", "rev": 1, "issue_id": "new", "droid": "eve"}
    with path.open("a") as file:
        file.write(json.dumps({**row, "status": "active"}) + "\n")
    assert sync(world.hive("ada")).sent == 1
    assert "new" in {line.get("issue_id") for line in world.lines()}


def test_what_is_put_before_all_else_is_found_too(world: World) -> None:
    path = world.folder / "ada" / ".beads" / LARGE
    row = {"id": "qa-00000000000000000000000001", "rev": 1, "issue_id": "new", "droid": "eve"}
    path.write_text(json.dumps({**row, "status": "active"}) + "\n" + path.read_text())
    assert sync(world.hive("ada")).sent == 1


def grant(hive: Hive) -> None:
    confirmed(hive, lambda: [hive.assignments.claim("shop-x")])


class TestAfterAConfirmation:
    def test_the_next_exchange_compares_none_of_it(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grant(world.hive("ada"))
        compared: list[set[bytes]] = []
        lacking = Recorded.lacking

        def counted(state: Recorded, lines: Sequence[bytes]) -> list[bytes]:
            compared.append(set(lines))
            return lacking(state, lines)

        monkeypatch.setattr(Recorded, "lacking", counted)
        before = world.git("rev-parse", BRANCH)
        assert sync(world.hive("ada")).sent == 0
        assert [each for each in compared if each] == []
        assert world.git("rev-parse", BRANCH) == before
        assert sync(world.hive("bob")).taken == 2502

    def test_what_was_written_during_the_push_still_goes_out(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_while_it_pushes(world, monkeypatch)
        grant(world.hive("ada"))
        sync(world.hive("ada"))
        assert "late" in {line.get("issue_id") for line in world.lines()}


def write_while_it_pushes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes an assignment as soon as the next push has reached the remote."""
    push = Branch.push

    def pushed(branch: Branch, commit: str) -> bool:
        done = push(branch, commit)
        monkeypatch.setattr(Branch, "push", push)
        with world.hive("ada").transaction() as tx:
            tx.create("assignments", {"issue_id": "late", "droid": "ada", "status": "released"})
        return done

    monkeypatch.setattr(Branch, "push", pushed)
