"""Which grant wins when a merge brings together two that exclude each other.

Before a merge, two clones may each grant the same issue or overlapping files. The older grant wins
(by `created_at`, then id). The other one is *superseded*, from its beginning and for good, so that
every clone judges later grants alike. This is a function of the records alone: no line is
rewritten. `docs/format.md`, section "Superseded grants".
"""

from __future__ import annotations

from operator import attrgetter

from queenbee.core.leases import assignment_end_ms, lease_end_ms, parts_taken, stand_against
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.core.records import Assignment, Reservation


def superseded_assignments(of_one_issue: Iterable[Assignment]) -> dict[str, str]:
    """Returns the winner's id for each superseded assignment of one issue.

    The winners follow one another, so only the last of them can exclude the next.
    """
    last: Assignment | None = None
    ends_ms = 0
    lost: dict[str, str] = {}
    for each in sorted(of_one_issue, key=attrgetter("age")):
        if last is not None and each.created_ms < ends_ms:
            lost[each.id] = last.id
        else:
            last, ends_ms = each, assignment_end_ms(each)
    return lost


def superseded_leases(
    all_leases: Iterable[Reservation], *, fold_case: bool = False
) -> dict[str, str]:
    """Returns the winner's id for each superseded lease of the hive, in one sweep."""
    from heapq import heappop, heappush  # noqa: PLC0415 - start-up

    from queenbee.core.glob.index import GlobIndex  # noqa: PLC0415 - start-up

    index = GlobIndex(fold_case=fold_case)
    counting: dict[str, Reservation] = {}
    ends: list[tuple[int, str]] = []
    lost: dict[str, str] = {}
    for lease in sorted(all_leases, key=attrgetter("age")):
        while ends and ends[0][0] <= lease.created_ms:
            index.discard(heappop(ends)[1])
        try:
            met = index.overlapping(lease.pattern)
        except BadPattern:
            continue  # An invalid pattern protects nothing, and excludes nobody.
        winners = [
            counting[key]
            for key, _ in met
            if _excludes(counting[key], lease) and _shares(counting[key], lease, fold_case)
        ]
        if winners:
            lost[lease.id] = min(winners, key=attrgetter("age")).id
        else:
            counting[lease.id] = lease
            index.add(lease.id, lease.pattern)
            heappush(ends, (lease_end_ms(lease), lease.id))
    return lost


def _excludes(older: Reservation, younger: Reservation) -> bool:
    return (
        stand_against(older, droid=younger.droid, exclusive=younger.exclusive)
        and older.age < younger.age
        and younger.created_ms < lease_end_ms(older)
    )


def _shares(older: Reservation, younger: Reservation, fold_case: bool) -> bool:
    """Returns whether two overlapping leases overlap in what the older one still covered."""
    gone = parts_taken(older, until_ms=younger.created_ms)
    if not gone:
        return True
    from queenbee.core.glob.outside import overlap_outside  # noqa: PLC0415 - start-up

    return overlap_outside(older.pattern, younger.pattern, gone, fold_case=fold_case) is not None
