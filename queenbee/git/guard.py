"""The git guard: which changes another droid holds, and whether they may pass all the same.

It looks at exclusive leases only: who reads a file is not harmed by a commit. Its own files
are everybody's.
"""

from __future__ import annotations

import os

from queenbee.core.glob.index import GlobIndex
from queenbee.core.timestamps import format_duration
from queenbee.errors import InvalidInput
from queenbee.services.leases.edits import is_exempt
from queenbee.store.layout import git_tree
from queenbee.store.logbook import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from queenbee.core.records import Reservation
    from queenbee.workflows.hive import Hive

VARIABLE = "QUEEN_GUARD"
ON, WARN, OFF = "on", "warn", "off"
NOBODY = "human"
"""Who commits without a name: a person."""


class Refusal:
    """A changed path and the lease of another droid that covers it."""

    __slots__ = ("lease", "now_ms", "path")

    def __init__(self, path: str, lease: Reservation, now_ms: int) -> None:
        self.path = path
        self.lease = lease
        self.now_ms = now_ms

    @property
    def left(self) -> str:
        """How much longer the lease lasts, for people."""
        return format_duration((self.lease.expires_ms - self.now_ms) / 1000)

    def to_dict(self) -> dict[str, object]:
        """Returns what is held, by whom, why, and for how long."""
        lease = self.lease
        return {
            # What is no UTF-8 has no place in JSON: its bytes are spelled out.
            "path": os.fsencode(self.path).decode(errors="backslashreplace"),
            "droid": lease.droid,
            "pattern": lease.pattern,
            "id": lease.id,
            "issue_id": lease.issue_id,
            "reason": lease.reason,
            "expires_at": lease.expires_at,
            "seconds_left": max(0, (lease.expires_ms - self.now_ms) // 1000),
        }


def refusals(hive: Hive, paths: Iterable[str]) -> list[Refusal]:
    """Returns the paths from the root that another droid holds exclusively, each with its lease.

    Who has no name counts as `human`, and may commit what an agent's session edited in this
    very worktree: a session reserves each file that it edits, and the person beside it commits
    its work.
    """
    actor, nameless = hive.actor_or_none or NOBODY, hive.actor_or_none is None
    held = {
        lease.id: lease
        for lease in hive.reservations.find()
        if lease.exclusive
        and lease.droid != actor
        and not (nameless and lease.session and lease.worktree == hive.layout.worktree)
    }
    if not held:
        return []
    index = GlobIndex(fold_case=hive.reservations.fold_case)
    for lease in held.values():
        index.add(lease.id, lease.pattern)
    now_ms = hive.now_ms()
    return [
        Refusal(path, held[key], now_ms)
        for path in paths
        if not is_exempt(hive.layout, path)
        for key in sorted(index.covering(path))[:1]
    ]


def mode(env: Mapping[str, str]) -> str:
    """Returns what `QUEEN_GUARD` says: `on`, `warn` or `off`. Raises `InvalidInput`."""
    said = env.get(VARIABLE) or ON
    if said not in (ON, WARN, OFF):
        raise InvalidInput(f"{VARIABLE} is {said!r}", hint="set it to warn or off, or unset it")
    return said


def log_bypass(hive: Hive | None, cwd: str, text: str) -> bool:
    """Notes in the hive's state what passed the guard; returns whether that was possible."""
    if hive is not None:
        return note(hive.layout.state_dir, "guard", text)
    home = git_tree(os.path.realpath(cwd))
    return home is not None and note(os.path.join(home.common_dir, "queenbee"), "guard", text)
