"""After an edit: whether it would conflict with what others edit in their own worktrees.

Only what somebody announced there is compared. The agent is told once, with the lines and whom to
ask, and again if other lines meet.
"""

from __future__ import annotations

import os
from binascii import crc32

from queenbee.core.text import mentioned, one_line, suggested
from queenbee.git.collisions.foreseen import foresee, keep, recall
from queenbee.git.collisions.lines import shown
from queenbee.hook import answers
from queenbee.store.git_files.worktrees import worktrees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.core.records import Reservation
    from queenbee.git.collisions.foreseen import Foreseen
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.store.git_files.worktrees import Worktree

_MOST_CHARS = 80
_PATH_CHARS = 200
_PLACES = 3


def answer(event: Event, hive: Services, statuses: Iterable[PathStatus]) -> Answer | None:
    """Returns what to tell the agent of conflicts that its edit leads to, or None."""
    if not answers.reads_context(event):
        return None
    lines: list[str] = []
    places = worktrees(hive.layout)
    here = next((each for each in places if each.path == hive.layout.tree), None)
    if here is None:
        return None
    for status in statuses:
        others = _announced(status.leases, places, here)
        lines += [
            _told(hive, status.path, each, others[each.place].droid)
            for each in foresee(hive.layout, here, status.path, others)
            if _is_new(hive, event, status.path, each)
        ]
    return answers.context(event, "\n".join(lines)) if lines else None


def _announced(
    leases: Iterable[Reservation], places: Sequence[Worktree], here: Worktree
) -> dict[Worktree, Reservation]:
    """Returns the other worktrees in which somebody announced an edit, each with the lease."""
    found: dict[Worktree, Reservation] = {}
    for lease in leases:
        if lease.exclusive:
            continue
        branch = lease.fields.get("branch")
        # Two worktrees may have folders of one name, but a branch is checked out once.
        of_branch = [each for each in places if branch and each.branch == branch]
        named = [each for each in places if _name(each) == lease.worktree]
        for place in (of_branch or named)[:1]:
            if place is not here:
                found.setdefault(place, lease)
    return found


def _name(place: Worktree) -> str | None:
    return os.path.basename(place.path) if place.linked else None


def _told(hive: Services, path: str, each: Foreseen, droid: str) -> str:
    where = each.place.branch or os.path.basename(each.place.path)
    name = mentioned(one_line(droid, _MOST_CHARS))
    about = f"About {one_line(path, _PATH_CHARS)}: ..."
    to = one_line(droid, _MOST_CHARS)
    ask = suggested("queen msg send", to, about, as_=hive.actor_or_none)
    what = "both of you added it"
    if each.lines:
        more = "" if len(each.lines) <= _PLACES else f", and {len(each.lines) - _PLACES} more"
        what = "; ".join(
            f"your lines {shown(one.a)} against theirs {shown(one.b)}"
            for one in each.lines[:_PLACES]
        )
        what += more
    return (
        f"Your change of {mentioned(one_line(path, _PATH_CHARS))} would conflict with that of "
        f"{name} on {mentioned(one_line(where, _MOST_CHARS))}: {what}. Nothing is lost, but one "
        f"of you will have to merge it. Agree on it now: {ask}"
    )


def _is_new(hive: Services, event: Event, path: str, each: Foreseen) -> bool:
    """Returns whether the agent was not told of these lines yet; remembers it."""
    about = os.fsencode(f"{event.session} {hive.layout.tree} {each.place.path} {path}")
    folder = os.path.join(hive.layout.state_dir, "collisions", "told")
    kept = os.path.join(folder, f"{crc32(about):08x}")
    met = repr([one.base for one in each.lines]).encode()
    if recall(kept, about) == met:
        return False
    keep(kept, about, met)
    return True
