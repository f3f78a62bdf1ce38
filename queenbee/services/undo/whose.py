"""Whose step may be taken back: an agent's own, and by a person any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.kinds import ISSUES
from queenbee.core.names import PERSON
from queenbee.core.text import mentioned
from queenbee.errors import Conflict, NotYours
from queenbee.services.assignments import SUPERVISORS
from queenbee.services.history import revisions
from queenbee.store.callers.agent_above import is_agent
from queenbee.store.droids.agent_callers import calling_agent
from queenbee.store.droids.identity import find_actor

if TYPE_CHECKING:
    from queenbee.services.hive import Services
    from queenbee.services.undo.step import Step


def refuse_unproved(hive: Services, step: Step) -> None:
    """Raises `Conflict` for a step whose lines the hive does not have, or which say that another
    droid wrote them: what a note says proves nothing.
    """
    for kind, lines in step.lines.items():
        for identifier, (first, last, names) in lines.items():
            found = revisions(kind, hive.state(kind).history(identifier))
            # A line that is there twice changes nothing the second time, and has no author.
            wrote = [each for each in found if first <= each.rev <= last and each.changes]
            is_whole = bool(wrote) and (kind != ISSUES or first > 1 or "id" in names)
            by = [each.by for each in wrote]
            if "id" in names and hive.author != PERSON:  # Where a person's note is, none is forged.
                is_whole = is_whole and by[0] == hive.author
            if not is_whole or not {*by} <= {None, hive.author}:
                raise Conflict(
                    f"nothing says that {hive.author} wrote {mentioned(identifier)}",
                    hint="what happened: queen log",
                    id=identifier,
                )


def refuse_another(hive: Services) -> None:
    """Raises `NotYours` for an agent that would take back the step of a person, or of another droid
    than it is: as its team, its environment or its worktree says.

    `UnknownCaller` for somebody who may be an agent of a team.
    """
    agent, actor = calling_agent(hive.layout), hive.actor_or_none
    if agent is not None:
        agent.refuse_unknown("it takes nothing back")
    elif not is_agent():
        return
    own = actor  # `--as` is believed where nothing else says.
    if agent is not None and agent.is_here:
        own = agent.name
    elif (found := find_actor(hive.layout, os.environ, None)) is not None:
        own = found[0]
    is_own = actor is not None and (actor == own or actor.startswith(f"{own}."))  # A subagent.
    if not is_own or actor in SUPERVISORS:
        raise NotYours(
            f"an agent takes back only its own last command, not that of {mentioned(hive.author)}",
            hint="a person: queen undo, in a terminal that no agent has started; an agent: under "
            "its own name",
        )
