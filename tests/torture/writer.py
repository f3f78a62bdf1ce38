"""A writer that is paced, and notes what was acknowledged to it: `KIND ID REV` a line.

    python -m tests.torture.writer TREE DROID LOG PER_SECOND long|fresh

It runs until its standard input closes. What it was refused, it notes in `LOG.refused`. With
`TORTURE_BROKEN=memory` it brings nothing back that git took away: the torture must see that.
"""

from __future__ import annotations

import os
import random
import select
import sys
import time

from queenbee import Hive
from queenbee.core.records import Record
from queenbee.errors import QueenError
from queenbee.store.memory.intake import Intake


class Writer:
    """One droid at work on things of its own, so that nobody refuses it."""

    def __init__(self, tree: str, droid: str) -> None:
        self.tree = tree
        self.droid = droid
        self.hive = self.opened()
        self.random = random.Random(droid)
        self.number = 0
        self.held = False
        self.claimed = False

    def opened(self) -> Hive:
        return Hive.open(self.tree, droid=self.droid, env={"QUEEN_DURABILITY": "buffered"})

    def act(self) -> tuple[str, list[Record]]:
        """Does one thing and returns what was acknowledged."""
        self.number += 1
        what = self.random.random()
        if what < 0.6:
            body = f"{self.droid} {self.number} " + "x" * self.random.randrange(300)
            return "messages", list(self.hive.messages.send("all-of-us,somebody", body, new=True))
        if what < 0.8:
            patterns = [f"{self.droid}/{name}/**" for name in ("a", "b")]
            if self.held:
                done = self.hive.reservations.release(everything=True)
            else:
                done = self.hive.reservations.reserve(patterns)
            self.held = not self.held
            return "reservations", list(done)
        issue = f"{self.droid}-issue"
        if self.claimed:
            given = self.hive.assignments.complete(issue)
        else:
            given = self.hive.assignments.claim(issue)
        self.claimed = not self.claimed
        return "assignments", [given]


def write(tree: str, droid: str, log: str, pace_s: float, *, fresh: bool) -> None:
    """Writes until standard input closes."""
    writer = Writer(tree, droid)
    due = time.monotonic()
    with (
        open(log, "a", encoding="utf-8") as acknowledged,
        open(log + ".refused", "a", encoding="utf-8") as refused,
    ):
        while True:
            due += pace_s
            if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
                return
            try:
                if fresh:
                    writer.hive = writer.opened()
                kind, done = writer.act()
            except QueenError as error:
                refused.write(f"{type(error).__name__}: {error.message}\n")
                refused.flush()
                continue
            for record in done:
                acknowledged.write(f"{kind} {record.id} {record.rev}\n")
            acknowledged.flush()


if __name__ == "__main__":
    _, tree, droid, log, per_second, how = sys.argv
    if os.environ.get("TORTURE_BROKEN") == "memory":
        Intake.lacking = lambda _: []
    write(tree, droid, log, 1 / float(per_second), fresh=how == "fresh")
