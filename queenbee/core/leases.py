"""Leases: when one ends, and when two exclude each other.

An *exclusive* lease keeps everybody else out. A *shared* one is an announcement: its droid edits
there too, and git merges what the droids did. In one working tree git merges nothing, so there
announcements exclude each other. ADR 0023.
"""

from __future__ import annotations

from queenbee.core.records import Reservation
from queenbee.core.timestamps import instant_ms
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from queenbee.core.records import Assignment

    class Mode(Protocol):
        """What of a lease, or of a wish for one, decides what it excludes."""

        @property
        def exclusive(self) -> bool: ...
        @property
        def tree_id(self) -> str | None: ...


MIN_TTL_S = 1
MAX_TTL_S = 30 * 86_400
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
        self.droid = droid
        self.exclusive = exclusive
        self.tree_id = tree_id
        """The working tree of an announcement; None for one that excludes no other."""
        self.session = session


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


def parts_taken(lease: Reservation, *, until_ms: int = NEVER_MS) -> dict[str, int]:
    """Returns the literal paths for which a lease ended by `until_ms` though the rest of it goes
    on, each with that instant in ms since 1970.
    """
    entries = lease.fields.get("taken_over")
    if not isinstance(entries, list):
        return {}
    from queenbee.core.glob.pattern import literal_path  # noqa: PLC0415 - start-up

    taken: dict[str, int] = {}
    for each in (entry for entry in entries if isinstance(entry, dict)):
        pattern, at_ms = each.get("pattern"), instant_ms(each.get("at"))
        try:
            path = literal_path(pattern) if isinstance(pattern, str) else None
        except BadPattern:
            path = None
        # What cannot be read stays with the holder.
        if path is not None and at_ms is not None and at_ms <= until_ms:
            taken[path] = min(at_ms, taken.get(path, at_ms))
    return taken


def assignment_end_ms(assignment: Assignment) -> int:
    """Returns when an assignment ended, in ms since 1970; `NEVER_MS` while it is active."""
    if assignment.deleted:
        return assignment.created_ms
    if assignment.status == "active":
        return NEVER_MS
    return instant_ms(assignment.fields.get("updated_at")) or assignment.created_ms


def lease_end_ms(lease: Reservation) -> int:
    """Returns when a lease ended or will end, in ms since 1970."""
    if lease.deleted:
        return lease.created_ms
    released_ms = instant_ms(lease.fields.get("released_at"))
    if lease.status == "released" and released_ms is not None:
        return min(released_ms, lease.expires_ms)
    return lease.expires_ms


def sensible_wait_s(holds_ms: Sequence[int], left_ms: int) -> int:
    """Returns how long to wait for a holder: as long as it usually holds a lease, by the median of
    the leases that it has ended. At least a minute, and never longer than what is left of this one.
    """
    usual_s = _UNKNOWN_WAIT_S
    if holds_ms:
        usual_s = max(_LEAST_WAIT_S, -(-sorted(holds_ms)[len(holds_ms) // 2] // 1000))
    return max(1, min(usual_s, -(-left_ms // 1000)))
