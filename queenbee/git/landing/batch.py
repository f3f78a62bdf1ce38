"""Landing several branches at once: merged one after the other, checked once, moved in one step.

Whoever has the turn merges the branches of those who wait into its own worktree, without a branch,
so that the hooks, the drivers and the rules for conflicts are those of any merge. Each keeps a
commit of its own. The commit that lands has the target as its first parent and that row as its
second: each commit on the target's first-parent line is a tree that passed. ADR 0025.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.git.landing.commands import git
from queenbee.git.landing.healing import go_back
from queenbee.git.landing.refusals import NotLanded
from queenbee.git.run import names_in
from queenbee.services.waiting import landing_steps
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.conflicts import Joined
    from queenbee.git.landing.joining import Joining
    from queenbee.git.landing.place import Place

_REMEMBERED = 12
"""So many branches tell how often a check fails."""
_AFTER_A_FAILURE = 4
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Offer:
    """A branch that waits for its turn, and may land in that of another."""

    entry: str
    droid: str
    tree: str
    branch: str
    head: str
    check: str | None
    strategy: str
    subject: str | None
    issue_id: str | None

    def to_dict(self) -> dict[str, object]:
        """Returns the parts that its place in the line does not say."""
        return {name: getattr(self, name) for name in _OFFERED}


_OFFERED = ("branch", "head", "check", "strategy", "subject", "issue_id")


def offers(line: Sequence[tuple[str, Fields]]) -> list[Offer]:
    """Returns the offers of those in a line; who wants to land alone makes none."""
    found = []
    for entry, fields in line:
        said = fields.get("offer")
        parts = [said.get(each) for each in _OFFERED] if isinstance(said, dict) else [0]
        is_whole = all(isinstance(each, str | None) for each in parts) and parts[0]
        if is_whole and _is_commit(parts[1]):
            about = [str(fields.get(each)) for each in ("droid", "tree")]
            found.append(Offer(entry, *about, *parts))
    return found


def _is_commit(said: object) -> bool:
    return isinstance(said, str) and len(said) >= 40 and set(said) <= set("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Member:
    """A branch in a batch, the files that it changes there, and where both sides were kept."""

    offer: Offer
    changed: Sequence[str]
    joined: Sequence[Joined]


class Batch:
    """The branches that land with that of this worktree."""

    def __init__(self, place: Place, joining: Joining, base: str) -> None:
        self._place = place
        self._joining = joining
        self._commands = place.commands
        self._base = base
        """The commit of this worktree's own branch."""
        self.members: list[Member] = []

    def take(
        self, offered: Sequence[Offer], most: int, is_held: Callable[[Offer, list[str]], bool]
    ) -> str:
        """Merges as many as `most` of the offered branches, one after the other; returns the commit
        to land. One that conflicts, or whose files are held, waits for its own turn.
        """
        self.members = []
        for each in offered:
            if len(self.members) >= most:
                break
            if not self.members:
                self._begin()
            self._add(each, is_held)
        if not self.members:
            self.leave()
            return self._base
        tip, top = self._place.tip(), self._place.head()
        branches = [self._place.branch, *(each.offer.branch for each in self.members)]
        message = f"Land {len(branches)} branches\n\n" + "\n".join(f"* {each}" for each in branches)
        commit = self._joining.commit(top, [tip, top], message)
        self._move(commit, top)
        return commit

    def go_to(self, commit: str) -> bool:
        """Goes to a commit with other records; returns whether git did."""
        self._begin()
        how = ("checkout", "-q", "--no-overwrite-ignore", "--detach", commit)
        if self._commands(*how, cwd=self._place.tree, to_the_end=True).status == 0:
            return True
        if not self.members:
            self.leave()
        return False

    def leave(self) -> None:
        """Goes back to the branch of this worktree. Raises `NotLanded` if a check left changes."""
        if self._commands.step.name == "try":
            go_back(self._commands, self._commands.step, self._place.own)
        self.members = []

    def _begin(self) -> None:
        step = self._commands.step
        if step.name != "try":
            step.write("try", branch=self._place.branch, before=self._base, after=self._base)
            self._commands("checkout", "-q", "--detach", cwd=self._place.tree, to_the_end=True)

    def _add(self, offer: Offer, is_held: Callable[[Offer, list[str]], bool]) -> None:
        place, before = self._place, self._place.head()
        known = len(self._joining.joined)
        if not self._joining.add(offer.head, offer.branch, offer.subject):
            return
        changed = names_in(
            git("diff", "--name-only", "--no-renames", "-z", before, "HEAD", "--", cwd=place.tree)
        )
        own = any(each.startswith(".beads/") for each in changed)
        if not changed or own or is_held(offer, changed):
            how = ("reset", "-q", "--keep", before)
            self._commands(*how, cwd=place.tree, to_the_end=True)
        else:
            self.members.append(Member(offer, changed, self._joining.joined[known:]))
        del self._joining.joined[known:]  # They are told to whose branch it is.

    def _move(self, commit: str, before: str) -> None:
        how = ("update-ref", "--no-deref", "-m", "queen land", "HEAD", commit, before)
        done = self._commands(*how, cwd=self._place.tree, to_the_end=True)
        if done.status != 0:
            raise NotLanded(f"git cannot move to {commit[:10]}: {done.said}", hint="queen land")


class Pace:
    """How many land at once: fewer after a failure, and one by one while many fail."""

    def __init__(self, folder: str, most: int) -> None:
        self._path = os.path.join(folder, landing_steps.PACE)
        self._limit = most
        said = recall(self._path, _MOST_BYTES)
        self._passed = [each for each in said if isinstance(each, bool)] if said else []

    @property
    def most(self) -> int:
        """How many branches one check may be for."""
        failed = self._passed.count(False)
        if failed * 4 > max(len(self._passed), 8):
            return 1
        return min(self._limit, _AFTER_A_FAILURE) if failed else self._limit

    @property
    def is_clean(self) -> bool:
        """Whether nothing failed lately, so that a failure may be by chance."""
        return all(self._passed)

    def note(self, branches: int, *, passed: bool) -> None:
        """Remembers the verdict on so many branches."""
        self._passed = [*self._passed, *[passed] * branches][-_REMEMBERED:]
        keep(self._path, self._passed)
