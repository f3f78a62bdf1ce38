"""What was typed here counts as seen, unless an agent typed it. ADR 0041."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.settings import Settings
from queenbee.store.trust import (
    BY,
    CLOSING,
    LABELS,
    MERGE,
    REVIEWERS,
    TARGET,
    Trust,
    of_exchange,
    of_setting,
    of_target,
    target_proposal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from queenbee.store.layout import Layout
    from queenbee.store.trust import Proposal


WAYS = (BY, MERGE, LABELS, REVIEWERS)
"""The settings that say how work lands."""


def note_typed(layout: Layout, proposals: Sequence[Proposal]) -> None:
    """Remembers that somebody here has seen commands that were typed. Where it cannot, they are
    asked for when they are to run.
    """
    if proposals and not is_by_agent(layout):
        with suppress(QueenError):
            Trust(layout).add([*proposals])


def set_value(
    layout: Layout,
    name: str,
    value: object,
    *,
    holder: str,
    add: bool = False,
    path: str | None = None,
) -> bool:
    """Sets a setting as `put_value` does. A command that is set so may run here."""
    from queenbee.store.settings_file.changing_text import put_value  # noqa: PLC0415 - start-up

    typed = [] if add or is_by_agent(layout) else _typed_landing(layout, name, value)
    changed = put_value(layout, name, value, holder=holder, add=add, path=path)
    if typed:
        with suppress(QueenError):
            Trust(layout).replace_target(typed)
    if name == CLOSING:
        note_typed(layout, of_exchange(layout, value))
    elif not add:  # What was in the list may be another's.
        note_typed(layout, of_setting(name, value))
    return changed


def _typed_landing(layout: Layout, name: str, value: object) -> list[Proposal]:
    """Returns what whoever sets this agrees to of where and how work lands: the whole, if all else
    of it is so by default, or was agreed to before; else nothing.
    """
    if name != TARGET and name not in WAYS:
        return []
    now, usual = _landing(layout.settings), _landing(Settings())
    said = {name: (tuple(value) if isinstance(value, list) else value) or usual[name]}
    before, whole = _whole(layout, now), _whole(layout, {**now, **said})
    alone = _whole(layout, {**usual, TARGET: now[TARGET], **said})
    trust = Trust(layout)
    if trust.unseen([before]):
        is_placed = name == TARGET or not trust.unseen(of_target(layout))
        if not is_placed or alone != whole:
            return []
    return [replace(whole, more=()), whole]


def _landing(settings: Settings) -> dict[str, Any]:
    """Returns where and how work lands, by setting."""
    return {each: getattr(settings, each.replace(".", "_")) for each in (TARGET, *WAYS)}


def _whole(layout: Layout, said: Mapping[str, Any]) -> Proposal:
    """Returns what landings move where the settings say this, also with what changes nothing yet:
    it counts once work is proposed, or lands at a remote.
    """
    ways = {each.partition(".")[2]: said[each] for each in WAYS}
    found = target_proposal(layout, said[TARGET], **ways)
    usual = _landing(Settings())
    more = (f"{each} = {said[each]}" for each in WAYS if said[each] != usual[each])
    return found if found.origin == BY else replace(found, more=(*more,))
