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
        times_s = [(_fold_s(path, folder, lines), _decode_s(path)) for _ in range(rounds)]
    ratio = statistics.median(ours_s / floor_s for ours_s, floor_s in times_s)
    ours_ms = statistics.median(ours_s for ours_s, _ in times_s) * 1000
    figure = f"{ratio:.2f} x orjson.loads of every line (goal 3), {ours_ms:.0f} ms"
    return [(f"cold fold of {lines:,} lines", figure)]


def _decode_s(path: str) -> float:
    begun = time.perf_counter()
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
    return time.perf_counter() - begun


def _fold_s(path: str, folder: str, lines: int) -> float:
    begun = time.perf_counter()
    state = Folded("messages", Ledger(path, os.path.join(folder, "journal")))
    state.refresh()
    took = time.perf_counter() - begun
    assert len(state.everything()) == lines
    return took


if __name__ == "__main__":
    for what, figure in figures():
        print(f"{what:40} {figure}")
