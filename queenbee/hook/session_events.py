"""The start and the end of an agent's session, and of its subagents."""

from __future__ import annotations

import os

from queenbee.git import let_ask
from queenbee.hook import acting_names, answers
from queenbee.hook.acting_names import find_actor
from queenbee.hook.events import OPENCODE
from queenbee.store.droids import presence
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
_LOCK_TIMEOUT_S = 2.0
"""For a busy hive: longer than any write takes, shorter than an agent's timeout."""


def begin(event: Event, env: Mapping[str, str]) -> Answer:
    """Returns what an agent should know when its session starts; remembers the session's name."""
    from queenbee.services.telling import briefing, news  # noqa: PLC0415 - start-up

    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    # Our plugin for OpenCode puts the name into the shell itself.
    known = not actor.derived or _remember_name(env, actor.name) or event.agent == OPENCODE
    hive = open_as(layout, actor.name)
    hive.note_presence()
    hive.messages.drop_merged()
    text = briefing.prime(hive, name_in_shell=known)
    if actor.name is not None:
        news.told_of_mail(hive)
        text += news.take(hive, pass_as=not known)
    return answers.with_name(event, answers.context(event, text), actor.name)


def begin_subagent(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns what a subagent should know: its name, which no shell of its session has."""
    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    if actor.name is None or actor.parent is None:
        return None
    open_as(layout, actor.name).note_presence()
    answer = answers.context(
        event,
        f"QueenBee: several agents share this repository; you are {actor.name}, a subagent of "
        f"{actor.parent}. Files that you edit are reserved for you until you are done. "
        f"Give each queen command your name: --as {actor.name}.",
    )
    return answers.with_name(event, answer, actor.name)


def end(event: Event, env: Mapping[str, str]) -> None:
    """Ends the leases that the edits of this session and its subagents took."""
    from queenbee.services.leases.edits import end_session  # noqa: PLC0415 - start-up

    layout = discover(event.cwd, env)
    acting_names.end(layout, event)
    if event.session:
        held = [
            lease.droid
            for lease in open_as(layout, None).reservations.find()
            if lease.session == event.session
        ]
        for droid in dict.fromkeys(held):
            end_session(open_as(layout, droid).reservations, event.session)


def end_subagent(event: Event, env: Mapping[str, str]) -> None:
    """Ends the leases that a subagent's edits took, and forgets it."""
    from queenbee.services.leases.edits import end_session  # noqa: PLC0415 - start-up

    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    if event.session and actor.name is not None and actor.parent is not None:
        end_session(open_as(layout, actor.name).reservations, event.session)
        presence.forget(layout, actor.name)


def open_hive(layout: Layout, env: Mapping[str, str], event: Event) -> Services:
    """Returns the open hive, with the droid that acts in this event."""
    hive = open_as(layout, find_actor(layout, env, event).name)
    hive.note_presence()
    return hive


def open_as(layout: Layout, droid: str | None) -> Services:
    """Returns the open hive, with this droid as the one who acts."""
    from queenbee.services.hive import Services  # noqa: PLC0415 - start-up

    layout.settings.lock_timeout_s = min(layout.settings.lock_timeout_s, _LOCK_TIMEOUT_S)
    hive = Services(layout, actor=droid)
    let_ask(hive)
    hive.engine.patience_s = _LOCK_TIMEOUT_S
    return hive


def _remember_name(env: Mapping[str, str], name: str | None) -> bool:
    """Makes the commands that the session runs act under the session's name, if the agent can;
    returns whether it does.

    Claude Code reads the file that `CLAUDE_ENV_FILE` names before each shell command; Codex reads
    that of `CODEX_ENV_FILE`, which is not for a POSIX shell on Windows.
    """
    path = env.get("CLAUDE_ENV_FILE") or env.get("CODEX_ENV_FILE")
    if not path or name is None or path.endswith((".cmd", ".ps1")):
        return False
    line = f"export QUEEN_DROID={name}\n"
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read().endswith(line):
                return True
    with open(path, "a", encoding="utf-8") as file:
        file.write(line)
    return True
