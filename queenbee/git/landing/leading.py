"""What whoever has the turn does for a branch, in the landing checkout: brings it together with the
target, looks at what comes out, has it checked with others, and moves the target.

Nobody's worktree is read or changed, but the main one, which follows the target. ADR 0025.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent, SeenCommand, typed_command
from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, some
from queenbee.errors import QueenError
from queenbee.git.landing import healing
from queenbee.git.landing.arrivals import began, undone
from queenbee.git.landing.changed_since import links_above
from queenbee.git.landing.commands import ACTION, Done, differing
from queenbee.git.landing.conflicts import Joins, with_markers
from queenbee.git.landing.joining import Joining
from queenbee.git.landing.judged.check_files import CheckGuarded, refuse_unaccepted
from queenbee.git.landing.judged.same_hive import refuse_other_hive
from queenbee.git.landing.place import refuse_under_way
from queenbee.git.landing.refusals import SHOWN, NotLanded, PushRefused
from queenbee.git.landing.requests import STOPPED
from queenbee.git.landing.together.records import with_records
from queenbee.git.landing.together.trial import Trial
from queenbee.git.landing.work import Landing
from queenbee.services.waiting.landing_steps import Step
from queenbee.store.git_files.worktrees import branch_head, current_branch
from queenbee.store.trust import of_setting
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.checkout import Checkout
    from queenbee.git.landing.place import Place
    from queenbee.git.landing.together.promised import Promised
    from queenbee.git.landing.work import Rules, Work
    from queenbee.git.upstream import Upstream
    from queenbee.services.open_store import Store
    from queenbee.services.waiting.landing_turn import LandingTurn

_TRIES = 5
_TRIES_ON_A_REMOTE = 20
"""Those who land from other machines do not wait for each other's turns."""
_MOST_TOLD = 200
"""So many files that a branch puts back are named at once, in a command to paste."""


