"""Which commits were pushed from here to which branch of a pull request, and for which issues.

A note in the git directory of the repository, written before the push: of a push that was killed
nobody else knows, and a record may name any branch, commit and pull request. Only what the note has
is replaced, merged or removed at the remote, checked out here, or told to a droid.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from queenbee.core.reviews.review import Review

_NAME = "queenbee-pushed"
_MOST = 50


class Pushed:
    """The commits that were to be pushed from here to branches of pull requests."""

    def __init__(self, tree: str) -> None:
        here = git_tree(tree)
        self._path = os.path.join(here.common_dir if here is not None else "", _NAME)
        said = recall(self._path)
        self._known = said if isinstance(said, dict) else {}

    def commits(self, branch: str, issues: Collection[str | None] | None = None) -> list[str]:
        """Returns those for a branch, the latest last; with `issues`, those pushed for them."""
        noted = self._noted(branch)
        return [each for each, about in noted if issues is None or {*about} & {*issues}]

    def reviews(self, said: Mapping[str, Review]) -> dict[str, Review]:
        """Returns the reviews of issues which say what was pushed from here for that issue."""
        return {
            issue_id: each
            for issue_id, each in said.items()
            if each.head in self.commits(each.branch, [issue_id])
        }

    def proposed(self, said: Mapping[str, Review]) -> dict[str, Review]:
        """Returns the same, each with the commit that was pushed last: a record may say another."""
        found = {issue_id: each.copy() for issue_id, each in self.reviews(said).items()}
        for issue_id, each in found.items():
            each.head = self.commits(each.branch, [issue_id])[-1]
        return found

    def note(self, branch: str, commit: str, issues: Collection[str | None]) -> None:
        """Notes one more. Never fails."""
        noted = [*self._noted(branch), (commit, [*issues])][-_MOST:]
        self._keep({**self._known, branch: [[*each] for each in noted]})

    def take_back(self, branch: str, commit: str) -> None:
        """Forgets the last commit for a branch, which the remote did not take. Never fails."""
        if self.commits(branch)[-1:] == [commit]:
            self._keep({**self._known, branch: [[*each] for each in self._noted(branch)[:-1]]})

    def forget(self, branch: str, commit: str) -> None:
        """Forgets a branch of which the last commit has landed. Never fails."""
        if self.commits(branch)[-1:] == [commit]:
            self._keep({name: each for name, each in self._known.items() if name != branch})

    def _keep(self, known: dict[str, object]) -> None:
        self._known = known
        keep(self._path, known)

    def _noted(self, branch: str) -> list[tuple[str, list[str | None]]]:
        """Returns each commit for a branch, with the issues for which it was pushed."""
        known = self._known.get(branch)
        pairs = known if isinstance(known, list) else []
        return [(str(x[0]), x[1]) for x in pairs if isinstance(x, list) and len(x) == 2]
