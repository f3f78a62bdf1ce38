"""Relieving a droid that shows no sign of life, while another one has nothing to do.

Whoever waits for an issue looks: first it asks the droid, as `queen msg nudge` does, and later it
takes the issue, if there was no answer. `docs/format.md#nudges`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from queenbee.core.names import ALWAYS_KNOWN
from queenbee.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from queenbee.core.readiness import Standing
    from queenbee.core.records import Assignment
    from queenbee.services.hive import Services
    from queenbee.services.waiting.queue import PlaceInLine


class Unfinished(Protocol):
    """What a droid has not landed."""

    def sentence(self, issue_id: str = "ISSUE") -> str:
        """Returns where it is, and how to go on with the issue; empty if there is none."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""


class Keeper(Protocol):
    """What only git knows of the worktree of a droid."""

    def note_signs(self, droid: str) -> bool:
        """Notes a change there as a sign of life; returns whether there was one."""

    def note_signs_of(self, droids: Iterable[str]) -> bool:
        """Does the same for some of these."""

    def keep(self, assignment: Assignment) -> Unfinished | None:
        """Keeps what is not committed there on a branch of its own, and touches nothing else."""


class Relief:
    """An issue that was taken over: from whom, why, and what it has left."""

    def __init__(self, droid: str, assignment: Assignment, unfinished: Unfinished | None) -> None:
        self.droid = droid
        self.assignment = assignment
        self.unfinished = unfinished

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        unfinished = self.unfinished.to_dict() if self.unfinished is not None else None
        return {"droid": self.droid, "unfinished": unfinished}


def relieve(
    hive: Services,
    place: PlaceInLine,
    standings: Sequence[Standing],
    keeper_of: Callable[[Services], Keeper],
) -> Relief | None:
    """Returns an issue that the actor takes over, or None. Asks the droids that have been silent
    for too long.
    """
    silent = list(_silent(hive, standings))
    if not silent:
        return None
    place.take()  # Only while somebody waits are they asked so soon.
    keeper = keeper_of(hive)
    for held in silent:
        droid = held.droid
        if not hive.droids.is_quiet(droid):
            continue
        keeper.note_signs(droid)
        if hive.nudges.may_take_over(droid) is None:
            with suppress(Conflict, NotFound):
                hive.nudges.nudge(droid)
        elif not hive.queue.ahead_of(place.want, before=place.name):
            unfinished = keeper.keep(held)
            where = unfinished.sentence(held.issue_id) if unfinished is not None else ""
            given = hive.assignments.relieve(held, where)
            if given is not None:
                return Relief(droid, given, unfinished)
    return None


def _silent(hive: Services, standings: Sequence[Standing]) -> Iterator[Assignment]:
    """Yields the assignments of others who may have been silent for too long, oldest first."""
    under_way = {each.issue.id for each in standings if each.state == "active"}
    for each in hive.assignments.find() if under_way else ():
        waits = each.review is not None and not each.review.asks_droid  # For people, or its host.
        is_others = not waits and each.droid not in (hive.actor, *ALWAYS_KNOWN)
        others = each.issue_id in under_way and is_others
        if others and hive.droids.silent_s(each.droid) is not None:
            yield each
