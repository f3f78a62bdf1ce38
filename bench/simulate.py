"""What saturates first with many agents: a simulation of discrete events, from measured times.

    python -m bench.simulate [--agents 1000] [--work 20] [--check 10]

Each agent takes an issue (a claim and a reservation), works on it, and lands it; meanwhile it
writes. Agents share a turn at writing or the remote's branch, and a turn to land. The times are
those of docs/performance.md; that of the work is exponential.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
from collections import deque
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WRITE_S = 1 / 505
"""One of many writes to a hive in PostgreSQL, which take turns."""
ALONE_S, CONTENDED_S = 0.19, 1 / 1.8
"""A push that confirms the grants of a machine: alone, and with others that push."""
LAND_S = 0.31
"""A landing beside its check."""
WRITES, GRANTS = 8, 2
"""Of each issue: its records, and those that are to be confirmed."""
SEARCH = 1.35
"""Checks that find one bad branch, for each halving of its group: 6.4 for one of 16."""
MOST, GROUP = 16, 0.6
"""Branches that are tried with one check, and how many of them may be bad."""
BAD = 0.05
HOURS = 4
PER_MACHINE = 25


class Station:
    """Serves what waits: so many together, of one machine or of any."""

    def __init__(
        self, team: Team, took_s: Callable[[list[Job]], float], most: int, *, of_one: bool = False
    ) -> None:
        self._team, self._took_s, self._most, self._of_one = team, took_s, most, of_one
        self.waiting: deque[Job] = deque()
        self.busy_s, self.is_busy = 0.0, False
        self.waits: list[float] = []

    def ask(self, machine: int, then: Callable[[], None]) -> None:
        self.waiting.append((machine, self._team.now, then))
        if not self.is_busy:
            self._serve()

    def _serve(self) -> None:
        self.is_busy = bool(self.waiting)
        if not self.waiting:
            return
        first = self.waiting[0][0]
        fit = (each for each in self.waiting if not self._of_one or each[0] == first)
        some = [each for each, _ in zip(fit, range(self._most), strict=False)]
        self.waiting = deque(each for each in self.waiting if each not in some)
        took = self._took_s(some)
        self.busy_s += took
        self._team.after(took, lambda: self._served(some))

    def _served(self, some: list[Job]) -> None:
        for _, since, then in some:
            self.waits.append(self._team.now - since)
            then()
        self._serve()


Job = tuple[int, float, "Callable[[], None]"]


class Team:
    """Agents on machines, for some hours."""

    def __init__(
        self, agents: int, work_s: float, check_s: float, carrier: str, bad: float
    ) -> None:
        self.now, self._events, self._order = 0.0, [], count()  # type: ignore[var-annotated]
        self._random = random.Random(agents)
        self._work_s, self._check_s, self._carrier, self._bad = work_s, check_s, carrier, bad
        self.landed = 0
        self.stations = {
            "writes": Station(self, lambda _: WRITE_S, 1),
            "pushes": Station(self, self._push_s, agents, of_one=True),
            "landing": Station(self, self._land_s, min(MOST, int(GROUP / max(bad, 0.001)))),
        }
        for agent in range(agents):
            self.after(self._random.random() * work_s, partial(self._take, agent))
        while self._events and self.now < HOURS * 3600:
            self.now, _, what = heapq.heappop(self._events)
            what()

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), what))

    def _push_s(self, some: list[Job]) -> float:
        return CONTENDED_S if self.stations["pushes"].waiting else ALONE_S

    def _land_s(self, some: list[Job]) -> float:
        bad = sum(self._random.random() < self._bad for _ in some)
        checks = min(len(some), 1 + bad * SEARCH * math.log2(len(some)))
        return checks * self._check_s + LAND_S * len(some)

    def _take(self, agent: int) -> None:
        self._write(agent, GRANTS, lambda: self._work(agent))

    def _write(self, agent: int, many: int, then: Callable[[], None]) -> None:
        if not many:
            then()
            return
        station = self.stations["writes" if self._carrier == "PostgreSQL" else "pushes"]
        station.ask(agent // PER_MACHINE, lambda: self._write(agent, many - 1, then))

    def _work(self, agent: int) -> None:
        work_s = self._random.expovariate(1 / self._work_s)
        # Over a remote, what needs no confirmation is written here, and sent with the next push.
        left = WRITES - GRANTS if self._carrier == "PostgreSQL" else 0
        self.after(work_s, lambda: self._write(agent, left, lambda: self._land(agent)))

    def _land(self, agent: int) -> None:
        def landed() -> None:
            self.landed += 1
            self._take(agent)

        self.stations["landing"].ask(agent // PER_MACHINE, landed)


def main() -> None:
    """Prints a row for each carrier, share of bad work and size of team."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="*", default=[16, 100, 300, 1000])
    parser.add_argument("--work", type=float, default=20, help="minutes of an issue")
    parser.add_argument("--check", type=float, default=10, help="seconds of a check")
    options = parser.parse_args()
    for carrier in ("PostgreSQL", "a remote"):
        for bad in (0.0, BAD):
            for agents in options.agents:
                team = Team(agents, options.work * 60, options.check, carrier, bad)
                print(
                    f"{carrier}, {bad:.0%} bad, {agents} agents: {team.landed / HOURS:,.0f} of "
                    f"{agents * 60 / options.work:,.0f} issues an hour"
                )
                for name, each in team.stations.items():
                    busy = min(100, each.busy_s / HOURS / 36)
                    if each.waits:
                        wait_s = statistics.median(each.waits)
                        print(f"    {name} {busy:.0f} % busy, served in {wait_s:.1f} s")


if __name__ == "__main__":
    main()
