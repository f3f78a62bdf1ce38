"""The hive as programs use it: the services, and each step of a droid's loop as one call."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property, partial

from queenbee._typed import typed
from queenbee.errors import Cancelled
from queenbee.git import let_ask
from queenbee.services.waiting.pauses import waits
from queenbee.store import giving_up
from queenbee.store.layout import discover, working_directory
from queenbee.workflows import complete_hive

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Self

    from queenbee.checks.executing import Progress
    from queenbee.core.reviews.review import Review
    from queenbee.git.landing.landed_issue import Landed
    from queenbee.git.landing.requests import Request
    from queenbee.git.remote.terms import Grant, Terms
    from queenbee.library.issues import TrackedIssues
    from queenbee.library.landings import LandingResult
    from queenbee.library.plans import Plans
    from queenbee.library.worktrees import Worktrees
    from queenbee.services.changes import Change
    from queenbee.services.hive import Services
    from queenbee.services.undo.undoing import Undone
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.work import Begin, Nothing, Status
    from queenbee.services.work.overview import Overview
    from queenbee.services.work.relief import Keeper
    from queenbee.services.work.waiting import OnProgress
    from queenbee.starting.ending import Ended
    from queenbee.starting.limits import Limits
    from queenbee.store.droids.roster import Entry
    from queenbee.store.giving_up import Event
    from queenbee.store.trust import Proposal
    from queenbee.workflows.completing import Completion

WAIT_S = 600.0
"""How long `wait` waits, if nothing else is said."""


class Hive(complete_hive.Hive):
    """An open hive, with all that `queen` does.

    `made` are the files that `init` has made. `tell` gets what the actor should know beside an
    answer, in words: that a landing waits for its turn, say.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.made: Sequence[str] = ()
        self.env: Mapping[str, str] = os.environ
        """What checks, hooks and set-ups get as their environment."""
        self.tell: Callable[[str], None] = lambda text: None
        let_ask(self)

    @classmethod
    def init(
        cls,
        start: str | os.PathLike[str] | None = None,
        *,
        droid: str | None = None,
        beads_dir: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        clock: Callable[[], int] | None = None,
    ) -> Self:
        """Makes a hive where there is none, and returns it, open, as `open` does.

        Repeating it changes nothing. Raises `InvalidInput` in a bare repository, and `Unwritable`.
        """
        from queenbee.store import creating  # noqa: PLC0415 - start-up

        known = os.environ if env is None else env
        cwd = os.fspath(start) if start is not None else working_directory()
        given = os.fspath(beads_dir) if beads_dir is not None else None
        places = discover(cwd, known, beads_dir=given, must_exist=False)
        creating.refuse_bare(places)
        made = creating.init(places)
        hive = cls.open(start, droid=droid, beads_dir=beads_dir, env=env, clock=clock)
        hive.made = made
        return hive

    @cached_property
    def issues(self) -> TrackedIssues:
        """The tracker's issues."""
        from queenbee.library.issues import TrackedIssues  # noqa: PLC0415 - start-up

        return TrackedIssues(self)

    @cached_property
    def plans(self) -> Plans:
        """The Markdown plans of this repository."""
        from queenbee.library.plans import Plans  # noqa: PLC0415 - start-up

        return Plans(self)

    @cached_property
    def worktrees(self) -> Worktrees:
        """The worktrees of this repository."""
        from queenbee.library.worktrees import Worktrees  # noqa: PLC0415 - start-up

        return Worktrees(self, env=self.env, tell=self._say)

    @waits
    @typed
    def next(  # noqa: PLR0913 - the options of a command
        self,
        *,
        reserve: Sequence[str] = (),
        take: bool = False,
        timeout_s: float = 0,
        cancel: Event | None = None,
        confirm: bool = False,
        local_if_offline: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Steps[Begin | Nothing]:
        """Takes the next issue for the actor, and returns all that is needed to begin; or why there
        is none. An issue that the actor has already comes first. Where everything is done, the git
        remote is looked at for what others have pushed, once.

        `reserve` are patterns to lease with it, all or nothing. With `take`, takes also its share,
        which is held for the actor. With `timeout_s`, waits until there is an issue, everything is
        done, or urgent mail is there, and raises `Busy` at the timeout, and `Cancelled` once the
        event `cancel` is set: then nothing was taken.
        With `confirm`, only if the git remote confirms it, or, with `local_if_offline`, cannot be
        reached. Raises `Held` if somebody else holds a pattern, and `Unreachable`.
        """
        from queenbee.services.work import Nothing  # noqa: PLC0415 - start-up

        terms = self._terms(confirm=confirm, local_if_offline=local_if_offline)
        asked: Any = {"wait_s": timeout_s, "on_progress": on_progress, "whole_share": take}
        taken = yield from terms.take_next(patterns=reserve, **asked)
        ends = isinstance(taken, Nothing) and taken.is_end
        if ends and self.look_again is not None and self.look_again():
            taken = yield from terms.take_next(patterns=reserve, **asked)
        self._look_at_setup(taken)
        return taken

    @waits
    @typed
    def following(
        self,
        *,
        timeout_s: float = 0,
        confirm: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Steps[Begin | Nothing | None]:
        """Takes the next issue after another one was completed, as `next` does. That one is done:
        what keeps the remote from confirming this one is told to `tell`, and the answer is None.
        """
        terms = self._terms(confirm=confirm)
        taken = yield from terms.take_following(timeout_s, on_progress)
        self._look_at_setup(taken)
        return taken

    def _look_at_setup(self, taken: object) -> None:
        from queenbee.git.worktrees.preparing import is_prepared  # noqa: PLC0415 - start-up
        from queenbee.services.work import Begin  # noqa: PLC0415 - start-up

        layout = self.layout
        if isinstance(taken, Begin) and layout.git_dir != layout.common_dir:
            taken.needs_setup = not is_prepared(layout, layout.tree)

    @typed
    def grant(
        self,
        attempt: Callable[[float], Sequence[Grant]],
        *,
        confirm: bool = False,
        local_if_offline: bool = False,
        timeout_s: float = 0,
    ) -> Sequence[Grant]:
        """Returns the assignments or leases that `attempt` gets, given the seconds that it may
        wait; with `confirm`, or the setting `sync.confirm`, only if the git remote confirms them,
        or, with `local_if_offline`, cannot be reached. Raises what `attempt` raises, `Taken` or
        `Held` if another machine was faster, and `Unreachable`.
        """
        terms = self._terms(confirm=confirm, local_if_offline=local_if_offline)
        return terms.granted(attempt, wait_s=timeout_s)

    @typed
    def complete(
        self,
        issue_id: str | None = None,
        *,
        reason: str | None = None,
        unverified: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Completion:
        """Completes an issue, by default the only one that the actor has, and ends the leases made
        for it. If it has checks, they run first, unless it is `unverified`, which needs a reason.

        What it returns says whether it is `completed`: if a check fails, nothing changes. Raises
        `NotFound`, `NotYours`, `InvalidInput`, and `Untrusted`.
        """
        from queenbee.git.landed import complete  # noqa: PLC0415 - start-up

        return complete(
            self,
            issue_id or self.assignments.own(),
            env=self.env,
            reason=reason,
            unverified=unverified,
            on_progress=on_progress,
        )

    @typed
    def land(  # noqa: PLR0913 - by name
        self,
        *issue_ids: str,
        message: str | None = None,
        check: str | None = None,
        unchecked: bool = False,
        reason: str | None = None,
        alone: bool = False,
        confirm: bool = False,
        resume: bool = False,
        accept_check: str | None = None,
        take_next: bool = False,
        timeout_s: int | None = None,
        cancel: Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        on_begin: Callable[[Request, list[str]], Callable[[], bool] | None] | None = None,
    ) -> Landed:
        """Brings the commits of this worktree to the main branch, and completes the issues, by
        default the one that the actor has. It returns when that is done; if a check fails, nothing
        was landed: `landing.landed` says so.

        `message` first commits all changes. `check` is a command that must succeed, too; without
        any, it is refused, unless it is `unchecked`. `alone` lands in a step of its own. `resume`
        goes on after a conflict was resolved, as was asked before. `accept_check` is a person's.
        With `take_next`, the caller calls `following` afterwards: the records are committed then.
        `timeout_s` is the wait for the turn, ten minutes by default. `on_begin` is called once
        everything is committed, with what is asked and the issues; it may return what says whether
        anybody still waits. Without, a conflict is not brought into the worktree, but `NotLanded`.

        Raises `NotLanded`, `InvalidInput`, `NothingLands`, `Untrusted`, and `Busy` at the timeout.
        Once the event `cancel` is set, it is taken back as by Ctrl-C, and raises `Cancelled`,
        unless it has landed by then.
        """
        from queenbee.checks.consent import Consent  # noqa: PLC0415 - start-up
        from queenbee.git.landing.landed_issue import land_issue  # noqa: PLC0415 - start-up
        from queenbee.git.landing.requests import typed_check  # noqa: PLC0415 - start-up
        from queenbee.library.landings import request  # noqa: PLC0415 - start-up

        said = {"message": message, "check": check, "unchecked": unchecked, "reason": reason}
        said |= {"alone": alone, "confirm": confirm, "accept_check": accept_check}
        asked = request(issue_ids, timeout_s, go_on=resume, take_next=take_next, **said)
        if resume:
            asked = asked.resumed(Consent.of(self), self.tell)
        if asked.check:  # Of an agent, also one that was written down for it to go on with.
            Consent.of(self).require_typed(typed_check(asked.check))
        begin = on_begin or self._after_earlier
        with giving_up.until(cancel), _as_cancelled(cancel):
            return land_issue(
                self,
                asked,
                env=self.env,
                tell=self.tell,
                on_progress=on_progress,
                leave=lambda issues: begin(asked, issues),
            )

    def _after_earlier(self, asked: Request, issues: Sequence[str]) -> None:
        from queenbee.library.landings import after_earlier  # noqa: PLC0415 - start-up

        after_earlier(self, issues, timeout_s=asked.turn_s, tell=self.tell)

    def abort_landing(self) -> None:
        """Takes back the landing of this worktree that is under way in another process, or its
        unfinished merge. Raises `InvalidInput` if it has landed already.
        """
        from queenbee.library.landings import abort  # noqa: PLC0415 - start-up

        abort(self, self.tell)

    def last_landing(self) -> LandingResult:
        """Returns what became of the last `queen land` of this worktree that went on by itself.
        Raises `InvalidInput` if there was none.
        """
        from queenbee.library.landings import last_landing  # noqa: PLC0415 - start-up

        return last_landing(self)

    @typed
    def answer_review(self, thread: str, text: str) -> Review:
        """Answers in a review thread of a pull request that proposes an issue of the actor; returns
        that. Raises `NotFound`, and `HostAway`, `NotLoggedIn`, `NoClient` or `HostRefuses`.
        """
        from queenbee.git.proposing.answering import reply  # noqa: PLC0415 - start-up

        return reply(self, thread, text)

    @typed
    def withdraw(self, issue_id: str | None = None) -> list[str]:
        """Closes the pull request that proposes an issue, by default the only one that the actor
        has; returns all issues that it proposed, which stay theirs. Raises `NotYours`,
        `InvalidInput` if there is none, `Conflict` if it is merged, and as `answer_review` does.
        """
        from queenbee.git.proposing.answering import withdraw  # noqa: PLC0415 - start-up

        return withdraw(self, self.issue_id(issue_id or self.assignments.own()))

    @typed
    def team(  # noqa: PLR0913 - by name
        self,
        *names: str,
        size: int = 0,
        agent: str = "",
        issues: Sequence[str] = (),
        plan: str | None = None,
        prefix: str | None = None,
        until_done: bool = False,
        until_proposed: bool = False,
        args: Sequence[str] | None = None,
        yolo: bool = False,
        no_trial: bool = False,
        unchecked: bool = False,
        limits: Limits | None = None,
        ask: Callable[[Sequence[Proposal]], bool] | None = None,
        finish: Event | None = None,
        cancel: Event | None = None,
        on_progress: Callable[[Sequence[Entry]], None] | None = None,
    ) -> Ended:
        """Starts a team of agents, looks after them until everything is done, and returns how it
        ended: `is_done`, and the `reasons` why something is left.

        `agent` is a client, such as `claude`, or a command of your own, which gets the briefing on
        standard input. Each agent has a worktree; what it made is landed. `issues` are the only
        ones to do, beside those of the `plan`, which is imported. `until_done` waits also for what
        others do, `until_proposed` not for merges of pull requests. `on_progress` gets what each
        agent does, several times a second. `ask` shows commands that nobody has seen to a person.
        Once the event `finish` is set, the agents finish their issue; once `cancel` is, they are
        stopped, and keep it.

        Raises `NothingLands`, `InvalidInput` without a check unless it is meant to be `unchecked`,
        `Untrusted`, `Busy` while another team runs here, and what making a worktree raises.
        """
        from queenbee.library import teams  # noqa: PLC0415 - start-up
        from queenbee.starting.crew import Wanted  # noqa: PLC0415 - start-up
        from queenbee.starting.limits import Limits  # noqa: PLC0415 - start-up
        from queenbee.starting.team import Team  # noqa: PLC0415 - start-up

        wanted = Wanted(
            names=names,
            size=size,
            agent=agent,
            only=teams.issues_of(self, issues, plan, prefix),
            until_done=until_done,
            until_proposed=until_proposed,
            args=teams.options_of(self, args),
            yolo=yolo,
            is_tried=not no_trial,
            limits=limits or Limits(),
        )
        teams.prepare(self, self.tell, unchecked=unchecked)
        team = partial(Team, self, wanted, self.env, self.tell, ask)
        return teams.look_after(team, on_progress=on_progress, finish=finish, cancel=cancel)

    @waits
    @typed
    def wait(
        self,
        *issue_ids: str,
        ready: bool = False,
        free: Sequence[str] = (),
        mail: bool = False,
        timeout_s: float = WAIT_S,
        cancel: Event | None = None,
        on_progress: OnProgress | None = None,
    ) -> Steps[dict[str, object]]:
        """Waits for the first of these: all the issues are done, one is `ready` for the actor or
        all are done, nobody else holds any of the patterns in `free`, there is unread `mail`.

        Returns it by its name: `issues`, `ready`, `free` or `mail`. Raises `Busy` at the timeout,
        `Cancelled` once the event `cancel` is set, and `NotFound`.
        """
        from queenbee.services import work  # noqa: PLC0415 - start-up

        issues = tuple(self.issue_id(each, recorded=True) for each in issue_ids)
        wanted = work.Wanted(issues=issues, ready=ready, free=free, mail=mail)
        return (yield from work.wait(self, wanted, timeout_s=timeout_s, on_progress=on_progress))

    @typed
    def changes(  # noqa: PLR0913 - by name
        self,
        since: str = "0",
        *,
        droid: str | None = None,
        issue_id: str | None = None,
        kinds: Sequence[str] = (),
        path: str | None = None,
        timeout_s: float | None = None,
        cancel: Event | None = None,
    ) -> Iterator[Change]:
        """Yields every record that became or changed behind a cursor, in order of arrival here, and
        then what arrives. It ends when nothing has arrived for `timeout_s`, 0 for at once and None
        for never, or once the event `cancel` is set.

        A change has the cursor behind it, and `cursor()` is the one behind all that is here:
        whoever keeps it sees each change exactly once. By default, it begins with the first.
        `droid`, `issue_id`, `kinds` and a `path` that reservations cover choose. Raises
        `InvalidInput`, and `NotFound` for a cursor of a memory that this clone no longer has.
        """
        from queenbee.services import changes  # noqa: PLC0415 - start-up

        wanted = changes.Wanted.of(self, droid, issue_id, kinds, path)
        return changes.Follower(self, since, wanted, timeout_s).follow(cancel)

    @typed
    def undo(self, *, dry_run: bool = False) -> Undone:
        """Takes back what the last command or call of the actor wrote here, by new lines, and
        returns what follows from that; with `dry_run`, what would. Another `undo` takes that back.

        Claims and leases are given back or taken again, and issues, unread messages and settings
        are as they were: all of it, or nothing. Raises `NotFound` if there is nothing, `Conflict`
        if others have built on it or it has landed, `Held` and `Taken` for what others have, what
        `claim` raises for an issue that would be the actor's again, and `NotYours` for an agent, of
        another's step or a setting, or of a team, where it ends an issue with checks.
        """
        from queenbee.services.undo.undoing import undo  # noqa: PLC0415 - start-up
        from queenbee.workflows.ending_unchecked import refuse_end  # noqa: PLC0415 - start-up

        with self.one_step("queen undo"):
            done = undo(self, partial(refuse_end, self), dry_run=dry_run)
        if dry_run or all(each.kind != "settings" for each in done.reversals):
            return done
        from dataclasses import replace  # noqa: PLC0415 - start-up

        from queenbee.git.contents.uncommitted import settings_to_commit  # noqa: PLC0415 - start-up

        layout = self.layout
        way = settings_to_commit(layout) or settings_to_commit(layout, layout.tree)
        return replace(done, to_commit=way)

    def cursor(self) -> str:
        """Returns the cursor behind everything that is here now."""
        from queenbee.services import changes  # noqa: PLC0415 - start-up

        return changes.cursor_now(self)

    @typed
    def log(
        self,
        limit: int = 20,
        *,
        droid: str | None = None,
        issue_id: str | None = None,
        kinds: Sequence[str] = (),
        path: str | None = None,
        since_ms: int | None = None,
    ) -> list[Change]:
        """Returns the last changes, the newest last, of those that are wanted, as `changes` does;
        with `since_ms`, those that were written since, in ms since 1970.
        """
        from queenbee.services import changes  # noqa: PLC0415 - start-up

        wanted = changes.Wanted.of(self, droid, issue_id, kinds, path, since_ms)
        return changes.latest(self, wanted, limit)

    @typed
    def status(self, *, sync: bool = False) -> Status:
        """Returns who works on what, what is ready, and what was just done. With `sync`, asks the
        code host of pull requests first.
        """
        from queenbee.services import work  # noqa: PLC0415 - start-up

        if sync:
            from queenbee.git.proposing.following import follow  # noqa: PLC0415 - start-up

            follow(self, tell=self.tell)

        from queenbee.store.git_files.worktrees import led_away  # noqa: PLC0415 - start-up

        if self.layout.common_dir is not None and any(led_away(self.layout.common_dir)):
            from queenbee.git.trees.elsewhere import tell_led_away  # noqa: PLC0415 - start-up

            tell_led_away(self.layout.common_dir, self.tell)
        return work.status(self, _keeper)

    @typed
    def show(self, issue_id: str | None = None) -> Overview:
        """Returns an issue, by default the only one that the actor has, with its holder, leases
        and thread. Raises `NotFound`.
        """
        from queenbee.services.work.overview import overview  # noqa: PLC0415 - start-up

        return overview(self, issue_id or self.assignments.own())

    def _say(self, text: str) -> None:
        self.tell(text)  # As it is now: whoever runs a call may listen to that call alone.

    def _terms(self, *, confirm: bool = False, local_if_offline: bool = False) -> Terms:
        from queenbee.git.remote.terms import Terms  # noqa: PLC0415 - start-up

        return Terms(self, confirm=confirm, local_if_offline=local_if_offline, tell=self.tell)

    def __repr__(self) -> str:
        return f"Hive({self.layout.root!r}, droid={self.actor_or_none!r})"


def _keeper(hive: Services) -> Keeper:
    from queenbee.git.unfinished import WorktreeKeeper  # noqa: PLC0415 - start-up

    return WorktreeKeeper(hive)


@contextmanager
def _as_cancelled(cancel: Event | None) -> Iterator[None]:
    """Has a landing that was taken back because of an event say so."""
    try:
        yield
    except KeyboardInterrupt:
        if cancel is None or not cancel.is_set():
            raise
        raise Cancelled("the landing was given up; nothing was landed") from None
