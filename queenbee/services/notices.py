"""What a droid is told once, beside the answer to whatever it asked: the end of its leases.

A lease must never end unseen. What was told is remembered per droid in the hive's untracked
state; where that cannot be written, a droid is told again rather than not at all.
"""

from __future__ import annotations

import os

from queenbee.core import leases
from queenbee.core.names import is_name
from queenbee.core.records import Reservation
from queenbee.core.standing import lease_end_ms
from queenbee.core.timestamps import format_duration
from queenbee.errors import QueenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.hive import Hive

_FORGET_AFTER_MS = 24 * 3_600_000
"""An end that is a day old is history, as all of them are in a fresh clone."""
_AT_MOST = 5


def notices(hive: Hive) -> list[str]:
    """Returns what the actor has not been told yet, and remembers that it now was."""
    actor = hive.actor_or_none
    if actor is None or not is_name(actor):
        return []
    try:
        told = _told(hive, actor)
        fresh = [(key, text) for key, text in _news(hive, actor) if key not in told]
    except QueenError as error:
        return [f"{error.message}; leases that ended cannot be told"]
    if fresh:
        _remember(hive, actor, [key for key, _ in fresh])
    lines = [text for _, text in fresh[:_AT_MOST]]
    if len(fresh) > _AT_MOST:
        lines.append(
            f"and {len(fresh) - _AT_MOST} more leases of yours ended; queen reserved --all"
        )
    return lines


def _news(hive: Hive, actor: str) -> list[tuple[str, str]]:
    state, now_ms = hive.state("reservations"), hive.now_ms()
    news: list[tuple[str, str]] = []
    for fields in state.select({"droid": actor}):
        lease = leases.as_of(fields, now_ms)
        end_ms = lease_end_ms(lease)
        if not now_ms - _FORGET_AFTER_MS < end_ms <= now_ms or lease.deleted:
            continue
        by = lease.fields.get("released_by", actor)
        if lease.status == "expired":
            how = f"ended {format_duration((now_ms - end_ms) / 1000)} ago, at its TTL"
        elif by != actor:
            how = f"was taken over by {by} ({lease.fields.get('release_reason') or 'no reason'})"
        else:
            continue
        news.append((lease.id, f"your lease on {lease.pattern} {how}; {_now_held(hive, lease)}"))
    for grants in (hive.assignments.conflicts(), hive.reservations.conflicts()):
        for winner, loser in grants:
            if loser.droid == actor:
                what = loser.pattern if isinstance(loser, Reservation) else loser.issue_id
                text = (
                    f"a merge brought an older grant of {what} to {winner.droid}: yours "
                    f"({loser.id}) no longer counts; see: queen conflicts"
                )
                news.append((f"{loser.id}:superseded", text))
    return news


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
