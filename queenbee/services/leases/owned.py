"""Which of its leases a droid means, by pattern or by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.errors import InvalidInput, NotFound, NotYours

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.core.records import Reservation


def all_of(live: Iterable[Reservation], droid: str) -> list[Reservation]:
    """Returns all leases of a droid. Raises `NotFound` if it has none."""
    mine = [lease for lease in live if lease.droid == droid]
    if not mine:
        raise NotFound(f"{droid} holds no reservations", hint="queen reserve list")
    return mine


def named(
    live: Sequence[Reservation],
    droid: str,
    patterns: Iterable[tuple[str, str]],
    ids: Iterable[tuple[str, str | None]],
) -> list[Reservation]:
    """Returns the leases of a droid that these patterns and ids name, each once.

    Each pattern is given as it was typed and as it is read here, each id as typed and as found.
    Raises `NotFound` for one that nobody holds, and `NotYours` for another droid's.
    """
    mine = [lease for lease in live if lease.droid == droid]
    chosen: dict[str, Reservation] = {}
    for text, meant in patterns:
        # First what it means here, then a pattern copied from `queen reserve list`.
        found = _with_pattern(mine, meant) or _with_pattern(mine, text)
        if not found:
            raise _not_held(text, [each for each in live if each.pattern in (meant, text)], droid)
        chosen.update((lease.id, lease) for lease in found)
    for text, identifier in ids:
        one = [lease for lease in live if lease.id == identifier]
        if not one or one[0].droid != droid:
            raise _not_held(text, one, droid)
        chosen[one[0].id] = one[0]
    if not chosen:
        raise InvalidInput("no reservations given", hint="give patterns, --id ID, or --all")
    return list(chosen.values())


def _with_pattern(found: Iterable[Reservation], pattern: str) -> list[Reservation]:
    return [lease for lease in found if lease.pattern == pattern]


def _not_held(text: str, others: Sequence[Reservation], droid: str) -> NotFound | NotYours:
    if others:
        owner = others[0].droid
        return NotYours(
            f"{text} is reserved by {owner}, not by {droid}",
            hint=f"ask the holder: {suggested('queen msg send', owner, 'BODY')}",
            owner=owner,
            reservation=others[0].to_dict(),
        )
    return NotFound(
        f"{droid} holds no live reservation {text!r}",
        hint=f"{suggested('queen reserve list', droid=droid)}; if it has ended, reserve it again",
    )
