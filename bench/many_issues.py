"""A tracker with very many issues: what the commands that agents call in a loop cost in it.

    python -m bench.many_issues [ISSUES]

Of each ten issues, four are closed, two are ready and four wait for another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from bench.processes import compare, installed, python
from bench.results import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

ISSUES = 100_000
FLOOR = python("-c", "import click")
COMMANDS = {
    "status": ("status",),
    "next": ("next",),
    "show": ("show", "qb-000007"),
    "claim": ("claim", "qb-000005"),
    "edit": ("issue", "edit", "qb-000006", "--priority", "1"),
    "ready": ("issue", "ready"),
    "ready --limit 20": ("issue", "ready", "--limit", "20"),
}
_GOAL = 1.6
_AS = ("--as", "droid-1")
_TEXT = "the build of the header is slow, and its cache is never read again after a login; " * 3


def make(folder: str, count: int) -> str:
    """Makes a repository whose tracker has so many issues, and returns it."""
    repo = os.path.join(folder, f"issues-{count}")
    os.makedirs(os.path.join(repo, ".beads"))
    subprocess.run(["git", "init", "-q", repo], check=True)
    with open(os.path.join(repo, ".beads", "issues.jsonl"), "w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps(_issue(number)) + "\n")
    return repo


def rewrite(repo: str, number: int) -> None:
    """Changes one row, as a tracker does: it writes its whole file again."""
    path = os.path.join(repo, ".beads", "issues.jsonl")
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    row = json.loads(lines[number])
    lines[number] = json.dumps({**row, "title": row["title"] + ", again"}) + "\n"
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.writelines(lines)
    os.replace(f"{path}.new", path)


def figures(folder: str, count: int, runs: int = 9) -> Iterator[Row]:
    """Yields what commands cost, against `import click`: the first, and those after it."""
    repo = make(folder, count)
    queen = installed("queen")
    floor_s = min(_seconds(FLOOR, repo) for _ in range(3))
    first_s = _seconds([*queen, *_AS, "status"], repo)
    yield Row("first call", first_s / floor_s, "x", note=f"{first_s * 1000:,.0f} ms")
    for name, words in COMMANDS.items():
        figure = compare([*queen, *_AS, *words], FLOOR, folder=repo, runs=runs)
        yield figure.row(name, goal=_GOAL if name in ("status", "next", "ready") else None)
    for number in (1, 2):
        rewrite(repo, count // 3 + number)
        after_s = _seconds([*queen, *_AS, "status"], repo)
    yield Row("after a rewrite", after_s / floor_s, "x", note=f"{after_s * 1000:,.0f} ms")


def _seconds(command: list[str], folder: str) -> float:
    begin_s = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin_s


def _issue(number: int) -> dict[str, object]:
    row: dict[str, object] = {
        "id": f"qb-{number:06}",
        "title": f"Change src/part{number % 97}.py, number {number}",
        "description": _TEXT[number % 80 :],
        "status": "closed" if number % 10 in (0, 1, 2, 3) else "open",
        "priority": number % 5,
        "issue_type": "task",
        "created_at": f"2026-01-{1 + number % 28:02}T10:00:00Z",
        "updated_at": f"2026-02-{1 + number % 28:02}T10:00:00Z",
    }
    if number % 10 >= 6:
        before = number - 1 if number % 10 > 6 else number - 2
        row["dependencies"] = [
            {"issue_id": row["id"], "depends_on_id": f"qb-{before:06}", "type": "blocks"}
        ]
    return row


def main() -> None:
    """Prints the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ISSUES
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        for row in figures(folder, count):
            print(f"{row.name}: {row}", flush=True)


if __name__ == "__main__":
    main()
