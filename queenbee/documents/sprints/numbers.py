"""Numbers of phases and sprints, and the order of work that they encode.

`3a.2b` is sprint 2, letter b, in track a of phase 3. `docs/plans.md`, section "What the numbers
mean"; after the document on sprint beads, "Phase/Sprint Numbering".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PHASE = re.compile("[0-9]+[a-z]*")
_SPRINT = re.compile(r"([0-9]+)([a-z]*)\.([0-9]+)([a-z]*)")

_ZEROS = re.compile("(?<![0-9])0+(?=[0-9])")

Natural = tuple[int, str]
"""A whole number as (count of digits, digits): `int` refuses more than 4,300 digits."""


@dataclass(frozen=True, order=True)
class Track:
    """One line of work within a phase: `3`, `3a` or `3ab`."""

    phase: Natural
    letters: str


@dataclass(frozen=True, order=True)
class SprintNumber:
    """The position of a sprint in its plan; a smaller one comes first or runs in parallel."""

    track: Track
    group: Natural
    letters: str


def is_phase(text: str) -> bool:
    """Returns whether the whole text is a phase number such as `3` or `3a`."""
    return _PHASE.fullmatch(text) is not None


def is_sprint(text: str) -> bool:
    """Returns whether the whole text is a sprint number such as `1.2` or `3a.2b`."""
    return _SPRINT.fullmatch(text) is not None


def parse_sprint(text: str) -> SprintNumber:
    """Returns the number; leading zeros are ignored. Raises `ValueError` for anything else."""
    match = _SPRINT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a sprint number")
    phase, track, group, letters = match.groups()
    return SprintNumber(Track(_natural(phase), track), _natural(group), letters)


def without_zeros(sprint: str) -> str:
    """Returns a sprint number without leading zeros: `1.02` and `1.2` are the same sprint."""
    return _ZEROS.sub("", sprint)


def phase_of(sprint: str) -> str:
    """Returns the phase part of a sprint number, as it is written."""
    return sprint.partition(".")[0]


def sort_sprints(sprints: Iterable[str]) -> list[str]:
    """Returns sprint numbers in the plan's order: `1.2` before `1.10`, `3a.1` before `3b.1`."""
    return sorted(sprints, key=lambda text: (parse_sprint(text), text))


def sort_phases(phases: Iterable[str]) -> list[str]:
    """Returns phase numbers in the order of the plan."""
    return sorted(phases, key=lambda text: (parse_sprint(f"{text}.1"), text))


def _natural(digits: str) -> Natural:
    stripped = digits.lstrip("0")
    return (len(stripped), stripped)
