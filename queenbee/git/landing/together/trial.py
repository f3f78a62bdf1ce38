"""Checks a branch, together with as many of those who wait as pass with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import named, quotation
from queenbee.core.timestamps import format_duration
from queenbee.git.landing.commands import added, are_alike
from queenbee.git.landing.refusals import SHOWN
from queenbee.git.landing.standing_back import StandingBack
from queenbee.git.landing.together.batch import Batch
from queenbee.git.landing.together.checked import check_in, check_of, side_by_side
from queenbee.git.landing.together.pace import Pace
from queenbee.git.landing.together.promised import has_landed
from queenbee.git.landing.together.target_verdict import Emptied
from queenbee.git.landing.work import offers
from queenbee.git.worktrees.preparing import copied, setup_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.checks.consent import SeenCommand
    from queenbee.git.landing.checkout import Checkout
    from queenbee.git.landing.commands import Changed
    from queenbee.git.landing.joining import Joining
    from queenbee.git.landing.refusals import LeftByCheck
    from queenbee.git.landing.together.batch import Member
    from queenbee.git.landing.together.checked import Check
    from queenbee.git.landing.together.target_verdict import TargetJudge
    from queenbee.git.landing.work import Offer, Rules, Work
    from queenbee.services.waiting.landing_turn import LandingTurn


class _OthersCame(Exception):
    """A check has just begun, and others came who may be checked with it."""


class Trial:
    """The check of one landing."""

    def __init__(
        self,
        place: Checkout,
        joining: Joining,
        rules: Rules,
        work: Work,
        judge: TargetJudge,
    ) -> None:
        self._place = place
        self._work = work
        self._judge = judge
        self._tell = place.tell
        self.judge_by(rules, None)
        self._joining = joining
        self._standing = StandingBack(place)
        self._passed: set[str] = set()
        """Trees that passed elsewhere."""
        self.batch: Batch = Batch(place, joining, "")
        self.is_alone = False
        """Whether this branch is tried alone."""
        self.left: LeftByCheck | None = None
        """What the check of this branch alone left behind."""
        self.check_s: float | None = None
        self.check_said: str = ""
        self._has_check_failed = False
        """Whether the check failed last, and not the checks of an issue."""
        self._has_check_run = False
        """Whether it was run last, and has passed."""

    def judge_by(self, rules: Rules, check: SeenCommand | None) -> None:
        """Takes these rules and their check from here on."""
        self._rules = rules
        where = self._place.common_dir
        self._check = check_of(check, rules.check_timeout_s, where) if check else None

    def run(self, turn: LandingTurn, head: str) -> tuple[str, str | None]:
        """Returns the commit that was checked, and what failed of this branch alone, or None.

        Before branches are blamed, it is looked whether the target fails without them: then that is
        raised, unless this branch alone passes, which mends it.
        """
        self.batch = Batch(self._place, self._joining, head)
        self._standing = StandingBack(self._place)
        pace = Pace(turn.folder, self._rules.batch, self._place.common_dir)
        waiting = [each.branch for each in self._offers(turn)]
        most = 1 if self.is_alone else pace.most([self._place.branch, *waiting])
        while True:
            commit = self._taken(turn, most) if most > 1 else head
            branches = [self._place.branch, *(each.offer.branch for each in self.batch.members)]
            try:
                failed = self._failed(turn, pace, most)
                bad = self._bad_member() if failed is None else None
            except _OthersCame:
                self._place.go_to(self.batch.rows[-1])
                continue
            self.left = self._place.left_by_check(commit)
            if self.left is not None and len(branches) > 1:
                most = self._without_what_was_left(pace, commit, branches)
                continue
            if bad is not None:
                self.batch.drop(bad)
                continue
            if self._has_check_failed and self._fails_without(branches):
                most = 1
                continue
            if failed is None or len(branches) == 1:
                self._note(pace, branches, commit, passed=failed is None)
                return commit, failed
            self._tell(f"the check failed on {len(branches)} branches; trying fewer")
            most = self._fewer(pace, branches, failed)
            self.batch.leave()

    def divide(self, turn: LandingTurn, commit: str) -> bool:
        """Has fewer be tried next, after a remote has refused a commit that passed; returns False
        if there was one branch alone, which is to blame.
        """
        branches = [self._place.branch, *(each.offer.branch for each in self.batch.members)]
        pace = Pace(turn.folder, self._rules.batch, self._place.common_dir)
        if len(branches) == 1:
            pace.note([], passed=False, check_s=None)  # Those who wait are not.
            return False
        self._tell(f"{self._place.target} refuses {len(branches)} branches; trying fewer")
        pace.suspect(branches, commit, "", "")
        return True

    def _taken(self, turn: LandingTurn, most: int) -> str:
        return self.batch.take(self._offers(turn), most - 1, self._keeps_out)

    def _fails_without(self, branches: Sequence[str]) -> bool:
        """Returns whether the target fails, too: then this branch is tried alone, since it may mend
        that. Raises `TargetFails` if it was.
        """
        error = self._judge.blame(self._joining.target, branches)
        if error is None:
            return False
        if not isinstance(error, Emptied):  # What was left may have failed this branch, too.
            if len(branches) == 1:
                raise error
            self._tell(f"{error}; trying this branch alone")
        self.batch.leave()
        return True

    def _without_what_was_left(self, pace: Pace, commit: str, branches: Sequence[str]) -> int:
        """Returns how many to try after a check of several left other files."""
        left, count = self.left, len(branches)
        assert left is not None
        where = f", kept on {left.kept}" if left.kept else ""
        what = named(left.files, SHOWN) or "the commit"
        self._tell(f"changed while the check ran: {what}{where}")
        self._tell(f"with {count} branches; trying fewer")
        pace.suspect(branches, commit, "", "")  # Whose check it is, its own turn says.
        self.batch.leave()
        return max(1, count // 2)

    def _keeps_out(self, offer: Offer, contents: Changed) -> bool:
        """Returns whether a branch must wait for its own turn: also one that changes the check, or
        lines on which somebody resolves a conflict.
        """
        return bool(
            self._rules.check_files(contents)
            or copied(self._place.layout, offer.tree, added(contents), contents)
            or self._standing.for_whom(offer.head, offer.tree, self._joining.joins)
            or self._work.keeps_out(offer, contents)
        )

    def _offers(self, turn: LandingTurn) -> list[Offer]:
        """Returns those who wait and may land with this one."""
        rules = self._rules
        return [
            each
            for each in offers(self._place.layout, turn.behind())
            if (each.check, each.strategy) == (rules.check, rules.strategy)
            and not has_landed(self._place, each)
        ]

    def _failed(self, turn: LandingTurn, pace: Pace, most: int) -> str | None:
        """Returns what failed of the commit of this worktree. Raises `_OthersCame`."""

        def look(seconds: float, _: str) -> None:
            if not pace.may_lose(seconds):
                return
            came = self.batch.new_ones(self._offers(turn))[: most - len(self.batch.members) - 1]
            if pace.gives_way(seconds, len(self.batch.members) + 1, len(came)):
                self._tell(f"{len(came)} more came: checking with them")
                raise _OthersCame

        self._has_check_failed = self._has_check_run = False
        if self._check is not None and not self._need_not_run(self._check, pace):
            branch, command = self._place.branch, self._check.command
            alone = not self.batch.members
            said = pace.failed_before(branch, command, self._is_at) if alone else None
            if said is not None:
                self._tell("the check failed on just these files before, with those who landed")
                self._has_check_failed = True
                return said
            self._tell(f"check: {command}")
            on_tick = look if most > 1 else None
            ran = check_in(self._place, self._check, on_tick, pace.look_s)
            if ran.failed is not None:
                self._has_check_failed = True
                lacks = self._place.what_it_lacks()
                return (lacks and f"({lacks})\n") + ran.failed
            self.check_s, self.check_said = ran.seconds, ran.said
            self._has_check_run = True
            said = f": {quotation(ran.said)}" if ran.said else ""
            self._tell(f"check passed in {ran.seconds} s{said}")
        return self._work.verify(self._place.tree, self._ready)

    def _ready(self) -> None:
        """Makes the checkout ready for the checks of an issue, unless one has run there."""
        if not self._place.is_ready:
            self._place.ready()

    def _is_at(self, commit: str) -> bool:
        """Returns whether this worktree has the files of a commit, but for records."""
        return are_alike(self._place.tree, commit, self._place.head())

    def _need_not_run(self, check: Check, pace: Pace) -> bool:
        """Returns whether the check has passed on just these files, elsewhere now, or before where
        it is set not to run again.
        """
        if self._passed and self._place.commit("HEAD", "tree") in self._passed:
            return True
        key = self._key(check)
        before = None if self._rules.rechecks else pace.passed_before(key, self._is_at)
        if before is None:
            return False
        self.check_s, ago_s = before
        ago = format_duration(ago_s)
        self._tell(f"the check passed on just these files {ago} ago; it is not run again")
        return True

    def _note(self, pace: Pace, branches: Sequence[str], commit: str, *, passed: bool) -> None:
        """Remembers the verdict, and the commit if the check has passed and left no other files."""
        pace.note(branches, passed=passed, check_s=self.check_s)
        is_good = self._has_check_run and passed and self.left is None
        if is_good and self._check is not None and self.check_s is not None:
            pace.keep_passed(commit, self._key(self._check), self.check_s)

    def _key(self, check: Check) -> str:
        """Returns what a verdict depends on beside the files."""
        return f"{check.command}\n{setup_key(self._place.layout)}"

    def _bad_member(self) -> Member | None:
        """Returns one whose issue has a check that failed: it waits for its own turn."""
        for each in self.batch.members:
            if self._work.verify_for(each.offer, self._place.tree, self._ready) is not None:
                self._tell(f"the checks of {each.offer.issue_id} failed; trying without")
                return each
        return None

    def _fewer(self, pace: Pace, branches: Sequence[str], failed: str) -> int:
        """Returns how many to try after all failed: half; or as many as pass elsewhere, where
        several checks may run side by side.
        """
        count, passing, failing = len(branches), 0, len(branches)
        rows, jobs = self.batch.rows, self._rules.jobs
        if jobs > 1 and self._check is not None and count > 2:
            sizes = sorted({max(1, n * count // (jobs + 1)) for n in range(1, jobs + 1)})
            ran = side_by_side(self._check, self._place, [rows[size - 1] for size in sizes])
            self._place.commands.stop_if_asked()
            for size, verdict in zip(sizes, ran, strict=True):
                if verdict.failed is not None:
                    if size < failing:
                        failing, failed = size, verdict.failed
                elif size < failing:
                    passing, self.check_s = size, verdict.seconds
                    self.check_said = verdict.said
                    self._passed.add(self._place.commit(rows[size - 1], "tree"))
        command = self._check.command if self._check is not None else ""
        pace.suspect(branches[passing:failing], rows[failing - 1], command, failed)
        return passing or max(1, failing // 2)
