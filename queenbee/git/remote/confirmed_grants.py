"""Grants that count only once the remote has them.

A grant is first made here, marked as unconfirmed, as everybody on this machine sees. Then the
exchange with the remote confirms it, or ends it. ADR 0029.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from queenbee.core import leases
from queenbee.core.glob.pattern import overlap
from queenbee.core.records import Assignment, Reservation
from queenbee.errors import Busy, Held, QueenError, Taken, Unreachable
from queenbee.git.remote.alongside import following
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.deciding import ASSIGNMENTS, RESERVATIONS, found, is_live, withdraw
from queenbee.git.remote.sync_state import Notes
from queenbee.git.remote.syncing import sync, take_in
from queenbee.services.assignments import taken
from queenbee.services.leases.lease_refusals import Holder, Refusal
from queenbee.services.waiting.attempts import Watch
from queenbee.services.waiting.pauses import finish

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.services.hive import Services

    Grant = Assignment | Reservation

_PAUSE_S = 1.0
"""Before another attempt, if nothing says when it makes sense."""


def confirmed(
    hive: Services,
    grant: Callable[[], Sequence[Grant]],
    *,
    local_if_offline: bool = False,
    tell: Callable[[str], None] = lambda text: None,
    left_s: Callable[[], float] = lambda: 0.0,
) -> list[Grant]:
    """Returns what `grant` granted, once the remote has it and nothing there stands against it.

    Where a carrier decides every write, that is so at once. What cannot be confirmed does not
    remain. Raises what `grant` raises, `Taken` or `Held` if the remote has another's grant, and
    `Unreachable` or `Busy` if that cannot be found out. With `local_if_offline`, an unreachable
    remote leaves the grants here, marked as unconfirmed; the next exchange confirms or ends them.

    While `left_s()` is more than 0, `grant` waits for its turn: meanwhile, what others push is
    taken in, and another attempt follows when what stood against this one has ended. Raises
    `Busy` when the time is over.
    """
    if hive.engine.carrier is not None:
        return list(grant())
    if not left_s():
        try:
            return _once(hive, grant, local_if_offline=local_if_offline, tell=tell)
        except _Lost as lost:
            raise lost.refusal from None
    with following(hive, tell):
        while True:
            try:
                return _once(hive, grant, local_if_offline=local_if_offline, tell=tell)
            except _Lost as lost:
                if not left_s():
                    raise _late(lost.refusal) from None
                lost.wait(hive, left_s())
            except (Taken, Held) as refusal:
                if left_s():
                    raise  # Waiting makes no sense: each would wait for the other.
                raise _late(refusal) from refusal


def _late(refusal: QueenError) -> Busy:
    return Busy(f"timed out: {refusal.message}", hint=refusal.hint, **refusal.details)


class _Lost(Exception):
    """An attempt that ended because of what the remote has."""

    def __init__(self, refusal: QueenError, winners: Sequence[Grant]) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self._winners = winners

    def wait(self, hive: Services, most_s: float) -> None:
        """Returns when what stood against it may have ended."""
        if not self._winners:
            time.sleep(min(most_s, random.uniform(0, _PAUSE_S)))  # noqa: S311 - jitter
            return
        # For another clone, a confirmed lease ends so much later than it says.
        margin_ms = int(hive.layout.settings.sync_clock_skew_s * 1000)
        for each in self._winners:
            if isinstance(each, Reservation):
                left_s = (each.expires_ms + margin_ms - hive.now_ms()) / 1000
                most_s = min(most_s, max(_PAUSE_S, left_s))

        def has_changed() -> bool:
            now = [found(hive, _kind(each), each.id) or each for each in self._winners]
            return any(
                (one.rev, one.status) != (each.rev, each.status)
                for one, each in zip(now, self._winners, strict=True)
            )

        kinds = {_kind(each) for each in self._winners}
        finish(Watch(hive, sorted(kinds)).wait(time.monotonic() + most_s, has_changed))


def _once(
    hive: Services,
    grant: Callable[[], Sequence[Grant]],
    *,
    local_if_offline: bool,
    tell: Callable[[str], None],
) -> list[Grant]:
    """Returns the confirmed grants of one attempt. Raises `_Lost` if the remote has others'."""
    with Branch(hive) as branch:
        return _confirmed(hive, branch, grant, local_if_offline=local_if_offline, tell=tell)


