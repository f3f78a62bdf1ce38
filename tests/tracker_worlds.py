"""A tracker at which several programs write at once, by chance, and all that can be asked about it.

What the index answers is compared with what reading the whole file does.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hives import Clock

from queenbee import Hive
from queenbee.core.readiness import in_order_to_take
from queenbee.core.timestamps import format_ms
from queenbee.errors import QueenError
from queenbee.services.work import Status
from queenbee.services.work.files import first_to_take, occupied

Row = dict[str, Any]
DROIDS = ("ui-engineer", "reviewer", "tester")
IDS = tuple(f"qb-{n}" for n in range(12))
STATUSES = ["open"] * 9
STATUSES += ["in_progress", "closed", "closed", "tombstone", "pinned", "deferred", "odd"]
KINDS = ("blocks",) * 4 + ("parent-child",) * 4 + ("conditional-blocks", "waits-for", "related")
FILES = ("README.md", "src/app.py", "src/gone.py")
CHANGES = (
    *["edit"] * 3, "add", "append", "append", "remove", "shuffle", "torn",
    "claim", "claim", "complete", "complete", "release", "reserve", "later", "earlier",
    "gate", "damage", "index",
)  # fmt: skip


class World:
    """A repository with a tracker, and a hive with an index and one without."""

    def __init__(self, tree: Path, dice: Random) -> None:
        (tree / ".beads").mkdir(parents=True)
        (tree / "src").mkdir()
        for name in FILES[:2]:
            (tree / name).write_text("text\n")
        self.dice = dice
        self.tree = tree
        self.path = tree / ".beads" / "issues.jsonl"
        self.clock = Clock()
        self.stamps = iter(range(1, 10**6))
        self.rows: list[Row] = [self.row(each) for each in IDS if dice.random() < 0.8]
        self.path.write_bytes(b"")
        self.rewrite()
        self.indexed = self.open(DROIDS[0])
        self.plain = self.open(DROIDS[0])
        self.plain.issues._index_failed = True
        self.others = [self.open(each) for each in DROIDS]
        for each in self.others:
            each.issues._index_failed = True

    def open(self, droid: str) -> Hive:
        return Hive.open(
            self.tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"}, clock=self.clock
        )

    def close(self) -> None:
        for each in (self.indexed, self.plain, *self.others):
            each.close()

    def row(self, identifier: str) -> Row:
        """Returns a row by chance."""
        dice = self.dice
        row: Row = {
            "id": identifier,
            "title": f"Change {dice.choice(FILES)}",
            "status": dice.choice(STATUSES),
            "priority": dice.choice((0, 1, 2, 2, 2)),
            "created_at": self.time(-dice.randrange(5)),
            "dependencies": [
                {"depends_on_id": dice.choice((*IDS, "qb-gone")), "type": dice.choice(KINDS)}
                for _ in range(dice.choice((0, 0, 1, 1, 2)))
            ],
        }
        if dice.random() < 0.7:
            row["updated_at"] = self.time(dice.randrange(-3, 2))
        if dice.random() < 0.2:
            row["estimated_minutes"] = dice.choice((5, 30, 90))
        if dice.random() < 0.1:
            row["defer_until"] = self.time(dice.randrange(-2, 5))
        if dice.random() < 0.1:
            row["assignee"] = dice.choice(DROIDS)
        if dice.random() < 0.1:
            row["metadata"] = {"phase_gate": "wf/p1"}
        if dice.random() < 0.1:
            row["issue_type"] = dice.choice(("gate", "epic"))
        if row["status"] == "closed" and dice.random() < 0.5:
            row["close_reason"] = "it failed"
        return row

    def time(self, minutes: int) -> str:
        return format_ms(self.clock.now_ms + 60_000 * minutes)

    def line(self, row: Row) -> bytes:
        return json.dumps(row).encode()

    def rewrite(self, *, in_place: bool = False, shuffled: bool = False) -> None:
        """Writes the whole file, as trackers do."""
        if shuffled:
            self.dice.shuffle(self.rows)
        lines = [self.line(each) for each in self.rows]
        if self.dice.random() < 0.2:
            lines.insert(self.dice.randrange(len(lines) + 1), b"")
        if self.dice.random() < 0.2:
            lines.insert(self.dice.randrange(len(lines) + 1), b'{"_type":"memory","text":"x"}')
        data = b"".join(line + b"\n" for line in lines)
        if not in_place:
            fresh = self.path.with_suffix(".new")
            fresh.write_bytes(data)
            fresh.replace(self.path)
        else:
            self.path.write_bytes(data)
        self.stamp()

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)
        self.stamp()

    def stamp(self) -> None:
        """Gives the file another time, as any program that is slower than this test does."""
        at = 1_700_000_000_000_000_000 + next(self.stamps) * 1_000_000
        os.utime(self.path, ns=(at, at))

    def change(self) -> str:
        """Does something by chance; returns what."""
        dice = self.dice
        what = dice.choice(CHANGES)
        getattr(self, f"_{what}")()
        return what

    def _edit(self) -> None:
        for _ in range(self.dice.choice((1, 1, 2))):
            if self.rows:
                at = self.dice.randrange(len(self.rows))
                kept = {"priority": self.dice.randrange(5)}
                whole = self.row(self.rows[at]["id"])
                self.rows[at] = whole if self.dice.random() < 0.7 else {**self.rows[at], **kept}
        self.rewrite(in_place=self.dice.random() < 0.5)

    def _add(self) -> None:
        at = self.dice.randrange(len(self.rows) + 1)
        self.rows.insert(at, self.row(self.dice.choice(IDS)))
        self.rewrite(in_place=self.dice.random() < 0.5)

    def _append(self) -> None:
        row = self.row(self.dice.choice(IDS))
        self.rows.append(row)
        self.append(b"\n" + self.line(row) + b"\n")

    def _remove(self) -> None:
        if self.rows:
            del self.rows[self.dice.randrange(len(self.rows))]
        self.rewrite(in_place=self.dice.random() < 0.5)

    def _shuffle(self) -> None:
        self.rewrite(shuffled=True)

    def _torn(self) -> None:
        row = self.row(self.dice.choice(IDS))
        self.rows.append(row)
        self.append(b"\n" + self.line(row))

    def _damage(self) -> None:
        self.append(b'\n{"id": "qb-3", "title": \n')

    def _claim(self) -> None:
        self._as_somebody("claim", anyway=True)

    def _complete(self) -> None:
        self._as_somebody("claim", anyway=True)
        self._as_somebody("complete")

    def _release(self) -> None:
        self._as_somebody("release")

    def _as_somebody(self, what: str, **how: bool) -> None:
        hive = self.dice.choice(self.others)
        held = [each.issue_id for each in hive.assignments.find()]
        wanted = self.dice.choice(IDS if what == "claim" or not held else held)
        with suppress(QueenError):
            getattr(hive.assignments, what)(wanted, **how)

    def _reserve(self) -> None:
        hive = self.dice.choice(self.others)
        if self.dice.random() < 0.5:
            held = [each.pattern for each in hive.reservations.find(droid=hive.actor)]
            if held:
                hive.reservations.release(held)
        elif not hive.reservations.find():
            hive.reservations.reserve([self.dice.choice(("src/**", "README.md"))])

    def _later(self) -> None:
        self.clock.advance(self.dice.choice((1, 61, 200)))

    def _earlier(self) -> None:
        self.clock.advance(-61)

    def _gate(self) -> None:
        path = self.tree / ".claude" / "state" / "validation" / "wf-p1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.unlink()
        else:
            path.write_text('{"metadata": {"workflow_id": "wf", "phase_id": "p1"}}')

    def _index(self) -> None:
        """Something befalls the index."""
        found = list(self.tree.rglob("issues.sqlite3"))
        what = self.dice.randrange(3)
        for path in found:
            if what == 0:
                for each in path.parent.glob("issues.sqlite3*"):
                    each.unlink()
            elif what == 1:
                self.indexed.issues.close()
                path.write_bytes(b"no database at all" * 300)
            else:
                self.indexed.issues.close()


def answers(hive: Hive) -> dict[str, object]:
    """Returns all that can be asked about the issues of a hive."""
    issues = hive.issues
    open_, counts = issues.open_and_counts()
    everything = {**dict.fromkeys(IDS), "qb-gone": None}
    status = Status(hive)
    return {
        "ids": sorted(issues.ids()),
        "ready": [[each.to_dict() for each in issues.ready(actor=one)] for one in (None, *DROIDS)],
        "few": [each.id for each in issues.ready(actor=DROIDS[1], limit=2)],
        "exact": [issues.exact_row(each) for each in everything],
        "open": [each.to_dict() for each in open_.values()],
        "counts": counts,
        "standings": {key: each.to_dict() for key, each in issues.standings_of(everything).items()},
        "issues": {key: each.to_dict() for key, each in issues.some(everything).items()},
        "rows": [(row := issues.row(each)) and row.to_dict() for each in everything],
        "behind": [[one.to_dict() for one in issues.behind(each)] for each in everything],
        "blockers": [issues.blockers(each) for each in issues.some(everything).values()],
        "completions": [(done := issues.completion(each)) and done.id for each in everything],
        "first": first(hive, 3, without=()),
        "rest": first(hive, 99, without=("qb-1", "qb-2")),
        "status": status.to_dict(),
        "shown": ([each.id for each in status.first_ready], status.ready_count),
    }


def first(hive: Hive, most: int, *, without: tuple[str, ...]) -> list[str]:
    """Returns the first issues that the actor would take."""
    found = first_to_take(hive, hive.actor, most, without=without)
    if found is None:
        standings = hive.issues.standings()
        busy = occupied(hive, standings, hive.actor)
        found = in_order_to_take(
            standings, actor=hive.actor, reserved=busy.reserved, contested=busy.contested
        )
        found = [each for each in found if each.id not in without][:most]
    return [each.id for each in found]
