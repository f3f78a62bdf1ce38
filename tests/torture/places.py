"""Repositories to torture, the environment that children run in, and the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

from queenbee import Hive
from queenbee.services.care.doctor import examine, repair
from queenbee.store.creating import init
from queenbee.store.layout import discover
from tests.torture import TESTS

ROOT = os.path.dirname(TESTS)
ROTATING = "TORTURE_ROTATING"
"""Where this is set, every few writes rotate a ledger."""
TRUSTING = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "queenbee.trust",
    "GIT_CONFIG_VALUE_0": "all",
}
"""A machine on which nobody is asked anything."""
ENVIRONMENT = {
    **TRUSTING,
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "PYTHONPATH": os.pathsep.join((ROOT, TESTS)),
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Torturer",
    "GIT_AUTHOR_EMAIL": "t@example.com",
    "GIT_COMMITTER_NAME": "Torturer",
    "GIT_COMMITTER_EMAIL": "t@example.com",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
}


class Broken(AssertionError):
    """A promise that did not hold."""


def require(holds: object, what: str) -> None:
    """Raises `Broken` where a promise does not hold."""
    if not holds:
        raise Broken(what)


def git(tree: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs git, whatever comes of it."""
    return subprocess.run(
        ["git", "-C", tree, *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )


def must(tree: str, *arguments: str) -> str:
    """Runs git and returns what it printed; it has to work."""
    done = git(tree, *arguments)
    require(done.returncode == 0, f"git {' '.join(arguments)} failed: {done.stdout}{done.stderr}")
    return done.stdout


def make_repository(path: str) -> str:
    """Makes a repository with a hive and a first commit; returns its path."""
    os.makedirs(path)
    must(path, "init", "-q", "-b", "main")
    with open(os.path.join(path, "README.md"), "w", encoding="utf-8") as file:
        file.write("tortured\n")
    must(path, "add", "README.md")
    must(path, "commit", "-qm", "first")
    must(path, "branch", "empty")
    places = discover(path, {}, must_exist=False)
    init(places)
    if ROTATING in os.environ:
        with open(os.path.join(places.beads_dir, "queen.toml"), "a", encoding="utf-8") as file:
            file.write('rotate_at = "2KiB"\narchive_after = "0s"\n')
    must(path, "add", ".beads")
    must(path, "commit", "-qm", "a hive")
    return path


def open_hive(path: str, droid: str, *, durability: str = "buffered") -> Hive:
    """Opens the hive of a tree as a fresh process would."""
    return Hive.open(path, droid=droid, env={"QUEEN_DURABILITY": durability})


def errors_of(hive: Hive, *, but: frozenset[str] = frozenset()) -> list[str]:
    """Returns what doctor says is wrong, apart from these codes."""
    return [
        f"{each.code}: {each.file}:{each.line}: {each.message}"
        for each in examine(hive)
        if each.severity == "error" and each.code not in but
    ]


def heal(path: str) -> None:
    """Repairs what cannot lose anything, as `queen doctor --fix` does."""
    repair(open_hive(path, "queen"))


@contextmanager
def child(module: str, *arguments: str, broken: str = ""):
    """Runs a module of this package beside us; ends it, and only it, when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.torture.{module}", *arguments],
        cwd=ROOT,
        env={**ENVIRONMENT, "TORTURE_BROKEN": broken},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
