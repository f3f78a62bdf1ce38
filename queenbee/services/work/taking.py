"""Taking the next issue: the one on the critical path, atomically, with all that is needed
to begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.kinds import ISSUES
from queenbee.core.queue import Want
from queenbee.core.records import Assignment, Reservation
from queenbee.core.text import mentioned
from queenbee.core.timestamps import format_duration
from queenbee.errors import Busy, Taken
from queenbee.services.waiting.attempts import Watch, until
from queenbee.services.waiting.landing_record import issues_landing
from queenbee.services.work.members import (
    Member,
    live_leases,
    not_to_begin,
    silence,
    team,
    to_land,
)
from queenbee.services.work.relief import relieve
from queenbee.services.work.share import offered_share
from queenbee.services.work.shared_files import Subjects, files_of, to_take
from queenbee.services.work.waiting import LOOK_AGAIN_S
from queenbee.store import waiting_line
from queenbee.store.droids import offers, roster

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from queenbee.core.beads import Issue
    from queenbee.core.readiness import Standing
    from queenbee.core.records import Message
    from queenbee.services.hive import Services
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.waiting.queue import PlaceInLine
    from queenbee.services.work.relief import Keeper, Relief
    from queenbee.services.work.waiting import OnProgress
    from queenbee.services.writing.transaction import Transaction

_ENDS = ("done", "ending")
"""The states in which an agent has no more to do."""
_FURTHER = 24
"""So many issues are found at once: who waits for a turn at writing loses some to others."""
_ROUNDS = 8
"""So many times it looks anew if it loses all of them, the last time in its turn at writing."""
_MAIL = 5
"""The unread messages that are given whole, oldest first; the others stay unread."""


class _Answer:
    """The part of an answer that is the same whether there is an issue or not: the mail."""

    def __init__(self) -> None:
        self.mail: list[Message] = []
        """The oldest unread messages, which are read now."""
        self.unread: int = 0
        """How many more there are."""
        self.waited_for: dict[str, str] = {}
        """The issues of others for which it had to wait, with their holders."""

    @property
    def is_end(self) -> bool:
        """Whether the actor has no more to do."""
        return False

    def take_mail(self, hive: Services) -> None:
        """Reads the actor's mail, and marks it as read: the last step, so that it is not lost
        with an answer that is refused.
        """
        self.mail = hive.messages.read_unread(limit=_MAIL)
        self.unread = hive.messages.count(unread=True) if self.mail else 0


class Begin(_Answer):
    """An issue that is the actor's, and all that is needed to begin.

    `issue` is None for an id that the tracker does not know. `again` says that the actor had it
    already. `builds_on` are the finished issues that it waited for; `others` are the droids at
    work.
    """

    relief: Relief | None = None
    """From whom it was taken over, who showed no sign of life; None if it was not."""
    touched_by: Sequence[Any] = ()
    """The unmerged work of others in the files of the issue: `git.touched` adds it."""
    changing: Sequence[Any] = ()
    """The same in any files, the first few of each worktree: what others really work in."""
    unlooked: Sequence[str] = ()
    """The worktrees whose unmerged work is not known, by name."""
    own_files: Collection[str] = ()
    """Those files of the working tree that the issue names, and not half of the open ones."""
    in_conflict: Sequence[str] | None = None
    """The files that a merge has left in conflict in this worktree; None if none is under way."""
    caught_up = 0
    """How many commits of the main branch came into the worktree, after a landing."""
    needs_setup = False
    """Whether the set-up of the worktree has not run for what is there: `Hive` adds it."""
    elsewhere = ""
    """Why the worktree is not where the issue begins or goes on: `git.touched` adds it."""
    behind = 0
    """How many commits of the main branch the worktree lacks, which `git.touched` adds too."""

    def __init__(
        self, hive: Services, assignment: Assignment, leases: list[Reservation], *, again: bool
    ) -> None:
        super().__init__()
        self.assignment: Assignment = assignment
        self.again = again
        self.leases: list[Reservation] = leases
        """The live leases made for it."""
        self.issue: Issue | None = hive.issues.get_or_none(assignment.issue_id)
        needed = self.issue.dependencies if self.issue is not None else []
        issues = hive.issues.some(key for key, _ in needed)
        known = (issues[key] for key, _ in needed if key in issues)
        self.builds_on: list[Issue] = [each for each in known if each.done]
        self.others: list[Member] = team(hive, without=[assignment.droid])
        self.files: set[str] = files_of(self.issue, hive) if self.issue is not None else set()
        """The files of the working tree that the issue names, from its root."""
        self.shared_files: dict[str, list[str]] = {}
        """The files of this issue that others are in, by droid, if few issues name them."""
        in_review = assignment.review is not None
        self.mine: list[str] = (
            [assignment.issue_id] if in_review else to_land(hive, assignment.droid)
        )
        """All issues that its droid lands next."""
        self.share: list[Issue] = []
        """The issues that are held for its droid for two minutes, to be done with it."""
        self.with_it: list[Issue] = []
        """Those of them that it has claimed at once."""
        if self.issue is not None:
            self._compare(hive, self.issue, again=again)
        self.given_back: Assignment | None = _given_back(hive, assignment.issue_id)
        """The last one of it that ended without it being done, if somebody said why."""
        self.lands: bool = bool(assignment.worktree or hive.layout.worktree)
        """Whether the work is to be landed: also if somebody assigned it from the main worktree."""
        self.lacks_check: bool = self.lands and not hive.layout.settings.land_check
        """Whether nothing tests what lands, unless the landing says what."""

    def add(self, issue: Issue) -> None:
        """Notes that an issue of the share was claimed, too."""
        self.share.remove(issue)
        self.with_it.append(issue)
        self.mine.append(issue.id)

    def settle(self, given: Sequence[Assignment | Reservation]) -> None:
        """Takes over what became of the grants since, as their confirmation."""
        now = {each.id: each for each in given}
        assignment = now.get(self.assignment.id)
        if isinstance(assignment, Assignment):
            self.assignment = assignment
        leases = [now.get(each.id, each) for each in self.leases]
        self.leases = [each for each in leases if isinstance(each, Reservation)]

    def _compare(self, hive: Services, issue: Issue, *, again: bool) -> None:
        """Finds what this issue has in common with those of others, and what belongs with it."""
        theirs = hive.issues.some(key for member in self.others for key in member.titles)
        subjects = Subjects(hive, [issue, *theirs.values()])
        self.own_files = mine = subjects.files(issue) if self.files else set()
        for member in self.others if mine else ():
            held = [theirs[each] for each in member.titles if each in theirs]
            if met := {one for each in held for one in files_of(each, hive) & mine}:
                self.shared_files[member.droid] = sorted(met)
        if len(self.mine) <= 1 and self.assignment.review is None:
            self.share = offered_share(hive, issue, subjects, again=again)

    def __repr__(self) -> str:
        return f"Begin({self.assignment!r})"

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values, with `state` `yours`."""
        return {
            "state": "yours",
            "issue_id": self.assignment.issue_id,
            "again": self.again,
            "issue": self.issue.to_dict() if self.issue is not None else None,
            "assignment": self.assignment.to_dict(),
            "builds_on": [each.to_dict() for each in self.builds_on],
            "reservations": [each.to_dict() for each in self.leases],
            "others": [
                {
                    **each.to_dict(),
                    "shared_files": self.shared_files.get(each.droid, []),
                    "changes": [one.to_dict() for one in self.changing if one.droid == each.droid],
                }
                for each in self.others
            ],
            "relief": self.relief.to_dict() if self.relief is not None else None,
            "given_back": self.given_back.to_dict() if self.given_back is not None else None,
            "share": [each.id for each in self.share],
            "with_it": [each.id for each in self.with_it],
            "in_conflict": self.in_conflict,
            "caught_up": self.caught_up,
            "behind": self.behind,
            "needs_setup": self.needs_setup,
            "elsewhere": self.elsewhere,
            "touched_by": [each.to_dict() for each in self.touched_by],
            "messages": [each.to_dict() for each in self.mail],
            "unread": self.unread,
            "waited_for": self.waited_for,
        }


