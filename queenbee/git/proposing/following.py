"""Follows the pull requests of a hive: one question for all of them, at most one a minute a clone,
and what follows from the answer. ADR 0050.

Whoever asks does what is to be done, for whichever droid: an issue that was merged is complete, and
those that waited for it are ready.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from queenbee.core.reviews import pull_requests as states
from queenbee.core.text import mentioned
from queenbee.errors import NotFound, QueenError
from queenbee.git.hosts.client import refuse_early
from queenbee.git.proposing.feedback import Feedback
from queenbee.git.proposing.proposing import PROPOSES, host_of, upstream_of
from queenbee.git.proposing.pushed import Pushed
from queenbee.git.proposing.standing import forget_proposed, keep_lacking, note_merged
from queenbee.git.run import is_ancestor, network
from queenbee.git.trees.in_memory import merged_in_memory
from queenbee.store.host_note import HostNote
from queenbee.store.trust import Proposal, Trust, target_proposal
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.completing import end_merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.reviews.pull_requests import PullRequest
    from queenbee.core.reviews.review import Review
    from queenbee.git.proposing.host import Answer, Host
    from queenbee.git.upstream import Upstream
    from queenbee.services.hive import Services

_EVERY_MS = 60_000
_SHORT = 10
AUTO = "auto"
MERGES = ("person", AUTO)
"""The values of `land.merge`."""


def follow(
    hive: Services,
    *,
    tell: Callable[[str], None] = lambda _: None,
    sure: bool = False,
    again: str = "queen land",
) -> None:
    """Asks the host of all open pull requests, unless somebody here did within a minute, and does
    what follows. Where it cannot be asked, the states that were seen last stand, and that is told;
    `sure` raises `HostAway`, `NotLoggedIn`, `NoClient` or `InvalidInput` then, which say what to do
    `again`.
    """
    assert isinstance(hive, Hive)
    reviews = hive.assignments.in_review()
    is_on = hive.layout.settings.land_by == PROPOSES
    if not reviews and not (is_on and sure):
        return
    ways = [_proposal(hive, merge) for merge in MERGES]
    if len(Trust(hive.layout).unseen(ways)) == len(ways):  # Its client would send a token.
        tell("pull requests are as they were seen last: nobody here has agreed to ask their host")
        return
    note, now_ms = HostNote(hive.layout), hive.now_ms()
    is_fresh = 0 <= now_ms - note.asked_ms < _EVERY_MS or now_ms < note.until_ms
    if sure:
        refuse_early(note, now_ms, again)
    if is_fresh and not (sure and note.error):
        return
    try:
        host, upstream = host_of(hive.layout, again), upstream_of(hive.layout)
        note.note(asked_ms=now_ms)  # Also a host that is away is not asked by every command.
        answer = host.look(sorted({each.number for each in reviews.values()}))
        note.note(error="", until_ms=0)
    except QueenError as error:
        note.note(asked_ms=hive.now_ms())  # It may have taken a minute to fail.
        note.failed(error)
        if sure:
            raise
        tell(f"pull requests are as they were seen last: {error.message}")
        return
    pushed = Pushed(upstream.tree)  # After the answer: what that has of ours was noted before.
    _Followed(hive, host, upstream, note, pushed, tell).act(reviews, answer)


def _proposal(hive: Services, merge: str) -> Proposal:
    """Returns what somebody here has agreed to, if the host may be asked and does the rest."""
    target = hive.layout.settings.land_target
    return target_proposal(hive.layout, target, by=PROPOSES, merge=merge)


@dataclass(frozen=True, slots=True)
class _Followed:
    """One answer of a host, and what follows from it."""

    hive: Hive
    host: Host
    upstream: Upstream
    note: HostNote
    pushed: Pushed
    tell: Callable[[str], None]

    def act(self, reviews: Mapping[str, Review], answer: Answer) -> None:
        """Does what follows from an answer for each pull request, in the order of their numbers."""
        own = self.pushed.reviews(reviews)
        by_number: dict[tuple[int, bool, str], list[str]] = {}
        for issue_id, review in reviews.items():
            is_own = issue_id in own  # What others say of a number is for itself, and comes first.
            key = (review.number, is_own, "" if is_own else issue_id)
            by_number.setdefault(key, []).append(issue_id)
        if any(x.merge_commit or x.merge_state == states.UNSURE for x in answer.by_number.values()):
            with suppress(QueenError):  # Then it is not seen yet.
                self.upstream.fetch()
        known, numbers = self.note.states, [str(number) for number, *_ in by_number]
        self.note.states = {each: known[each] for each in numbers if each in known}
        for (number, is_own, _), issues in sorted(by_number.items()):
            seen = answer.by_number.get(number)
            review = self._as_pushed(reviews[issues[0]], seen)
            state = self._state(review, seen)
            if state != states.UNKNOWN:
                self.note.states[str(number)] = {"state": state, "at_ms": self.hive.now_ms()}
            if seen is not None and (is_own or state == states.LANDED):
                self._act(issues, review, seen, state, is_own=is_own)
        self.note.note()

    def _act(
        self, issues: Sequence[str], review: Review, seen: PullRequest, state: str, *, is_own: bool
    ) -> None:
        """Does what follows for one pull request: what it says keeps nobody from working."""
        try:
            if state == states.LANDED:
                self._land(issues, review, seen, is_own=is_own)
            elif state not in (states.UNKNOWN, states.MERGED):
                self._tell_droid(issues, review, seen, state)
            if state == states.READY:
                self._merge(seen)
        except QueenError as error:
            self.tell(f"{review} is left as it is: {error.message}")

    def _as_pushed(self, review: Review, seen: PullRequest | None) -> Review:
        """Returns what the record is about to say, if the host has a later push from here: the
        landing that made it has still to note it.
        """
        pushed = self.pushed.commits(review.branch)
        later = pushed[pushed.index(review.head) + 1 :] if review.head in pushed else []
        if seen is None or seen.head not in later:
            return review
        now = review.copy()
        now.head = seen.head
        return now

    def _state(self, review: Review, seen: PullRequest | None) -> str:
        is_ours = seen is not None and review.is_of(seen) and seen.base == self.upstream.branch
        seen = seen if is_ours else None
        commit = seen.merge_commit if seen is not None else ""
        tree = self.upstream.tree
        is_in = bool(commit) and is_ancestor(commit, self.upstream.ref, cwd=tree)
        if commit != review.head and is_in and is_ancestor(commit, review.head, cwd=tree):
            is_in = False  # Of what was there before the work, no merge made it.
        if seen is not None and seen.merge_state == states.UNSURE and self._conflicts(seen.head):
            seen = replace(seen, merge_state="DIRTY")
        return states.state_of(seen, review.head, is_in_target=is_in)

    def _conflicts(self, head: str) -> bool:
        return merged_in_memory(self.upstream.tree, self.upstream.ref, head)[1] is not None

    def _land(
        self, issues: Sequence[str], review: Review, seen: PullRequest, *, is_own: bool
    ) -> None:
        """Completes the issues of what was merged, and clears away what it needed no more, if that
        was pushed from here. What the host calls merged and the target lacks is kept.
        """
        commit, layout = seen.merge_commit, self.hive.layout
        if is_own and (kept := keep_lacking(layout, review.branch, review.head, commit)):
            self.tell(f"what {commit[:_SHORT]} lacks of {review} is kept on {mentioned(kept)}")
        for issue_id in issues:
            held = self.hive.assignments.active(issue_id)
            if held is None or held.review is None or held.review.number != review.number:
                continue  # Somebody else has done it meanwhile.
            with suppress(NotFound):
                reason = f"merged as {commit[:_SHORT]} ({review.url or review})"
                for wrong in end_merged(self.hive, issue_id, reason, commit):
                    self.tell(wrong)
                self.tell(f"{issue_id} has landed: {review} is merged as {commit[:_SHORT]}")
        if not is_own:
            return
        note_merged(layout, review, commit)
        self._remove_branch(review)
        forget_proposed(layout, review)
        Pushed(self.upstream.tree).forget(review.branch, review.head)

    def _merge(self, seen: PullRequest) -> None:
        """Merges what can be merged, if that is set; the next command asks what became of it."""
        settings = self.hive.layout.settings
        is_auto = settings.land_merge == AUTO
        if not is_auto or Trust(self.hive.layout).unseen([_proposal(self.hive, AUTO)]):
            return
        try:
            self.host.merge(seen, settings.land_method)
            self.note.note(asked_ms=0)
        except QueenError as error:
            self.tell(error.message)

    def _tell_droid(
        self, issues: Sequence[str], review: Review, seen: PullRequest, state: str
    ) -> None:
        """Tells the droid of what it has to mend, once; after some rounds, the person."""
        now = review.copy()
        if state not in states.FOR_AGENT:
            now.asks = ""  # What it was told of is mended, or was taken back.
        else:
            feedback = Feedback.of(self.hive, self.host, now, seen, state)
            if feedback is not None:
                feedback.tell(self.hive, issues)
                return
            if state != states.CHANGES:  # That stays until its reviewer looks again.
                now.asks = now.asks or state
        for each in issues:
            self.hive.assignments.put_in_review(each, now)

    def _remove_branch(self, review: Review) -> None:
        """Removes the branch at the remote, if it is where a push from here left it and no pull
        request needs it. Never fails.
        """
        with suppress(QueenError):
            answer = self.host.look([], [review.branch])
            heads = answer.by_branch.get(review.branch, ())
            if any(each.state == states.OPEN for each in heads) or review.branch in answer.bases:
                return
            ref = f"refs/heads/{review.branch}"
            lease = f"--force-with-lease={ref}:{review.head}"
            how = ("push", "--porcelain", "--no-follow-tags", lease)
            timeout_s = self.hive.layout.settings.sync_timeout_s
            remote = self.upstream.proposed_on(review.branch).remote
            gone = (*how, "--", remote, f":{ref}")
            network(*gone, cwd=self.upstream.tree, timeout_s=timeout_s)
