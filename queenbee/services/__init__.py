"""The rules of each subject over one open store: messages, assignments, reservations, issues.

A service takes the store and the services that it needs; `hive` composes them. `leases` are the
reservations, and `care` looks after a hive's files.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.diagnosis import Diagnosis as Diagnosis
    from queenbee.services.documents import Documents as Documents
    from queenbee.services.hive import Services as Services
    from queenbee.services.store import Store as Store
    from queenbee.services.transaction import Transaction as Transaction

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "diagnosis": "Diagnosis",
        "documents": "Documents",
        "hive": "Services",
        "store": "Store",
        "transaction": "Transaction",
    },
)
