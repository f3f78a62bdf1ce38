"""Writers at work while git does to their tree whatever git can do."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from contextlib import ExitStack

from tests.torture.places import (
    Broken,
    child,
    errors_of,
    git,
    heal,
    make_repository,
    must,
    open_hive,
    require,
)

OPERATIONS = (
    ("add", "-A"),
    ("commit", "-qm", "work"),
    ("commit", "-qam", "all"),
    ("stash", "-q"),
    ("stash", "-q", "-u"),
    ("stash", "pop", "-q"),
    ("reset", "-q", "--hard"),
    ("reset", "-q", "--hard", "HEAD~1"),
    ("reset", "-q", "HEAD~1"),
    ("checkout", "-q", "main"),
    ("checkout", "-q", "side"),
    ("checkout", "-q", "empty"),
    ("checkout", "-qf", "main"),
    ("checkout", "-qf", "empty"),
    ("checkout", "-qf", "side"),
    ("checkout", "-q", "--", ".beads"),
    ("clean", "-qfd"),
    ("merge", "-q", "--no-edit", "main"),
    ("merge", "-q", "--no-edit", "side"),
    ("merge", "-q", "--no-edit", "empty"),
    ("rebase", "-q", "main"),
    ("rebase", "-q", "--autostash", "main"),
    ("pull", "-q", "--no-rebase", "--no-edit", "other", "main"),
    ("pull", "-q", "--rebase", "other", "main"),
    ("pull", "-q", "--rebase", "--autostash", "other", "main"),
    ("pull", "-q", "--no-rebase", "--autostash", "--no-edit", "other", "main"),
    ("rm", "-qr", "--cached", ".beads"),
)
"""What people and agents type, in the tree that others write to at that moment."""

OTHERS = (
    ("add", "-A"),
    ("commit", "-qm", "work elsewhere"),
    ("pull", "-q", "--no-rebase", "--no-edit", "origin", "main"),
    ("pull", "-q", "--rebase", "--autostash", "origin", "main"),
)
"""What happens in the other clone."""

ABORTS = (("merge", "--abort"), ("rebase", "--abort"), ("cherry-pick", "--abort"))


class Site:
    """A repository with a linked worktree, and a clone of it elsewhere."""

    def __init__(self, folder: str) -> None:
        self.main = make_repository(os.path.join(folder, "main"))
        must(self.main, "branch", "side")
        self.linked = os.path.join(folder, "linked")
        must(self.main, "worktree", "add", "-q", "-b", "feature", self.linked)
        self.clone = os.path.join(folder, "clone")
        must(folder, "clone", "-q", self.main, self.clone)
        must(self.main, "remote", "add", "other", self.clone)
        self.logs = os.path.join(folder, "logs")
        os.makedirs(self.logs)

    def writers(self, per_second: float) -> list[tuple[str, ...]]:
        """Returns the arguments of each writer: who writes where, and how."""
        at = [
            (self.main, "long-1", "long"),
            (self.main, "long-2", "long"),
            (self.main, "fresh", "fresh"),
            (self.linked, "linked", "long"),
            (self.clone, "elsewhere", "long"),
        ]
        return [
            (tree, droid, os.path.join(self.logs, droid), str(per_second), how)
            for tree, droid, how in at
        ]


def acknowledged(logs: str, droids: tuple[str, ...]) -> list[tuple[str, str, int]]:
    """Returns what the writers were told is recorded."""
    found = []
    for droid in droids:
        with open(os.path.join(logs, droid), encoding="utf-8") as file:
            for line in file:
                kind, identifier, rev = line.split()
                found.append((kind, identifier, int(rev)))
    return found


def missing(tree: str, wanted: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Returns what a fresh reader in a tree does not see."""
    hive = open_hive(tree, "queen")
    seen: dict[str, set[object]] = {}
    for kind, identifier, _ in wanted:
        if identifier not in seen:
            lines = hive.state(kind).history(identifier)
            seen[identifier] = {line.get("rev") for line in lines}
    return [each for each in wanted if each[2] not in seen[each[1]]]


