"""What a worktree was promised: a commit that has its work once the target has that commit."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.git.landing.work import ASKED
from queenbee.services.waiting.landing_steps import Promises
from queenbee.store import safe_open, waiting_line
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.place import Place
    from queenbee.git.landing.together.batch import Member
    from queenbee.git.landing.work import Work

_AGAIN_S = 0.02
_MOST_FILES = 100
"""So many of the changed files are named to those who work on them, if that follows a kill."""


class Promised(Promises):
    """The promises to one worktree, and those that it gives as the leader of others."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.folder, place.tree)
        self._place = place
        self._asked = os.path.join(place.git_dir, ASKED)

    def ask(self, head: str, offer: Mapping[str, object] | None) -> None:
        """Notes which commit of this worktree is to land, and what others need to land it."""
        keep(self._asked, offer or {"head": head})

    def kept(self) -> Fields | None:
        """Returns the promise that was kept, if there is one, of what was asked here."""
        said = recall(self._asked)
        head = said.get("head") if isinstance(said, dict) else None
        for each in (each for each in self.all() if head and each.get("head") == head):
            commit, before = (str(each.get(name) or "") for name in ("commit", "before"))
            if landed := self._place.landed_as(commit, before):
                return {**each, "commit": landed, "is_amended": landed != commit}
        return None

    def kept_at_last(self) -> Fields | None:
        """Returns it too if somebody is about to keep it, though this worktree left the line."""
        for each in self.all():
            while not (kept := self.kept()):
                if not waiting_line.is_live(self._place.folder, str(each.get("leader"))):
                    break
                time.sleep(_AGAIN_S)
            if kept:
                return kept
        return self.kept()

    def end(self) -> None:
        """Removes them: what follows from the one that was kept has been done."""
        super().end()
        with suppress(OSError, QueenError):
            safe_open.unlink(self._asked)

    def give(
        self,
        said: Mapping[str, object],
        work: Work,
        own: Mapping[str, object],
        members: Sequence[Member],
    ) -> Fields:
        """Promises each branch the commit that is to land; returns what this one's says."""
        droids = [str(own["droid"]), *(each.offer.droid for each in members)]
        for each in members:
            Promises(self._place.folder, each.offer.tree).add(
                **said,
                head=each.offer.head,
                issue_id=each.offer.issue_id,
                changed=[*each.changed][:_MOST_FILES],
                joined=[asdict(each) for each in each.joined],
                landed_with=[droid for droid in droids if droid != each.offer.droid],
                record=work.record_of(each.offer),
            )
        changed = own["changed"]
        assert isinstance(changed, list)
        mine = {**said, **own, "changed": changed[:_MOST_FILES], "landed_with": droids[1:]}
        self.add(**mine)
        return mine
