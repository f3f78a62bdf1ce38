"""Reads per second by 1 and 16 processes that keep a large hive open, alone and beside writers.

    python -m bench.readers [MESSAGES] [--json FILE]

Each reader asks for its inbox, each writer sends messages, as fast as they can. Prints figures and
judges nothing. `bench/results/performance.md` quotes them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from typing import TYPE_CHECKING

from bench import results
from bench.results import Row
from bench.stores import DROIDS, make_hive
from queenbee.services.hive import Services

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier, Event

SECONDS = 4.0
READERS = 16
WRITERS = 4


def read(
    folder: str, number: int, start: Barrier, stop: Event, turns: multiprocessing.Queue
) -> None:
    """Reads until it is told to stop; reports the seconds that each read took."""
    took = []
    with Services.open(folder, droid=DROIDS[number % len(DROIDS)]) as hive:
        hive.messages.inbox(limit=20)
        start.wait()
        while not stop.is_set():
            begun = time.perf_counter()
            hive.messages.inbox(limit=20)
            took.append(time.perf_counter() - begun)
    turns.put(("read", took))


def write(
    folder: str, number: int, start: Barrier, stop: Event, turns: multiprocessing.Queue
) -> None:
    """Writes until it is told to stop; reports the seconds that each write took."""
    took = []
    with Services.open(folder, droid=f"writer-{number}") as hive:
        hive.messages.send("queen", "hello")
        start.wait()
        while not stop.is_set():
            begun = time.perf_counter()
            hive.messages.send(DROIDS[len(took) % len(DROIDS)], "x" * 280, subject="benchmark")
            took.append(time.perf_counter() - begun)
    turns.put(("write", took))


def measure(folder: str, readers: int, writers: int) -> dict[str, list[float]]:
    """Returns the seconds that each read and each write took."""
    turns: multiprocessing.Queue = multiprocessing.Queue()
    start, stop = multiprocessing.Barrier(readers + writers + 1), multiprocessing.Event()
    works = [(read, number) for number in range(readers)]
    works += [(write, number) for number in range(writers)]
    workers = [
        multiprocessing.Process(target=work, args=(folder, number, start, stop, turns))
        for work, number in works
    ]
    for worker in workers:
        worker.start()
    start.wait()
    time.sleep(SECONDS)
    stop.set()
    each = [turns.get() for _ in workers]
    for worker in workers:
        worker.join()
    return {
        what: [one for kind, many in each if kind == what for one in many]
        for what in ("read", "write")
    }


def figures(messages: int) -> Iterator[Row]:
    """Yields what a read takes, and the reads per second against those of one reader."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        make_hive(folder, messages=messages)
        with Services.open(folder, droid="queen") as hive:
            hive.messages.inbox(limit=1)
        one: dict[int, int] = {}
        for readers, writers in ((1, 0), (READERS, 0), (1, WRITERS), (READERS, WRITERS)):
            took = measure(folder, readers, writers)
            name = f"{readers} readers, {writers} writers, {messages:,} messages"
            for what, spans_s in took.items():
                if spans_s:
                    yield _latency(f"{name}, a {what}", spans_s)
            reads = len(took["read"])
            share = reads / one.setdefault(writers, reads)
            if readers > 1:
                yield Row(f"{name}, reads", share, "of one reader", better="more")


def _latency(name: str, spans_s: list[float]) -> Row:
    late_ms = sorted(spans_s)[int(len(spans_s) * 0.99)] * 1000
    note = f"p99 {late_ms:.1f} ms, {len(spans_s) / SECONDS:.0f}/s"
    return results.of(name, [span * 1000 for span in spans_s], "ms", note=note)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("messages", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--json", metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    rows = results.show(figures(options.messages))
    if options.json:
        results.write(options.json, rows)


if __name__ == "__main__":
    main()