class Leading:
    """One turn at landing a branch: the commit `head` of a worktree."""

    def __init__(  # noqa: PLR0913 - by name
        self,
        store: Store,
        turn: LandingTurn,
        own: Place,
        checkout: Checkout,
        *,
        head: str,
        rules: Rules,
        work: Work,
        promised: Promised,
        tell: Callable[[str], None],
    ) -> None:
        self._store = store
        self._turn = turn
        self._own = own
        self._checkout = checkout
        self._head = head
        self.rules = rules
        self._work = work
        self._promised = promised
        self._tell = tell
        joins = Joins(rules.union, rules.join, bool(rules.check))
        self.joining = Joining(checkout, rules, joins, work.subject())
        self._trial = Trial(checkout, self.joining, rules, work, tell)
        self._told = 0
        """How many of the joined places were named to the user."""
        self._carried: Sequence[str] = ()
        """The records in the commit that lands that were not in the one that was checked."""
        self._check_files: list[str] = []
        """What the branch changes of the check."""

    def land(self, *, is_alone: bool) -> tuple[Landing, Fields]:
        """Returns what became of it, and the promise that was kept; tries until nobody moved the
        target meanwhile. Raises `Unresolved` for a conflict, and `NotLanded`.
        """
        tries = _TRIES if self._own.upstream is None else _TRIES_ON_A_REMOTE
        for _ in range(tries):
            self._own.refresh()
            done = self._try(is_alone=is_alone)
            if done is not None:
                return done
            self._tell(f"{self._own.target} was moved, or somebody left the line; merging it again")
        raise NotLanded(
            f"{self._own.target} was moved {tries} times while this worktree was being landed",
            hint="try again; nothing was landed",
        )

    def _try(self, *, is_alone: bool) -> tuple[Landing, Fields] | None:
        """Joins the two, checks, and moves the target; None if somebody moved that meanwhile."""
        trial, target = self._trial, self._own.target
        top, changed = self._joined()
        trial.is_alone = trial.is_alone or is_alone or bool(self._check_files)
        commit, failed = trial.run(self._turn, top)
        if failed is not None:
            return Landing(target, None, output=failed, joined=self.joining.joined), {}
        if trial.left is not None:
            raise trial.left
        _refuse_held(self._work.held(changed))  # A check may take an hour, in which others reserve.
        self._own.commands.stop_if_asked()
        self._turn.check()
        tip = self._own.tip()
        commit = self._with_records(commit, changed)
        said = {
            "commit": commit,
            "leader": self._turn.name,
            "before": tip,
            "checked": trial.check_s is not None,
            "check_s": trial.check_s,
            "check_said": trial.check_said,
        }
        own = {
            "droid": self._store.actor,
            "head": self._head,
            "issue_id": self._work.issue_id,
            "changed": changed,
            "check_files": self._check_files,
        }
        members = trial.batch.members
        mine = self._promised.give(said, self._work, own, members)
        trial.is_alone = not self._are_in()  # It lands, whoever else comes and goes.
        if trial.is_alone or not self._advance(commit):
            return None
        done = Landing.promised(target, mine)
        return replace(done, changed=changed, joined=self.joining.joined), mine

    def _joined(self) -> tuple[str, list[str]]:
        """Brings branch and target together, and looks at what comes out; returns the commit, and
        the files that differ.
        """
        checkout, work = self._checkout, self._work
        self._take_rules(self._own.tip(), self._head)
        checkout.go_to(self._head)
        self.joining.joined.clear()
        top = self.joining.join()
        self._tell_joined()
        contents = checkout.changed(self._own.tree)
        changed = [*contents]
        checkout.refuse_without_hive(changed)
        checkout.refuse_unreadable(changed)
        refuse_other_hive(checkout.layout, checkout.objects, changed)
        work.refuse_unjudged(contents, self._head)
        self._stop_marked(contents)
        self._stop_undoing(contents)
        _refuse_held(work.held(changed))
        work.look_again()
        self._own.commands.stop_if_asked()
        self._take_rules(self.joining.target, top)
        self._trial.judge_by(self.rules, seen_check(self._store, self.rules))
        checkout.objects.close()  # A check may take an hour.
        work.judged_by(self.rules.check)
        self._show_check_files(contents)
        return top, changed

    def _take_rules(self, target: str, head: str) -> None:
        """Finds the rules for a commit that is to land on a commit of the target."""
        self.rules = self.rules.judged(self._checkout.objects, target, head)
        self.joining.joins = Joins(self.rules.union, self.rules.join, bool(self.rules.check))
        self._trial.judge_by(self.rules, None)

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
            refuse_unaccepted(self._own.git_dir, blobs, accepts=self._work.accepts_check)
        except CheckGuarded as error:
            if error.details.get("is_new"):
                self._work.check_waits(files)
            raise

    def _stop_undoing(self, changed: dict[str, list[str]]) -> None:
        """Raises `NotLanded`, once, for files that the branch puts back to what they were before
        landings of others.
        """
        own = self._own
        since = began(own.git_dir)
        found = undone(self._checkout.tree, since, self.joining.target, changed)
        records = self._work.whose([each.commit for each in found]) if found else {}
        for each in found:
            if each.commit in records:
                each.credit(records[each.commit])
        found = [each for each in found if each.beside or each.droid != self._store.actor]
        files = sorted({path for each in found for path in each.files})[:_MOST_TOLD]
        them, target = " ".join(map(shell_word, files)), shell_word(own.target)
        self._stop_once(
            "takes back what others landed",
            some([each.taken_back() for each in found], SHOWN, "; "),
            f"git checkout --no-overlay {target} -- {them}; look for more in git diff {target}",
            files,
        )

    def _stop_marked(self, changed: dict[str, list[str]]) -> None:
        """Raises `NotLanded`, once, for files in which the markers of a conflict were left."""
        files = with_markers(self._checkout.tree, changed)
        self._stop_once("has markers of conflicts", named(files, SHOWN), "resolve them", files)

    def _stop_once(self, what: str, where: str, way: str, files: Sequence[str]) -> None:
        path = os.path.join(self._own.git_dir, STOPPED)
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
        carrying, self._carried = commit, ()
        if self.rules.records:
            where = (self._checkout, self.joining)
            carrying, self._carried = with_records(self._store, *where, commit, changed)
        return carrying

    def _are_in(self) -> bool:
        """Returns whether all members still want to land, and may.

        Who left the line before the promise lands nothing; who leaves after it waits for it.
        """
        members = self._trial.batch.members
        held = any(self._work.keeps_out(each.offer, each.changed) for each in members)
        return not held and self._turn.still([each.offer.entry for each in members])

    def _advance(self, commit: str) -> bool:
        """Moves the target to the commit that was checked; returns False if the target was moved
        meanwhile. Raises `NotLanded`.

        Git compares and swaps: it moves the branch only from the commit that it found. Whatever
        git says, the work has landed if the target has it.
        """
        own, commands = self._own, self._own.commands
        if own.upstream is not None:
            return self._pushed(own.upstream, commit)
        if not own.main_has_target:
            return self._moved(commit)
        with Step.of(self._turn.folder, own.main_tree) as step:
            if own.tip() != self.joining.target:
                return False
            done = self._bring_main(step, self.joining.target, commit)
            if own.has(commit):
                step.end()
                return True
            healing.heal(commands, step, own.main, lambda _: None)  # Git said what stays.
            if own.tip() != self.joining.target:
                return False
        raise own.cannot_move(commit, done.said)

    def _bring_main(self, step: Step, before: str, after: str) -> Done:
        """Moves the main worktree from one commit to another."""
        own, carried = self._own, self._carried
        if links := [*links_above(own.main_tree, differing(own.main_tree, before, after))]:
            return Done(1, f"links are where git has folders: {named(links, SHOWN)}")
        step.write("advance", before=before, after=after, carried=carried)
        own.commands.wait_for_index(own.common_dir)
        with suppress(QueenError):  # Git then says what is in the way.
            healing.keep_in_index(own.main_tree, before, after, carried)
        how = ("--ff-only", "--no-squash", "--no-stat", "--no-overwrite-ignore")
        moved = ("merge", *how, no_dash(after))
        return own.commands(*moved, cwd=own.main_tree, step=step, to_the_end=True)

    def _pushed(self, upstream: Upstream, commit: str) -> bool:
        """Does so where the target is a remote's. Raises `Unreachable` if nobody can say whether
        the remote took it: the next landing looks.
        """
        before, tree = self.joining.target, self._checkout.tree
        pushed = self._own.commands(*upstream.push_line(commit, before), cwd=tree)
        if pushed.status == 0:
            seen = (upstream.ref, no_dash(commit), no_dash(before))
            self._own.commands("update-ref", "-m", ACTION, *seen, cwd=tree, to_the_end=True)
            self._main_follows(commit)
            return True
        self._own.refresh()
        if self._own.has(commit):
            return True
        if self._own.tip() != before:
            return False
        self._own.commands.stop_if_asked()
        raise PushRefused(upstream.name, pushed.said)

    def _main_follows(self, commit: str) -> None:
        """Brings the main worktree to what has landed on a remote, if it has the branch of that
        name, without commits of its own, and nothing of the user's is in the way.
        """
        own = self._own
        head = branch_head(own.common_dir, own.target_name) or ""
        if not own.main_tree or current_branch(own.common_dir) != own.target_name:
            return
        if not head or not own.is_ancestor(head, commit):
            self._tell(f"{own.main_tree} has commits that {own.target} has not, and stays there")
            return
        with suppress(QueenError), Step.of(self._turn.folder, own.main_tree) as step:
            done = self._bring_main(step, head, commit)
            if done.status == 0:
                step.end()
                return
            healing.heal(own.commands, step, own.main, lambda _: None)
            self._tell(f"{own.main_tree} stays where it was: {' '.join(done.said.split())}")

    def _moved(self, commit: str) -> bool:
        """Does so where no worktree has the target checked out."""
        own = self._own
        refuse_under_way(self._store.layout)
        between = (no_dash(commit), no_dash(self.joining.target))
        how = ("update-ref", "-m", ACTION, f"refs/heads/{own.target}", *between)
        done = own.commands(*how, cwd=own.tree, to_the_end=True)
        if own.has(commit):
            return True
        if own.tip() != self.joining.target:
            return False
        raise NotLanded(
            f"{named([own.target])} cannot be moved to {commit[:10]}: "
            f"{' '.join(done.said.split())}",
            hint="queen land",
        )

    def _tell_joined(self) -> None:
        for each in self.joining.joined[self._told :]:
            for said in each.shown():
                self._tell(said)
        self._told = len(self.joining.joined)
        if self.joining.is_one:
            self._tell(
                "lands as one commit: a rebase would drop what a merge of this branch changed"
            )


def seen_check(store: Store, rules: Rules) -> SeenCommand | None:
    """Returns the check of these rules; what the settings say of it is asked for. Raises
    `Untrusted`.
    """
    consent = Consent.of(store)
    consent.require([each for said in rules.proposed for each in of_setting("land.check", said)])
    return typed_command(rules.check) if rules.check else None


def _refuse_held(files: Sequence[str]) -> None:
    if files:
        raise NotLanded(
            f"held by others: {some(files, SHOWN)}",
            hint="queen reserve list; or ask the holder",
            files=files,
        )
