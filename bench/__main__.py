"""Prints what QueenBee costs, as ratios inside one run; judges nothing.

    python -m bench [--cheap | --quick | --million] [--charts FOLDER] [--json FILE]

Every figure is a median of runs in turn with its floor or baseline, with its spread. Peers are
measured where `QUEEN_BENCH_PEERS` names a file of commands: see `bench.peer_commands`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
import time
from typing import TYPE_CHECKING

from bench import (
    appends,
    enforcement,
    folding,
    history,
    many_issues,
    overlap,
    peer_commands,
    results,
    scale,
)
from bench.processes import compare, installed, python
from bench.results import Row
from bench.stores import (
    NAIVE_INBOX,
    SQLITE_INBOX,
    SQLITE_SEND,
    everything,
    make_hive,
    make_sqlite,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bench.charts import Series

FLOOR = python("-c", "import click")
COMMANDS = {
    "msg inbox": ("msg", "inbox"),
    "next": ("next",),
    "status": ("status",),
    "msg send": ("msg", "send", "droid-2", "hello", "--issue", "qb-7"),
    "show": ("show", "qb-7"),
    "reserve": ("reserve", "src/new.py"),
    "check": ("reserve", "check", "src/new.py"),
}
LEASE_COMMANDS = {
    "reserve": ("reserve", "elsewhere/new.py"),
    "check, free": ("reserve", "check", "elsewhere/new.py"),
    "check, held": ("reserve", "check", "src/app0/module0.py"),
}
GOALS = {"msg inbox": 1.3, "next": 1.6, "status": 1.6}
LEASE_GOAL = 1.35
_AS = ("--as", "droid-1")


def main() -> None:
    """Runs the benchmarks and prints the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cheap", action="store_true", help="what is measured in a minute or two")
    parser.add_argument("--quick", action="store_true", help="small stores, few runs")
    parser.add_argument("--million", action="store_true", help="also a million messages")
    parser.add_argument("--charts", metavar="FOLDER", help="write SVG charts there")
    parser.add_argument("--json", metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    print(f"{results.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        rows = cheap(folder) if options.cheap else everything_in(folder, options)
    if options.json:
        results.write(options.json, rows)


def cheap(folder: str) -> list[Row]:
    """Prints and returns what is measured in a minute or two, for a comparison at each change."""
    rows = section("Whole processes", whole_processes(folder, 1_000, runs=9))
    rows += section("In process", [*overlap.cheap(), *folding.figures(20_000)])
    # Without the milliseconds of the disk, which depend on what else uses it.
    shares = (row for row in appends.figures(60, (1,)) if row.unit in results.RATIOS)
    rows += section("Appends", shares)
    rows += section("Enforcement", enforcement.edits(folder, 1_000, runs=9))
    for name in ("worktrees", "issues"):  # Those whose sizes are made in seconds.
        rows += section(f"Growth with {name}", scale.grown(name, scale.SIZES[name][0], runs=3))
    return rows


def everything_in(folder: str, options: argparse.Namespace) -> list[Row]:
    """Prints and returns all rows; writes the charts that were asked for."""
    runs = 5 if options.quick else 15
    sizes = [0, 10_000] if options.quick else [0, 10_000, 100_000]
    if options.million:
        sizes.append(1_000_000)
    rows, inboxes = by_size(folder, sizes, runs)
    git_rows, commits = with_git(folder, sizes)
    rows += git_rows
    rows += with_leases(folder, 1_000 if options.quick else 10_000, runs)
    rows += section("In process", overlap.figures())
    rows += section("Folding", folding.figures(2_000 if options.quick else 100_000))
    rows += section("Appends", appends.figures(80 if options.quick else 300))
    rows += section("Enforcement", enforcement.figures())
    rows += section("Many issues", many_issues.figures(folder, 5_000 if options.quick else 100_000))
    if options.charts:
        from bench import charts

        charts.growth(inboxes, options.charts)
        charts.commits(commits, options.charts)
    return rows


def section(heading: str, rows: Iterable[Row]) -> list[Row]:
    """Prints rows under a heading; returns them."""
    print(f"\n{heading}")
    return results.show(rows)


def whole_processes(folder: str, size: int, runs: int) -> Iterator[Row]:
    """Yields what each command costs with so many messages, against `python -c 'import click'`."""
    hive = os.path.join(folder, f"hive-{size}")
    make_hive(hive, messages=size)
    for name, arguments in COMMANDS.items():
        figure = compare([*installed("queen"), *_AS, *arguments], FLOOR, folder=hive, runs=runs)
        yield figure.row(f"{name}, {size:,} messages", goal=GOALS.get(name))
        if name == "msg inbox":
            yield Row(f"{name}, {size:,} messages, memory", figure.peak_mib, "MiB", goal=60)


def baselines(folder: str, size: int, runs: int) -> Iterator[Row]:
    """Yields what the baselines and the peers cost with as many messages."""
    hive = os.path.join(folder, f"hive-{size}")
    database = os.path.join(folder, f"{size}.sqlite3")
    make_sqlite(database, size)
    ledger = os.path.join(folder, f"{size}.jsonl")
    everything(hive, ledger)
    commands = {
        "plain SQLite, inbox": python("-c", SQLITE_INBOX, database, "droid-1"),
        "plain SQLite, send": python("-c", SQLITE_SEND, database, "droid-1"),
        "read everything, inbox": python("-c", NAIVE_INBOX, ledger, "droid-1"),
    }
    few = max(3, runs // 3) if size >= 100_000 else runs
    for name, command in (commands | peer_commands.inboxes()).items():
        if size or "everything" not in name:
            figure = compare(command, FLOOR, folder=hive, runs=few)
            yield figure.row(f"{name}, {size:,} messages")


def by_size(folder: str, sizes: list[int], runs: int) -> tuple[list[Row], Series]:
    """Prints whole processes at each number of messages; returns the rows, and the ratios of what
    reads an inbox or sends, for the chart.
    """
    rows: list[Row] = []
    found: Series = {}
    print("\nWhole processes by number of messages, against `python -c 'import click'`")
    for size in sizes:
        ours = results.show(whole_processes(folder, size, runs))
        others = results.show(baselines(folder, size, runs))
        rows += ours + others
        ending = f", {size:,} messages"
        for row in [row for row in ours + others if row.name.endswith(ending)]:
            name = row.name.removesuffix(ending)
            if name not in COMMANDS:
                found.setdefault(name, []).append((size, row.value))
            elif name.startswith("msg"):
                found.setdefault(f"queen {name}", []).append((size, row.value))
    return rows, found


def with_git(folder: str, sizes: list[int]) -> tuple[list[Row], Series]:
    """Prints what pulls and commits cost at each number of messages; returns the rows, and the
    seconds of commits for the chart.
    """
    rows: list[Row] = []
    found: Series = {}
    print(f"\nWith git: a clone, a pull, and days of {history.A_DAY:,} messages")
    for size in sizes:
        hive = os.path.join(folder, f"hive-{size}")
        rows += results.show(
            Row(f"{what}, {size:,} messages", seconds, "s", loop="files")
            for what, seconds in history.pull(hive, folder).items()
        )
        for name, rotate in (("rotated", True), ("one growing file", False)):
            days = os.path.join(folder, f"days-{size}")
            make_hive(days, messages=size, rotate=rotate)
            took_s, grown = history.busy_days(days, rotate=rotate)
            shutil.rmtree(days)
            what = f"git commit of a day, {name}, {size:,} messages"
            note = f"{grown / 2**20:.1f} MiB in git for three"
            row = results.of(what, took_s, "s", note=note, loop="files")
            rows += results.show([row])
            found.setdefault(name, []).append((size, row.value))
    return rows, found


def with_leases(folder: str, leases: int, runs: int) -> list[Row]:
    """Prints and returns whole processes with so many live reservations."""
    hive = os.path.join(folder, "leases")
    make_hive(hive, leases=leases)
    return section(
        f"Whole processes with {leases:,} live reservations, against the same",
        (
            compare([*installed("queen"), *_AS, *arguments], FLOOR, folder=hive, runs=runs).row(
                f"{name}, {leases:,} live leases", goal=LEASE_GOAL
            )
            for name, arguments in LEASE_COMMANDS.items()
        ),
    )


if __name__ == "__main__":
    main()
