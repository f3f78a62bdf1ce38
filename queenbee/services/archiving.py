"""`queen hive rotate`: closed records move to the archive. Large ledgers do so by themselves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from queenbee.core.kinds import kind_of
from queenbee.errors import QueenError, Unwritable
from queenbee.store.carriers.write import add_hint
from queenbee.store.memory import rotation
from queenbee.store.memory.rotation import Rotation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.core.fold import Fields
    from queenbee.services.open_store import Store

MOST_BYTES = 64 * 1024 * 1024
"""A larger ledger is not rotated automatically: that would delay a command by seconds."""


def rotate(
    store: Store, kind: str, *, older_than_s: int | None = None, due_at: int | None = None
) -> Rotation:
    """Moves the records of a kind that have been closed for this long (default: the setting
    `archive_after`). With `due_at`, only if the ledger has at least that many bytes.

    Raises `Busy`, `Unwritable` and `Unreadable`; none of them loses anything.
    """
    if older_than_s is None:
        older_than_s = store.layout.settings.archive_after_s
    before_ms = store.now_ms() - older_than_s * 1000

    def is_closed(fields: Fields) -> bool:
        since_ms = kind_of(kind).closed_ms(fields)
        return since_ms is not None and since_ms <= before_ms

    memory = store.engine.ledgers
    if memory is None:
        return Rotation()
    if not memory.tracked(kind).size_bytes() and not memory.lacking(kind):
        return Rotation()
    more = {} if store.progress is None else {"progress": store.progress}
    with store.transaction():
        # Another process may have done it while this one waited for the lock.
        if due_at is not None and not rotation.is_due(memory, kind, due_at):
            return Rotation()
        try:
            return rotation.rotate(memory, kind, is_closed, **more)
        except Unwritable as error:
            add_hint(error, store.layout)
            raise


def rotate_what_is_due(store: Store, kinds: Iterable[str], *, whatever_size: bool = False) -> None:
    """Rotates the ledgers that have passed the limit in the settings.

    The command that calls this has done its own work, so errors are ignored here: the next command
    tries again.
    """
    limit = store.layout.settings.rotate_at_bytes
    most_bytes = sys.maxsize if whatever_size else MOST_BYTES
    for kind in kinds:
        memory = store.engine.ledgers
        if memory and limit and rotation.is_due(memory, kind, limit, most_bytes=most_bytes):
            try:
                rotate(store, kind, due_at=limit)
            except QueenError:
                return
