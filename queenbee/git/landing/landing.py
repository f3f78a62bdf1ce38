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

import os
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from queenbee.checks.processes import Interrupts, Program, run_process
from queenbee.core.text import one_line, quotation
from queenbee.core.timestamps import format_duration
from queenbee.errors import ExternalFailure, InvalidInput, QueenError
from queenbee.git.landing import healing
from queenbee.git.landing.arrivals import Incoming
from queenbee.git.landing.commands import LAST_CHARS, Commands, git, line
from queenbee.git.landing.joining import MERGE, Joining
from queenbee.git.landing.place import SHOWN, NotLanded, Place, Unresolved
from queenbee.git.landing.requests import forget
from queenbee.git.landing.step_notes import Note, left_behind
from queenbee.git.run import user_git
from queenbee.services.waiting.landing_turn import LandingTurn, folder_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.git.landing.arrivals import Arrival
    from queenbee.git.landing.union import Joined
    from queenbee.services.open_store import Store

CHECK = "queenbee.check"
"""The setting of git that holds the check of a repository on this machine."""
_TRIES = 5
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
    """Where the merge kept the lines of both sides by itself."""
    came_in: Sequence[Arrival] = ()
    """What others landed since the branch began, which came in now; the newest first."""

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
    keep_turn_s: float = 600.0
    check_timeout_s: float = 3600.0

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
            keep_turn_s=said.land_keep_turn_s,
            check_timeout_s=said.land_check_timeout_s,
        )


