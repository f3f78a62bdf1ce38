"""Reservations of files: granting, waiting, releasing, and asking who holds a path.

`reservations` is the service. `granting` writes leases, `live` finds those that overlap or cover,
`paths` reads what a user typed, and `edits` leases what agents change.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.leases.reservations import PathStatus as PathStatus
    from queenbee.services.leases.reservations import Reservations as Reservations


__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "reservations": "PathStatus Reservations",
    },
)
