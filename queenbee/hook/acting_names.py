"""The name that a session or one of its subagents acts under. `docs/agents.md`, section "Names".

- A name that the user gave (`QUEEN_DROID`) is that of every session that has it.
- The name that a worktree remembers belongs to the first session at work in it; another one at the
  same time gets `NAME-PART`, with a part of its id.
- Without either, a session is named after its agent: `claude-1b4e28ba`.
- A subagent is `NAME.PART`, after its session and its own id.
"""

from __future__ import annotations

import time

from queenbee.core.names import joined, part_of, session_name
from queenbee.errors import UnknownDroid
from queenbee.hook.events import CLAUDE, SESSION_START
from queenbee.store.droids import agent_sessions, clients, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.hook.events import Event
    from queenbee.store.layout import Layout


class Actor:
    """The droid that acts, whether its name was made for it, and the session's own name."""

    __slots__ = ("derived", "name", "parent")

    def __init__(self, name: str | None, *, derived: bool, parent: str | None = None) -> None:
        self.name = name
        self.derived = derived
        """Whether the name was made from an id: no shell has it unless it is told."""
        self.parent = parent
        """The name of a subagent's session, or None for a session itself."""


def find_actor(layout: Layout, env: Mapping[str, str], event: Event) -> Actor:
    """Returns who acts, and notes which process it is that does.

    A hive that accepts only listed droids accepts no name that was made. Then the listed name of
    the worktree or of the session stands for all of them, and without one, nobody acts.
    """
    given = identity.find_actor(layout, env, None)
    name = given[0] if given is not None else None
    derived = False
    if given is None or given[1] not in identity.VARIABLES:
        session = _session(layout, event)
        if given is None:
            name, derived = session_name(event.agent, session.part if session else None), True
            if name is None:
                name = session_name(event.agent, event.session)
        elif session is not None and not session.first:
            name, derived = joined(given[0], "-", session.part), True
    fallback = given[0] if given is not None else None
    if derived and name is not None and not _accepted(layout, name):
        name = fallback
    clients.note(layout, name)
    if event.subagent is None or name is None:
        return Actor(name, derived=derived)
    part = part_of(event.subagent)
    mine = joined(name, ".", part) if part else name
    if mine == name or not _accepted(layout, mine):
        return Actor(name, derived=derived)
    return Actor(mine, derived=True, parent=name)


def known_name(layout: Layout, env: Mapping[str, str], session_id: str) -> str | None:
    """Returns the name of a session whose hook has run, or the one that was given, or None.

    Notes nothing: to look at a session is no sign that it is at work.
    """
    given = identity.find_actor(layout, env, None)
    name = given[0] if given is not None else None
    if given is not None and given[1] in identity.VARIABLES:
        return name
    session = agent_sessions.noted(layout, session_id) if session_id else None
    if session is None or (given is not None and session.first):
        return name
    made = joined(name, "-", session.part) if name else session_name(CLAUDE, session.part)
    return made if made is not None and _accepted(layout, made) else name


def end(layout: Layout, event: Event) -> None:
    """Notes that the session of an event is over: the next one in its worktree is the first."""
    if event.session:
        agent_sessions.end(layout, event.session, reason=event.source, now_ms=_now_ms())


def _session(layout: Layout, event: Event) -> agent_sessions.Session | None:
    part = part_of(event.session)
    if not event.session or not part:
        return None
    if event.kind != SESSION_START:
        found = agent_sessions.current(layout, event.session, _now_ms())
        if found is not None:
            return found
    return agent_sessions.begin(layout, event.session, part, source=event.source, now_ms=_now_ms())


def _accepted(layout: Layout, name: str) -> bool:
    try:
        identity.checked_droid(layout, name)
    except UnknownDroid:
        return False
    return True


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
