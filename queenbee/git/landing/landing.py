"""Landing: bringing a worktree's branch to the branch of the main worktree, one after the other.

The steps, in an order that must not change:

1. The turn comes. Nobody else moves the target through `queen land` from here on.
2. What a landing that was killed left half done is taken back.
3. The target is brought into the branch. A conflict stays there, and the turn with it for a while.
4. The checks run on exactly that commit.
5. The target is moved there by fast-forward, if it is still where it was: this alone decides what
   landed, so a process that lost its turn can land nothing stale.

A note says which step is under way, before it begins. ADR 0025.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from queenbee.checks.processes import Interrupts, Program, run_process
from queenbee.core.text import one_line, quotation, shell_word
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import Busy, InvalidInput, QueenError
from queenbee.git.landed import carries_records
from queenbee.git.landing import healing
from queenbee.git.landing.arrivals import Incoming
from queenbee.git.landing.batch import Batch, Offer, Pace, offers
from queenbee.git.landing.commands import LAST_CHARS, Commands, line
from queenbee.git.landing.conflicts import Joins
from queenbee.git.landing.joining import MERGE, REBASE, Joining
from queenbee.git.landing.place import Place
from queenbee.git.landing.records import with_records
from queenbee.git.landing.refusals import SHOWN, NotLanded, Unresolved
from queenbee.git.landing.requests import forget
from queenbee.services.waiting.landing_steps import Promises, Step, sweep
from queenbee.services.waiting.landing_turn import LandingTurn, folder_of
from queenbee.store import waiting_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.arrivals import Arrival
    from queenbee.git.landing.conflicts import Joined
    from queenbee.services.open_store import Store

CHECK = "queenbee.check"
"""The setting of git that holds the check of a repository on this machine."""
_TRIES = 5
_AGAIN_S = 0.02
_OWN = object()
_MOST_FILES = 100
"""So many of the changed files are named to those who work on them, if that follows a kill."""
_MOST_SAID = 120
"""Characters of the last line of a check that passed, which tells how much it checked."""


@dataclass(frozen=True, slots=True)
class Landing:
    """What a landing did: the commit that is now on the target, or why there is none.

    `output` is the end of what a failed check printed.
    """

    target: str
    commit: str | None
    checked: bool = True
    output: str = ""
    untracked: Sequence[str] = ()
    """Files of the worktree that git does not track, and so are not part of it."""
    changed: Sequence[str] = ()
    """The files that the target got."""
    check_s: float | None = None
    """How long the check took that passed, in seconds; None if there was none."""
    check_said: str = ""
    """The last line that it printed."""
    joined: Sequence[Joined] = ()
    """The conflicts that needed nobody."""
    came_in: Sequence[Arrival] = ()
    """What others landed since the branch began, which came in now; the newest first."""
    landed_with: Sequence[str] = ()
    """The droids whose branches landed in the same step."""

    @property
    def landed(self) -> bool:
        """Whether the target has the work of this worktree."""
        return self.commit is not None

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        fields = asdict(self)
        fields["check_seconds"] = fields.pop("check_s")
        came_in = [each.to_dict() for each in self.came_in]
        return {"landed": self.landed, **fields, "came_in": came_in}


@dataclass(frozen=True, slots=True)
class Rules:
    """How work lands in a repository."""

    check: str | None = None
    """A shell command that has to pass."""
    strategy: str = MERGE
    union: Sequence[str] = ()
    """Patterns, as in `.gitignore`, of files in which what both sides added is kept."""
    join: str = "on"
    """Which conflicts are joined without anybody: `on`, `all` or `off`."""
    check_timeout_s: float = 3600.0
    batch: int = 16
    """How many branches may land in one step."""
    records: bool = False
    """Whether the commit that lands carries the records of the hive."""

    @classmethod
    def of(cls, store: Store) -> Rules:
        """Returns what the settings of the hive and of this machine say; the latter first."""
        said = store.layout.settings
        tree = store.layout.tree
        own = line("config", "--get", CHECK, cwd=tree)
        return cls(
            check=own or said.land_check or None,
            strategy=said.land_strategy,
            union=said.land_union,
            join=said.land_join,
            check_timeout_s=said.land_check_timeout_s,
            batch=said.land_batch,
            records=carries_records(store.layout),
        )


class Work:
    """What lands besides commits, and who else has a say in it: here nothing, and nobody."""

    issue_id: str | None = None
    """The issue that the work is for."""
    is_alone = False
    """Whether it has to land in a step of its own."""

    def ready(self) -> None:
        """Called before the turn is waited for; refuses what must not land."""

    def subject(self) -> str | None:
        """Returns the subject of a commit that landing makes, or None for git's own."""
        return None

    def held(self, paths: Sequence[str]) -> list[str]:
        """Returns those of the changed files that may not land, because others hold them."""
        return []

    def look_again(self) -> None:
        """Called when the turn has come, before the check; refuses what must not land now."""

    def keeps_out(self, droid: str, issue_id: str | None, paths: Sequence[str]) -> bool:
        """Returns whether the branch of another droid, for an issue, must wait for its own turn."""
        return False

    def verify(self) -> str | None:
        """Runs checks after that of the rules; returns what failed, or None."""
        return None

    def landed(self, landing: Landing, issue_id: str | None) -> None:
        """Called once the target has the work on an issue, after the turn; if it is interrupted,
        the next call calls it again.
        """

    def whose(self, commits: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Returns for which issue, and by whom, commits landed, as far as that is known."""
        return {}


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

    `check` is a shell command that runs at the top of this worktree after the merge; by default
    that of `rules`, which are the hive's by default. `go_on` first commits the merge whose
    conflicts were resolved.

    Raises `InvalidInput` outside a linked worktree, `NotLanded`, and `Busy` if the turn does not
    come within `wait_s`.
    """
    rules = rules or Rules.of(store)
    with Interrupts() as interrupts, _One(store, interrupts, rules, work or Work(), tell) as one:
        one.joining.joins.is_checked = bool(check or rules.check)
        done = one.done_before()
        if done is not None:
            return done
        turn = LandingTurn(store, one.place.target, wait_s, tell, one.commands.stop_if_asked)
        turn.is_next = one.step.name == "conflict"
        one.begin(go_on=go_on)
        turn.offer = one.offer(check or rules.check)
        turn.is_answered = one.is_over
        try:
            with turn:
                if turn.is_first and not one.is_promise_kept():
                    done = one.land(turn, check or rules.check)
        except (Busy, KeyboardInterrupt):
            if not one.was_promised(turn.folder):
                raise
        if done is None and not one.was_promised(turn.folder):
            one.meet_conflict()
        if done is None:
            return one.answered()
        return one.finish(done) if done.landed else done


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
        self._promises = Promises(self._folder, self.place.tree)
        self.step = Step.of(
            self._folder,
            self.place.tree,
            git_dir=self.place.git_dir,
            droid=store.actor,
            target=self.place.target,
            since=format_ms(store.now_ms()),
        )
        self.commands = Commands(interrupts, self.step)
        self.place.commands = self.commands
        joins = Joins(rules.union, rules.join)
        self.joining = Joining(self.place, rules.strategy, joins, work.subject())
        self._check_s: float | None = None
        self._check_said = ""
        self._told = 0
        """How many of the joined places were named to the user."""
        self.incoming: Incoming | None = None
        self._tip = ""
        """What the target was before this landing."""
        self._is_alone = False
        """Whether somebody left the batch that was checked: the next one is for this branch."""
        self._carried: Sequence[str] = ()
        """The records in the commit that lands that were not in the one that was checked."""
        self._looked_at = ""
        """The commit of the target that was last looked at while waiting."""

    def __enter__(self) -> _One:
        return self

    def __exit__(self, *_: object) -> None:
        self.step.close()

    def heal(self) -> None:
        """Takes back what a landing that was killed or failed left half done in this worktree."""
        healing.heal(self.commands, self.step, self.place.own, self._tell)

    def done_before(self) -> Landing | None:
        """Finishes what a landing of this worktree left to do after the target had moved; returns
        it if this worktree has nothing new since.
        """
        kept = self._kept()
        if kept is None:
            self._promises.end()
            return None
        done = self._settle(kept)
        if self.place.head() == done.commit and not self.place.is_merging:
            return done
        self._tell(f"what was landed before as {str(done.commit)[:10]} is completed now")
        return None

    def answered(self) -> Landing:
        """Finishes what another landing did with this worktree's branch."""
        kept = self._kept()
        assert kept is not None
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
        kept = self.is_promise_kept()
        self._looked_at = tip
        return kept or (self.rules.strategy != REBASE and self.joining.conflicts_with(tip))

    def meet_conflict(self) -> None:
        """Brings the target into the branch without the turn. Raises `Unresolved`, or `NotLanded`
        if there is no conflict any more.
        """
        try:
            self.joining.join()
        except Unresolved:
            with suppress(QueenError):  # The conflict is what must be said.
                self._tell_whom_to_ask()
            raise
        finally:
            self._tell_joined()
            with suppress(QueenError):
                self.heal()
        raise self.place.other(f"{self.place.target} was merged here meanwhile")

    def is_promise_kept(self) -> bool:
        """Returns whether somebody has landed this worktree's branch."""
        return self._kept() is not None

    def was_promised(self, folder: str) -> bool:
        """Returns whether somebody lands this worktree's branch, though it has left the line."""
        for each in self._promises.all():
            while not self.is_promise_kept() and waiting_line.is_live(
                folder, str(each.get("leader"))
            ):
                time.sleep(_AGAIN_S)
        return self.is_promise_kept()

    def _kept(self) -> Fields | None:
        """Returns the promise that was kept, if there is one."""
        promises = self._promises.all()
        return next((each for each in promises if self.place.has(str(each.get("commit")))), None)

    def _settle(self, kept: Fields) -> Landing:
        """Brings this worktree to the commit that landed, and does what follows."""
        commit, head = str(kept.get("commit")), str(kept.get("head") or "")
        own, place = self.step.name == "try", self.place
        if own and place.head() == commit:
            place.take_branch_to(commit, head)
        elif head and head != commit and not own and place.head() == head:
            self.step.write("merge", before=head, after=commit)
            how = ["merge", "--ff-only", "--no-stat", "--no-overwrite-ignore", commit]
            if self.rules.strategy != MERGE:
                how = ["checkout", "-q", "--no-overwrite-ignore", "-B", place.branch, commit, "--"]
            done = self.commands(*how, cwd=place.tree, to_the_end=True)
            if done.status != 0:
                self._tell(f"this worktree stays as it was: {' '.join(done.said.split())}")
            self.heal()
        self._tip = str(kept.get("before") or "")
        return self.finish(_landing(place.target, kept), kept.get("issue_id"))

    def offer(self, check: str | None) -> dict[str, object] | None:
        """Returns what somebody else needs to land this branch; None if it has to land alone."""
        place, strategy = self.place, self.rules.strategy
        if self.rules.batch < 2 or self.work.is_alone or strategy == REBASE:
            return None
        offered = Offer(
            *("", "", place.tree, place.branch, place.head()),
            *(check, strategy, self.work.subject(), self.work.issue_id),
        )
        return offered.to_dict()

    def begin(self, *, go_on: bool) -> None:
        """Makes this worktree ready to wait for its turn. Raises `NotLanded`."""
        if not go_on or not (self.place.is_merging or self.place.is_rebasing):
            self.heal()
        self.incoming = Incoming(self.place)
        if go_on:
            self.joining.finish()
        self.place.refuse_unfinished()
        self.work.ready()
        self.step.end()

    def finish(self, done: Landing, issue_id: object = _OWN) -> Landing:
        """Does what follows a landing: others need not wait for that."""
        issue_id = self.work.issue_id if issue_id is _OWN else issue_id
        try:
            self.work.landed(done, str(issue_id) if issue_id is not None else None)
        except BaseException:
            target = self.place.target
            self._tell(f"landed on {target}; run queen land again for what failed now:")
            raise
        self._promises.end()
        came_in = self._came_in(self._tip) if self._tip else []
        return replace(done, untracked=self.place.untracked(), came_in=came_in)

    def land(self, turn: LandingTurn, check: str | None) -> Landing:
        """Lands in a turn that has come."""
        self.commands.token = turn.token
        sweep(turn.folder)
        with Step.of(turn.folder, self.place.main_tree) as step:
            healing.heal(self.commands, step, self.place.main, self._tell)
        try:
            return self._try_often(turn, check)
        except Unresolved:
            with suppress(QueenError):  # The conflict is what must be said.
                self._tell_whom_to_ask()
            raise
        finally:
            with suppress(QueenError):  # The next one heals it, and says what is in the way.
                self.heal()

    def _try_often(self, turn: LandingTurn, check: str | None) -> Landing:
        """Tries until nobody moved the target meanwhile. Raises `NotLanded`."""
        for _ in range(_TRIES):
            done = self._try(turn, check)
            if done is not None:
                return done
            target = self.place.target
            self._tell(f"{target} was moved, or somebody left the line; merging it again")
        raise NotLanded(
            f"{self.place.target} was moved {_TRIES} times while this worktree was being landed",
            hint="try again; nothing was landed",
        )

    def _try(self, turn: LandingTurn, check: str | None) -> Landing | None:
        """Joins the two, checks, and moves the target; None if somebody moved that meanwhile."""
        place = self.place
        try:
            head = self.joining.join()
        finally:  # Also where another file is left in conflict.
            self._tell_joined()
        self.step.end()
        place.refuse_unfinished()
        place.refuse_hidden()
        changed = place.changed()
        self._refuse(changed)
        batch = Batch(place, self.joining, head)
        commit, failed = self._checked(turn, check, batch, head)
        if failed is not None:
            return Landing(place.target, None, output=failed, joined=self.joining.joined)
        place.refuse_unfinished()
        _refuse_held(self.work.held(changed))  # A check may take an hour, in which others reserve.
        self.commands.stop_if_asked()
        turn.check()
        commit = self._with_records(batch, commit)
        self._promise(turn, commit, head, changed, batch)
        self._is_alone = not self._are_in(turn, batch)  # It lands, whoever else comes and goes.
        if self._is_alone or not self._advance(commit):
            batch.leave()
            return None
        if self.step.name == "try":
            place.take_branch_to(commit, head)
        done = _landing(place.target, self._promises.all()[0])
        return replace(done, changed=changed, joined=self.joining.joined)

    def _refuse(self, changed: Sequence[str]) -> None:
        """Refuses what must not land, before the check."""
        self.place.refuse_without_hive(changed)
        self.place.refuse_unreadable(changed)
        _refuse_held(self.work.held(changed))
        self.work.look_again()

    def _with_records(self, batch: Batch, commit: str) -> str:
        """Returns the commit to land: the one that was checked, with the records of the hive."""
        carrying, paths = commit, self._carried[:0]
        if self.rules.records:
            carrying, paths = with_records(self._store, self.place, self.joining, commit)
        self._tip, self._carried = self.place.tip(), ()
        if carrying == commit or not batch.go_to(carrying):
            return commit
        self._carried = paths
        return carrying

    def _are_in(self, turn: LandingTurn, batch: Batch) -> bool:
        """Returns whether all members still want to land, and may.

        Who left the line before the promise lands nothing; who leaves after it waits for it.
        """
        held = any(self._is_held(each.offer, each.changed) for each in batch.members)
        return not held and turn.still([each.offer.entry for each in batch.members])

    def _checked(
        self, turn: LandingTurn, check: str | None, batch: Batch, head: str
    ) -> tuple[str, str | None]:
        """Checks this branch with as many of those who wait as pass with it; returns the commit
        that was checked, and what failed without any of them, or None.
        """
        pace = Pace(turn.folder, self.rules.batch)
        most = pace.most if self.offer(check) is not None and not self._is_alone else 1
        while True:
            commit = head
            if most > 1:
                offered = [each for each in offers(turn.behind()) if each.check == check]
                same = [each for each in offered if each.strategy == self.rules.strategy]
                commit = batch.take(same, most - 1, self._is_held)
            failed = self._failed(check)
            if failed is not None and batch.members and pace.is_clean:
                self._tell("the check failed for the first time: once more")
                failed = self._failed(check)
            count = len(batch.members) + 1
            if failed is None or count == 1:
                pace.note(count, passed=failed is None)
                return commit, failed
            pace.note(1, passed=False)
            self._tell(f"the check failed on {count} branches; trying fewer")
            batch.leave()
            most = count // 2

    def _failed(self, check: str | None) -> str | None:
        failed = self._fails(check) if check else None
        return failed if failed is not None else self.work.verify()

    def _is_held(self, offer: Offer, changed: Sequence[str]) -> bool:
        return self.work.keeps_out(offer.droid, offer.issue_id, changed)

    def _promise(
        self, turn: LandingTurn, commit: str, head: str, changed: Sequence[str], batch: Batch
    ) -> None:
        """Promises each branch the commit that is to land."""
        said = {
            "commit": commit,
            "leader": turn.name,
            "before": self._tip,
            "checked": self._check_s is not None,
            "check_s": self._check_s,
            "check_said": self._check_said,
        }
        droids = [self._store.actor, *(each.offer.droid for each in batch.members)]
        for each in batch.members:
            Promises(turn.folder, each.offer.tree).add(
                **said,
                head=each.offer.head,
                issue_id=each.offer.issue_id,
                changed=each.changed[:_MOST_FILES],
                joined=[asdict(each) for each in each.joined],
                landed_with=[droid for droid in droids if droid != each.offer.droid],
            )
        self._promises.add(
            **said,
            head=head,
            issue_id=self.work.issue_id,
            changed=changed[:_MOST_FILES],
            landed_with=droids[1:],
        )

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
            how = ("--ff-only", "--no-squash", "--no-stat", "--no-overwrite-ignore", head)
            done = self.commands("merge", *how, cwd=place.main_tree, step=step, to_the_end=True)
            if place.has(head):
                step.end()
                return True
            healing.heal(self.commands, step, place.main, self._tell)
            if place.tip() != self.joining.target:
                return False
        raise NotLanded(
            f"{place.main_tree} cannot be moved to {head[:10]}: {' '.join(done.said.split())}",
            hint=f"git -C {shell_word(place.main_tree)} status",
        )

    def _came_in(self, tip: str) -> list[Arrival]:
        try:
            return self.incoming.arrivals(tip, self.work.whose) if self.incoming is not None else []
        except QueenError as error:  # The work has landed: that must be said, whatever fails.
            self._tell(f"could not list what landed meanwhile: {error.message}")
            return []

    def _tell_whom_to_ask(self) -> None:
        """Names the landings that changed the same files, where the merge is left in conflict."""
        arrived = [each for each in self._came_in(self.place.tip()) if each.files]
        for each in arrived[:SHOWN]:
            self._tell(f"came in: {each.sentence()}")

    def _tell_joined(self) -> None:
        for each in self.joining.joined[self._told :]:
            for said in each.shown():
                self._tell(said)
        self._told = len(self.joining.joined)

    def _fails(self, check: str) -> str | None:
        """Runs a check; returns the end of what it printed if it failed, else None.

        Whatever it started ends with it, also after its time and after a request to end.
        """
        self._tell(f"check: {check}")
        argv = ["/bin/sh", "-c", f"exec 2>&1\n{check}"]
        timeout_s = self.rules.check_timeout_s
        program = Program(argv, self.place.tree, self.commands.env, timeout_s)
        began_s = time.monotonic()
        ran = run_process(program, interrupts=self.commands.interrupts)
        self.commands.stop_if_asked()
        if ran.exit_code == 0:
            self._check_s = round(time.monotonic() - began_s, 1)
            lines = ran.stdout.text().strip().split("\n")
            self._check_said = one_line(lines[-1].strip(), _MOST_SAID)
            said = f": {quotation(self._check_said)}" if self._check_said else ""
            self._tell(f"check passed in {self._check_s} s{said}")
            return None
        said = (ran.problem or ran.stdout.text()).strip()[-LAST_CHARS:]
        if ran.ended == "timed_out":
            return f"{said}\ntimed out after {format_duration(timeout_s)}".strip()
        return said or f"status {ran.exit_code}"


def _landing(target: str, kept: Fields) -> Landing:
    """Returns what a promise that was kept says."""

    def words(name: str) -> list[str]:
        said = kept.get(name)
        return [str(each) for each in said] if isinstance(said, list) else []

    check_s = kept.get("check_s")
    return Landing(
        target,
        str(kept.get("commit")),
        checked=bool(kept.get("checked")),
        changed=words("changed"),
        check_s=check_s if isinstance(check_s, float) else None,
        check_said=str(kept.get("check_said") or ""),
        landed_with=words("landed_with"),
    )


def _refuse_held(files: Sequence[str]) -> None:
    if files:
        raise NotLanded(
            f"held by others: {', '.join(files[:SHOWN])}",
            hint="queen reserved; or ask the holder",
            files=files,
        )
