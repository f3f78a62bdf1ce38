"""What the agents of `queen start` have cost on this machine, by issue and agent, as their clients
report it: one file in the untracked state.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from queenbee.core.timestamps import format_ms
from queenbee.store.droids import roster
from queenbee.store.whole_files import keep, recall

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection

    from queenbee.store.layout import Layout

_MOST = 5_000
"""Entries that are kept, the newest."""
_MOST_BYTES = 2**20
_KINDS = (str, str, float, int, int)


class Cost(NamedTuple):
    """What one run of a client has cost; 0 for what it does not report."""

    usd: float = 0.0
    tokens: int = 0
    """Read, also from a cache, and written."""


class Spent(NamedTuple):
    """What one issue has cost with one agent, in all of its runs."""

    issue_id: str
    droid: str
    cost_usd: float
    tokens: int
    at_ms: int
    """When that was reported last."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        found = self._asdict()
        at_ms = found.pop("at_ms")
        return {**found, "at": format_ms(at_ms)}


def spent(layout: Layout) -> list[Spent]:
    """Returns what is known, what was reported last at the end."""
    rows = recall(_path(layout), _MOST_BYTES)
    return [
        Spent(*row)
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, list) and [type(each) for each in row] == [*_KINDS]
    ]


def by_issue(layout: Layout) -> dict[str, float]:
    """Returns what each issue has cost, in dollars."""
    found = dict[str, float]()
    for each in spent(layout):
        found[each.issue_id] = found.get(each.issue_id, 0.0) + each.cost_usd
    return found


def add(layout: Layout, issue_ids: Collection[str], droid: str, cost: Cost, at_ms: int) -> None:
    """Adds what a run has cost, in equal parts to the issues that it was about. Never fails. Only
    the team of a hive writes, and there is one.
    """
    if not any(cost) or not issue_ids:
        return
    known = {(each.issue_id, each.droid): each for each in spent(layout)}
    for issue_id in issue_ids:
        before = known.pop((issue_id, droid), Spent(issue_id, droid, 0.0, 0, 0))
        usd, tokens = (part / len(issue_ids) for part in cost)
        known[issue_id, droid] = before._replace(
            cost_usd=before.cost_usd + usd, tokens=before.tokens + round(tokens), at_ms=at_ms
        )
    keep(_path(layout), [*known.values()][-_MOST:])


def _path(layout: Layout) -> str:
    return os.path.join(roster.folder(layout), "spent")
