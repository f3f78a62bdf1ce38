"""Assignments: who works on which issue; one droid at a time."""

from __future__ import annotations

from contextlib import suppress

from queenbee._typed import typed
from queenbee.core.kinds import ISSUES
from queenbee.core.leases import assignment_end_ms, is_absurd, repaired_end_ms
from queenbee.core.names import checked_issue_id, nearest
from queenbee.core.records import ASSIGNMENT_STATUSES, Assignment
from queenbee.core.reviews.review import REVIEW
from queenbee.core.standing import superseded_assignments
from queenbee.core.text import mentioned, some, suggested
from queenbee.core.timestamps import format_duration, format_ms, instant_ms
from queenbee.errors import (
    InvalidInput,
    NotFound,
    NotReady,
    NotYours,
    Taken,
    Unreadable,
    Untrusted,
    Unwritable,
)
from queenbee.services.waiting.pauses import waits
from queenbee.store import waiting_line
from queenbee.store.droids import roster
from queenbee.store.droids.identity import checked_droid
from queenbee.store.git_files.tree_id import keep_tree_id, read_tree_id
from queenbee.store.git_files.tree_work import note_work, noted_work

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from queenbee.core.beads import Issue
    from queenbee.core.queue import Waiter
    from queenbee.core.records import AssignmentStatus
    from queenbee.core.reviews.review import Review
    from queenbee.services.leases.reservations import Reservations
    from queenbee.services.nudges import Nudges
    from queenbee.services.open_store import Store
    from queenbee.services.waiting.attempts import OnProgress
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.waiting.queue import PlaceInLine, Queue
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.giving_up import Event

KIND = "assignments"
_NAMED = 3
_NOTE_CHARS = 200
SUPERVISORS = ("queen", "human")
"""Who may end another droid's assignment."""


