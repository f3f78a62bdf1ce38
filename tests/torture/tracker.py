"""Issues at work: writers in four worktrees are killed, git does what it can, and another program
rewrites the tracker's file all the time.

    python -m tests.torture.tracker TREE DROID LOG     (one writer)

A writer notes `try ID TITLE` before a write and `ack ID TITLE` after it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from queenbee import Hive
from queenbee.errors import QueenError
from queenbee.services.care.exporting import export_issues
from queenbee.workflows.tracking.tracker import NewIssue, Tracker
from tests.torture.places import ENVIRONMENT, ROOT, git, make_repository, must, require

OPERATIONS = (
    ("commit", "-qm", "work"),
    ("stash", "-q"),
    ("stash", "-q", "-u"),
    ("stash", "drop", "-q"),
    ("reset", "-q", "--hard"),
    ("reset", "-q", "--hard", "HEAD~1"),
    ("checkout", "-q", "-f", "main"),
    ("checkout", "-q", "-f", "side"),
    ("checkout", "-q", "--", ".beads"),
    ("clean", "-qfd"),
    ("merge", "-q", "--no-edit", "side"),
    ("merge", "--abort"),
)
"""What people and agents type."""


def opened(tree: str, droid: str) -> Hive:
    """Opens the hive as the command does."""
    return Hive.open(tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"})


def write(tree: str, droid: str, log: str) -> None:
    """Makes and edits issues of its own until it is killed."""
    chance = random.Random(f"{droid} {os.getpid()}")
    with open(log, "a", encoding="utf-8") as file:
        known = sorted({line.split()[1] for line in Path(log).read_text().splitlines()})
        while True:
            is_new = not known or chance.random() < 0.2
            issue_id = f"{droid}-{os.urandom(4).hex()}" if is_new else chance.choice(known)
            title = os.urandom(4).hex()
            file.write(f"try {issue_id} {title}\n")
            file.flush()
            tracker = Tracker(opened(tree, droid))
            try:
                if is_new:
                    tracker.new(NewIssue(title, issue_id=issue_id))
                    known.append(issue_id)
                else:
                    tracker.edit(issue_id, title=title)
            except (QueenError, OSError) as error:
                print(error, file=sys.stderr)
                continue
            file.write(f"ack {issue_id} {title}\n")
            file.flush()


def rewrite(path: str, stopped: threading.Event, git_works: threading.Lock) -> int:
    """Does what a program does that keeps its own rows in the file: reads it, changes its row, and
    puts the new version in place by a rename.
    """
    count = 0
    while not stopped.wait(0.005):
        with git_works, suppress(OSError):
            lines = Path(path).read_bytes().splitlines()
            kept = [line for line in lines if b'"theirs"' not in line]
            count += 1
            kept.append(json.dumps({"id": "theirs", "title": str(count)}).encode())
            Path(f"{path}.theirs").write_bytes(b"".join(line + b"\n" for line in kept))
            os.replace(f"{path}.theirs", path)
    return count


class Writers:
    """Eight processes over four worktrees; one that is killed is followed by another."""

    def __init__(self, trees: list[str], logs: str) -> None:
        self.places = [(trees[n % len(trees)], f"w{n}", f"{logs}/w{n}") for n in range(8)]
        self.kills = 0
        for _, _, log in self.places:
            Path(log).touch()
        self.running = [self._started(place) for place in self.places]

    def _started(self, place: tuple[str, str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.torture.tracker", *place],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill_one(self, chance: random.Random) -> None:
        number = chance.randrange(len(self.places))
        self.running[number].kill()
        self.running[number].wait()
        self.kills += 1
        self.running[number] = self._started(self.places[number])

    def stop(self) -> None:
        for each in self.running:
            each.kill()
        for each in self.running:
            each.wait()


def wanted(log: str) -> dict[str, set[str]]:
    """Returns the titles that each acknowledged issue may have: the last one that was acknowledged,
    or one that was tried after it.
    """
    found: dict[str, set[str]] = {}
    tried: dict[str, set[str]] = {}
    for line in Path(log).read_text(encoding="utf-8").splitlines():
        what, issue_id, title = line.split()
        if what == "try":
            tried.setdefault(issue_id, set()).add(title)
            if issue_id in found:
                found[issue_id].add(title)
        else:
            found[issue_id] = {title}
    return found


def _has_begun(logs: str) -> bool:
    """Returns whether something was acknowledged, on however busy a machine."""
    return any("ack " in each.read_text(encoding="utf-8") for each in Path(logs).iterdir())


def torture(folder: str, seconds: float, *, seed: int) -> dict[str, object]:
    """Runs them against each other; returns the figures. Raises `Broken`."""
    chance = random.Random(seed)
    main = make_repository(os.path.join(folder, "main"))
    must(main, "branch", "side")
    trees = [main]
    for number in range(3):
        trees.append(os.path.join(folder, f"linked-{number}"))
        must(main, "worktree", "add", "-q", "-b", f"of-{number}", trees[-1])
    logs = os.path.join(folder, "logs")
    os.makedirs(logs)
    path = os.path.join(main, ".beads", "issues.jsonl")
    stopped, git_works, operations = threading.Event(), threading.Lock(), Counter[str]()
    other = threading.Thread(target=rewrite, args=(path, stopped, git_works))
    writers = Writers(trees, logs)
    other.start()
    try:
        until_s = time.monotonic() + seconds
        latest_s = until_s + 60
        while time.monotonic() < (until_s if _has_begun(logs) else latest_s):
            operation = chance.choice(OPERATIONS)
            with git_works:
                if operation[0] == "commit":
                    git(main, "add", "-A")
                operations[operation[0]] += git(main, *operation).returncode == 0
                if not os.path.isdir(os.path.dirname(path)):
                    # Without a hive nobody could write any more: somebody brings it back.
                    git(main, "reset", "-q", "--hard", "side")
            if chance.random() < 0.3:
                writers.kill_one(chance)
            if chance.random() < 0.3:
                with git_works, suppress(QueenError):
                    operations["export"] += export_issues(opened(main, "queen")) > 0
            time.sleep(chance.random() * 0.2)
    finally:
        writers.stop()
        stopped.set()
        other.join()
    git(main, "merge", "--abort")
    os.makedirs(os.path.dirname(path), exist_ok=True)  # A checkout may have removed it.
    return {"kills": writers.kills, "git": dict(operations), **_checked(main, path, logs)}


def _checked(main: str, path: str, logs: str) -> dict[str, object]:
    expected = {key: one for n in range(8) for key, one in wanted(f"{logs}/w{n}").items()}
    before = {key: each.title for key, each in opened(main, "queen").issues.all().items()}
    lost = [key for key, titles in expected.items() if before.get(key) not in titles]
    require(not lost, f"readers lost {lost}: {[(before.get(k), expected[k]) for k in lost]}")
    export_issues(opened(main, "queen"))
    rows = [json.loads(line) for line in Path(path).read_bytes().splitlines() if line]
    counts = Counter(row["id"] for row in rows)
    require(max(counts.values()) == 1, f"several rows of {counts.most_common(1)}")
    titles = {row["id"]: row["title"] for row in rows}
    lost = [key for key, one in expected.items() if titles.get(key) not in one]
    require(not lost, f"the file lost {lost}")
    for row in rows:
        is_whole = {"status", "priority", "created_at", "updated_at"} <= {*row}
        require(row["id"] == "theirs" or is_whole, f"not as Beads has it: {row}")
        require("rev" not in row, f"not of Beads: {row}")
    acked = sum(Path(logs, f"w{n}").read_text().count("ack ") for n in range(8))
    return {"issues": len(expected), "acknowledged": acked, "lost": 0}


if __name__ == "__main__":
    write(*sys.argv[1:4])
