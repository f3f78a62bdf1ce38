"""Which grant wins when a merge brings together two that exclude each other.

The older one wins, and the other is *superseded*, from its beginning and for good. This is a
function of the records alone: no clock is read. `docs/format.md`, section "Superseded grants"; ADR
0021, and ADR 0029 for grants that a remote confirmed.
"""

from __future__ import annotations

from operator import attrgetter

from queenbee.core.leases import (
    NEVER_MS,
    assignment_end_ms,
    lease_end_ms,
    stand_against,
)
from queenbee.errors import BadPattern

ENDED = frozenset({"released", "completed", "reassigned"})
"""The statuses of grants that a droid ended."""

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from queenbee.core.records import Assignment, Reservation

    Grant = Assignment | Reservation


def superseded_assignments(of_one_issue: Iterable[Assignment]) -> dict[str, str]:
    """Returns the winner's id for each superseded assignment of one issue."""
    counting: list[tuple[Assignment, int]] = []
    lost: dict[str, str] = {}
    in_order = sorted(of_one_issue, key=attrgetter("age"))
    first = _first_confirmed(in_order)
    for each in in_order:
        # What has ended by now can exclude later ones only by name.
        counting = [(old, end) for old, end in counting if end > each.created_ms or old.outranks]
        end_ms = assignment_end_ms(each)
        if each.token:
            if first is not None and first is not each and end_ms == NEVER_MS:
                lost[each.id] = first.id
                continue
            beaten = {
                old.id
                for old, end in counting
                if not old.token and end_ms > each.created_ms and _wins(old, end, each)
            }
            lost.update((loser, each.id) for loser in beaten)
            counting = [(old, end) for old, end in counting if old.id not in beaten]
            counting.append((each, end_ms))
            continue
        winner = next((old for old, end in counting if _wins(old, end, each)), None)
        if winner is None or end_ms <= each.created_ms:
            counting.append((each, end_ms))
        else:
            lost[each.id] = winner.id
    return lost


def superseded_leases(
    all_leases: Iterable[Reservation], *, fold_case: bool = False
) -> dict[str, str]:
    """Returns the winner's id for each superseded lease of the hive, in one sweep."""
    from heapq import heappop, heappush  # noqa: PLC0415 - start-up

    from queenbee.core.glob.pattern import ByFolder  # noqa: PLC0415 - start-up

    table = ByFolder(fold_case=fold_case)
    counting: dict[str, Reservation] = {}
    ends: list[tuple[int, str]] = []
    lost: dict[str, str] = {}
    all_leases = list(all_leases)
    outranking = _outranking(all_leases)
    for lease in sorted(all_leases, key=attrgetter("age")):
        while ends and ends[0][0] <= lease.created_ms:
            table.discard(heappop(ends)[1])  # It can exclude later ones only by name.
        try:
            # Patterns can be slow to compare: only those of leases that can exclude it are.
            met = table.meeting(lease.pattern, _against(lease, counting))
        except BadPattern:
            continue  # An invalid pattern protects nothing, and excludes nobody.
        named = [each for each in outranking.get(lease.id, ()) if each.id in counting]
        met += [each.id for each in named if _overlap(each, lease, fold_case=fold_case)]
        winners = [counting[key] for key in met if _excludes(counting[key], lease)]
        if winners and not _never_was(lease):
            if not lease.token:
                lost[lease.id] = min(winners, key=attrgetter("age")).id
                continue
            for older in winners:
                if not older.token:
                    lost[older.id] = lease.id
                    counting.pop(older.id, None)
                    table.discard(older.id)
        counting[lease.id] = lease
        table.add(lease.id, lease.pattern)
        heappush(ends, (lease_end_ms(lease), lease.id))
    return lost


class Settled:
    """The verdicts on the leases of a hive, and what is needed of the older ones to judge those
    that were created at `since_ms` or later: the ids of those that still count then.
    """

    __slots__ = ("counting", "lost", "since_ms")

    def __init__(
        self,
        lost: Mapping[str, str] | None = None,
        since_ms: int = -NEVER_MS,
        counting: Sequence[str] = (),
    ) -> None:
        self.lost: Mapping[str, str] = lost or {}
        """The winner's id for each superseded lease."""
        self.since_ms = since_ms
        self.counting = counting

    def going_on(
        self, leases: Iterable[Reservation], *, again: int, fold_case: bool = False
    ) -> Settled:
        """Returns the same once there are more leases: `leases` are all that were created since,
        and those that still count then. So many of them can be judged `again` the next time.
        """
        leases = sorted(leases, key=attrgetter("age"))
        judged = {each.id for each in leases}
        lost = {key: winner for key, winner in self.lost.items() if key not in judged}
        lost |= superseded_leases(leases, fold_case=fold_case)
        since_ms = (
            max(self.since_ms, leases[-again].created_ms) if leases[again:] else self.since_ms
        )
        born_ms = {each.id: each.created_ms for each in leases}
        counting = [
            each.id
            for each in leases
            if each.created_ms < since_ms
            # One that loses to a later one has beaten others until then.
            and (each.id not in lost or born_ms[lost[each.id]] >= since_ms)
            # One that has ended excludes later ones only by name.
            and (lease_end_ms(each) > since_ms or each.outranks)
        ]
        return Settled(lost, since_ms, counting)


def _first_confirmed(assignments: Iterable[Assignment]) -> Assignment | None:
    """Returns the confirmed assignment of an issue that is in effect.

    A remote confirms no second one. Where its branch was rewritten, the smaller number counts.
    """
    active = [each for each in assignments if each.token and assignment_end_ms(each) == NEVER_MS]
    return min(active, key=lambda each: (each.token, each.id), default=None)


def _against(lease: Reservation, others: Mapping[str, Reservation]) -> Callable[[str], bool]:
    """Returns what tells whether another lease, by its id, can exclude this one, or it that."""
    return lambda key: stand_against(others[key], lease)


def _excludes(older: Reservation, younger: Reservation) -> bool:
    return (
        stand_against(older, younger)
        and older.age < younger.age
        and _wins(older, lease_end_ms(older), younger)
    )


def _wins(older: Grant, end_ms: int, younger: Grant) -> bool:
    """Returns whether the older of two conflicting grants excludes the other one."""
    if younger.id in older.outranks:
        return True
    apart = (_has_ended(older) and older.id in younger.follows) or (
        _has_ended(younger) and younger.id in older.follows
    )
    return younger.created_ms < end_ms and not apart


def _has_ended(grant: Grant) -> bool:
    return grant.deleted or grant.status in ENDED


def _never_was(lease: Reservation) -> bool:
    """Returns whether a lease ends at or before its beginning, by a clock that was set back."""
    return lease_end_ms(lease) <= lease.created_ms


def _outranking(all_leases: Iterable[Reservation]) -> dict[str, list[Reservation]]:
    """Returns for each lease those that name it as outranked."""
    found: dict[str, list[Reservation]] = {}
    for older in all_leases:
        for identifier in older.outranks:
            found.setdefault(identifier, []).append(older)
    return found


def _overlap(left: Reservation, right: Reservation, *, fold_case: bool) -> bool:
    from queenbee.core.glob.pattern import overlap  # noqa: PLC0415 - start-up

    try:
        return overlap(left.pattern, right.pattern, fold_case=fold_case) is not None
    except BadPattern:
        return False
