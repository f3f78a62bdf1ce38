"""What the screen costs: nothing while nothing happens, and no more over a long history."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from boards import drive
from hives import Queen
from textual.pilot import Pilot

from bench.board import Window, make_large
from queenbee import Hive
from queenbee.watch import facts

_IDLE_S = 5


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    """The screen of 50 droids, 2,000 issues and 20,000 messages, in a terminal of its own."""
    repo = tmp_path / "large"
    make_large(repo, messages=20_000)
    assert Queen(repo)("status", as_="droid-00").code == 0
    os.environ.pop("COLUMNS", None)
    opened = Window(repo, "droid-01")
    opened.until("of 2000 issues done")
    yield opened
    assert opened.leave() == 0


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.linux
def test_a_large_hive_takes_little_memory_and_no_processor_while_nothing_happens(
    window: Window,
) -> None:
    window.idle(3)
    assert window.idle(_IDLE_S) < _IDLE_S / 20  # Measured: 0.02 s.
    assert window.peak_mib() < 150  # Measured: 61 with five times as many messages.


def test_nothing_is_read_while_nothing_is_written(
    team: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[float] = []
    read = facts.Reader.read

    def counted(self: facts.Reader) -> facts.Facts:
        reads.append(time.monotonic())
        return read(self)

    monkeypatch.setattr(facts.Reader, "read", counted)

    async def steps(pilot: Pilot[None]) -> None:
        before = len(reads)
        await pilot.pause(2)
        assert len(reads) == before
        team.messages.send("ui", "Something happens")
        while len(reads) == before:
            await pilot.pause(0.05)

    drive(team, steps)
