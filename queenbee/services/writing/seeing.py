"""What was typed here counts as seen, unless an agent typed it. ADR 0041."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.trust import (
    BY,
    CLOSING,
    LABELS,
    MERGE,
    REVIEWERS,
    TARGET,
    Trust,
    builds_on_target,
    of_exchange,
    of_setting,
    target_proposal,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.layout import Layout
    from queenbee.store.trust import Proposal


_OF_TARGET = (BY, MERGE, LABELS, REVIEWERS)


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

    trust, is_typed = Trust(layout), name == TARGET
    if not is_typed:  # Who types something else of the landing has not seen where it lands.
        is_typed = name in _OF_TARGET and not add and builds_on_target(layout)
    changed = put_value(layout, name, value, holder=holder, add=add, path=path)
    if is_typed and not is_by_agent(layout):
        said = {name.partition(".")[2]: value or ""}
        target = said.pop("target", layout.settings.land_target)
        with suppress(QueenError):
            trust.replace_target(target_proposal(layout, str(target), **said))
    if name == CLOSING:
        note_typed(layout, of_exchange(layout, value))
    elif not add:  # What was in the list may be another's.
        note_typed(layout, of_setting(name, value))
    return changed
