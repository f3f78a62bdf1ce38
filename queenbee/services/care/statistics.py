"""`queen hive stats`: how many records and lines there are, and how fast the ledgers grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.timestamps import instant_ms
from queenbee.store.engines.opening import INDEX_FROM_BYTES
from queenbee.store.files import size_of

if TYPE_CHECKING:
    from queenbee.services.open_store import Store

_WEEK_MS = 7 * 86_400_000


def statistics(store: Store) -> list[dict[str, object]]:
    """Returns for each ledger: `kind`, `records`, `size_bytes` of the tracked file, of its
    `journal_bytes`, of its `index_bytes` and of its `archive_bytes`, the number of `segments` in
    its archive, `last_week` (records created in it), `unusable`
    lines, and whether it is `indexed`.
    """
    return [_of_kind(store, kind) for kind in store.kinds()]


def _of_kind(store: Store, kind: str) -> dict[str, object]:
    state = store.state(kind)
    created = [instant_ms(value) or 0 for (value,) in state.project(("created_at",), {})]
    segments = state.ledger.archive.listing()
    since_ms = store.now_ms() - _WEEK_MS
    return {
        "kind": kind,
        "records": len(created),
        "last_week": sum(1 for instant in created if instant >= since_ms),
        "size_bytes": size_of(state.ledger.path),
        "journal_bytes": size_of(state.ledger.journal_path),
        "index_bytes": size_of(store.layout.index_path(kind)),
        "archive_bytes": sum(size for _, size, _ in segments.values()),
        "segments": len(segments),
        "indexed": state.ledger.size_bytes() >= INDEX_FROM_BYTES,
        "unusable": state.unusable,
    }
