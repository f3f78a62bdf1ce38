"""News at an agent's next opportunity: with a prompt, after a tool, and when it wants to stop.

Nearly always there is none. A look at the stamps of a few files tells that; nothing else is
loaded then.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from queenbee.hook import answers, events
from queenbee.hook.acting_names import find_actor
from queenbee.hook.session_events import open_as
from queenbee.store.droids import presence
from queenbee.store.droids.told import Told, key_of
from queenbee.store.layout import discover

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.hook.acting_names import Actor
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout


def answer(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns what the agent has not been told yet, or None if there is nothing."""
    if not answers.reads_context(event):
        return None
    layout = discover(event.cwd, env)
    actor = find_actor(layout, env, event)
    if actor.name is None:
        return None
    now_ms = time.time_ns() // 1_000_000
    # A database has to be asked: no file changes when somebody writes to it.
    hive = None if layout.settings.engine_kind == "files" else open_as(layout, actor.name)
    if not Told(layout, actor.name, hive.engine if hive else None).changed(now_ms):
        presence.note(layout, actor.name, now_ms)
        return None
    from queenbee.services.telling import news  # noqa: PLC0415 - start-up

    # After each of many tools, what cannot be remembered would be said again and again.
    hive = hive or open_as(layout, actor.name)
    hive.note_presence()
    text = news.take(
        hive,
        pass_as=actor.pass_as,
        only_once=event.kind == events.AFTER_EDIT,
    )
    return answers.context(event, text) if text else None


def at_stop(event: Event, env: Mapping[str, str]) -> Answer | None:
    """Returns what keeps an agent from stopping, once in a session, or None if it may stop.

    It is kept if it has an issue, or owes somebody an answer.
    """
    if event.was_kept or event.broken_off or not event.session or not answers.can_hold(event):
        return None
    layout = discover(event.cwd, env)
    if layout.settings.hook_stop == "off":
        return None
    actor = find_actor(layout, env, event)
    if actor.name is None:
        return None
    told, key = Told(layout, actor.name), f"stop:{'_'.join(event.session.split())}"
    if key in told.known():
        return None
    from queenbee.services.telling import news, open_ends  # noqa: PLC0415 - start-up

    hive = _opened(layout, actor)
    reason = open_ends.leaves(hive, pass_as=actor.pass_as)
    # Without a memory, it could be kept for ever.
    if not reason or not told.add([key, *(key_of(each.id) for each in open_ends.mail_of(hive))]):
        return None
    more = news.take(hive, pass_as=actor.pass_as)
    return answers.hold(event, "\n".join([reason, *([more] if more else [])]))


def _opened(layout: Layout, actor: Actor) -> Services:
    hive = open_as(layout, actor.name)
    hive.note_presence()
    return hive
