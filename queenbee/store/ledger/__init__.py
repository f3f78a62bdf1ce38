"""Append-only files of lines: the tracked ledger, the journal behind it, and the archive.

`codec` decides which bytes are a usable line, `journal` and `ledger` read and append, and `batch`
is what a reader gets. `rotation` moves closed records to segments, which `archive` reads.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.ledger.batch import Batch as Batch
    from queenbee.store.ledger.batch import Position as Position
    from queenbee.store.ledger.ledger import Ledger as Ledger
    from queenbee.store.ledger.ledger import Receipt as Receipt
    from queenbee.store.ledger.rotation import Rotation as Rotation
    from queenbee.store.ledger.rotation import rotate as rotate

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "batch": "Batch Position",
        "ledger": "Ledger Receipt",
        "rotation": "Rotation rotate",
    },
)
