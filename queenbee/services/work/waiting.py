"""Waiting for anything: an issue to be done, a ready one, a free pattern, mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.kinds import ISSUES
from queenbee.core.leases import Asker, stand_against
from queenbee.core.timestamps import format_duration
from queenbee.errors import Busy, InvalidInput
from queenbee.services.waiting.attempts import Watch, until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.services.hive import Services
    from queenbee.services.waiting.pauses import Steps

    OnProgress = Callable[[float], None]

LOOK_AGAIN_S = 5.0
"""How long to rely on files at most: time passes too, and so leases and deferrals end."""


class Wanted:
    """What to wait for: the first of these that is true ends the wait.

    All of `issues` are done; an issue is `ready` for the actor, or everything is done; nobody
    else holds any of the patterns in `free`; there is unread `mail`.
    """

    def __init__(
        self,
        *,
        issues: Sequence[str] = (),
        ready: bool = False,
        free: Sequence[str] = (),
        mail: bool = False,
    ) -> None:
        self.issues = issues
        self.ready = ready
        self.free = free
        self.mail = mail
        if not (issues or ready or free or mail):
            raise InvalidInput(
                "nothing to wait for",
                hint="queen issue wait ISSUE, --ready, --free PATTERN or --mail",
            )

    def shown(self) -> str:
        """Returns what is wanted, for a sentence."""
        parts = [*self.issues, *self.free]
        parts += ["an issue that is ready"] if self.ready else []
        return ", ".join([*parts, *(["mail"] if self.mail else [])])


def wait(
    hive: Services, wanted: Wanted, *, timeout_s: float, on_progress: OnProgress | None = None
) -> Steps[dict[str, object]]:
    """Waits until what is wanted is there, and comes to what that is.

    The result has one of the keys `issues`, `ready`, `free` and `mail`, with their values. Raises
    `Busy` at the timeout, and `NotFound` for an unknown issue. `on_progress` is called as `Watch`
    says of `on_tick`.
    """
    for issue_id in wanted.issues:
        hive.issues.check_known(issue_id)
    kinds = ("assignments", "reservations", "messages", ISSUES)
    watch = Watch(hive, kinds, [hive.layout.issues_path], on_progress)
    found = yield from until(watch, lambda: _found(hive, wanted), timeout_s, LOOK_AGAIN_S)
    if not found:
        _leave_word(hive, wanted)
        raise Busy(
            f"timed out after {format_duration(timeout_s)}: {_missing(hive, wanted)}",
            hint="queen status",
        )
    return found


def _leave_word(hive: Services, wanted: Wanted) -> None:
    """Has the actor told of the issues when they are done."""
    if wanted.issues:
        from queenbee.services.work.awaited import awaits  # noqa: PLC0415 - start-up

        awaits(hive, _open(hive, wanted.issues))


def _found(hive: Services, wanted: Wanted) -> dict[str, object]:
    if wanted.issues:
        open_ = _open(hive, wanted.issues)
        if not open_:
            return {"issues": list(wanted.issues)}
    if wanted.ready:
        ready = hive.issues.ready(actor=hive.actor_or_none)
        counts = {} if ready else hive.issues.counts()
        if ready or counts["done"] == counts["total"]:
            return {"ready": ready}
    if wanted.free and not _holders(hive, wanted.free):
        return {"free": list(wanted.free)}
    mail = hive.messages.inbox(unread=True) if wanted.mail else []
    return {"mail": mail} if mail else {}


def _missing(hive: Services, wanted: Wanted) -> str:
    """Returns what there is still to wait for."""
    parts = []
    if wanted.issues:
        parts.append(f"not done: {', '.join(_open(hive, wanted.issues))}")
    if wanted.ready:
        parts.append("no issue is ready")
    if wanted.free:
        parts.append(f"held by {', '.join(_holders(hive, wanted.free))}")
    if wanted.mail:
        parts.append("no unread messages")
    return "; ".join(parts)


def _open(hive: Services, issue_ids: Sequence[str]) -> list[str]:
    issues = hive.issues.some(issue_ids)
    return [
        each
        for each in issue_ids
        if (each in issues and not issues[each].done)
        or (each not in issues and hive.issues.completion(each) is None)
    ]


def _holders(hive: Services, patterns: Sequence[str]) -> list[str]:
    """Returns the droids that hold what overlaps these patterns, other than the actor."""
    asker = Asker(hive.actor_or_none, exclusive=True)
    held = [
        lease.droid
        for each in hive.reservations.resolve(patterns)
        for lease in hive.reservations.overlapping(each.pattern)
        if stand_against(lease, asker)
    ]
    return list(dict.fromkeys(held))
