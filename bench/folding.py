"""The first read of a clone, against decoding every line and no more: processor time."""

from __future__ import annotations

import glob
import os
import random
import tempfile
import time
from typing import TYPE_CHECKING

import orjson

from bench import results
from bench.results import Row
from bench.stores import message_line
from queenbee.store.layout import discover
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.recorded import Recorded

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(lines: int = 100_000, rounds: int = 5) -> Iterator[Row]:
    """Yields one row: reading so many lines in multiples of `orjson.loads` of each."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        os.mkdir(os.path.join(folder, ".beads"))
        path = os.path.join(folder, ".beads", "queen_messages.jsonl")
        rng = random.Random(7)
        with open(path, "wb") as file:
            file.writelines(message_line(number, rng) for number in range(lines))
        times_s = [(_first_read_s(folder, lines), _decode_s(path)) for _ in range(rounds)]
    ratios = [ours_s / floor_s for ours_s, floor_s in times_s]
    ours_ms = sorted(ours_s for ours_s, _ in times_s)[rounds // 2] * 1000
    yield results.of(
        f"first read of {lines:,} lines, against orjson.loads of each",
        ratios,
        results.TIMES,
        goal=3,
        note=f"{ours_ms:.0f} ms",
    )


def _decode_s(path: str) -> float:
    begun = time.process_time()
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
    return time.process_time() - begun


def _first_read_s(folder: str, lines: int) -> float:
    layout = discover(folder, {})
    begun = time.process_time()
    memory = FilesMemory(layout)
    state = Recorded("messages", memory)
    state.refresh()
    took = time.process_time() - begun
    assert len(state.everything()) == lines
    memory.close()
    for path in glob.glob(layout.memory_path + "*"):
        os.unlink(path)
    return took


if __name__ == "__main__":
    results.main(figures)
