"""How leases are written: granted, refused, extended, taken over and ended.

Everything here happens inside one transaction; `reservations` decides when.
"""

from __future__ import annotations

from queenbee.core import leases
from queenbee.core.clocks import held_absurdly
from queenbee.core.glob.pattern import is_literal
from queenbee.core.records import Reservation
from queenbee.core.timestamps import format_ms
from queenbee.errors import InvalidInput
from queenbee.services.leases.live import KIND, overlaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.core.queue import Waiter, Want
    from queenbee.errors import Held
    from queenbee.services.leases.live import LiveLeases
    from queenbee.services.leases.refusals import Conflict
    from queenbee.services.waiting.queue import Place, Queue
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.records import Records


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
        session: str | None = None,
        tree_id: str | None = None,
        origin: Mapping[str, object],
    ) -> None:
        self.droid = droid
        self.patterns = patterns
        """From the root, each with the text that was typed for it."""
        self.exclusive = exclusive
        self.ttl_s = ttl_s
        self.issue_id = issue_id
        self.reason = reason
        self.force = force
        self.relieved: Mapping[str, str] | None = None
        """The droids that `force` may take over from, each with the reason; None: from all."""
        self.session = session
        """The session of an edit; None if a droid reserved by name."""
        self.tree_id = tree_id
        self.origin = origin
        """What the line of a new lease says about where it was asked for."""

    @property
    def asker(self) -> leases.Asker:
        """The request as far as it decides what excludes it."""
        return leases.Asker(
            self.droid, exclusive=self.exclusive, tree_id=self.tree_id, session=self.session
        )

    @property
    def want(self) -> Want:
        """The request as others in the queue see it."""
        return wish(self.asker, self.patterns)


def wish(asker: leases.Asker, patterns: Iterable[str]) -> Want:
    """Returns what somebody asks for as others in the queue see it."""
    from queenbee.core.queue import Want  # noqa: PLC0415 - start-up

    tree_id = None if asker.exclusive else asker.tree_id
    return Want(patterns, exclusive=asker.exclusive, tree_id=tree_id)


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


