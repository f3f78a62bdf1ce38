"""The name of an agent's session: one for its hooks, its tools and its shell. `docs/agents.md`.

A hook is told which session it is of. For a command in a session's shell, and for `queen mcp`, it
is the session whose agent is a process above them, or whose id the agent has put into the
environment.
"""

from __future__ import annotations

import os
import time

from queenbee.core.names import checked_name, joined, part_of, session_name
from queenbee.errors import UnknownDroid
from queenbee.store.droids import agent_sessions, identity

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.layout import Layout

VARIABLES = (
    ("CLAUDE_CODE_SESSION_ID", "claude"),
    ("CODEX_SESSION_ID", "codex"),
    ("CODEX_THREAD_ID", "codex"),
    ("COPILOT_AGENT_SESSION_ID", "copilot"),
)
"""Where agents put the id of their session, and what they are called."""
_SUBAGENT = "CODEX_THREAD_ID"
"""In the shell of a subagent of Codex, this is the subagent's own id."""


def find_actor(layout: Layout, env: Mapping[str, str], given: str | None) -> tuple[str, str] | None:
    """Returns who acts, and where the name came from, or None: as `identity.find_actor`, but in an
    agent's session without a name from its user, by the session's name.
    """
    found = identity.find_actor(layout, env, given)
    if found is not None and found[1] != layout.identity_path:
        return found
    agent, session_id = id_in(env)
    session = around(layout, env) if os.path.isdir(layout.sessions_dir) else None
    agent = session.agent or agent if session is not None else agent
    part, first = (session.part, session.first) if session else (part_of(session_id), True)
    name = name_of(layout, agent, part, first=first)[0]
    if name is None or (session is None and found is not None):
        return found
    thread = env.get(_SUBAGENT)
    if thread and session is not None and agent == "codex" and not session.has_id(thread):
        name = of_subagent(layout, name, thread)
    return name, f"this session of {agent}"


def around(layout: Layout, env: Mapping[str, str]) -> agent_sessions.Session | None:
    """Returns the session in this worktree that this process belongs to, or None."""
    ids = [env[variable] for variable, _ in VARIABLES if env.get(variable)]
    return agent_sessions.around(layout, ids, time.time_ns() // 1_000_000)


def id_in(env: Mapping[str, str]) -> tuple[str, str]:
    """Returns the agent and the id of the session that the environment names, or empty texts."""
    return next(((agent, env[each]) for each, agent in VARIABLES if env.get(each)), ("", ""))


def name_of(layout: Layout, agent: str, part: str, *, first: bool) -> tuple[str | None, bool]:
    """Returns a session's name, and whether it was made for it: of a part of its id, unless it is
    the `first` one in a worktree that remembers a name.

    A hive that accepts only listed droids accepts no name that was made: then it is the name that
    the worktree remembers, or None.
    """
    own = identity.remembered(layout)
    if own is not None and (first or not part):
        return checked_name(own), False
    made = joined(checked_name(own), "-", part) if own is not None else session_name(agent, part)
    return made if made is not None and _accepted(layout, made) else own, True


def of_subagent(layout: Layout, name: str, subagent: str) -> str:
    """Returns the name of a subagent of the session `name`, or that one if it can have no other."""
    part = part_of(subagent)
    mine = joined(name, ".", part) if part else name
    return mine if _accepted(layout, mine) else name


def _accepted(layout: Layout, name: str) -> bool:
    try:
        identity.checked_droid(layout, name)
    except UnknownDroid:
        return False
    return True
