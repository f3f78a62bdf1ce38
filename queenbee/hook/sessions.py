"""The start and the end of an agent's session, and of its subagents."""

from __future__ import annotations

import os

from queenbee.core.text import mentioned, one_line, quotation, suggested
from queenbee.core.timestamps import format_duration
from queenbee.hook import answers, names
from queenbee.hook.names import find_actor
from queenbee.services.hive import Services
from queenbee.services.leases.edits import TTL_S, end_session
from queenbee.store import presence
from queenbee.store.layout import discover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.records import Reservation
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.hook.names import Actor
    from queenbee.store.layout import Layout

MOST_LINES = 15
MOST_CHARS = 80
"""Limit of other people's text, which is data and not an instruction to the agent."""
_SHOWN = 3
"""Items of each list: three lists with headings and two lines about the session make 14."""
_LOCK_TIMEOUT_S = 2.0
"""For a busy hive: longer than any write takes, shorter than an agent's timeout."""


def begin(event: Event, env: Mapping[str, str]) -> Answer:
    """Returns what an agent should know when its session starts; remembers the session's name."""
    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    if actor.derived and actor.name is not None:
        _remember_name(env, actor.name)
    hive = Services(layout, actor=actor.name)
    hive.note_presence()
    return answers.with_name(event, answers.context(event, _briefing(hive, actor)), actor.name)


def begin_subagent(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns what a subagent should know: its name, which no shell of its session has."""
    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    if actor.name is None or actor.parent is None:
        return None
    Services(layout, actor=actor.name).note_presence()
    answer = answers.context(
        event,
        f"QueenBee: several agents share this repository; you are {actor.name}, a subagent of "
        f"{actor.parent}. Files that you edit are reserved for you until you are done. "
        f"Give each queen command your name: --as {actor.name}.",
    )
    return answers.with_name(event, answer, actor.name)


def end(event: Event, env: Mapping[str, str]) -> None:
    """Ends the leases that the edits of this session and its subagents took."""
    layout = discover(event.cwd, env)
    names.end(layout, event)
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
    layout.settings.lock_timeout_s = min(layout.settings.lock_timeout_s, _LOCK_TIMEOUT_S)
    return Services(layout, actor=droid)


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

    Claude Code reads the file that `CLAUDE_ENV_FILE` names before each shell command; Codex reads
    that of `CODEX_ENV_FILE`, which is not for a POSIX shell on Windows.
    """
    path = env.get("CLAUDE_ENV_FILE") or env.get("CODEX_ENV_FILE")
    if not path or path.endswith((".cmd", ".ps1")):
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
