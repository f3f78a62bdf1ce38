"""Parts of ids: any part that only one id has names it, so nobody has to copy 29 characters.

A whole id always wins, but for a short one of a record that is also a part of an id that `queen`
made: a row that somebody pushed may have the part that a list has shown. Otherwise the ids that end
in the part count; if there are none, those that begin with it; if there are none, those that
contain it. Lists show the shortest end that names one record, so what is copied from a list is an
id. An imported issue is also called what it is called where it came from.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.ids import SHORTEST_PART, WHOLE, spellings
from queenbee.core.kinds import KINDS
from queenbee.errors import Ambiguous

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from queenbee.services.open_store import Store
    from queenbee.store.memory.recorded import Recorded

_SHOWN = 5


def record_id(state: Recorded, text: str) -> str | None:
    """Returns the id of the record that an id or a part of one names, or None.

    A part may have the prefix of its kind in front: `qm-5W6X`. Raises `Ambiguous`.
    """
    is_there = state.get(text) is not None
    if is_there and len(text) >= WHOLE:
        return text
    prefix, _, rest = text.partition("-")
    mine = KINDS[state.kind].prefix if state.kind in KINDS else ""
    parts = [text, rest] if mine and prefix.lower() == mine else [text]
    for part in parts:
        if SHORTEST_PART <= len(part) < WHOLE + len(mine) + 1 and (found := state.named(part)):
            made = [each for each in found if len(each) >= WHOLE]
            return only(text, {*made, text} if is_there else found)
    return text if is_there else None


def one_of(issue_ids: Collection[str], text: str) -> str | None:
    """Returns the one of these issues' ids that an id or a part of one names, or None.

    What follows the last `-` of an id names it however short it is: `42` is `qb-42`. No part ends
    within a number: `qb-4` is another issue than `qb-42`. Raises `Ambiguous`.
    """
    if text in issue_ids:
        return text
    if not text:
        return None
    for spelling in spellings(text):
        if found := [each for each in issue_ids if each.rpartition("-")[2] == spelling]:
            return only(text, found)
    if len(text) < SHORTEST_PART:
        return None
    for matches in (str.endswith, str.startswith, str.__contains__):
        for spelling in spellings(text):
            found = [each for each in issue_ids if matches(each, spelling)]
            if found := [each for each in found if not _splits_a_number(each, spelling)]:
                return only(text, found)
    return None


def _splits_a_number(identifier: str, part: str) -> bool:
    before, _, after = identifier.partition(part)
    return (before[-1:].isdigit() and part[0].isdigit()) or (
        after[:1].isdigit() and part[-1].isdigit()
    )


def issue_id(
    store: Store,
    issues: Callable[[], Collection[str]],
    referred: Callable[[str], list[str]],
    text: str,
    *,
    recorded: bool,
) -> str:
    """Returns the id of the issue that an id or a part of one names, or its name elsewhere, for
    which `referred` looks; see `Services.issue_id`.
    """
    setting, tracker = store.layout.settings.issues, store.tracker()
    tracked = not tracker.is_empty or os.path.exists(tracker.path)
    anything = setting == "off" or (setting == "auto" and not tracked)
    if anything and not recorded:
        return text
    if tracker.has(text):
        return text
    known = dict.fromkeys(issues())
    if text in known:
        return text
    if recorded:
        for kind in ("assignments", "messages", "reservations"):
            if store.state(kind).select({"issue_id": text}, limit=1):
                return text
        held = store.state("assignments").project(("issue_id",), {"status": "active"})
        known.update(dict.fromkeys(each for (each,) in held if isinstance(each, str)))
    if named := one_of(known, text):
        return named
    found = referred(text)
    return only(text, found, "names several issues") if found else text


def only(text: str, found: Iterable[str], problem: str = "is a part of several ids") -> str:
    """Returns the one id of these that a part names. Raises `Ambiguous` if there are several."""
    first, *others = sorted(found)
    if not others:
        return first
    candidates = [first, *others]
    more = ", …" if len(candidates) > _SHOWN else ""
    raise Ambiguous(
        f"{text!r} {problem}: {', '.join(candidates[:_SHOWN])}{more}",
        hint="give more of the id",
        candidates=candidates,
    )
