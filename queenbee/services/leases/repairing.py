"""Leases that a wrong clock granted or ended: found, and repaired by new lines. ADR 0021."""

from __future__ import annotations

from queenbee.core import leases
from queenbee.core.leases import ended_absurdly, held_absurdly, repaired_end_ms
from queenbee.core.records import Reservation
from queenbee.core.timestamps import format_ms
from queenbee.services.leases.live import KIND
from queenbee.services.messages import stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.leases.granting import LeaseWriter
    from queenbee.store.questions import Records

_REASON = "a wrong clock granted it"


def absurd(
    state: Records, now_ms: int, present_ms: int
) -> tuple[list[Reservation], list[Reservation]]:
    """Returns the leases that a wrong clock granted and that have not ended, superseded ones
    included, and the released ones that say that they end in the future; oldest first.
    """
    active = [leases.as_of(fields, now_ms) for fields in state.select({"status": "active"})]
    released = map(Reservation, state.select({"status": "released"}))
    held = [lease for lease in active if held_absurdly(lease, present_ms)]
    return held, [lease for lease in released if ended_absurdly(lease, present_ms)]


def repair(writer: LeaseWriter, *, by: str) -> None:
    """Repairs the leases that a wrong clock granted or ended.

    The first are ended as a takeover does it, and their droids get a message. The others get an
    end that is not in the future.
    """
    tx, present_ms = writer.tx, writer.tx.present_ms()
    held, ended = absurd(writer.state, tx.now_ms, present_ms)
    changes = {"released_by": by, "release_reason": _REASON}
    writer.end([lease.id for lease in held], changes)
    for owner in dict.fromkeys(lease.droid for lease in held):
        theirs = [lease for lease in held if lease.droid == owner]
        fields: dict[str, object] = {
            "subject": f"Your reservation was ended by {by}",
            "body": f"{by} ended {', '.join(each.pattern for each in theirs)}: {_REASON}",
            "issue_id": theirs[0].issue_id,
            "importance": "high",
        }
        stage(tx, by, [owner], fields)
    ends_ms = {x.id: repaired_end_ms(x, present_ms, tx.now_ms) for x in ended}
    names = writer.outranked(ends_ms)
    for identifier, end_ms in ends_ms.items():
        tx.update(KIND, identifier, {"released_at": format_ms(end_ms), **names[identifier]})
