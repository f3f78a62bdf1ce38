"""The name that a session or one of its subagents acts under. `docs/agents.md`, section "Names".

- A name that the user gave (`QUEEN_DROID`) is that of every session that has it.
- The name that a worktree remembers belongs to the first session at work in it; another one at the
  same time gets `NAME-PART`, with a part of its id.
- Without either, a session is named after its agent: `claude-1b4e28ba`.
- A subagent is `NAME.PART`, after its session and its own id.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from queenbee.core.names import part_of
from queenbee.hook.events import CLAUDE, CODEX, COPILOT, CURSOR, KILO, OPENCODE, SESSION_START
from queenbee.store.droids import agent_processes, agent_sessions, identity
from queenbee.store.droids.session_names import name_of, of_subagent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.hook.events import Event
    from queenbee.store.layout import Layout


class Actor:
    """The droid that acts, whether its name was made for it, and the session's own name."""

    __slots__ = ("derived", "name", "parent", "pass_as")

    def __init__(
        self, name: str | None, *, derived: bool, pass_as: bool, parent: str | None = None
    ) -> None:
        self.name: str | None = name
        self.derived: bool = derived
        """Whether the name was made from an id."""
        self.pass_as: bool = pass_as
        """Whether commands in its shell do not have the name unless they are given it."""
        self.parent: str | None = parent
        """The name of a subagent's session, or None for a session itself."""


def find_actor(layout: Layout, env: Mapping[str, str], event: Event) -> Actor:
    """Returns who acts, and notes which process it is that does.

    A hive that accepts only listed droids accepts no name that was made. Then the listed name of
    the worktree or of the session stands for all of them, and without one, nobody acts.

    An editor has its sessions and its terminals in one process, so that no command there can tell
    which session it is of; in the shell of a subagent, only Codex and our plugin say.
    """
    given = given_name(layout, env)
    if given is not None:
        name: str | None = given
        derived = False
    else:
        session = _session(layout, event)
        part = session.part if session is not None else part_of(event.session)
        first = session is None or session.first
        name, derived = name_of(layout, event.agent, part, first=first)
    agent_processes.note(layout, name)
    shares = event.agent == CURSOR or (event.agent == COPILOT and "COPILOT_CLI" not in env)
    mine = of_subagent(layout, name, event.subagent) if name and event.subagent else name
    if mine == name:
        return Actor(name, derived=derived, pass_as=derived and shares)
    return Actor(
        mine, derived=True, pass_as=event.agent not in (CODEX, OPENCODE, KILO), parent=name
    )


def given_name(layout: Layout, env: Mapping[str, str]) -> str | None:
    """Returns the name that a user gave to whatever session this is, or None."""
    found = identity.find_actor(layout, env, None)
    return found[0] if found is not None and found[1] in identity.VARIABLES else None


def known_name(layout: Layout, env: Mapping[str, str], session_id: str) -> str | None:
    """Returns the name of a session whose hook has run, or the one that was given, or None.

    Notes nothing: to look at a session is no sign that it is at work.
    """
    given = identity.find_actor(layout, env, None)
    name = given[0] if given is not None else None
    session = agent_sessions.noted(layout, session_id) if session_id else None
    if session is None or (given is not None and given[1] in identity.VARIABLES):
        return name
    return name_of(layout, CLAUDE, session.part, first=session.first)[0]


def end(layout: Layout, env: Mapping[str, str], event: Event) -> Actor | None:
    """Notes that the session of an event is over: the next one in its worktree is the first.

    Returns who acted in it, unless it goes on under another id or another session has its name.
    """
    if not event.session:
        return None
    is_given = given_name(layout, env) is not None
    is_known = is_given or agent_sessions.noted(layout, event.session) is not None
    actor = find_actor(layout, env, event) if is_known else None
    agent_sessions.end(layout, event.session, reason=event.source, now_ms=_now_ms())
    goes_on = event.source in agent_sessions.SAME_AGENT
    if goes_on or actor is None or actor.name is None:
        return None
    stands_for_all = actor.name == identity.remembered(layout)
    if is_given or not actor.derived or stands_for_all:
        is_shared = stands_for_all and actor.derived
        if (
            is_shared and agent_sessions.are_at_work(layout, _now_ms())
        ) or agent_processes.is_elsewhere(layout, actor.name):
            return None
        return Actor(actor.name, derived=False, pass_as=actor.pass_as)
    agent_processes.end(layout, actor.name)
    return actor


def ended(layout: Layout) -> set[str]:
    """Returns the names that were made for sessions whose agents have ended without a word."""
    over = agent_sessions.take_ended(layout)
    names = [name_of(layout, each.agent, each.part, first=each.first) for each in over]
    return {name for name, made in names if name is not None and made} - {
        identity.remembered(layout) or ""
    }


def _session(layout: Layout, event: Event) -> agent_sessions.Session | None:
    part = part_of(event.session)
    if not event.session or not part:
        return None
    if event.kind != SESSION_START:
        found = agent_sessions.current(layout, event.session, _now_ms())
        if found is not None:
            return found
    return agent_sessions.begin(
        layout, event.session, part, agent=event.agent, source=event.source, now_ms=_now_ms()
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
