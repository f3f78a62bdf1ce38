"""Which mutants are tried, and how sure a sample makes of the whole."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

Site = tuple[str, int]
"""A module's path from the repository's root, and the number of one of its mutants."""


def sample(counts: Mapping[str, int], size: int | None, seed: int) -> list[Site]:
    """Returns so many mutants, each as likely as any other; all of them for None.

    The same seed takes the same mutants of the same code.
    """
    population = [(path, number) for path in sorted(counts) for number in range(counts[path])]
    if size is None or size >= len(population):
        return population
    return sorted(random.Random(seed).sample(population, size))


def interval(caught: int, tried: int) -> tuple[float, float]:
    """Returns the bounds between which the share of all mutants lies, at 95 % (Wilson)."""
    if not tried:
        return 0.0, 1.0
    z, share = 1.96, caught / tried
    middle = share + z * z / (2 * tried)
    spread = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    scale = 1 + z * z / tried
    return (middle - spread) / scale, (middle + spread) / scale