def _given_back(hive: Services, issue_id: str) -> Assignment | None:
    ended = reversed(hive.assignments.find(issue_id=issue_id, status="released"))
    return next((each for each in ended if each.reason), None)


class Nothing(_Answer):
    """Why there is no issue for the actor now.

    `state` is `done` (no issue is open), `under_way` (others work on what is open, or on what it
    waits for), `blocked` (what is open waits for something that nobody works on) or `ending` (the
    `queen start` that looks after the actor gives it no further issue).
    """

    def __init__(self, hive: Services, ahead: Sequence[str] = ()) -> None:
        super().__init__()
        self.ahead = ahead
        """The droids that have waited longer, to whom ready issues are left."""
        found, counts = hive.issues.open_and_counts()
        self.counts: dict[str, int] = counts
        self.open: list[Standing] = list(found.values())
        """The issues that are not done."""
        blocked = "under_way" if self.counts["active"] else "blocked"
        self.state = blocked if self.open else "done"
        team = roster.looked_after(hive.layout, hive.actor_or_none)
        self.holders: dict[str, str] = {
            each.issue.id: each.holder for each in self.open if each.holder
        }
        """The issues that others have, with their holders."""
        self.takable: list[Standing] = [
            each for each in self.open if team is None or team.may_take(each.issue)
        ]
        """Those of them that the actor may take, now or later."""
        if self.open and not self.takable:
            self.state = "ending"
        silent = {each: hive.droids.silent_s(each) for each in sorted(set(self.holders.values()))}
        self.silent: dict[str, int] = {
            droid: for_s for droid, for_s in silent.items() if for_s is not None
        }
        """The droids that have an issue and show no sign of life, and for how many seconds."""
        self.uncommitted_records: str | None = None
        """The folder of the records if all is done and git has not all of them committed:
        `git.landed` adds it."""
        self.unlanded: str | None = None
        """What has not landed of this worktree, in words, with the next command, if the actor has
        no more to do: `git.landed` adds it."""
        self.proposed: list[str] = []
        """And the branches by which it is proposed, which are not seen to be merged."""

    @property
    def is_end(self) -> bool:
        """Whether there were issues, and the actor has no more to do."""
        return self.state in _ENDS and self.counts["total"] > 0

    def silence(self, droid: str) -> str:
        """Returns in words for how long a droid has been silent."""
        return silence(self.silent[droid], 0)

    def __repr__(self) -> str:
        return f"Nothing(state={self.state!r}, is_end={self.is_end})"

    def to_dict(self) -> dict[str, object]:
        """Returns the state with the open issues."""
        return {
            "state": self.state,
            "counts": self.counts,
            "ahead": list(self.ahead),
            "silent": self.silent,
            "uncommitted_records": self.uncommitted_records,
            "unlanded": self.unlanded,
            "proposed": self.proposed,
            "open": [
                {
                    "issue_id": each.issue.id,
                    "title": each.issue.title,
                    "state": each.state,
                    "holder": each.holder,
                    "waits_for": each.waits_for,
                    "because": each.because,
                }
                for each in self.open
            ],
            "messages": [each.to_dict() for each in self.mail],
            "unread": self.unread,
            "waited_for": self.waited_for,
        }


