"""Who acts in an agent's session, and what the session is told when it begins."""

from __future__ import annotations

import os

from queenbee.core.names import MAX_LENGTH, is_name
from queenbee.core.timestamps import format_duration
from queenbee.errors import UnknownDroid
from queenbee.services.hive import Services
from queenbee.services.leases.edits import TTL_S
from queenbee.store import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.records import Reservation
    from queenbee.hook.events import Event
    from queenbee.store.layout import Layout

MOST_LINES = 15
_SHOWN = 3
"""Of each list: with its heading, three lists and the two lines about the session make 14."""
_ID_LENGTH = 8


class Actor:
    """The droid that a session acts as, and how it came to the name."""

    __slots__ = ("derived", "name")

    def __init__(self, name: str | None, *, derived: bool) -> None:
        self.name = name
        self.derived = derived
        """Whether the name is the session's own; a caller that has a name keeps it."""


def find_actor(places: Layout, env: Mapping[str, str], event: Event) -> Actor:
    """Returns who acts: as said by environment or worktree, else a name made for the session.

    A hive that knows only listed droids takes no made name: the actor is then nobody.
    """
    found = identity.find_actor(places, env, None)
    if found is not None:
        return Actor(found[0], derived=False)
    name = session_name(event.agent, event.session)
    if name is not None:
        try:
            Services(places, actor=name).droids.check(name)
        except UnknownDroid:
            name = None
    return Actor(name, derived=True)


def session_name(agent: str, session: str | None) -> str | None:
    """Returns the name of a session that has none, as `claude-1b4e28ba`, or None without an id.

    The beginning of a random UUID, as agents show it; the end of any other id, since ids that
    begin with the time are alike where sessions begin together.
    """
    letters = "".join(char for char in session or "" if char.isascii() and char.isalnum())
    if not letters:
        return None
    random = session is not None and len(letters) == 32 and session[14:15] == "4"
    part = letters[:_ID_LENGTH] if random else letters[-_ID_LENGTH:]
    prefix = agent if is_name(agent) and len(agent) < MAX_LENGTH - _ID_LENGTH else "agent"
    return f"{prefix}-{part}"


def briefing(hive: Services, actor: Actor) -> str:
    """Returns what an agent should know as its session begins, in at most 15 lines."""
    lines = _about(hive, actor)
    if actor.name is not None:
        unread = [
            f"“{clean(each.subject)}” from {clean(each.from_)}"
            for each in hive.messages.inbox(unread=True)
        ]
        lines += _listed("Unread messages", unread, "queen msg inbox --unread" + _as(actor))
    live = hive.reservations.find()
    mine = [_lease(hive, each) for each in live if each.droid == actor.name]
    others = [
        f"{clean(each.droid)}: {_lease(hive, each)}" for each in live if each.droid != actor.name
    ]
    lines += _listed("Reserved by you", mine, "queen reserved")
    lines += _listed("Reserved by others", others, "queen reserved")
    return "\n".join(lines[:MOST_LINES])


def remember_name(env: Mapping[str, str], name: str) -> None:
    """Lets the commands that the session runs act under the session's name.

    Claude Code reads the file that `CLAUDE_ENV_FILE` names before each shell command.
    """
    path = env.get("CLAUDE_ENV_FILE")
    if not path:
        return
    line = f"export QUEEN_DROID={name}\n"
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read().endswith(line):
                return
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)


def clean(text: str, length: int = 80) -> str:
    """Returns others' words on one line, harmless and short: they are data, not instructions."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def _about(hive: Services, actor: Actor) -> list[str]:
    shared = "QueenBee: several agents share this repository"
    if actor.name is not None:
        kept = f"A file that you edit is reserved for you for {format_duration(TTL_S)}"
        return [
            f"{shared}; you are {actor.name}.",
            f"{kept}; an edit of one that another holds is refused.",
        ]
    known = ", ".join(sorted(hive.droids.listed()))
    return [
        f"{shared}, and you have no name in it: what you edit is not reserved for you.",
        "Start the agent with QUEEN_DROID set to "
        + (f"one of: {clean(known, 200)}" if known else "a name."),
    ]


def _as(actor: Actor) -> str:
    return f" --as {actor.name}" if actor.derived else ""


def _listed(heading: str, items: Sequence[str], command: str) -> list[str]:
    if not items:
        return []
    return [f"{heading}: {len(items)} ({command})", *(f"  {item}" for item in items[:_SHOWN])]


def _lease(hive: Services, lease: Reservation) -> str:
    left = format_duration((lease.expires_ms - hive.now_ms()) / 1000)
    issue = f" for {clean(lease.issue_id)}" if lease.issue_id else ""
    return f"{clean(lease.pattern, 120)}{issue}, {left} left"
