"""A droid's state at a glance, for `queen prompt`: cheap, and nobody is told anything by it.

It runs in the background, each time that a prompt or a status line is drawn. So it is no sign of
life of the droid, reads no mail, and takes no news away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.names import PERSON
from queenbee.core.prompt_line import MOST_UNREAD, Glance

if TYPE_CHECKING:
    from queenbee.services.hive import Services


def glance(hive: Services) -> Glance:
    """Returns what the actor has, its unread mail, and who waits for it.

    Without an actor: how many are at work, the unread mail to `human`, and how many wait. Raises
    `InvalidInput`, `UnknownDroid` and `Unreadable`.
    """
    droid = hive.actor if hive.actor_or_none is not None else None
    mail = hive.messages.inbox(unread=True, droid=droid or PERSON, limit=MOST_UNREAD + 1)
    if droid is None:
        busy = {each.droid for each in hive.assignments.find()}
        return Glance(None, issues=(), unread=len(mail), waits=_waiting(hive), at_work=len(busy))
    issues = [each.issue_id for each in hive.assignments.find(droid=droid)]
    waits = len(_waiting_for(hive, droid)) if hive.layout.may_have_waiters() else 0
    return Glance(droid, issues=issues, unread=len(mail), waits=waits, at_work=0)


def _waiting(hive: Services) -> int:
    if not hive.layout.may_have_waiters():
        return 0
    return len({each.droid for each in hive.queue.everything()})


def _waiting_for(hive: Services, droid: str) -> set[str]:
    """Returns the droids that wait for a lease of this one, or for an issue that it has."""
    line = [each for each in hive.queue.everything() if each.droid != droid]
    return {each.droid for each in line if droid in hive.holders(each.want, each.droid)}
