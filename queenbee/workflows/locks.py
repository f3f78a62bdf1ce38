"""Who keeps others from the documents of a hive: a lock to rewrite them, one for each loop over a
bead, and a `queen start` that has a bead in hand.

A gate may run several times at once; its lock is shared, and only says that a run goes on.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from queenbee.checks.verification import slug
from queenbee.core.text import suggested
from queenbee.documents.folders import lock_path, run_lock_path
from queenbee.errors import Busy, Conflict, Unwritable
from queenbee.services.hive import Services
from queenbee.store import creating, safe_open
from queenbee.store.droids import roster
from queenbee.store.lock import LongLock, is_held


def documents_lock(hive: Services) -> Callable[[], AbstractContextManager[object]]:
    """Returns the lock that keeps other processes from rewriting a bead or a gate."""

    def lock() -> AbstractContextManager[object]:
        creating.make_state_dir(hive.layout)
        return LongLock(
            lock_path(hive.layout),
            holder=hive.actor_or_none or "somebody",
            timeout_s=hive.layout.settings.lock_timeout_s,
        )

    return lock


@contextmanager
def run_lock(hive: Services, bead_id: str) -> Iterator[None]:
    """Allows only one loop over a bead: two would mix up attempts and undo each other's changes.

    Raises `Busy`, which names the holder, at once.
    """
    creating.make_state_dir(hive.layout)
    path = _run_lock(hive, bead_id)
    with ExitStack() as held:
        try:
            holder = hive.actor_or_none or "somebody"
            held.enter_context(LongLock(path, holder=holder, timeout_s=0))
        except Busy as error:
            note = error.details.get("holder")
            who = (
                f"{note['holder']} (process {note['pid']})"
                if isinstance(note, dict) and note
                else "another process"
            )
            raise Busy(
                f"{bead_id} is being run by {who}",
                hint="wait until it ends, or stop it",
                bead_id=bead_id,
                holder=note,
            ) from error
        yield


@contextmanager
def gate_runs(hive: Services, workflow_id: str, phase_id: str) -> Iterator[None]:
    """Marks a gate as running; the kernel removes the mark when the process ends.

    Raises `Unwritable`.
    """
    creating.make_state_dir(hive.layout)
    path = _run_lock(hive, f"{workflow_id}/{phase_id}")
    try:
        fd = safe_open.open_file(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_SH)
    except OSError as error:
        reason = f"the lock {path} cannot be opened: {error.strerror}"
        raise Unwritable(reason, path=path) from error
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def gate_is_running(hive: Services, workflow_id: str, phase_id: str) -> bool:
    """Returns whether a run of a gate goes on, as far as this machine can tell; writes nothing."""
    return is_held(_run_lock(hive, f"{workflow_id}/{phase_id}"), shared=True)


def refuse_in_hand(hive: Services, bead_id: str) -> None:
    """Raises `Conflict` for a bead that a team works on, whoever asks: only the `queen start` that
    looks after it records what was made and judged.
    """
    entries = [
        each
        for each in roster.of_issue(hive.layout, bead_id)
        if each.team and not each.is_looked_after_here
    ]
    if not entries:
        return
    held = hive.assignments.active(bead_id)
    if any(each.is_judged or (held is not None and held.droid == each.name) for each in entries):
        raise Conflict(
            f"{bead_id} is in the hands of queen start, which alone records its history",
            hint=f"wait until it has ended: {suggested('queen bead show', bead_id)}",
        )


def _run_lock(hive: Services, name: str) -> str:
    return run_lock_path(hive.layout, slug(name), zlib.crc32(name.encode(errors="replace")))
