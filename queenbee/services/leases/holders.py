"""Who stands in the way: the leases behind a refusal, as values and as sentences."""

from __future__ import annotations

from queenbee.core.text import shell_quoted
from queenbee.core.timestamps import format_duration
from queenbee.errors import Held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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


def refusal(holders: list[Holder], now_ms: int, typed: Mapping[str, str]) -> Held:
    """Returns the refusal that names every holder, why, for how long, and where they meet.

    `typed` gives what the user wrote for each pattern: that is what works where they are.
    """
    lines = [_sentence(holder, now_ms) for holder in holders[:10]]
    if len(holders) > 10:
        lines.append(f"and {len(holders) - 10} more")
    soonest_ms = min(holder.lease.expires_ms for holder in holders)
    first = holders[0]
    asked = shell_quoted(typed[first.asked])
    return Held(
        "; ".join(lines),
        hint=f"queen reserve {asked} --wait {_long_enough(soonest_ms - now_ms)}, "
        f"or ask: queen msg send {first.lease.droid} BODY",
        holders=[holder.to_dict(now_ms) for holder in holders],
        ends_ms=soonest_ms,
    )


def _long_enough(wait_ms: int) -> str:
    """Returns a duration to type that is not shorter than this, in one unit."""
    seconds = max(1, -(-wait_ms // 1000))
    for size_s, unit in ((3_600, "h"), (60, "m")):
        if seconds >= 2 * size_s:
            return f"{-(-seconds // size_s)}{unit}"
    return f"{seconds}s"


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
