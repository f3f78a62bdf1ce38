"""Many processes over one database, whose server is killed and whose connections are cut.

    python -m tests.torture postgres

Each process claims and releases issues of which there are few, reserves, extends and releases files
of which there are few, and notes what it was told. The checker folds nothing of ours: it reads the
table from the first row to the last. Every yes must be there, no issue may ever have two holders,
and no file two if one of them has it alone.
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
from typing import Any

import psycopg

from queenbee import Hive
from queenbee.errors import Busy, Conflict, NotFound, OutcomeUnknown, StoreError
from queenbee.store.engines.postgres import connection, engine, postgres_write
from tests import postgres_server
from tests.torture.places import Broken

ISSUES = 6
PATTERNS = ("src/a.py", "src/b.py", "src/c.py", "src/deep/d.py", "src/deep/**", "docs/*.md")
KINDS = ("assignments", "reservations")
_PAUSE_S = 0.2
"""Before a droid that could not reach the database asks again."""


def run(
    folder: str,
    *,
    operations: int,
    processes: int = 16,
    seed: int = 0,
    kill_every_s: float = 3.0,
    kills: float = 0.4,
    broken: str = "",
) -> dict[str, object]:
    """Returns what was done, and raises `Broken` if a promise did not hold.

    `operations` are what the database answers; what cannot reach it is counted apart, as `busy`.
    Up to every `kill_every_s`, something is cut; in the share `kills` of that, the whole server.
    `broken` is what to break on purpose in every worker: one of `BREAKING`.
    """
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    with postgres_server.running() as server:
        trees = [Path(folder, f"machine-{number}") for number in range(min(4, processes))]
        name = server.new_hive()
        for tree in trees:  # Four machines: each has a state of its own.
            (tree / ".beads").mkdir(parents=True)
            subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
            postgres_server.use(tree / ".beads", server, name)
        if broken == "lock and key":
            with psycopg.connect(server.url) as db:
                db.execute("ALTER TABLE queen_lines DROP CONSTRAINT queen_lines_pkey")
        env = {**os.environ, postgres_server.URL: server.url}
        each = -(-operations // processes)
        logs = [Path(folder, f"log-{number}") for number in range(processes)]
        workers = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.torture.postgres"),
                    *(tree, log, str(seed * processes + number), str(each), broken),
                ],
                env=env,
            )
            for number, log in enumerate(logs)
            for tree in [trees[number % len(trees)]]
        ]
        begun = time.monotonic()
        while any(worker.poll() is None for worker in workers):
            time.sleep(kill_every_s * dice.random())
            if dice.random() < kills:
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
        rows = {kind: _rows(server, name, kind) for kind in KINDS}
    violations = check(rows["assignments"], rows["reservations"], told)
    if violations:
        raise Broken(f"{len(violations)} violations: {violations[:5]}")
    return {
        "processes": processes,
        "operations": sum(answer != "busy" for answer, _, _ in told),
        "lines": sum(map(len, rows.values())),
        "leases": sum(json.loads(line)["rev"] == 1 for _, line in rows["reservations"]),
        "seconds": round(took_s, 1),
        "violations": 0,
        **counts,
    }


def check(
    assignments: list[Line], reservations: list[Line], told: list[tuple[str, str, str]]
) -> list[str]:
    """Returns what is wrong: an issue or a file with two holders at once, or a yes that is not
    there.
    """
    there: set[tuple[str, str]] = set()
    wrong = [*_numbers(assignments), *_numbers(reservations)]
    wrong += _holders(assignments, there)
    wrong += _leases(reservations, there)
    for answer, identifier, status in told:
        if answer == "yes" and (identifier, status) not in there:
            wrong.append(f"{identifier} was said to be {status}")
    return wrong


Line = tuple[int, bytes]
"""A sequence number, and what the table has there."""


def _numbers(rows: list[Line]) -> list[str]:
    return [
        f"line {position} has the number {sequence}"
        for position, (sequence, _) in enumerate(rows, 1)
        if sequence != position
    ]


def _holders(rows: list[Line], there: set[tuple[str, str]]) -> list[str]:
    wrong = []
    holding: dict[str, dict[str, str]] = {}
    for _, line in rows:
        fields = json.loads(line)
        active = holding.setdefault(fields["issue_id"], {})
        there.add((fields["id"], fields.get("status", "active")))
        if fields.get("status", "active") == "active":
            active[fields["id"]] = fields["agent"] if "agent" in fields else fields["droid"]
        else:
            active.pop(fields["id"], None)
        if len(active) > 1:
            wrong.append(f"{fields['issue_id']} has the holders {sorted(active.values())}")
    return wrong


def _leases(rows: list[Line], there: set[tuple[str, str]]) -> list[str]:
    """Judges each lease at the moment at which it was granted or extended, by what stood then."""
    wrong = []
    before = ""
    live: dict[str, dict[str, object]] = {}
    for _, line in rows:
        fields = json.loads(line)
        there.add((fields["id"], fields["status"]))
        if fields["status"] != "active":
            live.pop(fields["id"], None)
            continue
        # Times of one length and zone compare as text.
        now = max(str(fields.get(each, "")) for each in ("created_at", "updated_at"))
        if now < before:
            wrong.append(f"{fields['id']} was granted at {now}, after {before}")
        before = now
        wrong += [
            f"{fields['droid']} got {fields['pattern']}, and {other['droid']} {other['pattern']}"
            for other in live.values()
            if other["droid"] != fields["droid"]
            and str(other["expires_at"]) > now
            and (other.get("exclusive", True) or fields.get("exclusive", True))
            and _both_cover_a_file(str(other["pattern"]), fields["pattern"])
        ]
        live[fields["id"]] = fields
    return wrong


def _both_cover_a_file(one: str, other: str) -> bool:
    """Only for `PATTERNS`: the same one, or one is below the folder of the other."""
    return one == other or any(
        each.endswith("/**") and than.startswith(each.removesuffix("**"))
        for each, than in ((one, other), (other, one))
    )


class Droid:
    """One worker: what it holds, and the next thing to ask for."""

    def __init__(self, hive: Hive, dice: random.Random, *, tolerant: bool) -> None:
        self._tolerant = tolerant
        self._hive = hive
        self._dice = dice
        self._issues: list[str] = []
        self._leases: list[str] = []

    def act(self) -> tuple[str, str, str]:
        """Asks for something; returns the answer, and the id and status of what it was given."""
        try:
            done = self._assignment() if self._dice.random() < 0.5 else self._lease()
        except NotFound:  # It expired.
            self._leases.clear()
            return "ended", "", ""
        except Conflict:
            return "no", "", ""
        except OutcomeUnknown:
            self._issues.clear()
            self._leases.clear()
            return "unknown", "", ""
        except (Busy, StoreError) as error:
            if not isinstance(error, Busy) and not self._tolerant:
                raise
            time.sleep(_PAUSE_S)
            return "busy", "", ""
        return "yes", str(done.id), str(done.status)

    def _assignment(self) -> Any:
        assignments = self._hive.assignments
        if self._issues and self._dice.random() < 0.6:
            done = assignments.release(self._issues[0])
            self._issues.pop(0)
            return done
        done = assignments.claim(f"qb-{self._dice.randrange(ISSUES)}")
        if done.issue_id not in self._issues:
            self._issues.append(str(done.issue_id))
        return done

    def _lease(self) -> Any:
        reservations = self._hive.reservations
        chance = self._dice.random()
        if self._leases and chance < 0.5:
            (done,) = reservations.release(ids=self._leases[:1])
            self._leases.pop(0)
        elif self._leases and chance < 0.6:
            (done,) = reservations.renew(ids=self._leases[:1], ttl_s=5)
        else:
            (done,) = reservations.reserve(
                [self._dice.choice(PATTERNS)],
                exclusive=self._dice.random() < 0.7,
                alone=False,
                ttl_s=self._dice.choice((1, 2, 60)),
            )
            if done.id not in self._leases:
                self._leases.append(done.id)
        return done


def work(tree: str, log: str, number: str, operations: int, broken: str) -> None:
    """Asks again and again, and notes each answer before the next question."""
    if broken:
        BREAKING[broken]()
    env = {"QUEEN_DURABILITY": "synced", postgres_server.URL: os.environ[postgres_server.URL]}
    hive = Hive.open(tree, droid=f"droid-{number}", env=env)
    # What two lines with one number leave is refused as damaged: then nothing would be granted.
    droid = Droid(hive, random.Random(int(number)), tolerant=bool(broken))
    with open(log, "w", buffering=1, encoding="utf-8") as file:
        answered = 0
        while answered < operations:
            told = droid.act()
            file.write(json.dumps(told) + "\n")
            # What a broken one leaves may be refused for good.
            answered += told[0] != "busy" or bool(broken)


def _without_lock() -> None:
    """Nobody waits for the hive's turn."""
    lock, none = "SELECT pg_advisory_xact_lock($4)", "SELECT $4::bigint"
    assert lock in connection._LOCK
    connection._LOCK = connection._LOCK.replace(lock, none)


def _guessing() -> None:
    """A commit whose answer was lost is taken for one that arrived."""
    postgres_write.PostgresWrite._was_recorded = lambda *_: True  # type: ignore[method-assign]


def _own_clock() -> None:
    """Each process goes by a clock of its own, up to an hour off."""
    off_ms = random.Random(os.getpid()).randint(-3_600_000, 3_600_000)
    engine.PostgresEngine.now_ms = (  # type: ignore[method-assign]
        lambda _self: time.time_ns() // 1_000_000 + off_ms
    )


BREAKING = {
    "lock": _without_lock,
    "lock and key": _without_lock,
    "outcome": _guessing,
    "clock": _own_clock,
}


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


def _rows(server: postgres_server.Server, hive: str, kind: str) -> list[Line]:
    with psycopg.connect(server.url) as db:
        return db.execute(
            "SELECT sequence, line FROM queen_lines WHERE hive = %s AND kind = %s "
            "ORDER BY sequence",
            (hive, kind),
        ).fetchall()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
