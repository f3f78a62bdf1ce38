"""What whoever has the turn does for a branch, in the landing checkout: brings it together with the
target, looks at what comes out, has it checked with others, and moves the target.

Nobody's worktree is read or changed, but the main one, which follows the target. ADR 0025.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent, SeenCommand, typed_command
from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, some, suggested
from queenbee.git.landing.arrivals import began, brought_back, taken_off, undone
from queenbee.git.landing.commands import added, git
from queenbee.git.landing.committing import refuse_copied
from queenbee.git.landing.conflicts import tell_joined, with_markers
from queenbee.git.landing.joining import Joining
from queenbee.git.landing.judged.check_files import CheckGuarded, refuse_unaccepted
from queenbee.git.landing.moving.advancing import Advance
from queenbee.git.landing.refusals import SHOWN, NotLanded, PushRefused
from queenbee.git.landing.requests import STOPPED
from queenbee.git.landing.same_hive import refuse_other_hive
from queenbee.git.landing.together.checked import Verdict, check_of
from queenbee.git.landing.together.records import with_records
from queenbee.git.landing.together.target_verdict import TargetJudge
from queenbee.git.landing.together.trial import Trial
from queenbee.git.landing.work import PROPOSED, SQUASH, Landing
from queenbee.git.run import names_in
from queenbee.git.trees.submodules import links
from queenbee.git.worktrees.preparing import may_have_copies
from queenbee.services.waiting.landing_steps import Promises
from queenbee.store.trust import Trust, of_setting
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.checkout import Checkout
    from queenbee.git.landing.commands import Changed
    from queenbee.git.landing.together.checked import Check
    from queenbee.git.landing.together.promised import Promised
    from queenbee.git.landing.work import Rules, Work
    from queenbee.services.open_store import Store
    from queenbee.services.waiting.landing_turn import LandingTurn

_TRIES = 5
_TRIES_ON_A_REMOTE = 20
"""Those who land from other machines do not wait for each other's turns."""
_MOST_FILES = 100
"""So many of the changed files are named to those who work on them, if that follows a kill."""
_MOST_TOLD = 200
"""So many files that a branch puts back are named at once, in a command to paste."""


