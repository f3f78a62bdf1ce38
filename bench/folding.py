"""A cold fold without an index, against decoding every line and doing nothing with it."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time

import orjson

from bench.stores import message_line
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded


def figures(lines: int = 100_000, rounds: int = 5) -> list[tuple[str, str]]:
    """Returns one row: the fold of so many lines in multiples of `orjson.loads` of each."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        path = os.path.join(folder, "queen_messages.jsonl")
        rng = random.Random(7)
        with open(path, "wb") as file:
            file.writelines(message_line(number, rng) for number in range(lines))
        ratios, ours_s = [], []
        for _ in range(rounds):
            begun = time.perf_counter()
            with open(path, "rb") as file:
                for line in file:
                    orjson.loads(line)
            floor_s = time.perf_counter() - begun
            begun = time.perf_counter()
            state = Folded("messages", Ledger(path, os.path.join(folder, "journal")))
            state.refresh()
            ours_s.append(time.perf_counter() - begun)
            ratios.append(ours_s[-1] / floor_s)
            assert len(state.everything()) == lines
            del state
    figure = (
        f"{statistics.median(ratios):.2f} x orjson.loads of every line (goal 2), "
        f"{statistics.median(ours_s) * 1000:.0f} ms"
    )
    return [(f"cold fold of {lines:,} lines", figure)]


if __name__ == "__main__":
    for what, figure in figures():
        print(f"{what:40} {figure}")
