"""Landing: bringing a worktree's branch to the branch of the main worktree, one after the other.

The steps, in an order that must not change:

1. The turn comes. Nobody else moves the target through `queen land` from here on.
2. What a landing that was killed left half done is taken back.
3. The target is brought into the branch. A conflict stays there, and the turn goes on.
4. The checks run on exactly the commit that is to land, which may have others' branches too.
5. The target is moved there by fast-forward, if it is still where it was: this alone decides what
   landed, so a process that lost its turn can land nothing stale.

A step that is written down says what is under way, before it begins. ADR 0025.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from queenbee.checks.consent import Consent, SeenCommand, typed_command
from queenbee.checks.processes import Interrupts
from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, quotation, shell_word, some
from queenbee.core.timestamps import format_ms
from queenbee.errors import Busy, InvalidInput, QueenError
from queenbee.git.index_lock import remove_left_lock
from queenbee.git.landing import healing
from queenbee.git.landing.arrivals import Incoming, began, undone
from queenbee.git.landing.commands import Commands
from queenbee.git.landing.conflicts import Joins, left_places, with_markers
from queenbee.git.landing.joining import Joining
from queenbee.git.landing.judged.check_files import CheckGuarded, refuse_unaccepted
from queenbee.git.landing.place import Place
from queenbee.git.landing.promised import Promised
from queenbee.git.landing.records import with_records
from queenbee.git.landing.refusals import SHOWN, NotLanded, Unresolved
from queenbee.git.landing.requests import STOPPED, forget
from queenbee.git.landing.together.trial import Trial
from queenbee.git.landing.work import MERGE, REBASE, Landing, Offer, Rules, Work
from queenbee.services.waiting.landing_steps import Step, sweep
from queenbee.services.waiting.landing_turn import LandingTurn, folder_of
from queenbee.store.trust import of_setting
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.arrivals import Arrival
    from queenbee.services.open_store import Store

_TRIES = 5
_MOST_TOLD = 200
"""So many files that a branch puts back are named at once, in a command to paste."""


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
        turn.is_next = one.step.name == "conflict"
        one.begin(go_on=go_on)
        turn.offer = one.offer()
        turn.is_answered = one.is_over
        try:
            with turn:
                if turn.is_first and one.promised.kept() is None:
                    done = one.land(turn)
        except (Busy, KeyboardInterrupt):
            if one.promised.kept_at_last() is None:
                raise
        if done is not None:
            return one.finish(done, one.work.issue_id) if done.landed else done
        kept = one.promised.kept_at_last()
        if kept is None:
            one.meet_conflict()
        return one.answered(kept)


def seen_check(store: Store, rules: Rules) -> SeenCommand | None:
    """Returns the check of these rules; what the settings say of it is asked for. Raises
    `Untrusted`.
    """
    consent = Consent.of(store)
    consent.require([each for said in rules.proposed for each in of_setting("land.check", said)])
    return typed_command(rules.check) if rules.check else None


def abort(store: Store, *, tell: Callable[[str], None] = lambda _: None) -> None:
    """Takes back the unfinished merge or rebase of this worktree.

    Raises `InvalidInput` if there is none.
    """
    with Interrupts() as interrupts, _One(store, interrupts, Rules.of(store), Work(), tell) as one:
        was_under_way = bool(one.step.name)
        one.heal()
        if one.step.name == "conflict":
            if healing.is_touched(one.step, one.place.own):
                healing.keep_touched(one.place.own, tell)
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
        self.place = Place(store)
        self._folder = folder_of(store, self.place.target)
        self.promised = Promised(self.place, self._folder)
        self.step = Step.of(
            self._folder,
            self.place.tree,
            git_dir=self.place.git_dir,
            droid=store.actor,
            target=self.place.target,
            since=format_ms(store.now_ms()),
        )
        self.commands = Commands(interrupts, self.step, self.place.common_dir)
        self.place.commands = self.commands
        joins = Joins(rules.union, rules.join, bool(rules.check))
        self.joining = Joining(self.place, rules, joins, work.subject())
        self._trial = Trial(store.layout, self.place, self.joining, rules, work, tell)
        self._told = 0
        """How many of the joined places were named to the user."""
        self.incoming: Incoming | None = None
        self._tip = ""
        """What the target was before this landing."""
        self._carried: Sequence[str] = ()
        """The records in the commit that lands that were not in the one that was checked."""
        self._check_files: list[str] = []
        """What the branch changes of the check."""
        self._looked_at = ""
        """The commit of the target that was last looked at while waiting."""

    def __enter__(self) -> _One:
        return self

    def __exit__(self, *_: object) -> None:
        self.place.objects.close()
        self.step.close()

    def heal(self) -> None:
        """Takes back what a landing that was killed or failed left half done in this worktree."""
        remove_left_lock(self.place.common_dir)
        healing.heal(self.commands, self.step, self.place.own, self._tell)

    def done_before(self) -> Landing | None:
        """Finishes what a landing of this worktree left to do after the target had moved; returns
        it if this worktree has nothing new since.
        """
        kept = self.promised.kept()
        if kept is None:
            self.promised.end()
            return None
        done = self._settle(kept)
        if self.place.has(self.place.head()) and not self.place.is_merging:
            return done
        self._tell(f"what was landed before as {str(done.commit)[:10]} is completed now")
        return None

    def answered(self, kept: Fields) -> Landing:
        """Finishes what another landing did with this worktree's branch."""
        if kept.get("checked"):
            said = f": {quotation(str(kept['check_said']))}" if kept.get("check_said") else ""
            self._tell(f"check passed in {kept.get('check_s')} s{said}")
        return self._settle(kept)

    def is_over(self) -> bool:
        """Returns whether it need not wait any more: somebody has landed it, or it conflicts with
        what has landed, so that its droid can begin with that at once.
        """
        tip = self.place.tip()
        if tip == self._looked_at:
            return False
        kept = self.promised.kept() is not None
        self._looked_at = tip
        return kept or (self.rules.strategy != REBASE and self.joining.conflicts_with(tip))

    def meet_conflict(self) -> NoReturn:
        """Brings the target into the branch without the turn. Raises `Unresolved`, or `NotLanded`
        if there is no conflict any more.
        """
        try:
            self._join()
        finally:
            with suppress(QueenError):
                self.heal()
        raise self.place.other(f"{self.place.target} was merged here meanwhile")

    def _settle(self, kept: Fields) -> Landing:
        """Brings this worktree to the commit that landed, and does what follows."""
        commit, head = str(kept.get("commit")), str(kept.get("head") or "")
        own, place = self.step.name == "try", self.place
        if own and place.head() == commit:
            place.take_branch_to(commit, head)
        elif head and head != commit and not own and place.head() == head:
            self.step.write("merge", before=head, after=commit)
            how = ["merge", "--ff-only", "--no-stat", "--no-overwrite-ignore", no_dash(commit)]
            if self.rules.strategy != MERGE:
                how = [
                    *("checkout", "-q", "--no-overwrite-ignore", f"-B{place.branch}"),
                    *(no_dash(commit), "--"),
                ]
            done = self.commands(*how, cwd=place.tree, to_the_end=True)
            if done.status != 0:
                self._tell(f"this worktree stays as it was: {' '.join(done.said.split())}")
            self.heal()
        self._tip = str(kept.get("before") or "")
        record = kept.get("record")
        self.work.record = record if isinstance(record, dict) else None
        return self.finish(Landing.promised(place.target, kept), kept.get("issue_id"))

    def offer(self) -> dict[str, object] | None:
        """Returns what somebody else needs to land this branch; None if it has to land alone."""
        place, strategy = self.place, self.rules.strategy
        if self.rules.batch < 2 or self.work.is_alone or strategy == REBASE:
            return None
        offered = Offer(
            *("", "", place.tree, place.branch, place.head()),
            *(self.rules.check, strategy, self.work.subject(), self.work.issue_id),
        )
        return offered.to_dict()

    def begin(self, *, go_on: bool) -> None:
        """Makes this worktree ready to wait for its turn. Raises `NotLanded`."""
        if not go_on or not (self.place.is_merging or self.place.is_rebasing):
            self.heal()
        if go_on:
            self.joining.finish()
        self.incoming = Incoming(self.place)  # The conflict has told what came in before.
        self.place.refuse_unfinished()
        self.place.look()
        self.work.ready()
        self.step.end()

    def finish(self, done: Landing, issue_id: object = None) -> Landing:
        """Does what follows a landing: others need not wait for that."""
        try:
            self.work.landed(done, str(issue_id) if issue_id is not None else None)
        except BaseException:
            target = self.place.target
            self._tell(f"landed on {target}; run queen land again for what failed now:")
            raise
        self.promised.end()
        mine = [each for each in done.changed if not self.joining.joins.keeps_both(each)]
        came_in = self._came_in(self._tip, mine) if self._tip else []
        return replace(done, untracked=self.place.untracked, came_in=came_in)

    def land(self, turn: LandingTurn) -> Landing:
        """Lands in a turn that has come."""
        self.commands.token = turn.token
        sweep(turn.folder)
        with Step.of(turn.folder, self.place.main_tree) as step:
            healing.heal(self.commands, step, self.place.main, self._tell)
        try:
            return self._try_often(turn)
        finally:
            with suppress(QueenError):  # The next one heals it, and says what is in the way.
                self.heal()

    def _try_often(self, turn: LandingTurn) -> Landing:
        """Tries until nobody moved the target meanwhile. Raises `NotLanded`."""
        for _ in range(_TRIES):
            done = self._try(turn)
            if done is not None:
                return done
            target = self.place.target
            self._tell(f"{target} was moved, or somebody left the line; merging it again")
        raise NotLanded(
            f"{self.place.target} was moved {_TRIES} times while this worktree was being landed",
            hint="try again; nothing was landed",
        )

    def _try(self, turn: LandingTurn) -> Landing | None:
        """Joins the two, checks, and moves the target; None if somebody moved that meanwhile."""
        place, trial = self.place, self._trial
        head, changed = self._joined()
        trial.is_alone = trial.is_alone or self.offer() is None or bool(self._check_files)
        commit, failed = trial.run(turn, head)
        if failed is not None:
            return Landing(place.target, None, output=failed, joined=self.joining.joined)
        place.refuse_changed()
        _refuse_held(self.work.held(changed))  # A check may take an hour, in which others reserve.
        self.commands.stop_if_asked()
        turn.check()
        commit = self._with_records(commit, changed)
        said = {
            "commit": commit,
            "leader": turn.name,
            "before": self._tip,
            "checked": trial.check_s is not None,
            "check_s": trial.check_s,
            "check_said": trial.check_said,
        }
        own = {
            "droid": self._store.actor,
            "head": head,
            "issue_id": self.work.issue_id,
            "changed": changed,
            "check_files": self._check_files,
        }
        members = trial.batch.members
        mine = self.promised.give(said, self.work, own, members)
        trial.is_alone = not self._are_in(turn)  # It lands, whoever else comes and goes.
        if trial.is_alone or not self._advance(commit):
            trial.batch.leave()
            return None
        if self.step.name == "try":
            place.take_branch_to(commit, head)
        done = Landing.promised(place.target, mine)
        return replace(done, changed=changed, joined=self.joining.joined)

    def _joined(self) -> tuple[str, list[str]]:
        """Brings the target into the branch, and looks at what comes out; returns the commit, and
        the files that differ.
        """
        place = self.place
        place.refuse_hidden()  # A merge would overwrite them.
        head = self._join()
        self.step.end()
        place.refuse_unfinished()
        contents = place.changed()
        changed = [*contents]
        place.refuse_without_hive(changed)
        place.refuse_unreadable(changed)
        self.work.refuse_unjudged(contents)
        self._stop_marked(contents)
        self._stop_undoing(contents)
        _refuse_held(self.work.held(changed))
        self.work.look_again()
        self.commands.stop_if_asked()
        self._take_rules(self.joining.target, head)
        self._trial.judge_by(self.rules, seen_check(self._store, self.rules))
        place.objects.close()  # A check may take an hour.
        self.work.judged_by(self.rules.check)
        self._show_check_files(contents)
        return head, changed

    def _show_check_files(self, contents: Mapping[str, Sequence[str]]) -> None:
        """Says what the branch changes of the check. Raises `CheckGuarded` if that waits for a
        person.
        """
        files = self.rules.check_files(contents)
        if files and files != self._check_files:
            self._tell(f"changes the check: {named(files, SHOWN)}")
        self._check_files = files
        if not files or not self.rules.guards_check:
            return
        blobs = {each: contents[each][1] for each in files}
        try:
            refuse_unaccepted(self.place.git_dir, blobs, accepts=self.work.accepts_check)
        except CheckGuarded as error:
            if error.details.get("is_new"):
                self.work.check_waits(files)
            raise

    def _take_rules(self, target: str, head: str) -> None:
        """Finds the rules for a commit that is to land on a commit of the target."""
        self.rules = self.rules.judged(self.place.objects, target, head)
        self.joining.joins = Joins(self.rules.union, self.rules.join, bool(self.rules.check))
        self._trial.judge_by(self.rules, None)

    def _stop_undoing(self, changed: dict[str, list[str]]) -> None:
        """Raises `NotLanded`, once, for files that the branch puts back to what they were before
        landings of others.
        """
        place = self.place
        found = undone(place.tree, began(place.git_dir), self.joining.target, changed)
        records = self.work.whose([each.commit for each in found]) if found else {}
        for each in found:
            if each.commit in records:
                each.credit(records[each.commit])
        found = [each for each in found if each.beside or each.droid != self._store.actor]
        files = sorted({path for each in found for path in each.files})[:_MOST_TOLD]
        them, target = " ".join(map(shell_word, files)), shell_word(place.target)
        self._stop_once(
            "takes back what others landed",
            some([each.taken_back() for each in found], SHOWN, "; "),
            f"git checkout --no-overlay {target} -- {them}; look for more in git diff {target}",
            files,
        )

    def _stop_marked(self, changed: dict[str, list[str]]) -> None:
        """Raises `NotLanded`, once, for files in which the markers of a conflict were left."""
        files = with_markers(self.place.tree, changed)
        self._stop_once("has markers of conflicts", named(files, SHOWN), "resolve them", files)

    def _stop_once(self, what: str, where: str, way: str, files: Sequence[str]) -> None:
        path = os.path.join(self.place.git_dir, STOPPED)
        told, said = recall(path), [f"{what}: {each}" for each in files]
        known = told if isinstance(told, list) else []
        if set(said) <= {*known}:
            return
        keep(path, [*known, *said])
        raise NotLanded(
            f"nothing was landed: this branch {what}: {where}",
            hint=f"{way}; then queen land -m 'WHAT YOU DID'. If it is meant: queen land again",
            files=files,
        )

    def _with_records(self, commit: str, changed: Sequence[str]) -> str:
        """Returns the commit to land: the one that was checked, with the records of the hive."""
        carrying, paths = commit, self._carried[:0]
        if self.rules.records:
            carrying, paths = with_records(self._store, self.place, self.joining, commit, changed)
        self._tip, self._carried = self.place.tip(), ()
        if carrying == commit or not self._trial.batch.go_to(carrying):
            return commit
        self._carried = paths
        return carrying

    def _join(self) -> str:
        self._take_rules(self.place.tip(), self.place.head())
        try:
            return self.joining.join()
        except Unresolved as error:
            self._tell_joined()
            with suppress(QueenError):  # The conflict is what must be said.
                self._tell_whom_to_ask(error.files)
            for said in left_places(self.place.tree, error.files):
                self._tell(said)
            raise
        finally:  # Also where another file is left in conflict.
            self._tell_joined()

    def _are_in(self, turn: LandingTurn) -> bool:
        """Returns whether all members still want to land, and may.

        Who left the line before the promise lands nothing; who leaves after it waits for it.
        """
        members = self._trial.batch.members
        held = any(self.work.keeps_out(each.offer, each.changed) for each in members)
        return not held and turn.still([each.offer.entry for each in members])

    def _advance(self, head: str) -> bool:
        """Moves the target by fast-forward to the commit that was checked; returns False if the
        target was moved meanwhile. Raises `NotLanded`.

        Git compares and swaps: it moves the branch only from the commit that it found. Whatever
        git says, the work has landed if the target has it.
        """
        place = self.place
        place.refuse_other(head)
        with Step.of(self._folder, place.main_tree) as step:
            if place.tip() != self.joining.target:
                return False
            where = {"before": self.joining.target, "after": head}
            step.write("advance", **where, carried=self._carried)
            self.commands.wait_for_index(place.common_dir)
            with suppress(QueenError):  # Git then says what is in the way.
                healing.keep_in_index(place.main_tree, **where, carried=self._carried)
            how = ("--ff-only", "--no-squash", "--no-stat", "--no-overwrite-ignore", no_dash(head))
            done = self.commands("merge", *how, cwd=place.main_tree, step=step, to_the_end=True)
            if place.has(head):
                step.end()
                return True
            healing.heal(self.commands, step, place.main, lambda _: None)  # Git said what stays.
            if place.tip() != self.joining.target:
                return False
        raise place.cannot_move(head, done.said)

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
        for each in arrived[:SHOWN]:
            self._tell(f"came in: {each.sentence()}")

    def _tell_joined(self) -> None:
        for each in self.joining.joined[self._told :]:
            for said in each.shown():
                self._tell(said)
        self._told = len(self.joining.joined)


def _refuse_held(files: Sequence[str]) -> None:
    if files:
        raise NotLanded(
            f"held by others: {some(files, SHOWN)}",
            hint="queen reserve list; or ask the holder",
            files=files,
        )
