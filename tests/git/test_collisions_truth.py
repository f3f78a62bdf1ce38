"""The verdict on each pair of worktrees is what `git merge` does, file by file.

`make collisions` compares 300 pairs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from collision_worlds import PAIRS, Stages, World, with_merged_as

from queenbee.git.collisions.comparing import compare
from queenbee.store.layout import discover

WORLDS = -(-int(os.environ.get("COLLISION_PAIRS", "42")) // PAIRS)


def verdict(world: World) -> dict[tuple[str, str], Stages]:
    """Returns what the comparison says of each pair of topics that conflicts."""
    found = compare(discover(str(world.repo), {}, must_exist=False))
    assert not [note for side in found.sides for note in side.notes]
    return {
        (pair.a.name, pair.b.name): {each.path: each.stages for each in pair.files if each.stages}
        for pair in found.pairs
        if "main" not in (pair.a.name, pair.b.name)
    }


@pytest.mark.some(3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(WORLDS))
def test_the_verdict_is_that_of_git_merge(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path / "world", seed)
    found, truth = verdict(world), world.truth(tmp_path)
    assert {
        pair: with_merged_as(files, truth.get(pair, {})) for pair, files in found.items()
    } == truth
