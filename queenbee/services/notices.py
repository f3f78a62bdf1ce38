"""What a droid is told once, beside the answer to whatever it asked: the end of its leases.

A lease must never end unseen. What was told is remembered per droid in the hive's untracked
state; where that cannot be written, a droid is told again rather than not at all.
"""

from __future__ import annotations

import os
from functools import partial

from queenbee.core import leases
from queenbee.core.names import is_name
from queenbee.core.records import Reservation
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import QueenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.services.hive import Hive

_FORGET_AFTER_MS = 24 * 3_600_000
"""An end that is a day old is history, as all of them are in a fresh clone."""
_AT_MOST = 5
_ENDS = ("id", "status", "expires_at", "released_at")


def notices(hive: Hive) -> list[str]:
    """Returns what the actor has not been told yet, and remembers that it now was."""
    actor = hive.actor_or_none
    if actor is None or not is_name(actor):
        return []
    try:
        news = {**_ended_leases(hive, actor), **_lost_grants(hive, actor)}
        told = _told(hive, actor) if news else set()
        fresh = [key for key in news if key not in told]
        lines = [news[key]() for key in fresh[:_AT_MOST]]
    except QueenError as error:
        return [f"{error.message}; leases that ended cannot be told"]
    if fresh:
        _remember(hive, actor, fresh)
    if len(fresh) > _AT_MOST:
        more = len(fresh) - _AT_MOST
        lines.append(f"and {more} more leases of yours ended; see: queen reserved --all")
    return lines


def _ended_leases(hive: Hive, actor: str) -> dict[str, Callable[[], str]]:
    state, now_ms = hive.state("reservations"), hive.now_ms()
    since, now = format_ms(now_ms - _FORGET_AFTER_MS), format_ms(now_ms)
    news: dict[str, Callable[[], str]] = {}
    for key, status, expires_at, released_at in state.project(_ENDS, {"droid": actor}):
        ended_at = released_at if status == "released" else expires_at
        if not _within(ended_at, since, now):
            continue
        fields = state.get(str(key)) or {}
        lease = leases.as_of(fields, now_ms)
        end_ms = leases.lease_end_ms(lease)
        if lease.deleted or not now_ms - _FORGET_AFTER_MS < end_ms <= now_ms:
            continue
        by = lease.fields.get("released_by", actor)
        if lease.status == "expired":
            how = f"ended {format_duration((now_ms - end_ms) / 1000)} ago, at its TTL"
        elif by != actor:
            how = f"was taken over by {by} ({lease.fields.get('release_reason') or 'no reason'})"
        else:
            continue
        news[lease.id] = partial(_lease_ended, hive, lease, how)
    return news


def _within(instant: object, since: str, until: str) -> bool:
    """Returns whether a timestamp may lie between two of ours: most are told by their text."""
    ours = isinstance(instant, str) and len(instant) == len(since) and instant[-1] == "Z"
    return not ours or since <= str(instant) <= until


def _lost_grants(hive: Hive, actor: str) -> dict[str, Callable[[], str]]:
    news: dict[str, Callable[[], str]] = {}
    # Only what came from elsewhere can stand against a grant of ours.
    for kind in ("assignments", "reservations"):
        if not hive.state(kind).foreign():
            continue
        service = hive.assignments if kind == "assignments" else hive.reservations
        for winner, loser in service.conflicts():
            if loser.droid == actor:
                what = loser.pattern if isinstance(loser, Reservation) else loser.issue_id
                text = (
                    f"a merge brought an older grant of {what} to {winner.droid}: yours "
                    f"({loser.id}) no longer counts; see: queen conflicts"
                )
                news[f"{loser.id}:superseded"] = partial(str, text)
    return news


def _lease_ended(hive: Hive, lease: Reservation, how: str) -> str:
    return f"your lease on {lease.pattern} {how}; {_now_held(hive, lease)}"


def _now_held(hive: Hive, lease: Reservation) -> str:
    others = [
        each for each in hive.reservations.overlapping(lease.pattern) if each.droid != lease.droid
    ]
    if not others:
        return "nobody holds it now"
    names = dict.fromkeys(f"{each.droid} ({each.pattern})" for each in others)
    return f"held now by {', '.join(names)}"


def _path(hive: Hive, actor: str) -> str:
    return os.path.join(hive.layout.state_dir, "told", actor)


def _told(hive: Hive, actor: str) -> set[str]:
    try:
        with open(_path(hive, actor), encoding="utf-8", errors="replace") as file:
            return set(file.read().split())
    except OSError:
        return set()


def _remember(hive: Hive, actor: str, keys: list[str]) -> None:
    path = _path(hive, actor)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(f"{key}\n" for key in keys))
    except OSError:
        return
