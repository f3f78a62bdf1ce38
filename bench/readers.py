"""Reads per second by 1 and 16 processes that keep a large hive open, alone and beside writers.

    python -m bench.readers [MESSAGES]

Each reader asks for its inbox, each writer sends messages, as fast as they can. Prints figures and
judges nothing. `docs/performance.md` quotes them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from bench.stores import DROIDS, make_hive
from queenbee.services.hive import Services

if TYPE_CHECKING:
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


def measure(folder: str, readers: int, writers: int) -> tuple[str, float]:
    """Returns a line of figures, and the reads per second of all readers together."""
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
    figures = [f"{readers:2} readers, {writers} writers:"]
    rate = 0.0
    for what in ("read", "write"):
        took = sorted(one for kind, many in each if kind == what for one in many)
        if took:
            median, late = (took[int(len(took) * share)] * 1000 for share in (0.5, 0.99))
            per_s = len(took) / SECONDS
            rate = rate or per_s
            figures.append(f"{per_s:7.0f} {what}s/s, median {median:.2f} ms, p99 {late:.0f} ms;")
    return " ".join(figures), rate


def main() -> None:
    """Prints the figures."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        make_hive(folder, messages=messages)
        with Services.open(folder, droid="queen") as hive:
            hive.messages.inbox(limit=1)
        one: dict[int, float] = {}
        for readers, writers in ((1, 0), (READERS, 0), (1, WRITERS), (READERS, WRITERS)):
            line, rate = measure(folder, readers, writers)
            one.setdefault(writers, rate)
            print(f"{line} {rate / one[writers]:.2f} of one reader", flush=True)


if __name__ == "__main__":
    main()
