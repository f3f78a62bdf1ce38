"""Working as a team: what to take next, what to wait for, and who does what now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._lazy import exports

if TYPE_CHECKING:
    from queenbee.services.work.members import Member as Member
    from queenbee.services.work.members import team as team
    from queenbee.services.work.screen import Status as Status
    from queenbee.services.work.screen import status as status
    from queenbee.services.work.taking import Begin as Begin
    from queenbee.services.work.taking import Nothing as Nothing
    from queenbee.services.work.taking import take_next as take_next
    from queenbee.services.work.waiting import Wanted as Wanted
    from queenbee.services.work.waiting import wait as wait

exports(
    __name__,
    {
        "taking": "Begin Nothing take_next",
        "screen": "Status status",
        "members": "Member team",
        "waiting": "Wanted wait",
    },
)
