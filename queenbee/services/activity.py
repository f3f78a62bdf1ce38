"""Signs of life: when each droid last wrote a line of its own."""

from __future__ import annotations

from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.hive import Hive

_SIGNS = {
    "messages": (("from", "created_at"), ("to", "read_at"), ("to", "acked_at")),
    "assignments": (("droid", "created_at"), ("droid", "updated_at")),
    "reservations": (("droid", "created_at"), ("droid", "updated_at"), ("droid", "released_at")),
}
"""For each ledger: whose name stands for the writer of which instant."""


def last_seen_ms(hive: Hive) -> dict[str, int]:
    """Returns for each droid the newest instant at which it wrote, in ms since 1970.

    A line that somebody else wrote about a droid (an assignment, a takeover) is taken for its
    own: whoever is given work is given time to show up.
    """
    seen: dict[str, int] = {}
    for kind, signs in _SIGNS.items():
        columns = tuple(dict.fromkeys(name for pair in signs for name in pair))
        for row in hive.state(kind).project(columns, {}):
            fields = dict(zip(columns, row, strict=True))
            for who, when in signs:
                droid, instant = fields[who], instant_ms(fields[when])
                if isinstance(droid, str) and instant is not None:
                    seen[droid] = max(seen.get(droid, 0), instant)
    return seen
