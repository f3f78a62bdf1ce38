"""Who works on what, and where, now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.timestamps import format_duration, format_ms
from queenbee.services.waiting.landing_record import issues_landing
from queenbee.store.droids import roster

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.core.records import Assignment, Reservation
    from queenbee.services.hive import Services
    from queenbee.store.droids.roster import Entry


class Member:
    """One droid: its active assignments, its live leases, and when it was last seen."""

    def __init__(
        self,
        droid: str,
        assignments: list[Assignment],
        leases: list[Reservation],
        *,
        titles: dict[str, str],
        last_seen_ms: int,
    ) -> None:
        self.droid = droid
        self.assignments = assignments
        self.leases = leases
        self.titles = titles
        """The title of each issue it works on, by id."""
        self.notes: dict[str, str] = {}
        """What it does beside its issues, by id of these."""
        self.last_seen_ms = last_seen_ms
        """When it last showed a sign of life, in ms since 1970; 0 if never."""
        self.silent_s: int | None = None
        """For how long, in seconds, if that is so long that it can be asked; None if not."""
        self.waiting: Sequence[str] = ()
        """If so: the droids that wait for an issue that it has, or for any."""

    @property
    def in_review(self) -> bool:
        """Whether the work on an issue of it is proposed, and not merged yet."""
        return any(each.review is not None for each in self.assignments)

    @property
    def worktree(self) -> str | None:
        """Where it works, as its newest assignment or lease says."""
        of_leases = [each.worktree for each in self.leases]
        places = [*of_leases, *(each.worktree for each in self.assignments)]
        return next((each for each in reversed(places) if each), None)

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "droid": self.droid,
            "issues": [
                {
                    "issue_id": each.issue_id,
                    "title": self.titles.get(each.issue_id, ""),
                    "since": each.created_at,
                    "note": self.notes.get(each.issue_id),
                    "review": each.review.to_dict() if each.review is not None else None,
                }
                for each in self.assignments
            ],
            "patterns": [each.pattern for each in self.leases],
            "worktree": self.worktree,
            "last_seen_at": format_ms(self.last_seen_ms) if self.last_seen_ms else None,
            "silent_s": self.silent_s,
            "waiting": list(self.waiting),
        }

    def silence(self) -> str:
        """Returns for how long it has been silent, and who waits for it; empty if it is not."""
        return silence(self.silent_s, len(self.waiting)) if self.silent_s is not None else ""


def silence(silent_s: int, waiting: int) -> str:
    """Returns in words for how long a droid has been silent, and how many wait for it."""
    waits = f", {waiting} wait{'s' * (waiting == 1)} for it" if waiting else ""
    return f"last seen {format_duration(silent_s).split(' ')[0]} ago{waits}"


def live_leases(hive: Services, *, droid: str | None = None) -> list[Reservation]:
    """Returns the live leases, or those of one droid, oldest first.

    A hive without any does not load what leases need.
    """
    equals = {"status": "active", **({"droid": droid} if droid is not None else {})}
    now = format_ms(hive.now_ms())
    ends = hive.state("reservations").project(("expires_at",), equals)
    # An end in another form than ours is compared by the service.
    if all(isinstance(end, str) and len(end) == len(now) and end <= now for (end,) in ends):
        return []
    return hive.reservations.find(droid=droid)


def team(hive: Services, *, without: Iterable[str] = ()) -> list[Member]:
    """Returns the droids that have an issue or a lease now, by name."""
    assignments: dict[str, list[Assignment]] = {}
    for assignment in hive.assignments.find():
        assignments.setdefault(assignment.droid, []).append(assignment)
    leases: dict[str, list[Reservation]] = {}
    for lease in live_leases(hive):
        leases.setdefault(lease.droid, []).append(lease)
    left_out = set(without)
    droids = sorted({*assignments, *leases} - left_out)
    issues = hive.issues.some(each.issue_id for all_ in assignments.values() for each in all_)
    members = [
        Member(
            droid,
            assignments.get(droid, []),
            leases.get(droid, []),
            titles={
                each.issue_id: issues[each.issue_id].title
                for each in assignments.get(droid, [])
                if each.issue_id in issues
            },
            last_seen_ms=hive.droids.seen_ms(droid) or 0,
        )
        for droid in droids
    ]
    now_ms = hive.now_ms()
    for each in members:
        said = {one.issue_id: one.note(now_ms) for one in each.assignments}
        each.notes = {issue_id: note for issue_id, note in said.items() if note}
        each.silent_s = hive.droids.silent_s(each.droid)
        each.waiting = hive.droids.waiting_for(each.droid) if each.silent_s is not None else ()
    return members


def to_land(hive: Services, droid: str) -> list[str]:
    """Returns the issues that a droid has, without those that are landing or in review, if it has
    others.
    """
    left = not_to_begin(hive, droid, roster.looked_after(hive.layout, droid))
    found = (each.issue_id for each in hive.assignments.find(droid=droid))
    mine, reviewed = [each for each in found if each not in left], hive.assignments.in_review(droid)
    gone = {*reviewed, *issues_landing(hive.layout, droid)}
    return [each for each in mine if each not in gone] or mine


def not_to_begin(hive: Services, droid: str, agent: Entry | None) -> set[str]:
    """Returns the issues that an agent of a team has and leaves alone, since anybody may assign
    one: of those that it has not begun, what it was not started for and what is not ready.
    """
    if agent is None:
        return set()
    given = hive.assignments.find(droid=droid)
    held = [each.issue_id for each in given if each.issue_id != agent.issue_id]
    if not held:
        return set()
    found = hive.issues.standings_of(held)
    waits = {key for key, each in found.items() if not (each.issue.done or each.startable(droid))}
    return waits | {each for each in held if not agent.wants(each)}
