"""Landing several branches at once: merged one after the other, checked once, moved in one step.

Whoever has the turn merges the branches of those who wait in the landing checkout, so that the
hooks, the drivers and the rules for conflicts are those of any merge. Each keeps a commit of its
own. The commit that lands has the target as its first parent and that row as its
second: each commit on the target's first-parent line is a tree that passed. ADR 0025.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from queenbee.git.landing.arrivals import began, brought_back, taken_off, undone
from queenbee.git.landing.commands import differing
from queenbee.git.landing.conflicts import with_markers
from queenbee.git.landing.judged.nested import lost_between
from queenbee.git.landing.refusals import NotLanded
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.git.landing.checkout import Checkout
    from queenbee.git.landing.commands import Changed
    from queenbee.git.landing.conflicts import Joined
    from queenbee.git.landing.joining import Joining
    from queenbee.git.landing.work import Offer


class Member(NamedTuple):
    """A branch in a batch, the files that it changes there, and where both sides were kept."""

    offer: Offer
    changed: Changed
    joined: Sequence[Joined]


class Batch:
    """The branches that land with that of one worktree."""

    def __init__(self, place: Checkout, joining: Joining, base: str) -> None:
        self._place = place
        self._joining = joining
        self._base = base
        """The commit of that one, on top of the target."""
        self._tried: set[str] = set()
        self._dropped: set[str] = set()
        self.members: list[Member] = []
        self.rows: list[str] = [base]
        """The commits of the row: this branch, with one more member in each."""

    @cached_property
    def _gone(self) -> set[str]:
        return taken_off(self._place)

    def take(
        self,
        offered: Sequence[Offer],
        most: int,
        is_held: Callable[[Offer, Changed], bool],
    ) -> str:
        """Merges more of the offered branches, one after the other, until they are `most`; returns
        the commit to land. One that conflicts, or whose files are held, waits for its own turn.
        """
        for each in self.new_ones(offered):
            if len(self.members) >= most:
                break
            self._add(each, is_held)
        if not self.members:
            return self._base
        tip, top = self._place.tip(), self.rows[-1]
        try:
            message = self._joining.message_of_all([each.offer for each in self.members])
        except NotLanded:  # The hook refuses it: they land one after the other.
            self._dropped.update(each.offer.entry for each in self.members)
            self.leave()
            return self._base
        commit = self._joining.commit(top, [tip, top], message)
        self._joining.move(commit, top)
        return commit

    def new_ones(self, offered: Sequence[Offer]) -> list[Offer]:
        """Returns those of the offered branches that were not tried with these."""
        return [each for each in offered if each.entry not in self._tried | self._dropped]

    def drop(self, member: Member) -> None:
        """Leaves all, and the member out of what is tried next."""
        self.leave()
        self._dropped.add(member.offer.entry)

    def leave(self) -> None:
        """Goes back to the one branch, whatever a check left."""
        self._place.go_to(self._base)
        self.members, self.rows = [], [self._base]
        self._tried.clear()

    def _add(self, offer: Offer, is_held: Callable[[Offer, Changed], bool]) -> None:
        place, before = self._place, self.rows[-1]
        known = len(self._joining.joined)
        self._tried.add(offer.entry)
        changed: Changed = {}
        if self._joining.add(before, offer):
            changed = differing(place.tree, before, place.head())
        own = any(each.startswith(".beads/") for each in changed)
        # One that takes back what others landed, brings back what was taken off, has markers or a
        # commit of a submodule that is only here, is told that itself.
        here = changed and git_tree(offer.tree)
        since = began(here.git_dir) if here else ""
        back = undone(place.tree, since, self._joining.target, changed)
        again = brought_back(place, offer.head, self._gone)
        lost = lost_between(offer.tree, before, place.head(), changed)
        odd = back or again or lost or with_markers(place.tree, changed)
        if not changed or own or odd or is_held(offer, changed):
            place.go_to(before)
        else:
            self.members.append(Member(offer, changed, self._joining.joined[known:]))
            self.rows.append(place.head())
        del self._joining.joined[known:]  # They are told to whose branch it is.
