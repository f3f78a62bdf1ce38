"""The refusal of a request for leases: who is in the way, one's place in line, and what to do."""

from __future__ import annotations

from queenbee.core import leases
from queenbee.core.queue import ordinal
from queenbee.core.text import bracketed, mentioned, suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import Held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.queue import Waiter
    from queenbee.core.records import Reservation
    from queenbee.store.records import Records

    Conflict = tuple[Reservation, str, str]
    """A live lease, the pattern of the request that it excludes, and a path in both."""

_SHOWN = 10
_NAMED = 3
_JUDGED = 50
"""How many of a droid's newest leases say how long it usually holds one."""


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


def held(
    state: Records,
    now_ms: int,
    asker: leases.Asker,
    patterns: Mapping[str, str],
    conflicts: Sequence[Conflict],
    ahead: Sequence[Waiter],
    circle: Sequence[Waiter],
) -> Held:
    """Returns the refusal: every holder, the reason, the time left, and a path in both patterns;
    and those who are served first.

    `patterns` are those of the request, each with the text that the user wrote for it, which works
    in their directory.
    """
    holders = [Holder(*each) for each in conflicts]
    lines = [_sentence(holder, now_ms) for holder in holders[:_SHOWN]]
    if len(holders) > _SHOWN:
        lines.append(f"and {len(holders) - _SHOWN} more")
    if not holders:
        first = ahead[0]
        since = format_duration((now_ms - first.since_ms) / 1000)
        who, what = mentioned(first.droid), first.want.shown()
        lines.append(f"nobody holds it, but {who} has waited for {what} for {since}")
    may_share = not ahead and _may_share(asker, holders)
    if may_share:
        lines.append("who shares it only edits there: git merges that with your edits")
    elif holders and not asker.exclusive and not all(each.lease.exclusive for each in holders):
        lines.append("in one working tree, git merges nothing")
    if circle:
        lines.append(_deadlock(asker.droid or "", circle))
    elif ahead:
        lines.append(place_in_line(ahead))
    details: dict[str, object] = {"holders": [each.to_dict(now_ms) for each in holders]}
    if holders:
        details["ends_ms"] = min(holder.lease.expires_ms for holder in holders)
    if ahead:
        details["ahead"] = [each.to_dict() for each in ahead]
        details["place"] = len(ahead) + 1
    if circle:
        details["circle"] = [asker.droid, *(each.droid for each in circle)]
    hint = _hint(state, now_ms, asker, patterns, holders, ahead, circle)
    if may_share and not circle:
        details["may_share"] = True
        hint = f"{suggested('queen reserve', patterns[holders[0].asked], shared=True)}, or {hint}"
    return Held("; ".join(lines), hint=hint, **details)


def _may_share(asker: leases.Asker, holders: Sequence[Holder]) -> bool:
    """Returns whether a shared lease would be granted where an exclusive one is refused."""
    shared = leases.Asker(
        asker.droid, exclusive=False, tree_id=asker.tree_id, session=asker.session
    )
    return (
        asker.exclusive
        and bool(holders)
        and not any(leases.stand_against(each.lease, shared) for each in holders)
    )


def place_in_line(ahead: Sequence[Waiter]) -> str:
    """Returns a place behind these waiters: `2nd in line after birch`."""
    named = list(dict.fromkeys(each.droid for each in ahead))
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    after = ", ".join(mentioned(each) for each in named[:_NAMED])
    return f"{ordinal(len(ahead) + 1)} in line after {after}{more}"


def _deadlock(droid: str, circle: Sequence[Waiter]) -> str:
    """Returns why waiting would never end: each waits for the next, and the last for us."""
    chain = " and ".join(
        f"{mentioned(each.droid)} waits for {each.want.shown()}"
        + (f", which {mentioned(circle[index + 1].droid)} holds" if index + 1 < len(circle) else "")
        for index, each in enumerate(circle)
    )
    return f"waiting would never end, because {chain}, which {droid} holds"


def _hint(
    state: Records,
    now_ms: int,
    asker: leases.Asker,
    patterns: Mapping[str, str],
    holders: Sequence[Holder],
    ahead: Sequence[Waiter],
    circle: Sequence[Waiter],
) -> str:
    if circle:
        last = mentioned(circle[-1].droid)
        return f"release what {last} waits for, then try again: queen unreserve PATTERN"
    first = holders[0] if holders else None
    asked = patterns[first.asked if first else next(iter(patterns))]
    droid = first.lease.droid if first else ahead[0].droid
    left_ms = first.lease.expires_ms - now_ms if first else leases.NEVER_MS
    wait_s = leases.sensible_wait_s(_usual_holds_ms(state, droid, now_ms), left_ms)
    shared = None if asker.exclusive else True
    wait = suggested("queen reserve", asked, shared=shared, wait=_in_one_unit(wait_s))
    if droid == asker.droid:
        return f"{wait}, or work in a working tree of your own"
    return f"{wait}, or ask: {suggested('queen msg send', droid, 'BODY')}"


def _usual_holds_ms(state: Records, droid: str, now_ms: int) -> list[int]:
    """Returns how long a droid held its newest leases that have ended."""
    rows = state.select({"droid": droid}, newest_first=True, limit=_JUDGED)
    ended = [
        each for each in (leases.as_of(row, now_ms) for row in rows) if not leases.is_live(each)
    ]
    return [leases.lease_end_ms(each) - each.created_ms for each in ended]


def _in_one_unit(seconds: int) -> str:
    """Returns a duration in one unit, rounded up, to use on the command line."""
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
