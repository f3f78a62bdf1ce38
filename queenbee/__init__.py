"""QueenBee: the coordination layer for coding agents that share a git repository.

    from queenbee import Hive

    with Hive.open(droid="ui-engineer") as hive:
        hive.assignments.claim("qb-42")
        hive.reservations.reserve(["src/components/Button/**"], issue_id="qb-42")
        hive.messages.send("reviewer", "Button is ready", issue_id="qb-42")

Importing the package loads nothing; each name below loads what it needs when it is used.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False  # Not typing's: a further edit loads this module, and `typing` takes 9 ms.
if TYPE_CHECKING:
    from queenbee.core.beads import Issue as Issue
    from queenbee.core.records import Assignment as Assignment
    from queenbee.core.records import Message as Message
    from queenbee.core.records import Reservation as Reservation
    from queenbee.errors import QueenError as QueenError
    from queenbee.git.landing.landed_issue import Landed as Landed
    from queenbee.library.async_hive import AsyncHive as AsyncHive
    from queenbee.library.hive import Hive as Hive
    from queenbee.services.changes import Change as Change
    from queenbee.services.work.taking import Begin as Begin
    from queenbee.services.work.taking import Nothing as Nothing
    from queenbee.version import __version__ as __version__
    from queenbee.workflows.completing import Completion as Completion

exports(
    __name__,
    {
        "core.beads": "Issue",
        "core.records": "Assignment Message Reservation",
        "errors": "QueenError",
        "git.landing.landed_issue": "Landed",
        "version": "__version__",
        "workflows.completing": "Completion",
        "library.async_hive": "AsyncHive",
        "library.hive": "Hive",
        "services.changes": "Change",
        "services.work.taking": "Begin Nothing",
    },
)
