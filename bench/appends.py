"""Durable appends per second, by 1 and 8 processes, against the bare floor of this disk."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import statistics
import tempfile
import time
from typing import TYPE_CHECKING

from bench import results
from bench.stores import make_hive
from queenbee.services.hive import Services

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.results import Row

GOALS = {1: {"share": 0.3}, 8: {"share": 0.5, "p99": 30, "fairness": 0.8}}

_LINE = b'{"id":"qm-0","body":"' + b"x" * 280 + b'"}\n'


def bare(folder: str, count: int, turns: multiprocessing.Queue) -> None:
    """The floor: open, flock, write, unlock, fdatasync; nothing is read, checked or encoded."""
    latencies = []
    lock_path, path = os.path.join(folder, "lock"), os.path.join(folder, "bare")
    for _ in range(count):
        begun = time.perf_counter()
        lock = os.open(lock_path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, _LINE)
        os.close(lock)
        os.fdatasync(file)
        os.close(file)
        latencies.append(time.perf_counter() - begun)
    turns.put(latencies)


def ours(folder: str, count: int, turns: multiprocessing.Queue) -> None:
    """The same through the library: a message with journal, ledger, lock and sync."""
    latencies = []
    with Services.open(folder, droid=f"droid-{os.getpid()}") as hive:
        for _ in range(count):
            begun = time.perf_counter()
            hive.messages.send("queen", "x" * 280, subject="benchmark")
            latencies.append(time.perf_counter() - begun)
    turns.put(latencies)


def measure(writer: object, processes: int, count: int) -> tuple[float, float, float, float]:
    """Returns appends per second, p50 and p99 in ms, and fairness: the share of the slowest
    writer's rate in the fastest's.
    """
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        make_hive(folder)
        turns: multiprocessing.Queue = multiprocessing.Queue()
        workers = [
            multiprocessing.Process(target=writer, args=(folder, count, turns))  # type: ignore[arg-type]
            for _ in range(processes)
        ]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        each = [turns.get() for _ in workers]
        took = time.perf_counter() - begun
        for worker in workers:
            worker.join()
    latencies = sorted(latency for one in each for latency in one)
    totals = sorted(sum(one) for one in each)
    return (
        processes * count / took,
        statistics.median(latencies) * 1000,
        latencies[int(len(latencies) * 0.99)] * 1000,
        totals[0] / totals[-1],
    )


def figures(count: int = 300, counts: tuple[int, ...] = (1, 8)) -> Iterator[Row]:
    """Yields rows for so many processes, each pair of ours and the floor measured in turn."""
    for processes in counts:
        rounds = [
            (
                measure(ours, processes, count // processes),
                measure(bare, processes, count // processes),
            )
            for _ in range(5)
        ]
        mine, floor = (list(zip(*side, strict=True)) for side in zip(*rounds, strict=True))
        name = f"durable appends, {processes} process{'es' * (processes > 1)}"
        goals = GOALS.get(processes, {})
        yield results.of(
            name,
            [one / other for one, other in zip(mine[0], floor[0], strict=True)],
            results.SHARE,
            better="more",
            goal=goals.get("share"),
            note=f"{statistics.median(mine[0]):.0f}/s, floor {statistics.median(floor[0]):.0f}/s",
        )
        p50, p99 = (statistics.median(column) for column in (mine[1], floor[2]))
        yield results.of(
            f"{name}, p99",
            mine[2],
            "ms",
            goal=goals.get("p99"),
            note=f"p50 {p50:.1f} ms, floor p99 {p99:.1f} ms",
        )
        if processes > 1:
            yield results.of(
                f"{name}, fairness",
                mine[3],
                "",
                better="more",
                goal=goals.get("fairness"),
                note=f"floor {statistics.median(floor[3]):.2f}",
            )


if __name__ == "__main__":
    results.main(figures)
