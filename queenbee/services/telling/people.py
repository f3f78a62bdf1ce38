"""What wants a person: a message, an agent that waits for one, a landing or a droid that is stuck.

Agents hear their news; a person looks elsewhere and has to be called. `queen msg notify`
does that, each thing once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

from queenbee.core.names import PERSON
from queenbee.core.text import mentioned, one_line, quotation, suggested
from queenbee.core.timestamps import format_duration, instant_ms
from queenbee.services.messages import ANSWER
from queenbee.services.telling.news import MOST_UNREAD
from queenbee.services.waiting.landing_record import failed_landings
from queenbee.services.waiting.landing_turn import landers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.core.beads import Issue
    from queenbee.core.records import Assignment, Message
    from queenbee.services.hive import Services
    from queenbee.services.waiting.landing_record import FailedLanding

STUCK_S = 600
"""A landing takes as long as its check. One that has not moved for so long needs a look."""
_NAME_CHARS = 40
_TEXT_CHARS = 80


@dataclass(frozen=True, slots=True)
class Want:
    """One thing that wants a person."""

    kind: str
    """`message`, `answer`, `decision`, `given_back`, `waits`, `landing`, `failed`, `quiet`, `gate`,
    `trust`, or `more`.
    """
    again: str
    """The same for the same thing, and another one if it happens again."""
    text: str
    """On one line, with what others wrote marked as theirs."""
    droid: str = ""
    """Who wants something, or is concerned."""
    about: str = ""
    """The id of the message or issue, the pattern, the branch or the gate."""

    @property
    def key(self) -> str:
        """What is remembered of it once it was told."""
        return f"{self.kind}:{self.again}"

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {"event": self.kind, "text": self.text, "droid": self.droid, "about": self.about}


def wants(hive: Services) -> Iterator[Want]:
    """Yields what wants `human`, or the actor, now."""
    people = [PERSON, *([hive.actor] if hive.actor_or_none not in (None, PERSON) else [])]
    for person in people:
        yield from map(of_message, hive.messages.unanswered(person, limit=MOST_UNREAD))
    yield from map(of_decision, hive.issues.for_a_person())
    yield from starmap(of_given_back, hive.issues.given_back())
    yield from _waiters(hive, people)
    yield from _landings(hive)
    held = {each.issue_id: each.droid for each in hive.assignments.find()}
    yield from map(of_failed, failed_landings(hive.layout, held, hive.droids.is_quiet))
    yield from _quiet(hive, people)


def of_message(message: Message) -> Want:
    """Returns what a message to a person wants."""
    about = f" about {_name(message.issue_id)}" if message.issue_id else ""
    asks = message.wants_answer
    what = "wants your answer" if asks else "wrote to you"
    text = f"{_name(message.from_)} {what}{about}: {quotation(message.subject, _TEXT_CHARS)}"
    kind = "answer" if asks else "message"
    return Want(kind, message.id, text, droid=message.from_, about=message.id)


def way_to_answer(short_id: str) -> str:
    """Returns the command that answers a message, with what stands for the answer."""
    return suggested("queen answer", short_id, ANSWER)


def of_decision(issue: Issue) -> Want:
    """Returns what an issue that a person is to decide wants."""
    text = f"{_name(issue.id)} needs a decision: {quotation(issue.title, _TEXT_CHARS)}"
    return Want("decision", issue.id, text, about=issue.id)


def of_given_back(issue: Issue, by: Assignment) -> Want:
    """Returns what an issue that agents could not land wants."""
    text = f"{_name(issue.id)} was given back by {_name(by.droid)}"
    return Want(
        "given_back", by.id, f"{text}: {quotation(issue.title, _TEXT_CHARS)}", by.droid, issue.id
    )


def of_failed(landing: FailedLanding) -> Want:
    """Returns what a landing that failed wants."""
    what = ", ".join(map(_name, landing.issues))
    said = f": {quotation(landing.said, _TEXT_CHARS)}" if landing.said else ""
    text = f"{_name(landing.droid)} could not land {what}{said}"
    return Want("failed", landing.token, text, droid=landing.droid, about=landing.issues[0])


def _waiters(hive: Services, people: list[str]) -> Iterator[Want]:
    """Yields who waits for what a person has."""
    if not hive.layout.may_have_waiters():
        return
    for each in hive.queue.everything():
        holders = hive.holders(each.want, each.droid)
        if each.droid not in people and set(holders) & set(people):
            what = one_line(each.want.shown(), _TEXT_CHARS)
            text = f"{_name(each.droid)} waits for {what}, which you have"
            key = f"{each.droid}:{each.since_ms}"
            yield Want("waits", key, text, droid=each.droid, about=str(each.want))


def _landings(hive: Services) -> Iterator[Want]:
    for each in landers(hive):
        since_ms = instant_ms(each.since)
        stuck_s = (hive.now_ms() - (since_ms or hive.now_ms())) / 1000
        if stuck_s >= STUCK_S:
            what = {"resolving": "has a conflict to resolve", "waiting": "waits"}.get(
                each.state, "is landing"
            )
            text = (
                f"{_name(each.droid)} {what} before its work is on {_name(each.target)}, "
                f"for {format_duration(stuck_s).split(' ')[0]} now"
            )
            key = f"{each.droid}:{each.state}:{each.since}"
            yield Want("landing", key, text, droid=each.droid, about=each.target)


def _quiet(hive: Services, people: list[str]) -> Iterator[Want]:
    """Yields the droids that have work and show no sign of life."""
    work: dict[str, str] = {each.droid: each.issue_id for each in hive.assignments.find()}
    for lease in hive.reservations.find():
        work.setdefault(lease.droid, lease.pattern)
    for droid, what in sorted(work.items()):
        if droid in people or not hive.droids.is_quiet(droid):
            continue
        seen_ms = hive.droids.seen_ms(droid)
        since = "ever"
        if seen_ms is not None:
            since = f"for {format_duration((hive.now_ms() - seen_ms) / 1000).split(' ')[0]}"
        text = f"{_name(droid)} has {_name(what)} and gave no sign of life {since}"
        yield Want("quiet", f"{droid}:{seen_ms}", text, droid=droid, about=what)


def _name(text: str) -> str:
    return mentioned(text, _NAME_CHARS)
