"""A bad day at a code host, and what is to come of it, whoever the agents are."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scripted_host import ScriptedHost

from queenbee import Hive

WAITS = (("x-3", "x-1"), ("x-6", "x-4"), ("x-6", "x-5"))
"""Which of the six issues waits for which."""


class Crowd(threading.Thread):
    """The people, the checks and the queue of a host on a bad day, each trouble once: a check
    fails, a review wants a change, somebody squashes, a conflict comes late, one is closed, and the
    host is away when the last one comes.
    """

    def __init__(self, host: ScriptedHost, state_dir: Path) -> None:
        super().__init__(daemon=True)
        self.host, self.note, self.is_over = host, state_dir / "code-host.json", False
        self.troubled: dict[str, str] = {}
        """The head at which each issue has met its trouble."""
        self.away = 0

    def run(self) -> None:
        while not self.is_over:
            with self.host.lock, suppress(OSError):
                for number, pull in [*self.host.pulls.items()]:
                    if pull["state"] == "OPEN":
                        self.look(number, pull)
                self.away = max(0, self.away - 1)
                self.host.away = self.away > 0
                self.note.unlink(missing_ok=True)  # As if a minute had passed.
            time.sleep(0.3)

    def look(self, number: int, pull: dict[str, Any]) -> None:
        issue_id = str(pull["branch"])[-3:]
        head = self.host.tip(str(pull["branch"]))
        self.host._refreshed(number)
        if pull["queued"]:
            self.host.merge(number, "MERGE")
        elif issue_id == "x-3":
            self.troubled[issue_id] = head
            self.host.merge(number, "SQUASH")
        elif issue_id in self.troubled and self.troubled[issue_id] != head:
            self.accept(number, pull)
        elif issue_id not in self.troubled:
            self.troubled[issue_id] = head
            self.make_trouble(issue_id, number, pull)

    def make_trouble(self, issue_id: str, number: int, pull: dict[str, Any]) -> None:
        if issue_id == "x-1":
            self.host.check(number, "FAILURE", log="the host fails")
        elif issue_id == "x-2":
            self.host.review(number, "CHANGES_REQUESTED", "Say more")
            self.host.comment(number, "here", "x-2.txt", 1)
        elif issue_id == "x-4":
            self.host.check(number, "SUCCESS")
            self.host.base("x-4.txt", "somebody else\n")
        elif issue_id == "x-5":
            self.host.close(number, "Do it otherwise")
        else:
            self.away = 10
            self.accept(number, pull)

    def accept(self, number: int, pull: dict[str, Any]) -> None:
        if not pull["checks"]:
            self.host.check(number, "SUCCESS")
        if self.host._decision(pull) != "APPROVED":
            self.host.review(number, "APPROVED")


def judge(hive: Hive, crowd: Crowd, out: str) -> None:
    """Asserts that all has landed once, nothing was complete before, and nobody was told twice."""
    host, issues = crowd.host, [f"x-{number}" for number in range(1, 7)]
    assert sorted(crowd.troubled) == issues, out
    merged = {x["branch"][-3:]: x for x in host.pulls.values() if x["state"] == "MERGED"}
    assert sorted(merged) == issues
    assert sum(each["state"] == "CLOSED" for each in host.pulls.values()) == 1
    completed = hive.assignments.find(status="completed")
    assert {x.issue_id: x.landed for x in completed} == {k: x["merged"] for k, x in merged.items()}
    assert len(completed) == len(issues)
    for waits, first in WAITS:
        host.git("merge-base", "--is-ancestor", merged[first]["merged"], merged[waits]["head"])
    told = [
        f"{each['issue_id']}: {each['subject']}"
        for each in hive.state("messages").select({})
        if each.get("importance") == "urgent"
    ]
    assert sorted(each[:3] for each in told) == ["x-1", "x-2", "x-4", "x-5"], told
