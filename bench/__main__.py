"""Prints what QueenBee costs, as ratios inside one run; judges nothing.

    python -m bench [--quick | --million] [--charts FOLDER]

Every figure is a median of runs in turn with its floor or baseline, with its spread. Peers are
measured where `QUEEN_BENCH_PEERS` names a file of commands, one a line: a name, a tab, and a
command that lists an inbox in a folder with ledgers.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import tempfile
import time

from bench import appends, enforcement, folding, history, overlap
from bench.processes import Figure, compare, installed, python
from bench.stores import (
    NAIVE_INBOX,
    SQLITE_INBOX,
    SQLITE_SEND,
    everything,
    make_hive,
    make_sqlite,
)

FLOOR = python("-c", "import click")
COMMANDS = {
    "msg inbox": ("msg", "inbox"),
    "next": ("next",),
    "status": ("status",),
    "msg send": ("msg", "send", "droid-2", "hello", "--issue", "qb-7"),
    "show": ("show", "qb-7"),
    "reserve": ("reserve", "src/new.py"),
    "check": ("check", "src/new.py"),
}
LEASE_COMMANDS = {
    "reserve": ("reserve", "elsewhere/new.py"),
    "check, free": ("check", "elsewhere/new.py"),
    "check, held": ("check", "src/app0/module0.py"),
}
GOALS = {"msg inbox": 1.3, "next": 1.6, "status": 1.6}
LEASE_GOAL = 1.6
_AS = ("--as", "droid-1")


def main() -> None:
    """Runs the benchmarks and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small stores, few runs")
    parser.add_argument("--million", action="store_true", help="also a million messages")
    parser.add_argument("--charts", metavar="FOLDER", help="write SVG charts there")
    options = parser.parse_args()
    runs = 5 if options.quick else 15
    sizes = [0, 10_000] if options.quick else [0, 10_000, 100_000]
    if options.million:
        sizes.append(1_000_000)
    print(machine())
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        inboxes = by_size(folder, sizes, runs)
        commits = with_git(folder, sizes)
        with_leases(folder, 1_000 if options.quick else 10_000, runs)
    in_process(quick=options.quick)
    if options.charts:
        from bench import charts

        charts.growth(inboxes, options.charts)
        charts.commits(commits, options.charts)


def machine() -> str:
    """Returns what the figures were measured on."""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    )


def by_size(folder: str, sizes: list[int], runs: int) -> dict[str, list[tuple[int, float]]]:
    """Prints whole processes against `python -c 'import click'` at each number of messages;
    returns the ratios of the inboxes for the chart.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    heading("Whole processes by number of messages, against `python -c 'import click'`")
    for size in sizes:
        hive = os.path.join(folder, f"hive-{size}")
        make_hive(hive, messages=size)
        database = os.path.join(folder, f"{size}.sqlite3")
        make_sqlite(database, size)
        for name, arguments in COMMANDS.items():
            figure = compare([*installed("queen"), *_AS, *arguments], FLOOR, folder=hive, runs=runs)
            row(size, name, figure, GOALS.get(name))
            if name in ("msg inbox", "msg send"):
                found.setdefault(f"queen {name}", []).append((size, figure.ratio))
        ledger = os.path.join(folder, f"{size}.jsonl")
        everything(hive, ledger)
        baselines = {
            "plain SQLite, inbox": python("-c", SQLITE_INBOX, database, "droid-1"),
            "plain SQLite, send": python("-c", SQLITE_SEND, database, "droid-1"),
            "read everything, inbox": python("-c", NAIVE_INBOX, ledger, "droid-1"),
        }
        few = max(3, runs // 3) if size >= 100_000 else runs
        for name, command in (baselines | peers()).items():
            if size or "everything" not in name:
                figure = compare(command, FLOOR, folder=hive, runs=few)
                row(size, name, figure)
                found.setdefault(name, []).append((size, figure.ratio))
    return found


def with_git(folder: str, sizes: list[int]) -> dict[str, list[tuple[int, float]]]:
    """Prints what pulls and commits cost at each number of messages; returns the seconds of
    commits for the chart.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    heading(f"With git: a clone, a pull, and days of {history.A_DAY:,} messages")
    for size in sizes:
        hive = os.path.join(folder, f"hive-{size}")
        for what, seconds in history.pull(hive, folder).items():
            print(f"  {size:>9,}  {what:28} {seconds:7.2f} s")
        for name, rotate in (("rotated", True), ("one growing file", False)):
            days = os.path.join(folder, f"days-{size}")
            make_hive(days, messages=size, rotate=rotate)
            seconds, grown = history.busy_days(days, rotate=rotate)
            shutil.rmtree(days)
            found.setdefault(name, []).append((size, seconds))
            print(
                f"  {size:>9,}  git commit of a day, {name:16} {seconds:7.2f} s, "
                f"{grown / 2**20:.1f} MiB in git for three"
            )
    return found


def peers() -> dict[str, list[str]]:
    """Returns the commands that `QUEEN_BENCH_PEERS` names."""
    path = os.environ.get("QUEEN_BENCH_PEERS")
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t", 1) for line in file if "\t" in line]
    return {name: shlex.split(command) for name, command in pairs}


def with_leases(folder: str, leases: int, runs: int) -> None:
    """Prints whole processes with so many live reservations."""
    heading(f"Whole processes with {leases:,} live reservations, against the same")
    hive = os.path.join(folder, "leases")
    make_hive(hive, leases=leases)
    for name, arguments in LEASE_COMMANDS.items():
        command = [*installed("queen"), *_AS, *arguments]
        row(leases, name, compare(command, FLOOR, folder=hive, runs=runs), LEASE_GOAL)


def in_process(*, quick: bool) -> None:
    """Prints what is measured inside one process."""
    heading("In process")
    rows = [*overlap.figures(), *folding.figures(2_000 if quick else 100_000)]
    rows += appends.figures(80 if quick else 300)
    for what, figure in rows:
        print(f"  {what:44} {figure}")
    heading("Enforcement")
    for what, figure in enforcement.figures():
        print(f"  {what:44} {figure}")


def heading(text: str) -> None:
    """Prints a heading."""
    print(f"\n{text}")


def row(size: int, name: str, figure: Figure, goal: float | None = None) -> None:
    """Prints one figure."""
    wanted = f"  goal {goal}" if goal else ""
    print(
        f"  {size:>9,}  {name:24} {figure.ratio:6.2f} x  "
        f"({figure.spread[0]:.2f} to {figure.spread[1]:.2f})  "
        f"{figure.median_s * 1000:8.1f} ms of {figure.floor_s * 1000:.1f}  "
        f"{figure.peak_mib:6.1f} MiB{wanted}"
    )


if __name__ == "__main__":
    main()