class Work:
    """What lands besides commits, and who else has a say in it: here nothing, and nobody."""

    def begin(self) -> None:
        """Called before the turn is waited for; refuses what must not land."""

    def subject(self) -> str | None:
        """Returns the subject of a commit that landing makes, or None for git's own."""
        return None

    def held(self, paths: Sequence[str]) -> list[str]:
        """Returns those of the changed files that may not land, because others hold them."""
        return []

    def verify(self) -> str | None:
        """Runs checks after that of the rules; returns what failed, or None."""
        return None

    def landed(self, landing: Landing) -> None:
        """Called once the target has moved, while the turn lasts; if it is interrupted, the next
        call for the same commit calls it again.
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
    with Interrupts() as interrupts:
        one = _One(store, interrupts, rules or Rules.of(store), work or Work(), tell)
        done = one.done_before()
        if done is not None:
            one.work.landed(done)
            one.forget()
            return done
        one.work.begin()
        one.incoming = Incoming(one.place)
        if go_on:
            one.joining.finish()
        one.place.refuse_unfinished()
        with LandingTurn(store, one.place.target, wait_s, tell, one.commands.stop_if_asked) as turn:
            return one.land(turn, check or one.rules.check)


def abort(store: Store, *, tell: Callable[[str], None] = lambda _: None) -> None:
    """Takes back the unfinished merge or rebase of this worktree, and gives the turn on.

    Raises `InvalidInput` if there is none.
    """
    with Interrupts() as interrupts:
        one = _One(store, interrupts, Rules.of(store), Work(), tell)
        one.done_before()
        if not one.joining.abort():
            raise InvalidInput("there is no unfinished landing here", hint="queen land")
        LandingTurn(store, one.place.target, 0, tell).drop()
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
        self._tell = tell
        self.rules = rules
        self.work = work
        self.commands = Commands(interrupts)
        self.place = Place(store, self.commands)
        self.joining = Joining(self.place, rules.strategy, rules.union, work.subject())
        self._check_s: float | None = None
        self._check_said = ""
        self._told = 0
        """How many of the joined places were named to the user."""
        self.incoming: Incoming | None = None
        self._folder = folder_of(store, self.place.target)

    def done_before(self) -> Landing | None:
        """Takes back what a killed landing left half done in this worktree. Returns it if it had
        moved the target, to this worktree's present commit, and was killed after that.
        """
        done = None
        for note in left_behind(self._folder):
            if note.fields.get("tree") != self.place.tree:
                continue
            after, step = str(note.fields.get("after") or ""), note.fields.get("step")
            if step in ("advance", "landed") and self._has_landed(after):
                if self.place.head() == after and not self.place.is_merging:
                    changed = note.fields.get("changed")
                    files = [str(each) for each in changed] if isinstance(changed, list) else []
                    done = Landing(self.place.target, after, changed=files)
                    continue
                note.remove()
            elif step == "advance":
                continue  # For the turn, which alone may touch the main worktree.
            else:
                self._heal(note, self.place.tree, self.place.git_dir, self.place.branch)
                note.remove()
        return done

    def forget(self) -> None:
        """Removes the notes of this worktree: what they say has been done."""
        for note in left_behind(self._folder):
            if note.fields.get("tree") == self.place.tree:
                note.remove()

    def _heal_main(self) -> None:
        """Takes back what a killed landing left half done in the main worktree."""
        place = self.place
        for note in left_behind(self._folder):
            fields = note.fields
            if not fields or not os.path.isdir(str(fields.get("tree"))):
                note.remove()  # Killed before its first step, or its worktree was removed.
            if fields.get("step") != "advance" or self._has_landed(fields.get("after")):
                continue
            self._heal(note, place.main_tree, place.common_dir, place.target)
            note.remove()

    def land(self, turn: LandingTurn, check: str | None) -> Landing:
        """Lands in a turn that has come."""
        self.commands.token = turn.token
        self._heal_main()
        with closing(Note.new(turn.folder, turn.name)) as note:
            try:
                done = self._try_often(turn, note, check)
                if done.landed:
                    self.work.landed(done)
            except Unresolved:
                turn.keep(self.rules.keep_turn_s)
                note.remove()
                with suppress(QueenError):  # The conflict is what must be said.
                    self._tell_whom_to_ask()
                raise
            except KeyboardInterrupt:
                note.close()
                self.done_before()
                raise
            except Exception:
                if note.fields.get("step") == "landed":
                    target = self.place.target
                    self._tell(f"landed on {target}; run queen land again for what failed now:")
                else:
                    note.remove()
                raise
            note.remove()
        turn.drop()
        return done

    def _try_often(self, turn: LandingTurn, note: Note, check: str | None) -> Landing:
        """Tries until nobody moved the target meanwhile. Raises `NotLanded`."""
        for _ in range(_TRIES):
            done = self._try(turn, note, check)
            if done is not None:
                return done
            self._tell(f"{self.place.target} was moved meanwhile; merging it again")
        raise NotLanded(
            f"{self.place.target} was moved {_TRIES} times while this worktree was being landed",
            hint="try again; nothing was landed",
        )

    def _try(self, turn: LandingTurn, note: Note, check: str | None) -> Landing | None:
        """Joins the two, checks, and moves the target; None if somebody moved that meanwhile."""
        place = self.place
        place.refuse_unfinished()
        try:
            head = self.joining.join(note)
        finally:  # Also where another file is left in conflict.
            self._tell_joined()
        changed = place.changed()
        place.refuse_without_hive()
        place.refuse_unreadable(changed)
        _refuse_held(self.work.held(changed))
        self.commands.stop_if_asked()
        failed = self._fails(check) if check else None
        if failed is None:
            failed = self.work.verify()
        if failed is not None:
            return Landing(place.target, None, output=failed, joined=self.joining.joined)
        place.refuse_unfinished()
        _refuse_held(self.work.held(changed))  # A check may take an hour, in which others reserve.
        self.commands.stop_if_asked()
        turn.check()
        tip = place.tip()
        if not place.advance(head, note):
            return None
        note.write(step="landed", tree=place.tree, after=head, changed=changed[:100])
        return Landing(
            place.target,
            head,
            checked=bool(check),
            untracked=place.untracked(),
            changed=changed,
            check_s=self._check_s,
            check_said=self._check_said,
            joined=self.joining.joined,
            came_in=self._came_in(tip),
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
            self._tell(each.sentence())
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

    def _has_landed(self, commit: object) -> bool:
        try:
            known = git("rev-list", "-n", "1", f"{commit}", "--", cwd=self.place.tree)
            left = ("rev-list", "-n", "1", f"{commit}", f"^{self.place.target_ref}", "--")
            return bool(known) and not git(*left, cwd=self.place.tree)
        except ExternalFailure:
            return False

    def _heal(self, note: Note, tree: str, git_dir: str, branch: str) -> None:
        """Brings a worktree back to the commit that it still has. Raises `NotLanded` where that is
        for somebody else to decide.
        """
        fields, place = note.fields, self.place
        before, after = str(fields.get("before") or ""), str(fields.get("after") or "")
        if not before or not after:
            return
        if kept := healing.remove_locks(git_dir, place.common_dir, branch, note.written_ns):
            raise NotLanded(
                f"git is at work in {tree}, or was killed there: {kept[0]}",
                hint="if no git command runs there, remove that file",
            )
        if fields.get("step") == "rebase" and place.is_rebasing:
            # What git wrote for the first of its moves; aborting knows only what git tracks.
            self._restore(tree, before, after)
            self.joining.abort()
        if fields.get("step") == "merge":
            if place.is_merging:
                self.joining.abort()
            after = _merged(after, tree) or after
        self._restore(tree, before, after)

    def _restore(self, tree: str, before: str, after: str) -> None:
        if self.place.commit("HEAD", cwd=tree) != before:
            return
        if left := healing.restore(self.commands, tree, before, after):
            self._tell(
                f"a landing was killed in {tree}, and these files were changed since: "
                f"{', '.join(left[:SHOWN])}"
            )


def _refuse_held(files: Sequence[str]) -> None:
    if files:
        raise NotLanded(
            f"held by others: {', '.join(files[:SHOWN])}",
            hint="queen reserved; or ask the holder",
            files=files,
        )


def _merged(theirs: str, tree: str) -> str | None:
    """Returns the tree that a merge writes, also one with conflicts: their marks repeat the names
    that the merge was called with.
    """
    status, out, _ = user_git(
        *("merge-tree", "--write-tree", "--no-messages", "HEAD", theirs), cwd=tree
    )
    first = out.split(b"\n")[0].decode(errors="replace")
    return first if status in (0, 1) and first else None
