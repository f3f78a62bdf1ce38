"""Landing: bringing a worktree's branch to the branch of the main worktree, one after the other.

The steps, in an order that must not change:

1. The turn comes. Nobody else moves the target through `queen land` from here on.
2. What a landing that was killed left half done is taken back.
3. Branch and target are brought together in the landing checkout. A conflict is found there, and
   left to the droid in its own worktree; the turn goes on.
4. The checks run there, on exactly the commit that is to land, which may have others' branches too.
5. The target is moved there by fast-forward, if it is still where it was: this alone decides what
   landed, so a process that lost its turn can land nothing stale.
6. The worktree that landed follows, if it is still where it was.

A step that is written down says what is under way, before it begins. ADR 0025.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from queenbee.checks.processes import Interrupts
from queenbee.core.text import named, quotation, suggested
from queenbee.core.timestamps import format_ms
from queenbee.errors import InvalidInput, QueenError, Untrusted
from queenbee.git.contents.hive_files import is_record
from queenbee.git.index_lock import complete_left
from queenbee.git.landing.arrivals import Incoming, sentences
from queenbee.git.landing.checkout import Checkout, checkout_path
from queenbee.git.landing.commands import Commands, differing, is_commit
from queenbee.git.landing.committing import refuse_kept
from queenbee.git.landing.conflicts import left_places, tell_joined
from queenbee.git.landing.joining import Joining
from queenbee.git.landing.leading import Leading
from queenbee.git.landing.moving import healing
from queenbee.git.landing.moving.following import Following
from queenbee.git.landing.place import Place
from queenbee.git.landing.refusals import SHOWN, NotLanded, Unresolved
from queenbee.git.landing.requests import forget
from queenbee.git.landing.standing_back import StandingBack
from queenbee.git.landing.together.promised import Promised
from queenbee.git.landing.work import MERGE, PROPOSED, REBASE, Landing, Offer, Rules, Work
from queenbee.git.proposing.standing import BEHIND
from queenbee.git.upstream import Upstream
from queenbee.services.waiting.landing_steps import Step, sweep
from queenbee.services.waiting.landing_turn import LandingTurn
from queenbee.store import safe_open
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.arrivals import Arrival
    from queenbee.services.open_store import Store


def land(  # noqa: PLR0913 - by name
    store: Store,
    *,
    check: str | None,
    wait_s: float,
    rules: Rules | None = None,
    work: Work | None = None,
    tell: Callable[[str], None] = lambda _: None,
    go_on: bool = False,
) -> Landing:
    """Lands the branch of this worktree on the branch of the main worktree, when its turn comes.

    `check` is a shell command that runs at the top of this worktree after the merge. Without
    `rules`, those that are set count, and their check runs too. `go_on` first commits the merge
    whose conflicts were resolved.

    Raises `InvalidInput` outside a linked worktree, `NotLanded`, `Untrusted`, and `Busy` if the
    turn does not come within `wait_s`.
    """
    rules = replace(rules, check=check or rules.check) if rules else Rules.of(store, check)
    with Interrupts() as interrupts, _One(store, interrupts, rules, work or Work(), tell) as one:
        done = one.done_before()
        if done is not None:
            return done
        turn = LandingTurn(store, one.place.target, wait_s, tell, one.commands.stop_if_asked)
        turn.is_next = one.comes_back = one.step.name == "conflict"
        turn.lets_go_first = one.lets_go_first
        one.begin(go_on=go_on)
        turn.entered = one.step.end
        turn.checkout = checkout_path(one.place)
        turn.is_answered = one.is_over
        try:
            with turn:
                if turn.is_first and one.promised.kept() is None:
                    done = one.land(turn)
        except Unresolved as error:
            one.meet_conflict(error.files)
        except (QueenError, OSError, KeyboardInterrupt) as error:  # Others may be landing it.
            if one.promised.kept_at_last() is None:
                if isinstance(error, KeyboardInterrupt):
                    head, branch = one.place.head()[:10], one.place.branch
                    tell(f"nothing was landed; {head} stays on {branch}: queen land")
                raise
        if done is not None:
            return one.followed(done) if done.commit is not None else done
        kept = one.promised.kept_at_last()
        if kept is None:
            one.meet_conflict(one.in_conflict)
        return one.answered(kept)


def abort(store: Store, *, tell: Callable[[str], None] = lambda _: None) -> None:
    """Takes back the unfinished merge or rebase of this worktree.

    Raises `InvalidInput` if there is none.
    """
    with Interrupts() as interrupts, _One(store, interrupts, Rules.of(store), Work(), tell) as one:
        was_under_way = bool(one.step.name)
        one.heal()
        if one.step.name == "conflict":
            one.joining.abort()
            one.step.end()
        elif one.place.is_merging or one.place.is_rebasing:
            what = "rebase" if one.place.is_rebasing else "merge"
            raise InvalidInput(
                f"the {what} in this worktree is not of a landing", hint=f"git {what} --abort"
            )
        elif not was_under_way:
            raise InvalidInput("there is no unfinished landing here", hint="queen land")
        forget(store.layout)


class _One:
    """One landing."""

    comes_back = False
    """Whether its conflict was resolved: then it stands back for nobody."""
    in_conflict: Sequence[str] = ()
    """The files of a conflict that was met while waiting."""

    def __init__(
        self,
        store: Store,
        interrupts: Interrupts,
        rules: Rules,
        work: Work,
        tell: Callable[[str], None],
    ) -> None:
        self._store = store
        self._tell = tell
        self.rules = rules
        self.work = work
        self.place = place = Place.of(store, tell)
        self.promised = Promised(place)
        about = {"git_dir": place.git_dir, "droid": store.actor, "target": place.target}
        about["since"] = format_ms(store.now_ms())
        self.step = Step.of(place.folder, place.tree, **about)
        tell_waiting = tell if rules.signs else None
        self.commands = place.commands = Commands(interrupts, self.step, store.actor, tell_waiting)
        self.joining = Joining(place, rules, work.subject())
        self.incoming: Incoming | None = None
        self._behind = os.path.join(self.place.git_dir, BEHIND)
        """Says what landed of this worktree that it does not have yet."""
        self._head = ""
        """The commit that is to land."""
        self._tip = ""
        """What the target was before this landing."""
        self._is_amended = False
        """Whether a hook made the commit that landed again, after the check."""
        self._looked_at = ""
        """The commit of the target that was last looked at while waiting."""

    def __enter__(self) -> _One:
        return self

    def __exit__(self, *_: object) -> None:
        self.place.objects.close()
        if not self.promised.all():
            self.promised.end()
        self.step.close()

    def heal(self) -> None:
        """Takes back what a landing that was killed or failed left half done in this worktree."""
        complete_left(self.place.common_dir)
        healing.heal(self.commands, self.step, self.place.own, self._tell)

    def done_before(self) -> Landing | None:
        """Finishes what a landing of this worktree left to do after the target had moved; returns
        it if this worktree has nothing new since.
        """
        if self.promised.all():
            self.place.refresh()
        kept = self.promised.kept()
        if kept is None:
            self.promised.end()
            return None
        self.heal()  # A kill may have left this worktree on its way to what landed.
        done = self._settle(kept)
        if self.place.has(self.place.head()) and not self.place.is_merging:
            return done
        self._tell(f"what was landed before as {str(done.commit)[:10]} is completed now")
        return None

    def answered(self, kept: Fields) -> Landing:
        """Finishes what another landing did with this worktree's branch."""
        if kept.get("checked"):
            said = f": {quotation(str(kept['check_said']))}" if kept.get("check_said") else ""
            self._tell(f"while you waited, the check passed in {kept.get('check_s')} s{said}")
        done = self._settle(kept)
        tell_joined(self._tell, done.joined)
        return done

    @cached_property
    def _standing(self) -> StandingBack:
        return StandingBack(self.place)

    def lets_go_first(self) -> str | None:
        """Returns the droid that resolves a conflict on the lines that this branch changes."""
        if self.comes_back:
            return None
        return self._standing.for_whom(self._head, self.place.tree, self.joining.joins)

    def is_over(self) -> bool:
        """Returns whether it need not wait any more: somebody has landed it, or it conflicts with
        what has landed, so that its droid can begin with that at once.
        """
        tip = self.place.tip()
        if tip == self._looked_at:
            return False
        kept = self.promised.kept() is not None
        self._looked_at = tip
        if not kept and self.rules.strategy != REBASE:
            self.in_conflict = self.joining.conflicts_with(tip)
        return kept or bool(self.in_conflict)

    def meet_conflict(self, files: Sequence[str]) -> NoReturn:
        """Brings the target into the branch, in its worktree and without the turn. Raises
        `Unresolved`, or `NotLanded` if there is no conflict any more, or its droid went on there.
        """
        place = self.place
        if not self.work.waits():
            raise place.went_on(files)
        place.refuse_unfinished()
        place.look()
        place.refuse_hidden()  # A merge would overwrite them.
        self.rules = self.rules.judged(place.objects, place.tip(), place.head())
        self.joining.judge_by(self.rules)
        try:
            self.joining.bring()
        except Unresolved as error:
            self._tell_conflict(error)
            raise
        finally:
            with suppress(QueenError):
                self.heal()
        what = f"{place.target} was merged here meanwhile; nothing was landed"
        raise NotLanded(what, hint="queen land")

    def _tell_conflict(self, error: Unresolved) -> None:
        """Shows the conflict that is left, and what needed nobody."""
        place = self.place
        tell_joined(self._tell, self.joining.joined)
        with suppress(QueenError):  # The conflict is what must be said.
            self._tell_whom_to_ask(error.files)
        theirs, ours = f"HEAD..{place.other_side}", f"{place.other_side}..HEAD"
        if place.is_rebasing:
            theirs, ours = ours, theirs
        sides = {place.target: theirs, place.branch: ours}
        for said in left_places(place.tree, error.files, sides):
            self._tell(said)

    def _settle(self, kept: Fields) -> Landing:
        """Brings this worktree to the commit that landed, and does what follows."""
        self._follow(str(kept.get("commit")), str(kept.get("head") or ""))
        self._note(kept)
        record = kept.get("record")
        self.work.record = record if isinstance(record, dict) else None
        return self.finish(Landing.promised(self.place.target, kept), kept.get("issue_id"))

    def followed(self, done: Landing) -> Landing:
        """Does what follows a landing that this process has led."""
        self._follow(str(done.commit), self._head)
        return self.finish(done, self.work.issue_id)

    def _follow(self, commit: str, head: str) -> None:
        """Brings this worktree to the commit that landed; where that fails, the next landing tries
        again, before it looks at what is there.
        """
        keep(self._behind, {"commit": commit, "head": head})
        try:
            self._catch_up()
        except (QueenError, KeyboardInterrupt) as error:  # Whoever has it end: the work landed.
            self._tell(f"this worktree stays as it was: {error}")

    def _catch_up(self) -> None:
        """Brings this worktree to what landed of it; with a merge, what it has committed since
        stays for the next one. Raises `NotLanded`, and `Unresolved`, and leaves it as it was.
        """
        commit, head = self._landed()
        if commit:
            replayed = None if self.rules.strategy == MERGE else self.joining.replayed
            try:
                if not Following(self.place, replayed).to(commit, head):
                    return
            except QueenError:
                with suppress(QueenError):  # Else the next landing heals it.
                    self.heal()
                raise
            self._tell_joined()
            self.step.end()
        with suppress(OSError, QueenError):
            safe_open.unlink(self._behind)

    def _tell_joined(self) -> None:
        tell_joined(self._tell, self.joining.joined)
        self.joining.joined.clear()

    def _landed(self) -> tuple[str, str]:
        """Returns what landed of this worktree that it may not have yet, and the commit that it had
        then; empty if nothing.
        """
        said = recall(self._behind)
        known = said if isinstance(said, dict) else {}
        commit, head = str(known.get("commit")), str(known.get("head"))
        return (commit, head) if is_commit(commit) and is_commit(head) else ("", "")

    def offer(self) -> dict[str, object] | None:
        """Returns what somebody else needs to land this branch; None if it has to land alone."""
        place, strategy = self.place, self.rules.strategy
        if self.rules.batch < 2 or self.work.is_alone or strategy in (REBASE, PROPOSED):
            return None
        offered = Offer(
            *("", self._store.actor, place.tree, place.branch, self._head),
            *(self.rules.check, strategy, self.work.subject(), self.work.issue_id),
        )
        return offered.to_dict()

    def begin(self, *, go_on: bool) -> None:
        """Makes this worktree ready to wait for its turn. Raises `NotLanded`."""
        if not go_on or not (self.place.is_merging or self.place.is_rebasing):
            self.heal()
        if go_on:
            self.joining.finish()
        self._begin_at_landed()
        self.incoming = Incoming(self.place)  # The conflict has told what came in before.
        self.place.refuse_unfinished()
        self.place.look()
        self.place.refuse_hidden()
        self.work.ready()
        if self.step.name != "conflict":  # Others stand back for that until this is in the line.
            self.step.end()
        self._head = self.place.head()
        if not self._store.allow_secrets:
            refuse_kept(self.place.tree, self.place.tip(), self._head)
        self.promised.ask(self._head, self.offer())

    def _begin_at_landed(self) -> None:
        """Puts what is to land upon what has landed of this worktree: what both have would come
        twice. Raises `NotLanded`, and `Unresolved`.
        """
        try:
            self._catch_up()
        except Unresolved as error:
            if not self.work.waits():
                raise self.place.went_on(error.files) from None
            self._leave_conflict()
        except NotLanded as error:
            if self.rules.strategy != MERGE:
                raise
            self._tell(f"this worktree stays as it was: {error.message}")

    def _leave_conflict(self) -> None:
        """Puts what is to land upon what has landed in this worktree, whose droid waits, and leaves
        the conflict there. Raises `Unresolved`, and `NotLanded`.
        """
        self.place.refuse_unfinished()
        self.joining.joined.clear()
        try:
            self.joining.put_upon(*self._landed())
        except Unresolved as error:
            self._tell_conflict(error)
            raise
        self._tell_joined()
        self.step.end()

    def finish(self, done: Landing, issue_id: object = None) -> Landing:
        """Does what follows a landing: others need not wait for that."""
        try:
            self.work.landed(done, str(issue_id) if issue_id is not None else None)
        except BaseException:
            what = "pushed" if done.is_proposed else f"landed on {self.place.target}"
            self._tell(f"{what}; run queen land again for what failed now:")
            raise
        self.promised.end()
        if self._store.layout.settings.land_push and self.place.upstream is None:
            self._push(str(done.commit))
        mine = [each for each in done.changed if not self.joining.joins.keeps_both(each)]
        came_in = self._came_in(self._tip, mine) if self._tip else []
        return replace(done, untracked=self.place.untracked, came_in=came_in)

    def _push(self, commit: str) -> None:
        """Pushes what has landed here, and the records on top of it; nothing that a hook has made.
        The work has landed, whatever the remote says.
        """
        target = self.place.target
        if self._is_amended:
            what = f"a hook made {commit[:10]} of what was checked"
            self._tell(f"landed, and not pushed: {what}; try: git push")
            return
        # A commit, not the name: somebody may commit there before the push.
        tip = self.place.tip()
        later = differing(self.place.tree, commit, tip)
        pushed = tip if all(map(is_record, later)) else commit
        upstream = Upstream.of_branch(self._store.layout, target)
        if upstream is None:
            way = suggested("git push -u origin", target)
            self._tell(f"not pushed: {named([target])} follows no branch of a remote; try: {way}")
            return
        try:
            done = upstream.push(self.commands, self.place.tree, pushed)
            said = "" if done.status == 0 else " ".join(done.said.split()) or f"exit {done.status}"
        except Untrusted as error:
            said = error.message
        if said:
            self._tell(f"landed, and not pushed to {named([upstream.name])}: {said}")

    def land(self, turn: LandingTurn) -> Landing | None:
        """Lands in a turn that has come. Returns and raises as `Leading.land` does."""
        self.commands.token = turn.token
        sweep(turn.folder)
        if self.place.main_tree:
            with Step.of(turn.folder, self.place.main_tree) as step:
                healing.heal(self.commands, step, self.place.main, self._tell)
        with Checkout.opened(self.place) as checkout:
            leading = Leading(turn, checkout, self._head, self.rules, self.work, self.promised)
            done, mine = leading.land(is_alone=self.offer() is None)
        self._note(mine)
        return done

    def _note(self, kept: Fields) -> None:
        self._tip = str(kept.get("before") or "")
        self._is_amended = bool(kept.get("is_amended"))

    def _came_in(self, tip: str, changed: Sequence[str]) -> list[Arrival]:
        if self.incoming is None:
            return []
        try:
            return self.incoming.arrivals(tip, self.work.whose, changed)
        except QueenError as error:  # The work has landed: that must be said, whatever fails.
            self._tell(f"could not list what landed meanwhile: {error.message}")
            return []

    def _tell_whom_to_ask(self, files: Sequence[str]) -> None:
        """Names the landings that changed the files in which the merge is left in conflict."""
        arrived = [each for each in self._came_in(self.place.tip(), files) if each.files]
        for said in sentences(arrived[:SHOWN]):
            self._tell(f"came in: {said}")
