"""`queen rotate`: closed records move to the archive, by themselves where a ledger grows large."""

from __future__ import annotations

from queenbee.core.closing import closed_ms
from queenbee.errors import QueenError, Unwritable
from queenbee.services.transaction import add_hint
from queenbee.store.ledger import rotation
from queenbee.store.ledger.rotation import Rotation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.core.fold import Fields
    from queenbee.services.hive import Hive

MOST_BYTES = 64 * 1024 * 1024
"""A larger ledger is not rotated in passing: it would keep a command waiting for seconds."""


def rotate(
    hive: Hive, kind: str, *, older_than_s: int | None = None, due_at: int | None = None
) -> Rotation:
    """Moves the records of a kind that were closed so long ago (default: as the settings say);
    with `due_at`, only from this size in bytes on.

    Raises `Busy`, `Unwritable` and `Unreadable`; nothing is lost by any of them.
    """
    if older_than_s is None:
        older_than_s = hive.layout.settings.archive_after_s
    before_ms = hive.now_ms() - older_than_s * 1000

    def is_closed(fields: Fields) -> bool:
        since_ms = closed_ms(kind, fields)
        return since_ms is not None and since_ms <= before_ms

    if not hive.ledger(kind).size_bytes():
        return Rotation()
    with hive.transaction():
        # Whoever waited for its turn may find that another one has done it.
        if due_at is not None and not rotation.is_due(hive.ledger(kind), due_at):
            return Rotation()
        state = hive.state(kind)
        try:
            done = rotation.rotate(state.ledger, is_closed, state.agreed)
        except Unwritable as error:
            add_hint(error, hive.layout)
            raise
        hive.state(kind).agree(done.agreed)
    return done


def rotate_what_is_due(hive: Hive, kinds: Iterable[str]) -> None:
    """Rotates the ledgers that have passed the limit in the settings.

    The command that comes by has done its own work: what keeps this from being done is not its
    business, and the next one tries again.
    """
    limit = hive.layout.settings.rotate_at_bytes
    for kind in kinds:
        ledger = hive.ledger(kind)
        if limit and rotation.is_due(ledger, limit, most_bytes=MOST_BYTES):
            try:
                rotate(hive, kind, due_at=limit)
            except QueenError:
                return
