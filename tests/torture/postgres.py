"""Many processes over one database, whose server is killed and whose connections are cut.

    python -m tests.torture postgres

Each process claims and releases issues of which there are few, and notes what it was told. The
checker folds nothing of ours: it reads the table from the first row to the last. Every yes must be
there, and no issue may ever have two holders.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psycopg

from queenbee import Hive
from queenbee.errors import Busy, Conflict, OutcomeUnknown
from tests import postgres_server
from tests.torture.places import Broken

ISSUES = 6


def run(
    folder: str, *, operations: int, processes: int = 16, seed: int = 0, kill_every_s: float = 3.0
) -> dict[str, object]:
    """Returns what was done, and raises `Broken` if a promise did not hold."""
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    with postgres_server.running() as server:
        trees = [Path(folder, f"machine-{number}") for number in range(min(4, processes))]
        name = server.new_hive()
        for tree in trees:  # Four machines: each has a state of its own.
            (tree / ".beads").mkdir(parents=True)
            subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
            postgres_server.use(tree / ".beads", server, name)
        env = {**os.environ, postgres_server.URL: server.url}
        each = -(-operations // processes)
        logs = [Path(folder, f"log-{number}") for number in range(processes)]
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.torture.postgres", tree, log, str(number), str(each)],
                env=env,
            )
            for number, log in enumerate(logs)
            for tree in [trees[number % len(trees)]]
        ]
        begun = time.monotonic()
        while any(worker.poll() is None for worker in workers):
            time.sleep(kill_every_s * dice.random())
            if dice.random() < 0.4:
                server.stop("immediate")
                time.sleep(dice.random())
                server.start()
                counts["server killed"] += 1
            else:
                counts["connections cut"] += _cut(server, dice)
        took_s = time.monotonic() - begun
        if any(worker.returncode for worker in workers):
            raise Broken(f"workers ended with {[worker.returncode for worker in workers]}")
        told = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
        counts.update(str(answer) for answer, _, _ in told)
        rows = _rows(server, name)
    violations = check(rows, told)
    if violations:
        raise Broken(f"{len(violations)} violations: {violations[:5]}")
    return {
        "processes": processes,
        "operations": len(told),
        "lines": len(rows),
        "seconds": round(took_s, 1),
        "violations": 0,
        **counts,
    }


def check(rows: list[tuple[int, bytes]], told: list[tuple[str, str, str]]) -> list[str]:
    """Returns what is wrong: an issue with two holders at once, or a yes that is not there."""
    wrong: list[str] = []
    holding: dict[str, dict[str, str]] = {}
    there: set[tuple[str, str]] = set()
    for position, (sequence, line) in enumerate(rows, 1):
        fields = json.loads(line)
        if sequence != position:
            wrong.append(f"line {position} has the number {sequence}")
        active = holding.setdefault(fields["issue_id"], {})
        there.add((fields["id"], fields.get("status", "active")))
        if fields.get("status", "active") == "active":
            active[fields["id"]] = fields["agent"] if "agent" in fields else fields["droid"]
        else:
            active.pop(fields["id"], None)
        if len(active) > 1:
            wrong.append(f"{fields['issue_id']} has the holders {sorted(active.values())}")
    for answer, identifier, status in told:
        if answer == "yes" and (identifier, status) not in there:
            wrong.append(f"{identifier} was said to be {status}")
    return wrong


def work(tree: str, log: str, number: str, operations: int) -> None:
    """Claims and releases, and notes each answer before the next question."""
    dice = random.Random(number)
    env = {"QUEEN_DURABILITY": "synced", postgres_server.URL: os.environ[postgres_server.URL]}
    hive = Hive.open(tree, droid=f"droid-{number}", env=env)
    held: list[str] = []
    with open(log, "w", buffering=1, encoding="utf-8") as file:
        for _ in range(operations):
            try:
                if held and dice.random() < 0.6:
                    done = hive.assignments.release(held[0])
                    held.pop(0)
                else:
                    done = hive.assignments.claim(f"qb-{dice.randrange(ISSUES)}")
                    if done.issue_id not in held:
                        held.append(str(done.issue_id))
                answer = ("yes", done.id, done.status)
            except Conflict:
                answer = ("no", "", "")
            except Busy:
                answer = ("busy", "", "")
                time.sleep(0.05)
            except OutcomeUnknown:
                answer = ("unknown", "", "")
                held = []
            file.write(json.dumps(answer) + "\n")


def _cut(server: postgres_server.Server, dice: random.Random) -> int:
    try:
        with psycopg.connect(server.url, autocommit=True) as db:
            pids = [
                pid
                for (pid,) in db.execute(
                    "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND backend_type = 'client backend'"
                )
            ]
            for pid in dice.sample(pids, len(pids) // 2):
                db.execute("SELECT pg_terminate_backend(%s)", (pid,))
            return len(pids) // 2
    except psycopg.Error:
        return 0


def _rows(server: postgres_server.Server, hive: str) -> list[tuple[int, bytes]]:
    with psycopg.connect(server.url) as db:
        return db.execute(
            "SELECT sequence, line FROM queen_lines WHERE hive = %s AND kind = 'assignments' "
            "ORDER BY sequence",
            (hive,),
        ).fetchall()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
