"""Issues that a droid waited for in vain: it is told when they are done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.store.droids.told import Told, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.services.hive import Services


def awaits(hive: Services, issue_ids: Sequence[str]) -> None:
    """Remembers that the actor waited for issues in vain."""
    if hive.actor_or_none is not None:
        Told(hive.layout, hive.actor_or_none).add(key_of(f"awaits:{each}") for each in issue_ids)


def awaited_of(known: Sequence[str]) -> set[str]:
    """Returns the issues that a droid still awaits, from the keys of what it was told."""
    awaited: set[str] = set()
    for key in known:
        kind, _, issue_id = key.partition(":")
        if kind == "awaits":
            awaited.add(issue_id)
        elif kind == "done":
            awaited.discard(issue_id)
    return awaited
