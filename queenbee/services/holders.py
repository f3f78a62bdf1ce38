"""Who stands in the way: the leases behind a refusal, as values and as sentences."""

from __future__ import annotations

from queenbee.core.timestamps import format_duration
from queenbee.errors import Held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.core.records import Reservation


class Holder:
    """One reason for a refusal: a live lease, the pattern that it refuses, and a path in both."""

    __slots__ = ("asked", "lease", "witness")

    def __init__(self, lease: Reservation, asked: str, witness: str) -> None:
        self.lease = lease
        self.asked = asked
        self.witness = witness

    def to_dict(self, now_ms: int) -> dict[str, object]:
        """Returns the fields of the lease that a caller needs to decide what to do."""
        lease = self.lease
        return {
            "id": lease.id,
            "droid": lease.droid,
            "pattern": lease.pattern,
            "exclusive": lease.exclusive,
            "issue_id": lease.issue_id,
            "reason": lease.reason,
            "expires_at": lease.expires_at,
            "seconds_left": max(0, (lease.expires_ms - now_ms) // 1000),
            "asked": self.asked,
            "witness": self.witness,
        }


def refusal(holders: list[Holder], now_ms: int) -> Held:
    """Returns the refusal that names every holder, why, for how long, and where they meet."""
    lines = [_sentence(holder, now_ms) for holder in holders[:10]]
    if len(holders) > 10:
        lines.append(f"and {len(holders) - 10} more")
    soonest_ms = min(holder.lease.expires_ms for holder in holders)
    first = holders[0]
    wait = format_duration((soonest_ms - now_ms) / 1000).replace(" 0", "").replace(" ", "")
    return Held(
        "; ".join(lines),
        hint=f"queen reserve {first.asked!r} --wait {wait}, "
        f"or ask: queen msg send {first.lease.droid} BODY",
        holders=[holder.to_dict(now_ms) for holder in holders],
        ends_ms=soonest_ms,
    )


def _sentence(holder: Holder, now_ms: int) -> str:
    lease = holder.lease
    what = (
        f"{holder.asked} is held"
        if holder.asked == lease.pattern
        else (f"{holder.asked} meets {lease.pattern} at {holder.witness}, held")
    )
    mode = "" if lease.exclusive else " (shared)"
    issue = f" for {lease.issue_id}" if lease.issue_id else ""
    why = f" ({lease.reason})" if lease.reason else ""
    left = format_duration((lease.expires_ms - now_ms) / 1000)
    return f"{what} by {lease.droid}{mode}{issue}{why}, {left} left"
