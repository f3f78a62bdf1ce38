"""`queen sync` of a hive in a database: a copy of its records, for people to review."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from sync_worlds import BRANCH, World

from queenbee import Hive
from queenbee.core.records import Assignment
from queenbee.git.remote.alongside import send
from queenbee.git.remote.confirmed_grants import confirmed
from queenbee.git.remote.syncing import Synced, sync, take_in
from queenbee.git.remote.terms import Terms
from queenbee.services import unasked
from queenbee.store.carriers import switching


@pytest.fixture
def two(tmp_path: Path, server: Any) -> World:
    """Two clones whose hive is in one database."""
    world = World(tmp_path)
    name = None
    for each in ("ada", "bob"):
        name = postgres_server.use(world.clone(each) / ".beads", server, name)
    return world


@pytest.fixture
def hives(two: World) -> Iterator[dict[str, Hive]]:
    opened = {name: opened_in(two, name) for name in ("ada", "bob")}
    yield opened
    for each in opened.values():
        each.close()


def opened_in(world: World, name: str) -> Hive:
    env = {"QUEEN_DURABILITY": "buffered", **postgres_server.environment()}
    return Hive.open(world.folder / name, droid=name, env=env)


def issues_on(world: World) -> list[object]:
    return sorted(str(line["issue_id"]) for line in world.lines())


def did(done: Synced) -> tuple[int, int, int]:
    return done.sent, done.taken, done.only_there


def test_the_branch_gets_what_any_machine_wrote(two: World, hives: dict[str, Hive]) -> None:
    hives["ada"].assignments.claim("shop-1")
    hives["bob"].assignments.claim("shop-2")
    assert did(sync(hives["ada"])) == (2, 0, 0)
    assert issues_on(two) == ["shop-1", "shop-2"]


def test_no_line_is_copied_twice_whichever_machine_copies(
    two: World, hives: dict[str, Hive]
) -> None:
    for turn in range(3):
        hives["ada"].assignments.claim(f"shop-{turn}")
        assert did(sync(hives["ada"])) == (1, 0, 0)
        head = two.git("rev-parse", BRANCH)
        assert did(sync(hives["bob"])) == (0, 0, 0)
        assert two.git("rev-parse", BRANCH) == head
    assert issues_on(two) == ["shop-0", "shop-1", "shop-2"]


def test_it_fetches_what_was_written_before_it_compares(two: World, hives: dict[str, Hive]) -> None:
    """A line that is there already, and that this machine has not seen, is not a stranger."""
    assert did(sync(hives["bob"])) == (0, 0, 0)
    hives["ada"].assignments.claim("shop-1")
    sync(hives["ada"])
    assert did(sync(hives["bob"])) == (0, 0, 0)


def test_lines_of_a_clone_still_on_files_are_counted_and_left_there(
    two: World, hives: dict[str, Hive]
) -> None:
    two.clone("old")
    two.hive("old").assignments.claim("shop-1")
    sync(two.hive("old"))
    hives["ada"].assignments.claim("shop-2")
    assert did(sync(hives["ada"])) == (1, 0, 1)
    assert [each.issue_id for each in hives["bob"].assignments.find()] == ["shop-2"]
    assert not list((two.folder / "ada" / ".beads").glob("queen_*.jsonl"))
    # A clone on files takes in the copy, as it does all lines.
    sync(two.hive("old"))
    assert len(two.hive("old").assignments.find()) == 2


def test_a_hive_that_is_carried_back_to_files_takes_in_what_was_left(
    two: World, hives: dict[str, Hive], monkeypatch: pytest.MonkeyPatch
) -> None:
    two.clone("old")
    two.hive("old").assignments.claim("shop-1")
    sync(two.hive("old"))
    hives["ada"].assignments.claim("shop-2")
    sync(hives["ada"])
    switching.use(hives["ada"].layout, "files")
    back = two.hive("ada")
    assert sync(back).taken == 1
    assert sorted(str(each.issue_id) for each in back.assignments.find()) == ["shop-1", "shop-2"]
    assert issues_on(two) == ["shop-1", "shop-2"]


def test_the_database_confirms_grants_and_the_remote_is_not_asked(
    two: World, hives: dict[str, Hive]
) -> None:
    two.cut()
    ada = hives["ada"]
    (given,) = confirmed(ada, lambda: [ada.assignments.claim("shop-1")])
    assert not given.fields.get("unconfirmed")
    assert did(take_in(ada)) == (0, 0, 0)


def test_a_confirmation_that_is_asked_for_still_waits_for_its_turn(
    two: World, hives: dict[str, Hive]
) -> None:
    two.cut()
    terms = Terms(hives["bob"], confirm=True)
    asked: list[float] = []

    def grant(wait_s: float) -> list[Assignment]:
        asked.append(wait_s)
        return [hives["bob"].assignments.claim("shop-1")]

    assert terms.granted(grant, wait_s=60)
    assert asked == [pytest.approx(60, abs=5)]


class TestWithoutBeingAsked:
    """A database has what all machines wrote: `when` only keeps the copy on the branch new."""

    @pytest.fixture(params=["write", "read"])
    def asking(self, request: pytest.FixtureRequest, two: World) -> World:
        path = two.folder / "ada" / ".beads" / "queen.toml"
        path.write_text(path.read_text() + f'\n[sync]\nwhen = "{request.param}"\nmax_age = "1s"\n')
        hive = opened_in(two, "ada")
        unasked.allow(hive.layout)
        hive.close()
        return two

    def test_a_write_asks_for_the_copy(self, asking: World) -> None:
        hive = opened_in(asking, "ada")
        hive.assignments.claim("shop-1")
        assert unasked.wants_exchange(hive.layout)
        send(hive)
        assert not unasked.is_asked(hive.layout)
        assert issues_on(asking) == ["shop-1"]
        hive.close()

    def test_a_read_does_not_wait_for_the_remote(self, asking: World) -> None:
        hive = opened_in(asking, "ada")
        assert unasked.is_allowed(hive.layout)
        assert not unasked.wants_fetch(hive)
        hive.close()
