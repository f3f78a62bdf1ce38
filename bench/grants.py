"""Confirmed grants per second, beside a bare loop of `git fetch`, commit and `git push`.

    python -m bench.grants [--rounds 5] [--each 4] [--only WORDS]

The floor decides by the same compare-and-swap, and keeps nothing: it commits an empty tree on top
of what it fetched, and tries again if another push was faster. Everything goes over `file://`, so
no network is in the figures. Floor, ours, and the same claims without a remote take turns, round by
round.
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
from typing import TYPE_CHECKING

from bench import results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.synchronize import Barrier

    from bench.results import Row

    Taker = Callable[[str, str, int], list[float]]

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_BRANCH = "refs/heads/queenbee/hive"
_WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Bench"), ("EMAIL", "bench@example.com"))
}
_ENV = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **_WHO,
}


class Rate:
    """Grants per second, how long one takes in ms, and the pushes per grant."""

    def __init__(self, per_second: float, took_s: list[float], pushes: float) -> None:
        self.per_second = per_second
        self.median_ms = statistics.median(took_s) * 1000
        self.slowest_ms = sorted(took_s)[int(len(took_s) * 0.95)] * 1000
        self.pushes = pushes


def bare(tree: str, name: str, count: int) -> list[float]:
    """Makes so many commits the newest one of the branch; returns how long each took."""
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        while True:
            fetched = _git(tree, "fetch", "-q", "origin", f"+{_BRANCH}:refs/bench/head")
            head = fetched is not None and _git(tree, "rev-parse", "refs/bench/head")
            parents = ("-p", str(head)) if head else ()
            commit = _git(tree, "commit-tree", _EMPTY_TREE, "-m", name, *parents)
            if _git(tree, "push", "-q", "origin", f"{commit}:{_BRANCH}") is not None:
                break
        took.append(time.perf_counter() - begun)
    return took


def local(tree: str, name: str, count: int) -> list[float]:
    """Claims so many issues on this machine alone; returns how long each took."""
    from queenbee import Hive

    took = []
    with Hive.open(tree, droid=name, env={}) as hive:
        for number in range(count):
            begun = time.perf_counter()
            hive.assignments.claim(f"{name}-{time.time_ns()}-{number}")
            took.append(time.perf_counter() - begun)
    return took


def ours(tree: str, name: str, count: int) -> list[float]:
    """Claims so many issues with confirmation; returns how long each took."""
    from queenbee import Hive
    from queenbee.errors import Busy
    from queenbee.git.remote.confirmed_grants import confirmed

    took = []
    with Hive.open(tree, droid=name, env={}) as hive:
        for number in range(count):
            issue_id = f"{name}-{time.time_ns()}-{number}"
            begun = time.perf_counter()
            while True:
                try:
                    confirmed(hive, lambda id=issue_id: [hive.assignments.claim(id)])
                    break
                except Busy:
                    continue
            took.append(time.perf_counter() - begun)
    return took


def measure(folder: str, taker: Taker, *, machines: int, processes: int, each: int) -> Rate:
    """Returns the rate of so many processes in each of so many clones of a new remote."""
    remote = os.path.join(folder, "remote.git")
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=_ENV)
    trees = [os.path.join(folder, f"clone-{number}") for number in range(machines)]
    for tree in trees:
        subprocess.run(
            ["git", "clone", "-q", f"file://{remote}", tree],
            check=True, env=_ENV, capture_output=True,
        )  # fmt: skip
        os.mkdir(os.path.join(tree, ".beads"))
    # What one process pushes first is not measured: the branch, and the imports.
    taker(trees[0], "first", 1)
    before = _commits(remote)
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(machines * processes + 1)
    answers: multiprocessing.Queue[list[float]] = context.Queue()
    workers = [
        context.Process(target=_work, args=(taker, tree, f"d{at}-{number}", each, ready, answers))
        for at, tree in enumerate(trees)
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    ready.wait()
    begun = time.perf_counter()
    took = [each for _ in workers for each in answers.get()]
    seconds = time.perf_counter() - begun
    for worker in workers:
        worker.join()
    pushes = (_commits(remote) - before) / len(took)
    shutil.rmtree(folder)
    os.mkdir(folder)
    return Rate(len(took) / seconds, took, pushes)


def _work(
    taker: Taker,
    tree: str,
    name: str,
    count: int,
    ready: Barrier,
    answers: multiprocessing.Queue[list[float]],
) -> None:
    os.environ.clear()
    os.environ.update(_ENV)
    ready.wait()
    answers.put(taker(tree, name, count))


def _commits(remote: str) -> int:
    return int(_git(remote, "rev-list", "--count", _BRANCH) or 0)


def _git(tree: str, *arguments: str) -> str | None:
    """Returns what git prints; None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=tree, env=_ENV, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


SHAPES = {
    "one pusher": (1, 1),
    "16 processes of one machine": (1, 16),
    "16 machines, one process each": (16, 1),
}


def main() -> None:
    """Prints a table: each row with its own floor, measured in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--each", type=int, default=4, help="grants of one process in a round")
    parser.add_argument("--only", default="", help="the shapes whose names have these words")
    parser.add_argument("--json", metavar="FILE", help="write the rows there as well")
    options = parser.parse_args()
    rows: list[Row] = []
    for name, (machines, processes) in SHAPES.items():
        if options.only not in name:
            continue
        each = options.each * (4 if machines * processes == 1 else 1)
        shape = {"machines": machines, "processes": processes, "each": each}
        # Waiters of one machine are no help to the floor: each pushes on its own.
        alone = {**shape, "machines": machines * processes, "processes": 1}
        rates: dict[str, list[Rate]] = {"confirmed": [], "floor": [], "local": []}
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
            place = os.path.join(folder, "world")
            os.mkdir(place)
            for _ in range(options.rounds):
                rates["confirmed"].append(measure(place, ours, **shape))
                rates["floor"].append(measure(place, bare, **alone))
                rates["local"].append(measure(place, local, **shape))
        for what, measured in rates.items():
            rows += results.show(_rows(f"{name}, {what}", measured, rates["floor"]))
    if options.json:
        results.write(options.json, rows)


def _rows(name: str, measured: list[Rate], floor: list[Rate]) -> Iterator[Row]:
    ratios = [one.per_second / other.per_second for one, other in zip(measured, floor, strict=True)]
    per_second = statistics.median(each.per_second for each in measured)
    yield results.of(
        f"{name}, grants", ratios, results.SHARE, better="more", note=f"{per_second:.1f}/s"
    )
    slowest_ms = statistics.median(each.slowest_ms for each in measured)
    pushes = statistics.median(each.pushes for each in measured)
    yield results.of(
        f"{name}, one grant",
        [each.median_ms for each in measured],
        "ms",
        note=f"95 %: {slowest_ms:.0f} ms, {pushes:.2f} pushes a grant",
    )


if __name__ == "__main__":
    main()
