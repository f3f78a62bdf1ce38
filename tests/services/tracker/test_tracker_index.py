"""The index of a large tracker: it answers as reading the whole file does, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tracker_worlds import World, answers

from queenbee.services import issues as issues_module
from queenbee.store.index import tracker_lines


@pytest.fixture(autouse=True)
def indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has an index for any size, and no file change twice within one step of its clock: the times
    of the files here are set."""
    monkeypatch.setattr(issues_module, "INDEX_FROM_BYTES", 0)
    monkeypatch.setattr(tracker_lines, "_YOUNG_NS", -(10**19))
    monkeypatch.setattr(tracker_lines, "_COARSE_NS", -(10**19))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    numbers = iter(range(10**6))
    folder = tmp_path_factory.mktemp("trackers")
    return lambda: folder / str(next(numbers))


def play(place: Path, seed: int, moves: int) -> Iterator[tuple[str, World]]:
    """Yields a world before and after each of some moves."""
    world = World(place, Random(seed))
    try:
        yield "begin", world
        for _ in range(moves):
            yield world.change(), world
    finally:
        world.close()


@given(seed=st.integers(0, 2**32))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_it_answers_as_the_file_does(places: Callable[[], Path], seed: int) -> None:
    done = []
    for what, world in play(places(), seed, 14):
        done.append(what)
        told, truth = answers(world.indexed), answers(world.plain)
        assert {key: told[key] for key in truth} == truth, done
        assert not world.indexed.issues._index_failed, done
