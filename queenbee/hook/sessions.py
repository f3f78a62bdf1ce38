"""The start and the end of an agent's session, and the name that the session acts under."""

from __future__ import annotations

import os

from queenbee.core.names import MAX_LENGTH, is_name
from queenbee.errors import UnknownDroid
from queenbee.hook import answers
from queenbee.store import identity
from queenbee.store.layout import discover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

MOST_CHARS = 80
"""Limit of other people's text, which is data and not an instruction to the agent."""
_ID_CHARS = 8
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
    from queenbee.services import briefing, news  # noqa: PLC0415 - start-up
    from queenbee.services.hive import Services  # noqa: PLC0415 - start-up

    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    known = not actor.derived or _remember_name(env, actor.name)
    hive = Services(layout, actor=actor.name)
    hive.note_presence()
    text = briefing.prime(hive, name_in_shell=known)
    if actor.name is not None:
        news.told_of_mail(hive)
        text += news.take(hive, pass_as=not known)
    return answers.context(event, text)


def end(event: Event, env: Mapping[str, str]) -> None:
    """Ends the leases that this session's edits took."""
    from queenbee.services.leases.edits import end_session  # noqa: PLC0415 - start-up

    hive = open_hive(discover(event.cwd, env), env, event)
    if hive.actor_or_none is not None and event.session:
        end_session(hive.reservations, event.session)


def open_hive(layout: Layout, env: Mapping[str, str], event: Event) -> Services:
    """Returns the open hive, with the droid that the session acts as."""
    from queenbee.services.hive import Services  # noqa: PLC0415 - start-up

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


def session_name(agent: str, session: str | None) -> str | None:
    """Returns a name made for a session, such as `claude-1b4e28ba`, or None without an id.

    The name has the start of a random UUID, as agents show it, or the end of any other id: ids
    that start with the time are alike if the sessions started together.
    """
    letters = "".join(char for char in session or "" if char.isascii() and char.isalnum())
    if not letters:
        return None
    random = session is not None and len(letters) == 32 and session[14:15] == "4"
    part = letters[:_ID_CHARS] if random else letters[-_ID_CHARS:]
    prefix = agent if is_name(agent) and len(agent) < MAX_LENGTH - _ID_CHARS else "agent"
    return f"{prefix}-{part}"


def _remember_name(env: Mapping[str, str], name: str | None) -> bool:
    """Makes the commands that the session runs act under the session's name, if the agent can;
    returns whether it does.

    Claude Code reads the file that `CLAUDE_ENV_FILE` names before each shell command.
    """
    path = env.get("CLAUDE_ENV_FILE")
    if not path or name is None:
        return False
    line = f"export QUEEN_DROID={name}\n"
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read().endswith(line):
                return True
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)
    return True
