"""Leases: when one ends, when two exclude each other, and which ones a wrong clock granted.

A *shared* lease announces an edit: it excludes another only in one working tree. ADR 0023.
"""

from __future__ import annotations

from queenbee.core.records import Reservation
from queenbee.core.text import suggested
from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from queenbee.core.records import Assignment, Record

    class Mode(Protocol):
        """What of a lease, or of a wish for one, decides what it excludes."""

        @property
        def exclusive(self) -> bool: ...
        @property
        def tree_id(self) -> str | None: ...


MIN_TTL_S = 1
MAX_TTL_S = 30 * 86_400
CLOCKS_DIFFER_MS = 24 * 3_600_000
"""Right clocks differ by less: also one that shows another time zone's hour as UTC."""
NEVER_MS = 2**62
_LEAST_WAIT_S = 60
_UNKNOWN_WAIT_S = 5 * 60
"""The wait to suggest for a holder that has never ended a lease: agents' calls end by then."""


def as_of(fields: Mapping[str, object], now_ms: int) -> Reservation:
    """Returns the reservation as of `now_ms`: an active one past its end is expired.

    A lease without a readable end has ended: it must not block forever.
    """
    if Reservation(fields).status == "active":
        expires_ms = instant_ms(fields.get("expires_at"))
        if expires_ms is None or expires_ms <= now_ms:
            return Reservation({**fields, "status": "expired"})
    return Reservation(fields)


def is_live(lease: Reservation) -> bool:
    """Returns whether a lease (as of some instant) counts."""
    return lease.status == "active" and not lease.deleted and lease.superseded_by is None


class Asker:
    """Who asks for a lease, and for which: as much of it as decides what excludes it.

    A `Reservation` has the same four attributes, so each can be held against the other.
    """

    __slots__ = ("droid", "exclusive", "session", "tree_id")

    def __init__(
        self,
        droid: str | None,
        *,
        exclusive: bool,
        tree_id: str | None = None,
        session: str | None = None,
    ) -> None:
        self.droid: str | None = droid
        self.exclusive: bool = exclusive
        self.tree_id: str | None = tree_id
        """The working tree of an announcement; None for one that excludes no other."""
        self.session: str | None = session

    def of_session(self, session: str | None) -> Asker:
        """Returns the same droid, asking for the same in another session."""
        return Asker(self.droid, exclusive=self.exclusive, tree_id=self.tree_id, session=session)


def exclude(one: Mode, other: Mode) -> bool:
    """Returns whether two leases on one path exclude each other, if others hold them."""
    return one.exclusive or other.exclusive or bool(one.tree_id and one.tree_id == other.tree_id)


def stand_against(lease: Reservation, asker: Asker | Reservation) -> bool:
    """Returns whether an overlapping live lease refuses what somebody asks for.

    A droid never stands in its own way, except that two of its sessions that announce in one
    working tree do: each would destroy what the other one edits.
    """
    if not exclude(lease, asker):
        return False
    if lease.droid != asker.droid:
        return True
    is_announced = not (lease.exclusive or asker.exclusive)
    return is_announced and bool(lease.session and asker.session and lease.session != asker.session)


def serves(lease: Reservation, asker: Asker) -> bool:
    """Returns whether a live lease on a path already gives somebody what they ask for there.

    An announcement serves only the session and the working tree that made it.
    """
    if lease.droid != asker.droid:
        return False
    if lease.exclusive or asker.exclusive:
        return lease.exclusive
    return _same(lease.tree_id, asker.tree_id) and _same(lease.session, asker.session)


def _same(one: str | None, other: str | None) -> bool:
    return (one or None) == (other or None)


def assignment_end_ms(assignment: Assignment) -> int:
    """Returns when an assignment ended, in ms since 1970; `NEVER_MS` while it is active."""
    if assignment.deleted:
        return assignment.created_ms
    if assignment.status == "active":
        return NEVER_MS
    return instant_ms(assignment.get("updated_at")) or assignment.created_ms


def lease_end_ms(lease: Reservation) -> int:
    """Returns when a lease ended or will end, in ms since 1970."""
    if lease.deleted:
        return lease.created_ms
    released_ms = instant_ms(lease.get("released_at"))
    if lease.status == "released" and released_ms is not None:
        return min(released_ms, lease.expires_ms)
    return lease.expires_ms


def reserving_again(lost: Sequence[Reservation]) -> str:
    """Returns the command that asks again for leases that were taken over, and waits for them."""
    shared = None if any(lease.exclusive for lease in lost) else True
    patterns = [lease.pattern for lease in lost]
    return suggested("queen reserve", *patterns, shared=shared, wait=f"{_UNKNOWN_WAIT_S // 60}m")


def sensible_wait_s(holds_ms: Sequence[int], left_ms: int) -> int:
    """Returns how long to wait for a holder: as long as it usually holds a lease, by the median of
    the leases that it has ended. At least a minute, and never longer than what is left of this one.
    """
    usual_s = _UNKNOWN_WAIT_S
    if holds_ms:
        usual_s = max(_LEAST_WAIT_S, -(-sorted(holds_ms)[len(holds_ms) // 2] // 1000))
    return max(1, min(usual_s, -(-left_ms // 1000)))


# Clocks that are wrong: which instants no right clock can have written. Nothing of this decides who
# holds what: that follows from the records and the present alone, so that clones never differ about
# it. `docs/format.md`, section "Clocks"; ADR 0021.


def is_absurd(at_ms: int, present_ms: int) -> bool:
    """Returns whether an event is dated further in the future than clocks differ."""
    return at_ms > present_ms + CLOCKS_DIFFER_MS


def held_absurdly(lease: Reservation, present_ms: int) -> bool:
    """Returns whether a live lease was granted by a wrong clock, and so may not end for years."""
    return is_live(lease) and (
        changed_absurdly(lease, present_ms)
        or is_absurd(lease.expires_ms, present_ms + MAX_TTL_S * 1000)
    )


def ended_absurdly(lease: Reservation, present_ms: int) -> bool:
    """Returns whether a released lease says that it ends in the future."""
    ended = lease.status == "released" and not lease.deleted
    return ended and is_absurd(lease_end_ms(lease), present_ms)


def changed_absurdly(record: Record, present_ms: int) -> bool:
    """Returns whether a record says that it was created or changed in the future."""
    changed_ms = instant_ms(record.get("updated_at")) or 0
    return is_absurd(max(record.created_ms, changed_ms), present_ms)


def repaired_end_ms(record: Record, present_ms: int, now_ms: int) -> int:
    """Returns the end to assume for a grant whose recorded end is in the future.

    Its beginning, because every clone that repairs it writes the same; the present if that is in
    the future too.
    """
    return now_ms if is_absurd(record.created_ms, present_ms) else record.created_ms
