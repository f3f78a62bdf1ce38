"""The standings that are kept say what all rows together say, after any changes."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hives import Clock, environment
from stamps import format_ms
from trackers import NewIssue, Tracker

from queenbee import Hive
from queenbee.services.issues import Issues
from queenbee.store.tracker import tracker_memory

KINDS = ("blocks", "blocks", "parent-child", "waits-for", "conditional-blocks", "related")
STATUSES = ("open", "open", "open", "in_progress", "blocked", "deferred", "pinned", "closed")
DROIDS = ("ann", "bob")


class World:
    """A tracker that other programs and `queen` change, and two ways to ask it."""

    def __init__(self, repo: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = Clock()
        self.file = repo / ".beads" / "issues.jsonl"
        self.rows: dict[str, dict[str, Any]] = {}
        self.hives = [
            Hive.open(repo, droid=name, env=environment(), clock=self.clock) for name in DROIDS
        ]
        self.kept = Hive.open(repo, droid="ann", env=environment(), clock=self.clock)
        self.whole = Hive.open(repo, droid="ann", env=environment(), clock=self.clock)
        self.whole.issues._board = lambda: None  # type: ignore[method-assign]

    def row(self, number: int) -> dict[str, Any]:
        chance, now_ms = self.chance, self.clock.now_ms
        names = [each for each in self.rows if each != f"qb-{number}"]
        row: dict[str, Any] = {
            "id": f"qb-{number}",
            "title": f"issue {number}",
            "status": chance.choice(STATUSES),
            "priority": chance.randrange(5),
            "created_at": format_ms(now_ms - chance.randrange(5_000)),
            "updated_at": format_ms(now_ms),
            "dependencies": [
                {"issue_id": f"qb-{number}", "depends_on_id": on, "type": chance.choice(KINDS)}
                for on in chance.sample(names, min(len(names), chance.randrange(3)))
            ],
        }
        if chance.random() < 0.2:
            row["estimated_minutes"] = chance.choice([5, 30, 240])
        if chance.random() < 0.1:
            row["defer_until"] = format_ms(now_ms + chance.randrange(-20_000, 20_000))
        if chance.random() < 0.1:
            row["issue_type"] = chance.choice(["gate", "epic", "bug"])
        if chance.random() < 0.2:
            row["assignee"] = chance.choice(DROIDS)
        if chance.random() < 0.1:
            row["metadata"] = {"phase_gate": "wf/p"}
        if row["status"] == "closed" and chance.random() < 0.5:
            row["close_reason"] = chance.choice(["done", "it failed"])
        return row

    def rewrite(self) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            number = self.chance.randrange(30)
            if self.chance.random() < 0.1:
                self.rows.pop(f"qb-{number}", None)
            else:
                self.rows[f"qb-{number}"] = self.row(number)
        self.file.write_text("".join(f"{json.dumps(each)}\n" for each in self.rows.values()))

    def claim(self) -> None:
        hive = self.chance.choice(self.hives)
        for each in hive.issues.ready(actor=hive.actor)[:1]:
            hive.assignments.claim(each.id, anyway=True)

    def complete(self) -> None:
        hive = self.chance.choice(self.hives)
        for each in hive.assignments.find(droid=hive.actor)[:1]:
            if self.chance.random() < 0.3:
                hive.assignments.release(each.issue_id)
            else:
                hive.assignments.complete(each.issue_id)

    def edit(self) -> None:
        names = self.hives[0].issues.ids()
        if names:
            name = self.chance.choice(list(names))
            Tracker(self.hives[0]).edit(name, priority=self.chance.randrange(5))

    def reopen(self) -> None:
        issues = self.hives[0].issues.all().values()
        for each in [one for one in issues if one.done][:1]:
            Tracker(self.hives[0]).reopen(each.id)

    def add(self) -> None:
        known = list(self.hives[0].issues.ids())
        needs = self.chance.sample(known, min(1, len(known)))
        Tracker(self.hives[0]).new(NewIssue("made here", depends_on=needs))

    def wait(self) -> None:
        self.clock.advance(self.chance.choice([1, 5, 20, -3]))

    def step(self) -> str:
        name = self.chance.choice(
            ["rewrite", "rewrite", "rewrite", "claim", "complete", "edit", "reopen", "add", "wait"]
        )
        getattr(self, name)()
        self.clock.advance(1)
        return name


def answers(issues: Issues) -> dict[str, Any]:
    return {
        "counts": issues.counts(),
        "count": issues.ready_count(),
        "ready": [each.id for each in issues.ready(actor="ann")],
        "order": [each.id for each in issues.in_order("ann", lambda some: ((), (), ()))],
        "free": [each.id for each in issues.in_order(None, lambda some: ((), (), ()))],
        "at work": sorted(each.issue.id for each in issues.at_work(without="ann")),
    }


@pytest.mark.parametrize("seed", range(6))
def test_what_is_kept_is_what_all_rows_say(repo: Path, beads: Path, seed: int) -> None:
    world, steps = World(repo, seed), []
    for _ in range(30):
        steps.append(world.step())
        assert world.kept.issues._board() is not None
        assert answers(world.kept.issues) == answers(world.whole.issues), steps


def test_a_change_is_worked_out_without_reading_the_other_rows(
    repo: Path, beads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in range(50)]
    (beads / "issues.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    hive = Hive.open(repo, droid="ann", env=environment())
    hive.messages.send("human", "Makes a memory")
    assert hive.issues.counts()["ready"] == 50
    monkeypatch.setattr(tracker_memory.TrackerMemory, "everything", None)
    other = Hive.open(repo, droid="ann", env=environment())
    first = next(other.issues.in_order("ann", lambda some: ((), (), ())))
    Tracker(other).close(first.id)
    assert other.issues.counts() == {
        "done": 1, "active": 0, "ready": 49, "waits": 0, "on_hold": 0, "total": 50,
    }  # fmt: skip
    assert other.issues.standing("qb-7") is not None


HOSTILE = (
    "UPDATE boards SET noted = '{'",
    "UPDATE boards SET noted = '[1]'",
    "UPDATE standings SET state = 'x'",
    "UPDATE standings SET urgency = 'x', chain = 'x'",
    "UPDATE standings SET id = x'00' WHERE rowid = 1",
    "UPDATE needs SET kind = x'00'",
    "DELETE FROM standings",
    "UPDATE trackers SET state = '{'",
    "UPDATE trackers SET state = '[]', unusable = 'x'",
    "UPDATE trackers SET version = 'x'",
    "UPDATE issue_rows SET filed = x'00'",
    "UPDATE issue_rows SET laid = '{}'",
    "UPDATE issue_rows SET base = 'x', change = -1",
    "DELETE FROM issue_rows",
)


@pytest.mark.parametrize("statement", HOSTILE)
def test_rows_that_nobody_here_wrote_stop_nothing(repo: Path, beads: Path, statement: str) -> None:
    rows = [
        {"id": f"qb-{n}", "title": "x", "status": "open", "dependencies": [f"qb-{n - 1}"]}
        for n in range(1, 5)
    ]
    (beads / "issues.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    hive = Hive.open(repo, droid="ann", env=environment())
    Tracker(hive).edit("qb-2", title="Edited")
    assert hive.issues.counts()["waits"] == 3
    hive.close()
    with closing(sqlite3.connect(hive.layout.memory_path, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute(statement)
    again = Hive.open(repo, droid="ann", env=environment())
    assert isinstance(again.issues.counts()["total"], int)
    assert isinstance(list(again.issues.in_order("ann", lambda some: ((), (), ()))), list)
    if "DELETE" not in statement:
        assert again.issues.get("qb-2").title == "Edited"
    again.rebuild_memory()
    assert again.issues.counts()["waits"] == 3
    Tracker(again).edit("qb-2", title="Again")
    assert again.issues.get("qb-2").title == "Again"
