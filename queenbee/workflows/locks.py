"""Locks of a hive that documents need: one to rewrite them, and one for each loop over a bead."""

from __future__ import annotations

import zlib
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from queenbee.checks.evidence import slug
from queenbee.documents.folders import lock_path, run_lock_path
from queenbee.errors import Busy
from queenbee.store import setup
from queenbee.store.lock import LongLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from queenbee.services.hive import Services


def documents_lock(hive: Services) -> Callable[[], AbstractContextManager[object]]:
    """Returns the lock that keeps other processes from rewriting a bead or a gate."""

    def lock() -> AbstractContextManager[object]:
        setup.make_state_dir(hive.layout)
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
    setup.make_state_dir(hive.layout)
    path = run_lock_path(hive.layout, slug(bead_id), zlib.crc32(bead_id.encode(errors="replace")))
    with ExitStack() as held:
        try:
            held.enter_context(LongLock(path, holder=hive.actor_or_none or "somebody", timeout_s=0))
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
