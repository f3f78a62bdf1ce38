"""`queen rotate`: closed records move to the archive. Large ledgers are rotated automatically."""

from __future__ import annotations

from queenbee.core.kinds import kind_of
from queenbee.errors import QueenError, Unwritable
from queenbee.store.engines.files_turn import add_hint
from queenbee.store.files import size_of
from queenbee.store.ledger import rotation
from queenbee.store.ledger.rotation import Rotation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from queenbee.core.fold import Fields
    from queenbee.services.store import Store
    from queenbee.store.ledger.batch import Position
    from queenbee.store.ledger.ledger import Ledger

MOST_BYTES = 64 * 1024 * 1024
"""A larger ledger is not rotated automatically: that would delay a command by seconds."""


def rotate(
    store: Store, kind: str, *, older_than_s: int | None = None, due_at: int | None = None
) -> Rotation:
    """Moves the records of a kind that have been closed for this long (default: the setting
    `archive_after`). With `due_at`, only if the ledger has at least that many bytes.

    Raises `Busy`, `Unwritable` and `Unreadable`; none of them loses anything.
    """
    is_closed = closing(store, kind, older_than_s=older_than_s)
    if not (store.engine.archives and store.ledger(kind).size_bytes()):
        return Rotation()
    with store.transaction():
        # Another process may have done it while this one waited for the lock.
        if due_at is not None and not rotation.is_due(store.ledger(kind), due_at):
            return Rotation()
        if size_of(store.ledger(kind).path) > MOST_BYTES:
            # Its index would be built for this, and again for what comes of it.
            return _rotated(store, store.ledger(kind), is_closed, None)
        state = store.state(kind)
        done = _rotated(store, state.ledger, is_closed, state.agreed)
        store.state(kind).agree(done.agreed)
    return done


def closing(
    store: Store, kind: str, *, older_than_s: int | None = None
) -> Callable[[Fields], bool]:
    """Returns the rule which records of a kind have been closed for so long."""
    if older_than_s is None:
        older_than_s = store.layout.settings.archive_after_s
    before_ms = store.now_ms() - older_than_s * 1000

    def is_closed(fields: Fields) -> bool:
        since_ms = kind_of(kind).closed_ms(fields)
        return since_ms is not None and since_ms <= before_ms

    return is_closed


def _rotated(
    store: Store, ledger: Ledger, is_closed: Callable[[Fields], bool], agreed: Position | None
) -> Rotation:
    try:
        return rotation.rotate(ledger, is_closed, agreed)
    except Unwritable as error:
        add_hint(error, store.layout)
        raise


def rotate_what_is_due(store: Store, kinds: Iterable[str]) -> None:
    """Rotates the ledgers that have passed the limit in the settings.

    The command that calls this has done its own work, so errors are ignored here: the next command
    tries again.
    """
    limit = store.layout.settings.rotate_at_bytes
    for kind in kinds:
        ledger = store.ledger(kind)
        if limit and rotation.is_due(ledger, limit, most_bytes=MOST_BYTES):
            try:
                rotate(store, kind, due_at=limit)
            except QueenError:
                return
