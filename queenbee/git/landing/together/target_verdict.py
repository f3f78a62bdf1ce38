"""What the check says of the target itself: asked when a branch fails, before anybody is blamed.

Kept beside the line of those who land, in one small file, as long as the target has the same files,
but for records. A landing whose check passed knows it without a further check. ADR 0045.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.text import last_said, one_line, quotation
from queenbee.git.landing.commands import are_alike, is_commit
from queenbee.git.landing.refusals import TargetFails
from queenbee.git.landing.together.checked import check_in
from queenbee.git.worktrees.preparing import setup_key
from queenbee.services.waiting import landing_steps
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.git.landing.checkout import Checkout
    from queenbee.git.landing.place import Place
    from queenbee.git.landing.together.checked import Check, Verdict
    from queenbee.git.landing.work import Work

_MOST_BYTES = 65_536
_FAILS_FOR_S, _TIMES = 600.0, 5
"""A failure may come from elsewhere, such as a service that is away: it counts for ten minutes, or
five times as long as the check took.
"""
_SEVERAL = 2
"""So many branches that fail one after the other on a target that has passed: it is asked again."""
_LAST_LINES, _LINE_CHARS = 10, 160


class TargetVerdict(NamedTuple):
    """What a check said of a commit of the target."""

    commit: str
    check: str
    setup: str
    """What the set-up of the checkout rests on."""
    passed: bool
    output: str = ""
    """The end of what it printed, if it failed."""
    lacks: str = ""
    """What the checkout lacks that a worktree has, in words."""
    at: float = 0.0
    """When it began, in seconds since 1970."""
    seconds: float = 0.0
    failed: Sequence[str] = ()
    """The branches that failed alone since."""

    @property
    def is_old(self) -> bool:
        """Whether it says nothing of the target any more."""
        age_s = time.time() - self.at
        most_s = max(_FAILS_FOR_S, _TIMES * self.seconds)
        return not self.passed and not 0 <= age_s < most_s

    def refusal(self, target: str) -> TargetFails:
        """Returns the refusal of a landing on a target that fails."""
        last = last_said(self.output)
        after = f", after {quotation(last, _LINE_CHARS)}" if last else ""
        return TargetFails(
            f"the check fails on {target} itself ({self.commit[:7]}), not because of this branch"
            f"{after}; nothing was landed{self.lacks and f' ({self.lacks})'}",
            hint=("if it fails for another reason, " if self.lacks else "")
            + f"mend {target}: a branch with which the check passes lands as ever",
            target=target,
            commit=self.commit,
            step="check",
            output=self.output,
        )


def target_verdict(folder: str) -> TargetVerdict | None:
    """Returns the verdict that is kept in the folder of those who land, or None."""
    said = recall(os.path.join(folder, landing_steps.TARGET), _MOST_BYTES)
    try:
        found = TargetVerdict(**said)
        texts = (found.commit, found.check, found.setup, found.output, found.lacks, *found.failed)
        is_whole = all(isinstance(each, str) for each in texts) and is_commit(found.commit)
        is_whole = is_whole and isinstance(found.passed, bool)
        return found if is_whole and found.at + found.seconds >= 0 else None
    except TypeError:
        return None


def known_verdict(place: Place, tip: str, check: Check) -> TargetVerdict | None:
    """Returns what is known of a commit of the target: of the same files, but for records."""
    kept = target_verdict(place.folder)
    if kept is None or kept.is_old:
        return None
    if (kept.check, kept.setup) != (check.command, setup_key(place.layout)):
        return None
    return kept._replace(commit=tip) if are_alike(place.tree, kept.commit, tip) else None


def keep_verdict(folder: str, verdict: TargetVerdict) -> None:
    """Keeps a verdict in place of the last one. Never fails."""
    keep(os.path.join(folder, landing_steps.TARGET), verdict._asdict())


class Emptied(Exception):
    """The target passed, once the checkout was emptied of what earlier checks had left."""


class TargetJudge:
    """Judges the target in the checkout of whoever has the turn."""

    def __init__(self, checkout: Checkout, check: Callable[[], Check | None], work: Work) -> None:
        """`check` finds the check that the target has of itself."""
        self._checkout = checkout
        self._folder = checkout.folder
        self._check = check
        self._work = work
        self._tell = checkout.tell
        self._was_emptied = False

    def is_failing(self, tip: str) -> bool:
        """Returns whether the target is known to fail."""
        kept = target_verdict(self._folder)
        if kept is None or kept.passed:
            return False
        check = self._check()
        return check is not None and self._known(tip, check) is not None

    def _known(self, tip: str, check: Check) -> TargetVerdict | None:
        return known_verdict(self._checkout, tip, check)

    def blame(self, tip: str, branches: Sequence[str]) -> Exception | None:
        """Returns the refusal if the target itself fails; others learn it, once. Returns `Emptied`
        if what was left in the checkout may be to blame, and None if these branches are, or there
        is no check of the target.

        Branches that fail on a target that has passed are believed to be bad, until several in a
        row have failed alone.
        """
        check = self._check()
        if check is None:
            return None
        known = self._known(tip, check)
        if known is not None and known.passed and len(branches) == 1:
            failed = [*dict.fromkeys([*known.failed, *branches])]
            known = known._replace(failed=failed)
            keep_verdict(self._folder, known)
        is_new = known is None or (known.passed and len(known.failed) >= _SEVERAL)
        if known is None or is_new:
            self._tell(f"the check failed; trying it on {self._checkout.target} itself")
            was_emptied = self._was_emptied
            known = self.judged(tip, check)
            if known.passed and len(branches) == 1:
                keep_verdict(self._folder, known._replace(failed=[*branches]))
            if self._was_emptied and not was_emptied:
                return Emptied()
        if known.passed:
            return None
        refusal = known.refusal(self._checkout.target)
        if is_new:
            self._work.target_fails(refusal)
        return refusal

    def judged(self, tip: str, check: Check) -> TargetVerdict:
        """Checks a commit of the target, and keeps what that says. Raises `SetupFailed`."""
        at = time.time()
        self._checkout.go_to(tip)
        ran = check_in(self._checkout, check)
        if ran.failed is not None and self._checkout.empty():
            ran = check_in(self._checkout, check)
            self._was_emptied = ran.failed is None
        return self.keep(tip, check.command, ran, at)

    def keep(self, tip: str, check: str, ran: Verdict, at: float) -> TargetVerdict:
        """Keeps what a check said of a commit that is the target, or has just become it."""
        setup = setup_key(self._checkout.layout)
        said = ran.failed or ""
        lacks = self._checkout.what_it_lacks(of_target=True) if said else ""
        verdict = TargetVerdict(tip, check, setup, not said, said, lacks, at, ran.seconds)
        keep_verdict(self._folder, verdict)
        if verdict.passed:
            self._work.target_passes(self._checkout.target)
        if said:
            for each in said.splitlines()[-_LAST_LINES:]:
                self._tell(f"  {one_line(each, _LINE_CHARS)}")
        return verdict
