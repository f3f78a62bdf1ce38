"""A simulated team: how long a plan takes with `queen next`, against the best possible.

    python -m bench.team [--plans 10] [--familiar 1.0] [--conflict 0] [--landing 0] [--alone]
        [--modules 0] [--across 0]

Droids with scripted work times take issues with `take_next` and complete them, in one process and
on a clock that the simulation moves. Each issue names one file. In *worktrees*, several droids may
be in a file at once; in *one tree*, a droid reserves the file of its issue first, and waits for it.

The bound is what no schedule with perfect knowledge can beat: the longest chain of work, all work
shared equally, or (in one tree) all work on one file. The true optimum may be later.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from queenbee import Hive
from queenbee.core.beads import ACROSS
from queenbee.errors import Held
from queenbee.services.waiting.pauses import finish
from queenbee.services.work import Begin, take_next

TEAMS = (3, 8, 16)
SIZES = (30, 100, 300)
_START_MS = 1_767_600_000_000


@dataclass(frozen=True)
class Task:
    """One issue of a plan: its work time in minutes, its file, and the issues that it waits for."""

    name: str
    minutes: int
    file: str
    needs: tuple[str, ...]
    is_across: bool = False
    """Whether it is about all files."""

    def meets(self, other: Task) -> bool:
        """Returns whether both are about one file."""
        return self.is_across or other.is_across or self.file == other.file

    def row(self, *, estimated: bool) -> dict[str, object]:
        """Returns the issue as the tracker holds it."""
        return {
            "id": self.name,
            "title": f"work in {'all files' if self.is_across else self.file}",
            **({"labels": [ACROSS]} if self.is_across else {}),
            "status": "open",
            "dependencies": list(self.needs),
            **({"estimated_minutes": self.minutes} if estimated else {}),
        }


@dataclass
class Outcome:
    """What a simulated run took: minutes, calls, waits for files."""

    makespan: float = 0
    calls: int = 0
    waits: list[float] = field(default_factory=list)
    share: float = 0
    """The fair share: the longest wait for a file if each droid before one had it once."""
    met: int = 0
    """How often a droid began in a file that another one was in."""


def make_plan(size: int, seed: int, modules: int = 0, across: int = 0) -> list[Task]:
    """Returns a plan in layers, as plans of sprints are: each issue waits for up to three before
    it, and a third of the issues share files; or, with `modules`, each is about one of these. So
    many of them are about all files.
    """
    chance = random.Random(seed)
    tasks: list[Task] = []
    for number in range(size):
        before = tasks[max(0, number - size // 3) :]
        needs = chance.sample(before, min(len(before), chance.choice((0, 0, 1, 1, 2, 3))))
        shared = chance.random() < 1 / 3
        file = f"shared{chance.randrange(max(2, size // 12))}.py" if shared else f"own{number}.py"
        file = f"module{chance.randrange(modules)}.py" if modules else file
        minutes = chance.choice((2, 3, 5, 5, 8, 13))
        tasks.append(Task(f"t-{number}", minutes, file, tuple(each.name for each in needs)))
    for number in random.Random(seed).sample(range(size), across):
        tasks[number] = replace(tasks[number], is_across=True)
    return tasks


def bound(plan: list[Task], droids: int, *, one_tree: bool) -> float:
    """Returns the minutes that no schedule can beat."""
    ends: dict[str, int] = {}
    files: dict[str, int] = {}
    for task in plan:
        ends[task.name] = task.minutes + max((ends[need] for need in task.needs), default=0)
        files[task.file] = files.get(task.file, 0) + task.minutes
    work = sum(task.minutes for task in plan) / droids
    return max([max(ends.values()), work, *(files.values() if one_tree else ())])


def simulate(
    plan: list[Task],
    droids: int,
    *,
    one_tree: bool,
    estimated: bool,
    familiar: float = 1.0,
    conflict: float = 0.0,
    landing: float = 0.0,
    alone: bool = False,
) -> Outcome:
    """Works a plan off and returns what it took.

    Work in a file that the droid has worked in before takes `familiar` times as long. For each
    other droid that is at work in the same file when it begins, it takes `conflict` minutes more.
    In worktrees, a droid takes its whole share unless it works on each issue `alone`, and each
    landing of what it has takes `landing` minutes.
    """
    known: set[tuple[int, str]] = set()
    by_name = {task.name: task for task in plan}
    outcome = Outcome()
    now = 0.0
    with tempfile.TemporaryDirectory() as folder:
        beads = Path(folder) / ".beads"
        beads.mkdir()
        for task in plan:
            (Path(folder) / task.file).touch()
        rows = (json.dumps(each.row(estimated=estimated)) for each in plan)
        (beads / "issues.jsonl").write_text("".join(f"{row}\n" for row in rows))

        def clock() -> int:
            return _START_MS + int(now * 60_000)

        env = {"QUEEN_DURABILITY": "buffered"}
        hives = [Hive.open(folder, droid=f"d-{n}", env=env, clock=clock) for n in range(droids)]
        idle = list(range(droids))
        waiting: set[int] = set()
        working: list[tuple[float, int, str]] = []
        with_it: dict[str, list[str]] = {}
        queue: list[tuple[int, str, float]] = []  # who waits for the file of which issue, since
        while idle or working:
            queue = _serve(queue, hives, by_name, working, now, outcome)
            asleep = []
            for number in idle:
                outcome.calls += number not in waiting  # `--wait` goes on: no new call.
                taken = finish(take_next(hives[number]))
                if not isinstance(taken, Begin):
                    asleep.append(number)
                    waiting.add(number)
                    continue
                waiting.discard(number)
                task = by_name[taken.assignment.issue_id]
                if one_tree:
                    queue.append((number, task.name, now))
                else:
                    more = [] if alone else [each.id for each in taken.share]
                    with_it[task.name] = [
                        hives[number].assignments.claim(each).issue_id for each in more
                    ]
                    minutes = landing
                    for each in (by_name[key] for key in (task.name, *more)):
                        pace = familiar if (number, each.file) in known else 1.0
                        known.add((number, each.file))
                        there = sum(by_name[one].meets(each) for _, _, one in working)
                        outcome.met += there
                        minutes += pace * each.minutes + conflict * there
                    heapq.heappush(working, (now + minutes, number, taken.assignment.issue_id))
            if len(queue):
                queue = _serve(queue, hives, by_name, working, now, outcome)
            if not working:
                break
            now, number, name = heapq.heappop(working)
            for each in (name, *with_it.pop(name, ())):
                hives[number].assignments.complete(each)
            idle = [*asleep, number]
        outcome.makespan = now
        done = all(issue.done for issue in hives[0].issues.all().values())
        assert done, "the simulated team left work"
        for hive in hives:
            hive.close()
    outcome.share = statistics.mean(task.minutes for task in plan) * (droids - 1)
    return outcome


def _serve(
    queue: list[tuple[int, str, float]],
    hives: list[Hive],
    by_name: dict[str, Task],
    working: list[tuple[float, int, str]],
    now: float,
    outcome: Outcome,
) -> list[tuple[int, str, float]]:
    """Gives files to whoever waits, first come, first served; returns who still waits."""
    left = []
    for number, name, since in queue:
        task = by_name[name]
        try:
            hives[number].reservations.reserve([task.file], issue_id=name)
        except Held:
            left.append((number, name, since))
            continue
        outcome.calls += 1
        outcome.waits.append(now - since)
        heapq.heappush(working, (now + task.minutes, number, name))
    return left


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=10, help="plans of each size")
    parser.add_argument(
        "--familiar",
        type=float,
        default=1.0,
        help="share of the time that work in a known file takes",
    )
    parser.add_argument(
        "--conflict",
        type=float,
        default=0.0,
        help="minutes more for each other droid that is in the file when work in it begins",
    )
    parser.add_argument("--landing", type=float, default=0.0, help="minutes that a landing takes")
    parser.add_argument("--alone", action="store_true", help="take no share, one issue at a time")
    parser.add_argument("--modules", type=int, default=0, help="every issue is about one of these")
    parser.add_argument("--across", type=int, default=0, help="so many issues are about all files")
    options = parser.parse_args()
    costs = {each: getattr(options, each) for each in ("familiar", "conflict", "landing", "alone")}
    print(
        "| files | estimates | droids | issues | × bound, median | worst | calls an issue |"
        " longest wait, of the fair share |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for one_tree in (False, True):
        for estimated in (True, False):
            for droids in TEAMS:
                for size in SIZES:
                    how = {"one_tree": one_tree, "estimated": estimated}
                    _print_row(
                        droids,
                        size,
                        options.plans,
                        (options.modules, options.across),
                        costs=costs,
                        **how,
                    )


def _print_row(
    droids: int,
    size: int,
    plans: int,
    about: tuple[int, int],
    *,
    one_tree: bool,
    estimated: bool,
    costs: Mapping[str, float],
) -> None:
    ratios, calls, waits = [], [], [0.0]
    for seed in range(plans):
        plan = make_plan(size, seed, *about)
        outcome = simulate(plan, droids, one_tree=one_tree, estimated=estimated, **costs)
        ratios.append(outcome.makespan / bound(plan, droids, one_tree=one_tree))
        calls.append(outcome.calls / size)
        waits.append(max(outcome.waits, default=0) / outcome.share)
    print(
        f"| {'one tree' if one_tree else 'worktrees'} | {'yes' if estimated else 'no'} | {droids} "
        f"| {size} | {statistics.median(ratios):.2f} | {max(ratios):.2f} "
        f"| {statistics.median(calls):.2f} | {max(waits):.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
