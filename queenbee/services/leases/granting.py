"""How leases are written: granted, refused, extended, taken over and ended.

Everything here happens inside one transaction; `reservations` decides when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core import leases
from queenbee.core.glob.pattern import is_literal
from queenbee.core.leases import Asker, held_absurdly, repaired_end_ms
from queenbee.core.records import Reservation
from queenbee.core.timestamps import format_ms
from queenbee.errors import InvalidInput
from queenbee.services.leases.live import KIND, overlaps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.core.queue import Waiter, Want
    from queenbee.errors import Held
    from queenbee.services.leases.live import LiveLeases
    from queenbee.services.waiting.queue import PlaceInLine, Queue
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.memory.recorded import Recorded


class Request:
    """A droid's request for leases."""

    def __init__(
        self,
        asker: Asker,
        patterns: Mapping[str, str],
        *,
        ttl_s: int,
        issue_id: str | None,
        reason: str | None,
        origin: Mapping[str, object],
    ) -> None:
        self.asker = asker
        """Who asks; its session is that of an edit, and None if a droid reserves by name."""
        self.patterns = patterns
        """From the root, each with the text that was typed for it."""
        self.ttl_s = ttl_s
        self.issue_id = issue_id
        """What it is for: "" for no issue, None if nothing is said."""
        self.reason = reason
        self.origin = origin
        """What the line of a new lease says about where it was asked for."""
        self.force = False
        """Whether it takes over what is in its way."""
        self.relieved: Mapping[str, str] | None = None
        """The droids that `force` may take over from, each with the reason; None: from all."""

    @property
    def droid(self) -> str:
        """Who asks: a request always has a name."""
        assert self.asker.droid is not None
        return self.asker.droid

    def reason_for(self, holder: str) -> str:
        """Returns why it takes over what this droid holds."""
        return (self.relieved or {}).get(holder) or self.reason or ""

    @property
    def want(self) -> Want:
        """The request as others in the queue see it."""
        return _want(self.asker, self.patterns)


def _want(asker: Asker, patterns: Iterable[str]) -> Want:
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


class LeaseWriter:
    """Writes leases in one transaction."""

    def __init__(self, tx: Transaction, state: Recorded, live: LiveLeases) -> None:
        self.tx = tx
        self.state = state
        self.live = live

    def grant(
        self, request: Request, queue: Queue | None = None, place: PlaceInLine | None = None
    ) -> list[Reservation]:
        """Grants all patterns of a request, or raises `Held`, which lists every holder.

        With a `queue`, those who have waited longer for the same come first; `place` is the
        request's own place in it, which a refusal takes.
        """
        return _Grant(self, request, queue, place).made()

    def extend(self, lease: Reservation, ttl_s: int, changes: Mapping[str, object]) -> Reservation:
        """Moves the end of a lease to `ttl_s` from now, but never to an earlier time: except that
        a lease from a wrong clock, which might last for years, then lasts `ttl_s`.
        """
        tx = self.tx
        until_ms = tx.now_ms + ttl_s * 1000
        if lease.expires_ms > until_ms:
            if held_absurdly(lease, tx.now_ms) and held_absurdly(lease, tx.present_ms()):
                changes = {**changes, **self.outranked({lease.id: until_ms})[lease.id]}
            else:
                until_ms = lease.expires_ms
        changes = {**changes, "updated_at": tx.now, "expires_at": format_ms(until_ms)}
        return Reservation(tx.update(KIND, lease.id, changes))

    def end(self, lease_ids: Sequence[str], changes: Mapping[str, str]) -> list[Reservation]:
        """Ends leases now, with changes such as who ended them and why."""
        names = self.outranked(dict.fromkeys(lease_ids, self.tx.now_ms))
        changes = {**changes, "status": "released", "released_at": self.tx.now}
        return [
            Reservation(self.tx.update(KIND, each, {**changes, **names[each]}))
            for each in lease_ids
        ]

    def take_over(
        self, taker: str, lost: Sequence[Reservation], taken: Sequence[str], reason: str
    ) -> None:
        """Ends leases of one droid because another one takes these patterns, and tells it."""
        from queenbee.services.messages import stage  # noqa: PLC0415 - start-up

        changes = {"released_by": taker, "release_reason": reason}
        self.end([lease.id for lease in lost], changes)
        fields: dict[str, object] = {
            "subject": f"Your reservation was taken over by {taker}",
            "body": f"{taker} took over {', '.join(taken)}: {reason}\n"
            f"This ended all of your reservation of {', '.join(x.pattern for x in lost)}. "
            f"Reserve again what you still need: {leases.reserving_again(lost)}",
            "issue_id": lost[0].issue_id,
            "importance": "high",
        }
        stage(self.tx, taker, [lost[0].droid], fields)

    def take_over_for(self, granted: Sequence[Reservation]) -> None:
        """Ends what these leases of one droid take over: the remote has confirmed them, or nobody
        waits for it.
        """
        by_owner: dict[str, dict[str, list[str]]] = {}
        reasons: dict[str, str] = {}
        for each in granted:
            for identifier, reason in each.takes_over.items():
                lease = self._lease(identifier)
                if lease.status == "active" and not lease.deleted:
                    by_owner.setdefault(lease.droid, {}).setdefault(identifier, [])
                    by_owner[lease.droid][identifier].append(each.pattern)
                    reasons[lease.droid] = reason
        for owner, lost in by_owner.items():
            if owner == granted[0].droid:
                self.end(list(lost), {})
                continue
            patterns = dict.fromkeys(one for every in lost.values() for one in every)
            theirs = [self._lease(each) for each in lost]
            self.take_over(granted[0].droid, theirs, list(patterns), reasons[owner])

    def repair(self, held: Sequence[Reservation], ended: Sequence[Reservation], *, by: str) -> None:
        """Repairs leases that a wrong clock granted or ended (ADR 0021): those `held` end as by a
        takeover, and their droids get a message; those `ended` get an end not in the future.
        """
        from queenbee.services.messages import stage  # noqa: PLC0415 - start-up

        tx, present_ms, reason = self.tx, self.tx.present_ms(), "a wrong clock granted it"
        self.end([lease.id for lease in held], {"released_by": by, "release_reason": reason})
        for owner in dict.fromkeys(lease.droid for lease in held):
            theirs = [lease for lease in held if lease.droid == owner]
            fields: dict[str, object] = {
                "subject": f"Your reservation was ended by {by}",
                "body": f"{by} ended {', '.join(each.pattern for each in theirs)}: {reason}",
                "issue_id": theirs[0].issue_id,
                "importance": "high",
            }
            stage(tx, by, [owner], fields)
        ends_ms = {each.id: repaired_end_ms(each, present_ms, tx.now_ms) for each in ended}
        names = self.outranked(ends_ms)
        for identifier, end_ms in ends_ms.items():
            tx.update(KIND, identifier, {"released_at": format_ms(end_ms), **names[identifier]})

    def outranked(self, ends_ms: Mapping[str, int]) -> dict[str, dict[str, object]]:
        """Returns what the line that ends each of these leases at an instant must add: `outranks`,
        the grants that lost to it, if they began after that. They would count again.
        """
        named = {each: list(self._lease(each).outranks) for each in ends_ms}
        for loser, winner in self.live.verdicts(self.state).items():
            if winner in named and loser not in named[winner]:
                begun_ms = self._lease(loser).created_ms
                if begun_ms >= ends_ms[winner]:
                    named[winner].append(loser)
        return {each: {"outranks": ids} if ids else {} for each, ids in named.items()}

    def _lease(self, identifier: str) -> Reservation:
        return Reservation(self.state.get(identifier) or {})


