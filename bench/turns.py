"""How long a command holds the turn at writing, for which all others wait.

    python -m bench.turns [ISSUES ...]

Each command is a whole process, in a tracker of so many issues. What it has read before its turn
does not count, what it does between having the lock and letting it go does.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from bench import results
from bench.many_issues import make
from bench.results import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

ISSUES = (10_000, 50_000)
_GOALS_MS = {10_000: 2.0, 50_000: 5.0}
_RUNS = 9
_TIMED = """\
import os, time
from queenbee.store.lock import KernelLock
enter, release = KernelLock.__enter__, KernelLock.release
def entered(self):
    enter(self)
    self.since = time.perf_counter()
    return self
def released(self):
    release(self)
    since = self.__dict__.pop("since", None)
    if since is not None and self.path.endswith("/queenbee/lock"):
        with open(os.environ["HELD"], "a") as file:
            print(time.perf_counter() - since, file=file)
KernelLock.__enter__, KernelLock.release = entered, released
from queenbee.cli.main import main
main()
"""


def held_ms(folder: str, *words: str) -> list[float]:
    """Runs a command, and returns how long each of its turns was, in ms."""
    command = [sys.executable, "-c", _TIMED, "--as", "droid-1", *words]
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as held:
        env = {**os.environ, "HELD": held.name}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr}")
        return [float(each) * 1000 for each in held]


def figures(folder: str, count: int) -> Iterator[Row]:
    """Yields the longest turns of the commands that an agent calls in a loop, and of those that
    change issues.
    """
    repo = make(folder, count)
    turns: dict[str, list[float]] = {}
    for number in range(_RUNS + 1):
        ready = f"qb-{number * 10 + 4:06}"
        for words in (
            ("claim", ready),
            ("issue", "edit", ready, f"--title=Change {number}"),
            ("complete", ready),
            ("issue", "new", f"New {number}"),
            ("next",),
            ("complete",),
            ("msg", "send", "droid-2", "hello"),
            ("reserve", f"src/{number}.py"),
        ):
            name = " ".join(words[: 1 + (words[0] in ("issue", "msg"))])
            if words == ("complete",):
                name = "complete, after next"
            held = held_ms(repo, *words)
            if number:  # The first ones also take up the tracker.
                turns.setdefault(name, []).append(max(held, default=0.0))
    turns["land"] = _landings(repo, os.path.join(folder, f"tree-{count}"))[1:]
    for name, each in turns.items():
        goal = _GOALS_MS.get(count)
        median = statistics.median(each)
        yield Row(f"{name}, {count:,} issues", median, "ms", min(each), max(each), goal=goal)


def _landings(repo: str, tree: str) -> list[float]:
    """Returns the longest turn of each landing of an issue, with the records, from a worktree."""
    held_ms(repo, "init")
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    for words in (("add", "."), (*who, "commit", "-qm", "begun"), ("worktree", "add", "-q", tree)):
        subprocess.run(["git", *words], cwd=repo, check=True)
    turns = []
    for number in range(_RUNS + 1):
        held_ms(tree, "next")
        with open(os.path.join(tree, f"change{number}"), "w", encoding="utf-8") as file:
            file.write("x\n")
        turns.append(max(held_ms(tree, "land", "--unchecked", "-m", "Change")))
    return turns


def main() -> None:
    """Prints the rows."""
    for count in map(int, sys.argv[1:] or ISSUES):
        with tempfile.TemporaryDirectory() as folder:
            results.show(figures(folder, count))


if __name__ == "__main__":
    main()
