"""Worktrees that have done their work: those of which nothing would be lost go, one by one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import QueenError
from queenbee.git.ownership import worktree_note
from queenbee.git.worktrees.worktree_care import places, refuse_claimed, remove
from queenbee.store import safe_open
from queenbee.store.droids import roster

if TYPE_CHECKING:
    from collections.abc import Collection

    from queenbee.git.worktrees.worktree_care import Place, Removed
    from queenbee.services.hive import Services


@dataclass(frozen=True, slots=True)
class Kept:
    """A worktree that stays, and why."""

    path: str
    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """What became of the worktrees that QueenBee has made."""

    removed: list[Removed] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


def prune(hive: Services, *, droids: Collection[str] | None = None) -> Pruned:
    """Removes the worktrees that QueenBee made and in which something was done, if all of it has
    landed, by whatever commit, as `remove` does without force; only those of some droids, if they
    are given. The others stay, each with the reason: that of `remove`, or that its droid is there.
    """
    pruned = Pruned()
    for place in places(hive):
        note = worktree_note(place.found) if place.linked else None
        if note is None or (droids is not None and place.droid not in droids):
            continue
        if note.adopted or note.keeps_work:
            pruned.kept.append(Kept(place.path, "it was handed over by a person", ""))
            continue
        try:
            refuse_claimed(hive, place)
            if why := _in_use(hive, place, asks=droids is None):
                way = suggested("queen worktree remove", place.name)
                pruned.kept.append(Kept(place.path, why, f"{way}, which says what would be lost"))
            else:
                pruned.removed.append(remove(hive, place.path))
        except (QueenError, OSError) as error:
            hint = error.hint if isinstance(error, QueenError) else None
            pruned.kept.append(Kept(place.path, str(error), hint or ""))
    return pruned


def _in_use(hive: Services, place: Place, *, asks: bool) -> str:
    """Returns why a worktree may be needed, although nothing in it would be lost; or nothing."""
    log = os.path.join(str(hive.layout.common_dir), "logs", "refs", "heads", str(place.branch))
    try:
        moves = safe_open.read(log).count(b"\n")
    except (OSError, QueenError):
        moves = 0
    # A worktree on no branch was used: what it has is looked at.
    if moves < 2 and place.branch and not place.changed and place.issue_id is None:
        return "nothing was done in it yet"
    droid = place.droid
    seen_ms = hive.droids.seen_ms(droid) if asks and droid is not None else None
    if droid is None or seen_ms is None or hive.droids.is_quiet(droid):
        return ""
    if seen_ms <= roster.ended_ms(hive.layout, droid):  # It has ended with its team.
        return ""
    ago = format_duration((hive.now_ms() - seen_ms) / 1000)
    patience = format_duration(hive.droids.patience_s(droid))
    return f"{droid} was there lately, {ago} ago: it can go {patience} after that"