def take_next(
    hive: Services,
    *,
    patterns: Sequence[str] = (),
    wait_s: float = 0,
    on_progress: OnProgress | None = None,
    keeper: Callable[[Services], Keeper] | None = None,
) -> Steps[Begin | Nothing]:
    """Takes the next issue for the actor, with leases on the patterns, all or nothing.

    An issue that the actor has already comes first. Whoever waits longest is served first. With
    `wait_s`, waits until there is an issue, everything is done, or urgent mail is there. Raises
    `Held` if somebody else holds one of the patterns, and `Busy` when that time runs out. While it
    waits, `on_progress` is called about once a second; an exception that it raises ends the wait.
    Mail is left to `take_mail`. With a `keeper`, takes over from droids that show no sign of life.
    """
    with hive.queue.place(Want(any_issue=True), wait_s) as place:
        return (yield from _wait_and_take(hive, patterns, place, wait_s, on_progress, keeper))


def _wait_and_take(
    hive: Services,
    patterns: Sequence[str],
    place: PlaceInLine,
    wait_s: float,
    on_progress: OnProgress | None,
    keeper: Callable[[Services], Keeper] | None,
) -> Steps[Begin | Nothing]:
    answers = []

    def look() -> bool:
        answers.append(_take(hive, patterns, place))
        if keeper is not None and isinstance(answers[-1], Nothing):
            relief = relieve(hive, place, answers[-1].takable, keeper)
            if relief is not None:
                answers.append(_take(hive, patterns, place))
                if isinstance(answers[-1], Begin):
                    answers[-1].relief, answers[-1].again = relief, False
        if isinstance(answers[-1], Begin) or answers[-1].state in _ENDS:
            return True
        if wait_s > 0:
            place.take()
        unread = hive.messages.inbox(unread=True)
        return any(each.importance == "urgent" for each in unread)

    kinds = ("assignments", "messages", ISSUES)
    watch = Watch(hive, kinds, [hive.layout.issues_path], on_progress)
    found = yield from until(watch, look, wait_s, LOOK_AGAIN_S)
    if not found and wait_s > 0:
        raise _timed_out(answers[-1], wait_s)
    if isinstance(answers[0], Nothing) and wait_s > 0:
        answers[-1].waited_for = _blocking(answers[-1], answers[0].holders)
    return answers[-1]


