"""Two clients in one repository, which work off six issues to the end: of different makers, and of
one in a team of `queen start`.

Their model knows nothing but what it is told: it takes the commands from the briefing and from the
answers, and what to change from the issue. Two of the issues change the same file.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

from bench.clients.cells import MAIN, Findings, Playing
from bench.clients.model import Conversation, Play, Script
from bench.clients.wires import Request
from bench.clients.world import World

_TASKS = {name: f"src/{name}.py" for name in "abcd"} | dict.fromkeys("xy", "src/shared.py")
"""What each issue sets, and where."""
_PROMPT = f"The task {MAIN}: work until nothing is left to do."
_TURNS = 60
_LIMIT_S = 300


def together(one: World, other: World, found: Findings) -> None:
    """Says of the first client what both did: all landed, and no issue twice."""
    row = "six issues, two clients"
    one.furnish(issues=[f"Set {name} to 2 in {path}" for name, path in _TASKS.items()])
    other.join(one.repo)
    trees = [one.folder / "tree-1", one.folder / "tree-2"]
    for tree in trees:
        one.git("worktree", "add", "-q", str(tree))
    pairs = list(zip((one, other), trees, strict=True))
    for world, tree in pairs:
        world.client.trust(world.home, [world.repo, tree])
    both = threading.Barrier(2)
    plays = [Play(**{MAIN: _worker(world, tree, both)}) for world, tree in pairs]
    runs = [
        world.start(play, _PROMPT, cwd=tree, lands=True)
        for play, (world, tree) in zip(plays, pairs, strict=True)
    ]
    for run in runs:
        found.showed(run.wait(_LIMIT_S), (row,))
    _judged(one, [each for run in runs for each in run.play.conversations], found, row)
    found.say(row, True, "", f"with {other.client.title}")


def a_team(world: World, found: Findings) -> None:
    """Says what `queen start` made of two agents of one client."""
    row = "six issues, `queen start`"
    world.furnish(issues=[f"Set {name} to 2 in {path}" for name, path in _TASKS.items()])
    trees = {name: world.folder / f"{world.repo.name}-{name}" for name in ("amber", "birch")}
    world.client.trust(world.home, [world.repo, *trees.values()])
    world.queen("setup", world.client.name)  # What trusting wrote anew.
    play = Play(
        **{f"You are {name}": _worker(world, tree, threading.Barrier(1))
           for name, tree in trees.items()}
    )  # fmt: skip
    if found.showed(world.team(play, *trees).wait(_LIMIT_S), (row,)):
        _judged(world, play.conversations, found, row)


def _judged(world: World, talkers: list[Conversation], found: Findings, row: str) -> None:
    landed = {path: world.git("show", f"main:{path}") for path in _TASKS.values()}
    left = [name for name, path in _TASKS.items() if f"{name} = 2" not in landed[path]]
    found.say(row, not left, f"not landed: {', '.join(left)}")
    issues = [json.loads(line) for line in (world.repo / ".beads/issues.jsonl").open()]
    open_ = [each["id"] for each in issues if each["status"] != "closed"]
    found.say(row, not open_, f"not closed: {', '.join(open_)}")
    talks = [each.requests[-1].talk for each in talkers if each.requests]
    done = [re.findall(r"(shop-\d+) was completed by", talk) for talk in talks]
    twice = {issue for issue, times in Counter(itertools.chain(*done)).items() if times > 1}
    found.say(row, not twice, f"twice: {', '.join(sorted(twice))}")
    shares = " + ".join(str(len(each)) for each in done)
    found.say(row, all(done), f"not shared: {shares}", shares)


def _worker(world: World, tree: Path, both: threading.Barrier) -> Script:
    """Returns a model that does what it reads, once the other client is there, too."""

    def script(request: Request) -> Playing:
        with suppress(threading.BrokenBarrierError):
            both.wait(_LIMIT_S / 3)
        first = re.search(r"`(queen next)`", request.talk)
        mine = re.search(r"add (--as \S+) to each command", request.talk)
        name = f" {mine[1].rstrip('.')}" if mine else ""
        command = first[1] if first else "the briefing names no command"
        done = None
        for _ in range(_TURNS):
            request = yield world.client.shell(command + (name if "--as" not in command else ""))
            task = re.search(r"yours: Set (\w) to (\d) in (\S+?\.py)", request.last)
            # How to land is said once.
            done = re.search(r"done: (queen land [^\n\"\\]*)", request.last) or done
            if task is None or done is None:
                advice = re.search(r"try: (queen [^;\n\"\\]+)", request.last)
                if advice is None:
                    break
                command = advice[1]
                continue
            old, new = f"{task[1]} = 1", f"{task[1]} = {task[2]}"
            for call in world.client.edit(tree / task[3], old, new):
                request = yield call
            command = done[1].replace("WHAT YOU DID", f"{task[1]} is {task[2]}")
        yield "Everything is done."
        yield "I stop."

    return script