def grant(
    tx: Transaction,
    state: Records,
    live: LiveLeases,
    request: Request,
    queue: Queue | None = None,
    place: Place | None = None,
) -> list[Reservation]:
    """Grants all patterns of a request, or raises `Held`, which lists every holder.

    With a `queue`, those who have waited longer for the same come first; `place` is the request's
    own place in it, which a refusal takes.
    """
    met = {pattern: live.overlapping(state, pattern, tx.now_ms) for pattern in request.patterns}
    conflicts = [
        (lease, pattern, live.witness(lease, pattern))
        for pattern, leased in met.items()
        for lease in leased
        if leases.stand_against(lease, request.asker)
    ]
    if not request.force or _is_out_of_reach(request, conflicts):
        ahead = _ahead(queue, request, met, place)
        if conflicts or ahead:
            raise _refused(tx, state, request, conflicts, ahead, queue, place)
    if conflicts:
        _take_over(tx, state, live, request, conflicts)
    ended = _ended_after(state, tx) if state.greatest("released_at") > tx.now else []
    return [
        _granted(
            tx,
            state,
            live,
            request,
            pattern,
            leased,
            _followed(tx, live, request, pattern, ended, met[pattern]),
        )
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
            changes = {**changes, **outranked(state, live, {lease.id: until_ms})[lease.id]}
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
    names = outranked(state, live, dict.fromkeys(lease_ids, tx.now_ms))
    changes = {**changes, "status": "released", "released_at": tx.now}
    return [Reservation(tx.update(KIND, each, {**changes, **names[each]})) for each in lease_ids]


def outranked(
    state: Records, live: LiveLeases, ends_ms: Mapping[str, int]
) -> dict[str, dict[str, object]]:
    """Returns what the line that ends each of these leases at an instant must add: `outranks`, the
    grants that lost to it, if they began after that. They would count again.
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
    follows: Sequence[str],
) -> Reservation:
    """Adds the lease on one pattern, or extends the one that the droid has on it."""
    for lease in overlapping:
        if lease.pattern == pattern and leases.serves(lease, request.asker):
            changes: dict[str, object] = {}
            if request.issue_id:
                changes["issue_id"] = request.issue_id
            if request.reason:
                changes["reason"] = request.reason
            if lease.session and not request.session:
                changes["session"] = ""  # Reserved by name: it no longer ends with the session.
            return extend(tx, state, live, lease, request.ttl_s, changes)
    shared = _replaced(tx, state, live, request, pattern, overlapping)
    expires_ms = max(
        tx.now_ms + request.ttl_s * 1000,
        *(lease.expires_ms for lease in shared if not held_absurdly(lease, tx.now_ms)),
        0,
    )
    fields = {
        "expires_at": format_ms(expires_ms),
        "pattern": pattern,
        "droid": request.droid,
        "issue_id": request.issue_id or next((x.issue_id for x in shared if x.issue_id), None),
        "status": "active",
        "exclusive": request.exclusive,
        "reason": request.reason or next((x.reason for x in shared if x.reason), None),
        **request.origin,
        "follows": follows or None,
    }
    return Reservation(tx.create(KIND, fields))


def _replaced(
    tx: Transaction,
    state: Records,
    live: LiveLeases,
    request: Request,
    pattern: str,
    overlapping: Sequence[Reservation],
) -> list[Reservation]:
    """Ends the shared leases that the droid has on this pattern if it now gets an exclusive one.

    They cannot become exclusive themselves: others may have shared the pattern since they began,
    and after a merge the older of the two would win.
    """
    if not request.exclusive:
        return []
    shared = [
        lease
        for lease in overlapping
        if lease.droid == request.droid and lease.pattern == pattern and not lease.exclusive
    ]
    if shared:
        end(tx, state, live, [lease.id for lease in shared], {})
    return shared


def _ended_after(state: Records, tx: Transaction) -> list[Reservation]:
    """Returns the released leases whose end is dated later than now: by another clock than ours,
    or by ours before it was set back. A grant that seems to begin before it would lose to them.
    """
    released = map(Reservation, state.select({"status": "released"}))
    return [lease for lease in released if leases.lease_end_ms(lease) > tx.now_ms]


def _followed(
    tx: Transaction,
    live: LiveLeases,
    request: Request,
    pattern: str,
    ended: Sequence[Reservation],
    met: Sequence[Reservation],
) -> list[str]:
    """Returns what a new lease must name as `follows`: the conflicting leases that ended at an
    instant that is dated later than now, also those that this request takes over.
    """
    late = [lease for lease in ended if overlaps(lease, pattern, fold_case=live.fold_case)]
    late += [lease for lease in met if lease.created_ms > tx.now_ms]
    follows = [lease.id for lease in late if leases.stand_against(lease, request.asker)]
    return list(dict.fromkeys(follows))


def _take_over(
    tx: Transaction, state: Records, live: LiveLeases, request: Request, conflicts: list[Conflict]
) -> None:
    """Ends the leases of the holders, recording who did it and why, and notifies their droids."""
    from queenbee.services.messages import stage  # noqa: PLC0415 - start-up

    lost = {lease.id: lease for lease, _, _ in conflicts}
    for owner in dict.fromkeys(lease.droid for lease in lost.values()):
        theirs = [lease for lease in lost.values() if lease.droid == owner]
        reason = (request.relieved or {}).get(owner) or request.reason or ""
        changes = {"released_by": request.droid, "release_reason": reason}
        end(tx, state, live, [lease.id for lease in theirs], changes)
        taken = dict.fromkeys(each for lease, each, _ in conflicts if lease.droid == owner)
        fields: dict[str, object] = {
            "subject": f"Your reservation was taken over by {request.droid}",
            "body": f"{request.droid} took over {', '.join(taken)}: {reason}\n"
            f"This ended all of your reservation of {', '.join(x.pattern for x in theirs)}. "
            f"Reserve again what you still need: {leases.reserving_again(theirs)}",
            "issue_id": theirs[0].issue_id,
            "importance": "high",
        }
        stage(tx, request.droid, [owner], fields)


def _ahead(
    queue: Queue | None,
    request: Request,
    met: Mapping[str, Sequence[Reservation]],
    place: Place | None,
) -> list[Waiter]:
    """Returns the waiters that come before this request."""
    if queue is None:
        return []
    # Whoever waits for what the droid has already waits for the droid, not the other way round.
    new = [pattern for pattern, leased in met.items() if not _has(request, pattern, leased)]
    before = place.name if place is not None else None
    if not new:
        return []
    return queue.ahead_of(wish(request.asker, new), before=before)


def _is_out_of_reach(request: Request, conflicts: Sequence[Conflict]) -> bool:
    """Returns whether a takeover would end a lease of a droid that nobody may relieve."""
    may = request.relieved
    return may is not None and any(lease.droid not in may for lease, _, _ in conflicts)


def _has(request: Request, pattern: str, leased: Sequence[Reservation]) -> bool:
    """Returns whether the droid of a request has this pattern already."""
    return any(
        _has_in_its_tree(lease, request) and (lease.pattern == pattern or is_literal(pattern))
        for lease in leased
    )


def _has_in_its_tree(lease: Reservation, request: Request) -> bool:
    """Returns whether the droid has this lease here, in whichever session."""
    asker = leases.Asker(
        request.droid,
        exclusive=request.exclusive,
        tree_id=request.tree_id,
        session=lease.session,
    )
    return leases.serves(lease, asker)


def _refused(
    tx: Transaction,
    state: Records,
    request: Request,
    conflicts: list[Conflict],
    ahead: list[Waiter],
    queue: Queue | None,
    place: Place | None,
) -> Held:
    """Returns the refusal, after taking a place in the queue if the request can wait."""
    circle: list[Waiter] = []
    if queue is not None:
        blockers: list[str | Waiter] = [
            *dict.fromkeys(lease.droid for lease, _, _ in conflicts),
            *ahead,
        ]
        circle = queue.circle(blockers, own=place.name if place is not None else None)
    if place is not None and not circle:
        place.take(ahead)
    from queenbee.services.leases.refusals import held  # noqa: PLC0415 - start-up

    refusal = held(state, tx.now_ms, request.asker, request.patterns, conflicts, ahead, circle)
    wrong = [lease for lease, _, _ in conflicts if held_absurdly(lease, tx.now_ms)]
    if wrong and not circle and held_absurdly(wrong[0], tx.present_ms()):
        refusal.hint = "a wrong clock granted it; to end it: queen doctor --fix"
    return refusal
