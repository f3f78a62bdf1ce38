"""The hives that this user has opened, and what is going on in each.

`~/.local/state/queenbee/hives/` has a file for each of them, so that two commands never write the
same one. What is in it can be lost: the next look at that hive notes it again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.core.text import suggested
from queenbee.errors import NotFound, QueenError
from queenbee.library.hive import Hive
from queenbee.store.safe_open import names_in, unlink
from queenbee.store.trust import state_home
from queenbee.store.whole_files import keep, recall
from queenbee.workflows.people import wants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.services.telling.people import Want
    from queenbee.store.layout import Layout

_MOST_BYTES = 2**14


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What is going on in one hive."""

    root: str
    at_work: Sequence[tuple[str, str]] = ()
    """Each droid that has an issue, and the issue."""
    wants: Sequence[Want] = ()
    """What waits for a person."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many issues are in each state."""
    problem: str = ""
    """Why nothing is known of it."""

    @property
    def name(self) -> str:
        """What people call it."""
        return os.path.basename(self.root)

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "root": self.root,
            "at_work": [{"droid": who, "issue_id": what} for who, what in self.at_work],
            "wants": [each.to_dict() for each in self.wants],
            "counts": self.counts,
            "problem": self.problem or None,
        }


def remember(layout: Layout) -> None:
    """Notes that the user has opened a hive. Never fails."""
    try:
        path = _path(layout.beads_dir)
        if not os.path.exists(path):
            keep(path, [layout.root, layout.beads_dir])
    except (OSError, QueenError):
        return


def forget(place: str) -> str:
    """Forgets the hive that a folder is the root of, or whose `.beads` it is; returns its root.
    Raises `NotFound`.
    """
    wanted = os.path.realpath(os.path.expanduser(place))
    for root, beads_dir in _known():
        if wanted in (os.path.realpath(root), os.path.realpath(beads_dir)):
            unlink(_path(beads_dir))
            return root
    raise NotFound(f"no hive was opened in {wanted}", hint="queen status --all")


def way_elsewhere(here: str | None) -> str:
    """Returns the hint for a folder without a hive, with what helps `here`: the way to the hives
    that this user has opened comes first.
    """
    there = "for one of your hives: queen status --all, and cd there" if _known() else ""
    return "; or ".join(filter(None, (there, here)))


def glimpses(places: Sequence[str] = (), *, droid: str | None = None) -> list[Glimpse]:
    """Returns what is going on in the hives in these folders; without any, in all that this user
    has opened. `droid` is who looks, if not the one whom each knows.
    """
    if not places:
        return [_glimpse(root, beads_dir, droid) for root, beads_dir in sorted(_known())]
    return [_glimpse(os.path.abspath(os.path.expanduser(each)), None, droid) for each in places]


def _glimpse(place: str, beads_dir: str | None, droid: str | None) -> Glimpse:
    try:
        with Hive.open(place, beads_dir=beads_dir, droid=droid) as hive:
            at_work = [(each.droid, each.issue_id) for each in hive.assignments.find()]
            return Glimpse(hive.layout.root, at_work, [*wants(hive)], hive.issues.counts())
    except (QueenError, OSError) as error:
        forgets = f"; {suggested('queen hive forget', place)}" if beads_dir is not None else ""
        return Glimpse(place, problem=f"{error}{forgets}")


def _known() -> list[tuple[str, str]]:
    """Returns the root and the `.beads` of each hive that was opened."""
    try:
        folder = _folder()
        found = [recall(os.path.join(folder, each), _MOST_BYTES) for each in names_in(folder)]
    except (OSError, QueenError):
        return []
    return [(one[0], one[1]) for one in found if isinstance(one, list) and len(one) == len("rb")]


def _folder() -> str:
    return os.path.join(state_home(), "queenbee", "hives")


def _path(beads_dir: str) -> str:
    return os.path.join(_folder(), sha256(os.fsencode(beads_dir)).hexdigest()[:32])
