"""Notices that a droid gets once, next to the answer to its command: which of its leases ended.

A lease must never end unseen. The hive's untracked state remembers which notices each droid has
seen. If that cannot be written, the droid gets the notice again rather than not at all.
"""

from __future__ import annotations

import os
from functools import partial

from queenbee.core import leases
from queenbee.core.names import is_name
from queenbee.core.records import Reservation
from queenbee.core.text import bracketed, mentioned
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import QueenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.services.assignments import Assignments
    from queenbee.services.leases.reservations import Reservations
    from queenbee.services.store import Store

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
    ) -> None:
        self._store = store
        self._services: dict[str, Callable[[], Assignments | Reservations]] = {
            "assignments": assignments,
            "reservations": reservations,
        }
        self._reservations = reservations

    def take(self) -> list[str]:
        """Returns the notices that the actor has not seen yet, and marks them as seen."""
        actor = self._store.actor_or_none
        if actor is None or not is_name(actor):
            return []
        path = os.path.join(self._store.layout.state_dir, "told", actor)
        try:
            news = {**self._ended_leases(actor), **self._lost_grants(actor)}
            known = _read_keys(path) if news else set()
            fresh = [key for key in news if key not in known]
            lines = [news[key]() for key in fresh[:_AT_MOST]]
        except QueenError as error:
            return [f"{error.message}; cannot tell which of your leases ended"]
        if fresh:
            _add_keys(path, fresh)
        if len(fresh) > _AT_MOST:
            more = len(fresh) - _AT_MOST
            lines.append(f"and {more} more leases of yours ended; see: queen reserved --all")
        return lines

    def _ended_leases(self, actor: str) -> News:
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
                how = _how_it_ended(lease, actor, now_ms - end_ms)
                if how is not None:
                    news[lease.id] = partial(self._lease_ended, lease, how)
        return news

    def _lost_grants(self, actor: str) -> News:
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

    def _lease_ended(self, lease: Reservation, how: str) -> str:
        holders = dict.fromkeys(
            f"{mentioned(each.droid)} {bracketed(each.pattern)}"
            for each in self._reservations().overlapping(lease.pattern)
            if each.droid != lease.droid
        )
        now_held = f"held now by {', '.join(holders)}" if holders else "nobody holds it now"
        return f"your lease on {mentioned(lease.pattern)} {how}; {now_held}"


def _how_it_ended(lease: Reservation, actor: str, ago_ms: int) -> str | None:
    """Returns how a lease ended, or None if its owner ended it."""
    if lease.status == "expired":
        return f"expired {format_duration(ago_ms / 1000)} ago"
    by = lease.fields.get("released_by", actor)
    if by == actor:
        return None
    reason = lease.fields.get("release_reason") or "no reason"
    return f"was taken over by {mentioned(str(by))} {bracketed(str(reason))}"


def _may_be_within(instant: object, since: str, until: str) -> bool:
    """Returns whether a timestamp may be between two of ours, by comparing text only."""
    ours = isinstance(instant, str) and len(instant) == len(since) and instant[-1] == "Z"
    return not ours or since <= str(instant) <= until


def _read_keys(path: str) -> set[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return set(file.read().split())
    except OSError:
        return set()


def _add_keys(path: str, keys: list[str]) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(f"{key}\n" for key in keys))
    except OSError:
        return
