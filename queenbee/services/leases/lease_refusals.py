"""The refusal of a request for leases: who is in the way, one's place in line, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core import leases
from queenbee.core.queue import ordinal
from queenbee.core.text import bracketed, mentioned, some, suggested
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import Held, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from queenbee.core.queue import Waiter
    from queenbee.core.records import Reservation
    from queenbee.errors import QueenError
    from queenbee.services.droids import Droids
    from queenbee.services.nudges import Nudges
    from queenbee.store.memory.recorded import Recorded

_SHOWN = 10
_NAMED = 3
_JUDGED = 50
"""How many of a droid's newest leases say how long it usually holds one."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One reason for a refusal: a live lease, the refused pattern, and a path in both."""

    lease: Reservation
    asked: str
    witness: str

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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: the holders, those who are served first, and those who already
    wait, each for the next and the last for the droid that asks.
    """

    state: Recorded
    now_ms: int
    asker: leases.Asker
    patterns: Mapping[str, str]
    """Those asked for, each with the text that was typed for it."""
    holders: Sequence[Holder]
    ahead: Sequence[Waiter] = ()
    circle: Sequence[Waiter] = ()

    def error(self) -> Held:
        """Returns it as an error: every holder, the reason, the time left, a path in both
        patterns; and what to do, in the words that the user typed, which work in their directory.
        """
        details: dict[str, object] = {"holders": [x.to_dict(self.now_ms) for x in self.holders]}
        if self.holders:
            details["ends_ms"] = min(each.lease.expires_ms for each in self.holders)
        if self.ahead:
            details["ahead"] = [each.to_dict() for each in self.ahead]
            details["place"] = len(self.ahead) + 1
        if self.circle:
            details["circle"] = [self.asker.droid, *(each.droid for each in self.circle)]
        elif self._may_share():
            details["may_share"] = True
        return Held("; ".join(self._lines()), hint=self._hint(), **details)

    def _lines(self) -> Iterator[str]:
        for each in self.holders[:_SHOWN]:
            yield _sentence(each, self.now_ms)
        if len(self.holders) > _SHOWN:
            yield f"and {len(self.holders) - _SHOWN} more"
        if not self.holders:
            first = self.ahead[0]
            since = format_duration((self.now_ms - first.since_ms) / 1000)
            who, what = mentioned(first.droid), first.want.shown()
            yield f"nobody holds it, but {who} has waited for {what} for {since}"
        elif self._may_share():
            if any(each.lease.mode == "shared" for each in self.holders):
                yield "who shares it only edits there: git merges that with your edits"
        elif not self.asker.exclusive and not all(x.lease.exclusive for x in self.holders):
            yield "in one working tree, git merges nothing"
        if self.circle:
            yield self._deadlock()
        elif self.ahead:
            yield place_in_line(self.ahead)

    def _may_share(self) -> bool:
        """Returns whether a shared lease would be granted where an exclusive one is refused."""
        asker = self.asker
        shared = leases.Asker(
            asker.droid, exclusive=False, tree_id=asker.tree_id, session=asker.session
        )
        return (
            asker.exclusive
            and bool(self.holders)
            and not self.ahead
            and not any(leases.stand_against(each.lease, shared) for each in self.holders)
        )

    def _deadlock(self) -> str:
        """Returns why waiting would never end: each waits for the next, and the last for us."""
        waits = [f"{mentioned(each.droid)} waits for {each.want.shown()}" for each in self.circle]
        holders = [f", which {mentioned(each.droid)} holds" for each in self.circle[1:]]
        chain = " and ".join(map("".join, zip(waits, [*holders, ""], strict=True)))
        return f"waiting would never end, because {chain}, which {self.asker.droid} holds"

    def _hint(self) -> str:
        if self.circle:
            last = mentioned(self.circle[-1].droid)
            return f"release what {last} waits for, then try again: queen reserve release PATTERN"
        asker, patterns = self.asker, self.patterns
        first = self.holders[0] if self.holders else None
        asked = patterns[first.asked if first else next(iter(patterns))]
        droid = first.lease.droid if first else self.ahead[0].droid
        left_ms = first.lease.expires_ms - self.now_ms if first else leases.NEVER_MS
        wait_s = leases.sensible_wait_s(self._usual_holds_ms(droid), left_ms)
        shared = None if asker.exclusive else True
        hint = suggested("queen reserve", asked, shared=shared, wait=_in_one_unit(wait_s))
        if droid == asker.droid:
            hint = f"{hint}, or work in a working tree of your own"
        else:
            hint = f"{hint}, or ask: {suggested('queen msg send', droid, 'BODY')}"
        if self._may_share():
            return f"{suggested('queen reserve', asked, shared=True)}, or {hint}"
        return hint

    def _usual_holds_ms(self, droid: str) -> list[int]:
        """Returns how long a droid held its newest leases that have ended."""
        rows = self.state.select({"droid": droid}, newest_first=True, limit=_JUDGED)
        found = [leases.as_of(row, self.now_ms) for row in rows]
        ended = [each for each in found if not leases.is_live(each)]
        return [leases.lease_end_ms(each) - each.created_ms for each in ended]


def relieved(asked: str, holders: Iterable[str], nudges: Nudges) -> dict[str, str]:
    """Returns why each holder of what was asked for may be relieved, for a takeover without a
    reason of its own.

    Raises `InvalidInput` if one may not, or if there is none.
    """
    hint, found = "add --reason TEXT", dict[str, str]()
    for droid in holders:
        why = nudges.may_take_over(droid)
        if why is None:
            hint = nudges.next_step(droid, _taking_over(asked)) or hint
            break
        found[droid] = why
    else:
        if found:
            return found
    raise InvalidInput("a takeover needs a reason, which the holder will read", hint=hint)


def add_signs_of_life(
    refusal: QueenError, asked: str, droids: Droids, nudges: Nudges, now_ms: int
) -> None:
    """Adds to a refusal when each holder was last seen, and what to do about a quiet one."""
    holders = refusal.details.get("holders")
    if not isinstance(holders, list):
        return  # The hive is locked.
    quiet: dict[str, str] = {}
    for holder in holders:
        droid, seen_ms = holder["droid"], droids.seen_ms(holder["droid"])
        if seen_ms is not None:
            holder["last_seen_at"] = format_ms(seen_ms)
            if droids.is_quiet(droid):
                quiet[droid] = format_duration((now_ms - seen_ms) / 1000)
    for droid, ago in quiet.items():
        refusal.message += f"; {mentioned(droid)} was last seen {ago} ago"
    refusal.args = (refusal.message,)
    if quiet and not refusal.details.get("circle"):
        refusal.hint = nudges.next_step(next(iter(quiet)), _taking_over(asked)) or refusal.hint


def _taking_over(asked: str) -> str:
    return suggested("queen reserve", asked, force=True)


def place_in_line(ahead: Sequence[Waiter]) -> str:
    """Returns a place behind these waiters: `2nd in line after birch`."""
    after = list(dict.fromkeys(mentioned(each.droid) for each in ahead))
    return f"{ordinal(len(ahead) + 1)} in line after {some(after, _NAMED)}"


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
    mode = "" if lease.exclusive else f" ({lease.mode})"
    issue = f" for {mentioned(lease.issue_id)}" if lease.issue_id else ""
    why = f" {bracketed(lease.reason)}" if lease.reason else ""
    left = format_duration((lease.expires_ms - now_ms) / 1000)
    return f"{what} by {mentioned(lease.droid)}{mode}{issue}{why}, {left} left"
