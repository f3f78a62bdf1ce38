"""No command runs a program that the config of the repository names, but those that say so."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, git
from test_memory_worlds import READS, WRITES

MAY: dict[str, tuple[str, ...]] = {
    # As you would: `docs/threats.md` names them.
    "land": ("filter.", "merge.", "hook-"),
    "worktree add": ("filter.", "hook-"),
    "worktree remove": ("filter.", "hook-"),
    "next": ("filter.", "hook-"),
    "complete": ("filter.", "hook-"),
    "sync": ("remote.", "core.sshCommand", "credential."),
}


class Names(dict[str, str]):
    """What the command lines name; nothing here has it."""

    def __missing__(self, name: str) -> str:
        return "qb-1"


def lines() -> list[tuple[str, str]]:
    """Returns each command line, with who runs it."""
    read = [("tester", f"{name} {more}") for name, every in READS.items() for more in every[:1]]
    written = [each.partition(": ")[::2] for each in WRITES.strip().splitlines()]
    return [(droid, line.format_map(Names())) for droid, line in read + written]


@pytest.mark.slow
def test_each_command_runs_none_but_those_that_are_named(repo: Path, marks: Path) -> None:
    (repo / ".beads" / "issues.jsonl").write_text(
        "".join(f'{{"id":"qb-{n}","title":"A","status":"open"}}\n' for n in range(50))
    )
    git(repo, "-c", "core.fsmonitor=", "-c", "core.hooksPath=", "checkout", "-q", "-b", "other")
    for mark in marks.iterdir():
        mark.unlink()
    quick, whole = QuickQueen(repo), Queen(repo)
    ran: dict[str, set[str]] = {}
    allowed: dict[str, set[str]] = {}
    for droid, line in lines():
        queen = whole if line.split()[0] in ("mcp", "watch", "start") else quick
        queen(*shlex.split(line), as_=droid)
        for path in repo.rglob("one"):
            os.utime(path)  # Git must read it to say whether it changed.
        words = " ".join(line.split()[:2])
        may = next((each for name, each in MAY.items() if words.startswith(name)), ())
        for mark in marks.iterdir():
            named = any(each in mark.name for each in may)
            (allowed if named else ran).setdefault(line, set()).add(mark.name)
            mark.unlink()
    assert ran == {}
    assert {"worktree add extra", "worktree remove extra"} <= allowed.keys()


@pytest.mark.slow
def test_the_next_issue_brings_files_and_commits_records_as_git_does(
    repo: Path, marks: Path, tmp_path: Path
) -> None:
    tree, off = tmp_path / "tree", ("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null")
    (repo / ".beads" / "issues.jsonl").write_text('{"id":"qb-1","title":"A","status":"open"}\n')
    git(repo, *off, "worktree", "add", "-q", str(tree), "-b", "tree", "HEAD~1")
    for step in ("next", "complete --next"):
        for mark in marks.iterdir():
            mark.unlink()
        done = Queen(tree)(*step.split(), as_="tester")
        assert done.code in (0, 1), done
        ran = {each.name for each in marks.iterdir()}
        assert ran and all("filter." in each or each.startswith("hook-") for each in ran), ran
