"""The start and the end of an agent's session, and the name that the session acts under."""

from __future__ import annotations

import os

from queenbee.core.names import session_name
from queenbee.core.text import mentioned, one_line, quotation, suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import UnknownDroid
from queenbee.hook import answers
from queenbee.services.hive import Services
from queenbee.services.leases.edits import TTL_S, end_session
from queenbee.store import identity
from queenbee.store.layout import discover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.records import Reservation
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.store.layout import Layout

MOST_LINES = 15
MOST_CHARS = 80
"""Limit of other people's text, which is data and not an instruction to the agent."""
_SHOWN = 3
"""Items of each list: three lists with headings and two lines about the session make 14."""
_LOCK_TIMEOUT_S = 2.0
"""For a busy hive: longer than any write takes, shorter than an agent's timeout."""


class Actor:
    """The droid that a session acts as, and whether the name was made for the session."""

    __slots__ = ("derived", "name")

    def __init__(self, name: str | None, *, derived: bool) -> None:
        self.name = name
        self.derived = derived
        """Whether the name was made from the session's id, since nothing else gave one."""


def begin(event: Event, env: Mapping[str, str]) -> Answer:
    """Returns what an agent should know when its session starts; remembers the session's name."""
    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    if actor.derived and actor.name is not None:
        _remember_name(env, actor.name)
    hive = Services(layout, actor=actor.name)
    hive.note_presence()
    return answers.context(event, _briefing(hive, actor))


def end(event: Event, env: Mapping[str, str]) -> None:
    """Ends the leases that this session's edits took."""
    hive = open_hive(discover(event.cwd, env), env, event)
    if hive.actor_or_none is not None and event.session:
        end_session(hive.reservations, event.session)


def open_hive(layout: Layout, env: Mapping[str, str], event: Event) -> Services:
    """Returns the open hive, with the droid that the session acts as."""
    layout.settings.lock_timeout_s = min(layout.settings.lock_timeout_s, _LOCK_TIMEOUT_S)
    hive = Services(layout, actor=find_actor(layout, env, event).name)
    hive.note_presence()
    return hive


def find_actor(layout: Layout, env: Mapping[str, str], event: Event) -> Actor:
    """Returns who acts: the name in the environment or worktree, or one made for the session.

    A hive that accepts only listed droids accepts no such name; then nobody acts.
    """
    found = identity.find_actor(layout, env, None)
    if found is not None:
        return Actor(found[0], derived=False)
    name = session_name(event.agent, event.session)
    if name is not None:
        try:
            identity.checked_droid(layout, name)
        except UnknownDroid:
            name = None
    return Actor(name, derived=True)


def _briefing(hive: Services, actor: Actor) -> str:
    """Returns what an agent should know when its session starts, in at most 15 lines."""
    lines = _about(hive, actor)
    if actor.name is not None:
        unread = [
            f"{quotation(one_line(each.subject, MOST_CHARS))} from {_name(each.from_)}"
            for each in hive.messages.inbox(unread=True)
        ]
        lines += _listed("Unread messages", unread, _inbox(actor))
    live = hive.reservations.find()
    mine = [_lease(hive, each) for each in live if each.droid == actor.name]
    others = [
        f"{_name(each.droid)}: {_lease(hive, each)}" for each in live if each.droid != actor.name
    ]
    lines += _listed("Reserved by you", mine, "queen reserved")
    lines += _listed("Reserved by others", others, "queen reserved")
    return "\n".join(lines[:MOST_LINES])


def _remember_name(env: Mapping[str, str], name: str) -> None:
    """Makes the commands that the session runs act under the session's name.

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


def _about(hive: Services, actor: Actor) -> list[str]:
    shared = "QueenBee: several agents share this repository"
    if actor.name is not None:
        kept = f"A file that you edit is reserved for you for {format_duration(TTL_S)}"
        return [
            f"{shared}; you are {actor.name}.",
            f"{kept}; an edit of a file that another agent holds is refused.",
        ]
    known = ", ".join(sorted(hive.droids.listed()))
    return [
        f"{shared}, and you have no name in it: files that you edit are not reserved for you.",
        "Start the agent with QUEEN_DROID set to "
        + (f"one of: {one_line(known, 200)}" if known else "a name."),
    ]


def _inbox(actor: Actor) -> str:
    return suggested("queen msg inbox", unread=True, as_=actor.name if actor.derived else None)


def _name(text: str) -> str:
    return mentioned(one_line(text, MOST_CHARS))


def _listed(heading: str, items: Sequence[str], command: str) -> list[str]:
    if not items:
        return []
    return [f"{heading}: {len(items)} ({command})", *(f"  {item}" for item in items[:_SHOWN])]


def _lease(hive: Services, lease: Reservation) -> str:
    left = format_duration((lease.expires_ms - hive.now_ms()) / 1000)
    issue = f" for {_name(lease.issue_id)}" if lease.issue_id else ""
    return f"{mentioned(one_line(lease.pattern, 120))}{issue}, {left} left"
