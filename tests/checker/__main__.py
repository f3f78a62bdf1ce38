"""`python -m tests.checker WORLD`: a long run, its figures on standard output."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter

from tests.checker import ROOT
from tests.checker.history import store
from tests.checker.laws import FOR_ALL_CLONES, LAWS, judge
from tests.checker.worlds import WORLDS


def main(arguments: list[str]) -> int:
    """Runs what is named and prints its figures; returns 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.checker", description=__doc__)
    parser.add_argument("world", choices=(*WORLDS, "broken"))
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args(arguments)
    if options.world == "broken":
        from tests.checker.broken import try_all

        return try_all(seed=options.seed)
    broken, figures = run(options.world, operations=options.operations, seed=options.seed)
    print(f"{options.world} (seed {options.seed}): {json.dumps(figures)}", flush=True)
    for law, found in broken.items():
        print(f"{law}: {len(found)} times", *found[:5], sep="\n  ")
    return 1 if broken else 0


def run(
    kind: str, *, operations: int, seed: int, product: str = ROOT
) -> tuple[dict[str, list[str]], dict[str, object]]:
    """Runs one world; returns what was broken by law, and figures."""
    folder = tempfile.mkdtemp(prefix=f"checker-{kind}-")
    begun = time.monotonic()
    world = WORLDS[kind](folder, operations=operations, seed=seed, product=product)
    calls, end = world.run()
    took = round(time.monotonic() - begun)
    broken = judge(calls, end, FOR_ALL_CLONES if kind == "remote" else tuple(LAWS))
    if broken:
        store(calls, os.path.join(folder, "history.jsonl"))
        print(f"what was noted is in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # A git that a kill left may still be at work.
    statuses = Counter(
        "killed" if each.status is None else f"status {each.status}" for each in calls
    )
    granted = sum(each.done and each.kind in ("reserve", "claim", "next") for each in calls)
    landed = sum(each.done and each.kind == "land" for each in calls)
    counted = {"operations": len(calls), "granted": granted, "landed": landed, "seconds": took}
    return broken, {**counted, **world.figures(), **dict(sorted(statuses.items()))}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