def _confirmed(
    hive: Services,
    branch: Branch,
    grant: Callable[[], Sequence[Grant]],
    *,
    local_if_offline: bool,
    tell: Callable[[str], None],
) -> list[Grant]:
    notes = Notes(hive, branch.ref)
    try:
        take_in(hive, branch)
    except Unreachable as error:
        if not local_if_offline:
            raise
        given = _marked(hive, notes, grant)
        _ask(notes, given)
        return _alone(hive, given, error, tell)
    before = _held_before(hive)
    given = _marked(hive, notes, grant)
    new = [(_kind(each), each.id) for each in given if each.id not in before]
    name = _ask(notes, given)
    if name is None:
        return given
    try:
        sync(hive, fetch=False, request=name, branch=branch)
    except Unreachable as error:
        if not local_if_offline:
            _take_back(hive, notes, name, new)
            raise
        return _alone(hive, given, error, tell)
    except BaseException:
        _take_back(hive, notes, name, new)
        raise
    settled = _again(hive, given)
    if not all(is_live(each, hive.now_ms()) and each.token for each in settled):
        if any(is_live(each, hive.now_ms()) and not each.token for each in settled):
            _take_back(hive, notes, name, new)  # The request was lost with a damaged memory.
        raise _lost(hive, settled)
    return settled


def _alone(
    hive: Services, given: Sequence[Grant], error: Unreachable, tell: Callable[[str], None]
) -> list[Grant]:
    """Returns grants that count here without the remote, after they took over what they are to."""
    with hive.transaction() as tx:
        hive.reservations.stage_takeover(tx, [x for x in given if isinstance(x, Reservation)])
    tell(f"not confirmed: {error.message}; the next queen sync confirms it, or ends it")
    return _again(hive, given)


def _marked(hive: Services, notes: Notes, grant: Callable[[], Sequence[Grant]]) -> list[Grant]:
    # With the clone, the next exchange finds what nobody asked for any more: deciding.py.
    marks = {"unconfirmed": True, "clone": notes.clone()}
    before, hive.grant_marks = hive.grant_marks, marks
    try:
        return list(grant())
    finally:
        hive.grant_marks = before


def _ask(notes: Notes, given: Sequence[Grant]) -> str | None:
    """Notes that these grants wait for the remote; returns the name of the request, if any does.

    An assignment that has its token is confirmed already. A lease may just have been extended.
    """
    waiting = [each for each in given if isinstance(each, Reservation) or not each.token]
    return notes.add_pending([(_kind(each), each.id) for each in waiting]) if waiting else None


def _held_before(hive: Services) -> set[str]:
    """Returns the ids of what the actor has already: it keeps that, whatever comes of this."""
    droid = hive.actor
    have = [*hive.assignments.find(droid=droid), *hive.reservations.find(droid=droid)]
    return {each.id for each in have}


def _take_back(hive: Services, notes: Notes, name: str, new: Sequence[tuple[str, str]]) -> None:
    """Ends what this request made new: nobody may confirm it any more."""
    # In this order: killed in between, the request is one of grants that have ended.
    withdraw(hive, new, {})
    notes.remove_pending(name)


def _again(hive: Services, given: Sequence[Grant]) -> list[Grant]:
    return [found(hive, _kind(each), each.id) or each for each in given]


def _kind(grant: Grant) -> str:
    return ASSIGNMENTS if isinstance(grant, Assignment) else RESERVATIONS


def _lost(hive: Services, settled: Sequence[Grant]) -> _Lost:
    """Returns the refusal that one machine would have given, and what it is because of."""
    conflicts = []
    for each in settled:
        lost_to = each.get("lost_to")
        winner = found(hive, _kind(each), lost_to) if isinstance(lost_to, str) else None
        if isinstance(winner, Assignment):
            return _Lost(taken(winner, hive.now_ms()), [winner])
        if isinstance(winner, Reservation) and isinstance(each, Reservation):
            conflicts.append((winner, each))
    if not conflicts:
        text = "the grant ended while it waited for the remote"
        return _Lost(Busy(text, hint="try again; nothing was granted"), [])
    return _Lost(_held(hive, conflicts), [winner for winner, _ in conflicts])


def _held(hive: Services, conflicts: Sequence[tuple[Reservation, Reservation]]) -> QueenError:
    fold_case = hive.reservations.fold_case
    holders = [
        Holder(
            lease,
            asked.pattern,
            overlap(lease.pattern, asked.pattern, fold_case=fold_case) or "",
        )
        for lease, asked in conflicts
    ]
    asked = conflicts[0][1]
    asker = leases.Asker(asked.droid, exclusive=asked.exclusive, tree_id=asked.tree_id)
    patterns = {each.pattern: each.pattern for _, each in conflicts}
    state, now_ms = hive.state(RESERVATIONS), hive.now_ms()
    return Refusal(state, now_ms, asker, patterns, holders).error()
