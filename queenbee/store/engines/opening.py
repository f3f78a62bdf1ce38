"""Chooses how to read a ledger: through an index on disk if it is large, else by the fold."""

from __future__ import annotations

import os

from queenbee._light import suppress
from queenbee.store.state import Folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.ledger.ledger import Ledger
    from queenbee.store.questions import Progress, Records

INDEX_FROM_BYTES = 64 * 1024
"""For a ledger of this size or more, an index is faster than the fold: see ADR 0006."""


def open_records(
    kind: str, ledger: Ledger, index_path: str, *, progress: Progress | None = None
) -> Records:
    """Returns the state of a ledger: from an index if it is large, else folded in memory."""
    if os.environ.get("QUEEN_INDEX") != "off" and ledger.size_bytes() >= INDEX_FROM_BYTES:
        from queenbee.store.index import sqlite  # noqa: PLC0415 - start-up
        from queenbee.store.index.indexed import Indexed  # noqa: PLC0415 - start-up

        # The state is not writable, or another process is building it: folding works.
        with suppress(sqlite.Error, OSError):
            indexed = Indexed(kind, ledger, index_path, progress=progress)
            try:
                indexed.refresh()
            except BaseException:
                indexed.close()
                raise
            found: Records = indexed
            return found
    return Folded(kind, ledger)
