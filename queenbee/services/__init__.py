"""The rules of each subject over one open store: messages, assignments, reservations, issues.

A service takes the store and the services that it needs; `hive` composes them. `leases` are the
reservations, and `care` looks after a hive's files.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.services.assignments import Assignments as Assignments
    from queenbee.services.diagnosis import Diagnosis as Diagnosis
    from queenbee.services.document_questions import Documents as Documents
    from queenbee.services.droids import Droids as Droids
    from queenbee.services.hive import Services as Services
    from queenbee.services.issues import Issues as Issues
    from queenbee.services.leases.reservations import PathStatus as PathStatus
    from queenbee.services.leases.reservations import Reservations as Reservations
    from queenbee.services.messages import Messages as Messages
    from queenbee.services.nudges import Nudges as Nudges
    from queenbee.services.open_store import Store as Store
    from queenbee.services.waiting.queue import Queue as Queue
    from queenbee.services.writing.transaction import Transaction as Transaction

exports(
    __name__,
    {
        "assignments": "Assignments",
        "diagnosis": "Diagnosis",
        "document_questions": "Documents",
        "droids": "Droids",
        "hive": "Services",
        "issues": "Issues",
        "leases.reservations": "PathStatus Reservations",
        "messages": "Messages",
        "nudges": "Nudges",
        "waiting.queue": "Queue",
        "open_store": "Store",
        "writing.transaction": "Transaction",
    },
)
