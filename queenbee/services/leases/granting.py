"""One lease as it is written: granted, or extended. `services.reservations` decides which."""

from __future__ import annotations

from queenbee.core import leases
from queenbee.core.records import Reservation
from queenbee.core.timestamps import format_ms
from queenbee.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.services.transaction import Transaction

KIND = "reservations"


class Request:
    """What a droid asks for, and how."""

    __slots__ = (
        "droid",
        "exclusive",
        "force",
        "issue_id",
        "origin",
        "patterns",
        "reason",
        "ttl_s",
    )

    def __init__(
        self,
        droid: str,
        patterns: Mapping[str, str],
        exclusive: bool,
        ttl_s: int,
        issue_id: str | None,
        reason: str | None,
        force: bool,
        origin: Mapping[str, str | None],
    ) -> None:
        self.droid = droid
        self.patterns = patterns
        """From the root, each with the text that was typed for it."""
        self.exclusive = exclusive
        self.ttl_s = ttl_s
        self.issue_id = issue_id
        self.reason = reason
        self.force = force
        self.origin = origin


def checked_ttl_s(ttl_s: int) -> int:
    """Returns a time to live unchanged. Raises `InvalidInput` outside 1 second to 30 days."""
    if not isinstance(ttl_s, int):
        raise InvalidInput(f"{ttl_s!r} is no number of seconds", hint="for two hours: 7200")
    if not leases.MIN_TTL_S <= ttl_s <= leases.MAX_TTL_S:
        raise InvalidInput(
            f"a reservation cannot last {ttl_s} seconds", hint="choose 1s to 30d, as in --ttl 2h"
        )
    return ttl_s


def granted(
    tx: Transaction, request: Request, pattern: str, overlapping: Sequence[Reservation]
) -> Reservation:
    """Adds the lease on one pattern, or extends the one that the droid has on it."""
    for lease in overlapping:
        if lease.droid == request.droid and lease.pattern == pattern:
            # Holding more than is asked for stays: a repeat never weakens a lease.
            changes: dict[str, object] = {"exclusive": lease.exclusive or request.exclusive}
            if request.issue_id:
                changes["issue_id"] = request.issue_id
            if request.reason:
                changes["reason"] = request.reason
            if lease.session and not request.origin:
                changes["session"] = ""  # Asked for by name: it no longer ends with the session.
            return extended(tx, lease, request.ttl_s, changes)
    fields = {
        "expires_at": format_ms(tx.now_ms + request.ttl_s * 1000),
        "pattern": pattern,
        "droid": request.droid,
        "issue_id": request.issue_id,
        "status": "active",
        "exclusive": request.exclusive,
        "reason": request.reason,
        **request.origin,
    }
    return Reservation(tx.create(KIND, fields))


def extended(
    tx: Transaction, lease: Reservation, ttl_s: int, changes: dict[str, object]
) -> Reservation:
    """Moves the end of a lease to `ttl_s` from now, and never back."""
    until_ms = max(lease.expires_ms, tx.now_ms + ttl_s * 1000)
    changes = {**changes, "updated_at": tx.now, "expires_at": format_ms(until_ms)}
    return Reservation(tx.update(KIND, lease.id, changes))
