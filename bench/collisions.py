"""What `queen worktree collisions` costs in a repository of 20,000 files, and the check after an
edit.

    python -m bench.collisions

Each comparison is timed in turn with `git status` of one worktree, and the hook with the same event
for a file that nobody announced. Prints figures and judges nothing.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import tempfile
from collections.abc import Iterator

from bench import results
from bench.processes import Command, git, installed, python, seconds
from bench.results import TIMES, Row

FILES = 20_000
CHANGED = 10
TREES = (3, 8, 16)
RUNS = 5
HOOK_RUNS = 30
_STATUS = ["git", "--no-optional-locks", "status", "--porcelain", "--untracked-files=all"]


def figures() -> Iterator[Row]:
    """Yields what was measured."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        repo = os.path.join(folder, "repo")
        _make(repo)
        trees: list[str] = []
        for count in TREES:
            while len(trees) < count:
                trees.append(_add(repo, os.path.join(folder, f"tree{len(trees)}"), len(trees)))
            yield from _compared(repo, trees)
        yield from _hook(repo, trees)


def _make(repo: str) -> None:
    for number in range(FILES):
        folder = os.path.join(repo, f"dir{number % 200}", f"sub{number % 7}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file{number}.py"), "w") as file:
            file.writelines(f"line {line} of {number}\n" for line in range(20))
    os.makedirs(os.path.join(repo, ".beads"))
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "gc.auto", "0")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "base")


def _add(repo: str, tree: str, number: int) -> str:
    """Adds a worktree with changes, a few of them to files that all the others change too."""
    git(repo, "worktree", "add", "-q", "-b", f"topic{number}", tree)
    for changed in range(CHANGED):
        name = changed if changed < 2 else 100 * number + changed
        _edit(tree, name, f"changed by {number}")
        if changed == CHANGED // 2:
            git(tree, "commit", "-qam", "work")
    git(tree, "status")  # As anybody does now and then; it renews the index.
    return tree


def _edit(tree: str, number: int, text: str) -> str:
    path = os.path.join(f"dir{number % 200}", f"sub{number % 7}", f"file{number}.py")
    with open(os.path.join(tree, path)) as file:
        lines = file.read().splitlines()
    lines[10] = text
    with open(os.path.join(tree, path), "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def _compared(repo: str, trees: list[str]) -> list[Row]:
    command = installed("queen")
    if not os.path.exists(command[0]):
        command = python("-P", "-c", "from queenbee.cli.main import main; main()")
    command = [*command, "collisions"]
    floor, took = [], []
    for run in range(RUNS):
        _edit(trees[0], 99, f"run {run}")
        floor.append(seconds(_STATUS, trees[0]))
        took.append(_took(command, repo))
    return [_against(f"{len(trees)} worktrees", took, floor)]


def _took(command: Command, folder: str) -> float:
    return seconds(command, folder, allowed=(0, 1))


def _against(name: str, took_s: list[float], floor_s: list[float]) -> Row:
    """Returns the row of a command against `git status` of one worktree, run by run."""
    ratios = [one / other for one, other in zip(took_s, floor_s, strict=True)]
    ours_ms, status_ms = (statistics.median(each) * 1000 for each in (took_s, floor_s))
    return results.of(name, ratios, TIMES, note=f"{ours_ms:.0f} ms of {status_ms:.0f}")


def _hook(repo: str, trees: list[str]) -> list[Row]:
    """Returns what the hook's check adds where all the other worktrees have changed the file."""
    script = installed("queen-hook")
    command = script if os.path.exists(script[0]) else python("-P", "-m", "queenbee.hook.main")
    mine = trees[0]
    path = _edit(mine, 0, "mine")
    alone = _edit(mine, 1_000, "alone")
    for name in (path, alone) * 2:
        seconds(command, mine, stdin=_event(mine, name))
    with_check, without = [], []
    for run in range(HOOK_RUNS):
        _edit(mine, 0, f"mine {run}")
        with_check.append(_processor_s(command, mine, _event(mine, path)))
        without.append(_processor_s(command, mine, _event(mine, alone)))
    added_ms = [(one - other) * 1000 for one, other in zip(with_check, without, strict=True)]
    note = f"processor time, added to {statistics.median(without) * 1000:.0f} ms"
    return [results.of("the hook's check", added_ms, "ms", goal=25, note=note)]


def _processor_s(command: Command, folder: str, stdin: bytes) -> float:
    """Returns the processor time of one run with what it starts: others may use the machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(command, folder, stdin=stdin)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _event(tree: str, path: str) -> bytes:
    event = {
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "session_id": "bench",
        "cwd": tree,
        "agent": "bench",
        "tool_input": {"file_path": os.path.join(tree, path)},
    }
    return json.dumps(event).encode()


if __name__ == "__main__":
    results.main(figures)