def _blocking(last: Begin | Nothing, holders: dict[str, str]) -> dict[str, str]:
    """Returns those of the issues that others had for which an answer had to wait."""
    if isinstance(last, Nothing) or last.issue is None:
        return holders
    needed = {last.issue.id, *(key for key, _ in last.issue.dependencies)}
    return {key: droid for key, droid in holders.items() if key in needed}


def _timed_out(last: Begin | Nothing, wait_s: float) -> Busy:
    silent = last.silent if isinstance(last, Nothing) else {}
    who = "; ".join(
        f"{mentioned(droid)} has one, {silence(for_s, 0)}" for droid, for_s in silent.items()
    )
    return Busy(
        f"timed out after {format_duration(wait_s)}: no issue is ready for you"
        f"{f' ({who})' if who else ''}",
        hint="queen status",
        **last.to_dict(),
    )


def _take(hive: Services, patterns: Sequence[str], place: PlaceInLine) -> Begin | Nothing:
    hive.check_rows()
    answers = (
        _taken(hive, patterns, place, is_last=each == _ROUNDS) for each in range(1, _ROUNDS + 1)
    )
    return next((each for each in answers if each is not None), None) or Nothing(hive)


def _taken(
    hive: Services, patterns: Sequence[str], place: PlaceInLine, *, is_last: bool
) -> Begin | Nothing | None:
    """Takes an issue; returns None if others have taken all that were found meanwhile. The last
    time, it looks in its turn at writing, and finds what there is.
    """
    assignment, line = _mine(hive), _line(hive)
    candidates: list[Issue] = []
    # Neither needs the lock: nothing is written, but once in a worktree that was made anew.
    if assignment is not None and not patterns:
        return _begin(hive, hive.assignments.moved_here(assignment), again=True)
    if assignment is None:
        candidates, ahead = _first(hive, place)
        if not candidates:
            return Nothing(hive, ahead)
    try:
        with hive.transaction() as tx:
            assignment = _mine(hive)
            again = assignment is not None
            if assignment is None:
                if is_last or line != _line(hive):
                    candidates = _first(hive, place)[0] if is_last else []
                assignment = _claimed(hive, tx, candidates)
            if assignment is not None and patterns:
                hive.reservations.stage_reserve(tx, patterns, issue_id=assignment.issue_id)
    except Taken:
        return None  # The program that owns the tracker has given it to somebody else.
    return _begin(hive, assignment, again=again) if assignment is not None else None


