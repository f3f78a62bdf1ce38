"""Who holds what, and who waits for it: the reservations with the queue beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.leases import is_live
from queenbee.core.queue import Want
from queenbee.core.records import Reservation
from queenbee.core.timestamps import format_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.core.queue import Waiter
    from queenbee.services.open_store import Store
    from queenbee.services.waiting.queue import Queue


@dataclass(frozen=True, slots=True)
class InLine:
    """A waiter, and those whom it has to let go first."""

    waiter: Waiter
    behind: Sequence[Waiter]


@dataclass(frozen=True, slots=True)
class Board:
    """Reservations, and everybody who waits for some."""

    reservations: Sequence[Reservation]
    waiters: Sequence[InLine]

    def to_dict(self) -> list[Reservation]:
        """Returns the reservations; those that somebody waits for have `waiters`."""
        return list(self.reservations)


def board(
    store: Store,
    queue_of: Callable[[], Queue],
    seen: Callable[[str], int | None],
    found: Sequence[Reservation],
) -> Board:
    """Returns these reservations with those who wait for them, and everybody who waits.

    A live one says when its droid was last seen.
    """
    seen_ms = {each: seen(each) for each in {lease.droid for lease in found if is_live(lease)}}
    found = [_seen(lease, seen_ms.get(lease.droid)) for lease in found]
    if not store.layout.may_have_waiters():
        return Board(found, [])
    queue = queue_of()
    line = [InLine(each, queue.before(each)) for each in queue.everything() if each.want.patterns]
    marked = []
    for lease in found:
        wanted = Want.of(lease)
        waiters = queue.waiting_for(wanted, droid=lease.droid) if is_live(lease) else []
        fields = {**lease.fields, "waiters": [each.to_dict() for each in waiters]}
        marked.append(Reservation(fields) if waiters else lease)
    return Board(marked, line)


def _seen(lease: Reservation, seen_ms: int | None) -> Reservation:
    if seen_ms is None or not is_live(lease):
        return lease
    return Reservation({**lease.fields, "last_seen_at": format_ms(seen_ms)})
