"""Clocks that are wrong: which instants no right clock can have written.

Nothing here decides who holds what: that follows from the records and the present alone, so that
clones never differ about it. `docs/format.md`, section "Clocks"; ADR 0021.
"""

from __future__ import annotations

from queenbee.core.leases import MAX_TTL_S, is_live, lease_end_ms
from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.core.records import Record, Reservation

CLOCKS_DIFFER_MS = 24 * 3_600_000
"""Right clocks differ by less: also one that shows another time zone's hour as UTC."""


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
    changed_ms = instant_ms(record.fields.get("updated_at")) or 0
    return is_absurd(max(record.created_ms, changed_ms), present_ms)


def repaired_end_ms(record: Record, present_ms: int, now_ms: int) -> int:
    """Returns when a grant that says it ended in the future shall be read to have ended.

    Its beginning, because every clone that repairs it writes the same; the present if that is in
    the future too.
    """
    return now_ms if is_absurd(record.created_ms, present_ms) else record.created_ms
