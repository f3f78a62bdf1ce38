"""`python -m tests.torture NAME`: a long run, its figures on standard output."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time

from tests.torture import (
    converge,
    faults,
    fuzz,
    fuzz_documents,
    git_torture,
    hub_landings,
    kills,
    landings,
    linear,
    remote,
    storm,
    team,
    tracker,
)
from tests.torture.places import ROTATING, TRUSTING, Broken


def main(arguments: list[str]) -> int:
    """Runs what is named and prints its figures; returns 1 where a promise did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("name", choices=(*RUNS, *OTHERS, "all"))
    parser.add_argument("--seconds", type=float, default=60, help="how long git works")
    parser.add_argument("--storm-seconds", type=float, default=600, help="how long all at once")
    parser.add_argument("--count", type=int, default=200, help="how many random kills")
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--landings", type=int, default=100, help="how many land at once")
    parser.add_argument("--strategies", nargs="+", help="of landing; by default all three")
    parser.add_argument("--histories", type=int, default=60)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--guided", action="store_true", help="fuzz by coverage; needs atheris")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--rotating", action="store_true", help="rotate every few writes")
    options = parser.parse_args(arguments)
    os.environ.update(TRUSTING)  # Also of what runs in this process.
    if options.rotating:
        os.environ[ROTATING] = "1"
    chosen = RUNS if options.name == "all" else (options.name,)
    failed = [name for name in chosen if not _ran(name, options)]
    return 1 if failed else 0


RUNS = ("git", "tracker", "kills", "linear", "converge", "faults", "land", "remote", "storm")
"""What `all` means; the fuzzing and the long run of landings have make targets of their own."""
OTHERS = ("landings", "team", "fuzz", "fuzz-documents")


def _ran(name: str, options: argparse.Namespace) -> bool:
    folder = tempfile.mkdtemp(prefix=f"torture-{name}-")
    begun = time.monotonic()
    try:
        figures = _run(name, folder, options)
    except Broken as broken:
        print(f"{name} (seed {options.seed}): BROKEN: {broken}\n  left in {folder}", flush=True)
        return False
    shutil.rmtree(folder)
    took = round(time.monotonic() - begun, 1)
    print(f"{name} (seed {options.seed}, {took} s): {json.dumps(figures)}", flush=True)
    return True


def _many(folder: str, options: argparse.Namespace) -> object:
    strategies = options.strategies or ("merge", "rebase", "squash")
    how = {"agents": 16, "landings": options.landings, "seed": options.seed}
    figures = {each: landings.at_once(folder, strategy=each, **how) for each in strategies}
    how = {"clones": 3, "agents": 4, "landings": options.landings // 3, "seed": options.seed}
    on_hub = {each: hub_landings.at_once(folder, strategy=each, **how) for each in strategies}
    return {**figures, "on a hub": on_hub}


def _run(name: str, folder: str, options: argparse.Namespace) -> object:
    seed = options.seed
    if name == "git":
        return git_torture.torture(folder, options.seconds, seed=seed)
    if name == "tracker":
        return tracker.torture(folder, options.seconds, seed=seed)
    if name == "kills":
        steps = kills.at_every_step(folder)
        random = kills.at_random(folder, options.count, seed=seed)
        return {"at every step": dict(steps), "at random": random}
    if name == "linear":
        figures = linear.run(folder, options.operations)
        if figures["violations"]:
            raise Broken(f"{figures['violations']} violations: {figures['examples']}")
        return figures
    if name == "converge":
        return converge.run(folder, histories=options.histories, steps=60, seed=seed)
    if name == "faults":
        return faults.run(folder)
    if name == "land":
        steps = landings.at_every_step(folder, strategies=("merge", "rebase", "squash"))
        on_hub = landings.at_every_step(f"{folder}/hub", strategies=("merge",), hub=True)
        steps.update({f"on a hub: {each}": count for each, count in on_hub.items()})
        return {"at every call of git": dict(steps), "at once": _many(folder, options)}
    if name == "landings":
        return _many(folder, options)
    if name == "team":
        return team.run(folder, seed=seed)
    if name == "remote":
        # Each of 1,500 steps takes half a second.
        steps = remote.at_every_step(folder, every=1 if options.name == "remote" else 10)
        figures = remote.rounds(
            folder, operations=options.operations, seed=seed, seconds=options.storm_seconds
        )
        return {"at every step": steps, "at random": figures}
    if name == "storm":
        return storm.run(folder, options.storm_seconds, seed=seed)
    if name == "fuzz-documents":
        return fuzz_documents.run(options.executions, folder, seed=seed)
    if options.guided:
        fuzz.run_guided(options.executions, folder)  # Ends the process, with 77 at a crash.
    return fuzz.run(options.executions, folder, seed=seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
