"""When a record is closed: nothing more is expected of it, and it may leave its ledger."""

from __future__ import annotations

from queenbee.core.fold import newest_ms
from queenbee.core.leases import assignment_end_ms, lease_end_ms
from queenbee.core.records import Assignment, Reservation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.core.fold import Fields


def closed_ms(kind: str, fields: Fields) -> int | None:
    """Returns since when a record is closed, in ms since 1970; in the future for one that is
    still open, and None for a kind that we know nothing about.

    A grant is closed when it ends. A message is from its last change on: it is found and can be
    read wherever it stands.
    """
    if kind == "assignments":
        return assignment_end_ms(Assignment(fields))
    if kind == "reservations":
        return lease_end_ms(Reservation(fields))
    if kind in ("messages", "verifications"):
        return newest_ms(fields)
    return None
