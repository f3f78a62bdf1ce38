"""How leases are written: granted, refused, extended, taken over and ended.

Everything here happens inside one transaction; `reservations` decides when.
"""

from __future__ import annotations

from queenbee.core import leases
from queenbee.core.clocks import ended_absurdly, held_absurdly, repaired_end_ms
from queenbee.core.records import Reservation
from queenbee.core.text import shell_quoted
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import Held, InvalidInput
from queenbee.services.leases.live import overlaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        refusal = _refusal(holders, tx.now_ms, request.patterns)
        wrong = [each.lease for each in holders if held_absurdly(each.lease, tx.now_ms)]
        if wrong and held_absurdly(wrong[0], tx.present_ms()):
            refusal.hint = "a wrong clock granted it; to end it: queen doctor --fix"
        raise refusal
    if holders:
        _take_over(tx, state, live, request, holders)
    ended = _ended_after(state, tx) if state.greatest("released_at") > tx.now else []
    return [
        _granted(tx, state, live, request, pattern, [lease for lease, _ in leased], ended)
        for pattern, leased in met.items()
    ]


def extend(
    tx: Transaction,
    state: Records,
    live: LiveLeases,
    lease: Reservation,
    ttl_s: int,
    changes: Mapping[str, object],
) -> Reservation:
    """Moves the end of a lease to `ttl_s` from now, but never to an earlier time: except that a
    lease from a wrong clock, which might last for years, then lasts `ttl_s`.
    """
    until_ms = tx.now_ms + ttl_s * 1000
    if lease.expires_ms > until_ms:
        if held_absurdly(lease, tx.now_ms) and held_absurdly(lease, tx.present_ms()):
            changes = {**changes, **_outranked(state, live, {lease.id: until_ms})[lease.id]}
        else:
            until_ms = lease.expires_ms
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
    ends_ms = dict.fromkeys(lease_ids, tx.now_ms)
    outranked = _outranked(state, live, ends_ms)
    changes = {**changes, "status": "released", "released_at": tx.now}
    return [Reservation(tx.update(KIND, each, {**changes, **outranked[each]})) for each in ends_ms]


def absurd(
    state: Records, now_ms: int, present_ms: int
) -> tuple[list[Reservation], list[Reservation]]:
    """Returns the leases that a wrong clock granted and that have not ended, superseded ones
    included, and the released ones that say that they end in the future; oldest first.
    """
    active = [leases.as_of(fields, now_ms) for fields in state.select({"status": "active"})]
    released = map(Reservation, state.select({"status": "released"}))
    held = [lease for lease in active if held_absurdly(lease, present_ms)]
    return held, [lease for lease in released if ended_absurdly(lease, present_ms)]


def repair(tx: Transaction, state: Records, live: LiveLeases, *, by: str) -> None:
    """Repairs the leases that a wrong clock granted or ended.

    The first are ended as a takeover is, and their droids get a message. The others get an end
    that is not in the future.
    """
    present_ms = tx.present_ms()
    held, ended = absurd(state, tx.now_ms, present_ms)
    changes = {"released_by": by, "release_reason": "a wrong clock granted it"}
    end(tx, state, live, [lease.id for lease in held], changes)
    _tell_owners(tx, held, by, "ended", changes["release_reason"])
    ends_ms = {x.id: repaired_end_ms(x, present_ms, tx.now_ms) for x in ended}
    outranked = _outranked(state, live, ends_ms)
    for identifier, end_ms in ends_ms.items():
        changed = {"released_at": format_ms(end_ms), **outranked[identifier]}
        tx.update(KIND, identifier, changed)


def _outranked(
    state: Records, live: LiveLeases, ends_ms: Mapping[str, int]
) -> dict[str, dict[str, object]]:
    """Returns what the line that moves the end of each lease must add: `outranks`, the grants
    that lost to it, if they began after that end. They would count again.
    """
    named = {each: list(Reservation(state.get(each) or {}).outranks) for each in ends_ms}
    for loser, winner in live.verdicts(state).items():
        if winner in named and loser not in named[winner]:
            begun_ms = Reservation(state.get(loser) or {}).created_ms
            if begun_ms >= ends_ms[winner]:
                named[winner].append(loser)
    return {each: {"outranks": ids} if ids else {} for each, ids in named.items()}


def _granted(
    tx: Transaction,
    state: Records,
    live: LiveLeases,
    request: Request,
    pattern: str,
    overlapping: Sequence[Reservation],
    ended: Sequence[Reservation],
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
            return extend(tx, state, live, lease, request.ttl_s, changes)
    follows = [
        lease.id
        for lease in ended
        if leases.stand_against(lease, droid=request.droid, exclusive=request.exclusive)
        and overlaps(lease, pattern, fold_case=live.fold_case)
    ]
    fields = {
        "expires_at": format_ms(tx.now_ms + request.ttl_s * 1000),
        "pattern": pattern,
        "droid": request.droid,
        "issue_id": request.issue_id,
        "status": "active",
        "exclusive": request.exclusive,
        "reason": request.reason,
        **request.origin,
        "follows": follows or None,
    }
    return Reservation(tx.create(KIND, fields))


def _ended_after(state: Records, tx: Transaction) -> list[Reservation]:
    """Returns the released leases whose end is dated later than now: by another clock than ours,
    or by ours before it was set back. A grant that seemed to begin before it would lose to them.
    """
    released = map(Reservation, state.select({"status": "released"}))
    return [lease for lease in released if leases.lease_end_ms(lease) > tx.now_ms]


def _take_over(
    tx: Transaction, state: Records, live: LiveLeases, request: Request, holders: list[Holder]
) -> None:
    """Ends the leases of the holders, recording who did it and why, and notifies their droids."""
    lost = {holder.lease.id: holder.lease for holder in holders}
    changes = {"released_by": request.droid, "release_reason": request.reason or ""}
    end(tx, state, live, list(lost), changes)
    _tell_owners(tx, list(lost.values()), request.droid, "taken over", request.reason or "")


def _tell_owners(
    tx: Transaction, lost: Sequence[Reservation], by: str, how: str, reason: str
) -> None:
    from queenbee.services.messages import stage  # noqa: PLC0415 - start-up

    verb = "took over" if how == "taken over" else how
    for owner in dict.fromkeys(lease.droid for lease in lost):
        theirs = [lease for lease in lost if lease.droid == owner]
        patterns = ", ".join(lease.pattern for lease in theirs)
        fields: dict[str, object] = {
            "subject": f"Your reservation was {how} by {by}",
            "body": f"{by} {verb} {patterns}: {reason}",
            "issue_id": theirs[0].issue_id,
            "importance": "high",
        }
        stage(tx, by, [owner], fields)


def _refusal(holders: list[Holder], now_ms: int, typed: Mapping[str, str]) -> Held:
    """Returns the refusal: every holder, the reason, the time left, and a path in both patterns.

    `typed` gives the text that the user wrote for each pattern, which works in their directory.
    """
    lines = [_sentence(holder, now_ms) for holder in holders[:_SHOWN]]
    if len(holders) > _SHOWN:
        lines.append(f"and {len(holders) - _SHOWN} more")
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
    """Returns a duration in one unit, rounded up, to use on the command line."""
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
        else f"{holder.asked} overlaps {lease.pattern} at {holder.witness}, held"
    )
    mode = "" if lease.exclusive else " (shared)"
    issue = f" for {lease.issue_id}" if lease.issue_id else ""
    why = f" ({lease.reason})" if lease.reason else ""
    left = format_duration((lease.expires_ms - now_ms) / 1000)
    return f"{what} by {lease.droid}{mode}{issue}{why}, {left} left"
