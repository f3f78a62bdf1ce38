"""A cold fold without an index, against decoding every line and doing nothing with it: processor
time.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from typing import TYPE_CHECKING

import orjson

from bench import results
from bench.results import Row
from bench.stores import message_line
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(lines: int = 100_000, rounds: int = 5) -> Iterator[Row]:
    """Yields one row: the fold of so many lines in multiples of `orjson.loads` of each."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        path = os.path.join(folder, "queen_messages.jsonl")
        rng = random.Random(7)
        with open(path, "wb") as file:
            file.writelines(message_line(number, rng) for number in range(lines))
        times_s = [(_fold_s(path, folder, lines), _decode_s(path)) for _ in range(rounds)]
    ratios = [ours_s / floor_s for ours_s, floor_s in times_s]
    ours_ms = sorted(ours_s for ours_s, _ in times_s)[rounds // 2] * 1000
    yield results.of(
        f"cold fold of {lines:,} lines, against orjson.loads of each",
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


def _fold_s(path: str, folder: str, lines: int) -> float:
    begun = time.process_time()
    state = Folded("messages", Ledger(path, os.path.join(folder, "journal")))
    state.refresh()
    took = time.process_time() - begun
    assert len(state.everything()) == lines
    return took


if __name__ == "__main__":
    results.main(figures)
