"""Three machines that change the same issues in any order come to one tracker, to the byte."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import postgres_server
import pytest
from acting import answer
from extent import quick_or
from hives import QuickQueen, exported
from sync_worlds import World
from trackers import NewIssue, Tracker

from queenbee import Hive
from queenbee.errors import QueenError

NAMES = ("ada", "bob", "cyd")
Change = Callable[[Tracker], object]

CHANGES: dict[str, Change] = {
    "title": lambda one: one.edit("qb-1", title="Another"),
    "title again": lambda one: one.edit("qb-1", title="A third", priority=0),
    "acceptance": lambda one: one.edit("qb-1", acceptance_criteria="It is seen"),
    "estimate": lambda one: one.edit("qb-1", estimated_minutes=30, assignee="ada"),
    "starts": lambda one: one.edit("qb-1", status="in_progress"),
    "blocks": lambda one: one.edit("qb-2", status="blocked", description="x"),
    "closes": lambda one: one.close("qb-1", reason="done"),
    "closes two": lambda one: one.close("qb-2"),
    "opens": lambda one: one.reopen("qb-1"),
    "opens three": lambda one: one.reopen("qb-3"),
    "deletes": lambda one: one.delete("qb-2", reason="not needed"),
    "waits": lambda one: one.depend("qb-1", ["qb-2"]),
    "waits for three": lambda one: one.depend("qb-1", ["qb-3"]),
    "makes": lambda one: one.new(NewIssue("New", issue_id="qb-9", labels=["a"])),
    "makes too": lambda one: one.new(NewIssue("Newer", issue_id="qb-9", estimate=5, priority=0)),
}


class Machines:
    """Three clones of one repository, whose droids write the same tracker."""

    def __init__(self, world: World, *, exchanges: bool) -> None:
        self.world = world
        self.exchanges = exchanges
        """Whether they need `queen sync` to know of each other."""

    def hive(self, name: str) -> Hive:
        return self.world.hive(name)

    def sync(self, *names: str) -> None:
        for name in names if self.exchanges else ():
            answer(self.hive(name), "sync")

    def change(self, name: str, change: str) -> None:
        """Makes a change on one of them; what is refused there is not made."""
        try:
            CHANGES[change](Tracker(self.hive(name)))
        except QueenError as error:
            assert error.code in ("not_found", "conflict"), error

    def meet(self) -> None:
        self.sync(*NAMES, *NAMES)

    def listed(self, name: str) -> str:
        """Returns what `queen issue list --json` prints on one of them."""
        done = QuickQueen(self.world.folder / name)("issue", "list", "--json", as_=name)
        assert done.code == 0, done
        return done.out

    def rows(self, name: str) -> list[dict[str, object]]:
        path = self.world.folder / name / ".beads" / "issues.jsonl"
        return sorted(exported(path), key=lambda row: str(row["id"]))

    def start(self) -> None:
        """Makes the issues that all of them know."""
        for number in "123":
            Tracker(self.hive("ada")).new(NewIssue(f"Issue {number}", issue_id=f"qb-{number}"))
        Tracker(self.hive("ada")).close("qb-3", reason="done")
        self.meet()
        for name, seconds in zip(NAMES, (20, 10, 15), strict=True):
            self.world.clocks[name].advance(seconds)


@pytest.fixture(params=["branch", "postgres"])
def machines(request: pytest.FixtureRequest, tmp_path: Path) -> Machines:
    world = World(tmp_path)
    trees = [world.clone(name) for name in NAMES]
    if request.param == "postgres":
        postgres_server.use(trees[0] / ".beads", request.getfixturevalue("server"))
        for tree in trees[1:]:
            shutil.copy(trees[0] / ".beads" / "queen.toml", tree / ".beads")
    return Machines(world, exchanges=request.param == "branch")


def refused_by_beads(row: dict[str, object]) -> str | None:
    """Returns why Beads refuses a row by what its status says, or None.

    These are the checks of `bd`'s `Issue.Validate` that concern two fields at once.
    """
    status = row["status"]
    if status == "closed" and "closed_at" not in row:
        return "closed issues must have closed_at timestamp"
    if status not in ("closed", "tombstone") and "closed_at" in row:
        return "non-closed issues cannot have closed_at timestamp"
    if status == "tombstone" and "deleted_at" not in row:
        return "tombstone issues must have deleted_at timestamp"
    if status != "tombstone" and "deleted_at" in row:
        return "non-tombstone issues cannot have deleted_at timestamp"
    return None


def check_alike(machines: Machines) -> None:
    first, *others = [machines.listed(name) for name in NAMES]
    assert first != "[]\n"
    assert others == [first, first]
    for name in NAMES:
        rows = machines.rows(name)
        assert len({row["id"] for row in rows}) == len(rows)
        assert [refused_by_beads(row) for row in rows] == [None] * len(rows), rows


ORDERS: dict[str, Sequence[tuple[str, str]]] = {
    "different fields": [("ada", "acceptance"), ("bob", "estimate"), ("cyd", "title")],
    "the same field": [("ada", "title"), ("bob", "title again"), ("cyd", "title")],
    "close and start": [("ada", "closes"), ("bob", "starts"), ("cyd", "title")],
    "start and close": [("bob", "closes"), ("ada", "starts"), ("cyd", "estimate")],
    "open and close again": [("ada", "opens three"), ("bob", "title"), ("cyd", "opens three")],
    "delete and close": [("bob", "deletes"), ("ada", "closes two"), ("cyd", "blocks")],
    "close and delete": [("ada", "deletes"), ("bob", "closes two"), ("cyd", "blocks")],
    "one id twice": [("ada", "makes"), ("cyd", "makes too"), ("bob", "title")],
    "dependencies": [("ada", "waits"), ("bob", "waits for three"), ("cyd", "deletes")],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("turned", [False, True], ids=["as they are", "turned"])
def test_three_machines_come_to_the_same_tracker(
    machines: Machines, order: Sequence[tuple[str, str]], turned: bool
) -> None:
    machines.start()
    for name, change in reversed(order) if turned else order:
        machines.change(name, change)
    machines.meet()
    check_alike(machines)


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(quick_or(60, quick=6)))
def test_three_machines_in_any_order(machines: Machines, seed: int) -> None:
    chance = random.Random(seed)
    machines.start()
    for _ in range(12):
        name = chance.choice(NAMES)
        machines.world.clocks[name].advance(chance.choice((0, 1, 7)))
        machines.change(name, chance.choice([*CHANGES]))
        if chance.random() < 0.3:
            machines.sync(chance.choice(NAMES))
    machines.meet()
    check_alike(machines)


@pytest.fixture
def clones(tmp_path: Path) -> Machines:
    world = World(tmp_path)
    for name in NAMES:
        world.clone(name)
    return Machines(world, exchanges=True)


def test_a_machine_that_comes_later_has_the_same_rows(clones: Machines) -> None:
    clones.start()
    for name, change in ORDERS["start and close"]:
        clones.change(name, change)
    clones.meet()
    clones.world.clone("dan")
    clones.sync("dan")
    assert clones.listed("dan") == clones.listed("ada")
    assert [refused_by_beads(row) for row in clones.rows("dan")] == [None] * 3


def test_what_another_program_closed_earlier_is_not_half_closed(clones: Machines) -> None:
    clones.start()
    path = clones.world.folder / "bob" / ".beads" / "issues.jsonl"
    at = "2024-12-14T10:30:01Z"
    closed = {"status": "closed", "closed_at": at, "updated_at": at}
    rows = [{**row, **(closed if row["id"] == "qb-1" else {})} for row in clones.rows("bob")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    clones.change("ada", "starts")
    ledgers = [clones.world.folder / name / ".beads" / "queen_issues.jsonl" for name in NAMES]
    shutil.copy(ledgers[0], ledgers[1])  # As `git pull` brings it.
    clones.change("bob", "blocks")
    assert [refused_by_beads(row) for row in clones.rows("bob")] == [None] * 3
    clones.meet()
    check_alike(clones)
