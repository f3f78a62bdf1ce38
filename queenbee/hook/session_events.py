"""The start and the end of an agent's session, and of its subagents."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.git import let_ask
from queenbee.hook import acting_names, answers
from queenbee.hook.acting_names import find_actor
from queenbee.hook.events import CLAUDE, GEMINI
from queenbee.store import safe_open
from queenbee.store.droids import presence
from queenbee.store.layout import discover

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from queenbee.core.records import Reservation
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

MOST_CHARS = 80
"""Limit of other people's text, which is data and not an instruction to the agent."""
_AGENTS = "AGENTS.md"
_INSTRUCTIONS = {CLAUDE: "CLAUDE.md", GEMINI: "GEMINI.md"}
_MOST_BYTES = 1 << 18
_LOCK_TIMEOUT_S = 2.0
"""For a busy hive: longer than any write takes, shorter than an agent's timeout."""


def begin(event: Event, env: Mapping[str, str]) -> Answer:
    """Returns what an agent should know when its session starts."""
    from queenbee.services.telling import briefing, news  # noqa: PLC0415 - start-up

    layout = discover(event.cwd, env)
    ended = acting_names.ended(layout)
    actor = find_actor(layout, env, event)
    if ended - {actor.name}:
        _end_leases(layout, (), ended - {actor.name})
    hive = open_as(layout, actor.name)
    hive.note_presence()
    hive.messages.drop_merged()
    instructions = _instructions(layout, event.agent)
    text = briefing.beside(hive, instructions, name_in_shell=not actor.pass_as)
    if actor.name is not None:
        news.told_of_mail(hive)
        text += news.take(hive, pass_as=actor.pass_as)
    return answers.with_name(event, answers.context(event, text), actor.name)


def _instructions(layout: Layout, agent: str) -> str:
    """Returns what an agent reads at its start, where `queen setup` adds the section."""
    name = _INSTRUCTIONS.get(agent, _AGENTS)
    text = _text_of(layout, name)
    return text + _text_of(layout, _AGENTS) if f"@{_AGENTS}" in text.split() else text


def _text_of(layout: Layout, name: str) -> str:
    try:
        return safe_open.read(os.path.join(layout.tree, name), _MOST_BYTES).decode(errors="replace")
    except (OSError, QueenError):
        return ""


def begin_subagent(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns what a subagent should know: its name, and how it acts under it."""
    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    if actor.name is None or actor.parent is None:
        return None
    open_as(layout, actor.name).note_presence()
    pass_as = f" Give each queen command your name: --as {actor.name}." if actor.pass_as else ""
    answer = answers.context(
        event,
        f"QueenBee: several agents share this repository; you are {actor.name}, a subagent of "
        f"{actor.parent}. Files that you edit are reserved for you until you are done.{pass_as}",
    )
    return answers.with_name(event, answer, actor.name)


def end(event: Event, env: Mapping[str, str]) -> None:
    """Ends the leases that the edits of this session and its subagents took, and those of its name
    but for an issue that it still has. If its name was made for it, nobody has that again: then all
    of its leases end, and its issues are free to be taken over.
    """
    layout = discover(event.cwd, env)
    if not event.session:
        return
    actor = acting_names.end(layout, env, event)
    made = {actor.name} if actor is not None and actor.derived else set()
    _end_leases(layout, {event.session}, made, named=actor.name if actor is not None else None)


def _end_leases(
    layout: Layout,
    sessions: Collection[str],
    droids: Collection[str | None],
    *,
    named: str | None = None,
) -> None:
    from queenbee.services.leases import edits  # noqa: PLC0415 - start-up

    hive = open_as(layout, None)
    live, held = hive.reservations.find(), dict[str, list[str]]()
    if any(x.droid == named and x.session and x.session not in sessions for x in live):
        named = None  # Another session of that name edits.
    for lease in live:
        is_over = lease.droid == named and not _is_for_own(hive, lease)
        if lease.session in sessions or lease.droid in droids or is_over:
            held.setdefault(lease.droid, []).append(lease.id)
    for droid, ids in held.items():
        edits.end(open_as(layout, droid).reservations, ids)


def _is_for_own(hive: Services, lease: Reservation) -> bool:
    """Returns whether a lease is for an issue that its droid has: it ends with that."""
    current = hive.assignments.active(lease.issue_id) if lease.issue_id else None
    return current is not None and current.droid == lease.droid


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
    if hive.engine.carrier is not None:
        hive.engine.carrier.patience_s = _LOCK_TIMEOUT_S
    return hive
