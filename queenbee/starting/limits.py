"""What ends a team although there is work left, and what keeps one more agent from beginning."""

from __future__ import annotations

import os
from dataclasses import dataclass

from queenbee.errors import QueenError
from queenbee.store import safe_open

_LEAST_MEMORY = 512 * 2**20
_MOST_LOAD = 4.0
"""Of each core: with more, one agent more makes all slower."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a team ends although there is work left; 0: no limit."""

    minutes: float = 0
    issues: int = 0
    failures: int = 0
    cost_usd: float = 0
    issue_cost_usd: float = 0
    """Of one issue, in all of its runs on this machine: it is left, and the team goes on."""

    def reached(self, *, spent_s: float, landed: int, failures: int, cost_usd: float) -> str:
        """Returns which limit is reached, in words, or nothing."""
        found = (
            (self.minutes, spent_s / 60, "--max-minutes"),
            (self.issues, landed, "--max-issues"),
            (self.failures, failures, "--max-failures"),
            (self.cost_usd, cost_usd, "--max-cost"),
        )
        reached = (
            f"{name} {most:g} is reached" for most, now, name in found if most and now >= most
        )
        return next(reached, "")


def no_room() -> str:
    """Returns why this machine has no memory or processors for one more agent, or nothing."""
    try:
        load, most = os.getloadavg()[0], _MOST_LOAD * (os.cpu_count() or 1)
        if load > most:
            return f"the load is {load:.0f}, more than {most:.0f}"
        said = safe_open.read("/proc/meminfo", 4096).decode()
        line = next(each for each in said.splitlines() if each.startswith("MemAvailable:"))
        free, least = int(line.split()[1]) // 1024, _LEAST_MEMORY // 2**20
        return f"{free} MiB of memory are free, less than {least}" if free < least else ""
    except (OSError, QueenError, StopIteration, ValueError, IndexError):
        return ""  # A system that does not say so.
