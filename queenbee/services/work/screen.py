"""The whole team on one screen: what `queen status` shows."""

from __future__ import annotations

import os
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from queenbee.core.names import PERSON, QUEEN, is_name
from queenbee.core.readiness import is_work
from queenbee.core.reviews.review import PERSON as ASKS_PERSON
from queenbee.services.messages import CHECK_FILES
from queenbee.services.waiting.landing_record import failed_landings
from queenbee.services.waiting.landing_turn import landers, lines_dir
from queenbee.services.work.members import Member, team
from queenbee.services.work.shared_files import to_take
from queenbee.store.droids import roster, spending
from queenbee.store.host_note import HostNote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from queenbee.core.beads import Issue
    from queenbee.core.queue import Waiter
    from queenbee.core.readiness import Standing
    from queenbee.core.records import Assignment, Message
    from queenbee.services.hive import Services
    from queenbee.services.waiting.landing_record import FailedLanding
    from queenbee.services.waiting.landing_turn import Lander
    from queenbee.services.work.relief import Keeper
    from queenbee.store.trust import Proposal

READY_SHOWN = 8
_RECENT = 5
_MOST_UNREAD = 50
_HERE_MS = 3_600_000


class Status:
    """The actor's own work, the others', and the issues."""

    def __init__(self, hive: Services) -> None:
        self.actor: str | None = hive.actor_or_none
        members = team(hive)
        self.me: Member | None = next((each for each in members if each.droid == self.actor), None)
        """None if the actor has neither an issue nor a lease."""
        self.others: list[Member] = [each for each in members if each.droid != self.actor]
        self.idle: dict[str, int] = _idle(hive, {self.actor, *(each.droid for each in members)})
        reader = self.actor or PERSON
        self.unread: int = hive.messages.count(unread=True, droid=reader) if is_name(reader) else 0
        """Messages to the actor; without one, those to `human`."""
        self._hive = hive
        self.counts: dict[str, int] = hive.issues.counts()
        """How many issues are in each state."""
        self.ready_count: int = hive.issues.ready_count()
        """How many issues the actor could take."""
        self.first_ready: list[Issue] = list(islice(self._in_order(), READY_SHOWN))
        """The first of what the actor could take, in the order in which `queen next` takes it."""
        self.queue: list[Waiter] = hive.queue.everything()
        """Those who wait, in the order in which they are served."""
        self.landing: list[Lander] = _landing(hive)
        """Those who bring their work to the main branch now, or wait for that, in order."""
        self.started: list[roster.Entry] = roster.everybody(hive.layout)
        """The agents that a `queen start` looks after, by name."""
        self.programs: dict[str, str] = roster.programs(hive.layout)
        """What runs each agent, or ran it in its last run, by name."""
        self.done: list[Assignment] = self._last_done()
        """The last completions, newest first."""
        own = self.me.assignments if self.me is not None else []
        issues = hive.issues.some(each.issue_id for each in [*own, *self.done])
        self.titles: dict[str, str] = {key: each.title for key, each in issues.items()}
        """The titles of the actor's issues, and of those in `done`."""

    @cached_property
    def open(self) -> dict[str, Standing]:
        """Where each issue stands that is not done, by id."""
        return self._hive.issues.open()

    @cached_property
    def given_back(self) -> dict[str, str]:
        """Who gave back those in `first_ready` that somebody did, with a reason, by id."""
        find = self._hive.assignments.find
        found = {each.id: find(issue_id=each.id, status="released") for each in self.first_ready}
        named = {
            key: dict.fromkeys(one.droid for one in some if one.reason)
            for key, some in found.items()
        }
        return {key: ", ".join(droids) for key, droids in named.items() if droids}

    @cached_property
    def waits_to_land(self) -> dict[str, str]:
        """What agents have made and the next `queen start` lands, with what it waits for, by id."""
        return roster.waiting(self._hive.layout)

    @cached_property
    def unseen_commands(self) -> Sequence[Proposal]:
        """The commands that wait until a person on this machine has seen them."""
        return self._hive.documents.unseen_commands()

    @cached_property
    def host(self) -> HostNote | None:
        """What was heard last of the pull requests; None if there are none."""
        has_any = any(each.in_review for each in self._members())
        return HostNote(self._hive.layout) if has_any else None

    def _members(self) -> Iterator[Member]:
        return filter(None, (self.me, *self.others))

    @property
    def with_a_person(self) -> dict[str, str]:
        """The issues in review that a person is to look at, each with its pull request."""
        held = [each for member in self._members() for each in member.assignments]
        found = ((each.issue_id, each.review) for each in held)
        return {key: f"{one} {one.url}" for key, one in found if one and one.asks == ASKS_PERSON}

    @cached_property
    def ready(self) -> list[Issue]:
        """What the actor could take, in the order in which `queen next` takes it."""
        return list(self._in_order())

    @cached_property
    def for_a_person(self) -> list[Message]:
        """What agents have written to `human` that no person has read, questions first."""
        unread = self._hive.messages.unanswered(PERSON, limit=_MOST_UNREAD)
        return sorted(unread, key=lambda each: each.ack_by is None)

    @cached_property
    def decisions(self) -> list[Issue]:
        """The open issues that a person is to decide."""
        return self._hive.issues.for_a_person()

    @cached_property
    def left_by_agents(self) -> list[tuple[Issue, Assignment]]:
        """The issues that the last `queen start` gave back and nobody has taken since."""
        return self._hive.issues.given_back()

    @cached_property
    def failed_landings(self) -> list[FailedLanding]:
        """The last landings that failed, of quiet ones who have issues."""
        members = self._members()
        held = {one.issue_id: each.droid for each in members for one in each.assignments}
        return failed_landings(self._hive.layout, held, self._hive.droids.is_quiet)

    @cached_property
    def check_changes(self) -> list[Message]:
        """What the person has not read yet of changes of the check."""
        return [each for each in self.for_a_person if CHECK_FILES in each.fields]

    def read_all(self) -> Status:
        """Reads what is otherwise read when first asked for, and returns itself."""
        assert self.ready is not None
        assert self.open is not None
        assert self.check_changes is not None
        assert self.for_a_person is not None
        assert self.decisions is not None
        assert self.left_by_agents is not None
        assert self.failed_landings is not None
        assert self.unseen_commands is not None
        assert self.waits_to_land is not None
        assert self.given_back is not None
        return self

    def _in_order(self) -> Iterator[Issue]:
        return to_take(self._hive, self.actor or "", free_only=True)

    def _last_done(self) -> list[Assignment]:
        most = _RECENT
        while True:
            some = self._hive.assignments.last_completed(most)
            issues = self._hive.issues.some(each.issue_id for each in some)
            open_ = {key for key, one in issues.items() if not one.done and is_work(one)}
            found: dict[str, Assignment] = {}
            for each in some:
                if each.issue_id not in open_:
                    found.setdefault(each.issue_id, each)
            if len(found) >= _RECENT or len(some) < most:
                return [*found.values()][:_RECENT]
            most *= 4  # Some were opened again.

    def __repr__(self) -> str:
        return f"Status(actor={self.actor!r}, counts={self.counts!r})"

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "actor": self.actor,
            "me": self.me.to_dict() if self.me is not None else None,
            "unread": self.unread,
            "others": [each.to_dict() for each in self.others],
            "idle": self.idle,
            "queue": [each.to_dict() for each in self.queue],
            "for_a_person": [each.to_dict() for each in self.for_a_person],
            "decisions": [each.to_dict() for each in self.decisions],
            "left_by_agents": [each.id for each, _ in self.left_by_agents],
            "failed_landings": [each.to_dict() for each in self.failed_landings],
            "check_changes": [each.to_dict() for each in self.check_changes],
            "landing": [each.to_dict() for each in self.landing],
            "started": [each.to_dict() for each in self.started],
            "programs": self.programs,
            "spent": [each.to_dict() for each in spending.spent(self._hive.layout)],
            "pull_requests": self.host.states if self.host is not None else {},
            "waits_to_land": self.waits_to_land,
            "given_back": self.given_back,
            "counts": self.counts,
            "unseen_commands": [each.to_dict() for each in self.unseen_commands],
            "ready": [each.to_dict() for each in self.ready],
            "done": [each.to_dict() for each in self.done],
        }


def _idle(hive: Services, at_work: Collection[str | None]) -> dict[str, int]:
    """Returns the droids without an issue or a lease that acted here within the last hour, and when
    last, in ms since 1970.
    """
    since_ms = hive.now_ms() - _HERE_MS
    seen = hive.droids.seen_here().items()
    others = {*at_work, QUEEN, PERSON}  # A rehearsal, and who looks.
    return {name: at_ms for name, at_ms in seen if at_ms > since_ms and name not in others}


def _landing(hive: Services) -> list[Lander]:
    if not os.path.isdir(lines_dir(hive)):
        return []
    return landers(hive)


def status(hive: Services, keeper: Callable[[Services], Keeper] | None = None) -> Status:
    """Returns what the whole team does now. The `keeper` looks for signs of life of those who seem
    to have gone silent.
    """
    found = Status(hive)
    silent = [each.droid for each in found.others if each.silent_s is not None]
    if keeper is None or not silent:
        return found
    return Status(hive) if keeper(hive).note_signs_of(silent) else found