def torture(
    folder: str, seconds: float, *, seed: int, per_second: float = 20, broken: str = ""
) -> dict[str, object]:
    """Runs writers and git against each other; returns the figures. Raises `Broken`."""
    rng = random.Random(seed)
    site = Site(folder)
    ours = ("long-1", "long-2", "fresh", "linked")
    done, failed = Counter[str](), Counter[str]()
    with ExitStack() as stack:
        processes = [
            stack.enter_context(child("writer", *arguments, broken=broken))
            for arguments in site.writers(per_second)
        ]
        _await_first_writes(site.logs, (*ours, "elsewhere"), processes)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            tree, chosen = (
                (site.clone, rng.choice(OTHERS)) if rng.random() < 0.15 else
                (rng.choice((site.main, site.main, site.linked)), rng.choice(OPERATIONS))
            )  # fmt: skip
            outcome = git(tree, *chosen)
            (failed if outcome.returncode else done)[chosen[0]] += 1
            if outcome.returncode and rng.random() < 0.7:
                for abort in ABORTS:
                    git(tree, *abort)
        for process in processes:
            process.stdin.close()
            require(process.wait(timeout=60) == 0, f"a writer died: {process.args}")
    mine = acknowledged(site.logs, ours)
    theirs = acknowledged(site.logs, ("elsewhere",))
    _check_trees(site, mine, theirs)
    _exchange(site)
    everything = [*mine, *theirs]
    for tree in (site.main, site.linked, site.clone):
        lost = missing(tree, everything)
        require(not lost, f"after the exchange, {tree} lacks {len(lost)}: {lost[:3]}")
        wrong = errors_of(open_hive(tree, "queen"), but=frozenset({"unusable_line"}))
        require(not wrong, f"{tree}: {wrong[:3]}")
    return {
        "seconds": seconds,
        "acknowledged": len(everything),
        "refused": _refused(site.logs),
        "git_operations": sum(done.values()) + sum(failed.values()),
        "of_which_git_refused": sum(failed.values()),
        "lost": 0,
    }


def _await_first_writes(
    logs: str, droids: tuple[str, ...], processes: list[subprocess.Popen[bytes]]
) -> None:
    """Returns once every writer has written; a slow start must not shorten the run."""
    deadline = time.monotonic() + 60
    while not all(_size(os.path.join(logs, droid)) for droid in droids):
        require(all(each.poll() is None for each in processes), "a writer died at its start")
        require(time.monotonic() < deadline, "a writer never wrote")
        time.sleep(0.02)


def _check_trees(
    site: Site, mine: list[tuple[str, str, int]], theirs: list[tuple[str, str, int]]
) -> None:
    for tree in (site.main, site.linked):
        lost = missing(tree, mine)
        require(not lost, f"{tree} lost {len(lost)} of {len(mine)}: {lost[:3]}")
    lost = missing(site.clone, theirs)
    require(not lost, f"the clone lost {len(lost)} of {len(theirs)}: {lost[:3]}")


def _exchange(site: Site) -> None:
    """Heals, commits and merges in both directions, as people at last do."""
    for tree in (site.main, site.clone):
        for abort in ABORTS:
            git(tree, *abort)
        # Segments that git does not know yet can keep it from going back: it ends where it stands.
        git(tree, "rebase", "--quit")
    must(site.clone, "checkout", "-qf", "-B", "main")
    must(site.linked, "checkout", "-qf", "--detach")
    must(site.main, "checkout", "-qf", "main")
    for _ in range(2):
        for tree, remote in ((site.main, "other"), (site.clone, "origin")):
            heal(tree)
            git(tree, "add", "-A")
            git(tree, "commit", "-qm", "final")
            pulled = git(tree, "pull", "-q", "--no-rebase", "--no-edit", remote, "main")
            if pulled.returncode:
                _resolve(tree, pulled.stderr)
            heal(tree)
            git(tree, "add", "-A")
            git(tree, "commit", "-qm", "final")


def _resolve(tree: str, why: str) -> None:
    """Ends a merge that stopped at something (a file one side deleted): keeps what is there."""
    git(tree, "add", "-A")
    ended = git(tree, "commit", "-qm", "resolved")
    if ended.returncode:
        raise Broken(f"{tree}: the merge cannot be ended: {why} {ended.stdout}{ended.stderr}")


def _refused(logs: str) -> int:
    count = 0
    for name in os.listdir(logs):
        if name.endswith(".refused"):
            with open(os.path.join(logs, name), encoding="utf-8") as file:
                count += sum(1 for _ in file)
    return count


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
