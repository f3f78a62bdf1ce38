"""Our bytes on disk: where they are, how they are appended, and how they are read back.

`layout` says where everything is, `settings` what is configured and `identity` who acts; `lock`
admits one writer at a time. `ledger` is the files of one kind of record, `state` their fold in
memory and `index` the same on disk; `questions` is what services may ask of either. `engines` are
the places where lines are kept. `whole_files` are whole files, `files` append-only ones.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.engines.opening import open_records as open_records
    from queenbee.store.ledger import Ledger as Ledger
    from queenbee.store.questions import Records as Records

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "ledger": "Ledger",
        "engines.opening": "open_records",
        "questions": "Records",
    },
)
