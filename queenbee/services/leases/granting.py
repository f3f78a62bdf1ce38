"""How leases are written: granted, refused, extended, taken over and ended.

Everything here happens inside one transaction; `reservations` decides when.
"""

from __future__ import annotations

from queenbee.core import leases
from queenbee.core.records import Reservation
from queenbee.core.text import bracketed, mentioned, suggested
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import Held, InvalidInput
from queenbee.services.leases.live import overlaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.services.leases.live import LiveLeases
    from queenbee.services.transaction import Transaction
    from queenbee.store.records import Records

KIND = "reservations"
_SHOWN = 10


class Request:
    """A droid's request for leases."""

    def __init__(
        self,
        droid: str,
        patterns: Mapping[str, str],
        *,
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
        """The session and worktree of an edit; empty if a droid reserved by name."""


class Holder:
    """One reason for a refusal: a live lease, the refused pattern, and a path in both."""

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


def checked_ttl_s(ttl_s: int) -> int:
    """Returns a time to live unchanged. Raises `InvalidInput` outside 1 second to 30 days."""
    if not isinstance(ttl_s, int):
        raise InvalidInput(
            f"{ttl_s!r} is not a whole number of seconds", hint="for two hours: 7200"
        )
    if not leases.MIN_TTL_S <= ttl_s <= leases.MAX_TTL_S:
        raise InvalidInput(
            f"a reservation cannot last {ttl_s} seconds", hint="choose 1s to 30d, as in --ttl 2h"
        )
    return ttl_s


def grant(tx: Transaction, state: Records, live: LiveLeases, request: Request) -> list[Reservation]:
    """Grants all patterns of a request, or raises `Held`, which lists every holder."""
    met = {pattern: live.overlapping(state, pattern, tx.now_ms) for pattern in request.patterns}
    holders = [
        Holder(lease, pattern, witness)
        for pattern, leased in met.items()
        for lease, witness in leased
        if leases.stand_against(lease, droid=request.droid, exclusive=request.exclusive)
    ]
    if holders and not request.force:
        raise _refusal(holders, tx.now_ms, request.patterns)
    if holders:
        _take_over(tx, state, live, request, holders)
    if state.greatest("released_at") > tx.now:
        tx.not_before(_ends_ms(state, met, fold_case=live.fold_case))
    return [
        _granted(tx, request, pattern, [lease for lease, _ in leased])
        for pattern, leased in met.items()
    ]


def extend(
    tx: Transaction, lease: Reservation, ttl_s: int, changes: Mapping[str, object]
) -> Reservation:
    """Moves the end of a lease to `ttl_s` from now, but never to an earlier time."""
    until_ms = max(lease.expires_ms, tx.now_ms + ttl_s * 1000)
    changes = {**changes, "updated_at": tx.now, "expires_at": format_ms(until_ms)}
    return Reservation(tx.update(KIND, lease.id, changes))


def end(
    tx: Transaction,
    state: Records,
    live: LiveLeases,
    lease_ids: Sequence[str],
    changes: Mapping[str, str],
) -> list[Reservation]:
    """Ends leases now, with changes such as who ended them and why."""
    # A lease must not seem to end before a grant that lost to it: that grant would then count.
    lost = [loser for loser, by in live.verdicts(state).items() if by in lease_ids]
    tx.behind(Reservation(state.get(each) or {}).created_ms for each in [*lease_ids, *lost])
    changes = {**changes, "status": "released", "released_at": tx.now}
    return [Reservation(tx.update(KIND, each, changes)) for each in lease_ids]


def _granted(
    tx: Transaction, request: Request, pattern: str, overlapping: Sequence[Reservation]
) -> Reservation:
    """Adds the lease on one pattern, or extends the one that the droid has on it."""
    for lease in overlapping:
        if lease.droid == request.droid and lease.pattern == pattern:
            # Reserving again never weakens a lease.
            changes: dict[str, object] = {"exclusive": lease.exclusive or request.exclusive}
            if request.issue_id:
                changes["issue_id"] = request.issue_id
            if request.reason:
                changes["reason"] = request.reason
            if lease.session and not request.origin:
                changes["session"] = ""  # Reserved by name: it no longer ends with the session.
            return extend(tx, lease, request.ttl_s, changes)
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


def _ends_ms(state: Records, patterns: Iterable[str], *, fold_case: bool) -> list[int]:
    """Returns the ends of the released leases that overlap these patterns."""
    return [
        leases.lease_end_ms(lease)
        for lease in map(Reservation, state.select({"status": "released"}))
        if any(overlaps(lease, each, fold_case=fold_case) for each in patterns)
    ]


def _take_over(
    tx: Transaction, state: Records, live: LiveLeases, request: Request, holders: list[Holder]
) -> None:
    """Ends the leases of the holders, recording who did it and why, and notifies their droids."""
    from queenbee.services.messages import stage  # noqa: PLC0415 - start-up

    lost = {holder.lease.id: holder.lease for holder in holders}
    changes = {"released_by": request.droid, "release_reason": request.reason or ""}
    end(tx, state, live, list(lost), changes)
    for owner in dict.fromkeys(lease.droid for lease in lost.values()):
        theirs = [lease for lease in lost.values() if lease.droid == owner]
        patterns = ", ".join(lease.pattern for lease in theirs)
        fields: dict[str, object] = {
            "subject": f"Your reservation was taken over by {request.droid}",
            "body": f"{request.droid} took over {patterns}: {request.reason}",
            "issue_id": theirs[0].issue_id,
            "importance": "high",
        }
        stage(tx, request.droid, [owner], fields)


def _refusal(holders: list[Holder], now_ms: int, typed: Mapping[str, str]) -> Held:
    """Returns the refusal: every holder, the reason, the time left, and a path in both patterns.

    `typed` gives the text that the user wrote for each pattern, which works in their directory.
    """
    lines = [_sentence(holder, now_ms) for holder in holders[:_SHOWN]]
    if len(holders) > _SHOWN:
        lines.append(f"and {len(holders) - _SHOWN} more")
    soonest_ms = min(holder.lease.expires_ms for holder in holders)
    first = holders[0]
    wait = suggested("queen reserve", typed[first.asked], wait=_long_enough(soonest_ms - now_ms))
    return Held(
        "; ".join(lines),
        hint=f"{wait}, or ask: {suggested('queen msg send', first.lease.droid, 'BODY')}",
        holders=[holder.to_dict(now_ms) for holder in holders],
        ends_ms=soonest_ms,
    )


def _long_enough(wait_ms: int) -> str:
    """Returns a duration in one unit, rounded up, to use on the command line."""
    seconds = max(1, -(-wait_ms // 1000))
    for size_s, unit in ((3_600, "h"), (60, "m")):
        if seconds >= 2 * size_s:
            return f"{-(-seconds // size_s)}{unit}"
    return f"{seconds}s"


def _sentence(holder: Holder, now_ms: int) -> str:
    lease = holder.lease
    asked, pattern = mentioned(holder.asked), mentioned(lease.pattern)
    what = (
        f"{asked} is held"
        if asked == pattern
        else f"{asked} overlaps {pattern} at {mentioned(holder.witness)}, held"
    )
    mode = "" if lease.exclusive else " (shared)"
    issue = f" for {mentioned(lease.issue_id)}" if lease.issue_id else ""
    why = f" {bracketed(lease.reason)}" if lease.reason else ""
    left = format_duration((lease.expires_ms - now_ms) / 1000)
    return f"{what} by {mentioned(lease.droid)}{mode}{issue}{why}, {left} left"
