"""What there is to show: read from the services at once, and whether it has changed since."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.documents.folders import gates_dir, json_stamp
from queenbee.services.work import status
from queenbee.store.droids import roster
from queenbee.store.files import stamp_of
from queenbee.store.safe_open import names_in
from queenbee.workflows.gating.gates import gate_views
from queenbee.workflows.verifications import recent_verifications

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from queenbee.core.records import Message
    from queenbee.services.work import Member, Status
    from queenbee.workflows.gating.gates import GateView, UnusableGate
    from queenbee.workflows.hive import Hive

MOST_MAIL = 50
"""The messages that are shown; older ones are in `queen msg inbox` and in their threads."""
_MOST_RUNS = 20


@dataclass(frozen=True)
class Facts:
    """The hive at one moment."""

    status: Status
    mail: Sequence[Message]
    """The newest messages of the whole hive, newest first."""
    gates: Sequence[GateView | UnusableGate]
    runs: Sequence[Mapping[str, object]]
    """The newest runs of checks, newest first."""
    seen: Mapping[str, int]
    """The droids that have acted on this machine, and when last, in ms since 1970."""
    quiet_after_ms: int
    """After how long without a sign of life a droid is quiet."""

    @property
    def members(self) -> list[Member]:
        """The droids that have an issue or a lease, the actor first."""
        me = self.status.me
        return [*([me] if me is not None else []), *self.status.others]


class Reader:
    """Reads the facts of an open hive, and waits until they change."""

    def __init__(self, hive: Hive) -> None:
        self._hive = hive
        self._gates: tuple[object, Sequence[GateView | UnusableGate]] | None = None

    def read(self) -> Facts:
        """Returns what there is now. Raises `QueenError`."""
        hive = self._hive
        return Facts(
            status=status(hive).read_all(),
            mail=hive.messages.recent(limit=MOST_MAIL),
            gates=self._gate_views(),
            runs=recent_verifications(hive, limit=_MOST_RUNS),
            seen=hive.droids.seen_here(),
            quiet_after_ms=hive.layout.settings.quiet_after_s * 1000,
        )

    def stamp(self) -> tuple[object, ...]:
        """Returns a value that differs once anything was written that `read` would show."""
        hive, layout = self._hive, self._hive.layout
        return (
            *(hive.state(kind).ledger.stamp() for kind in hive.kinds()),
            stamp_of(layout.issues_path),
            json_stamp(self._gates_dir),
            names_in(layout.queue_dir),
            *(names_in(each) for each in self._landing_dirs()),
            _times_in(layout.presence_dir),
            json_stamp(roster.folder(layout)),
        )

    def wait(self, stop: threading.Event, before: object, deadline_s: float) -> bool:
        """Returns True once the stamp is not `before` or `stop` is set, False at the deadline."""
        return self._hive.wait(lambda: (stop.is_set(), self.stamp()), (False, before), deadline_s)

    @property
    def _gates_dir(self) -> str:
        return gates_dir(self._hive.layout)

    def _gate_views(self) -> Sequence[GateView | UnusableGate]:
        stamp = json_stamp(self._gates_dir)
        if self._gates is None or self._gates[0] != stamp:
            self._gates = stamp, gate_views(self._hive)
        return self._gates[1]

    def _landing_dirs(self) -> list[str]:
        top = os.path.join(self._hive.layout.state_dir, "landing")
        return [top, *(os.path.join(top, each) for each in names_in(top))]


def _times_in(folder: str) -> object:
    """Returns when the files of a folder were last touched."""
    try:
        with os.scandir(folder) as entries:
            stats = [(each.name, each.stat(follow_symlinks=False)) for each in entries]
    except OSError:
        return None
    return sorted((name, each.st_mtime_ns) for name, each in stats)
