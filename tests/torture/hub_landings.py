"""Agents of several clones land on the main branch of one hub at once, while some are killed or
stopped, the hub is away for moments, and git fails now and then.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections import Counter

from tests.torture.landings import Team, hurt, prepared, without_records
from tests.torture.places import must, require

AWAY_S = 1.5


def at_once(
    folder: str, *, clones: int, agents: int, landings: int, seed: int, strategy: str = "merge"
) -> dict[str, object]:
    """Lets the agents of each clone land their own commits; returns the figures."""
    rng = random.Random(seed)
    first = prepared(os.path.join(folder, f"hub-{strategy}"), strategy, hub=True)
    hub, since = f"{first}.hub", must(first, "rev-parse", "main").strip()
    places = [first]
    for number in range(1, clones):
        places.append(f"{first}-clone{number}")
        must(folder, "clone", "-q", hub, places[-1])
    names = [[f"{number}-{each}.txt" for each in range(landings)] for number in range(clones)]
    log = f"{first}.checked"
    teams = [
        Team(place, agents, own, log=log, landed_in=hub, strategy=strategy)
        for place, own in zip(places, names, strict=True)
    ]
    threads = [threading.Thread(target=one.work, args=(t,)) for one in teams for t in one.trees]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    done = Counter[str]()
    while any(thread.is_alive() for thread in threads):
        time.sleep(rng.uniform(0.5, 3))
        running = [each for team in teams for each in list(team.running.values())]
        alive = [each for each in running if each.poll() is None]
        if rng.random() < 0.2:
            os.rename(hub, f"{hub}.away")
            time.sleep(rng.uniform(0.1, AWAY_S))
            os.rename(f"{hub}.away", hub)
            done["times away"] += 1
        elif alive:
            done[hurt(rng, rng.choice(alive))] += 1
    failures = [each for team in teams for each in team.failures]
    require(not failures, "; ".join(failures))
    ends = sum((team.ends for team in teams), Counter[int]())
    return {
        "clones": clones,
        "agents": clones * agents,
        "landings": clones * landings,
        **done,
        "ended by status": dict(sorted(ends.items())),
        "steps of the target": _check(hub, since, [one for own in names for one in own], log),
        "seconds": round(time.monotonic() - begun, 1),
    }


def _check(hub: str, since: str, names: list[str], log: str) -> int:
    """Requires that each commit landed once, and that each step of the hub is a tree that passed;
    returns how many there are.
    """
    how = ("--first-parent", "--diff-merges=first-parent", "--diff-filter=A", "--name-only")
    added = Counter(must(hub, "log", *how, "--format=", f"{since}..main").splitlines())
    wrong = [name for name in names if added[name] != 1]
    require(not wrong, f"not landed once: {wrong}")
    line = must(hub, "rev-list", "--first-parent", "main").split()
    require(since in line, "what the hub had is not on its first-parent line")
    with open(log, encoding="utf-8") as file:
        checked = set(file.read().split())
    trees = {must(hub, "rev-parse", f"{each}^{{tree}}").strip() for each in line}
    known = {without_records(hub, each) for each in checked & trees}
    steps = line[: line.index(since)]
    for step in steps:
        require(without_records(hub, step) in known, f"{step} was not checked as it is")
    lines = Counter(must(hub, "show", "main:CHANGELOG.md").splitlines())
    lost = [name for name in names if lines[f"- {name}"] != 1]
    require(not lost, f"lines of the changelog that are not there once: {lost}")
    shutil.rmtree(f"{hub}.away", ignore_errors=True)
    return len(steps)
