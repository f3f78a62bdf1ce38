"""One landing of nothing, before the first agent begins: what would fail for all fails once, here.

In the landing checkout, on the target itself: the set-up runs, an empty commit passes the project's
hooks under the name of an agent's branch, git would move the target, and the check passes. What has
passed is kept, as long as the target has the same files but for records.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.names import QUEEN
from queenbee.core.text import last_said, named, quotation, suggested
from queenbee.errors import NotFound, QueenError
from queenbee.git.contents.landing_messages import About, Messages
from queenbee.git.landing.checkout import Checkout, checkout_path
from queenbee.git.landing.commands import Commands, are_alike, is_commit
from queenbee.git.landing.committing import way_to_identity
from queenbee.git.landing.leading import seen_check
from queenbee.git.landing.moving import healing
from queenbee.git.landing.moving.advancing import not_movable, why_not_movable
from queenbee.git.landing.place import Place
from queenbee.git.landing.refusals import SHOWN, TargetFails, why_refused
from queenbee.git.landing.together.checked import check_of
from queenbee.git.landing.together.target_verdict import TargetJudge, known_verdict
from queenbee.git.landing.work import Rules, Work
from queenbee.git.proposing.following import follow
from queenbee.git.run import line
from queenbee.git.worktrees.branch_names import new_branch
from queenbee.git.worktrees.preparing import SetupFailed, setup_key
from queenbee.git.worktrees.worktree_mending import commits_in
from queenbee.services.waiting.landing_steps import Step
from queenbee.services.waiting.landing_turn import LandingTurn
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import current_branch, target_branch
from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queenbee.checks.processes import Interrupts
    from queenbee.git.landing.together.checked import Check
    from queenbee.services.hive import Services

_PASSED, _BRANCH = ".rehearsed", ".rehearsal"
"""Files in the folder of those who land: what has passed, and the branch that is made for it."""
_MOST_BYTES = 4096
_SAID_CHARS = 200
_CONVENTIONAL = "chore: try the hooks"
"""A subject that rules for messages know which do not know merges."""
_OTHER_CHECK = "queen config set land.check COMMAND"
WITHOUT = "or, if you know better: queen start --no-trial"


def rehearse(
    hive: Services,
    names: Sequence[str],
    *,
    tell: Callable[[str], None],
    interrupts: Interrupts,
) -> None:
    """Tries what each landing of these agents needs. Raises `TargetFails`; `Busy` if somebody else
    keeps the turn; `Unreachable`; and `KeyboardInterrupt` after a request to end.
    """
    _Rehearsal(hive, names, tell, interrupts).run()


def clear_up(
    hive: Services,
    names: Sequence[str],
    *,
    tell: Callable[[str], None],
    interrupts: Interrupts,
) -> None:
    """Removes what a rehearsal that was killed has left, and tries nothing. Raises as that does."""
    _Rehearsal(hive, names, tell, interrupts).clear_up()


class _Rehearsal:
    """What is tried, and what is known of it."""

    def __init__(
        self,
        hive: Services,
        names: Sequence[str],
        tell: Callable[[str], None],
        interrupts: Interrupts,
    ) -> None:
        here, target = git_tree(hive.layout.tree), target_branch(hive.layout)
        if here is None or target is None:
            raise NotFound("there is no branch on which work can land", hint="queen doctor")
        self._hive = type(hive)(hive.layout, actor=hive.actor_or_none or QUEEN)
        self._names = names
        self._tell = tell
        self._interrupts = interrupts
        self.place = Place(self._hive, here, target, target, tell)
        self._top = self.place.main_tree or self.place.common_dir
        self._rules = Rules.of(self._hive)

    def run(self) -> None:
        """Tries all that is not known yet. Raises `TargetFails`, and as `follow` does."""
        if self._hive.layout.settings.land_by == "pr":
            follow(self._hive, tell=self._tell, sure=True, again="queen start")
        self.place.refresh()
        with closing(self.place.objects):
            tip, check = self.place.tip(), self._check()
        has_passed, known = self._has_passed(tip), self._verdict(tip, check)
        if has_passed and known and not safe_open.is_there(self._file(_BRANCH)):
            return
        self._tell(f"trying whether work can land on {self.place.target}")
        with self._begun() as (checkout, step):
            self._set_up(checkout, tip)
            self._try_commit(checkout, step, tip)
            keep(self._file(_PASSED), [tip, *self._rests_on])
            if check is not None and not known:
                self._try_check(checkout, tip, check)

    def clear_up(self) -> None:
        """Removes what one that was killed has left."""
        if safe_open.is_there(self._file(_BRANCH)):
            with self._begun():
                pass

    @contextmanager
    def _begun(self) -> Iterator[tuple[Checkout, Step]]:
        """Waits until nobody lands, and puts right what a kill has left."""
        with self._turn() as (turn, step):
            tell_waiting = self._tell if self._rules.signs else None
            how = (self._interrupts, step, self._hive.actor, tell_waiting, turn.token)
            commands = self.place.commands = Commands(*how)
            if self.place.main_tree:
                healing.heal(commands, step, self.place.main, self._tell)
            with Checkout.opened(self.place) as checkout:
                self._clear(checkout)
                yield checkout, step

    @contextmanager
    def _turn(self) -> Iterator[tuple[LandingTurn, Step]]:
        """Waits until nobody lands, as a landing does."""
        wait_s = self._rules.check_timeout_s

        def stop_if_asked() -> None:
            if self._interrupts.count:
                raise KeyboardInterrupt("interrupted while trying whether work can land")

        turn = LandingTurn(self._hive, self.place.target, wait_s, self._tell, stop_if_asked)
        turn.checkout = checkout_path(self.place)
        with turn, Step.of(turn.folder, self._top) as step:
            yield turn, step

    @property
    def _rests_on(self) -> list[str]:
        """What decides about it besides the files of the target."""
        settings = self._hive.layout.settings
        return [setup_key(self._hive.layout), settings.team_branch, settings.land_message]

    def _has_passed(self, tip: str) -> bool:
        """Returns whether set-up and hooks have passed on just these files, but for records."""
        said = recall(self._file(_PASSED), _MOST_BYTES)
        if not isinstance(said, list) or said[1:] != self._rests_on or not is_commit(said[0]):
            return False
        return are_alike(self.place.tree, str(said[0]), tip)

    def _check(self) -> Check | None:
        """Returns the check that the target has of itself."""
        tip = self.place.tip()
        rules = self._rules.judged(self.place.objects, tip, tip)
        command = seen_check(self._hive, rules)
        where = self.place.common_dir
        return check_of(command, rules.check_timeout_s, where) if command else None

    def _verdict(self, tip: str, check: Check | None) -> bool:
        """Returns whether nothing is to be checked: there is no check, or it has passed."""
        if check is None:
            return True
        known = known_verdict(self.place, tip, check)
        return known is not None and known.passed

    def _set_up(self, checkout: Checkout, tip: str) -> None:
        try:
            checkout.go_to(tip, sets_up=False)
            checkout.ready()
        except SetupFailed as error:
            output = str(error.details.get("output"))
            raise self._fails("setup", error.message, f"{error.hint}; {WITHOUT}", output) from error

    def _try_commit(self, checkout: Checkout, step: Step, tip: str) -> None:
        """Makes an empty commit on a branch as an agent has, and drops both."""
        branch = self._free_branch()
        ref, run = f"refs/heads/{branch}", partial(self.place.commands, cwd=checkout.tree)
        keep(self._file(_BRANCH), [ref, tip])
        try:
            made = run("update-ref", no_dash(ref), tip, "")
            if made.status != 0:
                raise self._refused(branch, made.said)
            run("symbolic-ref", "HEAD", no_dash(ref))
            said = ""
            for subject in self._subjects(branch):
                done = run("commit", "--allow-empty", "--quiet", f"--message={subject}")
                self.place.commands.stop_if_asked()
                if done.status == 0:
                    break
                said = said or done.said
            else:
                raise self._refused(branch, said)
            self._try_move(step, checkout.head(), tip)
        finally:
            self._clear(checkout)

    def _subjects(self, branch: str) -> list[str]:
        """Returns the messages of which one has to pass: as the settings say, as git says of a
        merge, and in the form of Conventional Commits.
        """
        messages = Messages.of(self._hive.layout.settings, self.place.tree)
        subjects = [f"Merge branch '{branch}'", _CONVENTIONAL]
        if messages.template:
            ids = [*self._hive.issues.open(), "x-1"]
            about = About(branch, f"{ids[0]}: try the hooks", self._hive.actor)
            subjects.insert(0, messages.squashed(about, ""))
        return [messages.signed_off(each) for each in subjects]

    def _try_move(self, step: Step, commit: str, tip: str) -> None:
        place = self.place
        if place.upstream is None:
            where = (place.commands, step, self._top, place.target_ref)
            why = why_not_movable(*where, after=commit, before=tip)
        else:
            done = place.upstream.push(place.commands, self._top, commit, tip, is_try=True)
            why = done.said if done.status != 0 else ""
            place.refresh()
        if why and place.tip() == tip:
            error = not_movable(place, commit, why)
            raise self._fails("move", error.message, f"{error.hint}; {WITHOUT}", why)

    def _try_check(self, checkout: Checkout, tip: str, check: Check) -> None:
        self._tell(f"check: {check.command}")
        judge = TargetJudge(checkout, lambda: check, Work())
        verdict = judge.judged(tip, check)
        left = checkout.left_by_check(tip)
        if not verdict.passed:
            last = last_said(verdict.output)
            after = f", after {quotation(last, _SAID_CHARS)}" if last else ""
            what = f"the check fails on {self.place.target} itself ({tip[:7]}){after}"
            what += f" ({verdict.lacks})" if verdict.lacks else ""
            hint = f"mend {self.place.target}; or another check: {_OTHER_CHECK}; {WITHOUT}"
            raise self._fails("check", what, hint, verdict.output)
        if left is not None:
            what = f"the check changes what git has of {self.place.target}: "
            files = named(left.files, SHOWN) or "the commit"
            raise self._fails("check", what + files, f"{left.hint}; {WITHOUT}", "")
        self._tell(f"check passed in {verdict.seconds} s")

    def _refused(self, branch: str, said: str) -> TargetFails:
        what = f"an empty commit on a branch {named([branch])} is refused"
        what, lines = why_refused(what, said, None)
        way = suggested("queen config set", "team.branch", "PATTERN")
        hint = f"if it is the name of the branch: {way}, with {{droid}} in it; {WITHOUT}"
        refused = self._fails("hooks", what, way_to_identity(self._top) or hint, said)
        refused.output_lines = lines
        return refused

    def _fails(self, step: str, what: str, hint: str, output: str) -> TargetFails:
        return TargetFails(
            f"no agent was started: {what}",
            hint=hint,
            target=self.place.target,
            commit=self.place.tip(),
            step=step,
            output=output,
        )

    def _free_branch(self) -> str:
        """Returns a branch that nobody has, named as those of the agents."""
        layout = self._hive.layout
        names = [new_branch(layout, each) for each in self._names]
        more = (new_branch(layout, f"{self._names[0]}{number}") for number in count(2))
        return next(each for each in chain(names, more) if not self._commit(f"refs/heads/{each}"))

    def _clear(self, checkout: Checkout) -> None:
        """Removes the branch that was made for it, also by a rehearsal that was killed, and takes
        the checkout off it.
        """
        said = recall(self._file(_BRANCH), _MOST_BYTES)
        if isinstance(said, list) and [type(each) for each in said] == [str, str]:
            ref, before = said
            move: Callable[..., object] = partial(self.place.commands, "update-ref")
            if current_branch(checkout.git_dir) == ref.removeprefix("refs/heads/"):
                back = ("--no-deref", "HEAD", no_dash(before))
                move(*back, cwd=checkout.tree, to_the_end=True)
            tip = self._commit(ref)
            # What hooks commit and amend there, too: nobody else works in it.
            made = commits_in(os.path.join(checkout.git_dir, "logs", "HEAD"))
            is_ours = tip in (before, *made) or (
                self._commit(f"{ref}^1") == before
                and self._commit(f"{ref}^{{tree}}") == self._commit(f"{before}^{{tree}}")
            )
            if tip and is_ours and ref.startswith("refs/heads/"):
                move("-d", no_dash(ref), no_dash(tip), cwd=self._top, to_the_end=True)
        with suppress(OSError, QueenError):
            safe_open.unlink(self._file(_BRANCH))

    def _commit(self, name: str) -> str | None:
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return line(*asked, cwd=self._top, repository={})

    def _file(self, name: str) -> str:
        return os.path.join(self.place.folder, name)
