"""What there is to show: read from the services at once, and again whenever it has changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from queenbee.core.records import Message
from queenbee.documents.folders import gates_dir, json_stamp
from queenbee.errors import InvalidInput, QueenError
from queenbee.git.collisions.comparing import compare
from queenbee.git.collisions.found import Collisions
from queenbee.services.waiting.landing_turn import lines_dir
from queenbee.services.work import Member, Status, status
from queenbee.store.droids import roster
from queenbee.store.files import stamp_of
from queenbee.store.git_files.worktrees import worktrees
from queenbee.store.safe_open import names_in
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.gating.gates import GateView, UnusableGate, gate_views
from queenbee.workflows.verifications import recent_verifications

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
        landing = lines_dir(hive)
        return (
            *(hive.stamp(kind) for kind in hive.kinds()),
            stamp_of(hive.rows_path()),
            json_stamp(gates_dir(layout)),
            names_in(layout.queue_dir),
            names_in(landing),
            *(names_in(os.path.join(landing, each)) for each in names_in(landing)),
            _times_in(layout.presence_dir),
            json_stamp(roster.folder(layout)),
        )

    def wait(self, stop: threading.Event, before: object, deadline_s: float) -> bool:
        """Returns True once the stamp is not `before` or `stop` is set, False at the deadline."""
        return self._hive.wait_for_change(
            lambda: (stop.is_set(), self.stamp()), (False, before), deadline_s
        )

    def _gate_views(self) -> Sequence[GateView | UnusableGate]:
        stamp = json_stamp(gates_dir(self._hive.layout))
        if self._gates is None or self._gates[0] != stamp:
            self._gates = stamp, gate_views(self._hive)
        return self._gates[1]


def _times_in(folder: str) -> object:
    """Returns when the files of a folder were last touched."""
    try:
        with os.scandir(folder) as entries:
            stats = [(each.name, each.stat(follow_symlinks=False)) for each in entries]
    except OSError:
        return None
    return sorted((name, each.st_mtime_ns) for name, each in stats)


_READ_AGAIN_S = 300.0
"""Time passes without events: a deferral ends, a clock is set right."""
_WHILE_SOMEONE_WAITS_S = 30.0
"""A waiter that was killed leaves no event: only a look shows that it is gone."""
_AFTER_REFUSAL_S = 3.0
_LEAST_S = 0.3
_SHARE = 4
"""After a read, rests so many times as long as that took: a busy hive takes a fifth of a processor
at most.
"""


class Follower(threading.Thread):
    """Gives the facts to `found` now and whenever they change, and refusals to `refused`."""

    def __init__(
        self, reader: Reader, found: Callable[[Facts], object], refused: Callable[[str], object]
    ) -> None:
        super().__init__(name="queen-watch-facts", daemon=True)
        self._reader = reader
        self._found = found
        self._refused = refused
        self._ended = threading.Event()

    def run(self) -> None:
        """Reads and waits until `end`."""
        while not self._ended.is_set():
            begun_s = time.monotonic()
            try:
                # Before reading, so that nothing written meanwhile is missed.
                stamp = self._reader.stamp()
                facts = self._reader.read()
                self._found(facts)
                took_s = time.monotonic() - begun_s
                self._ended.wait(max(_LEAST_S, _SHARE * took_s))
                someone = facts.status.queue or facts.status.landing
                again_s = _WHILE_SOMEONE_WAITS_S if someone else _READ_AGAIN_S
                self._reader.wait(self._ended, stamp, begun_s + again_s)
            except QueenError as error:
                self._refused(error.message)
                self._ended.wait(_AFTER_REFUSAL_S)

    def end(self) -> None:
        """Lets the thread end, within half a second."""
        self._ended.set()


def foreseen(hive: Hive) -> tuple[Collisions | None, str]:
    """Returns the conflicts between the worktrees, or None and why they were not compared."""
    try:
        if len(worktrees(hive.layout)) < 2:
            return None, "One worktree: nothing to compare."
        return compare(hive.layout), ""
    except InvalidInput:
        return None, "Not a git repository: nothing to compare."
    except QueenError as error:
        return None, error.message
