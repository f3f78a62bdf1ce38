"""The whole team on one screen: what `queen status` shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.names import is_name
from queenbee.core.readiness import counts, in_order_to_take
from queenbee.services.work.files import first_ready, occupied
from queenbee.services.work.members import MOST_UNREAD, Member, team

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.readiness import Standing
    from queenbee.core.records import Assignment
    from queenbee.services.hive import Services
    from queenbee.services.waiting.landing_turn import Lander

READY_SHOWN = 8
_RECENT = 5
_AT_ONCE = 20


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
        self._hive = hive
        self._standings: Mapping[str, Standing] | None = None
        self._ready: list[Issue] | None = None
        # Of a large tracker, an index gives what one screen shows.
        some = first_ready(hive, self.actor, READY_SHOWN)
        self.first_ready: list[Issue] = (
            some.issues if some is not None else self.ready[:READY_SHOWN]
        )
        """The first of what the actor could take, in the order in which `queen next` takes it."""
        self.ready_count = some.count if some is not None else len(self.ready)
        """How many issues the actor could take."""
        self.counts = some.counts if some is not None else counts(self.standings.values())
        self.queue = hive.queue.everything()
        """Those who wait, in the order in which they are served."""
        self.landing: list[Lander] = []
        """Those who bring their work to the main branch now, or wait for that, in order."""
        if os.path.isdir(os.path.join(hive.layout.state_dir, "landing")):
            from queenbee.services.waiting.landing_turn import landers  # noqa: PLC0415 - start-up

            self.landing = landers(hive)
        self.done = self._last_done()
        """The last completions, newest first."""
        own = self.me.assignments if self.me is not None else []
        issues = hive.issues.some(each.issue_id for each in [*own, *self.done])
        self.titles = {key: each.title for key, each in issues.items()}
        """The titles of the actor's issues, and of those in `done`."""

    @property
    def standings(self) -> Mapping[str, Standing]:
        """Where each issue stands, by id; read when first asked for."""
        if self._standings is None:
            self._standings = self._hive.issues.standings()
        return self._standings

    @property
    def ready(self) -> list[Issue]:
        """What the actor could take, in the order in which `queen next` takes it; read when first
        asked for.
        """
        if self._ready is None:
            some = first_ready(self._hive, self.actor, None)
            self._ready = some.issues if some is not None else self._in_order()
        return self._ready

    def read_all(self) -> Status:
        """Reads what is otherwise read when first asked for, and returns itself."""
        assert self.ready is not None
        assert self.standings is not None
        return self

    def _in_order(self) -> list[Issue]:
        found = self.standings
        actor = self.actor or ""
        busy = occupied(self._hive, found, actor)
        ordered = in_order_to_take(
            found, actor=actor, reserved=busy.reserved, contested=busy.contested
        )
        return [each for each in ordered if found[each.id].state == "ready"]

    def _last_done(self) -> list[Assignment]:
        completed = self._hive.assignments.find(status="completed")
        newest = sorted(completed, key=lambda each: each.updated_at, reverse=True)
        done: list[Assignment] = []
        for begin in range(0, len(newest), _AT_ONCE):
            some = newest[begin : begin + _AT_ONCE]
            found = self._standings
            if found is None:
                found = self._hive.issues.standings_of(each.issue_id for each in some)
            done += [
                each
                for each in some
                if each.issue_id not in found or found[each.issue_id].issue.done
            ]
            if len(done) >= _RECENT:
                break
        return done[:_RECENT]

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