def _line(hive: Services) -> list[str]:
    return waiting_line.names(hive.layout.queue_dir)


def _claimed(hive: Services, tx: Transaction, candidates: Sequence[Issue]) -> Assignment | None:
    """Claims the first of these issues that nobody has taken or changed since, if there is one."""
    active = hive.state("assignments").project(("issue_id",), {"status": "active"})
    gone = {issue_id for (issue_id,) in active}  # Where each stands takes ten times as long.
    for each in candidates:
        now = hive.issues.standing(each.id) if each.id not in gone else None
        if now is not None and now.takeable(hive.actor):
            return hive.assignments.stage_claim(tx, each.id)
    return None


def _begin(hive: Services, assignment: Assignment, *, again: bool) -> Begin:
    issue_id = assignment.issue_id
    held = live_leases(hive, droid=assignment.droid)
    return Begin(hive, assignment, [one for one in held if one.issue_id == issue_id], again=again)


def _first(hive: Services, place: PlaceInLine) -> tuple[list[Issue], list[str]]:
    """Returns the first issues that are left when each of those who wait longer has taken one that
    it may take, and the names of these; further ones, since others may take the first meanwhile.
    """
    line = [each for each in hive.queue.everything() if each.droid != hive.actor]
    wanted = {each.want.issue_id for each in line if each.want.issue_id is not None}
    wanted |= {*issues_landing(hive.layout, hive.actor)}
    before = hive.queue.ahead_of(place.want, before=place.name) if line else []
    candidates = _candidates(hive, len(before) + _FURTHER, without=wanted)
    for one in before:
        team = roster.looked_after(hive.layout, one.droid)
        may = (each for each in candidates if team is None or team.may_take(each))
        if (taken := next(may, None)) is not None:
            candidates.remove(taken)
    names = {each.name for each in before}
    first = [each for each in line if each.name in names or each.want.issue_id is not None]
    ahead = list(dict.fromkeys(each.droid for each in first))
    return candidates, ahead


def _mine(hive: Services) -> Assignment | None:
    """Returns the oldest active assignment of the actor whose issue is neither done nor landing,
    nor in review, nor to be left alone: but first one whose review asks for something.
    """
    droid = hive.own_actor
    gone = not_to_begin(hive, droid, roster.looked_after(hive.layout, droid))
    gone |= {*issues_landing(hive.layout, droid)}
    found = hive.assignments.find(droid=droid)
    asking = [each for each in found if each.review is not None and each.review.asks_droid]
    begun = [each for each in found if each.review is None]
    active = [each for each in (*asking, *begun) if each.issue_id not in gone]
    issues = hive.issues.some(each.issue_id for each in active)
    for each in active:
        if each.issue_id not in issues or not issues[each.issue_id].done:
            return each
    return None


def _candidates(hive: Services, most: int, *, without: Collection[str]) -> list[Issue]:
    """Returns the first issues that the actor could start; what is held for others comes last, and
    of that the last of each offer first.
    """
    team = roster.looked_after(hive.layout, hive.actor)
    held = offers.held(hive.layout, hive.now_ms())
    found: list[Issue] = []
    of_others: list[Issue] = []
    for each in to_take(hive, hive.actor):
        if each.id not in without and (team is None or team.may_take(each)):
            (found if held.get(each.id, hive.actor) == hive.actor else of_others).append(each)
        if len(found) == most:
            break
    place = list(held).index
    of_others.sort(key=lambda each: -place(each.id))
    return [*found, *of_others][:most]
