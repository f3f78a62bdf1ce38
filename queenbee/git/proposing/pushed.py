"""Which commits were pushed from here to which branch of a pull request.

A note in the git directory of the repository, written before the push: of a push that was killed
nobody else knows, and a record may name any branch. Only what the note has is replaced, merged or
removed at the remote.
"""

from __future__ import annotations

import os

from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import keep, recall

_NAME = "queenbee-pushed"
_MOST = 50


class Pushed:
    """The commits that were to be pushed from here to one branch of the remote."""

    def __init__(self, tree: str, branch: str) -> None:
        here = git_tree(tree)
        self._path = os.path.join(here.common_dir if here is not None else "", _NAME)
        self._branch = branch
        said = recall(self._path)
        self._known = said if isinstance(said, dict) else {}

    @property
    def commits(self) -> list[str]:
        """Returns them, the latest last."""
        known = self._known.get(self._branch)
        return [str(each) for each in known] if isinstance(known, list) else []

    def note(self, commit: str) -> None:
        """Notes one more. Never fails."""
        keep(self._path, {**self._known, self._branch: [*self.commits, commit][-_MOST:]})
