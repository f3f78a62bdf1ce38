"""What a hive in PostgreSQL costs, beside the least that a database could do.

    python -m bench.database [--each 200] [--writers 16] [--seconds 5] [--messages 100000]

The floor takes an advisory lock, asks for the last number, inserts a line and commits, with
psycopg, one statement after the other. It decides nothing. Floor and ours take turns, write by
write or round by round, on one server, whose commits reach the disk.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from bench.processes import compare, installed
from bench.stores import make_hive
from queenbee import Hive
from tests import postgres_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.queues import Queue

LINE = b'{"id":"qa-01JF3Z6K8N9P0Q1R2S3T4V5W6X","issue_id":"qb-1","droid":"' + b"x" * 230 + b'"}'


def floor(db: psycopg.Connection, hive: str) -> None:
    """Makes one write that decides nothing."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (hive,))
        row = db.execute("SELECT coalesce(max(number), 0) FROM bare WHERE hive = %s", (hive,))
        (last,) = row.fetchone() or (0,)
        db.execute("INSERT INTO bare VALUES (%s, %s, %s)", (hive, last + 1, LINE))


class Ours:
    """Claims and releases in turn: each is one write."""

    def __init__(self, tree: str, droid: str) -> None:
        self._hive = Hive.open(tree, droid=droid, env=dict(os.environ))
        self._droid = droid
        self._count = 0

    def __call__(self) -> None:
        """Makes one write."""
        issue = f"qb-{self._droid}-{self._count // 2}"
        assignments = self._hive.assignments
        (assignments.release if self._count % 2 else assignments.claim)(issue)
        self._count += 1


def new_tree(folder: str, server: postgres_server.Server, hive: str | None = None) -> str:
    """Makes a repository whose hive is in the database."""
    tree = tempfile.mkdtemp(dir=folder)
    subprocess.run(["git", "init", "-q", tree], check=True)
    postgres_server.use(Path(tree, ".beads"), server, hive)
    return tree


def one_writer(folder: str, server: postgres_server.Server, each: int) -> None:
    """Prints how long one write takes, of the floor and ours in turn."""
    ours = Ours(new_tree(folder, server), "ada")
    times: dict[str, list[float]] = {"floor": [], "ours": []}
    busy: dict[str, list[float]] = {"floor": [], "ours": []}
    with psycopg.connect(server.url, autocommit=True) as db:
        for number in range(each):
            for name, write in (("floor", lambda: floor(db, "one")), ("ours", ours)):
                begun, cpu = time.perf_counter(), time.thread_time()
                write()
                if number >= 10:
                    times[name].append((time.perf_counter() - begun) * 1000)
                    busy[name].append((time.thread_time() - cpu) * 1000)
    for name, took in times.items():
        low, middle, high = statistics.quantiles(took, n=4)
        print(
            f"  one writer, {name:6} {low:6.2f} / {middle:6.2f} / {high:6.2f} ms (quartiles), "
            f"{statistics.median(busy[name]):.2f} ms of the processor"
        )
    middle = {name: statistics.median(took) for name, took in times.items()}
    print(f"  throughput against the floor: {middle['floor'] / middle['ours']:.2f}")


def _write_on(
    make: Callable[[], Callable[[], None]], seconds: float, done: Queue[tuple[int, float]]
) -> None:
    write = make()
    write()
    end_s, count, cpu = time.monotonic() + seconds, 0, time.process_time()
    while time.monotonic() < end_s:
        write()
        count += 1
    done.put((count, time.process_time() - cpu))


def _floor_of(url: str, hive: str) -> Callable[[], None]:
    db = psycopg.connect(url, autocommit=True)
    return lambda: floor(db, hive)


def many_writers(
    folder: str, server: postgres_server.Server, writers: int, seconds: float, rounds: int = 3
) -> None:
    """Prints the writes per second of many processes, in one hive and in one hive each."""
    for hives in (1, writers):
        trees = [new_tree(folder, server) for _ in range(hives)]
        rates: dict[str, list[float]] = {"floor": [], "ours": []}
        busy: dict[str, list[float]] = {"floor": [], "ours": []}
        for turn in range(rounds):
            names = [f"{turn}-{number}" for number in range(writers)]
            bare = [partial(_floor_of, server.url, f"of-{n % hives}") for n in range(writers)]
            ours = [partial(Ours, trees[n % hives], f"d{name}") for n, name in enumerate(names)]
            for name, makes in (("floor", bare), ("ours", ours)):
                rate, cpu_ms = _rate(makes, seconds)
                rates[name].append(rate)
                busy[name].append(cpu_ms)
        for name, found in rates.items():
            spread = f"{statistics.median(found):6.0f}/s ({min(found):.0f}-{max(found):.0f})"
            cpu = f"{statistics.median(busy[name]):.2f} ms of the processor each"
            print(f"  {writers} writers, {hives:2} hives, {name:6} {spread}, {cpu}")
        ratios = [each / bare for each, bare in zip(rates["ours"], rates["floor"], strict=True)]
        print(f"  throughput against the floor: {statistics.median(ratios):.2f}")


def _rate(makes: Sequence[Callable[[], Callable[[], None]]], seconds: float) -> tuple[float, float]:
    """Returns the writes per second of so many processes at once, and the processor time of each
    in ms, without the server's.
    """
    context = multiprocessing.get_context("fork")
    done: Queue[tuple[int, float]] = context.Queue()
    workers = [context.Process(target=_write_on, args=(make, seconds, done)) for make in makes]
    for worker in workers:
        worker.start()
    counts, cpu_s = zip(*(done.get() for _ in workers), strict=True)
    for worker in workers:
        worker.join()
    return sum(counts) / seconds, sum(cpu_s) * 1000 / max(1, sum(counts))


def inboxes(folder: str, server: postgres_server.Server, messages: int, runs: int) -> None:
    """Prints what `queen msg inbox` takes on files and on the database, both with their index."""
    files, copy = os.path.join(folder, "files"), os.path.join(folder, "copy")
    make_hive(files, messages=messages, rotate=False)
    shutil.copytree(files, copy)
    subprocess.run([*installed("queen"), "engine", "use", "postgres"], cwd=copy, check=True)
    inbox = [*installed("queen"), "--as", "droid-1", "msg", "inbox", "--limit", "20"]
    # Both sides are the same command: its floor here is the one on files.
    at_copy = [*inbox, "--beads-dir", os.path.join(copy, ".beads")]
    figure = compare(at_copy, inbox, folder=files, runs=runs)
    print(
        f"  inbox at {messages:,}: files {figure.floor_s * 1000:.0f} ms, "
        f"database {figure.median_s * 1000:.0f} ms, {figure.ratio:.2f} times as long "
        f"({figure.spread[0]:.2f}-{figure.spread[1]:.2f})"
    )


def main() -> None:
    """Runs the benchmarks and prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--each", type=int, default=200, help="writes of one writer")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5, help="of one round of many writers")
    parser.add_argument("--messages", type=int, default=100_000, help="in the inboxes; 0: none")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(dir=os.environ.get("BENCH_DIR"))
    try:
        with postgres_server.running() as server:
            os.environ.update({postgres_server.URL: server.url, "QUEEN_DURABILITY": "synced"})
            with psycopg.connect(server.url) as db:
                db.execute(
                    "CREATE TABLE bare (hive text, number bigint, line bytea, "
                    "PRIMARY KEY (hive, number))"
                )
            if options.each:
                one_writer(folder, server, options.each)
            if options.writers:
                many_writers(folder, server, options.writers, options.seconds)
            if options.messages:
                inboxes(folder, server, options.messages, 15)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
