"""What a worktree was promised: a commit that has its work once the target has that commit."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.git.landing.work import ASKED
from queenbee.services.waiting.landing_steps import Promises
from queenbee.store import safe_open, waiting_line
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.fold import Fields
    from queenbee.git.landing.place import Place
    from queenbee.git.landing.work import Offer

_AGAIN_S = 0.02


def has_landed(place: Place, offer: Offer) -> bool:
    """Returns whether the target has a commit that was promised to another worktree for what it
    offers: it is about to leave the line.
    """
    promises = Promises(place.folder, offer.tree).all()
    return any(each.get("head") == offer.head and _landed(place, each) for each in promises)


def _landed(place: Place, promise: Fields) -> str | None:
    """Returns the commit by which the target has what was promised; None if it has not."""
    commit, before = (str(promise.get(name) or "") for name in ("commit", "before"))
    return place.landed_as(commit, before)


class Promised(Promises):
    """The promises to one worktree, and those that it gives as the leader of others."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.folder, place.tree)
        self._place = place
        self._asked = os.path.join(place.git_dir, ASKED)

    def ask(self, head: str, offer: Mapping[str, object] | None) -> None:
        """Notes which commit of this worktree is to land, on which of the target, and what others
        need to land it.
        """
        keep(self._asked, {**(offer or {"head": head}), "target": self._place.tip()})

    def kept(self) -> Fields | None:
        """Returns the promise that was kept, if there is one, of what was asked here."""
        said = recall(self._asked)
        head = said.get("head") if isinstance(said, dict) else None
        for each in (each for each in self.all() if head and each.get("head") == head):
            landed = _landed(self._place, each)
            if landed and self._has(landed, str(head), said.get("target")):
                return {**each, "commit": landed, "is_amended": landed != each.get("commit")}
        return None

    def _has(self, landed: str, head: str, target: object) -> bool:
        """Returns whether a commit may have the work of another one, because it contains that, or
        was made since it was to land: the target did not have it then.
        """
        is_ancestor = self._place.is_ancestor
        return is_ancestor(head, landed) or not is_ancestor(landed, str(target))

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
