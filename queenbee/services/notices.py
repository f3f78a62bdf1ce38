"""Notices that a droid gets once, next to the answer to its command: which of its leases ended,
and who waits for what it has.

A lease must never end unseen. The hive's untracked state remembers which notices each droid has
seen. If that cannot be written, the droid gets the notice again rather than not at all.
"""

from __future__ import annotations

from functools import partial

from queenbee.core import leases
from queenbee.core.names import is_name
from queenbee.core.records import Reservation
from queenbee.core.text import bracketed, mentioned, suggested
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import QueenError, Unreachable, Unwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.services.assignments import Assignments
    from queenbee.services.leases.reservations import Reservations
    from queenbee.services.store import Store
    from queenbee.services.waiting.queue import Queue

    News = dict[str, Callable[[], str]]
    """The notices, by the key that is remembered; the text is only made for a new one."""

_FORGET_AFTER_MS = 24 * 3_600_000
"""A lease that ended a day ago is history. In a fresh clone, all of them are."""
_AT_MOST = 5
_ENDS = ("id", "status", "expires_at", "released_at")


class Notices:
    """The notices for the droid that acts on a store. Services are loaded only if there are any."""

    def __init__(
        self,
        store: Store,
        *,
        assignments: Callable[[], Assignments],
        reservations: Callable[[], Reservations],
        queue: Callable[[], Queue],
    ) -> None:
        self._store = store
        self._queue = queue
        self._services: dict[str, Callable[[], Assignments | Reservations]] = {
            "assignments": assignments,
            "reservations": reservations,
        }
        self._assignments = assignments
        self._reservations = reservations

    def take(self) -> list[str]:
        """Returns the notices that the actor has not seen yet, and marks them as seen."""
        actor = self._store.actor_or_none
        if actor is None or not is_name(actor):
            return []
        try:
            ended = {**self.ended_leases(actor), **self.lost_grants(actor)}
            waits = self.waiters(actor)
            if not ended and not waits:
                return []
            from queenbee.store.droids.told import Told  # noqa: PLC0415 - start-up

            told = Told(self._store.layout, actor)
            known = set(told.known())
            fresh = [key for key in ended if key not in known]
            waiting = [key for key in waits if key not in known]
            lines = [ended[key]() for key in fresh[:_AT_MOST]]
            if len(fresh) > _AT_MOST:
                more = len(fresh) - _AT_MOST
                lines.append(f"and {more} more leases of yours ended; see: queen reserved --all")
            lines += [waits[key]() for key in waiting[:_AT_MOST]]
        except (Unreachable, Unwritable) as error:
            if self._store.engine.shared:
                return []  # The command needs the same database, and says what is wrong with it.
            return [_cannot_tell(error)]
        except QueenError as error:
            return [_cannot_tell(error)]
        if fresh or waiting:
            told.add([*fresh, *waiting])
        return lines

    def ended_leases(
        self, actor: str, *, of_edits: bool = True, said: Callable[[str], str] = bracketed
    ) -> News:
        """Returns the leases of the actor that ended lately, and that it did not end.

        Without `of_edits`, those that an edit took, that ran out and that nobody else wanted are
        left out. `said` marks what others wrote.
        """
        state, now_ms = self._store.state("reservations"), self._store.now_ms()
        since, now = format_ms(now_ms - _FORGET_AFTER_MS), format_ms(now_ms)
        news: News = {}
        for key, status, expires_at, released_at in state.project(_ENDS, {"droid": actor}):
            ended_at = released_at if status == "released" else expires_at
            if not _may_be_within(ended_at, since, now):
                continue
            lease = leases.as_of(state.get(str(key)) or {}, now_ms)
            end_ms = leases.lease_end_ms(lease)
            if not lease.deleted and now_ms - _FORGET_AFTER_MS < end_ms <= now_ms:
                how = _how_it_ended(lease, actor, now_ms - end_ms, said)
                unwanted = lease.session is not None and lease.status == "expired"
                if unwanted and not of_edits and not self._holders_now(lease, said):
                    continue
                if how is not None:
                    news[lease.id] = partial(self._lease_ended, lease, how, said)
        return news

    def lost_grants(self, actor: str) -> News:
        """Returns the grants of the actor that a merge superseded."""
        news: News = {}
        for kind, service in self._services.items():
            # Only a grant made elsewhere can win over one of ours.
            if not self._store.state(kind).foreign():
                continue
            for winner, loser in service().conflicts():
                if loser.droid == actor:
                    what = loser.pattern if isinstance(loser, Reservation) else loser.issue_id
                    text = (
                        f"a merge brought in {mentioned(winner.droid)}'s older grant of "
                        f"{mentioned(what)}: yours ({mentioned(loser.id)}) no longer counts; "
                        "see: queen conflicts"
                    )
                    news[f"{loser.id}:superseded"] = partial(str, text)
        return news

    def waiters(self, actor: str) -> News:
        """Returns who waits for a lease of the actor, or for an issue that it has; each once."""
        if not self._store.layout.may_have_waiters():
            return {}
        from queenbee.core.queue import Want  # noqa: PLC0415 - start-up

        news: News = {}
        line = [each for each in self._queue().everything() if each.droid != actor]
        if any(each.want.patterns for each in line):
            for lease in self._reservations().find(droid=actor):
                wanted = Want.of(lease)
                for each in self._queue().waiting_for(wanted, droid=actor):
                    end = suggested("queen unreserve", lease.pattern)
                    who, what = mentioned(each.droid), each.want.shown()
                    text = f"{who} waits for {what}; if you are done: {end}"
                    news.setdefault(f"{lease.id}:waiter:{each.droid}", partial(str, text))
        for each in line:
            issue_id = each.want.issue_id
            held = self._assignments().active(issue_id) if issue_id is not None else None
            if held is not None and held.droid == actor:
                text = f"{mentioned(each.droid)} waits for {each.want.shown()}, which you have"
                news.setdefault(f"{held.id}:waiter:{each.droid}", partial(str, text))
        return news

    def _lease_ended(self, lease: Reservation, how: str, said: Callable[[str], str]) -> str:
        holders = self._holders_now(lease, said)
        now_held = f"held now by {', '.join(holders)}" if holders else "nobody holds it now"
        taken_over = lease.status == "released" and not lease.session
        again = f"; reserve what you still need: {leases.reserving_again([lease])}"
        return f"your lease on {mentioned(lease.pattern)} {how}; {now_held}{again * taken_over}"

    def _holders_now(self, lease: Reservation, said: Callable[[str], str]) -> list[str]:
        """Returns the other droids that hold what a lease was on, each with its pattern."""
        holders = [
            f"{mentioned(each.droid)} {said(each.pattern)}"
            for each in self._reservations().overlapping(lease.pattern)
            if leases.stand_against(each, lease)
        ]
        return list(dict.fromkeys(holders))


def _how_it_ended(
    lease: Reservation, actor: str, ago_ms: int, said: Callable[[str], str]
) -> str | None:
    """Returns how a lease ended, or None if its owner ended it."""
    if lease.status == "expired":
        return f"expired {format_duration(ago_ms / 1000)} ago"
    by = lease.fields.get("released_by", actor)
    if by == actor:
        return None
    reason = lease.fields.get("release_reason") or "no reason"
    return f"was taken over by {mentioned(str(by))} {said(str(reason))}"


def _may_be_within(instant: object, since: str, until: str) -> bool:
    """Returns whether a timestamp may be between two of ours, by comparing text only."""
    ours = isinstance(instant, str) and len(instant) == len(since) and instant[-1] == "Z"
    return not ours or since <= str(instant) <= until


def _cannot_tell(error: QueenError) -> str:
    return f"{error.message}; cannot tell which of your leases ended"