class Leading:
    """One turn at landing a branch: the commit `head` of a worktree."""

    def __init__(
        self,
        turn: LandingTurn,
        checkout: Checkout,
        head: str,
        rules: Rules,
        work: Work,
        promised: Promised,
    ) -> None:
        self._turn = turn
        self._checkout = checkout
        self._own = checkout.worktree
        self._store = checkout.store
        self._tell = checkout.tell
        self._head = head
        self.rules: Rules = rules
        self._work = work
        self._promised = promised
        self.joining: Joining = Joining(checkout, rules, work.subject())
        self._judge = TargetJudge(checkout, self._check_of_target, work)
        self._trial = Trial(checkout, self.joining, rules, work, self._judge)
        self._told = 0
        """How many of the joined places were named to the user."""
        self._carried: Sequence[str] = ()
        """The records in the commit that lands that were not in the one that was checked."""
        self._check_files: list[str] = []
        """What the branch changes of the check."""

    def land(self, *, is_alone: bool) -> tuple[Landing | None, Fields]:
        """Returns what became of it, and the promise that was kept; tries until nobody moved the
        target meanwhile. Nothing if whoever led before has just landed it: their git may outlive
        them. Raises `Unresolved` for a conflict, and `NotLanded`.
        """
        tries = _TRIES if self._own.upstream is None else _TRIES_ON_A_REMOTE
        for _ in range(tries):
            self._own.refresh()
            if self._promised.kept() is not None:
                return None, {}
            done = self._try(is_alone=is_alone)
            if done is not None:
                return done
        raise NotLanded(
            f"{self._own.target} was moved {tries} times while this worktree was being landed",
            hint="try again; nothing was landed",
        )

    def _try(self, *, is_alone: bool) -> tuple[Landing, Fields] | None:
        """Joins the two, checks, and moves the target; None if somebody moved that meanwhile."""
        trial, target = self._trial, self._own.target
        top, changed = self._joined()
        is_alone = is_alone or self._judge.is_failing(self.joining.target)
        trial.is_alone = trial.is_alone or is_alone or bool(self._check_files)
        begun_s = time.time()
        commit, failed = trial.run(self._turn, top)
        if failed is not None:
            return Landing(target, None, output=failed, joined=self.joining.joined), {}
        if trial.left is not None:
            raise trial.left
        self._may_still(changed)
        if self.rules.strategy == PROPOSED:
            return self._proposed(commit, changed), {}
        before = self._own.tip()
        if self.rules.records:
            commit, self._carried = with_records(self._checkout, self.joining, commit, changed)
        mine = self._promise(commit, before, changed)
        trial.is_alone = not self._are_in()  # It lands, whoever else comes and goes.
        where = (self._checkout.tree, self.joining.target)
        advance = Advance(self._own, *where, self._carried)
        try:
            landed = None if trial.is_alone else advance.to(commit)
        except PushRefused as error:
            if not error.is_of_content or not trial.divide(self._turn, commit):
                raise
            return None
        if landed is None:
            self._tell(f"{target} was moved, or somebody left the line; merging it again")
            return None
        mine |= {"commit": landed, "is_amended": landed != commit}
        self._note_passed(commit, begun_s)
        done = Landing.promised(target, mine)
        return replace(done, changed=changed, joined=self.joining.joined), mine

    def _may_still(self, changed: Sequence[str]) -> None:
        """Raises what keeps it from landing now: a check may take an hour."""
        _refuse_held(self._work.held(changed))
        self._own.commands.stop_if_asked()
        self._turn.check()

    def _proposed(self, commit: str, changed: list[str]) -> Landing:
        """Pushes a commit that passed, to be merged at the host."""
        self._work.push(self._own, self._checkout.tree, commit)
        said = {**self._said(commit), "check_files": self._check_files}
        done = Landing.promised(self._own.target, said)
        return replace(done, changed=changed, joined=self.joining.joined, is_proposed=True)

    def _said(self, commit: str) -> Fields:
        check_s, check_said = self._trial.check_s, self._trial.check_said
        said = {"commit": commit, "checked": check_s is not None}
        return {**said, "check_s": check_s, "check_said": check_said}

    def _promise(self, commit: str, before: str, changed: list[str]) -> Fields:
        """Promises the commit to all who land with it; returns what this one's promise says."""
        said = {**self._said(commit), "leader": self._turn.name, "before": before}
        actor, members = self._store.actor, self._trial.batch.members
        droids = [actor, *(each.offer.droid for each in members)]
        for each in members:
            Promises(self._own.folder, each.offer.tree).add(
                **said,
                head=each.offer.head,
                issue_id=each.offer.issue_id,
                changed=[*each.changed][:_MOST_FILES],
                joined=[asdict(each) for each in each.joined],
                landed_with=[droid for droid in droids if droid != each.offer.droid],
                record=self._work.record_of(each.offer),
            )
        mine = {**said, "droid": actor, "head": self._head, "issue_id": self._work.issue_id}
        mine |= {"changed": changed[:_MOST_FILES], "check_files": self._check_files}
        mine["landed_with"] = droids[1:]
        self._promised.add(**mine)
        return mine

    def _joined(self) -> tuple[str, list[str]]:
        """Brings branch and target together, and looks at what comes out; returns the commit, and
        the files that differ.
        """
        checkout, work = self._checkout, self._work
        self._take_rules(self._own.tip(), self._head)
        self._stop_bringing_back()
        self.joining.joined.clear()
        top = self.joining.join(checkout, self._head)
        self._tell_joined()
        contents = checkout.changed(self._own.tree, work.issue_id)
        changed = [*contents]
        refuse_other_hive(checkout, changed)
        refuse_copied(checkout.layout, self._own.tree, added(contents), contents)
        if self.rules.strategy != SQUASH and may_have_copies(checkout.layout, self._own.tree):
            again = f"{suggested('git reset --soft', self._own.target)}, then queen land -m TEXT"
            way = f"its commits would be on {self._own.target}: {again}"
            refuse_copied(checkout.layout, self._own.tree, self._once_new(), hint=way)
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
        self.joining.judge_by(self.rules)

    def _note_passed(self, commit: str, begun_s: float) -> None:
        """Notes that the target has passed, as it is now."""
        if self._trial.check_s is not None:
            passed = Verdict(None, "", self._trial.check_s)
            self._judge.keep(commit, str(self.rules.check), passed, begun_s)

    def _check_of_target(self) -> Check | None:
        """Returns the check that the target has of itself."""
        if self.rules.judging is None:  # Whoever lands has said the check.
            return None
        tip, own = self.joining.target, replace(self.rules, asked=None)
        rules = own.judged(self._checkout.objects, tip, tip)
        command = seen_check(self._store, rules)
        where = self._own.common_dir
        return check_of(command, rules.check_timeout_s, where) if command else None

    def _show_check_files(self, contents: Changed) -> None:
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
        asked = ("--literal-pathspecs", "log", "-1", "--format=%H", no_dash(self.joining.target))
        last = git(*asked, "--", *files, cwd=self._own.tree).decode().strip()
        try:
            trust, accepts = Trust(self._store.layout), self._work.accepts_check
            refuse_unaccepted(trust, self._own.git_dir, blobs, last, accepts=accepts)
        except CheckGuarded as error:
            if error.details.get("is_new"):
                self._work.check_waits(files, str(error.hint))
            raise

    def _stop_undoing(self, changed: Changed) -> None:
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
        moved = sorted(links(own.tree).keys() & {*files}) if files else ()
        them += f" && {suggested('git submodule update --', *moved)}" if moved else ""
        self._stop_once(
            "takes back what others landed",
            some([each.taken_back() for each in found], SHOWN, "; "),
            f"git checkout --no-overlay {target} -- {them}; look for more in git diff {target}",
            files,
        )

    def _stop_bringing_back(self) -> None:
        """Raises `NotLanded`, once, for commits on which the branch began, and which somebody has
        taken off the target since.
        """
        target = shell_word(self._own.target)
        if commits := brought_back(self._own, self._head, taken_off(self._own)):
            self._stop_once(
                f"brings back commits that were taken off {target}",
                some([each[:10] for each in commits], SHOWN),
                f"git rebase --onto {target} {commits[0][:10]}",
                commits,
            )

    def _once_new(self) -> list[str]:
        """Returns the files that the commits of the branch bring, also those that they removed
        again.
        """
        only = ("-c", "--diff-filter=A", "--no-renames", "--name-only", "--format=", "-z")
        commits = (no_dash(self._head), "--not", no_dash(self.joining.target))
        listed = git("log", *only, *commits, "--", cwd=self._own.tree)
        return sorted({*names_in(listed)})

    def _stop_marked(self, changed: Changed) -> None:
        """Raises `NotLanded`, once, for files in which the markers of a conflict were left."""
        files = with_markers(self._checkout.tree, changed)
        where = named([*files.values()], SHOWN)
        self._stop_once("has markers of conflicts", where, "resolve them", [*files])

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

    def _are_in(self) -> bool:
        """Returns whether all members still want to land, and may.

        Who left the line before the promise lands nothing; who leaves after it waits for it.
        """
        members = self._trial.batch.members
        held = any(self._work.keeps_out(each.offer, each.changed) for each in members)
        return not held and self._turn.still([each.offer.entry for each in members])

    def _tell_joined(self) -> None:
        tell_joined(self._tell, self.joining.joined[self._told :])
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
