"""How what a user does grows: each dimension at two sizes, in turn, as a ratio.

    python -m bench.scale [worktrees] [files] [issues] [years] [agents] [--runs 5] [--full]
                          [--processor]

A ratio of 1 means that it costs the same in a large team, tree or tracker. `--full` takes the
sizes for which docs/performance.md has figures; else they are such that a minute is enough. With
`--processor`, the processor time of each command and what it starts is compared, for a machine
that others use.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING

from bench import processes
from bench.many_issues import FLOOR
from bench.many_issues import make as make_tracker
from bench.processes import git, installed
from bench.results import TIMES, Row
from bench.stores import make_years

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUEEN = installed("queen")
_HOOK = installed("queen-hook")
_ANSWERS = (0, 1)
_EDIT = (
    '{"hook_event_name": "PreToolUse", "session_id": "bench", "cwd": "%s", "tool_name": "Edit",'
    ' "tool_input": {"file_path": "%s/new-%d.txt", "old_string": "a", "new_string": "b"}}'
)
SIZES = {
    "worktrees": ((1, 16), (1, 128)),
    "files": ((1_000, 10_000), (1_000, 200_000)),
    "issues": ((100, 10_000), (100, 50_000)),
    "years": ((200, 2_000), (200, 20_000)),
    "agents": ((4, 16), (4, 64)),
}
"""The two sizes of each dimension, and those of `--full`."""
_COUNTED = {"years": "issues done"}
_SWARM_S = 20.0


clock: Callable[[], float] = time.perf_counter
"""What a command is timed by."""


def seconds(command: list[str], folder: str, *, allowed: tuple[int, ...] = (0,)) -> float:
    """Returns what one run takes. Raises `RuntimeError` for a status that is not allowed."""
    begun = clock()
    processes.seconds(command, folder, allowed=allowed)
    return clock() - begun


class Place:
    """A repository with a hive, made at one size."""

    def __init__(self, repo: str) -> None:
        self.repo = repo
        self._count = 0

    def queen(self, *words: str, cwd: str | None = None, as_: str = "one") -> float:
        """Runs a command, and returns its seconds."""
        return seconds([*QUEEN, "--as", as_, *words], cwd or self.repo, allowed=_ANSWERS)

    def fresh(self) -> int:
        """Returns a number that was not used here before."""
        self._count += 1
        return self._count

    def hook(self, cwd: str) -> float:
        """Asks the hook about an edit of a new file, and returns its seconds."""
        event = _EDIT % (cwd, cwd, self.fresh())
        begun = clock()
        subprocess.run(_HOOK, input=event, text=True, cwd=cwd, check=True, capture_output=True)
        return clock() - begun

    def land(self, tree: str, droid: str) -> float:
        """Commits a file, lands it, and returns the seconds of the landing."""
        name = f"landed-{self.fresh()}.txt"
        with open(os.path.join(tree, name), "w", encoding="utf-8") as file:
            file.write("x\n")
        git(tree, "add", name)
        git(tree, "commit", "-qm", name)
        return seconds([*QUEEN, "--as", droid, "land", "--unchecked"], tree)


def repository(folder: str, files: int = 200) -> Place:
    """Makes a repository with so many files, and a hive."""
    repo = os.path.join(folder, "repo")
    for number in range(files):
        path = os.path.join(repo, f"d{number // 1000}", f"f{number}.txt")
        if number % 1000 == 0:
            os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{number}\n")
    git(repo, "init", "-q", "-b", "main")
    seconds([*QUEEN, "init"], repo)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "files")
    return Place(repo)


def worktrees(folder: str, count: int) -> dict[str, Callable[[], float]]:
    """Commands in a repository with so many worktrees: each has an issue, a lease and changes; one
    in sixteen also changes a file that others change.
    """
    place = repository(folder, 600)
    for number in range(count):
        name = f"d{number}"
        place.queen("issue", "new", f"Issue {number}", "--id", f"qb-{number}")
        place.queen("worktree", "add", name, f"qb-{number}")
        tree = f"{place.repo}-{name}"
        place.queen("reserve", f"d0/f{number}.txt", cwd=tree, as_=name)
        shared = [599] if number % 16 == 0 else []
        for each in (3 * number, 3 * number + 1, 3 * number + 2, *shared):
            with open(os.path.join(tree, "d0", f"f{each}.txt"), "a", encoding="utf-8") as file:
                file.write(f"changed by {name}\n")
    place.queen("worktree", "add", "lander")
    lander = f"{place.repo}-lander"
    return {
        "status": lambda: place.queen("status"),
        "land": lambda: place.land(lander, "lander"),
        "worktree list": lambda: place.queen("worktree", "list"),
        "doctor": lambda: place.queen("doctor"),
        "collisions": lambda: place.queen("worktree", "collisions"),
        "next": lambda: place.queen("next", cwd=lander, as_="lander"),
        "hook, a new file": lambda: place.hook(lander),
    }


def files(folder: str, count: int) -> dict[str, Callable[[], float]]:
    """Commands in a tree of so many files, with three worktrees, after each a landing."""
    place = repository(folder, count)
    for number in range(40):
        place.queen("issue", "new", f"Issue {number}")
    for name in ("a", "b", "c"):
        place.queen("worktree", "add", name)
    trees = {name: f"{place.repo}-{name}" for name in ("a", "b", "c")}

    def after_landing(what: Callable[[], float]) -> Callable[[], float]:
        def timed() -> float:
            place.land(trees["c"], "c")  # What was known of the others is stale then.
            return what()

        return timed

    def plain() -> float:
        name = f"plain-{place.fresh()}"
        git(place.repo, "branch", name, "main")
        return seconds(["git", "status", "--porcelain"], trees["b"])

    def next_one() -> float:
        took = place.queen("next", cwd=trees["a"], as_="a")
        place.queen("release", cwd=trees["a"], as_="a")
        return took

    return {
        "git status": plain,
        "hook, a new file": after_landing(lambda: place.hook(trees["a"])),
        "next": after_landing(next_one),
        "reserve": lambda: place.queen("reserve", f"n{place.fresh()}/**", cwd=trees["b"], as_="b"),
        "land": lambda: place.land(trees["c"], "c"),
    }


def issues(folder: str, count: int) -> dict[str, Callable[[], float]]:
    """Commands with a tracker of so many issues."""
    place = Place(make_tracker(folder, count))
    place.queen("status")
    open_ = iter(range(count))

    def complete() -> float:
        number = next(each for each in open_ if each % 10 in (4, 5))
        place.queen("claim", f"qb-{number:06}")
        return place.queen("complete", f"qb-{number:06}")

    return {
        "status": lambda: place.queen("status"),
        "next": lambda: place.queen("next"),
        "complete": complete,
        "issue edit": lambda: place.queen(
            "issue", "edit", "qb-000006", f"--title=n{place.fresh()}"
        ),
        "issue new": lambda: place.queen("issue", "new", f"Another {place.fresh()}"),
    }


def swarm(folder: str, count: int, seconds_: float) -> tuple[float, str]:
    """Lets so many droids take, do and land issues without thinking; returns landings a minute, and
    in words how they are shared, what each took of a processor, and how many commands failed.
    """
    place = repository(folder)
    with open(os.path.join(place.repo, ".beads", "issues.jsonl"), "w", encoding="utf-8") as file:
        for number in range(2_500):
            file.write(f'{{"id": "qb-{number}", "title": "Issue {number}", "status": "open"}}\n')
    names = [f"d{number}" for number in range(count)]
    for name in names:
        place.queen("worktree", "add", name)
    landed, failed = dict.fromkeys(names, 0), [0]
    until = time.monotonic() + seconds_

    def work(name: str) -> None:
        tree = f"{place.repo}-{name}"
        while time.monotonic() < until:
            ran = [subprocess.run([*QUEEN, "next"], cwd=tree, capture_output=True)]
            path = os.path.join(tree, f"{name}-{landed[name]}.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write("x\n")
            how = ("land", "--unchecked", "-m", f"add {os.path.basename(path)}")
            ran.append(subprocess.run([*QUEEN, *how], cwd=tree, capture_output=True))
            failed[0] += sum(each.returncode not in (0, 1) for each in ran)
            landed[name] += ran[-1].returncode == 0

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    processes.adopt()
    begun, spent_s = time.monotonic(), processes.spent()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s, every = time.monotonic() - begun, sum(landed.values())
    of_each = (processes.spent() - spent_s) / max(1, every)
    shared = f"{min(landed.values())} to {max(landed.values())} each, {failed[0]} failed"
    return every / took_s * 60, f"{shared}, {of_each:.2f} s of a processor for each"


def years(folder: str, count: int) -> dict[str, Callable[[], float]]:
    """Commands in a hive in which so many issues were done, with what a year leaves of each."""
    place = repository(folder, 20)
    make_years(os.path.join(place.repo, ".beads"), count)
    place.queen("hive", "rotate")
    git(place.repo, "add", "-A")
    git(place.repo, "commit", "-qm", "a year")

    def in_clone() -> float:
        clone = f"{place.repo}-{place.fresh()}"
        git(folder, "clone", "-q", place.repo, clone)
        took = place.queen("status", cwd=clone)
        shutil.rmtree(clone)
        return took

    return {
        "import click": lambda: seconds(FLOOR, place.repo),
        "status": lambda: place.queen("status"),
        "next": lambda: place.queen("next"),
        "claim": lambda: place.queen("claim", f"qb-{count + place.fresh()}"),
        "msg inbox": lambda: place.queen("msg", "inbox"),
        "doctor": lambda: place.queen("doctor"),
        "report": lambda: place.queen("report", "--output", os.path.join(folder, "page.html")),
        "first command in a clone": in_clone,
    }


MADE = {"worktrees": worktrees, "files": files, "issues": issues, "years": years}


def grown(name: str, sizes: tuple[int, int], runs: int) -> Iterator[Row]:
    """Yields what each command takes at the larger size, against the smaller one."""
    with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as large:
        commands = [
            MADE[name](folder, size) for folder, size in zip((small, large), sizes, strict=True)
        ]
        for what in commands[0]:
            took: list[list[float]] = [[], []]
            for number in range(runs + 1):
                for each, command in zip(took, commands, strict=True):
                    spent = command[what]()
                    if number:  # The first one is not counted.
                        each.append(spent)
            one, other = map(statistics.median, took)
            pairs = sorted(b / a for a, b in zip(*took, strict=True))
            note = f"{other * 1000:.0f} ms of {one * 1000:.0f}"
            yield Row(
                f"{what}, {sizes[1]:,} {_COUNTED.get(name, name)}",
                other / one,
                TIMES,
                pairs[0],
                pairs[-1],
                note=note,
            )


def teams(sizes: tuple[int, int], seconds_: float) -> Iterator[Row]:
    """Yields the landings of a large team against those of a small one."""
    rates = []
    for count in sizes:
        with tempfile.TemporaryDirectory() as folder:
            rate, note = swarm(folder, count, seconds_)
        rates.append(rate)
        yield Row(f"landings a minute, {count} agents", rate, "", note=note)
    yield Row(f"landings, {sizes[1]} agents", rates[1] / rates[0], TIMES)


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=[*SIZES, []], help="default: all")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    if options.processor:
        global clock  # noqa: PLW0603 - what the whole run is timed by
        clock = processes.spent
    for name in options.what or SIZES:
        sizes = SIZES[name][options.full]
        if name == "agents":
            rows = teams(sizes, _SWARM_S * (1 + options.full))
        else:
            rows = grown(name, sizes, options.runs)
        for row in rows:
            print(f"{row.name}: {row}", flush=True)


if __name__ == "__main__":
    main()