class Assignments:
    """The assignments of a hive."""

    def __init__(  # noqa: PLR0913 - by name
        self,
        store: Store,
        *,
        known: Callable[..., None],
        claimable: Callable[..., Issue | None],
        tracked: Callable[[str], Issue | None],
        queue: Callable[[], Queue],
        nudges: Callable[[], Nudges],
        reservations: Callable[[], Reservations],
    ) -> None:
        self._store = store
        self._known = known
        """Raises `NotFound` if nobody knows an issue."""
        self._claimable = claimable
        """Returns the tracker's issue, or raises if this droid may not claim it."""
        self._queue = queue
        self._nudges = nudges
        self._tracked = tracked
        """Returns the tracker's issue, or None."""
        self._reservations = reservations

    @waits
    @typed
    def claim(  # noqa: PLR0913 - by name
        self,
        issue_id: str,
        *,
        worktree: str | None = None,
        reason: str | None = None,
        anyway: bool = False,
        described: bool = False,
        timeout_s: float = 0,
        cancel: Event | None = None,
        on_progress: OnProgress | None = None,
    ) -> Steps[Assignment]:
        """Takes an issue for the actor; repeating it returns the same assignment.

        Never steals: raises `Taken` if another droid has it or has waited for it, `NotFound` if
        neither the tracker nor the git remote knows it, and with `described` also where any id is
        allowed; `IssueClosed` if it is done, and `NotReady` if it waits for others or is set aside,
        unless `anyway`. With `timeout_s`, waits for its turn; raises `Busy` when that time runs
        out, and `Cancelled` once the event `cancel` is set. An exception that `on_progress` raises
        ends the wait, too; nothing is left of it then.
        """
        actor, said = self._store.own_actor, {"worktree": worktree, "reason": reason}
        self._store.look({"issue_id": issue_id})
        self._known(issue_id, described=described)
        if timeout_s <= 0:
            return self.begun_here(self._give(issue_id, actor, said, anyway=anyway))
        from queenbee.core.queue import Want  # noqa: PLC0415 - start-up
        from queenbee.services.waiting.attempts import served  # noqa: PLC0415 - start-up

        return self.begun_here(
            (
                yield from served(
                    self._queue().place(Want(issue_id=issue_id), timeout_s),
                    lambda place: self._give(issue_id, actor, said, anyway=anyway, place=place),
                    kinds=[KIND, ISSUES],
                    files=[self._store.layout.issues_path],
                    on_progress=on_progress,
                )
            )
        )

    def begun_here(self, given: Assignment) -> Assignment:
        """Returns an assignment of the actor, after noting that it begins in this linked worktree.
        `queen start` itself notes that only once it has cleared the worktree.
        """
        layout = self._store.layout
        if layout.worktree is not None and layout.git_dir is not None:
            agent = roster.of_tree(layout)
            if agent is None or not agent.is_looked_after_here:
                self.begin_in(layout.git_dir, given)
        return given

    def begin_in(self, git_dir: str, given: Assignment) -> None:
        """Notes that the work in the worktree of a git directory is of an assignment from now on,
        unless other work is under way there.
        """
        before = self.work_in(git_dir)
        if before is None or before.status != "active":
            note_work(git_dir, given.id)

    def work_in(self, git_dir: str) -> Assignment | None:
        """Returns the assignment whose work the worktree of a git directory has, as far as that was
        noted there; None also if it has landed, or is proposed.
        """
        row = self._store.state(KIND).get(noted_work(git_dir))
        found = Assignment(row) if row is not None else None
        if found is None or found.deleted or found.landed or found.review is not None:
            return None
        return found

    def note_kept(self, whose: Assignment, sentence: str) -> None:
        """Adds to the reason of an assignment where its work is kept; to that of whoever has the
        issue, if it was moved to them.
        """
        with self._store.transaction() as tx:
            now = Assignment(self._store.state(KIND).get(whose.id) or whose.fields)
            other = self.active(now.issue_id) if now.status == "reassigned" else None
            to = other or now
            reason = "; ".join(filter(None, (to.reason, sentence)))
            tx.update(KIND, to.id, {"reason": reason})

    def moved_here(self, own: Assignment) -> Assignment:
        """Returns an assignment of the actor, after noting, as a claim does, that it is of this
        working tree, if it names the folder and another tree, or none. Raises `Taken`.
        """
        here = self._store.layout
        is_here = own.worktree is not None and own.worktree == here.worktree
        if not is_here or (own.tree_id and own.tree_id == read_tree_id(here)):
            return own
        nothing: dict[str, str | None] = {"worktree": None, "reason": None}
        return self._give(own.issue_id, own.droid, nothing, anyway=True)

    def stage_claim(self, tx: Transaction, issue_id: str) -> Assignment:
        """Takes an issue for the actor in a transaction that has checked that it is ready."""
        return self._stage(tx, issue_id, self._store.own_actor, self._here())

    @typed
    def assign(
        self,
        issue_id: str,
        droid: str,
        *,
        worktree: str | None = None,
        reason: str | None = None,
        reassign: bool = False,
        anyway: bool = False,
    ) -> Assignment:
        """Gives an issue to a droid and sends it a message.

        If another droid has it, `reassign` moves it: the old record ends as `reassigned`, with
        the leases made for it, and both droids get a message; without it, raises `Taken`.
        Otherwise raises what `claim` raises.
        """
        checked_droid(self._store.layout, droid)
        said = {"worktree": worktree, "reason": reason}
        return self._give(issue_id, droid, said, reassign=reassign, anyway=anyway)

    def relieve(self, held: Assignment, unfinished: str) -> Assignment | None:
        """Takes over an issue for the actor, if its holder may still be relieved of it; returns the
        assignment, whose reason says why, and what is `unfinished`. None if it may not.
        """
        with self._store.transaction() as tx:
            current, why = self.active(held.issue_id), self._nudges().may_take_over(held.droid)
            if current is None or current.id != held.id or why is None:
                return None
            reason = "; ".join(filter(None, (why, unfinished)))
            self._move(tx, current, self._store.actor, reason)
            said = {**self._here(), "reason": reason}
            return self._stage(tx, held.issue_id, self._store.actor, said, previous=current)

    def stage_return(
        self, tx: Transaction, *, has: Assignment | None, had: Assignment | None, why: str
    ) -> None:
        """Ends in a transaction what a droid has, and gives the issue again to who had it before.
        Either may be nobody; their leases are up to the caller. Raises `Taken` for a new one while
        others wait for it.
        """
        actor = self._store.own_actor
        if has is not None:
            status = "released" if had is None else "reassigned"
            # Nobody learns anything from a claim that its own droid takes back.
            reason = None if had is None and has.droid == actor else why
            tx.update(KIND, has.id, self._ending(has, status, tx.now_ms, by=actor, reason=reason))
        if had is not None:
            if has is None:
                self._refuse_taken(had.issue_id, had.droid, None, None)
            said = {**_where(had.worktree, had.tree_id), "reason": had.reason}
            self._stage(tx, had.issue_id, had.droid, said, previous=has)
        for each, what in ((has, "Taken back"), (had, "Given back to you")):
            if each is not None and each.droid != actor:
                _tell(tx, actor, each.droid, each.issue_id, what, _said(what, actor, why))

    @typed
    def release(self, issue_id: str, *, reason: str | None = None) -> Assignment:
        """Gives an issue back, and the leases made for it. Raises `NotFound`, `NotYours`.

        Also ends an assignment that lost to an older one: it has no effect, but stays in the
        list of conflicts until its droid releases it.
        """
        return self._end(issue_id, "released", reason)

    @typed
    def note(self, text: str) -> Assignment:
        """Tells the others what the actor does beside its newest issue, until that ends or a day
        has passed; returns the assignment. Raises `NotFound` without an issue.
        """
        said = " ".join(text.split())
        if not said or len(said) > _NOTE_CHARS:
            raise InvalidInput(
                f"a note is one line of 1 to {_NOTE_CHARS} characters",
                hint="what is longer: queen msg send @all 'TEXT'",
            )
        with self._store.transaction() as tx:
            mine = self.find(droid=self._store.own_actor)
            if not mine:
                raise NotFound(
                    "you have no issue to do it beside",
                    hint=f"queen next; or: {suggested('queen msg send', '@all', said)}",
                )
            before = mine[-1].note(tx.now_ms)
            note = said if said in before or not before else f"{before}; {said}"
            changes = {"note": note[-_NOTE_CHARS:], "noted_at": tx.now}
            return Assignment(tx.update(KIND, mine[-1].id, changes))

    def put_in_review(
        self,
        issue_id: str,
        review: Review | None,
        *,
        also: Callable[[Transaction], object] = lambda _: None,
    ) -> Assignment | None:
        """Says by which pull request the work on an issue is proposed; None: by none any more.
        What was told stays told: another process may have noted that meanwhile. `also` is called
        if something is noted as told that was not. Returns the assignment, or None if nobody has
        the issue.
        """
        with self._store.transaction() as tx:
            current = self.active(issue_id)
            if current is None:
                return None
            said = review.to_dict(before=current.review) if review is not None else None
            if said == current.fields.get(REVIEW):
                return current
            known = current.review.told if current.review is not None else ()
            if review is not None and not {*review.told} <= {*known}:
                also(tx)
            return Assignment(tx.update(KIND, current.id, {REVIEW: said}))

    def in_review(self, droid: str | None = None) -> dict[str, Review]:
        """Returns the pull requests that propose the work on issues, of a droid or of all."""
        found = {each.issue_id: each.review for each in self.find(droid=droid)}
        return {issue_id: each for issue_id, each in found.items() if each is not None}

    def complete(
        self,
        issue_id: str,
        *,
        reason: str | None = None,
        landed: str | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> Assignment:
        """Ends an assignment as done, with the leases made for it, and notifies whoever gave it.

        `landed` is the commit that has the work on the main branch. `also` may add lines to the
        same transaction. No check of a bead runs here: `queenbee.workflows.completing` does that.
        Raises `NotFound`, `NotYours`.
        """
        return self._end(issue_id, "completed", reason, landed=landed, also=also)

    def check_ending(self, issue_id: str) -> Assignment:
        """Returns the assignment of an issue, which the actor may end.

        Raises `NotFound`, or `NotYours` if another droid has it.
        """
        actor, current = self._store.own_actor, self.active(issue_id)
        if current is None:
            close = nearest(issue_id, [each.issue_id for each in self.find()])
            what = f"nobody is assigned to {issue_id}"
            if self._tracked(issue_id) is not None:
                close = None
            elif not self.find(issue_id=issue_id, status="all"):
                what = f"there is no issue {issue_id!r}"
            hint = suggested("queen issue assignments", issue=issue_id, status="all")
            if close:
                hint = f"did you mean {close}? {suggested('queen show', close)}"
            elif "/" in issue_id:
                hint = f"a file is given back with: {suggested('queen reserve release', issue_id)}"
            raise NotFound(what, hint=hint, issue_id=issue_id)
        if actor != current.droid and actor not in SUPERVISORS:
            raise NotYours(
                f"{issue_id} is assigned to {current.droid}, not to {actor}",
                hint=suggested(
                    "queen msg send", current.droid, f"about {issue_id}", issue=issue_id
                ),
                owner=current.droid,
                assignment=current.to_dict(),
            )
        return current

    def only(self) -> str | None:
        """Returns the id of the issue that the actor has, if it has exactly one."""
        mine = self.find(droid=self._store.actor)
        return mine[0].issue_id if len(mine) == 1 else None

    def own(self) -> str:
        """Returns the id of the only issue that the actor has. Raises `NotFound` and
        `InvalidInput`.
        """
        mine = [each.issue_id for each in self.find(droid=self._store.own_actor)]
        if not mine:
            raise NotFound("you have no issue", hint="say which one; to take one: queen next")
        if len(mine) > 1:
            raise InvalidInput(f"you have several issues: {', '.join(mine)}", hint="say which one")
        return mine[0]

    @typed
    def find(
        self,
        *,
        droid: str | None = None,
        issue_id: str | None = None,
        status: AssignmentStatus | Literal["all"] = "active",
    ) -> list[Assignment]:
        """Returns assignments, oldest first; `status` may be `all`."""
        if status not in (*ASSIGNMENT_STATUSES, "all"):
            raise InvalidInput(
                f"{status!r} is not an assignment status",
                hint=f"one of: {', '.join(ASSIGNMENT_STATUSES)}, all",
            )
        state = self._store.state(KIND)
        asked = {
            "issue_id": issue_id,
            "status": None if status == "all" else status,
            "droid": droid,
        }
        equals = {name: value for name, value in asked.items() if value is not None}
        rows = [Assignment(fields) for fields in state.select(equals)]
        return [
            each
            for each in self._judged(rows)
            if not each.deleted and not (status == "active" and each.superseded_by)
        ]

    def last_completed(self, limit: int) -> list[Assignment]:
        """Returns the completions that came last, the newest first."""
        rows = self._store.state(KIND).last("updated_at", {"status": "completed"}, limit)
        return self._judged([Assignment(fields) for fields in rows])

    def conflicts(self) -> list[tuple[Assignment, Assignment]]:
        """Returns (the older grant, the superseded one) for each pair that a merge brought
        together and whose superseded one is still active.
        """
        state = self._store.state(KIND)
        active = self._judged([Assignment(row) for row in state.select({"status": "active"})])
        return [
            (Assignment(state.get(each.superseded_by) or {}), each)
            for each in active
            if each.superseded_by
        ]

    def active(self, issue_id: str) -> Assignment | None:
        """Returns the assignment of an issue that is in effect, or None."""
        rows = self._rows_of(issue_id)
        lost = superseded_assignments(rows) if len(rows) > 1 else {}
        standing = (each for each in rows if each.status == "active" and each.id not in lost)
        return next(standing, None)

    def _rows_of(self, issue_id: str) -> list[Assignment]:
        return [Assignment(row) for row in self._store.state(KIND).select({"issue_id": issue_id})]

    def _judged(self, found: list[Assignment]) -> list[Assignment]:
        """Returns the assignments, with `superseded_by` set in those that lost to an older one."""
        lost: dict[str, str] = {}
        for issue_id in dict.fromkeys(each.issue_id for each in found):
            rows = self._rows_of(issue_id)
            if len(rows) > 1:
                lost.update(superseded_assignments(rows))
        return [
            Assignment({**each.fields, "superseded_by": lost[each.id]}) if each.id in lost else each
            for each in found
        ]

    def _give(
        self,
        issue_id: str,
        droid: str,
        said: Mapping[str, str | None],
        *,
        reassign: bool = False,
        anyway: bool = False,
        place: PlaceInLine | None = None,
    ) -> Assignment:
        actor, reason, worktree = self._store.actor, said["reason"], said["worktree"]
        self._look(issue_id, reason, *([f"Reassigned to {droid}", "Assigned"] if reason else []))
        self._store.check_rows()
        with self._store.transaction() as tx:
            current = self.active(issue_id)
            try:
                issue = self._claimable(issue_id, droid, anyway=anyway or current is not None)
            except (NotReady, Untrusted):
                if place is not None:
                    place.take()
                raise
            # Another droid's worktree is not known here.
            where = self._here(worktree) if droid == actor else _where(worktree)
            if current is not None and current.droid == droid:
                if all(where[each] in (None, current.get(each)) for each in where):
                    return current
                return Assignment(tx.update(KIND, current.id, where))
            if not reassign:
                self._refuse_taken(issue_id, droid, current, place)
            if current is not None:
                self._move(tx, current, droid, reason)
            given = self._stage(tx, issue_id, droid, {**said, **where}, previous=current)
            if droid != actor:
                title = f": {issue.title}" if issue is not None and issue.title else ""
                body = _said("Assigned", actor, reason)
                _tell(tx, actor, droid, issue_id, f"Assigned{title}", body)
            return given

    def _here(self, worktree: str | None = None) -> dict[str, str | None]:
        """Returns what an assignment made here says of its place: also which working tree that is,
        unless it is for another `worktree`. Call it in a transaction.
        """
        layout, found = self._store.layout, None
        if layout.worktree is not None and worktree in (None, layout.worktree):
            worktree = layout.worktree
            with suppress(Unreadable, Unwritable):
                found = keep_tree_id(layout)
        return _where(worktree, found)

    def _refuse_taken(
        self, issue_id: str, droid: str, current: Assignment | None, place: PlaceInLine | None
    ) -> None:
        """Raises `Taken` if another droid has the issue, or has waited for it longer; takes the
        place in the line then.
        """
        actor = self._store.actor
        ahead = self._ahead(issue_id, place) if droid == actor else []
        if current is None and not ahead:
            return
        blockers: list[str | Waiter] = [*ahead]
        if current is not None:
            blockers.insert(0, current.droid)
        if place is not None and (circle := self._queue().circle(blockers, own=place.name)):
            raise _endless(issue_id, droid, circle)
        if place is not None:
            place.take(ahead)
        if current is None:
            first = ahead[0]
            raise Taken(
                f"nobody has {issue_id}, but {mentioned(first.droid)} has waited for it since "
                f"{format_ms(first.since_ms)}",
                hint=f"queen next, or: {suggested('queen claim', issue_id, wait='10m')}",
                holder=first.droid,
                ahead=[each.to_dict() for each in ahead],
            )
        refusal = taken(current, self._store.now_ms(), droid if droid != actor else None)
        take_over = suggested("queen issue assign", issue_id, droid, force=True)
        refusal.hint = self._nudges().next_step(current.droid, take_over) or refusal.hint
        if ahead:
            before = some([mentioned(each.droid) for each in ahead], _NAMED)
            refusal.message += f"; in line before you: {before}"
            refusal.details["ahead"] = [each.to_dict() for each in ahead]
        raise refusal

    def _ahead(self, issue_id: str, place: PlaceInLine | None) -> list[Waiter]:
        """Returns the other droids who wait for an issue, and have done so for longer."""
        if not waiting_line.names(self._store.layout.queue_dir):
            return []
        from queenbee.core.queue import Want  # noqa: PLC0415 - start-up

        before = place.name if place is not None else None
        return self._queue().ahead_of(Want(issue_id=issue_id), before=before)

    def _stage(
        self,
        tx: Transaction,
        issue_id: str,
        droid: str,
        said: Mapping[str, str | None],
        *,
        previous: Assignment | None = None,
    ) -> Assignment:
        fields = {
            "updated_at": tx.now,
            "issue_id": issue_id,
            "droid": droid,
            "assigned_by": self._store.actor,
            "status": "active",
            **said,
            "previous_droid": previous.droid if previous else None,
            # Whoever takes it over goes on with what was proposed.
            REVIEW: previous.fields.get(REVIEW) if previous else None,
            "follows": self._ended_after(issue_id, tx.now_ms, previous) or None,
            **self._store.grant_marks,
        }
        return Assignment(tx.create(KIND, fields))

    def _move(self, tx: Transaction, old: Assignment, droid: str, reason: str | None) -> None:
        actor = self._store.actor
        changes = self._ending(old, "reassigned", tx.now_ms, by=actor, reason=reason)
        tx.update(KIND, old.id, changes)
        ended = self._reservations().stage_release(
            tx, self._leases_for(old), by=actor, reason=f"{old.issue_id} was given to {droid}"
        )
        if old.droid != actor:
            lost = f" Your leases for it ended: {', '.join(ended)}." if ended else ""
            what = f"Reassigned to {droid}"
            _tell(tx, actor, old.droid, old.issue_id, what, _said(what, actor, reason) + lost)

    def _end(
        self,
        issue_id: str,
        status: str,
        reason: str | None,
        *,
        landed: str | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> Assignment:
        # A merge is found by whoever asks the host, also by a person without a name.
        actor = self._store.author if landed is not None else self._store.actor
        checked_issue_id(issue_id)
        self._look(issue_id, reason, *([status.capitalize()] if reason else []))
        reservations = self._reservations()
        with reservations.transaction() as tx:
            lost = self._lost(issue_id, actor) if status == "released" else None
            current = lost or self._to_end(issue_id, landed)
            # The leases first: after a crash in between, the assignment can still be ended.
            reservations.stage_release(
                tx, self._leases_for(current), by=actor, reason=f"{issue_id} was {status}"
            )
            end_ms = tx.now_ms
            if status == "completed":
                end_ms = max([end_ms, *self._changed_ms(issue_id, end_ms)])
            changes = self._ending(current, status, end_ms, by=actor, reason=reason)
            if landed is not None:
                changes["landed"] = landed
            ended = Assignment(tx.update(KIND, current.id, changes))
            if status == "released":
                tx.refuse_in_vain([current.id])
            for droid in dict.fromkeys((current.droid, current.assigned_by)):
                # Notify whoever gave the work, and the holder if somebody else ended it.
                if droid != actor and (droid == current.droid or status == "completed"):
                    what = status.capitalize()
                    _tell(tx, actor, droid, issue_id, what, _said(what, actor, reason))
            if also is not None:
                also(tx)
            return ended

    def _to_end(self, issue_id: str, landed: str | None) -> Assignment:
        """Returns the assignment to end: what a host has merged has landed, whoever finds that."""
        current = self.active(issue_id)
        if landed is not None and current is not None and current.review is not None:
            return current
        return self.check_ending(issue_id)

    def _look(self, issue_id: str, reason: str | None, *whats: str) -> None:
        """Looks at what will be written, and sent, before the lock is taken."""
        bodies = [_said(what, self._store.author, reason) for what in whats]
        self._store.look({"issue_id": issue_id, "reason": reason, "body": bodies})

    def absurd(self) -> list[Assignment]:
        """Returns the assignments that say that they ended in the future, which only a wrong
        clock can have written; `stage_repair` repairs them.
        """
        present_ms, state = self._store.present_ms(), self._store.state(KIND)
        return [
            each
            for status in ASSIGNMENT_STATUSES
            if status != "active"
            for each in map(
                Assignment, state.dated_after("updated_at", present_ms, {"status": status})
            )
            if is_absurd(assignment_end_ms(each), present_ms)
        ]

    def stage_repair(self, tx: Transaction) -> None:
        """Gives the assignments that a wrong clock ended an end that is not in the future."""
        present_ms = tx.present_ms()
        for each in self.absurd():
            end_ms = repaired_end_ms(each, present_ms, tx.now_ms)
            if each.status == "completed":
                end_ms = max([tx.now_ms, *self._changed_ms(each.issue_id, tx.now_ms)])
            outranks = self._outranked(each, end_ms)
            changes = {"updated_at": format_ms(end_ms), "outranks": outranks or None}
            tx.update(KIND, each.id, changes)

    def _ended_after(self, issue_id: str, now_ms: int, moved: Assignment | None) -> list[str]:
        """Returns the ended assignments of an issue whose end is dated later than now: by another
        clock than ours, or by ours before it was set back. A new one would lose to them.
        """
        return [
            each.id
            for each in self._rows_of(issue_id)
            if each.status != "active"
            and assignment_end_ms(each) > now_ms
            and (moved is None or each.id != moved.id)
        ]

    def _changed_ms(self, issue_id: str, now_ms: int) -> list[int]:
        """Returns when the tracker's row changed, if by a clock that is ahead of ours: a row that
        is newer than the completion would count as opened again.
        """
        issue = self._tracked(issue_id)
        changed_ms = issue and instant_ms(issue.updated_at)
        # A row from further in the future is a mistake, which no completion should repeat.
        return [changed_ms] if changed_ms and not is_absurd(changed_ms, now_ms) else []

    def _lost(self, issue_id: str, actor: str) -> Assignment | None:
        """Returns a superseded assignment for the actor to end, unless it has one in effect."""
        current = self.active(issue_id)
        if current is not None and actor in (current.droid, *SUPERVISORS):
            return None
        lost = [loser for _, loser in self.conflicts() if loser.issue_id == issue_id]
        return next((each for each in lost if actor in (each.droid, *SUPERVISORS)), None)

    def _outranked(self, ended: Assignment, end_ms: int) -> list[str]:
        """Returns the assignments that lost to this one and began after it ends. They would count
        again, if its line did not name them.
        """
        rows = self._rows_of(ended.issue_id)
        lost = superseded_assignments(rows)
        later = [
            each.id for each in rows if lost.get(each.id) == ended.id and each.created_ms >= end_ms
        ]
        return list(dict.fromkeys([*ended.outranks, *later]))

    def _ending(
        self, ended: Assignment, status: str, end_ms: int, *, by: str, reason: str | None
    ) -> dict[str, object]:
        """Returns the changes that end an assignment."""
        return {
            "updated_at": format_ms(end_ms),
            "updated_by": by if by != ended.droid else None,
            "status": status,
            "reason": reason or ended.reason,
            "outranks": self._outranked(ended, end_ms) or None,
        }

    def _leases_for(self, assignment: Assignment) -> list[str]:
        """Returns the live leases made for it, and those that lost to an older one: they have no
        effect, but would stay in the list of conflicts.
        """
        reservations = self._reservations()
        lost = [loser for _, loser in reservations.conflicts() if loser.droid == assignment.droid]
        held = [*reservations.find(droid=assignment.droid), *lost]
        return [lease.id for lease in held if lease.issue_id == assignment.issue_id]


def _endless(issue_id: str, droid: str, circle: Sequence[Waiter]) -> Taken:
    named = [mentioned(each.droid) for each in circle]
    return Taken(
        f"waiting for {issue_id} would never end: {' and '.join(named)} would wait for {droid}",
        hint=f"release what {named[-1]} waits for, then try again: queen release ISSUE",
        holder=circle[0].droid,
        circle=[droid, *(each.droid for each in circle)],
    )


def taken(
    current: Assignment, now_ms: int, to: str | None = None, hint: str | None = None
) -> Taken:
    """Returns the refusal to give away an issue that a droid has, or to end it."""
    issue_id = current.issue_id
    for_s = format_duration(max(0, now_ms - current.created_ms) / 1000).split(" ")[0]
    ask = suggested("queen msg send", current.droid, "BODY", issue=issue_id)
    move = suggested("queen issue assign", issue_id, to or "", force=True)
    return Taken(
        f"{issue_id} is assigned to {current.droid} (for {for_s})",
        hint=hint or (f"to move it: {move}" if to else f"queen issue ready, or ask: {ask}"),
        holder=current.droid,
        assignment=current.to_dict(),
    )


def _where(worktree: str | None, tree_id: str | None = None) -> dict[str, str | None]:
    return {"worktree": worktree, "tree_id": tree_id}


def _tell(tx: Transaction, actor: str, droid: str, issue_id: str, subject: str, body: str) -> None:
    from queenbee.services.messages import BY_HIVE, stage  # noqa: PLC0415 - start-up

    fields = {"subject": f"[{issue_id}] {subject}", "body": body, "issue_id": issue_id}
    stage(tx, actor, [droid], {**fields, "importance": "normal", BY_HIVE: True})


def _said(what: str, actor: str, reason: str | None) -> str:
    return f"{what} by {actor}" + (f": {reason}" if reason else ".")
