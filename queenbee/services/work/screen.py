"""The whole team on one screen: what `queen status` shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.names import is_name
from queenbee.core.readiness import counts, in_order_to_take
from queenbee.services.work.files import occupied
from queenbee.services.work.members import MOST_UNREAD, Member, team

if TYPE_CHECKING:
    from queenbee.core.beads import Issue
    from queenbee.services.hive import Services
    from queenbee.services.waiting.landing_turn import Lander

_RECENT = 5


class Status:
    """The actor's own work, the others', and the issues."""

    def __init__(self, hive: Services) -> None:
        self.actor = hive.actor_or_none
        members = team(hive)
        self.me: Member | None = next((each for each in members if each.droid == self.actor), None)
        """None if the actor has neither an issue nor a lease."""
        self.others = [each for each in members if each.droid != self.actor]
        known = self.actor is not None and is_name(self.actor)
        mail = hive.messages.inbox(unread=True, limit=MOST_UNREAD) if known else []
        self.unread = len(mail)
        """Up to a hundred."""
        found = hive.issues.standings()
        self.standings = found
        """Where each issue stands, by id."""
        self.counts = counts(found.values())
        actor = self.actor or ""
        busy = occupied(hive, found, actor)
        ordered = in_order_to_take(
            found, actor=actor, reserved=busy.reserved, contested=busy.contested
        )
        self.ready: list[Issue] = [each for each in ordered if found[each.id].state == "ready"]
        """What the actor could take, in the order in which `queen next` takes it."""
        self.queue = hive.queue.everything()
        """Those who wait, in the order in which they are served."""
        self.landing: list[Lander] = []
        """Those who bring their work to the main branch now, or wait for that, in order."""
        if os.path.isdir(os.path.join(hive.layout.state_dir, "landing")):
            from queenbee.services.waiting.landing_turn import landers  # noqa: PLC0415 - start-up

            self.landing = landers(hive)
        done = [
            each
            for each in hive.assignments.find(status="completed")
            if each.issue_id not in found or found[each.issue_id].issue.done
        ]
        self.done = sorted(done, key=lambda each: each.updated_at, reverse=True)[:_RECENT]
        """The last completions, newest first."""
        self.titles = {key: each.issue.title for key, each in found.items()}

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "actor": self.actor,
            "me": self.me.to_dict() if self.me is not None else None,
            "unread": self.unread,
            "others": [each.to_dict() for each in self.others],
            "queue": [each.to_dict() for each in self.queue],
            "landing": [each.to_dict() for each in self.landing],
            "counts": self.counts,
            "ready": [each.to_dict() for each in self.ready],
            "done": [each.to_dict() for each in self.done],
        }


def status(hive: Services) -> Status:
    """Returns what the whole team does now."""
    return Status(hive)
