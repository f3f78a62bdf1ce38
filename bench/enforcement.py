"""What enforcement costs: the hook as a whole process, with and without news, and the guard on a
large commit.

    python -m bench.enforcement

The hook is timed in turn with `python -c pass`, the guard with the same commit without it.
Prints figures and judges nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from itertools import count
from typing import TYPE_CHECKING

from bench import results
from bench.processes import Figure, git, git_command, installed, python, seconds
from bench.results import Row
from bench.stores import make_hive
from queenbee import Hive
from queenbee.git.hooks import HookFolder, install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS = 21
FILES = 1_000
LEASES = 1_000
MESSAGES = 1_000
MANY = 10_000
_SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
_DROID = "claude-1b4e28ba"


GOALS = {LEASES: 2.4, MANY: 2.4}
"""Of an edit, by the number of live leases."""


def figures() -> Iterator[Row]:
    """Yields what was measured."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        for leases in (0, LEASES, MANY):
            yield from edits(folder, leases, RUNS)
        yield from _news(folder)
        yield from _guard(folder)


def edits(folder: str, leases: int, runs: int) -> Iterator[Row]:
    """Yields what the hook costs before an edit, with so many live leases."""
    numbers = count()
    tree = os.path.join(folder, f"hook-{leases}")
    make_hive(tree, leases=leases)
    ask = _asker(tree)
    ask("src/mine.py")
    cases: dict[str, Callable[[], str]] = {
        "an edit of one's own file": lambda: "src/mine.py",
        "an edit of a held file": lambda: "src/app0/module0.py",
        "a first edit, which reserves": lambda: f"src/new{next(numbers)}.py",
    }
    if not leases:
        del cases["an edit of a held file"]
    for what, path in cases.items():
        goal = None if "reserves" in what else GOALS.get(leases)
        name = f"hook, {what}, {leases:,} live leases"
        yield _in_turn(ask, path, runs).row(name, goal=goal)


def _news(folder: str) -> list[Row]:
    """Returns what the hook costs after a command, with a prompt, and at both ends of a turn."""
    tree = os.path.join(folder, "news")
    make_hive(tree, messages=MESSAGES, leases=LEASES)
    numbers = count()
    with Hive.open(tree, droid="sender", env={}) as hive:

        def some() -> str:
            hive.messages.send(_DROID, "b", subject=f"number {next(numbers)}", new=True)
            return ""

        def none() -> str:
            return ""

        rows = []
        for event, what, before in (
            ("PostToolUse", "after a command, nothing new", none),
            ("PostToolUse", "after a command, a message", some),
            ("UserPromptSubmit", "a prompt, nothing new", none),
            ("UserPromptSubmit", "a prompt, a message", some),
            ("Stop", "a stop", none),
            ("SessionStart", "the start of a session", none),
        ):
            ask = _asker(tree, event)
            ask("")
            rows.append(_in_turn(ask, before).row(f"hook, {what}"))
    return rows


def _asker(tree: str, name: str = "PreToolUse") -> Callable[[str], float]:
    script = installed("queen-hook")
    command = script if os.path.exists(script[0]) else python("-P", "-m", "queenbee.hook.main")

    def ask(path: str) -> float:
        event = {
            "session_id": _SESSION,
            "cwd": tree,
            "hook_event_name": name,
            "tool_name": "Edit" if path else "Bash",
            "tool_input": {"file_path": os.path.join(tree, path)} if path else {"command": "ls"},
        }
        return seconds(command, tree, stdin=json.dumps(event).encode())

    return ask


def _in_turn(ask: Callable[[str], float], path: Callable[[], str], runs: int = RUNS) -> Figure:
    floor = python("-c", "pass")
    wall_s, floor_s = [], []
    for _ in range(runs):
        named = path()
        wall_s.append(ask(named))
        floor_s.append(seconds(floor, os.curdir))
    return Figure(wall_s, floor_s, 0)


def _guard(folder: str) -> list[Row]:
    tree = os.path.join(folder, "guard")
    make_hive(tree, leases=LEASES)
    for number in range(FILES):
        path = os.path.join(tree, "work", str(number % 40), f"file{number}.py")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{number}\n")
    git(tree, "add", "work")
    install(HookFolder(tree))
    with_s, without_s = [], []
    for _ in range(RUNS // 2):
        with_s.append(_commit(tree))
        without_s.append(_commit(tree, "--no-verify"))
    added = [1000 * (one - other) for one, other in zip(with_s, without_s, strict=True)]
    alone_ms = 1000 * statistics.median(without_s)
    name = f"guard, a commit of {FILES:,} files, {LEASES:,} live leases"
    return [results.of(name, added, "ms", goal=60, note=f"beside the {alone_ms:.0f} ms of git")]


def _commit(tree: str, *options: str) -> float:
    """Returns how long a commit takes, and undoes it, so that the next one is the same."""
    took = seconds(git_command("commit", "-qm", "work", *options), tree)
    git(tree, "update-ref", "-d", "HEAD")
    return took


if __name__ == "__main__":
    results.main(figures)
