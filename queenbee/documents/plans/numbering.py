"""The numbers of a plan's sprints and phases: its own where they can be, else counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from queenbee.documents.plans.headings import PHASE, SPRINT, Heading, Unit
from queenbee.documents.sprints.numbers import is_phase, is_sprint, phase_of


def numbers_of(
    units: Sequence[Heading],
    over: Mapping[int, int],
    phases: Mapping[int, Heading],
    unit: Unit | None,
) -> tuple[dict[int, str], dict[int, str]]:
    """Returns the number of each unit and of each phase, by the index of their line.

    They are the plan's own where they can be: whole (`1.2`), or of the phase and the unit. Else
    they count what is written.
    """
    own = {first: each.number for first, each in phases.items()}
    if (
        unit is not None
        and units
        and all(is_sprint(one.number) for one in units if one.first not in phases)
    ):
        below = {over[one.first]: one.number for one in reversed(units) if one.first not in phases}
        for n, (first, each) in enumerate(phases.items(), 1):
            if unit.word != SPRINT or each.word != PHASE or not is_phase(each.number):
                usual = each.number if is_phase(each.number) else str(n)
                own[first] = phase_of(below.get(first, usual))
        return {
            one.first: one.number if one.first not in phases else f"{own[one.first]}.1"
            for one in units
        }, own
    if len({*own.values()}) < len(own) or not all(map(is_phase, own.values())):
        own = {first: str(n) for n, first in enumerate(phases, 1)}
    if unit is not None and unit.word == PHASE and not phases:
        simple = [one.number for one in units]
        good = len({*simple}) == len(simple) and all(map(is_phase, simple))
        return {one.first: f"{one.number if good else n}.1" for n, one in enumerate(units, 1)}, own
    own[-1] = "0" if phases else "1"
    last = {
        one.first: "1" if one.first in phases else _within_phase(one.number, own[over[one.first]])
        for one in units
    }
    numbers = {first: f"{own[over[first]]}.{number}" for first, number in last.items()}
    if not all(last.values()) or len({*numbers.values()}) < len(numbers):
        counts: Counter[str] = Counter()
        for one in units:
            phase = own[over[one.first]]
            counts[phase] += 1
            numbers[one.first] = f"{phase}.{counts[phase]}"
    return numbers, own


def _within_phase(number: str, phase: str) -> str:
    """Returns the number of a unit in its phase: `2` of `2` and of `1.2`; "" if it has none."""
    if is_sprint(number) and phase_of(number) == phase:
        return number.partition(".")[2]
    return number if is_phase(number) else ""