class _Grant:
    """One request, and the live leases that share a path with each of its patterns."""

    def __init__(
        self, writer: LeaseWriter, request: Request, queue: Queue | None, place: PlaceInLine | None
    ) -> None:
        self.writer = writer
        self.tx = writer.tx
        self.request = request
        self.queue = queue
        self.place = place
        live, now_ms = writer.live, writer.tx.now_ms
        self.met = live.overlapping(writer.state, request.patterns, now_ms)
        self.conflicts = [
            (lease, pattern, live.witness(lease, pattern))
            for pattern, leased in self.met.items()
            for lease in leased
            if leases.stand_against(lease, request.asker)
        ]

    def made(self) -> list[Reservation]:
        """Writes the leases. Raises `Held`."""
        if not self.request.force or self._is_out_of_reach():
            ahead = self._ahead()
            if self.conflicts or ahead:
                raise self._refused(ahead)
        if self.conflicts and not self._is_unconfirmed:
            self._take_over()
        follows = self._follows()
        return [self._granted(pattern, follows[pattern]) for pattern in self.met]

    def _granted(self, pattern: str, follows: Sequence[str]) -> Reservation:
        """Adds the lease on one pattern, or extends the one that the droid has on it."""
        request = self.request
        for lease in self.met[pattern]:
            if lease.pattern == pattern and leases.serves(lease, request.asker):
                changes: dict[str, object] = {}
                if request.issue_id is not None:
                    changes["issue_id"] = request.issue_id or None
                if request.reason:
                    changes["reason"] = request.reason
                if lease.session and not request.asker.session:
                    changes["session"] = ""  # Reserved by name: it no longer ends with the session.
                return self.writer.extend(lease, request.ttl_s, changes)
        shared = self._replaced(pattern)
        now_ms = self.tx.now_ms
        ends_ms = [each.expires_ms for each in shared if not held_absurdly(each, now_ms)]
        fields = {
            "expires_at": format_ms(max(now_ms + request.ttl_s * 1000, *ends_ms, 0)),
            "pattern": pattern,
            "droid": request.droid,
            "issue_id": self._issue_id(shared),
            "status": "active",
            "exclusive": request.asker.exclusive,
            "reason": request.reason or next((x.reason for x in shared if x.reason), None),
            **request.origin,
            "follows": follows or None,
            "takes_over": self._takes_over(pattern, shared) or None,
        }
        return Reservation(self.tx.create(KIND, fields))

    def _issue_id(self, replaced: Sequence[Reservation]) -> str | None:
        if self.request.issue_id is not None:
            return self.request.issue_id or None
        return next((each.issue_id for each in replaced if each.issue_id), None)

    @property
    def _is_unconfirmed(self) -> bool:
        return bool(self.request.origin.get("unconfirmed"))

    def _takes_over(self, pattern: str, shared: Sequence[Reservation]) -> dict[str, str]:
        """Returns the leases that end once the remote confirms the lease on this pattern, each
        with the reason. Until then they stay: if it is refused, nothing has happened.
        """
        if not self._is_unconfirmed:
            return {}
        others = (lease for lease, against, _ in self.conflicts if against == pattern)
        reasons = {lease.id: self.request.reason_for(lease.droid) for lease in others}
        return {**reasons, **{lease.id: "" for lease in shared}}

    def _replaced(self, pattern: str) -> list[Reservation]:
        """Ends the shared leases that the droid has on this pattern if it now gets an exclusive
        one.

        They cannot become exclusive themselves: others may have shared the pattern since they
        began, and after a merge the older of the two would win.
        """
        if not self.request.asker.exclusive:
            return []
        shared = [
            lease
            for lease in self.met[pattern]
            if lease.droid == self.request.droid
            and lease.pattern == pattern
            and not lease.exclusive
        ]
        if shared and not self._is_unconfirmed:
            self.writer.end([lease.id for lease in shared], {})
        return shared

    def _follows(self) -> dict[str, list[str]]:
        """Returns what the new lease on each pattern must name as `follows`: the conflicting leases
        that ended at an instant that is dated later than now: by another clock than ours, or by
        ours before it was set back. A grant that seems to begin before it would lose to them.
        """
        now_ms, fold_case = self.tx.now_ms, self.writer.live.fold_case
        ended: list[Reservation] = []
        if self.writer.state.greatest("released_at") > self.tx.now:
            rows = self.writer.state.select({"status": "released"})
            ended = [x for x in map(Reservation, rows) if leases.lease_end_ms(x) > now_ms]
        follows = {}
        for pattern, leased in self.met.items():
            late = [x for x in ended if overlaps(x, pattern, fold_case=fold_case)]
            # Taken over, just now or once this is confirmed.
            late += [x for x in leased if x.created_ms > now_ms or self._is_unconfirmed]
            against = [x.id for x in late if leases.stand_against(x, self.request.asker)]
            follows[pattern] = list(dict.fromkeys(against))
        return follows

    def _take_over(self) -> None:
        """Ends the leases in the way, recording who did it and why, and notifies their droids."""
        lost = {lease.id: lease for lease, _, _ in self.conflicts}
        for owner in dict.fromkeys(lease.droid for lease in lost.values()):
            taken = dict.fromkeys(each for lease, each, _ in self.conflicts if lease.droid == owner)
            theirs = [lease for lease in lost.values() if lease.droid == owner]
            reason = self.request.reason_for(owner)
            self.writer.take_over(self.request.droid, theirs, list(taken), reason)

    def _is_out_of_reach(self) -> bool:
        """Returns whether a takeover would end a lease of a droid that nobody may relieve."""
        may = self.request.relieved
        return may is not None and any(lease.droid not in may for lease, _, _ in self.conflicts)

    def _ahead(self) -> list[Waiter]:
        """Returns the waiters that come before this request."""
        if self.queue is None:
            return []
        # Whoever waits for what the droid has already waits for the droid, not the other way round.
        new = [pattern for pattern in self.met if not self._has(pattern)]
        if not new:
            return []
        before = self.place.name if self.place is not None else None
        return self.queue.ahead_of(_want(self.request.asker, new), before=before)

    def _has(self, pattern: str) -> bool:
        """Returns whether the droid has this pattern here already, in whichever session."""
        asker = self.request.asker
        return any(
            leases.serves(lease, asker.of_session(lease.session))
            and (lease.pattern == pattern or is_literal(pattern))
            for lease in self.met[pattern]
        )

    def _refused(self, ahead: list[Waiter]) -> Held:
        """Returns the refusal, after taking a place in the queue if the request can wait."""
        from queenbee.services.leases.lease_refusals import Holder, Refusal  # noqa: PLC0415 - start-up

        place, holders = self.place, [Holder(*each) for each in self.conflicts]
        circle: list[Waiter] = []
        if self.queue is not None:
            droids = dict.fromkeys(each.lease.droid for each in holders)
            blockers: list[str | Waiter] = [*droids, *ahead]
            circle = self.queue.circle(blockers, own=place.name if place is not None else None)
        if place is not None and not circle:
            place.take(ahead)
        state, now_ms, request = self.writer.state, self.tx.now_ms, self.request
        refusal = Refusal(
            state, now_ms, request.asker, request.patterns, holders, ahead, circle
        ).error()
        wrong = [each.lease for each in holders if held_absurdly(each.lease, now_ms)]
        if wrong and not circle and held_absurdly(wrong[0], self.tx.present_ms()):
            refusal.hint = "a wrong clock granted it; to end it: queen doctor --fix"
        return refusal
