"""What the hive's lock costs: how long 8 writers wait for it, and what its import takes.

    python -m bench.lock

Each writer takes the lock, appends a line, releases the lock and waits for the disk.
Prints figures and judges nothing. `docs/adr/0004-lock.md` quotes them.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from queenbee.store.lock import KernelLock, LongLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from multiprocessing.synchronize import Barrier

    Take = Callable[[str], AbstractContextManager[object]]

WRITERS = 8
ROUNDS = 200
STARTS = 15
LINE = b'{"id":"qm-01JF3Z6K8N9P0Q1R2S3T4V5W6X","body":"' + b"x" * 250 + b'"}\n'


@contextmanager
def _blocking(path: str) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _kernel(path: str) -> KernelLock:
    return KernelLock(path, holder="bench", timeout_s=60)


def _long(path: str) -> LongLock:
    return LongLock(path, holder="bench", timeout_s=60)


def _library(path: str) -> AbstractContextManager[object]:
    import filelock

    return filelock.FileLock(path, timeout=60)


LOCKS: list[tuple[str, Take]] = [
    ("flock that waits in the kernel (no deadline)", _blocking),
    ("flock that is tried again: KernelLock", _kernel),
    ("filelock, polling every 10 ms: LongLock", _long),
    ("filelock as it comes, polling every 50 ms", _library),
]

IMPORTS = ["pass", "import fcntl", "import filelock", "import click", "import click, filelock"]


def write(
    take: Take, folder: str, start: Barrier, waits: multiprocessing.Queue[list[float]]
) -> None:
    """Appends `ROUNDS` lines and reports how long each turn was waited for, in seconds."""
    mine = []
    fd = os.open(os.path.join(folder, "ledger"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    start.wait()
    for _ in range(ROUNDS):
        asked = perf_counter()
        with take(os.path.join(folder, "lock")):
            mine.append(perf_counter() - asked)
            os.write(fd, LINE)
        os.fdatasync(fd)
    waits.put(mine)


def race(take: Take) -> tuple[list[float], float]:
    """Returns every wait of `WRITERS` processes, sorted, and the seconds they took together."""
    with tempfile.TemporaryDirectory() as folder:
        start = multiprocessing.Barrier(WRITERS + 1)
        waits: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
        arguments = (take, folder, start, waits)
        writers = [multiprocessing.Process(target=write, args=arguments) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        start.wait()
        began = perf_counter()
        every = sorted(wait for _ in writers for wait in waits.get())
        took = perf_counter() - began
        for writer in writers:
            writer.join()
    return every, took


def start_ms(program: str) -> float:
    """Returns the milliseconds that a process with this program takes."""
    began = perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return (perf_counter() - began) * 1000


def main() -> None:
    """Prints both tables."""
    print(f"{WRITERS} writers, {ROUNDS} turns each: the wait for a turn, in ms")
    print(f"{'':46}{'p50':>9}{'p99':>9}{'longest':>9}{'turns/s':>9}")
    for name, take in LOCKS:
        waits, took_s = race(take)
        p50, p99 = (waits[int(len(waits) * share)] * 1000 for share in (0.5, 0.99))
        per_s = len(waits) / took_s
        print(f"{name:46}{p50:9.2f}{p99:9.2f}{waits[-1] * 1000:9.1f}{per_s:9.0f}")
    # Interleaved, so that a busy moment of the machine meets all of them alike.
    rounds = [[start_ms(program) for program in IMPORTS] for _ in range(STARTS)]
    print(f"\nA whole process, median of {STARTS}, in ms")
    for number, program in enumerate(IMPORTS):
        print(f"{program:46}{statistics.median(row[number] for row in rounds):9.1f}")


if __name__ == "__main__":
    main()
