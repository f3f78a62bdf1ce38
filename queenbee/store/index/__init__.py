"""The SQLite index over one large ledger: a cache that you can delete at any time. ADR 0006.

`indexed` answers questions and `search` finds words in messages. `tables` has the schema;
`intake` brings the tables up to date with journal and ledger, and `segments` with the archive.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.index.indexed import Indexed as Indexed
    from queenbee.store.index.search import find_text as find_text
    from queenbee.store.index.tables import remove as remove

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "indexed": "Indexed",
        "search": "find_text",
        "tables": "remove",
    },
)
